// Split-K over blocks in two stages: a block takes part of a row, a second kernel adds the parts up. Aims at: few long
// rows on a GPU without thread-block clusters, and rows too long for the blocks of one; it pays for two launches.
#include "parts.cuh"
#include "share.cuh"

namespace sgemv {

// block `threads`, grid parts * groups_for<rows>(m)
template <int threads, int rows, int loads, bool vectors>
__global__ void __launch_bounds__(threads, kResidentThreads / threads)
    sgemv_split_kernel(const Args args, float* __restrict__ partial, int parts) {
  const int part = static_cast<int>(blockIdx.x % parts);
  const std::int64_t row = first_row<rows>(blockIdx.x / parts);
  float sums[rows] = {};
  add_share<rows, loads, vectors>(sums, args, row, part * threads + static_cast<int>(threadIdx.x), parts * threads);
  const float total = sum_over_block<rows, threads>(sums);
  const int r = owned_row<rows, threads>();
  if (r >= 0 && row + r * kRowsApart < args.m) partial[part * args.m + row + r * kRowsApart] = total;
}

template <int threads, int rows, int loads>
void start_split(const Args& args) {
  const std::int64_t groups = groups_for<rows>(args.m);
  const std::int64_t useful = ceil_div(args.k, std::int64_t{threads} * 4 * loads);  // parts with a full load each
  const std::int64_t wanted = ceil_div(multiprocessors(), groups);
  const int parts = static_cast<int>(useful < 1 ? 1 : (useful < wanted ? useful : wanted));
  float* const partial = args.scratch->floats(parts * args.m);
  const auto blocks = grid_of(groups * parts);
  if (by_vectors(args))
    sgemv_split_kernel<threads, rows, loads, true><<<blocks, threads, 0, stream_of(args)>>>(args, partial, parts);
  else
    sgemv_split_kernel<threads, rows, loads, false><<<blocks, threads, 0, stream_of(args)>>>(args, partial, parts);
  add_parts(args, partial, parts);
}

}  // namespace sgemv

SGEMV_VARIANT(sgemv_split, K_AT_MOST, 8000000000, ROWS, 4, "blocks of 256 threads take parts of a row, a second kernel adds them up") {
  sgemv::start_split<256, 1, 4>(args);
}

// A block shares one or several rows. Aims at: long rows, at the speed of `read`: each thread has loads of several rows
// in flight, every load of x serves them all, and many blocks keep every multiprocessor supplied to the end.
#include "share.cuh"

namespace sgemv {

// block `threads`, grid groups_for<rows>(m)
template <int threads, int rows, int loads, bool vectors>
__global__ void __launch_bounds__(threads, kResidentThreads / threads) sgemv_blocks_kernel(const Args args) {
  const std::int64_t row = first_row<rows>(blockIdx.x);
  float sums[rows] = {};
  add_share<rows, loads, vectors>(sums, args, row, static_cast<int>(threadIdx.x), threads);
  const float total = sum_over_block<rows, threads>(sums);
  const int r = owned_row<rows, threads>();
  if (r >= 0 && row + r * kRowsApart < args.m) args.y[(row + r * kRowsApart) * args.y_stride] = total;
}

template <int threads, int rows, int loads>
void start_blocks(const Args& args) {
  const auto blocks = grid_of(groups_for<rows>(args.m));
  if (by_vectors(args))
    sgemv_blocks_kernel<threads, rows, loads, true><<<blocks, threads, 0, stream_of(args)>>>(args);
  else
    sgemv_blocks_kernel<threads, rows, loads, false><<<blocks, threads, 0, stream_of(args)>>>(args);
}

}  // namespace sgemv

SGEMV_VARIANT(sgemv_blocks_128x1, K_AT_MOST, 8000000000, ROWS, 4, "128 threads a row, 4 loads in flight") {
  sgemv::start_blocks<128, 1, 4>(args);
}
SGEMV_VARIANT(sgemv_blocks_128x2, K_AT_MOST, 8000000000, ROWS, 4, "128 threads share 2 rows, 2 loads of each in flight") {
  sgemv::start_blocks<128, 2, 2>(args);
}
SGEMV_VARIANT(sgemv_blocks_256x1, K_AT_MOST, 8000000000, ROWS, 4, "256 threads a row, 4 loads in flight") {
  sgemv::start_blocks<256, 1, 4>(args);
}
SGEMV_VARIANT(sgemv_blocks_256x2, K_AT_MOST, 8000000000, ROWS, 4, "256 threads share 2 rows, 2 loads of each in flight") {
  sgemv::start_blocks<256, 2, 2>(args);
}
SGEMV_VARIANT(sgemv_blocks_256x4, K_AT_MOST, 8000000000, ROWS, 4, "256 threads share 4 rows, 1 load of each in flight") {
  sgemv::start_blocks<256, 4, 1>(args);
}
SGEMV_VARIANT(sgemv_blocks_512x1, K_AT_MOST, 8000000000, ROWS, 4, "512 threads a row, 4 loads in flight") {
  sgemv::start_blocks<512, 1, 4>(args);
}

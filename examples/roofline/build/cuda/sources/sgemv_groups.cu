// A few lanes of a warp share some rows: up to 8 rows a warp and instruction. Aims at: short rows, where a warp a row
// would leave lanes idle and a block a row most of its threads; each thread has several rows in flight, so that a row
// of one vector a lane does not cost a round trip to memory of its own.
#include "share.cuh"

namespace sgemv {

constexpr int kMostThreads = 128;

// Rows that start anywhere take more registers.
constexpr int resident_blocks(bool vectors) { return (vectors ? kResidentThreads : 768) / kMostThreads; }

// grid: enough threads for groups_for<rows>(m) groups of `width` lanes
template <int width, int rows, int loads, bool vectors>
__global__ void __launch_bounds__(kMostThreads, resident_blocks(vectors)) sgemv_groups_kernel(const Args args) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % width;
  const std::int64_t row = first_row<rows>(thread / width);
  float sums[rows] = {};
  if (row < args.m) add_share<rows, loads, vectors, (width < 8)>(sums, args, row, lane, width);
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    const std::int64_t own = row + r * kRowsApart;
    const float sum = sum_over_lanes<width>(sums[r]);
    if (lane == 0 && own < args.m) args.y[own * args.y_stride] = sum;
  }
}

// Smaller blocks where large ones would leave multiprocessors without any.
template <int width, int rows, int loads>
void start_groups(const Args& args) {
  const std::int64_t all = groups_for<rows>(args.m) * width;
  const std::int64_t wanted = multiprocessors();
  std::int64_t threads = kMostThreads;
  while (threads > 32 && ceil_div(all, threads) < wanted) threads /= 2;
  const auto blocks = grid_of(ceil_div(all, threads));
  const auto block = static_cast<unsigned>(threads);
  if (by_vectors(args))
    sgemv_groups_kernel<width, rows, loads, true><<<blocks, block, 0, stream_of(args)>>>(args);
  else
    sgemv_groups_kernel<width, rows, loads, false><<<blocks, block, 0, stream_of(args)>>>(args);
}

}  // namespace sgemv

SGEMV_VARIANT(sgemv_groups_4x4, K_AT_MOST, 8000000000, ROWS, 4, "4 lanes share 4 rows, 1 load of each in flight") {
  sgemv::start_groups<4, 4, 1>(args);
}
SGEMV_VARIANT(sgemv_groups_8x1, K_AT_MOST, 8000000000, ROWS, 4, "8 lanes a row, 2 loads in flight") {
  sgemv::start_groups<8, 1, 2>(args);
}
SGEMV_VARIANT(sgemv_groups_8x2, K_AT_MOST, 8000000000, ROWS, 4, "8 lanes share 2 rows, 2 loads of each in flight") {
  sgemv::start_groups<8, 2, 2>(args);
}
SGEMV_VARIANT(sgemv_groups_16x1, K_AT_MOST, 8000000000, ROWS, 4, "16 lanes a row, 4 loads in flight") {
  sgemv::start_groups<16, 1, 4>(args);
}
SGEMV_VARIANT(sgemv_groups_16x2, K_AT_MOST, 8000000000, ROWS, 4, "16 lanes share 2 rows, 2 loads of each in flight") {
  sgemv::start_groups<16, 2, 2>(args);
}
SGEMV_VARIANT(sgemv_groups_32x1, K_AT_MOST, 8000000000, ROWS, 4, "a warp a row, 4 loads in flight") {
  sgemv::start_groups<32, 1, 4>(args);
}
SGEMV_VARIANT(sgemv_groups_32x2, K_AT_MOST, 8000000000, ROWS, 4, "a warp shares 2 rows, 2 loads of each in flight") {
  sgemv::start_groups<32, 2, 2>(args);
}

// A warp copies the contiguous elements of its rows into shared memory by 16-byte loads, then each lane sums rows. Aims
// at: rows of a few elements that start anywhere, where loads by rows would be 4 bytes each: together they are one
// contiguous array, and all of it can be in flight at once.
#include "common.cuh"

namespace sgemv {

constexpr int kTileWarps = 4;
constexpr int kTileLoads = 8;  // a lane, all in flight: a tile of 32 * rows rows of k elements needs rows * k <= 32

// block 32 * kTileWarps, grid ceil(m / (32 * rows * kTileWarps)), (32 * rows * k + 4) * kTileWarps floats shared; A packed
template <int rows>
__global__ void __launch_bounds__(32 * kTileWarps) sgemv_tiles_kernel(const Args args) {
  extern __shared__ __align__(16) float tiles[];
  const int k = static_cast<int>(args.k);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t first = (std::int64_t{blockIdx.x} * kTileWarps + warp) * (32 * rows);
  const float x_own = lane < k ? __ldg(args.x + lane * args.x_stride) : 0.0f;
  if (first >= args.m) return;  // the same for all lanes of the warp
  const int here = static_cast<int>(args.m - first < 32 * rows ? args.m - first : 32 * rows);
  const float* const source = args.a + first * k;
  const int count = here * k;
  // An element lies as far past 16 bytes in the tile as in A: vectors stay vectors.
  const int past = static_cast<int>(reinterpret_cast<std::uintptr_t>(source) / sizeof(float) % 4);
  const int head = min((4 - past) % 4, count);
  const int vectors = (count - head) / 4;
  float* const tile = tiles + warp * (32 * rows * k + 4) + past;
  const float4* const from = reinterpret_cast<const float4*>(source + head);
  float4* const to = reinterpret_cast<float4*>(tile + head);
  float4 loaded[kTileLoads];
#pragma unroll
  for (int i = 0; i < kTileLoads; ++i)
    if (lane + 32 * i < vectors) loaded[i] = load_once(from + lane + 32 * i);
  const int ends = count - 4 * vectors;  // at most six elements in no whole vector
  const int end = lane < head ? lane : lane + 4 * vectors;
  if (lane < ends) tile[end] = __ldg(source + end);
#pragma unroll
  for (int i = 0; i < kTileLoads; ++i)
    if (lane + 32 * i < vectors) to[lane + 32 * i] = loaded[i];
  __syncwarp();
  // Lanes whose rows begin in the same bank begin with different columns.
  const int power = k & -k;  // the largest power of two that divides k
  int column = k == 0 ? 0 : lane * power / 32 % k;
  float sums[rows] = {};
  for (int i = 0; i < k; ++i) {
    const float x = __shfl_sync(kAllLanes, x_own, column);
#pragma unroll
    for (int r = 0; r < rows; ++r)
      if (lane + 32 * r < here) sums[r] = fmaf(tile[(lane + 32 * r) * k + column], x, sums[r]);
    column = column + 1 < k ? column + 1 : 0;
  }
#pragma unroll
  for (int r = 0; r < rows; ++r)
    if (lane + 32 * r < here) args.y[(first + lane + 32 * r) * args.y_stride] = sums[r];
}

template <int rows>
void start_tiles(const Args& args) {
  const auto blocks = grid_of(ceil_div(args.m, 32 * rows * kTileWarps));
  const auto bytes = static_cast<unsigned>((32 * rows * args.k + 4) * kTileWarps * sizeof(float));
  sgemv_tiles_kernel<rows><<<blocks, 32 * kTileWarps, bytes, stream_of(args)>>>(args);
}

}  // namespace sgemv

SGEMV_VARIANT(sgemv_tiles, K_AT_MOST, 32, PACKED, 4, "rows through shared memory, a tile of 32 or 64 a warp") {
  args.k <= 16 ? sgemv::start_tiles<2>(args) : sgemv::start_tiles<1>(args);
}

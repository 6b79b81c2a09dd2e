// Column-major A: neighbouring lanes take neighbouring rows of a column, a block's slots take columns in turn. Aims at: the
// speed of `read` on a transposed view. Where rows are too few to fill the GPU, blocks share the columns and a second
// kernel adds their parts up.
#include "parts.cuh"

namespace sgemv {

constexpr int kRowsPerLane = 4;

// The four rows of a lane: neighbours where every column starts on 16 bytes, else `lanes` apart, so that each load of
// the warp is of neighbours.
template <int lanes, bool vectors>
__device__ inline std::int64_t row_of(std::int64_t first, int lane, int i) {
  return vectors ? first + lane * kRowsPerLane + i : first + lane + i * lanes;
}

// Four elements of one column from `first` of the lane on; those beyond the last row are zero.
template <int lanes, bool vectors>
__device__ __forceinline__ float4 load_rows(const float* first, int rows_left) {
  constexpr int apart = vectors ? 1 : lanes;
  if constexpr (vectors) {
    if (rows_left >= 4) return load_once(reinterpret_cast<const float4*>(first));
  }
  float4 value = no_vector();
  if (rows_left > 0) value.x = __ldg(first);
  if (rows_left > apart) value.y = __ldg(first + apart);
  if (rows_left > 2 * apart) value.z = __ldg(first + 2 * apart);
  if (rows_left > 3 * apart) value.w = __ldg(first + 3 * apart);
  return value;
}

__device__ inline void multiply_add(float4& sums, float4 a, float x) {
  sums.x = fmaf(a.x, x, sums.x);
  sums.y = fmaf(a.y, x, sums.y);
  sums.z = fmaf(a.z, x, sums.z);
  sums.w = fmaf(a.w, x, sums.w);
}

// block lanes * slots, grid parts * ceil(m / (4 * lanes)); writes y, or with several parts partial[part * m + row]
template <int lanes, int slots, int loads, bool vectors>
__global__ void __launch_bounds__(lanes* slots, kResidentThreads / (lanes * slots))
    sgemv_columns_kernel(const Args args, float* __restrict__ partial, int parts) {
  constexpr int rows = lanes * kRowsPerLane;
  constexpr int warps = lanes * slots / 32;
  __shared__ alignas(16) float shared[warps][rows];
  const int part = static_cast<int>(blockIdx.x % parts);
  const std::int64_t first = std::int64_t{blockIdx.x / parts} * rows;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const std::int64_t own = row_of<lanes, vectors>(first, lane, 0);
  const int rows_left = static_cast<int>(args.m - own < rows ? args.m - own : rows);
  const int step = slots * parts;
  const int column = part * slots + static_cast<int>(threadIdx.x) / lanes;
  const float* a = args.a + own + column * args.a_stride;
  const float* x = args.x + column * args.x_stride;
  const std::int64_t a_step = step * args.a_stride;
  const std::int64_t x_step = step * args.x_stride;
  float4 sums = no_vector();
  std::int64_t left = args.k - column;
#pragma unroll 1
  for (; left > (loads - 1) * step; left -= loads * step) {
    float4 a4[loads];
    float x1[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      a4[i] = load_rows<lanes, vectors>(a, rows_left);
      x1[i] = __ldg(x);
      a += a_step;
      x += x_step;
    }
#pragma unroll
    for (int i = 0; i < loads; ++i) multiply_add(sums, a4[i], x1[i]);
  }
#pragma unroll 1
  for (; left > 0; left -= step) {
    multiply_add(sums, load_rows<lanes, vectors>(a, rows_left), __ldg(x));
    a += a_step;
    x += x_step;
  }
#pragma unroll
  for (int distance = lanes; distance < 32; distance *= 2) {
    sums.x += __shfl_xor_sync(kAllLanes, sums.x, distance);
    sums.y += __shfl_xor_sync(kAllLanes, sums.y, distance);
    sums.z += __shfl_xor_sync(kAllLanes, sums.z, distance);
    sums.w += __shfl_xor_sync(kAllLanes, sums.w, distance);
  }
  if (threadIdx.x % 32 < lanes)
    *reinterpret_cast<float4*>(&shared[threadIdx.x / 32][lane * kRowsPerLane]) = sums;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < rows; i += lanes * slots) {
    const std::int64_t row = row_of<lanes, vectors>(first, i / kRowsPerLane, i % kRowsPerLane);
    float total = 0.0f;
#pragma unroll
    for (int warp = 0; warp < warps; ++warp) total += shared[warp][i];
    if (row < args.m && parts == 1) args.y[row * args.y_stride] = total;
    if (row < args.m && parts > 1) partial[part * args.m + row] = total;
  }
}

inline bool columns_by_vectors(const Args& args) {
  return reinterpret_cast<std::uintptr_t>(args.a) % sizeof(float4) == 0 && args.a_stride % 4 == 0;
}

template <int lanes, int slots, int loads>
void start_columns(const Args& args, std::int64_t parts) {
  const std::int64_t tiles = ceil_div(args.m, lanes * kRowsPerLane);
  const auto blocks = grid_of(tiles * parts);
  float* const partial = parts > 1 ? args.scratch->floats(parts * args.m) : nullptr;
  const int count = static_cast<int>(parts);
  if (columns_by_vectors(args))
    sgemv_columns_kernel<lanes, slots, loads, true>
        <<<blocks, lanes * slots, 0, stream_of(args)>>>(args, partial, count);
  else
    sgemv_columns_kernel<lanes, slots, loads, false>
        <<<blocks, lanes * slots, 0, stream_of(args)>>>(args, partial, count);
  if (parts > 1) add_parts(args, partial, count);
}

// So many that every multiprocessor has a block, but each thread still has `loads` columns.
template <int lanes, int slots, int loads>
std::int64_t parts_for(const Args& args) {
  const std::int64_t wanted = ceil_div(multiprocessors(), ceil_div(args.m, lanes * kRowsPerLane));
  const std::int64_t useful = ceil_div(args.k, slots * loads);
  return useful < 1 ? 1 : (useful < wanted ? useful : wanted);
}

}  // namespace sgemv

SGEMV_VARIANT(sgemv_columns_32x32, K_AT_MOST, 8000000000, COLUMNS, 4, "32 rows a block, 32 columns at a time") {
  sgemv::start_columns<8, 32, 4>(args, 1);
}
SGEMV_VARIANT(sgemv_columns_32x128, K_AT_MOST, 8000000000, COLUMNS, 4, "32 rows a block, 128 columns at a time") {
  sgemv::start_columns<8, 128, 4>(args, 1);
}
SGEMV_VARIANT(sgemv_columns_128x8, K_AT_MOST, 8000000000, COLUMNS, 4, "128 rows a block, 8 columns at a time") {
  sgemv::start_columns<32, 8, 4>(args, 1);
}
SGEMV_VARIANT(sgemv_columns_split, K_AT_MOST, 8000000000, COLUMNS, 4, "blocks of 32 rows and 128 columns at a time take parts, a second kernel adds them up") {
  sgemv::start_columns<8, 128, 4>(args, sgemv::parts_for<8, 128, 4>(args));
}

// y = A x of one column: A is read and y is written, one float for the other. Aims at: copy bandwidth, since reads and
// writes are all there is; on some GiB it is the ceiling of what copies.
#include "common.cuh"

namespace sgemv {

constexpr int kVectors = 4;  // of a thread, all loaded before the first is stored
constexpr int kCopyThreads = 256;

__device__ __forceinline__ void put(float* y, float4 value, bool by_vectors) {
  if (by_vectors) {
    *reinterpret_cast<float4*>(y) = value;
  } else {
    y[0] = value.x, y[1] = value.y, y[2] = value.z, y[3] = value.w;
  }
}

// block kCopyThreads, grid: kVectors vectors a thread; a and x start on 16 bytes, y perhaps
template <bool by_vectors>
__global__ void __launch_bounds__(kCopyThreads, kResidentThreads / kCopyThreads)
    sgemv_k1_kernel(const float* a, const float* x, float* y, std::int64_t m) {
  const float factor = __ldg(x);
  const auto times = [=](float4 v) { return make_float4(v.x * factor, v.y * factor, v.z * factor, v.w * factor); };
  const std::int64_t first = std::int64_t{blockIdx.x} * (kCopyThreads * kVectors) + threadIdx.x;
  float4 v[kVectors];
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const std::int64_t vector = first + i * kCopyThreads;
    v[i] = vector < m / 4 ? load_once(reinterpret_cast<const float4*>(a) + vector) : no_vector();
  }
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const std::int64_t vector = first + i * kCopyThreads;
    if (vector < m / 4) put(y + 4 * vector, times(v[i]), by_vectors);
  }
  if (first < m % 4) y[m / 4 * 4 + first] = a[m / 4 * 4 + first] * factor;
}

}  // namespace sgemv

SGEMV_VARIANT(sgemv_k1, K_EQUAL_TO, 1, PACKED, 16, "one column: 4 vectors a thread, loaded and stored by 16 bytes") {
  const auto blocks = sgemv::grid_of(sgemv::ceil_div(args.m, 4 * sgemv::kVectors * sgemv::kCopyThreads));
  const bool by_vectors = reinterpret_cast<std::uintptr_t>(args.y) % 16 == 0;
  const auto stream = sgemv::stream_of(args);
  if (by_vectors)
    sgemv::sgemv_k1_kernel<true><<<blocks, sgemv::kCopyThreads, 0, stream>>>(args.a, args.x, args.y, args.m);
  else
    sgemv::sgemv_k1_kernel<false><<<blocks, sgemv::kCopyThreads, 0, stream>>>(args.a, args.x, args.y, args.m);
}

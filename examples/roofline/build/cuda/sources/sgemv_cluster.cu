// The blocks of a cluster share a row: split-K, with the partial sums added in distributed shared memory. Aims at: few
// long rows, where a block a row would leave most multiprocessors idle. A second kernel for the last sum would cost a
// launch; here each warp sends its sum to the cluster's first block, which adds them up in a fixed order.
// Not on the CPU: thread-block clusters
#include "cluster.cuh"
#include "share.cuh"

namespace sgemv {

constexpr int kClusterThreads = 256;
[[maybe_unused]] constexpr int kClusterWarps = kClusterThreads / 32;
[[maybe_unused]] constexpr int kClusterLoads = 4;
[[maybe_unused]] constexpr int kMostBlocks = 16;  // of a cluster; more than 8 must be asked for

// block kClusterThreads, grid m clusters
template <bool vectors>
__global__ void __launch_bounds__(kClusterThreads, kResidentThreads / kClusterThreads)
    sgemv_cluster_kernel(const Args args) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  __shared__ float partial[kMostBlocks * kClusterWarps];
  __shared__ std::uint64_t barrier;
  const int blocks = static_cast<int>(cluster_blocks());
  const int block = static_cast<int>(cluster_block_rank());
  const int thread = static_cast<int>(threadIdx.x);
  const int sums_sent = blocks * kClusterWarps;
  if (block == 0 && thread < 32) init_barrier(&barrier, sums_sent * sizeof(float));
  cluster_arrive();
  const std::int64_t row = blockIdx.x / blocks;
  float sums[1] = {};
  add_share<1, kClusterLoads, vectors>(sums, args, row, block * kClusterThreads + thread, blocks * kClusterThreads);
  const float sum = sum_over_lanes<32>(sums[0]);
  cluster_wait();
  if (thread % 32 == 0) store_async(&partial[block * kClusterWarps + thread / 32], &barrier, 0, sum);
  if (block != 0 || thread >= 32) return;
  wait_barrier(&barrier);
  float total = 0.0f;
  for (int i = thread; i < sums_sent; i += 32) total += partial[i];
  total = sum_over_lanes<32>(total);
  if (thread == 0) args.y[row * args.y_stride] = total;
#else
  (void)args;
  __trap();  // a launch here must not look like a result
#endif
}

// `blocks` of a cluster: 4, 8 or 16
template <bool vectors>
void launch_cluster(const Args& args, int blocks) {
  const auto kernel = sgemv_cluster_kernel<vectors>;
  if (blocks > 8) cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid_of(args.m * blocks));
  config.blockDim = dim3(kClusterThreads);
  config.stream = stream_of(args);
  config.attrs = &cluster;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, args);
}

inline void start_cluster(const Args& args, int blocks) {
  by_vectors(args) ? launch_cluster<true>(args, blocks) : launch_cluster<false>(args, blocks);
}

}  // namespace sgemv

SGEMV_VARIANT(sgemv_cluster_4, K_AT_MOST, 8000000000, ROWS, 4, "a cluster of 4 blocks of 256 threads a row") {
  sgemv::start_cluster(args, 4);
}
SGEMV_VARIANT(sgemv_cluster_8, K_AT_MOST, 8000000000, ROWS, 4, "a cluster of 8 blocks of 256 threads a row") {
  sgemv::start_cluster(args, 8);
}
SGEMV_VARIANT(sgemv_cluster_16, K_AT_MOST, 8000000000, ROWS, 4, "a cluster of 16 blocks of 256 threads a row") {
  sgemv::start_cluster(args, 16);
}

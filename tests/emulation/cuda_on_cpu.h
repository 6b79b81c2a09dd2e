// The words of CUDA C++ that the kernels use, as ordinary C++ for one CPU thread: included before a kernel's source, in
// which `kernel<<<...>>>(` became `cuda::launch(kernel, ...)(`, and `__shared__` became `cuda::shared` (translate.py).
// What stands here is all that is known; a kernel that needs more does not compile, and then more is added here.
//
// Stricter than a GPU, on purpose: every lane that a mask names, and every thread of a block at __syncthreads, must
// arrive, those that have returned early included; memory is no more aligned than it was promised to be. Blocks larger
// than __launch_bounds__ are not refused, and there is no timing, no memory model and no inline PTX.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "lanes.h"
#include "memory.h"

#define CUDA_ON_CPU  // what stands in a kernel for inline PTX asks for it
#define __CUDACC__
#define __host__
#define __device__
#define __global__
#define __forceinline__ inline
#define __align__(bytes) alignas(bytes)
#define __launch_bounds__(...)

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

using std::max;
using std::min;

inline unsigned __float_as_uint(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float __uint_as_float(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}
// Byte i of the result is the byte of y:x whose number stands in the i-th four bits of `selector`.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t bytes = std::uint64_t{y} << 32 | x;
  unsigned found = 0;
  for (int i = 0; i < 4; ++i) found |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return found;
}

using cudaStream_t = void*;
enum cudaError_t { cudaSuccess, cudaErrorInvalidConfiguration };
enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount,
  cudaDevAttrComputeCapabilityMajor,
  cudaDevAttrComputeCapabilityMinor,
  cudaDevAttrClusterLaunch,
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };

namespace cuda {

constexpr std::size_t kMostSharedBytes = 48 * 1024;  // of a kernel that did not ask for more
constexpr std::size_t kMostAskedBytes = 99 * 1024;   // the least that a GPU since compute capability 8.0 grants
constexpr unsigned kMostBlocks = 2147483647;  // of a grid's first dimension

inline int multiprocessors = 1;  // that the device says it has
inline dim3 grid_size, block_size;
inline cudaError_t last_error = cudaSuccess;

// Of the block that runs.
inline std::unique_ptr<memory::Buffer> dynamic_shared_memory;
inline std::map<const void*, std::unique_ptr<memory::Buffer>> static_shared_memory;

template <class Key>
inline char address_of_its_own;

// The variable of type T that the block's threads share, aligned to no more than asked; `Key` is a type of its own for
// each variable.
template <class T, std::size_t alignment, class Key>
T& shared(const char* name, Key) {
  std::unique_ptr<memory::Buffer>& buffer = static_shared_memory[&address_of_its_own<Key>];
  if (buffer == nullptr) buffer = std::make_unique<memory::Buffer>(name, sizeof(T), alignment);
  return *buffer->as<T>();
}

template <class T>
T* dynamic_shared() {
  return dynamic_shared_memory->as<T>();
}

inline std::map<const void*, std::size_t> asked_shared_bytes;  // by kernel

template <class Kernel>
std::size_t most_shared_bytes(Kernel kernel) {
  const auto asked = asked_shared_bytes.find(reinterpret_cast<const void*>(kernel));
  return asked == asked_shared_bytes.end() ? kMostSharedBytes : asked->second;
}

// Copies of a thread on their way, by groups. In one order of the lanes each is made as late as may be: when it is waited
// for, or at the block's next barrier. In the other it is made at once.
struct Copy {
  void* to;
  const void* from;
  int bytes;
};
struct Copies {
  std::deque<std::vector<Copy>> closed;
  std::vector<Copy> open;
};
inline std::map<unsigned, Copies> copies;  // by thread

inline void make(const Copy& copy) {
  char whole[16] = {};
  std::memcpy(whole, copy.from, copy.bytes);
  std::memcpy(copy.to, whole, sizeof whole);
}

inline void start_copy(void* to, const void* from, int bytes) {
  if (lanes::order == lanes::Order::ascending)
    copies[lanes::thread_index.x].open.push_back({to, from, bytes});
  else
    make({to, from, bytes});
}

inline void close_group() {
  Copies& own = copies[lanes::thread_index.x];
  own.closed.push_back(std::move(own.open));
  own.open.clear();
}

// Until at most the `newest` last groups are on their way.
inline void wait_for_copies(std::size_t newest) {
  Copies& own = copies[lanes::thread_index.x];
  for (; own.closed.size() > newest; own.closed.pop_front())
    for (const Copy& copy : own.closed.front()) make(copy);
}

template <class Kernel>
auto launch(Kernel kernel, dim3 grid, dim3 block, std::size_t shared_bytes = 0, cudaStream_t = nullptr) {
  return [=](auto... arguments) {
    const unsigned threads = block.x * block.y * block.z;
    if (grid.x > kMostBlocks || grid.x * grid.y * grid.z == 0 || threads == 0 || threads > lanes::kMostThreads ||
        shared_bytes > most_shared_bytes(kernel)) {
      last_error = cudaErrorInvalidConfiguration;
      return;
    }
    grid_size = grid;
    block_size = block;
    const auto fresh_shared_memory = [=] {
      static_shared_memory.clear();
      copies.clear();
      dynamic_shared_memory = std::make_unique<memory::Buffer>("dynamic shared memory", shared_bytes, 16);
    };
    lanes::run_grid({grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, fresh_shared_memory,
                    [=] { kernel(arguments...); });
  };
}

// The lane of the group of `width` that `lane` is in, or this one's own where `lane` is beyond its group's end.
inline unsigned within_group(unsigned lane, int width) {
  const unsigned end = (lanes::lane_of_warp() / width + 1) * width;
  return lane < end ? lane : lanes::lane_of_warp();
}

template <class T>
T shuffle(const char* what, lanes::Place place, unsigned mask, T value, unsigned source) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = lanes::exchange(what, place, mask, source, bits);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace cuda

#define threadIdx lanes::thread_index
#define blockIdx lanes::block_index
#define blockDim cuda::block_size
#define gridDim cuda::grid_size

// The place is that of the call, by default arguments.
#define CALLED const char *file = __builtin_FILE(), int line = __builtin_LINE()

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, CALLED) {
  const unsigned first = lanes::lane_of_warp() / width * width;
  return cuda::shuffle("__shfl_sync", {file, line}, mask, value, first + static_cast<unsigned>(lane) % width);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, CALLED) {
  const unsigned source = cuda::within_group(lanes::lane_of_warp() ^ static_cast<unsigned>(bits), width);
  return cuda::shuffle("__shfl_xor_sync", {file, line}, mask, value, source);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CALLED) {
  const unsigned source = cuda::within_group(lanes::lane_of_warp() + delta, width);
  return cuda::shuffle("__shfl_down_sync", {file, line}, mask, value, source);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CALLED) {
  return lanes::ballot("__ballot_sync", {file, line}, mask, predicate != 0);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, CALLED) {
  lanes::exchange("__syncwarp", {file, line}, mask, lanes::lane_of_warp(), 0);
}
inline void __syncthreads(CALLED) {
  cuda::wait_for_copies(0);
  lanes::wait_for_block("__syncthreads", {file, line});
}

#undef CALLED

template <class T>
T __ldg(const T* address) {
  return *address;
}

inline cudaError_t cudaGetLastError() { return std::exchange(cuda::last_error, cudaSuccess); }
inline const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "invalid configuration argument";
}
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel kernel, cudaFuncAttribute, int bytes) {
  if (bytes < 0 || static_cast<std::size_t>(bytes) > cuda::kMostAskedBytes)
    return cuda::last_error = cudaErrorInvalidConfiguration;
  cuda::asked_shared_bytes[reinterpret_cast<const void*>(kernel)] = static_cast<std::size_t>(bytes);
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
// Of a device without thread-block clusters.
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount: *value = cuda::multiprocessors; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 8; break;
    case cudaDevAttrComputeCapabilityMinor:
    case cudaDevAttrClusterLaunch: *value = 0; break;
  }
  return cudaSuccess;
}

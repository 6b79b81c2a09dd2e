// The threads of a block as fibers: each runs until it must wait for others, and who waits for nobody that will come is
// told so. Blocks run one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace lanes {

constexpr unsigned kWarpSize = 32;
constexpr unsigned kMostThreads = 1024;  // of a block

struct Index {
  unsigned x, y, z;
};

// A line of a kernel's source.
struct Place {
  const char* file;
  int line;
};

// In which order warps, the threads of a warp, and blocks get their turn. A kernel whose result depends on it has a
// race. Two orders show most races, not all: shuffles, which order no memory on a GPU, do so here.
enum class Order { ascending, descending };

inline Order order = Order::ascending;

// Of the thread that runs.
inline Index thread_index;
inline Index block_index;

// Runs `body` once for every thread of every block of a grid. `before_block` prepares what a block's threads share.
void run_grid(Index grid, Index block, const std::function<void()>& before_block, const std::function<void()>& body);

// Waits for every lane that `mask` names to come to the same `what` at the same place with the same mask; the value
// that lane `source` of the warp brought.
std::uint64_t exchange(const char* what, Place place, unsigned mask, unsigned source, std::uint64_t value);

// The same; one bit a lane, set where the value that it brought is not 0.
unsigned ballot(const char* what, Place place, unsigned mask, bool value);

// Waits for every thread of the block. As for a warp, one that has ended does not come.
void wait_for_block(const char* what, Place place);

// Of the thread that runs, in its warp.
unsigned lane_of_warp();

// Ends the process with one line on what went wrong and one on where.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Called before the process ends for a fault; for the driver to say which launch it was.
inline void (*on_fault)() = nullptr;

}  // namespace lanes

#include "lanes.h"

#include <dlfcn.h>
#include <sanitizer/common_interface_defs.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace lanes {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;
constexpr std::size_t kGuardBytes = 64 * 1024;  // at its low end, where it must not grow to
constexpr unsigned kBallot = ~0u;               // a source that is no lane
constexpr unsigned kNobody = ~0u;

enum class State { fresh, runnable, waiting, ended };

struct Fiber {
  jmp_buf here;  // where it goes on
  char* stack;
  void* fake_stack;  // ASan's
};

struct Lane {
  Fiber* fiber;
  unsigned number;  // in the block
  Index thread;
  State state;
  // What it waits for.
  const char* what;
  Place place;
  bool for_block;
  unsigned mask;
  unsigned source;
  std::uint64_t value;   // that it brings
  std::uint64_t result;  // that it gets
};

std::vector<Fiber> fibers(kMostThreads);
std::vector<Lane> all(kMostThreads);
unsigned threads;  // of the block that runs
Lane* current;
const std::function<void()>* body_of_all;

jmp_buf scheduler;
void* scheduler_fake_stack;
const void* scheduler_stack;
std::size_t scheduler_stack_bytes;

// A fiber begins by setcontext and goes on by longjmp, since swapcontext asks the operating system for the signal mask
// each time. It must be libc's own: ASan's takes every jump for an exception that unwinds the stack.
using Jump = void (*)(jmp_buf, int);
const auto jump = reinterpret_cast<Jump>(dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "_longjmp"));

void become(Lane& lane) {
  current = &lane;
  thread_index = lane.thread;
}

// The lane of the same warp whose turn comes next.
Lane* neighbour() {
  const unsigned next = order == Order::ascending ? current->number + 1 : current->number - 1;
  return next < threads && next / kWarpSize == current->number / kWarpSize ? &all[next] : nullptr;
}

// Straight to the neighbour where it can go on, which saves a jump; else to the scheduler.
void give_turn_back() {
  Lane* const next = neighbour();
  const bool straight = next != nullptr && next->fiber->stack != nullptr &&
                        (next->state == State::fresh || next->state == State::runnable);
  __sanitizer_start_switch_fiber(&current->fiber->fake_stack, straight ? next->fiber->stack : scheduler_stack,
                                 straight ? kStackBytes : scheduler_stack_bytes);
  if (_setjmp(current->fiber->here) == 0) {
    if (!straight) jump(scheduler, 1);
    become(*next);
    jump(next->fiber->here, 1);
  }
  __sanitizer_finish_switch_fiber(current->fiber->fake_stack, nullptr, nullptr);
}

// A fiber is one lane after the other. One that has ended hands it to a neighbour that has not run yet.
void live() {
  __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_bytes);
  for (;;) {
    (*body_of_all)();
    current->state = State::ended;
    Lane* const next = neighbour();
    if (next != nullptr && next->state == State::fresh) {
      std::swap(next->fiber, current->fiber);
      become(*next);
    } else {
      give_turn_back();
    }
  }
}

void begin(Fiber& fiber) {
  void* stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED || mprotect(stack, kGuardBytes, PROT_NONE) != 0) fail("no memory for a thread's stack");
  fiber.stack = static_cast<char*>(stack);
  static ucontext_t context;  // on the stack its redzones would stay: this function never returns
  getcontext(&context);
  context.uc_stack.ss_sp = fiber.stack;
  context.uc_stack.ss_size = kStackBytes;
  makecontext(&context, live, 0);
  __sanitizer_start_switch_fiber(&scheduler_fake_stack, fiber.stack, kStackBytes);
  setcontext(&context);
}

void give_turn_to(Lane& lane) {
  become(lane);
  if (_setjmp(scheduler) == 0) {
    if (lane.fiber->stack == nullptr) begin(*lane.fiber);
    __sanitizer_start_switch_fiber(&scheduler_fake_stack, lane.fiber->stack, kStackBytes);
    jump(lane.fiber->here, 1);
  }
  __sanitizer_finish_switch_fiber(scheduler_fake_stack, nullptr, nullptr);
}

void start_threads(Index block) {
  threads = block.x * block.y * block.z;
  for (unsigned number = 0; number < threads; ++number) {
    Lane& lane = all[number];
    lane.fiber = &fibers[number];
    lane.number = number;
    lane.thread = {number % block.x, number / block.x % block.y, number / block.x / block.y};
    lane.state = State::fresh;
  }
}

unsigned in_order(unsigned position, unsigned count) {
  return order == Order::ascending ? position : count - 1 - position;
}

bool are_same(const char* some, const char* others) { return some == others || std::strcmp(some, others) == 0; }

bool meets(const Lane& waiting, const Lane& other) {
  return other.state == State::waiting && other.place.line == waiting.place.line && other.mask == waiting.mask &&
         are_same(other.what, waiting.what) && are_same(other.place.file, waiting.place.file);
}

// The number of the first thread that `waiting` waits for and that has not come.
unsigned missing(const Lane& waiting) {
  const unsigned first = waiting.for_block ? 0 : waiting.number / kWarpSize * kWarpSize;
  const unsigned count = waiting.for_block ? threads : kWarpSize;
  for (unsigned i = 0; i < count; ++i) {
    const bool is_named = waiting.for_block || (waiting.mask >> i & 1) != 0;
    if (is_named && (first + i >= threads || !meets(waiting, all[first + i]))) return first + i;
  }
  return kNobody;
}

void release(const Lane& waiting) {
  const unsigned first = waiting.number / kWarpSize * kWarpSize;
  const unsigned mask = waiting.mask;
  unsigned bits = 0;
  for (unsigned i = 0; i < kWarpSize; ++i)
    if ((mask >> i & 1) != 0 && all[first + i].value != 0) bits |= 1u << i;
  for (unsigned i = 0; i < kWarpSize; ++i) {
    if ((mask >> i & 1) == 0) continue;
    Lane& lane = all[first + i];
    lane.result = lane.source == kBallot ? bits : all[first + lane.source].value;
    lane.state = State::runnable;
  }
}

// Gives every lane of a warp a turn, and lets those go on that have met; whether there was any.
bool advance_warp(unsigned first) {
  const unsigned count = threads - first < kWarpSize ? threads - first : kWarpSize;
  bool any = false;
  for (unsigned i = 0; i < count; ++i) {
    Lane& lane = all[first + in_order(i, count)];
    if (lane.state != State::fresh && lane.state != State::runnable) continue;
    give_turn_to(lane);
    any = true;
  }
  for (unsigned i = 0; any && i < count; ++i) {
    const Lane& lane = all[first + i];
    if (lane.state == State::waiting && !lane.for_block && missing(lane) == kNobody) release(lane);
  }
  return any;
}

std::string what_it_waits_in(const Lane& lane) {
  char mask[32];
  std::snprintf(mask, sizeof mask, ", mask 0x%08x", lane.mask);
  return std::string("waits in ") + lane.what + " (" + lane.place.file + ":" + std::to_string(lane.place.line) +
         (lane.for_block ? "" : mask) + ")";
}

[[noreturn]] void fail_for(const Lane& waiting, unsigned number) {
  thread_index = waiting.thread;
  std::string why = "the block does not have";
  if (number < threads) why = all[number].state == State::ended ? "has ended" : what_it_waits_in(all[number]);
  fail("thread %u %s for thread %u, which %s", waiting.number, what_it_waits_in(waiting).c_str(), number, why.c_str());
}

// Nobody can go on: all have ended, or all have met, or some wait for what will not come.
bool release_block() {
  const Lane* waiting = nullptr;
  for (unsigned i = 0; i < threads && waiting == nullptr; ++i)
    if (all[i].state == State::waiting) waiting = &all[i];
  if (waiting == nullptr) return false;
  const unsigned number = missing(*waiting);
  if (number != kNobody) fail_for(*waiting, number);
  for (unsigned i = 0; i < threads; ++i) all[i].state = State::runnable;
  return true;
}

void run_block(Index block) {
  start_threads(block);
  const unsigned warps = (threads + kWarpSize - 1) / kWarpSize;
  do {
    // A warp runs as far as it can before the next one does: it overtakes whom it need not wait for.
    for (unsigned i = 0; i < warps; ++i)
      while (advance_warp(in_order(i, warps) * kWarpSize)) {
      }
  } while (release_block());
}

std::uint64_t wait(const char* what, Place place, bool for_block, unsigned mask, unsigned source, std::uint64_t value) {
  Lane& lane = *current;
  lane.what = what;
  lane.place = place;
  lane.for_block = for_block;
  lane.mask = mask;
  lane.source = source;
  lane.value = value;
  lane.state = State::waiting;
  give_turn_back();
  return lane.result;
}

void check_mask(const char* what, Place place, unsigned mask) {
  if ((mask >> lane_of_warp() & 1) == 0)
    fail("lane %u calls %s (%s:%d) with mask 0x%08x, which leaves it out", lane_of_warp(), what, place.file, place.line,
         mask);
}

}  // namespace

unsigned lane_of_warp() { return current->number % kWarpSize; }

std::uint64_t exchange(const char* what, Place place, unsigned mask, unsigned source, std::uint64_t value) {
  check_mask(what, place, mask);
  if ((mask >> source & 1) == 0)
    fail("lane %u asks lane %u in %s (%s:%d), which mask 0x%08x leaves out", lane_of_warp(), source, what, place.file,
         place.line, mask);
  return wait(what, place, false, mask, source, value);
}

unsigned ballot(const char* what, Place place, unsigned mask, bool value) {
  check_mask(what, place, mask);
  return static_cast<unsigned>(wait(what, place, false, mask, kBallot, value));
}

void wait_for_block(const char* what, Place place) { wait(what, place, true, ~0u, 0, 0); }

void run_grid(Index grid, Index block, const std::function<void()>& before_block, const std::function<void()>& body) {
  body_of_all = &body;
  const unsigned blocks = grid.x * grid.y * grid.z;
  for (unsigned i = 0; i < blocks; ++i) {
    const unsigned number = in_order(i, blocks);
    block_index = {number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y};
    before_block();
    run_block(block);
  }
  current = nullptr;
}

void fail(const char* format, ...) {
  std::fputs("error: ", stderr);
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputs("\n", stderr);
  if (on_fault != nullptr) on_fault();
  std::_Exit(1);
}

}  // namespace lanes

// Runs kernels on request: reads a request and its operands from stdin, launches, and writes an error's words or the
// operands as they are then to stdout, until stdin ends. It judges nothing; a fault ends it with words on stderr.
#include <sanitizer/asan_interface.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "op.h"
#include "tokens.h"

namespace {

struct Request {  // emulated.py packs it
  char kernel[64];
  std::int64_t m, k, n;
  std::int64_t a_stride, x_stride, y_stride, by_columns;  // as in Args or TokenArgs
  std::int64_t a_first, x_first, y_first;  // elements past a multiple of the alignment that the kernel declares
  std::int64_t has_zero;                   // whether zero points come behind the scales
  std::int64_t descending;
  std::int64_t multiprocessors;
  std::int64_t limit_s;
};
Request request;
sgemv::Args launched;  // what it asked for
sgemv::TokenArgs launched_for_tokens;

template <class Spec>
std::map<std::string, const Spec*>& kernels() {
  static std::map<std::string, const Spec*> by_name;
  return by_name;
}

template <class Spec>
const Spec* find_among(const char* name) {
  const auto found = kernels<Spec>().find(name);
  return found == kernels<Spec>().end() ? nullptr : found->second;
}

template <class Spec>
void add(const Spec& spec) {
  if (!kernels<Spec>().emplace(spec.name, &spec).second) lanes::fail("two kernels are called %s", spec.name);
}

long long as_long_long(std::int64_t value) { return value; }  // for printf

void say_where() {
  const lanes::Index thread = lanes::thread_index, block = lanes::block_index;
  if (__asan_report_present()) std::fprintf(stderr, "error: %s\n", memory::where(__asan_get_report_address()).c_str());
  std::fprintf(stderr, "in thread (%u, %u, %u) of block (%u, %u, %u) of %s, m=%lld, k=%lld", thread.x, thread.y,
               thread.z, block.x, block.y, block.z, request.kernel, as_long_long(request.m), as_long_long(request.k));
  if (sgemv::find_for_tokens(request.kernel) != nullptr) std::fprintf(stderr, ", n=%lld", as_long_long(request.n));
  std::fputs("\n", stderr);
}

// All NaN: what a kernel has not written there itself, it must not read.
class EmulatedScratch final : public sgemv::Scratch {
 public:
  float* floats(std::int64_t count) override {
    buffers_.push_back(std::make_unique<memory::Buffer>("scratch", count * sizeof(float), 16));
    return buffers_.back()->as<float>();
  }

 private:
  std::vector<std::unique_ptr<memory::Buffer>> buffers_;
};

template <class T>
bool read(T* values, std::int64_t count) {
  return std::fread(values, sizeof(T), count, stdin) == static_cast<std::size_t>(count);
}

template <class T>
void write(const T* values, std::int64_t count) {
  std::fwrite(values, sizeof(T), count, stdout);
}

// Elements from the first of `count` runs of `run` neighbours to the last: what lies between them comes along.
std::int64_t span(std::int64_t count, std::int64_t stride, std::int64_t run) {
  return count == 0 || run == 0 ? 0 : (count - 1) * stride + run;
}

struct Operand {
  const char* label;
  std::int64_t bytes;
  std::int64_t past;  // bytes past a multiple of 256
};
using Addresses = std::vector<void*>;

const char* launch(const sgemv::Spec& spec, const Addresses& operands) {
  EmulatedScratch scratch;
  sgemv::Args& args = launched;
  args.a = static_cast<const float*>(operands[0]);
  args.x = static_cast<const float*>(operands[1]);
  args.y = static_cast<float*>(operands[2]);
  args.m = request.m;
  args.k = request.k;
  args.a_stride = request.a_stride;
  args.x_stride = request.x_stride;
  args.y_stride = request.y_stride;
  args.by_columns = request.by_columns != 0;
  args.scratch = &scratch;
  return spec.launch(args);
}

const char* launch(const sgemv::TokenSpec& spec, const Addresses& operands) {
  EmulatedScratch scratch;
  sgemv::TokenArgs& args = launched_for_tokens;
  args.a = operands[0];
  args.x = operands[1];
  args.y = operands[2];
  args.scale = operands.size() > 3 ? operands[3] : nullptr;
  args.zero = operands.size() > 4 ? static_cast<const signed char*>(operands[4]) : nullptr;
  args.m = request.m;
  args.k = request.k;
  args.n = request.n;
  args.a_stride = request.a_stride;
  args.x_stride = request.x_stride;
  args.y_stride = request.y_stride;
  args.stream = nullptr;
  args.scratch = &scratch;
  return spec.launch(args);
}

std::int64_t past(std::int64_t alignment, std::int64_t first, std::int64_t bytes) {
  return (alignment < 16 ? 16 : alignment) + first * bytes;
}

std::vector<Operand> operands_of(const sgemv::Spec& spec) {
  constexpr std::int64_t bytes = sizeof(float);
  const auto start = [&](std::int64_t first) { return past(spec.alignment_bytes, first, bytes); };
  const std::int64_t count = request.by_columns != 0 ? span(request.k, request.a_stride, request.m)
                                                     : span(request.m, request.a_stride, request.k);
  return {{"A", count * bytes, start(request.a_first)},
          {"x", span(request.k, request.x_stride, 1) * bytes, start(request.x_first)},
          {"y", span(request.m, request.y_stride, 1) * bytes, start(request.y_first)}};
}

std::vector<Operand> operands_of(const sgemv::TokenSpec& spec) {
  const std::int64_t of_a = spec.dtype == sgemv::INT8 ? 1 : 2;
  const auto start = [&](std::int64_t first, std::int64_t bytes) { return past(spec.alignment_bytes, first, bytes); };
  std::vector<Operand> operands = {
      {"A", span(request.m, request.a_stride, request.k) * of_a, start(request.a_first, of_a)},
      {"x", span(request.n, request.x_stride, request.k) * 2, start(request.x_first, 2)},
      {"y", span(request.n, request.y_stride, request.m) * 2, start(request.y_first, 2)}};
  if (spec.dtype == sgemv::INT8) operands.push_back({"scale", request.m * 2, start(1, 2)});
  if (request.has_zero != 0) operands.push_back({"zero", request.m, start(1, 1)});
  return operands;
}

template <class Spec>
void serve(const Spec& spec) {
  const std::vector<Operand> operands = operands_of(spec);
  std::vector<std::unique_ptr<memory::Buffer>> buffers;
  Addresses addresses;
  for (const Operand& operand : operands) {
    buffers.push_back(std::make_unique<memory::Buffer>(operand.label, operand.bytes, operand.past));
    addresses.push_back(buffers.back()->template as<void>());
    if (!read(buffers.back()->template as<char>(), operand.bytes)) lanes::fail("the operands end early");
  }
  cuda::multiprocessors = static_cast<int>(request.multiprocessors);
  lanes::order = request.descending != 0 ? lanes::Order::descending : lanes::Order::ascending;
  std::signal(SIGALRM, [](int) { lanes::fail("the launch took longer than %lld s", as_long_long(request.limit_s)); });
  alarm(static_cast<unsigned>(request.limit_s));
  const char* const error = launch(spec, addresses);
  alarm(0);
  const std::string words = error == nullptr ? "" : error;
  const auto length = static_cast<std::int64_t>(words.size());
  write(&length, 1);
  write(words.data(), length);
  for (std::size_t i = 0; i < operands.size(); ++i) write(static_cast<const char*>(addresses[i]), operands[i].bytes);
  std::fflush(stdout);
}

}  // namespace

namespace sgemv {

Registration::Registration(const Spec& spec, BoxedFunction, const char*, std::uint32_t) { add(spec); }
TokenRegistration::TokenRegistration(const TokenSpec& spec, BoxedFunction, const char*, std::uint32_t) { add(spec); }

const Spec* find(const char* name) { return find_among<Spec>(name); }
const TokenSpec* find_for_tokens(const char* name) { return find_among<TokenSpec>(name); }

const Spec& pick(const char* name, const Args& args) {
  const Spec* const spec = find(name);
  const char* const why = spec == nullptr ? "is no kernel here" : misfit(*spec, args);
  if (why != nullptr) lanes::fail("picks %s, which %s", name, why);
  return *spec;
}

const TokenSpec& pick(const TokenSpec& chooser, const char* stem, const TokenArgs& args) {
  const std::string name = std::string(chooser.name) + "_" + stem;
  const TokenSpec* const spec = find_for_tokens(name.c_str());
  const char* const why = spec == nullptr ? "is no kernel here" : misfit(*spec, chooser.dtype, args);
  if (why != nullptr) lanes::fail("picks %s, which %s", name.c_str(), why);
  return *spec;
}

void call(const Spec&, std::uint64_t*) { lanes::fail("torch's side of a kernel is not here"); }
void call(const TokenSpec&, std::uint64_t*) { lanes::fail("torch's side of a kernel is not here"); }

}  // namespace sgemv

extern "C" void __ubsan_on_report() { say_where(); }

int main() {
  lanes::on_fault = say_where;
  __sanitizer_set_death_callback(say_where);
  while (read(&request, 1)) {
    request.kernel[sizeof request.kernel - 1] = '\0';
    if (const auto* const spec = sgemv::find(request.kernel))
      serve(*spec);
    else if (const auto* const for_tokens = sgemv::find_for_tokens(request.kernel))
      serve(*for_tokens);
    else
      lanes::fail("no kernel is called %s", request.kernel);
  }
}

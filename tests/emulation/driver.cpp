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

namespace {

struct Request {  // emulated.py packs it
  char kernel[64];
  std::int64_t m, k;
  std::int64_t a_stride, x_stride, y_stride, by_columns;  // as in Args
  std::int64_t a_first, x_first, y_first;  // elements past a multiple of the alignment that the kernel declares
  std::int64_t descending;
  std::int64_t multiprocessors;
  std::int64_t limit_s;
};
Request request;
sgemv::Args launched;  // what it asked for

std::map<std::string, const sgemv::Spec*>& kernels() {
  static std::map<std::string, const sgemv::Spec*> by_name;
  return by_name;
}

long long as_long_long(std::int64_t value) { return value; }  // for printf

void say_where() {
  const lanes::Index thread = lanes::thread_index, block = lanes::block_index;
  if (__asan_report_present()) std::fprintf(stderr, "error: %s\n", memory::where(__asan_get_report_address()).c_str());
  std::fprintf(stderr, "in thread (%u, %u, %u) of block (%u, %u, %u) of %s, m=%lld, k=%lld\n", thread.x, thread.y,
               thread.z, block.x, block.y, block.z, request.kernel, as_long_long(request.m), as_long_long(request.k));
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

const char* launch(const sgemv::Spec& spec, float* const (&operands)[3]) {
  EmulatedScratch scratch;
  sgemv::Args& args = launched;
  args.a = operands[0];
  args.x = operands[1];
  args.y = operands[2];
  args.m = request.m;
  args.k = request.k;
  args.a_stride = request.a_stride;
  args.x_stride = request.x_stride;
  args.y_stride = request.y_stride;
  args.by_columns = request.by_columns != 0;
  args.scratch = &scratch;
  return spec.launch(args);
}

void serve(const sgemv::Spec& spec) {
  const std::int64_t alignment = spec.alignment_bytes < 16 ? 16 : spec.alignment_bytes;
  const bool by_columns = request.by_columns != 0;
  const std::int64_t counts[] = {by_columns ? span(request.k, request.a_stride, request.m)
                                            : span(request.m, request.a_stride, request.k),
                                 span(request.k, request.x_stride, 1), span(request.m, request.y_stride, 1)};
  const auto past = [=](std::int64_t first) { return alignment + first * sizeof(float); };
  memory::Buffer a("A", counts[0] * sizeof(float), past(request.a_first));
  memory::Buffer x("x", counts[1] * sizeof(float), past(request.x_first));
  memory::Buffer y("y", counts[2] * sizeof(float), past(request.y_first));
  float* const operands[] = {a.as<float>(), x.as<float>(), y.as<float>()};
  for (int i = 0; i < 3; ++i)
    if (!read(operands[i], counts[i])) lanes::fail("the operands end early");
  cuda::multiprocessors = static_cast<int>(request.multiprocessors);
  lanes::order = request.descending != 0 ? lanes::Order::descending : lanes::Order::ascending;
  std::signal(SIGALRM, [](int) { lanes::fail("the launch took longer than %lld s", as_long_long(request.limit_s)); });
  alarm(static_cast<unsigned>(request.limit_s));
  const char* const error = launch(spec, operands);
  alarm(0);
  const std::string words = error == nullptr ? "" : error;
  const auto length = static_cast<std::int64_t>(words.size());
  write(&length, 1);
  write(words.data(), length);
  for (int i = 0; i < 3; ++i) write(operands[i], counts[i]);
  std::fflush(stdout);
}

}  // namespace

namespace sgemv {

Registration::Registration(const Spec& spec, BoxedFunction, const char*, std::uint32_t) {
  if (!kernels().emplace(spec.name, &spec).second) lanes::fail("two kernels are called %s", spec.name);
}

const Spec* find(const char* name) {
  const auto found = kernels().find(name);
  return found == kernels().end() ? nullptr : found->second;
}

const Spec& pick(const char* name, const Args& args) {
  const Spec* const spec = find(name);
  const char* const why = spec == nullptr ? "is no kernel here" : misfit(*spec, args);
  if (why != nullptr) lanes::fail("picks %s, which %s", name, why);
  return *spec;
}

void call(const Spec&, std::uint64_t*) { lanes::fail("torch's side of a kernel is not here"); }

}  // namespace sgemv

extern "C" void __ubsan_on_report() { say_where(); }

int main() {
  lanes::on_fault = say_where;
  __sanitizer_set_death_callback(say_where);
  while (read(&request, 1)) {
    request.kernel[sizeof request.kernel - 1] = '\0';
    const auto found = kernels().find(request.kernel);
    if (found == kernels().end()) lanes::fail("no kernel is called %s", request.kernel);
    serve(*found->second);
  }
}

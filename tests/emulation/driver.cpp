// Runs kernels on request: reads a request and its operands from stdin, launches, and writes an error's words or the
// operands as they are then to stdout, until stdin ends. It judges nothing; a fault ends it with words on stderr.
#include <sanitizer/asan_interface.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <map>
#include <string>

#include "op.h"

namespace {

struct Request {  // emulated.py packs it
  char kernel[64];
  std::int64_t m, k;
  std::int64_t a_first, x_first, y_first;  // elements past a multiple of the alignment that the kernel declares
  std::int64_t descending;
  std::int64_t limit_s;
};
Request request;

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

template <class T>
bool read(T* values, std::int64_t count) {
  return std::fread(values, sizeof(T), count, stdin) == static_cast<std::size_t>(count);
}

template <class T>
void write(const T* values, std::int64_t count) {
  std::fwrite(values, sizeof(T), count, stdout);
}

void serve(const sgemv::Spec& spec) {
  const std::int64_t alignment = spec.alignment_bytes < 16 ? 16 : spec.alignment_bytes;
  // A is packed. Once a kernel takes a row stride, it comes with the request and counts here, NaN between the rows.
  const std::int64_t counts[] = {request.m * request.k, request.k, request.m};
  const auto past = [=](std::int64_t first) { return alignment + first * sizeof(float); };
  memory::Buffer a("A", counts[0] * sizeof(float), past(request.a_first));
  memory::Buffer x("x", counts[1] * sizeof(float), past(request.x_first));
  memory::Buffer y("y", counts[2] * sizeof(float), past(request.y_first));
  float* operands[] = {a.as<float>(), x.as<float>(), y.as<float>()};
  for (int i = 0; i < 3; ++i)
    if (!read(operands[i], counts[i])) lanes::fail("the operands end early");
  lanes::order = request.descending != 0 ? lanes::Order::descending : lanes::Order::ascending;
  std::signal(SIGALRM, [](int) { lanes::fail("the launch took longer than %lld s", as_long_long(request.limit_s)); });
  alarm(static_cast<unsigned>(request.limit_s));
  const char* const error = spec.launch({operands[0], operands[1], operands[2], request.m, request.k, nullptr});
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

#include "memory.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>

#include "lanes.h"

namespace memory {
namespace {

struct Extent {
  std::string name;
  std::size_t bytes;
};

std::map<const char*, Extent>& extents() {
  static auto& by_address = *new std::map<const char*, Extent>;  // never destroyed: buffers live until the very end
  return by_address;
}

}  // namespace

Buffer::Buffer(std::string name, std::size_t bytes, std::size_t past) : bytes_(bytes) {
  if (posix_memalign(&whole_, 256, past + bytes) != 0) lanes::fail("no memory for %zu bytes", bytes);
  std::memset(whole_, 0xff, past + bytes);
  ASAN_POISON_MEMORY_REGION(whole_, past);  // the last past % 8 bytes stay open: ASan's grain
  first_ = static_cast<char*>(whole_) + past;
  extents()[as<char>()] = {std::move(name), bytes};
}

Buffer::~Buffer() {
  extents().erase(as<char>());
  std::free(whole_);
}

std::string where(const void* address) {
  const char* const byte = static_cast<const char*>(address);
  std::string words = "no operand is near";
  std::ptrdiff_t nearest = 4096;
  for (const auto& [first, extent] : extents()) {
    const std::ptrdiff_t before = first - byte;
    const std::ptrdiff_t behind = byte - (first + extent.bytes);
    const std::ptrdiff_t distance = std::max(before, behind);
    if (distance < 0 || distance >= nearest) continue;
    nearest = distance;
    words = std::to_string(distance) + " bytes " + (before > 0 ? "before " : "behind ") + extent.name + ", which has " +
            std::to_string(extent.bytes) + " bytes";
  }
  return words;
}

}  // namespace memory

// Memory that ends exactly where it should, so that AddressSanitizer sees the first byte behind it.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

namespace memory {

// `bytes` bytes that start `past` bytes past a multiple of 256, for 0 < past < 256, all NaN as floats. No kernel may
// rely on more alignment than it was promised.
class Buffer {
 public:
  Buffer(std::string name, std::size_t bytes, std::size_t past);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  template <class T>
  T* as() const {
    return static_cast<T*>(first_);
  }
  void poison() { std::memset(first_, 0xff, bytes_); }

 private:
  std::string name_;
  void* whole_;
  void* first_;
  std::size_t bytes_;
};

// Where `address` lies, by the nearest buffer: "4 bytes behind A, which has 64 bytes".
std::string where(const void* address);

}  // namespace memory

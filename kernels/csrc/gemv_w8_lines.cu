// 1 to 8 tokens by tensor cores, int8, lines of A through shared memory.
// A name has the warps that share 16 rows, and the lines of each row that are on their way to a warp.
#include "lines.cuh"

GEMV_VARIANT(gemv_w8_lines_4x2, INT8, 8, 1, "tensor cores: 4 warps share 16 rows, 2 lines of each in flight") {
  sgemv::start_lines<sgemv::Int8, 4, 2>(args);
}
GEMV_VARIANT(gemv_w8_lines_8x2, INT8, 8, 1, "tensor cores: 8 warps share 16 rows, 2 lines of each in flight") {
  sgemv::start_lines<sgemv::Int8, 8, 2>(args);
}

// 1 to 8 tokens by tensor cores, int8, whole cache lines through shared memory.
// A name has the rows of a block, the warps that share their columns, and the lines of a row that are on their way to a
// warp.
#include "lines.cuh"

GEMV_VARIANT(gemv_w8_lines_32x4x2, INT8, 8, 1, "tensor cores: 4 warps share 32 rows, 2 lines of each in flight") {
  sgemv::start_lines<sgemv::Int8, 2, 4, 2>(args);
}

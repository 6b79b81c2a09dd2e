// 1 to 8 tokens by tensor cores, bfloat16, lines of A through shared memory.
// A name has the warps that share 16 rows, and the lines of each row that are on their way to a warp.
#include "lines.cuh"

GEMV_VARIANT(bgemv_lines_4x2, BFLOAT16, 8, 2, "tensor cores: 4 warps share 16 rows, 2 lines of each in flight") {
  sgemv::start_lines<sgemv::BFloat16, 4, 2>(args);
}
GEMV_VARIANT(bgemv_lines_8x2, BFLOAT16, 8, 2, "tensor cores: 8 warps share 16 rows, 2 lines of each in flight") {
  sgemv::start_lines<sgemv::BFloat16, 8, 2>(args);
}

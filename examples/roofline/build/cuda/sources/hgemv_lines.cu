// 1 to 8 tokens by tensor cores, float16, whole cache lines through shared memory.
// A name has the rows of a block, the warps that share their columns, and the lines of a row that are on their way to a
// warp.
#include "lines.cuh"

GEMV_VARIANT(hgemv_lines_16x1x3, FLOAT16, 8, 2, "tensor cores: a warp has 16 rows, 3 lines of each in flight") {
  sgemv::start_lines<sgemv::Float16, 1, 1, 3>(args);
}
GEMV_VARIANT(hgemv_lines_16x2x3, FLOAT16, 8, 2, "tensor cores: 2 warps share 16 rows, 3 lines of each in flight") {
  sgemv::start_lines<sgemv::Float16, 1, 2, 3>(args);
}
GEMV_VARIANT(hgemv_lines_16x4x3, FLOAT16, 8, 2, "tensor cores: 4 warps share 16 rows, 3 lines of each in flight") {
  sgemv::start_lines<sgemv::Float16, 1, 4, 3>(args);
}
GEMV_VARIANT(hgemv_lines_16x8x2, FLOAT16, 8, 2, "tensor cores: 8 warps share 16 rows, 2 lines of each in flight") {
  sgemv::start_lines<sgemv::Float16, 1, 8, 2>(args);
}
GEMV_VARIANT(hgemv_lines_16x16x2, FLOAT16, 8, 2, "tensor cores: 16 warps share 16 rows, 2 lines of each in flight") {
  sgemv::start_lines<sgemv::Float16, 1, 16, 2>(args);
}

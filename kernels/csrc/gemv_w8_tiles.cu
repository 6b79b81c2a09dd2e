// 1 to 8 tokens by tensor cores, int8 weights, float16 activations, a scale a row.
// A name has the rows of a block and the warps that share their columns.
#include "tiles.cuh"

GEMV_VARIANT(gemv_w8_tiles_8x8, INT8, 8, 1, "tensor cores: 8 warps share 8 rows") {
  sgemv::start_tiles<sgemv::Int8, 1, 8>(args);
}
GEMV_VARIANT(gemv_w8_tiles_8x16, INT8, 8, 1, "tensor cores: 16 warps share 8 rows") {
  sgemv::start_tiles<sgemv::Int8, 1, 16>(args);
}
GEMV_VARIANT(gemv_w8_tiles_16x1, INT8, 8, 1, "tensor cores: a warp has 16 rows") {
  sgemv::start_tiles<sgemv::Int8, 2, 1>(args);
}
GEMV_VARIANT(gemv_w8_tiles_16x4, INT8, 8, 1, "tensor cores: 4 warps share 16 rows") {
  sgemv::start_tiles<sgemv::Int8, 2, 4>(args);
}
GEMV_VARIANT(gemv_w8_tiles_16x8, INT8, 8, 1, "tensor cores: 8 warps share 16 rows") {
  sgemv::start_tiles<sgemv::Int8, 2, 8>(args);
}
GEMV_VARIANT(gemv_w8_tiles_32x8, INT8, 8, 1, "tensor cores: 8 warps share 32 rows") {
  sgemv::start_tiles<sgemv::Int8, 4, 8>(args);
}

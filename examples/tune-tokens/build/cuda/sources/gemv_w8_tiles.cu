// 1 to 8 tokens by tensor cores, int8 weights, float16 activations, a scale a row.
// A name has the rows of a block, the warps that share their columns, and the loads of a row that a lane has in flight.
#include "tiles.cuh"

GEMV_VARIANT(gemv_w8_tiles_16x1x2, INT8, 8, 1, "tensor cores: a warp has 16 rows, 4 loads in flight") {
  sgemv::start_tiles<sgemv::Int8, 1, 2, 32>(args);
}
GEMV_VARIANT(gemv_w8_tiles_16x4x2, INT8, 8, 1, "tensor cores: 4 warps share 16 rows, 4 loads in flight") {
  sgemv::start_tiles<sgemv::Int8, 4, 2, 7>(args);
}
GEMV_VARIANT(gemv_w8_tiles_16x8x2, INT8, 8, 1, "tensor cores: 8 warps share 16 rows, 4 loads in flight") {
  sgemv::start_tiles<sgemv::Int8, 8, 2, 3>(args);
}
GEMV_VARIANT(gemv_w8_tiles_16x8x3, INT8, 8, 1, "tensor cores: 8 warps share 16 rows, 6 loads in flight") {
  sgemv::start_tiles<sgemv::Int8, 8, 3, 2>(args);
}
GEMV_VARIANT(gemv_w8_tiles_16x16x2, INT8, 8, 1, "tensor cores: 16 warps share 16 rows, 4 loads in flight") {
  sgemv::start_tiles<sgemv::Int8, 16, 2, 2>(args);
}

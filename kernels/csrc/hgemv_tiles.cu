// 1 to 8 tokens by tensor cores, float16.
// A name has the rows of a block, the warps that share their columns, and the loads of a row that a lane has in flight.
#include "tiles.cuh"

GEMV_VARIANT(hgemv_tiles_16x1x2, FLOAT16, 8, 2, "tensor cores: a warp has 16 rows, 4 loads in flight") {
  sgemv::start_tiles<sgemv::Float16, 1, 2>(args);
}
GEMV_VARIANT(hgemv_tiles_16x4x2, FLOAT16, 8, 2, "tensor cores: 4 warps share 16 rows, 4 loads in flight") {
  sgemv::start_tiles<sgemv::Float16, 4, 2>(args);
}
GEMV_VARIANT(hgemv_tiles_16x8x2, FLOAT16, 8, 2, "tensor cores: 8 warps share 16 rows, 4 loads in flight") {
  sgemv::start_tiles<sgemv::Float16, 8, 2>(args);
}
GEMV_VARIANT(hgemv_tiles_16x16x2, FLOAT16, 8, 2, "tensor cores: 16 warps share 16 rows, 4 loads in flight") {
  sgemv::start_tiles<sgemv::Float16, 16, 2>(args);
}

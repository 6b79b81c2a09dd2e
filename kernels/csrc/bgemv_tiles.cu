// 1 to 8 tokens by tensor cores, bfloat16.
// A name has the rows of a block and the warps that share their columns.
#include "tiles.cuh"

GEMV_VARIANT(bgemv_tiles_8x8, BFLOAT16, 8, 2, "tensor cores: 8 warps share 8 rows") {
  sgemv::start_tiles<sgemv::BFloat16, 1, 8>(args);
}
GEMV_VARIANT(bgemv_tiles_8x16, BFLOAT16, 8, 2, "tensor cores: 16 warps share 8 rows") {
  sgemv::start_tiles<sgemv::BFloat16, 1, 16>(args);
}
GEMV_VARIANT(bgemv_tiles_16x1, BFLOAT16, 8, 2, "tensor cores: a warp has 16 rows") {
  sgemv::start_tiles<sgemv::BFloat16, 2, 1>(args);
}
GEMV_VARIANT(bgemv_tiles_16x4, BFLOAT16, 8, 2, "tensor cores: 4 warps share 16 rows") {
  sgemv::start_tiles<sgemv::BFloat16, 2, 4>(args);
}
GEMV_VARIANT(bgemv_tiles_16x8, BFLOAT16, 8, 2, "tensor cores: 8 warps share 16 rows") {
  sgemv::start_tiles<sgemv::BFloat16, 2, 8>(args);
}
GEMV_VARIANT(bgemv_tiles_32x8, BFLOAT16, 8, 2, "tensor cores: 8 warps share 32 rows") {
  sgemv::start_tiles<sgemv::BFloat16, 4, 8>(args);
}

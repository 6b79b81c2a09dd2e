// One token, bfloat16:
// lanes of a warp, or a block, share a row.
#include "rows.cuh"

GEMV_VARIANT(bgemv_groups_8, BFLOAT16, 1, 2, "8 lanes a row, 4 loads in flight") {
  sgemv::start_groups<sgemv::BFloat16, 8, 1, 4>(args);
}
GEMV_VARIANT(bgemv_groups_32, BFLOAT16, 1, 2, "a warp a row, 4 loads in flight") {
  sgemv::start_groups<sgemv::BFloat16, 32, 1, 4>(args);
}
GEMV_VARIANT(bgemv_groups_32x4, BFLOAT16, 1, 2, "a warp four rows, 1 load of each in flight") {
  sgemv::start_groups<sgemv::BFloat16, 32, 4, 1>(args);
}
GEMV_VARIANT(bgemv_blocks_64, BFLOAT16, 1, 2, "64 threads a row, 4 loads in flight") {
  sgemv::start_blocks<sgemv::BFloat16, 64, 1, 4>(args);
}
GEMV_VARIANT(bgemv_blocks_128, BFLOAT16, 1, 2, "128 threads a row, 4 loads in flight") {
  sgemv::start_blocks<sgemv::BFloat16, 128, 1, 4>(args);
}
GEMV_VARIANT(bgemv_blocks_256, BFLOAT16, 1, 2, "256 threads a row, 4 loads in flight") {
  sgemv::start_blocks<sgemv::BFloat16, 256, 1, 4>(args);
}
GEMV_VARIANT(bgemv_blocks_512, BFLOAT16, 1, 2, "512 threads a row, 4 loads in flight") {
  sgemv::start_blocks<sgemv::BFloat16, 512, 1, 4>(args);
}

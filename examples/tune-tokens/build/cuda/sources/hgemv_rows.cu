// One token, float16:
// lanes of a warp, or a block, share a row.
#include "rows.cuh"

GEMV_VARIANT(hgemv_groups_8, FLOAT16, 1, 2, "8 lanes a row, 4 loads in flight") {
  sgemv::start_groups<sgemv::Float16, 8, 1, 4>(args);
}
GEMV_VARIANT(hgemv_groups_32, FLOAT16, 1, 2, "a warp a row, 4 loads in flight") {
  sgemv::start_groups<sgemv::Float16, 32, 1, 4>(args);
}
GEMV_VARIANT(hgemv_groups_32x4, FLOAT16, 1, 2, "a warp four rows, 1 load of each in flight") {
  sgemv::start_groups<sgemv::Float16, 32, 4, 1>(args);
}
GEMV_VARIANT(hgemv_blocks_64, FLOAT16, 1, 2, "64 threads a row, 4 loads in flight") {
  sgemv::start_blocks<sgemv::Float16, 64, 1, 4>(args);
}
GEMV_VARIANT(hgemv_blocks_128, FLOAT16, 1, 2, "128 threads a row, 4 loads in flight") {
  sgemv::start_blocks<sgemv::Float16, 128, 1, 4>(args);
}
GEMV_VARIANT(hgemv_blocks_256, FLOAT16, 1, 2, "256 threads a row, 4 loads in flight") {
  sgemv::start_blocks<sgemv::Float16, 256, 1, 4>(args);
}
GEMV_VARIANT(hgemv_blocks_512, FLOAT16, 1, 2, "512 threads a row, 4 loads in flight") {
  sgemv::start_blocks<sgemv::Float16, 512, 1, 4>(args);
}

// One token, int8 weights, float16 activations, a scale a row:
// lanes of a warp, or a block, share two rows or four, which tensor cores multiply.
#include "rows.cuh"

GEMV_VARIANT(gemv_w8_groups_8, INT8, 1, 1, "8 lanes two rows, 4 loads in flight") {
  sgemv::start_groups<sgemv::Int8, 8, 2, 2>(args);
}
GEMV_VARIANT(gemv_w8_groups_32, INT8, 1, 1, "a warp two rows, 4 loads in flight") {
  sgemv::start_groups<sgemv::Int8, 32, 2, 2>(args);
}
GEMV_VARIANT(gemv_w8_groups_32x4, INT8, 1, 1, "a warp four rows, 4 loads in flight") {
  sgemv::start_groups<sgemv::Int8, 32, 4, 1>(args);
}
GEMV_VARIANT(gemv_w8_blocks_64, INT8, 1, 1, "64 threads two rows, 4 loads in flight") {
  sgemv::start_blocks<sgemv::Int8, 64, 2, 2>(args);
}
GEMV_VARIANT(gemv_w8_blocks_128, INT8, 1, 1, "128 threads two rows, 4 loads in flight") {
  sgemv::start_blocks<sgemv::Int8, 128, 2, 2>(args);
}
GEMV_VARIANT(gemv_w8_blocks_256, INT8, 1, 1, "256 threads two rows, 4 loads in flight") {
  sgemv::start_blocks<sgemv::Int8, 256, 2, 2>(args);
}
GEMV_VARIANT(gemv_w8_blocks_512, INT8, 1, 1, "512 threads two rows, 4 loads in flight") {
  sgemv::start_blocks<sgemv::Int8, 512, 2, 2>(args);
}

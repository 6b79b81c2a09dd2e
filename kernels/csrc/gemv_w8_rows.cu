// One token, int8 weights, float16 activations, a scale a row:
// lanes of a warp, or a block, share two rows.
#include "rows.cuh"

GEMV_VARIANT(gemv_w8_groups_8, INT8, 1, 1, "8 lanes two rows, 4 loads in flight") {
  sgemv::start_groups<sgemv::Int8, 8>(args);
}
GEMV_VARIANT(gemv_w8_groups_32, INT8, 1, 1, "a warp two rows, 4 loads in flight") {
  sgemv::start_groups<sgemv::Int8, 32>(args);
}
GEMV_VARIANT(gemv_w8_blocks_128, INT8, 1, 1, "128 threads two rows, 4 loads in flight") {
  sgemv::start_blocks<sgemv::Int8, 128>(args);
}
GEMV_VARIANT(gemv_w8_blocks_256, INT8, 1, 1, "256 threads two rows, 4 loads in flight") {
  sgemv::start_blocks<sgemv::Int8, 256>(args);
}
GEMV_VARIANT(gemv_w8_blocks_512, INT8, 1, 1, "512 threads two rows, 4 loads in flight") {
  sgemv::start_blocks<sgemv::Int8, 512>(args);
}

// One plain kernel for each layout, and what a launcher gets from op.cpp besides operands.
#include "op.h"

namespace planted {

void multiply(const sgemv::Args& args) {
  for (std::int64_t i = 0; i < args.m; ++i) {
    float sum = 0.0f;
    for (std::int64_t j = 0; j < args.k; ++j) {
      const std::int64_t element = args.by_columns ? i + j * args.a_stride : i * args.a_stride + j;
      sum += args.a[element] * args.x[j * args.x_stride];
    }
    args.y[i * args.y_stride] = sum;
  }
}

}  // namespace planted

SGEMV_KERNEL(planted_packed, K_ANY, 1, PACKED, 4, "packed") { planted::multiply(args); }
SGEMV_KERNEL(planted_rows, K_ANY, 1, ROWS, 4, "row-major") { planted::multiply(args); }
SGEMV_KERNEL(planted_columns, K_ANY, 1, COLUMNS, 4, "column-major") { planted::multiply(args); }
SGEMV_KERNEL(planted_any, K_ANY, 1, ROWS_OR_COLUMNS, 4, "row- or column-major") { planted::multiply(args); }
SGEMV_KERNEL(planted_few, K_AT_MOST, 3, ROWS, 16, "few columns, aligned") { planted::multiply(args); }

// The strides as digits of y[0], where all are below 10.
SGEMV_KERNEL(planted_strides, K_ANY, 1, ROWS_OR_COLUMNS, 4, "tells by_columns and the strides of a, x and y") {
  const std::int64_t digits =
      ((args.by_columns ? 1 : 0) * 10 + args.a_stride) * 100 + args.x_stride * 10 + args.y_stride;
  args.y[0] = static_cast<float>(digits);
}

// Two pieces of scratch, both alive until all is done.
SGEMV_KERNEL(planted_scratch, K_ANY, 1, PACKED, 4, "by way of scratch") {
  float* const first = args.scratch->floats(args.m);
  float* const second = args.scratch->floats(args.m);
  for (std::int64_t i = 0; i < args.m; ++i) first[i] = static_cast<float>(i);
  for (std::int64_t i = 0; i < args.m; ++i) second[i] = 100.0f;
  for (std::int64_t i = 0; i < args.m; ++i) args.y[i] = first[i] + second[i];
}

// y[0] = 1 where a name that nobody has is not found.
SGEMV_KERNEL(planted_finder, K_ANY, 1, ROWS, 4, "launches another one of the library") {
  const sgemv::Spec* const other = sgemv::find("planted_rows");
  if (other != nullptr && sgemv::find("planted_nobody") == nullptr) other->launch(args);
}

// With one column: one that takes it. With two: one that takes at most three, but aligned and by rows. With three: nobody.
SGEMV_KERNEL(planted_picker, K_AT_MOST, 3, ROWS_OR_COLUMNS, 4, "hands on what another may not take") {
  const char* const names[] = {"planted_any", "planted_any", "planted_few", "planted_nobody"};
  sgemv::pick(names[args.k], args).start(args);
}

// Kernels for tokens, a thread a value of y: right ones of every dtype, and some that do what the emulation must find.
#include "items.cuh"

namespace planted {

using sgemv::HalfBits;
using sgemv::TokenArgs;

template <class Item>
__global__ void tokens_kernel(const TokenArgs args) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x, row = i % args.m, token = i / args.m;
  if (token >= args.n) return;
  const char* const a = static_cast<const char*>(args.a) + row * args.a_stride * Item::kBytes;
  const HalfBits* const x = static_cast<const HalfBits*>(args.x) + token * args.x_stride;
  float sum = 0.0f;
  for (std::int64_t j = 0; j < args.k; ++j)
    sum = fmaf(Item::weight(a, j, Item::excess(args, row)), Item::floats(x[j]).x, sum);
  static_cast<HalfBits*>(args.y)[token * args.y_stride + row] = Item::result(args, row, sum);
}

template <class Item>
void start_tokens(const TokenArgs& args) {
  const auto blocks = sgemv::grid_of(sgemv::ceil_div(args.n * args.m, 64));
  tokens_kernel<Item><<<blocks, 64, 0, sgemv::stream_of(args)>>>(args);
}

}  // namespace planted

GEMV_KERNEL(plain_h, FLOAT16, 8, 2, "right") { planted::start_tokens<sgemv::Float16>(args); }
GEMV_KERNEL(plain_b, BFLOAT16, 8, 2, "right") { planted::start_tokens<sgemv::BFloat16>(args); }
GEMV_KERNEL(plain_w8, INT8, 8, 1, "right") { planted::start_tokens<sgemv::Int8>(args); }
GEMV_VARIANT(plain_h_one, FLOAT16, 1, 2, "right, for one token") { planted::start_tokens<sgemv::Float16>(args); }
GEMV_KERNEL(packed_a, FLOAT16, 8, 2, "takes A for packed") {
  sgemv::TokenArgs packed = args;
  packed.a_stride = args.k;
  planted::start_tokens<sgemv::Float16>(packed);
}
GEMV_KERNEL(packed_x, FLOAT16, 8, 2, "takes x for packed") {
  sgemv::TokenArgs packed = args;
  packed.x_stride = args.k;
  planted::start_tokens<sgemv::Float16>(packed);
}
GEMV_KERNEL(packed_y, FLOAT16, 8, 2, "takes y for packed") {
  sgemv::TokenArgs packed = args;
  packed.y_stride = args.m;
  planted::start_tokens<sgemv::Float16>(packed);
}
GEMV_KERNEL(a_token_more, FLOAT16, 8, 2, "computes a token that is not there") {
  sgemv::TokenArgs more = args;
  more.n = args.n + 1;
  planted::start_tokens<sgemv::Float16>(more);
}
GEMV_KERNEL(a_row_more, INT8, 8, 1, "computes a row that is not there") {
  sgemv::TokenArgs more = args;
  more.m = args.m + 1;
  planted::start_tokens<sgemv::Int8>(more);
}
GEMV_KERNEL(no_zero, INT8, 8, 1, "leaves the zero points out") {
  sgemv::TokenArgs without = args;
  without.zero = nullptr;
  planted::start_tokens<sgemv::Int8>(without);
}
GEMV_KERNEL(one_only, FLOAT16, 8, 2, "hands on to what takes one token") {
  sgemv::pick(plain_h_spec, "one", args).start(args);
}

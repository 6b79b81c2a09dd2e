"""The C++ launchers of a user's `.cu` file: the functions that call them, and the launches that call those."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.model import Launch, Operands
from kernels.own.declare import POINTERS, SIZES, Launcher

_CPP_TYPES = {
    "float32": ("float", "float"),
    "float16": ("__half", "__half"),
    "bfloat16": ("__nv_bfloat16", "__nv_bfloat16"),
    "int8": ("std::int8_t", "__half"),
}
"""Of the values of A, and of those of x, y and the scales, by what A is in memory."""

_HEAD = """\
#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "{source}"

#define OWN_EXPORT extern "C" __attribute__((visibility("default")))

template <typename Choose, typename... Values>
constexpr bool own_is_declared() {{
  return std::is_invocable_v<Choose, cudaError_t (*)(Values...)> || std::is_invocable_v<Choose, void (*)(Values...)>;
}}

template <typename... Values, typename Choose>
int own_launched(Choose choose, Values... values) {{
  if constexpr (std::is_invocable_v<Choose, cudaError_t (*)(Values...)>) {{
    const cudaError_t error = choose(static_cast<cudaError_t (*)(Values...)>(nullptr))(values...);
    if (error != cudaSuccess) return error;
  }} else {{
    choose(static_cast<void (*)(Values...)>(nullptr))(values...);
  }}
  return cudaGetLastError();
}}

OWN_EXPORT const char* own_error(int code) {{ return cudaGetErrorString(static_cast<cudaError_t>(code)); }}
"""

_FUNCTION = """
OWN_EXPORT int {symbol}({parameters}) {{
#line {line} "{file}"
  const auto choose = [](auto wanted) -> decltype(static_cast<decltype(wanted)>(&{function})) \
{{ return &{function}; }}; \
static_assert(own_is_declared<decltype(choose), {types}>(), \
"{function} is there, but not as declared: wanted void or cudaError_t {function}({parameters})"); \
return own_launched(choose, {names});
}}
"""


def memory_dtype(dtype: str) -> str:
    """What A of a problem of this dtype is in memory."""
    return "float32" if dtype == "tf32" else dtype


def symbol(name: str, dtype: str) -> str:
    """Of the function that calls a kernel's launcher for A of this dtype."""
    return f"own_{name.replace('.', '_dot_')}_{dtype}"


def source(path: str, functions: Iterable[str]) -> str:
    """A `.cu` file that holds the user's and the functions that call what is in it."""
    return _HEAD.format(source=path) + "".join(functions)


def functions(name: str, launcher: Launcher, dtypes: Sequence[str], file: str, line: int) -> list[str]:
    """The functions that call a launcher, one a dtype.

    It is taken by its address, as a pointer to a function of just these types: a call would convert an int64 to an int.
    What there is none of is an error in the line that declares it.
    """
    found = []
    for dtype in dict.fromkeys(map(memory_dtype, dtypes)):
        types = _types(launcher.parameters, dtype)
        parameters = [f"{each} {parameter}" for each, parameter in zip(types, launcher.parameters, strict=True)]
        text = _FUNCTION.format(
            symbol=symbol(name, dtype),
            parameters=", ".join(parameters),
            types=", ".join(types),
            names=", ".join(launcher.parameters),
            function=launcher.function,
            file=file.replace("\\", "\\\\").replace('"', '\\"'),
            line=line,
        )
        found.append(text)
    return found


def _types(parameters: Iterable[str], dtype: str) -> list[str]:
    weight, other = _CPP_TYPES[dtype]
    known = {"a": f"const {weight}*", "x": f"const {other}*", "y": f"{other}*", "scale": f"const {other}*"}
    known |= dict.fromkeys(SIZES, "std::int64_t") | {"stream": "cudaStream_t"}
    return [known[parameter] for parameter in parameters]


@functools.cache
def _library(path: str) -> ctypes.CDLL:
    return ctypes.CDLL(path)


def bind(name: str, launcher: Launcher, library: Path, operands: Operands) -> Launch:
    """The launch of a kernel whose launcher `library` holds, on torch's current stream at each call.

    Raises:
        RuntimeError: a launch failed, with CUDA's words.
    """
    import torch

    loaded, a = _library(str(library)), operands.a
    function = getattr(loaded, symbol(name, str(a.dtype).removeprefix("torch.")))
    function.argtypes = [ctypes.c_int64 if each in SIZES else ctypes.c_void_p for each in launcher.parameters]
    loaded.own_error.restype = ctypes.c_char_p
    tensors = {each: getattr(operands, each) for each in POINTERS}
    values = {each: tensor.data_ptr() for each, tensor in tensors.items() if tensor is not None}
    values |= {"m": a.shape[0], "k": a.shape[1], "n": operands.x.shape[1], "row_stride": a.stride(0), "stream": 0}
    arguments, place = [values[each] for each in launcher.parameters], launcher.parameters.index("stream")

    def launch() -> None:
        arguments[place] = torch.cuda.current_stream(operands.a.device).cuda_stream
        if code := function(*arguments):
            raise RuntimeError(f"{launcher.function}: {loaded.own_error(code).decode()} (cudaError_t {code})")

    return launch

"""The kernels: torch's own three, and every kernel that a source in csrc declares.

To add a kernel, add its file to csrc. Sources declare roles; here the LIMIT kernels become the variants of `read`, the
fastest of which is the limit, and the FLOOR kernel of a device becomes `empty`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.model import Kernel, Launch, Operands, Problem, Role
from kernels import ops
from kernels.build import Built, build
from kernels.declarations import CSRC, ITEM_BYTES, Declaration, DeclarationError, declarations
from kernels.explain import choose
from kernels.rules import RULES, named_by_rule
from kernels.torch_kernels import torch_kernels

if TYPE_CHECKING:
    from kernels.own.registry import Own

__all__ = ["kernels", "load", "prepare", "with_files"]


def kernels(csrc: Path = CSRC) -> dict[str, Kernel]:
    """Every kernel by name, in the order of the tables: torch's, the declared, `read`, `empty`.

    Raises:
        ValueError: two kernels have one name; the message names both places.
    """
    declared = declarations(csrc)
    by_role = {role: [d for d in declared.values() if d.role is role] for role in Role}
    found = {kernel.name: kernel for kernel in torch_kernels()}
    for declaration in by_role[Role.GEMV]:
        if declaration.name in (*found, "read", "empty"):
            raise DeclarationError(
                f"{declaration.where}: kernel {declaration.name!r} is already in {__file__}; rename it"
            )
        found[declaration.name] = _declared_kernel(declaration, tuple(named_by_rule(csrc, declaration.name)))
    found["read"] = _read(by_role[Role.LIMIT])
    found["empty"] = _empty(by_role[Role.FLOOR])
    return found


def with_files(paths: Sequence[Path]) -> Own:
    """The registry of these kernels and of those that users' files declare.

    Raises:
        CommandError: a file cannot be loaded, or takes a name that there is (USAGE).
    """
    from kernels.own.registry import of_files  # which needs this module

    return of_files(paths)


def prepare(device_type: str) -> tuple[Built, ...]:
    """Builds what `device_type` ("cuda" or "cpu") needs, without importing torch or touching CUDA.

    Raises:
        kernels.build.BuildError: it cannot be built.
    """
    return (build(device_type),)


def load(device_type: str) -> None:
    """Loads the kernels of `device_type` into this process, so that they can be bound; builds them if need be.

    Raises:
        kernels.build.BuildError: they cannot be built.
    """
    for built in prepare(device_type):
        ops.load(built.library)


def _declared_kernel(declaration: Declaration, picks: tuple[str, ...] = ()) -> Kernel:
    return Kernel(
        name=declaration.name,
        role=declaration.role,
        summary=declaration.summary,
        bind=_binder([declaration]),
        devices=(declaration.device_type,),
        dtypes=_dtypes(declaration),
        unsupported=_contract(declaration),
        choose=choose if declaration.name in RULES else None,
        picks=picks,
        by_name_only=declaration.variant,
        candidate=declaration.variant,
    )


def _dtypes(declaration: Declaration) -> tuple[str, ...]:
    """Of the problems that the kernel is made for. Reading takes no notice of how floats were rounded."""
    reads_floats = declaration.role is Role.LIMIT and declaration.dtype == "float32"
    return ("float32", "tf32") if reads_floats else (declaration.dtype,)


def _read(limits: Sequence[Declaration]) -> Kernel:
    contracts = {dtype: _contract(limit) for limit in reversed(limits) for dtype in _dtypes(limit)}

    def unsupported(problem: Problem) -> str | None:
        if problem.dtype not in contracts:
            return f"dtype is {problem.dtype}, wanted {' or '.join(contracts)}"
        return contracts[problem.dtype](problem)

    return Kernel(
        name="read",
        role=Role.LIMIT,
        summary="reads A and x once, writes m·n values; the fastest of its variants",
        bind=_binder(limits),
        devices=_devices(limits),
        dtypes=tuple(dict.fromkeys(dtype for limit in limits for dtype in _dtypes(limit))),
        unsupported=unsupported,
        variants=tuple(_declared_kernel(declaration) for declaration in limits),
    )


def _empty(floors: Sequence[Declaration]) -> Kernel:
    return Kernel(
        name="empty",
        role=Role.FLOOR,
        summary="; ".join(f"on {d.device_type}: {d.summary}" for d in floors),
        bind=_binder(floors),
        devices=_devices(floors),
        unsupported=_contract(floors[0]),
    )


def _devices(candidates: Sequence[Declaration]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(declaration.device_type for declaration in candidates))


def _binder(candidates: Sequence[Declaration]) -> Callable[[Operands], Launch]:
    """Binds the first of `candidates` that is made for the operands' device and dtype."""

    def bind(operands: Operands) -> Launch:
        a, x, y, scale = operands.a, operands.x, operands.y, operands.scale
        here, dtype = a.device.type, str(a.dtype).removeprefix("torch.")
        there = [d for d in candidates if d.device_type == here]
        if not there:
            raise RuntimeError(f"{candidates[0].name}: a is on {here}, wanted {' or '.join(_devices(candidates))}")
        names = [d.name for d in there if d.dtype == dtype]
        if not names:
            wanted = " or ".join(dict.fromkeys(d.dtype for d in there))
            raise RuntimeError(f"{candidates[0].name}: a is {dtype}, wanted {wanted}")
        op, tensors = _op(names[0], here), (a, x, y) if dtype != "int8" else (a, scale, None, x, y)

        def launch() -> None:
            op(*tensors)

        return launch

    return bind


def _op(name: str, device_type: str) -> Callable[..., Any]:
    import torch

    namespace = getattr(torch.ops, ops.NAMESPACE)
    if not hasattr(namespace, name):
        raise RuntimeError(f"{name} is not loaded in this process; call kernels.registry.load({device_type!r}) first")
    op: Callable[..., Any] = getattr(namespace, name).default
    return op


def _contract(declaration: Declaration) -> Callable[[Problem], str | None]:
    """Why a declared kernel cannot compute a problem, or None."""
    dtypes = _dtypes(declaration)

    def unsupported(problem: Problem) -> str | None:
        if problem.dtype not in dtypes:
            return f"dtype is {problem.dtype}, wanted {' or '.join(dtypes)}"
        return (
            declaration.n_problem(problem.n)
            or _other_layout(problem, declaration.layout)
            or declaration.k_problem(problem.k)
            or _misaligned(problem, declaration.alignment_bytes)
        )

    return unsupported


_ORDERS = {"PACKED": ("row",), "ROWS": ("row",), "COLUMNS": ("col",), "ROWS_OR_COLUMNS": ("row", "col")}


def _other_layout(problem: Problem, taken: str) -> str | None:
    layout = problem.layout
    if layout.order not in _ORDERS[taken]:
        return f"A's order is {layout.order!r}, wanted {_ORDERS[taken][0]!r}"
    if taken == "PACKED" and layout.row_stride not in (None, problem.k):
        return f"A's row stride is {layout.row_stride}, wanted {problem.k} (packed)"
    return None


def _misaligned(problem: Problem, alignment_bytes: int) -> str | None:
    past = problem.layout.first_element * ITEM_BYTES[problem.dtype] % alignment_bytes
    return f"A starts {past} bytes past a multiple of {alignment_bytes} bytes, wanted none" if past else None

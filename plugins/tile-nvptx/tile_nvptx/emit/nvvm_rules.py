"""What LLVM's backend would end the process on, or silently change: refused here, at its operation.

One rule per operation of the llvm and nvvm dialects. Some texts are those of NVIDIA's verifier of
NVVM IR, their spelling included.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from tile_cute.atoms.rules import TensorMmaFlags, check_tensor_mma
from tile_cute.errors import LayoutError

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_core.target import Target
from tile_nvptx.emit.floors import INTRINSICS, OPERATIONS, missing, missing_in_ptx
from tile_nvptx.emit.guards import (
    IDENTIFIER,
    IDENTIFIERS,
    Operations,
    by_name,
    pointer_space,
)
from tile_nvptx.emit.runtime import DEVICE_RUNTIME

_LAUNCHES = ("cudaLaunchDevice", "cudaGetParameterBuffer")
_REFLECT = re.compile(r"__nvvm_reflect(?:_ocl)?$|_Z\d+__nvvm_reflect")

#: Synchronisation scopes of LLVM for NVPTX: the system, a block, a cluster, the device.
_SCOPES = ("", "block", "cluster", "device")
_CLUSTERS_SINCE = WIDE_ATOMICS_SINCE = VECTOR_ATOMICS_SINCE = 90
_MONOTONIC = 2  # llvm.atomic_ordering
_SHARED, _CONSTANT, _LOCAL = 3, 4, 5
_SPACES = frozenset({0, 1, _SHARED, _CONSTANT, _LOCAL, 6, 7, 101})

Rule = Callable[[ir.Operation, Target, "Symbols"], None]


class Symbols:
    """What a `gpu.module` defines and declares, by name."""

    def __init__(self, module: ir.Operation) -> None:
        self.by_name: dict[str, ir.Operation] = {}
        for view in module.regions[0].blocks[0].operations:
            operation = view.operation
            if "sym_name" in operation.attributes:
                self.by_name[ir.StringAttr(operation.attributes["sym_name"]).value] = operation

    def defines(self, name: str) -> bool:
        """Whether there is a function of that name with a body."""
        found = self.by_name.get(name)
        return found is not None and bool(len(found.regions)) and bool(len(found.regions[0].blocks))


def check_operations(module: ir.Operation, target: Target, found: Operations | None = None) -> None:
    """Refuse operations of a `gpu.module` that cannot become code for `target`.

    Args:
        found: the operations of `module` by name, where they are known.

    Raises:
        CompileError: at the first such operation of its name.
    """
    symbols = Symbols(module)
    for name, operations in (by_name(module) if found is None else found).items():
        rule = _RULES.get(name) or _by_name(name)
        if rule is not None:
            for op in operations:
                rule(op, target, symbols)


@lru_cache(maxsize=512)
def _by_name(name: str) -> Rule | None:
    if name.startswith("nvvm.tcgen05.mma") and not name.endswith("smem_desc"):
        return _tensor_mma
    short = name.removeprefix("nvvm.")
    known = short != name and any(short.startswith(row.prefix) for row in OPERATIONS)
    return _operation if known else None


def _refuse_missing(op: ir.Operation, what: str, needs: str, target: Target) -> None:
    raise error_at(
        op,
        f"{what} needs {needs}, but the target is {target.chip}",
        hint="the lowering chose an instruction that the target does not have",
    )


def _operation(op: ir.Operation, target: Target, symbols: Symbols) -> None:
    row = missing(op.name.removeprefix("nvvm."), OPERATIONS, target)
    if row is not None:
        raise error_at(
            op,
            f"needs {row.needs}, but the target is {target.chip}",
            hint="the lowering chose an instruction that the target does not have",
        )


def _intrinsic(op: ir.Operation, target: Target, symbols: Symbols) -> None:
    name = ir.StringAttr(op.attributes["intrin"]).value
    row = missing(name.removeprefix("llvm.nvvm."), INTRINSICS, target)
    if row is not None:
        _refuse_missing(op, name, row.needs, target)


def _inline(op: ir.Operation, target: Target, symbols: Symbols) -> None:
    text = ir.StringAttr(op.attributes["asm_string" if "asm" in op.name else "ptxCode"]).value
    if target.sm < WIDE_ATOMICS_SINCE:
        if re.search(r"(?<![\w.])atom\.\S*\.b128", text):
            raise error_at(op, "128b atomics not supported on this architecture!")
        if re.search(r"(?<![\w.])(?:atom|red)\.\S*\.v[248]\.", text):
            raise error_at(op, "vector atomics not supported on this architecture!")
    found = missing_in_ptx(text, target)
    if found is not None:
        _refuse_missing(op, found[0], found[1].needs, target)


def _scope(op: ir.Operation, target: Target) -> str:
    attributes = op.attributes
    scope = ir.StringAttr(attributes["syncscope"]).value if "syncscope" in attributes else ""
    if scope not in _SCOPES:
        known = ", ".join(f"'{name}'" for name in _SCOPES)
        raise error_at(op, f"has the unknown synchronization scope '{scope}', not one of {known}")
    if scope == "cluster" and target.sm < _CLUSTERS_SINCE:
        _refuse_missing(op, "scope 'cluster'", f"sm_{_CLUSTERS_SINCE}", target)
    return scope


def _space(value: ir.Value) -> int:
    return pointer_space(value.type) or 0


def _not_local(op: ir.Operation) -> None:
    if _space(op.operands[0]) == _LOCAL:
        raise error_at(op, "Cannot do atomic on local memory")


def _atomic_rmw(op: ir.Operation, target: Target, symbols: Symbols) -> None:
    """LLVM writes every atomicrmw as a relaxed one of device scope, and no fence."""
    _not_local(op)
    scope = _scope(op, target)
    ordering = ir.IntegerAttr(op.attributes["ordering"]).value
    if ordering != _MONOTONIC or scope == "":
        raise error_at(
            op,
            "unsupported ordering for nvvm.atomic.rmw: LLVM would make it relaxed and of device "
            "scope",
            hint="use inline PTX with .sem and .scope",
        )


def _compare_exchange(op: ir.Operation, target: Target, symbols: Symbols) -> None:
    _not_local(op)
    _scope(op, target)
    if str(op.operands[1].type) == "i128" and target.sm < WIDE_ATOMICS_SINCE:
        raise error_at(op, "128b atomics not supported on this architecture!")


def _fence(op: ir.Operation, target: Target, symbols: Symbols) -> None:
    _scope(op, target)


def _access(op: ir.Operation, target: Target, symbols: Symbols) -> None:
    if "syncscope" in op.attributes:
        _scope(op, target)
    is_store = op.name == "llvm.store"
    space = _space(op.operands[1 if is_store else 0])
    if space not in _SPACES:
        raise error_at(op, f"is in address space {space}, which GPUs do not have")
    if is_store and space == _CONSTANT:
        raise error_at(op, "cannot write to constant memory")


def _call(op: ir.Operation, target: Target, symbols: Symbols) -> None:
    if "callee" not in op.attributes:
        return
    name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    if symbols.defines(name) or name in DEVICE_RUNTIME or name.startswith(("__nv_", "llvm.")):
        return
    if _REFLECT.match(name):
        _reflect(op, symbols)
    elif name.startswith(_LAUNCHES):
        _launch(op, symbols)
    elif name == "printf":
        raise error_at(op, "unsupported printf form: call vprintf(format, buffer of the arguments)")
    else:
        raise error_at(op, f"calls '{name}', which is defined nowhere")


def _reflect(op: ir.Operation, symbols: Symbols) -> None:
    """libdevice's question about its environment, as the NVVM reflection pass takes it."""
    if len(op.operands) != 1:
        raise error_at(op, "__nvvm_reflect requires exactly one argument")
    pointed = _addressed(op.operands[0], symbols)
    if pointed is None or "constant" not in pointed.attributes:
        raise error_at(op, "__nvvm_reflect argument must be a constant string")
    value = pointed.attributes.get("value", None)
    if not isinstance(value, ir.StringAttr):
        raise error_at(op, "__nvvm_reflect argument must be a string constant")
    text = value.value_bytes
    if not text.endswith(b"\0"):
        raise error_at(op, "__nvvm_reflect argument must be a null-terminated string")
    if text == b"\0":
        raise error_at(op, "__nvvm_reflect argument cannot be empty")


def _launch(op: ir.Operation, symbols: Symbols) -> None:
    for operand in op.operands:
        function = _addressed(operand, symbols)
        if function is not None and function.name == "llvm.func":
            if "nvvm.kernel" not in function.attributes:
                raise error_at(op, "a function that is not __global__ cannot be launched")
        elif _space(operand) == _LOCAL:
            raise error_at(
                op,
                "A pointer to local memory or memory in 'addrspace(0)' has been used as a launch "
                "argument. Dereferencing this within the launch is undefined",
            )
    raise error_at(op, "launches a kernel from the device, which is not supported")


def _addressed(value: ir.Value, symbols: Symbols) -> ir.Operation | None:
    """The global or function whose address `value` is, casts and offsets aside."""
    while not isinstance(value.owner, ir.Block):
        owner = value.owner.operation
        if owner.name == "llvm.mlir.addressof":
            return symbols.by_name.get(ir.FlatSymbolRefAttr(owner.attributes["global_name"]).value)
        if owner.name not in ("llvm.addrspacecast", "llvm.getelementptr", "llvm.bitcast"):
            return None
        value = owner.operands[0]
    return None


def _address_of(op: ir.Operation, target: Target, symbols: Symbols) -> None:
    if _REFLECT.match(ir.FlatSymbolRefAttr(op.attributes["global_name"]).value):
        raise error_at(op, "__nvvm_reflect can only be used in a call instruction")


def _global(op: ir.Operation, target: Target, symbols: Symbols) -> None:
    attributes = op.attributes
    name = ir.StringAttr(attributes["sym_name"]).value
    if "external" in str(attributes["linkage"]) and not IDENTIFIER.fullmatch(name):
        raise error_at(op, f"has the name '{name}', {IDENTIFIERS}")
    space = ir.IntegerAttr(attributes["addr_space"]).value if "addr_space" in attributes else 0
    if space == _LOCAL or space not in _SPACES:
        raise error_at(op, f"is in address space {space}, in which there are no globals")
    has_body = bool(len(op.regions)) and bool(len(op.regions[0].blocks))
    if space == _SHARED and ("value" in attributes or has_body):
        raise error_at(op, "has an initial value, which shared memory cannot have")
    # LLVM 22's MLIR has a flag in the place of the mode.
    mode = "tls_mode" in attributes and ir.IntegerAttr(attributes["tls_mode"]).value
    if mode or "thread_local_" in attributes:
        raise error_at(op, "is thread-local, which GPUs do not have")


def _matrix_load(op: ir.Operation, target: Target, symbols: Symbols) -> None:
    shape, layout = (str(op.attributes[key]) for key in ("shape", "layout"))
    if re.search(r"m = 8, n = 16", shape) and "col" in layout:
        raise error_at(op, "Transposed layout is not supported for m8n16 shape for nvvm.ldmatrix")
    if "n = 16" in shape:
        row = missing("ldmatrix.sync.aligned.m16n16", INTRINSICS, target)
        if row is not None:
            _refuse_missing(op, "this shape", row.needs, target)


_WORD = re.compile(r"<(\w+)>")


def _word(op: ir.Operation, key: str, default: str = "") -> str:
    found = _WORD.search(str(op.attributes[key])) if key in op.attributes else None
    return found[1] if found else default


def _tensor_mma(op: ir.Operation, target: Target, symbols: Symbols) -> None:
    """The rules of tcgen05.mma, of which MLIR knows only some."""
    if missing("tcgen05.", OPERATIONS, target) is not None:
        raise error_at(
            op,
            "tcgen05.mma supported only on arch-conditional or family-conditional variants from "
            "SM100 onwards.",
        )
    flags = TensorMmaFlags(
        kind=_word(op, "kind"),
        cta_group=2 if _word(op, "ctaGroup") == "cta_2" else 1,
        block_scale=".block_scale" in op.name,
        sparse=".sp" in op.name,
        weight_stationary=".ws" in op.name,
        ashift="aShift" in op.attributes,
        collector=_word(op, "collectorOp"),
        scale_input_accumulator=_has_scale(op),
    )
    try:
        check_tensor_mma(flags, target.chip)
    except LayoutError as error:
        raise error_at(op, str(error)) from error


def _has_scale(op: ir.Operation) -> bool:
    """Whether the optional operand that scales the accumulator is there: it alone is an i64."""
    return any(str(value.type) == "i64" for value in list(op.operands)[5:])


def _no_exceptions(op: ir.Operation, target: Target, symbols: Symbols) -> None:
    raise error_at(op, "has no meaning on a GPU, which has no exceptions")


def _no_indirect(op: ir.Operation, target: Target, symbols: Symbols) -> None:
    raise error_at(op, "jumps to an address, which GPUs cannot")


_RULES: dict[str, Rule] = {
    "llvm.atomicrmw": _atomic_rmw,
    "llvm.blockaddress": _no_indirect,
    "llvm.call": _call,
    "llvm.call_intrinsic": _intrinsic,
    "llvm.cmpxchg": _compare_exchange,
    "llvm.fence": _fence,
    "llvm.indirectbr": _no_indirect,
    "llvm.inline_asm": _inline,
    "llvm.invoke": _no_exceptions,
    "llvm.landingpad": _no_exceptions,
    "llvm.load": _access,
    "llvm.mlir.addressof": _address_of,
    "llvm.mlir.global": _global,
    "llvm.resume": _no_exceptions,
    "llvm.store": _access,
    "nvvm.inline_ptx": _inline,
    "nvvm.ldmatrix": _matrix_load,
}

"""What LLVM or ptxas would crash on, or silently change: refused before they see it.

Limits are those of the CUDA programming guide (compute capabilities) and of the PTX ISA's
sections on each instruction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

from tile_core.diagnostics import CompileError
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_core.target import Target

MAX_THREADS = 1024
MAX_CLUSTER = 16
PARAMETER_BYTES = 32764  # kernel parameters from PTX 8.1 on

# Sizes in bytes of what may be a kernel parameter; vectors and structs are built from these.
_SCALAR_BYTES = {"i1": 1, "i8": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4} | {
    "i64": 8,
    "f64": 8,
    "i128": 16,
}


@dataclass(frozen=True)
class Floor:
    """Intrinsics whose name starts with `prefix` need a target for which `holds`."""

    prefix: str
    needs: str
    holds: Callable[[Target], bool]


def _at_least(sm: int) -> Callable[[Target], bool]:
    return lambda target: target.sm >= sm


def _one_of(*chips: str) -> Callable[[Target], bool]:
    return lambda target: target.chip in chips


_TENSOR_MEMORY = ("sm_100a", "sm_100f", "sm_103a", "sm_103f", "sm_110a", "sm_110f")

FLOORS: tuple[Floor, ...] = (
    Floor("wgmma.", "sm_90a", _one_of("sm_90a")),
    Floor("tcgen05.", "sm_100a, sm_103a or sm_110a", _one_of(*_TENSOR_MEMORY)),
    Floor(
        "setmaxnreg.",
        "an architecture-specific target from sm_90a on",
        lambda target: target.sm >= 90 and target.chip[-1] in "af",
    ),
    Floor("mma.block.scale.", "sm_120a or sm_121a", _one_of("sm_120a", "sm_121a")),
    Floor("mma.sp.block.scale.", "sm_120a or sm_121a", _one_of("sm_120a", "sm_121a")),
    Floor("cp.async.bulk.", "sm_90", _at_least(90)),
    Floor("stmatrix.", "sm_90", _at_least(90)),
    Floor("barrier.cluster.", "sm_90", _at_least(90)),
    Floor("mapa", "sm_90", _at_least(90)),
    Floor("getctarank", "sm_90", _at_least(90)),
    Floor("elect.sync", "sm_90", _at_least(90)),
    Floor("griddepcontrol.", "sm_90", _at_least(90)),
    Floor("fence.mbarrier_init", "sm_90", _at_least(90)),
    Floor("fence.proxy.", "sm_90", _at_least(90)),
    Floor("redux.sync.f", "sm_100a", _one_of("sm_100a", "sm_103a", "sm_110a")),
    Floor("redux.sync.", "sm_80", _at_least(80)),
    Floor("mbarrier.", "sm_80", _at_least(80)),
    Floor("cp.async.", "sm_80", _at_least(80)),
)

_TRANSLATABLE = ("llvm.", "nvvm.")


def check_translatable(module: ir.Operation) -> None:
    """Refuse what MLIR cannot translate to LLVM IR: its bindings crash on a failed translation.

    Raises:
        CompileError: `module` (a `gpu.module`) is invalid, or holds another dialect's operation.
    """
    strangers: list[ir.Operation] = []
    known = module.context.is_registered_operation

    def visit(op: ir.Operation) -> ir.WalkResult:
        # The verifier passes operations that the llvm dialect does not know; translation crashes.
        if op.name != "gpu.module" and not (op.name.startswith(_TRANSLATABLE) and known(op.name)):
            strangers.append(op)
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    if strangers:
        raise error_at(
            strangers[0],
            "is left over where only the llvm and nvvm dialects can be translated to LLVM IR",
        )
    try:
        module.verify()
    except ir.MLIRError as error:
        notes = tuple(line for d in error.error_diagnostics for line in str(d.message).splitlines())
        raise CompileError("the module does not verify before translation", notes=notes) from error


_INTRINSIC = re.compile(r"@llvm\.nvvm\.([\w.]+)\(")


def check_intrinsics(text: str, target: Target) -> None:
    """Refuse intrinsics of LLVM IR `text` that `target` lacks.

    Raises:
        CompileError: naming the intrinsic and what it needs.
    """
    for name in dict.fromkeys(_INTRINSIC.findall(text)):
        floor = next((row for row in FLOORS if name.startswith(row.prefix)), None)
        if floor is not None and not floor.holds(target):
            raise CompileError(
                f"llvm.nvvm.{name} needs {floor.needs}, but the target is {target.chip}",
                hint="the lowering chose an instruction that the target does not have",
            )


def check_kernels(module: ir.Operation, target: Target) -> None:
    """Refuse kernels of a `gpu.module` whose launch attributes or parameters cannot work.

    Raises:
        CompileError: at the kernel.
    """
    for kernel in kernels_of(module):
        _check_launch(kernel, target)
        _check_parameters(kernel)


def kernels_of(module: ir.Operation) -> Iterator[ir.Operation]:
    """The `llvm.func` kernels of a `gpu.module`, in order."""
    for view in module.regions[0].blocks[0].operations:
        operation = view.operation
        if operation.name == "llvm.func" and "nvvm.kernel" in operation.attributes:
            yield operation


def kernel_name(kernel: ir.Operation) -> str:
    """The symbol of an `llvm.func`."""
    return ir.StringAttr(kernel.attributes["sym_name"]).value


def _dims(kernel: ir.Operation, name: str) -> list[int]:
    attributes = kernel.attributes
    return list(ir.DenseI32ArrayAttr(attributes[name])) if name in attributes else []


def _check_launch(kernel: ir.Operation, target: Target) -> None:
    name = kernel_name(kernel)
    threads, ceiling = _dims(kernel, "nvvm.reqntid"), _dims(kernel, "nvvm.maxntid")
    if threads and ceiling:
        raise error_at(kernel, f"'{name}' sets both nvvm.reqntid and nvvm.maxntid")
    for dims in (threads, ceiling):
        if dims and not 1 <= prod(dims) <= MAX_THREADS:
            raise error_at(
                kernel, f"'{name}' asks for {prod(dims)} threads a block, at most {MAX_THREADS}"
            )
    cluster = _dims(kernel, "nvvm.cluster_dim")
    if cluster and not 1 <= prod(cluster) <= MAX_CLUSTER:
        raise error_at(
            kernel, f"'{name}' asks for {prod(cluster)} blocks a cluster, at most {MAX_CLUSTER}"
        )
    if prod(cluster) > 1 and not target.clusters:
        raise error_at(kernel, f"'{name}' needs clusters, which {target.name} does not have")


def _check_parameters(kernel: ir.Operation) -> None:
    needed = 0
    block = kernel.regions[0].blocks[0]
    arguments = (
        list(ir.ArrayAttr(kernel.attributes["arg_attrs"]))
        if "arg_attrs" in kernel.attributes
        else []
    )
    for index, argument in enumerate(block.arguments):
        size, alignment = type_bytes(argument.type)
        if index < len(arguments):
            by_value = ir.DictAttr(arguments[index])
            if "llvm.byval" in by_value:
                size, alignment = type_bytes(ir.TypeAttr(by_value["llvm.byval"]).value)
            if "llvm.align" in by_value and "llvm.byval" in by_value:
                alignment = ir.IntegerAttr(by_value["llvm.align"]).value
        needed = -(-needed // alignment) * alignment + size
    if needed > PARAMETER_BYTES:
        raise error_at(
            kernel,
            f"Formal parameter space overflowed ({needed} bytes required, "
            f"max {PARAMETER_BYTES} bytes allowed) in function {kernel_name(kernel)}",
        )


_ARRAY = re.compile(r"array<(\d+) x (.+)>")
_STRUCT = re.compile(r"struct<(?:\"[^\"]*\", )?\((.*)\)>")
_VECTOR = re.compile(r"vector<(\d+)x(\w+)>")


def type_bytes(kind: ir.Type) -> tuple[int, int]:
    """Size and alignment of a parameter of `kind`, bytes; 8-byte pointers, natural alignment."""
    return _text_bytes(str(kind))


def _text_bytes(text: str) -> tuple[int, int]:
    text = text.removeprefix("!llvm.")  # absent inside arrays and structs
    if text in _SCALAR_BYTES:
        return _SCALAR_BYTES[text], _SCALAR_BYTES[text]
    if found := _ARRAY.fullmatch(text):
        size, alignment = _text_bytes(found[2])
        return int(found[1]) * size, alignment
    if found := _VECTOR.fullmatch(text):
        size = int(found[1]) * _SCALAR_BYTES.get(found[2], 8)
        return size, size
    if found := _STRUCT.fullmatch(text):
        return _struct_bytes(_split(found[1]))
    return 8, 8  # pointers, and what is unknown here: LLVM has the last word


def _struct_bytes(fields: list[str]) -> tuple[int, int]:
    offset, widest = 0, 1
    for part in fields:
        size, alignment = _text_bytes(part)
        offset = -(-offset // alignment) * alignment + size
        widest = max(widest, alignment)
    return -(-offset // widest) * widest, widest


def _split(text: str) -> list[str]:
    """The fields of a struct: `text` at its top-level commas."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts

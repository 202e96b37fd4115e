"""What LLVM or ptxas would crash on, or silently change: refused before they see it.

Limits are those of the CUDA programming guide (compute capabilities) and of the PTX ISA's
sections on each instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import prod

from tile_core.diagnostics import CompileError
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_core.target import Target
from tile_nvptx.emit.floors import INTRINSICS, missing

MAX_THREADS = 1024
MAX_CLUSTER = 16
PARAMETER_BYTES = 32764  # kernel parameters from PTX 8.1 on

# Sizes in bytes of what may be a kernel parameter; vectors and structs are built from these.
_SCALAR_BYTES = {"i1": 1, "i8": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4} | {
    "i64": 8,
    "f64": 8,
    "i128": 16,
}


_TRANSLATABLE = ("llvm.", "nvvm.")


Operations = Mapping[str, list[ir.Operation]]


def check_translatable(module: ir.Operation, found: Operations) -> None:
    """Refuse what MLIR cannot translate to LLVM IR: its bindings crash on a failed translation.

    Args:
        found: the operations of `module` (a `gpu.module`), by name.

    Raises:
        CompileError: `module` is invalid, or holds another dialect's operation.
    """
    known = module.context.is_registered_operation
    for name, operations in found.items():
        # The verifier passes operations that the llvm dialect does not know; translation crashes.
        if name != "gpu.module" and not (name.startswith(_TRANSLATABLE) and known(name)):
            raise error_at(
                operations[0],
                "is left over where only the llvm and nvvm dialects can be translated to LLVM IR",
            )
    try:
        module.verify()
    except ir.MLIRError as error:
        notes = tuple(line for d in error.error_diagnostics for line in str(d.message).splitlines())
        raise CompileError("the module does not verify before translation", notes=notes) from error


def by_name(module: ir.Operation) -> dict[str, list[ir.Operation]]:
    """The operations in `module`, itself among them, in program order, by name."""
    found: dict[str, list[ir.Operation]] = {}

    def visit(op: ir.Operation) -> ir.WalkResult:
        name = op.name
        if name in found:
            found[name].append(op)
        else:
            found[name] = [op]
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


_INTRINSIC = re.compile(r"@llvm\.nvvm\.([\w.]+)\(")


def check_intrinsics(text: str, target: Target) -> None:
    """Refuse intrinsics of LLVM IR `text` that `target` lacks.

    Raises:
        CompileError: naming the intrinsic and what it needs.
    """
    for name in dict.fromkeys(_INTRINSIC.findall(text)):
        floor = missing(name, INTRINSICS, target)
        if floor is not None:
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
        _check_signature(kernel)
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
        if dims and not (min(dims) >= 1 and prod(dims) <= MAX_THREADS):
            raise error_at(
                kernel, f"'{name}' asks for {prod(dims)} threads a block, at most {MAX_THREADS}"
            )
    registers = _number(kernel, "nvvm.maxnreg")
    if registers is not None and not 1 <= registers <= target.max_registers:
        raise error_at(
            kernel,
            f"'{name}' asks for {registers} registers a thread, at most {target.max_registers}",
        )
    _check_cluster(kernel, target)


def _check_cluster(kernel: ir.Operation, target: Target) -> None:
    name = kernel_name(kernel)
    cluster = _dims(kernel, "nvvm.cluster_dim")
    if cluster and not (min(cluster) >= 1 and prod(cluster) <= MAX_CLUSTER):
        raise error_at(
            kernel, f"'{name}' asks for {prod(cluster)} blocks a cluster, at most {MAX_CLUSTER}"
        )
    ceiling = _number(kernel, "nvvm.cluster_max_blocks")
    if cluster and ceiling is not None:
        raise error_at(kernel, f"'{name}' sets both nvvm.cluster_dim and nvvm.cluster_max_blocks")
    if (prod(cluster) > 1 or (ceiling or 1) > 1) and not target.clusters:
        raise error_at(kernel, f"'{name}' needs clusters, which {target.name} does not have")


def _number(kernel: ir.Operation, name: str) -> int | None:
    attributes = kernel.attributes
    return ir.IntegerAttr(attributes[name]).value if name in attributes else None


def _check_signature(kernel: ir.Operation) -> None:
    name = kernel_name(kernel)
    if not IDENTIFIER.fullmatch(name):
        raise error_at(kernel, f"has the name '{name}', {IDENTIFIERS}")
    if not len(kernel.regions[0].blocks):
        raise error_at(kernel, f"'{name}' is a kernel without a body")
    kind = str(ir.TypeAttr(kernel.attributes["function_type"]).value)
    if not kind.startswith("!llvm.func<void ("):
        raise error_at(kernel, "Kernel functions do not support return with operands")
    if kind.endswith("...)>"):
        raise error_at(kernel, f"'{name}' is a kernel with a variable number of parameters")
    for at, argument in enumerate(kernel.regions[0].blocks[0].arguments):
        if (space := pointer_space(argument.type)) in _BLOCK_SPACES:
            raise error_at(
                kernel,
                f"parameter {at} of '{name}' points to {_BLOCK_SPACES[space]} memory, of which "
                "there is none before the launch",
            )


#: PTX ISA, "Identifiers".
IDENTIFIER = re.compile(r"[a-zA-Z][\w$]*|[_$][\w$]+", re.ASCII)
IDENTIFIERS = "but names in PTX are letters, digits, _ and $, and do not start with a digit"
#: Address spaces that begin with a launch.
_BLOCK_SPACES = {3: "shared", 5: "local", 6: "tensor", 7: "the cluster's shared"}
_POINTER = re.compile(r"!llvm\.ptr(?:<(\d+)>)?")


def pointer_space(kind: ir.Type) -> int | None:
    """The address space of a pointer type of the llvm dialect; None for any other type."""
    found = _POINTER.fullmatch(str(kind))
    return int(found[1] or 0) if found else None


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

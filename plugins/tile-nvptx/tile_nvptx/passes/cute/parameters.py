"""Parameters of kernels that are read where they are: tensor maps and grid constants."""

from __future__ import annotations

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_core.walk import inside
from tile_nvptx.passes.cute.tensors import Cute, alignment_of, is_map, rules

_POINTER_TO = "cute_nvgpu.get_grid_constant_pointer"
_MAP_ALIGNMENT, _MAP = 64, "!llvm.array<128 x i8>"


def place_parameters(func: ir.Operation) -> dict[int, str]:
    """Make parameters whose address is asked for, and tensor maps, ones that are passed by value.

    Copies read a tensor map where it is (CUDA driver API, "CUtensorMap"); 64 bytes are what it is
    aligned to, where the specification's page 034 has 16. Another parameter has the alignment that
    pointers to it promise, and is loaded where its value is used.

    Returns:
        The attributes of each such argument, for `attach`.

    Raises:
        CompileError: the address of something else is asked for.
    """
    block = func.regions[0].blocks[0]
    attributes = {
        at: _by_value(_MAP, _MAP_ALIGNMENT)
        for at, argument in enumerate(block.arguments)
        if is_map(argument.type)
    }
    wanted: dict[int, list[ir.Operation]] = {}
    for op in inside(func):
        if op.name == _POINTER_TO:
            at = _checked(op, func)
            if at not in attributes:
                wanted.setdefault(at, []).append(op)
    for at, ops in wanted.items():
        argument = block.arguments[at]
        alignment = max(alignment_of(op.results[0].type) for op in ops)
        attributes[at] = _by_value(str(argument.type), alignment)
        _load_where_used(argument, block)
    return attributes


def attach(func: ir.Operation, attributes: dict[int, str]) -> None:
    """Write what `place_parameters` found."""
    if attributes:
        count = len(func.regions[0].blocks[0].arguments)
        texts = [attributes.get(at, "{}") for at in range(count)]
        func.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.Attribute.parse(t) for t in texts])


def _by_value(type_: str, alignment: int) -> str:
    return f"{{llvm.byval = {type_}, llvm.align = {alignment} : i64}}"


def _checked(op: ir.Operation, func: ir.Operation) -> int:
    """The number of the argument whose address `op` asks for."""
    block, source = func.regions[0].blocks[0], op.operands[0]
    if "nv_tileaa.kernel" not in func.attributes:
        raise error_at(op, "is for arguments of kernels, which alone are in constant memory")
    if not isinstance(source.owner, ir.Block) or source.owner != block:
        raise error_at(op, "expects an argument of the kernel")
    if '"generic"' not in str(op.results[0].type):
        raise error_at(op, f"gives a pointer in generic, but its type is {op.results[0].type}")
    numbers = ir.IntegerType | ir.FloatType | ir.VectorType
    if not (is_map(source.type) or isinstance(source.type, numbers)
            or str(source.type).startswith(("!llvm.struct<", "!llvm.array<"))):  # fmt: skip
        raise error_at(
            op, f"expects a tensor map, number, vector, struct or array, but got {source.type}"
        )
    return ir.BlockArgument(source).arg_number


def _load_where_used(argument: ir.BlockArgument, block: ir.Block) -> None:
    """Let `argument` be its address; what uses its value gets a load from there."""
    type_ = argument.type
    others = [use for use in argument.uses if use.owner.operation.name != _POINTER_TO]
    argument.set_type(ir.Type.parse("!llvm.ptr"))
    if others:
        with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
            value = ir.Operation.create("llvm.load", [type_], [argument]).results[0]
        for use in others:
            use.owner.operation.operands[use.operand_number] = value


@rules.on(_POINTER_TO)
def pointer_to(op: ir.OpView, cx: Cute) -> Replacement:
    """get_grid_constant_pointer(argument) => its address, in generic"""
    return op.operands[0]


@rules.on("cute_nvgpu.cast_tma_desc_to_integer")
def map_as_integer(op: ir.OpView, cx: Cute) -> Replacement:
    """cast_tma_desc_to_integer(m) => its address, in generic"""
    i64 = ir.IntegerType.get_signless(64)
    return cx.create("llvm.ptrtoint", [op.operands[0]], [i64]).result


@rules.on("cute_nvgpu.get_tma_desc_addr")
def map_address(op: ir.OpView, cx: Cute) -> Replacement:
    """get_tma_desc_addr(m) => its address; as i64 in generic, as a pointer in global memory, where
    maps are that a kernel makes
    """
    type_ = cx.type(op.results[0].type)
    if isinstance(type_, ir.IntegerType):
        return map_as_integer(op, cx)
    if is_parameter(op.operands[0]):
        raise cx.error("is of a parameter, which has no address in global memory: ask for i64")
    return cx.create("llvm.addrspacecast", [op.operands[0]], [type_]).result


def is_parameter(map_: ir.Value) -> bool:
    """Whether a tensor map is, or may be, a parameter of a function, which nobody can write to."""
    return isinstance(map_.owner, ir.Block)

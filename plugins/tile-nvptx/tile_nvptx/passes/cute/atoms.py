"""Atoms as values: instructions with what is bound to them, a tensor map, an mbarrier, scales.

An atom of a copy by a tensor map is executable once its mbarrier is bound; before, and of copies
out of shared memory always, there is none.
"""

from __future__ import annotations

from collections.abc import Mapping

from tile_cute import int_tuple as it
from tile_cute.dialect.base import attributes_of, operand_of
from tile_cute.dialect.kinds import ATOM, family_of
from tile_cute.dialect.nvgpu_ops import copy_atom, mma_atom
from tile_cute.values import Value, View

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.cute.instructions import scales_of
from tile_nvptx.passes.cute.numbers import Number, constant
from tile_nvptx.passes.cute.offsets import Offsets
from tile_nvptx.passes.cute.products import store_elements
from tile_nvptx.passes.cute.tensor_maps import load_box, store_box
from tile_nvptx.passes.cute.tensor_memory import load_tensor_memory, store_tensor_memory
from tile_nvptx.passes.cute.tensors import (
    Cute,
    addresses_of,
    atom_fields,
    atom_type,
    base_of,
    element_bits,
    is_map,
    outer_of,
    packed,
    rules,
    static_tensor,
    value_of,
    values_of,
)


def make(op: ir.OpView, cx: Cute, values: Mapping[str, ir.Value]) -> ir.Value:
    """The atom that is the operation's result, with these values; the others are null."""
    kind = op.results[0].type
    fields = atom_fields(kind)
    items = []
    for name, type_ in fields:
        null = ir.Type.parse(type_)
        value = values.get(name) or cx.create("llvm.mlir.zero", [], [null]).result
        if str(value.type) != type_:
            raise cx.error(f"binds {name} as {type_}, but got {value.type}")
        items.append(value)
    return packed(cx, items, atom_type(fields))


def _shared(cx: Cute, place: ir.Value) -> ir.Value:
    """An address of shared memory, which may come as a number."""
    if isinstance(place.type, ir.IntegerType):
        return cx.create("llvm.inttoptr", [place], [ir.Type.parse("!llvm.ptr<3>")]).result
    return base_of(cx, place)


@rules.on("cute_nvgpu.atom_make_tma_load", "cute_nvgpu.atom_make_tma_store",
          "cute_nvgpu.atom_make_tma_reduce", "cute_nvgpu.atom_make_non_exec_tiled_tma_load",
          "cute_nvgpu.atom_make_non_exec_tiled_tma_store",
          "cute_nvgpu.atom_make_non_exec_tiled_tma_reduce")  # fmt: skip
def make_tma(op: ir.OpView, cx: Cute) -> Replacement:
    """atom_make_tma_load(m, b) => the map and the mbarrier; the others have the map alone"""
    map_, *barrier = op.operands
    values = {"map": map_}
    if barrier:
        values["barrier"] = _shared(cx, barrier[0])
    return make(op, cx, values)


@rules.on("cute_nvgpu.atom_make_exec_tma")
def make_executable(op: ir.OpView, cx: Cute) -> Replacement:
    """atom_make_exec_tma(a, b) => the atom with its mbarrier; of stores and reductions, the atom"""
    values = values_of(cx, op.operands[0])
    if len(op.operands) > 1:
        values["barrier"] = _shared(cx, op.operands[1])
    return make(op, cx, values)


@rules.on("cute_nvgpu.atom_make_s2t_copy")
def make_s2t(op: ir.OpView, cx: Cute) -> Replacement:
    """atom_make_s2t_copy(d) => the descriptor of shared memory"""
    return make(op, cx, {"descriptor": op.operands[0]})


@rules.on("cute_nvgpu.atom_make_tmem_copy")
def make_tmem(op: ir.OpView, cx: Cute) -> Replacement:
    """atom_make_tmem_copy(t) => nothing: the instruction's name says all of it"""
    return make(op, cx, {})


@rules.on("cute_nvgpu.make_sm120_mma_bs")
def make_scaled(op: ir.OpView, cx: Cute) -> Replacement:
    """make_sm120_mma_bs(sa, sb) {byte_a, byte_b} => the words with the scales of A and B, which
    begin there
    """
    fields = [name for name, _ in atom_fields(op.results[0].type)]
    if fields != ["scale_a", "scale_b"]:
        raise cx.error(f"binds scales to an atom that takes none: {op.results[0].type}")
    found = scales_of(op, cx, mma_atom(instruction_of(op.results[0].type)))
    numbers = Offsets(cx)
    words = [
        cx.create("arith.shrui", [word, numbers.constant(8 * byte)], [numbers.i32]).result
        for word, byte in zip(op.operands, (found.byte_a, found.byte_b), strict=True)
    ]
    return make(op, cx, dict(zip(fields, words, strict=True)))


@rules.on("cute_nvgpu.atom_get_value")
def get_value(op: ir.OpView, cx: Cute) -> Replacement:
    """atom_get_value(a) {field} => what the atom holds by that name"""
    values = values_of(cx, op.operands[0])
    field = attributes_of(op).get("field")
    if field not in values:
        held = ", ".join(values) or "nothing"
        raise cx.error(f"expects 'field', one of what the atom holds ({held}), but got {field}")
    kind = op.results[0].type
    if values[field].type != cx.type(kind) or is_map(kind) != (field == "map"):
        raise cx.error(f"gives {field} as {values[field].type}, but its type is {kind}")
    return values[field]


@rules.on("cute_nvgpu.atom_tma_partition")
def partition(op: ir.OpView, cx: Cute) -> Replacement:
    """A part of a tensor map's tensor is a coordinate, which its copies take"""
    raise cx.error(
        "makes a tensor of coordinates, of which no part can be addressed: give the copy the "
        "cute.coord where its box begins"
    )


# --- copies by atoms -----------------------------------------------------------------------------


def is_tma(type_: ir.Type) -> bool:
    """Whether a type is that of atoms of copies by tensor maps."""
    return any(name == "map" for name, _ in atom_fields(type_))


def copy_box(op: ir.OpView, cx: Cute) -> None:
    """copy(atom, c, s) => the box of a tensor map that begins at a coordinate; one thread

    The coordinate's modes are those of the map's box, the innermost one last.
    """
    if len(op.operands) > 3:
        raise cx.error("has no predicate: tensor maps clip what lies outside")
    atom, sides = op.operands[0], list(op.operands[1:3])
    instruction, bound = instruction_of(cx.before(atom)), values_of(cx, atom)
    if "barrier" in bound and _is_unbound(atom):
        raise cx.error("copies by an atom without an mbarrier: bind one by atom_make_exec_tma")
    where = value_of(cx, sides[0] if "barrier" in bound else sides[1])
    place = base_of(cx, sides[1] if "barrier" in bound else sides[0])
    assert isinstance(where, Value), "verified"
    i32 = ir.IntegerType.get_signless(32)
    coordinates = [
        Offsets(cx).number(one.value) if isinstance(one, Number) else constant(cx, int(one), i32)  # type: ignore[call-overload]
        for one in reversed(it.flatten(where.value))
    ]
    if "barrier" in bound:
        load_box(cx, instruction, place, bound["map"], bound["barrier"], coordinates)
    else:
        store_box(cx, instruction, bound["map"], place, coordinates)


def _is_unbound(atom: ir.Value) -> bool:
    """Whether the last value of an atom is null, as far as it can be followed."""
    owner = atom.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "llvm.insertvalue":
        return False
    inserted = owner.operation.operands[1].owner
    return not isinstance(inserted, ir.Block) and inserted.operation.name == "llvm.mlir.zero"


def is_tensor_memory(type_: ir.Type) -> bool:
    """Whether a type is that of atoms of `tcgen05.ld` and `tcgen05.st`."""
    return family_of(type_) in ("tcgen05.ld", "tcgen05.st")


def copy_tensor_memory(op: ir.OpView, cx: Cute) -> None:
    """copy(atom, t, r) => tcgen05.ld or .st of one warp, and the wait for it

    What registers get follows from the instruction and from where the tensor in tensor memory
    begins, not from its layout.
    """
    if len(op.operands) > 3:
        raise cx.error("has no predicate: all lanes of a warp take part")
    atom = copy_atom(instruction_of(cx.before(op.operands[0])))
    loads = atom.family == "tcgen05.ld"
    memory, registers = op.operands[1:3] if loads else (op.operands[2], op.operands[1])
    views = [operand_of(cx.before(memory)), static_tensor(cx, registers)]
    spaces = [view.space for view in views if isinstance(view, View)]
    count = atom.bits // element_bits(views[1], cx)  # type: ignore[arg-type]
    if spaces != ["tmem", "rmem"] or outer_of(views[1]).size != count:  # type: ignore[arg-type]
        raise cx.error(
            f"moves {count} elements between tmem and rmem, but got {views[0]} and {views[1]}"
        )
    kind = ir.VectorType.get([count], ir.Type.parse(views[1].element))  # type: ignore[union-attr]
    if loads:
        value = load_tensor_memory(cx, atom, base_of(cx, memory), kind)
        store_elements(cx, value, addresses_of(cx, registers))
        return
    items = [
        cx.create("llvm.load", [place], [kind.element_type]).result
        for place in addresses_of(cx, registers)
    ]
    value = cx.create("vector.from_elements", items, [kind]).result
    store_tensor_memory(cx, atom, value, base_of(cx, memory))


def instruction_of(type_: ir.Type) -> str:
    """The instruction that an atom's type names."""
    match = ATOM.fullmatch(str(type_))
    assert match is not None, "verified"
    return match[1]

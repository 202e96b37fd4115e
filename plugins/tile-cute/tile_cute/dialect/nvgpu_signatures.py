"""What operands and results of cute_nvgpu's operations are: one table, and the check that reads it.

Sources: pages 036, 039 and 041 of the specification; ranks and sizes are those of the PTX ISA.
"""

import re
from collections.abc import Callable

from tile_core.mlir import ir
from tile_cute.atoms.tma import check_mutable
from tile_cute.dialect.base import attributes_of, operand_of
from tile_cute.dialect.kinds import TMA, family_of
from tile_cute.dialect.signatures import Signatures
from tile_cute.errors import LayoutError
from tile_cute.values import View

_ELEMENT = re.compile(r"!cute_nvgpu\.tma_descriptor_\w+<([^,]+),")
_MAP = re.compile(r'!cute_nvgpu\.tma_descriptor_\w+<"?([^,"]+)"?, "(\d+(?:x\d+)*)", "(\w+)">')
_RANK = re.compile(r"\.tensor\.(\d)d\.")

#: Operation -> kinds of its operands, kinds of its results. A kind in brackets is an atom of that
#: family, one with `?` may be missing, one with `*` may come any number of times.
SIGNATURES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "arch_copy_sm80_cp_async": (("shared", "global", "i32?"), ()),
    "arch_copy_sm100_copy_s2t": (("tensor", "descriptor"), ()),
    "arch_copy_sm100_tma_load": (("shared", "map", "shared", "i32*"), ()),
    "arch_copy_sm100_tma_store": (("map", "shared", "i32*"), ()),
    "arch_copy_sm100_tma_reduce": (("map", "shared", "i32*"), ()),
    "arch_alloc_rmem": ((), ("registers",)),
    "arch_alloc_smem": ((), ("shared view",)),
    "arch_get_dyn_smem": ((), ("shared pointer",)),
    "arch_get_dyn_smem_size": ((), ("i32",)),
    "arch_make_warp_uniform": (("number",), ("number",)),
    "arch_prefetch_tma_desc": (("map",), ()),
    "arch_sm100_alloc_tmem": (("shared", "i32"), ()),
    "arch_sm100_dealloc_tmem": (("tensor", "i32"), ()),
    "arch_sm100_relinquish_tmem_alloc_permit": ((), ()),
    "arch_sm100_retrieve_tmem_ptr": (("shared",), ("tensor",)),
    "atom_get_value": (("atom",), ("any",)),
    "atom_get_copy_s2t_smem_desc_view": (("[tcgen05.cp]", "shared view"), ("descriptors",)),
    "atom_make_exec_tma": (
        ("[tma load|tma store|tma reduce]", "shared?"), ("[tma load|tma store|tma reduce]",),
    ),
    "atom_make_non_exec_tiled_tma_load": (("tiled map",), ("[tma load]",)),
    "atom_make_non_exec_tiled_tma_store": (("tiled map",), ("[tma store]",)),
    "atom_make_non_exec_tiled_tma_reduce": (("tiled map",), ("[tma reduce]",)),
    "atom_make_tma_load": (("map", "shared"), ("[tma load]",)),
    "atom_make_tma_store": (("map",), ("[tma store]",)),
    "atom_make_tma_reduce": (("map",), ("[tma reduce]",)),
    "atom_make_s2t_copy": (("descriptor",), ("[tcgen05.cp]",)),
    "atom_make_tmem_copy": (("tensor view",), ("[tcgen05.ld|tcgen05.st]",)),
    "atom_tma_partition": (("any", "any"), ("view",)),
    "make_sm120_mma_bs": (("i32", "i32"), ("atom",)),
    "make_tma_desc_tiled": (("global view",), ("tiled map",)),
    "make_tma_desc_tiled_at": (("global view", "global"), ()),
    "make_tma_desc_im2col": (("global view",), ("im2col map",)),
    "make_tma_desc_im2col_at": (("global view", "global"), ()),
    "prefetch_tma_desc": (("map",), ()),
    "update_tma_desc": (("map", "integer"), ()),
    "copy_tma_desc": (("map", "map"), ()),
    "get_tma_desc_addr": (("map",), ("global",)),
    "cast_tma_desc_to_integer": (("map",), ("i64",)),
    "get_grid_constant_pointer": (("any",), ("pointer",)),
}  # fmt: skip


# --- what several values have to do with each other ----------------------------------------------


def _same_type(op: ir.OpView) -> None:
    before, after = op.operation.operands[0].type, op.operation.results[0].type
    if before != after:
        raise LayoutError(f"expects the result to be {before}, but got {after}")


def _coordinates(first: int) -> Callable[[ir.OpView], None]:
    """As many coordinates, from operand `first` on, as the instruction has dimensions."""

    def check(op: ir.OpView) -> None:
        instruction = attributes_of(op).get("atom", "")
        match = _RANK.search(instruction)
        rank = int(match[1]) if match else 0
        if "gather4" in instruction or "scatter4" in instruction:
            rank = 5  # a column, and four rows
        found = len(op.operation.operands) - first
        if ".multicast::cluster" in instruction:
            if found == rank:
                raise LayoutError("missing or invalid num_multicast for a multicast TMA load")
            found -= 1  # the mask of blocks
        if rank and found != rank:
            raise LayoutError(f"expects {rank} coordinates, but got {found}")

    return check


def _elements(op: ir.OpView) -> None:
    """The map's elements are those of the view."""
    view = operand_of(op.operation.operands[0].type)
    element = _ELEMENT.match(str(op.operation.results[0].type))
    if isinstance(view, View) and element is not None and element[1].strip(' "') != view.element:
        raise LayoutError(
            f"expects a tensor map of {view.element}, but got one of {element[1].strip()}"
        )


def _same_instruction(op: ir.OpView) -> None:
    """Binding a barrier leaves the instruction; a load needs one, and nothing else has one."""
    _same_type(op)
    loads = family_of(op.operation.operands[0].type) == "tma load"
    if loads != (len(op.operation.operands) == 2):
        raise LayoutError("expects a barrier for a load, and none for a store or reduction")


def _partitioned(op: ir.OpView) -> None:
    """A block's part of a tensor has its elements and is where that is."""
    atom, tensor = (operand.type for operand in op.operation.operands)
    view, result = operand_of(tensor), operand_of(op.operation.results[0].type)
    if family_of(atom) not in TMA or not isinstance(view, View):
        raise LayoutError(f"invalid operand types, got {atom} and {tensor}")
    if not isinstance(result, View) or (result.element, result.space) != (view.element, view.space):
        raise LayoutError(f"Failed to construct the TMA tensor type of {view}, got {result}")


def map_of(type_: ir.Type) -> tuple[str, tuple[int, ...], str]:
    """(element, box, swizzle) of a tensor map's type; the box's innermost extent is the last."""
    match = _MAP.fullmatch(str(type_))
    if match is None:
        raise LayoutError(f"expects a tensor map of element, box and swizzle, but got {type_}")
    return match[1], tuple(map(int, match[2].split("x"))), match[3]


def _made_at(op: ir.OpView) -> None:
    """`map` is the type of the map that comes to stand there."""
    kind = op.operation.attributes.get("map")
    if not isinstance(kind, ir.TypeAttr):
        raise LayoutError("expects 'map', the type of the tensor map")
    view, (element, _, _) = operand_of(op.operation.operands[0].type), map_of(kind.value)
    if isinstance(view, View) and element != view.element:
        raise LayoutError(f"expects a tensor map of {view.element}, but got one of {element}")


def _mutable(op: ir.OpView) -> None:
    field, axis = attributes_of(op).get("field"), int(attributes_of(op).get("axis", 0))
    if not isinstance(field, str):
        raise LayoutError("expects 'field', the name of what changes")
    check_mutable(field, axis)
    rank = len(map_of(op.operation.operands[0].type)[1])
    if not 0 <= axis < rank:
        raise LayoutError(f"expects an axis of the map's {rank}, but got {axis}")


def _columns(op: ir.OpView) -> None:
    """A number of columns that is known is a power of two from 32 to 512."""
    owner = op.operation.operands[1].owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return
    columns = ir.IntegerAttr(owner.operation.attributes["value"]).value
    if not 32 <= columns <= 512 or columns & (columns - 1):
        raise LayoutError(f"expects a power of two from 32 to 512 columns, but got {columns}")


_RELATIONS: dict[str, Callable[[ir.OpView], None]] = {
    "arch_make_warp_uniform": _same_type,
    "arch_copy_sm100_tma_load": _coordinates(3),
    "arch_copy_sm100_tma_store": _coordinates(2),
    "arch_copy_sm100_tma_reduce": _coordinates(2),
    "arch_sm100_alloc_tmem": _columns,
    "arch_sm100_dealloc_tmem": _columns,
    "make_tma_desc_tiled": _elements,
    "make_tma_desc_tiled_at": _made_at,
    "make_tma_desc_im2col": _elements,
    "atom_make_exec_tma": _same_instruction,
    "atom_tma_partition": _partitioned,
    "update_tma_desc": _mutable,
}

#: All of them.
CHECKS = Signatures(SIGNATURES, _RELATIONS)

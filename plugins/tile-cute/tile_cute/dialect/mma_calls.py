"""What cute.mma_atom_call asks of its operands, by the family of the instruction."""

from collections.abc import Mapping

from tile_core.mlir import ir
from tile_cute import int_tuple as it
from tile_cute.atoms import MmaAtom
from tile_cute.dialect.base import operand_of
from tile_cute.dialect.nvgpu_ops import check_element, count_of, mma_atom
from tile_cute.errors import LayoutError
from tile_cute.swizzle import ComposedLayout
from tile_cute.values import View


def check_mma_call(instruction: str, types: Mapping[str, ir.Type]) -> None:
    """LayoutError unless tensors with these types are what one instruction takes.

    Args:
        types: of D, A, B and C.
    """
    atom = mma_atom(instruction)
    warp = atom.family.startswith("mma.")
    views: dict[str, View] = {}
    for name, type_ in types.items():
        view = operand_of(type_)
        if isinstance(view, View):
            views[name] = view
        elif warp:
            raise LayoutError(f"expects all mma operands to have element type, but got {type_}")
        elif name in "CD":
            raise LayoutError(f"expects memref for operand {name}, but gets {name}: {type_}.")
        else:
            raise LayoutError(f"expects {name} to be a cute.memref, but got {type_}")
    for name in "ABCD":
        check_element(atom, name.lower(), views[name].element)
    if warp:
        _check_fragments(atom, views)


def _check_fragments(atom: MmaAtom, views: Mapping[str, View]) -> None:
    """Operands of one warp: static registers, each with what the instruction takes of a thread."""
    for name in "ABCD":
        if views[name].space != "rmem":
            raise LayoutError(f"expects rmem for input operands, but got {name}: {views[name]}")
    layouts = {name: view.layout for name, view in views.items()}
    listed = ", ".join(f"{name}: {layouts[name]}" for name in "ABD")
    for name, layout in layouts.items():
        outer = layout.outer if isinstance(layout, ComposedLayout) else layout
        if not it.is_static((outer.shape, outer.stride)) or outer.has_basis:
            raise LayoutError(f"expects static and no scaled basis layout for {name}, got {listed}")
    for name in "ABCD":
        layout = layouts[name]
        outer = layout.outer if isinstance(layout, ComposedLayout) else layout
        count = count_of(atom, name)
        if outer[0].size != count:
            raise LayoutError(
                f"invalid layout of A/B/D. {listed}: '{atom.instruction}' has {count} elements of "
                f"{name} per thread"
            )

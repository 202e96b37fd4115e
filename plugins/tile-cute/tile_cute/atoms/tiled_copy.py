"""Tiled copies: one copy instruction, repeated over threads and values until it fills a tile.

`!cute.tiled_copy<"cp.async.ca.shared.global", "(32,8):(8,1)", "(8,32)">` names the instruction,
the layout (thread, value) -> index into the tile, and the tile's shape. The layout says what a
thread has in registers; where an instruction gathers its addresses from other threads than those
that get the values (`ldmatrix`), the part of memory that a thread names follows from it.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from tile_cute import int_tuple as it
from tile_cute.atoms.records import REGISTERS, CopyAtom
from tile_cute.atoms.registry import copy_forms
from tile_cute.errors import LayoutError
from tile_cute.layout import Layout, concat, from_leaves
from tile_cute.layout_algebra import coalesce, composition, right_inverse
from tile_cute.linear.layout import LinearLayout
from tile_cute.text import parse_int_tuple, parse_layout
from tile_cute.tiling import logical_divide, logical_product, zipped_divide

_SIDES = ("source", "target")


@dataclass(frozen=True)
class CopyLayouts:
    """What threads of one instruction have, in elements: (thread, value) -> index.

    Attributes:
        memory: what a thread's address names.
        registers: what a thread's registers hold; as `memory` for copies without registers.
    """

    memory: Layout
    registers: Layout

    def of(self, atom: CopyAtom, side: str) -> Layout:
        """The layout of the "source" or the "target"."""
        place = atom.source if side == "source" else atom.target
        return self.registers if place == REGISTERS else self.memory


def copy_layouts(atom: CopyAtom, bits: int) -> CopyLayouts:
    """The layouts of an instruction that moves elements of `bits` bits.

    Raises:
        LayoutError: elements that it would tear, and instructions without such layouts (copies by
            tensor maps, and those of tensor memory).
    """
    if atom.family in ("vector", "cp.async"):
        if atom.bits % bits:
            raise LayoutError(f"'{atom.instruction}' moves {atom.bits} bits, no elements of {bits}")
        own = Layout((1, atom.bits // bits), (0, 1))
        return CopyLayouts(own, own)
    if atom.family not in ("ldmatrix", "stmatrix") or atom.fragment is None:
        raise LayoutError(f"'{atom.instruction}' does not copy tiles thread by thread")
    if atom.addresses is None or atom.element_bits % bits:
        raise LayoutError(
            f"'{atom.instruction}' moves elements of {atom.element_bits} bits, not of {bits}"
        )
    factor = atom.element_bits // bits
    row = atom.fragment.shape[-1] * factor
    inside = _bits_of(atom.fragment, "register", factor)
    values = [(2, 1 << bit) for bit in range(factor.bit_length() - 1)] + inside
    memory = [_joined(_bits_of(atom.addresses, "lane", factor, row)), Layout(row)]
    registers = [_joined(_bits_of(atom.fragment, "lane", factor)), _joined(values)]
    return CopyLayouts(concat(memory), concat(registers))


def _bits_of(
    layout: LinearLayout, space: str, factor: int, columns: int = 0
) -> list[tuple[int, int]]:
    """(2, what the bit adds to the index in the matrices, row by row) of each bit of a space."""
    shape = list(layout.shape)
    shape[-1] = columns // factor if columns else shape[-1]
    steps = [prod(shape[at + 1 :]) * factor for at in range(len(shape))]
    return [
        (2, sum(c * s for c, s in zip(basis, steps, strict=True))) for basis in layout.bases[space]
    ]


def _joined(leaves: list[tuple[int, int]]) -> Layout:
    return coalesce(from_leaves(leaves))  # type: ignore[arg-type]


@dataclass(frozen=True)
class TiledCopy:
    """An instruction, the layout (thread, value) -> index in the tile, the tile's shape."""

    atom: CopyAtom
    layout: Layout
    tile: tuple[int, ...]

    def part(self, tensor: Layout, side: str, bits: int) -> tuple[Layout, Layout]:
        """(thread -> offset, what each thread has) of a tensor of elements of `bits` bits.

        What a thread has is ((values of an instruction, instructions), rest, ...).

        Raises:
            LayoutError: a tile that does not divide the tensor, or cannot be shared so.
        """
        if side not in _SIDES:
            raise LayoutError(f"a copy has a source and a target, no '{side}'")
        if len(tensor) != len(self.tile):
            raise LayoutError(f"expects a tensor of {len(self.tile)} modes, but got {tensor}")
        tiles, rests = zipped_divide(tensor, tuple(self.tile))
        threads, values = self._shared(side, bits)
        whole = composition(tiles, concat([threads, values]))
        self._check_alignment(whole[0], tensor, side, bits)
        own = coalesce(whole[1], (1, 1))
        mode = own[0] if own[1].size == 1 else own
        return whole[0], concat([mode, *rests])

    def _check_alignment(self, threads: Layout, tensor: Layout, side: str, bits: int) -> None:
        """What an instruction accesses at once lies at a multiple of its size."""
        place = self.atom.source if side == "source" else self.atom.target
        step = self.atom.alignment * 8 // bits
        strides = [s.divby if isinstance(s, it.Dynamic) else s for _, s in threads.open_leaves()]
        if place != REGISTERS and any(stride % step for stride in strides):  # type: ignore[operator]
            raise LayoutError(
                f"cannot vectorize copy to {step} elements (static strides must match): threads "
                f"have {threads} of {tensor}"
            )

    def _shared(self, side: str, bits: int) -> tuple[Layout, Layout]:
        """(threads, (values, instructions)) -> index in the tile."""
        layouts = copy_layouts(self.atom, bits)
        reference = layouts.registers
        counts = reference[0].size, reference[1].size
        for name, mode, count in zip(("threads", "values"), self.layout, counts, strict=True):
            if mode.size % count:
                raise LayoutError(
                    f"'{self.atom.instruction}' takes {count} {name}, which does not divide the "
                    f"{mode.size} of {self.layout}"
                )
        threads, values = (
            logical_divide(mode, count) for mode, count in zip(self.layout, counts, strict=True)
        )
        one = concat([threads[0], values[0]])
        named = composition(right_inverse(reference), layouts.of(self.atom, side))
        moved = composition(one, named)
        return concat([moved[0], threads[1]]), concat([moved[1], values[1]])

    def retiled(self, fragment: Layout, bits: int) -> Layout:
        """A fragment ((values), rest, ...) of registers as the copy's values: ((values of an
        instruction, instructions), rest, ...).

        Raises:
            LayoutError: values of the fragment that are no part of the copy's tile.
        """
        count = copy_layouts(self.atom, bits).registers[1].size
        own, tile = fragment[0].size, prod(self.tile)
        threads = self.layout[0].size
        inverse = right_inverse(self.layout)
        if inverse.size != tile:
            raise LayoutError(f"expects {self.layout} to fill the tile {it.text(self.tile)}")
        # Which (thread, value) has an element, in units of the fragment's values: (m, n) -> unit.
        inverse = composition(inverse, Layout(self.tile))
        units = _whole_units(inverse, threads * own)
        if units.size != units.cosize:
            raise LayoutError(f"cannot retile {fragment} for {self.layout}: values are scattered")
        values = logical_product(Layout(own), right_inverse(units))
        order = zipped_divide(coalesce(values), Layout(count))
        extents = tuple(mode.size for mode in units)
        rest = concat(list(fragment)[1:])
        if len(rest) != len(extents):
            raise LayoutError(f"expects a fragment of {len(extents) + 1} modes, but got {fragment}")
        inner, outer = zipped_divide(concat([fragment[0], *rest]), (own, *extents))
        moved = coalesce(composition(inner, order), (1, 1))
        mode = moved[0] if moved[1].size == 1 else moved
        return concat([mode, *list(outer)[1:]])


def _whole_units(layout: Layout, factor: int) -> Layout:
    """A layout in units of `factor`, mode by mode; what lies inside of a unit goes."""
    modes = []
    for mode in layout:
        leaves = []
        for extent, stride in mode.int_leaves():
            if stride < factor:
                inside = min(extent, -(-factor // stride)) if stride else extent
                if extent % inside or (extent > inside and inside * stride != factor):
                    raise LayoutError(f"cannot count {layout} in units of {factor}")
                leaves.append((extent // inside, 1 if extent > inside else 0))
            elif stride % factor:
                raise LayoutError(f"cannot count {layout} in units of {factor}")
            else:
                leaves.append((extent, stride // factor))
        modes.append(coalesce(from_leaves(leaves)))
    return concat(modes)


@lru_cache(maxsize=256)
def tiled_copy(instruction: str, layout: str, tile: str, bits: int) -> TiledCopy:
    """The copy of a type's three texts, for elements of `bits` bits.

    `cp.async` comes in several sizes: the largest is taken that the values of the layout allow.

    Raises:
        LayoutError: an unknown instruction; a layout that is not (thread, value).
    """
    shared, shape = parse_layout(layout), parse_int_tuple(tile)
    if not isinstance(shared, Layout) or len(shared) != 2:
        raise LayoutError(f"expects a layout of threads and values, but got {layout}")
    extents = tuple(it.size(mode) for mode in it.modes(shape))
    return TiledCopy(copy_atom_for(instruction, shared[1].size * bits), shared, extents)


def copy_atom_for(instruction: str, bits: int) -> CopyAtom:
    """The widest form of an instruction that so many bits are a multiple of; the first if there is
    none. LayoutError for an unknown instruction.
    """
    found = copy_forms(instruction)
    fitting = [atom for atom in found if atom.bits and bits % atom.bits == 0]
    return max(fitting, key=lambda atom: atom.bits, default=found[0])

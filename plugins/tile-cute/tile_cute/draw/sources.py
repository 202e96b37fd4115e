"""From what a user names to grids: layouts, swizzles, linear layouts, atoms, accesses."""

from collections.abc import Callable

from tile_cute import gf2
from tile_cute.atoms import CopyAtom, MmaAtom, copy_atoms, mma_rows
from tile_cute.draw.grid import Cell, Grid
from tile_cute.errors import LayoutError
from tile_cute.layout import Layout
from tile_cute.linear import LinearLayout, memory_access
from tile_cute.linear.memory import BANKS, WORD_BYTES
from tile_cute.swizzle import ComposedLayout, Swizzle
from tile_cute.text import parse_layout, parse_swizzle

LIMIT = 1 << 16  # cells of one picture


def draw(source: str, *, operand: str = "", elem_bits: int = 0, access: str = "") -> list[Grid]:
    """The pictures of a layout, swizzle, linear layout or instruction, given as text.

    `operand` chooses among those of an MMA; with `elem_bits`, offsets are coloured by bank;
    `access` is a distributed layout whose accesses to the (offset) layout are counted.
    LayoutError if the text is none of these.
    """
    text = source.strip()
    if text.startswith(("S<", "Sw<")) and " o " not in text:
        return [_swizzle(parse_swizzle(text))]
    atom = _find_atom(text)
    if isinstance(atom, MmaAtom):
        return _mma(atom, operand)
    if atom is not None:
        return _copy(atom)
    if "=[" in text or text.endswith(": ()"):
        return _linear(LinearLayout.parse(text), elem_bits, access)
    if not text[:1].isdigit() and text[:1] not in ("(", "S"):
        raise LayoutError(f"'{text}' is no layout, swizzle or instruction of the registry")
    return [_cute(parse_layout(text), elem_bits)]


def _find_atom(text: str) -> MmaAtom | CopyAtom | None:
    for copy in copy_atoms():
        if copy.instruction == text:
            return copy
    for row in mma_rows():
        head = row.template.split("{", 1)[0]
        if text.startswith(head):
            for atom in row.atoms():
                if atom.instruction == text:
                    return atom
    return None


def _bank(offset: int, elem_bits: int) -> int:
    return offset * elem_bits // 8 // WORD_BYTES % BANKS


def _checked(size: int, what: object) -> None:
    if size > LIMIT:
        raise LayoutError(f"{what} has {size} elements; at most {LIMIT} can be drawn")


def _cute(layout: Layout | ComposedLayout, elem_bits: int) -> Grid:
    """Offsets over the first mode (rows) and the other modes (columns)."""
    plain = layout.outer if isinstance(layout, ComposedLayout) else layout
    _checked(plain.size, layout)
    rows = plain[0].size
    columns = plain.size // rows
    cells = []
    for i in range(rows):
        line = []
        for j in range(columns):
            value = layout(i + rows * j)
            group = value if isinstance(value, int) else 0
            line.append(Cell(str(value), _bank(group, elem_bits) if elem_bits else group))
        cells.append(tuple(line))
    notes = [f"size {plain.size}, cosize {layout.cosize}"] if not plain.has_basis else []
    if elem_bits:
        notes.append(f"coloured by bank, elements of {elem_bits} bits")
    return Grid(str(layout), tuple(cells), tuple(notes), "mode 0", "other modes")


def _swizzle(swizzle: Swizzle) -> Grid:
    """Which piece of 2^base elements lies where: rows of one source period."""
    columns = 1 << max(swizzle.bits, abs(swizzle.shift))
    rows = 1 << swizzle.bits
    piece = 1 << swizzle.base
    cells = tuple(
        tuple(
            Cell(str(swizzle((row * columns + column) * piece) // piece % columns), column)
            for column in range(columns)
        )
        for row in range(rows)
    )
    note = f"piece {piece} elements; the number is the column a piece moves to within its row"
    return Grid(str(swizzle), cells, (note,), "row", "piece")


def _linear(layout: LinearLayout, elem_bits: int, access: str) -> list[Grid]:
    _checked(layout.size, layout)
    if access:
        return [_access(layout, LinearLayout.parse(access), elem_bits or 32)]
    if layout.spaces == ("offset",):
        return _planes(layout, lambda p: str(p["offset"]), lambda p: _color(p, elem_bits), "offset")
    return _planes(layout, _owner_text, lambda p: p.get("lane", p.get("row", 0)), "holder")


def _color(point: dict[str, int], elem_bits: int) -> int:
    return _bank(point["offset"], elem_bits) if elem_bits else point["offset"]


def _owner_text(point: dict[str, int]) -> str:
    """T<thread>:<register>, or of tensor memory L<row>C<column> with the element of a column that
    several share; the block where there are several."""
    if "row" in point or "column" in point:
        place = f"L{point.get('row', 0)}C{point.get('column', 0)}"
        place += f".{point['element']}" if "element" in point else ""
    else:
        place = f"T{point.get('lane', 0) + 32 * point.get('warp', 0)}:{point.get('register', 0)}"
    return (f"B{point['block']} " if "block" in point else "") + place


def _planes(
    layout: LinearLayout,
    text: Callable[[dict[str, int]], str],
    group: Callable[[dict[str, int]], int],
    what: str,
    title: str = "",
) -> list[Grid]:
    """One grid per index of the leading dimensions; rows and columns are the last two."""
    holders = _holders(layout)
    shape = (1, 1, *layout.shape)[-2:]
    plane = shape[0] * shape[1]
    replicas = _replicas(layout)
    notes = (
        f"{what} of each element" + (f"; {replicas} copies, the first shown" * (replicas > 1)),
    )
    grids = []
    for first in range(0, layout.size, plane):
        cells = tuple(
            tuple(
                _cell(holders.get(first + i * shape[1] + j), text, group) for j in range(shape[1])
            )
            for i in range(shape[0])
        )
        lead = layout.unflatten(first)[:-2]
        suffix = f" [{','.join(map(str, lead))},:,:]" if lead else ""
        names = [f"dim{d}" for d in range(layout.rank)][-2:]
        labels = names if len(names) == 2 else ["", *names, ""][-2:]
        grids.append(Grid((title or str(layout)) + suffix, cells, notes, labels[0], labels[1]))
    return grids


def _cell(
    point: dict[str, int] | None,
    text: Callable[[dict[str, int]], str],
    group: Callable[[dict[str, int]], int],
) -> Cell:
    return Cell("", 0) if point is None else Cell(text(point), group(point))


def _holders(layout: LinearLayout) -> dict[int, dict[str, int]]:
    """Flat index of an element -> the first point (free bits 0) that holds it."""
    found: dict[int, dict[str, int]] = {0: dict.fromkeys(layout.spaces, 0)}
    for space in layout.spaces:
        free = layout.free_mask(space)
        values = gf2.table(layout.flat(space))
        grown = {}
        for element, point in found.items():
            for index, value in enumerate(values):
                if not index & free:
                    grown[element ^ value] = {**point, space: index}
        found = grown
    return found


def _replicas(layout: LinearLayout) -> int:
    return 1 << (len(layout.all_flat()) - layout.image_rank)


def _mma(atom: MmaAtom, operand: str) -> list[Grid]:
    layouts = {"a": atom.a_layout or atom.a_tensor_layout, "b": atom.b_layout, "c": atom.c_layout}
    layouts["metadata"] = atom.metadata_layout
    if atom.scale_layouts is not None:
        layouts["scale_a"], layouts["scale_b"] = atom.scale_layouts
    if operand and operand not in layouts:
        known = ", ".join(name for name, layout in layouts.items() if layout is not None)
        raise LayoutError(f"{atom} has no operand '{operand}'; it has {known}")
    grids = []
    for name, layout in layouts.items():
        if layout is not None and operand in ("", name):
            title = f"{name.upper()} of {atom}"
            grids += _planes(
                layout, _owner_text, lambda p: p.get("lane", p.get("row", 0)), "holder", title
            )
    if not grids:
        raise LayoutError(f"operand {operand or 'a, b, c'} of {atom} has no bit layout to draw")
    return grids


def _copy(atom: CopyAtom) -> list[Grid]:
    if atom.fragment is None:
        raise LayoutError(
            f"{atom} moves {atom.bits // 8 or 'any number of'} bytes of one thread as they lie; "
            "there is no fragment to draw"
        )
    title = f"fragment of {atom}"
    return _planes(atom.fragment, _owner_text, lambda p: p.get("lane", 0), "holder", title)


def _access(shared: LinearLayout, tile: LinearLayout, elem_bits: int) -> Grid:
    """Banks that the lanes of warp 0 touch in the first access, and the wavefronts of all."""
    side = memory_access(shared, tile, elem_bits)
    size = elem_bits // 8
    first = side.accesses[0][0]
    cells: list[list[Cell]] = []
    busy: dict[int, int] = {}
    for lane in range(tile.in_size("lane")):
        start = (side.thread_offset(lane, 0) ^ first.offset) * size
        bank = start // WORD_BYTES % BANKS
        row = busy.get(bank, 0)
        busy[bank] = row + 1
        while len(cells) <= row:
            cells.append([Cell("", 0)] * BANKS)
        cells[row][bank] = Cell(f"T{lane}", lane)
    notes = (
        f"{len(side.accesses[0])} accesses of {side.vector * size} bytes per thread, "
        f"{side.wavefronts} wavefronts per warp (without conflicts {side.ideal})",
    )
    return Grid(
        "first access: lanes by the bank their data begins in",
        tuple(map(tuple, cells)),
        notes,
        "",
        "bank",
    )

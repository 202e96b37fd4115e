"""permute, cat, extract_slice and insert_slice: which registers go where, or a way through shared
memory.
"""

from __future__ import annotations

from itertools import product

from tile_cute.linear import LayoutError, LinearLayout, subtile, subtile_registers
from tile_tileas.stages import offset_of, part_access, turns_bytes
from tile_tileas.storage import row_major

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.rules.buffers import is_buffer, layout_in_memory
from tile_nvptx.passes.tileas.rules.dot_operands import read_part
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.row_major import flat_indices
from tile_nvptx.passes.tileas.thread.shared import SharedBuffer
from tile_nvptx.passes.tileas.thread.state import Kernel, tile_layout
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, storage_type, vector_of

_HINT = "takes what other threads hold; run 'tileas-materialize-convert-layout' before"


@rules.on("nv_tileaa.permute")
def permute(op: ir.OpView, cx: Kernel) -> ir.Value:
    """permute => the same registers; the layout says that axes have changed places"""
    return op.operands[0]


@rules.on("nv_tileas.cat")
def cat(op: ir.OpView, cx: Kernel) -> ir.Value:
    """cat => each register of the result comes from one of the operands"""
    part, result = tile_layout(cx, op.operands[0]), tile_layout(cx, op.results[0])
    axis = ir.IntegerAttr(op.attributes["axis"]).value
    half = part.shape[axis]
    place = {coords: at for at, coords in reversed(list(enumerate(part.coords("register"))))}
    picks = []
    for coords in result.coords("register"):
        which, inside = divmod(coords[axis], half)
        own = place[(*coords[:axis], inside, *coords[axis + 1 :])]
        picks.append(which * part.elements_per_thread + own)
    return Builder(cx).shuffle(op.operands[0], picks, op.operands[1])


@rules.on("nv_tileas.extract_slice")
def extract_slice(op: ir.OpView, cx: Kernel) -> ir.Value:
    """extract_slice => registers picked by the index, or a slice read from shared memory"""
    result = tile_layout(cx, op.results[0])
    if is_buffer(cx, op.operands[0]):
        memory, places = layout_in_memory(cx, op.operands[0]), _constants(op)
        if places is not None:
            return _read_known(op, cx, memory, result, places)
        return _read(op, cx, memory, result)
    source = tile_layout(cx, op.operands[0])
    if subtile(source, result.shape) != result:
        raise error_at(op, _HINT)
    return _pick(op, cx, source, result)


def _pick(op: ir.OpView, cx: Kernel, source: LinearLayout, result: LinearLayout) -> ir.Value:
    """Halve the candidates with each bit of an index; constant bits cost nothing."""
    grid = [whole // part for whole, part in zip(source.shape, result.shape, strict=True)]
    order: list[int] = []
    for place in product(*map(range, grid)):  # the last axis varies fastest
        offset = [i * extent for i, extent in zip(place, result.shape, strict=True)]
        order += subtile_registers(source, result.shape, offset)[: result.elements_per_thread]
    value = Builder(cx).shuffle(op.operands[0], order)
    for axis, count in enumerate(grid):
        value = _choose(cx, value, op.operands[1 + axis], count)
    return value


def _choose(cx: Kernel, value: ir.Value, index: ir.Value, count: int) -> ir.Value:
    """Part `index` of the `count` equal parts of a fragment; taken modulo `count`."""
    b, known = Builder(cx), _constant(index)
    while count > 1:
        count //= 2
        half = count_of(value.type) // 2
        low, high = b.shuffle(value, range(half)), b.shuffle(value, range(half, 2 * half))
        if known is not None:
            value = high if known & count else low
            continue
        flag = b.compare(1, b.with_constant("andi", index, count), b.constant(0, index.type))
        value = cx.create("llvm.select", [flag, high, low], [low.type]).result
    return value


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return ir.IntegerAttr(owner.attributes["value"]).value


def _constants(op: ir.OpView) -> list[int] | None:
    """The indices of a slice, if all are known here."""
    found = [_constant(index) for index in list(op.operands)[1:]]
    return [at for at in found if at is not None] if None not in found else None


def _read_known(
    op: ir.OpView, cx: Kernel, memory: LinearLayout, result: LinearLayout, places: list[int]
) -> ir.Value:
    """A slice that begins at a place known here, of a buffer in any layout: it lies where the first
    one does, with offsets XORed.
    """
    corner = tuple(
        at % (whole // part) * part
        for at, whole, part in zip(places, memory.shape, result.shape, strict=True)
    )
    element = element_of(cx.type(op.results[0].type))
    stored = storage_type(element)
    first = LinearLayout(dict(result.bases), memory.shape)
    try:
        side = part_access(memory, first, stored.width, turns_bytes=turns_bytes(cx.target.chip))
    except LayoutError as error:
        raise error_at(op, f"cannot read a buffer: {error}") from error
    where = SharedBuffer(cx, op.operands[0], stored)
    return read_part(cx, where, side, first, element, offset_of(memory, corner))


def _read(op: ir.OpView, cx: Kernel, memory: LinearLayout, result: LinearLayout) -> ir.Value:
    """Every thread reads its elements from the source in row-major order in shared memory."""
    _expect_row_major(op, memory)
    b = Builder(cx)
    element = element_of(cx.type(op.results[0].type))
    stored = storage_type(element)
    size = stored.width // 8
    pointer = b.offset(op.operands[0], _origin(op, cx, memory, result), stored)
    loaded = []
    for index in flat_indices(cx, result, memory.shape):
        place = b.offset(pointer, index, stored)
        loaded.append(b.load(place, vector_of(1, stored), size))
    return b.from_storage(b.concat(loaded), element)


def _expect_row_major(op: ir.OpView, memory: LinearLayout) -> None:
    if memory != row_major(memory.shape):
        raise error_at(op, f"reads slices of row-major buffers only, not of {memory}")


def _origin(op: ir.OpView, cx: Kernel, source: LinearLayout, result: LinearLayout) -> ir.Value:
    """Row-major index, in the source, of the slice's first element, i32; in bounds always."""
    b, step, total = Builder(cx), 1, Builder(cx).constant(0)
    for axis in reversed(range(source.rank)):
        count = source.shape[axis] // result.shape[axis]
        if count > 1:
            inside = b.with_constant("andi", op.operands[1 + axis], count - 1)
            moved = b.with_constant("muli", inside, step * result.shape[axis])
            total = b.binary("addi", total, moved)
        step *= source.shape[axis]
    return total


@rules.on("nv_tileas.insert_slice")
def insert_slice(op: ir.OpView, cx: Kernel) -> ir.Value:
    """insert_slice => registers replaced where the index says so, or read from shared memory"""
    whole = tile_layout(cx, op.operands[1])
    if is_buffer(cx, op.operands[0]):
        return _merge(op, cx, layout_in_memory(cx, op.operands[0]), whole)
    source = tile_layout(cx, op.operands[0])
    if subtile(whole, source.shape) != source:
        raise error_at(op, _HINT)
    return _replace(op, cx, source, whole)


def _replace(op: ir.OpView, cx: Kernel, source: LinearLayout, whole: LinearLayout) -> ir.Value:
    """Every slice of the tile that a thread holds, or the new one in its place."""
    b, value = Builder(cx), op.operands[1]
    count = whole.elements_per_thread
    grid = [all_ // part for all_, part in zip(whole.shape, source.shape, strict=True)]
    for place in product(*map(range, grid)):
        flag = _is_at(op, cx, place, grid)
        if flag is False:
            continue
        offset = [i * extent for i, extent in zip(place, source.shape, strict=True)]
        registers = subtile_registers(whole, source.shape, offset)
        moved = list(range(count))
        for at, register in enumerate(registers):
            moved[register] = count + at
        new = b.shuffle(value, moved, _padded_to(cx, op.operands[0], count))
        if flag is not True:
            new = cx.create("llvm.select", [flag, new, value], [value.type]).result
        value = new
    return value


def _padded_to(cx: Kernel, value: ir.Value, count: int) -> ir.Value:
    """A fragment with registers that nobody reads behind it."""
    own = count_of(value.type)
    return Builder(cx).shuffle(value, [min(at, own - 1) for at in range(count)])


def _is_at(op: ir.OpView, cx: Kernel, place: tuple[int, ...], grid: list[int]) -> ir.Value | bool:
    """Whether the indices, taken modulo the grid, are `place`: known here, or an i1."""
    b, flags = Builder(cx), []
    for axis, wanted in enumerate(place):
        index = op.operands[2 + axis]
        known = _constant(index)
        if known is not None and known % grid[axis] != wanted:
            return False
        if known is None and grid[axis] > 1:
            inside = b.with_constant("andi", index, grid[axis] - 1)
            flags.append(b.compare(0, inside, b.constant(wanted, index.type)))
    found = b.all_of(flags)
    return True if found is None else found


def _merge(op: ir.OpView, cx: Kernel, memory: LinearLayout, whole: LinearLayout) -> ir.Value:
    """The slice in row-major order in shared memory, read where the tile's elements lie in it."""
    _expect_row_major(op, memory)
    b, (base, value), source = Builder(cx), list(op.operands)[:2], memory
    element = storage_type(element_of(value.type))
    size = element.width // 8
    merged = []
    for register in range(whole.elements_per_thread):
        place, flag = _inside(op, cx, source, whole, register)
        pointer = b.offset(base, place, element)
        new = b.from_storage(b.load(pointer, vector_of(1, element), size), element_of(value.type))
        old = b.shuffle(value, [register])
        if flag is not None:
            new = cx.create("llvm.select", [flag, new, old], [old.type]).result
        merged.append(new)
    return b.concat(merged)


def _inside(
    op: ir.OpView, cx: Kernel, source: LinearLayout, whole: LinearLayout, register: int
) -> tuple[ir.Value, ir.Value | None]:
    """Where a register's element lies in its slice, and whether (None: always) that is the new."""
    b, step, place, flags = Builder(cx), 1, Builder(cx).constant(0), []
    coords = whole.coords("register")[register]
    for axis in reversed(range(whole.rank)):
        extent, count = source.shape[axis], whole.shape[axis] // source.shape[axis]
        thread = cx.state.coordinate(cx, whole, axis)
        own = b.constant(coords[axis])
        along = own if thread is None else b.with_constant("xori", thread, coords[axis])
        inside = b.with_constant("andi", along, extent - 1)
        place = b.binary("addi", place, b.with_constant("muli", inside, step))
        if count > 1:
            number = b.with_constant("shrui", along, extent.bit_length() - 1)
            wanted = b.with_constant("andi", op.operands[2 + axis], count - 1)
            flags.append(b.compare(0, number, wanted))
        step *= extent
    return place, b.all_of(flags)

"""tileas-slice-and-fuse: elementwise work on long tiles, a slice after the other.

    all of a and of b is loaded; all is computed; all is stored

becomes, with the loads of one slice ahead of its work:

    a(0), b(0) are loaded
    for each slice: a(i+1), b(i+1) are loaded; slice i is computed and stored

so that threads hold two slices of what they loaded, and several blocks share a multiprocessor: a
tile of a whole row otherwise takes most of a thread's registers, and one block waits for its loads,
then for its arithmetic. Named after the stage of that name in `tileas-prepare-for-scheduling`
(digest F, "Prepare"), which marks what may be cut.

B200 (model), gated SiLU of rows of 11,008 bf16 in tiles of 16,384, 8192 rows: 170 us at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.analysis.constants import splat
from tile_tileas.kernel_spec import num_warps
from tile_tileas.storage import storage_bits
from tile_tileas.tile_graph import is_tile, kind_of, only_computes

_LOAD, _STORE, _RANGE, _CONSTANT = (
    "nv_tileas.load", "nv_tileas.store", "nv_tileaa.make_range", "arith.constant",
)  # fmt: skip
_SOURCES = (_RANGE, _CONSTANT, "nv_tileaa.splat")
_ASSUME = "nv_tileaa.assume"
_LOOPS = ("scf.for", "scf.while")
_LANES = 32
#: On the stores of slices.
SLICED = "sliced"
#: Elements that a thread loads of one tile block, from which on they are not held at once.
_MOST_HELD = 32
#: Bits of the widest access, and elements of a slice that a thread loads of all tiles, at least.
_ACCESS, _LEAST = 128, 16
#: Slices at most: each is code of its own.
_MOST_SLICES = 32


@dataclass(frozen=True)
class SliceAndFuse(Pass):
    """Cut what stands between loads and stores through pointers into slices, where it works on each
    element by itself and threads would hold more than a part of their registers.
    """

    name = "tileas-slice-and-fuse"
    anchor = "func.func"
    statistics = {"sections": "loads, work and stores that were cut", "slices": "of those"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        threads = num_warps(op) * _LANES
        for block in list(_blocks(op)):
            section = _Section.of(block)
            count = section.slices(threads) if section is not None else 1
            if section is None or count < 2:
                continue
            cx.passed(
                section.stores[0].operation,
                f"makes its tile of {section.length} elements in {count} slices",
                category="memory",
                name="Sliced",
            )
            section.cut(count)
            cx.count("sections")
            cx.count("slices", count)


def _blocks(op: ir.Operation | ir.OpView) -> Iterator[ir.Block]:
    """Blocks of code that no loop repeats: what loops load is under way an iteration ahead."""
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.operations:
                if inner.operation.name not in _LOOPS:
                    yield from _blocks(inner)


class _Section:
    """All operations of a block on tiles of its longest length, which depend on nothing else that
    is a tile.
    """

    def __init__(self, ops: Sequence[ir.OpView], length: int) -> None:
        self.ops, self.length = ops, length
        self.loads = [op for op in ops if op.operation.name == _LOAD]
        self.stores = [op for op in ops if op.operation.name == _STORE]

    @staticmethod
    def of(block: ir.Block) -> _Section | None:
        """The section of a block; None if it has none that may be cut."""
        lengths = {next(iter(tile.type.shape)) for op in block.operations for tile in _tiles(op)
                   if len(tile.type.shape) == 1}  # fmt: skip
        length = max(lengths, default=1)
        ops = [op for op in block.operations if any(_has(tile, length) for tile in _tiles(op))]
        found = _Section(ops, length)
        return found if found.loads and found.stores and found._is_closed() else None

    def _is_closed(self) -> bool:
        """Whether each operation may be cut, and no other one reads what they make, or waits for
        the order of their accesses.
        """
        own = {op.operation for op in self.ops}
        return all(
            _is_divisible(op)
            and all(_has(tile, self.length) for tile in _tiles(op))
            and all(_is_given(value, own) for value in op.operands)
            and all(_is_kept(value, own) for value in op.results)
            for op in self.ops
        )

    def slices(self, threads: int) -> int:
        """How many slices there are to be; 1: it stays as it is."""
        each = self.length // threads
        if each * len(self.loads) <= _MOST_HELD:
            return 1
        widest = max(_ACCESS // bits for bits in map(_accessed_bits, (*self.loads, *self.stores)))
        least = max(widest, 1 << (max(_LEAST // len(self.loads), 1).bit_length() - 1))
        return min(_MOST_SLICES, max(1, each // least))

    def cut(self, count: int) -> None:
        """Put slices in place of the section, each one's loads in front of the work on the one
        before.
        """
        at = ir.InsertionPoint(self.ops[-1])
        needed = self._needed_by_loads()
        early = [op for op in self.ops if op.operation in needed]
        late = [op for op in self.ops if op.operation not in needed]
        made: list[dict[ir.Value, ir.Value]] = [{} for _ in range(count)]
        width = self.length // count
        for number in range(count + 1):
            if number < count:
                for op in early:
                    _put(op, made[number], number * width, width, at)
            if number:
                for op in late:
                    _put(op, made[number - 1], (number - 1) * width, width, at)
        for op in reversed(self.ops):
            op.operation.erase()

    def _needed_by_loads(self) -> set[ir.Operation]:
        found: set[ir.Operation] = set()
        own = {op.operation: op for op in self.ops}
        pending = list(self.loads)
        while pending:
            op = pending.pop()
            if op.operation in found:
                continue
            found.add(op.operation)
            owners = [value.owner for value in op.operands]
            inside = [o.operation for o in owners if not isinstance(o, ir.Block)]
            pending += [own[o] for o in inside if o in own]
        return found


def _tiles(op: ir.OpView) -> list[ir.Value]:
    return [value for value in (*op.operands, *op.results) if is_tile(value)]


def _has(tile: ir.Value, length: int) -> bool:
    return list(tile.type.shape) == [length]


def _is_divisible(op: ir.OpView) -> bool:
    """Whether an operation makes each element of elements in the same place, or of none."""
    name = op.operation.name
    if len(op.regions):
        return False
    if name in (_LOAD, _STORE):
        weak = "mem_semantic" in op.attributes
        return weak and ir.StringAttr(op.attributes["mem_semantic"]).value == "weak"
    if name == _CONSTANT:
        return splat(op.results[0]) is not None
    if name == _ASSUME:  # what it says of every n-th element is not so of those of a slice
        return False
    return name in _SOURCES or (kind_of(op) == "same" and only_computes(op))


def _is_given(value: ir.Value, own: set[ir.Operation]) -> bool:
    """Whether an operand is a tile of the section, or none and from elsewhere."""
    inside = not isinstance(value.owner, ir.Block) and value.owner in own
    return inside == is_tile(value)


def _is_kept(value: ir.Value, own: set[ir.Operation]) -> bool:
    """Whether the section alone reads a result; tokens nobody does."""
    users = [use.owner.operation for use in value.uses]
    return all(user in own for user in users) if is_tile(value) else not users


def _accessed_bits(op: ir.OpView) -> int:
    """Bits of an element that a load or store moves."""
    tile = op.results[0] if op.operation.name == _LOAD else op.operands[1]
    return storage_bits(tile.type.element_type)


# --- one slice ------------------------------------------------------------------------------------


def _put(
    op: ir.OpView, made: dict[ir.Value, ir.Value], first: int, width: int, at: ir.InsertionPoint
) -> None:
    """The operation for elements from `first` on, of what was `made` for them; added to that."""
    copy = op.operation.clone(ip=at)
    if op.operation.name == _STORE:
        copy.attributes[SLICED] = ir.UnitAttr.get()
    for number, operand in enumerate(op.operands):
        if operand in made:
            copy.operands[number] = made[operand]
    if op.operation.name == _CONSTANT:
        value = splat(op.results[0])
        assert value is not None, "asked before"
        type_ = ir.RankedTensorType.get([width], op.results[0].type.element_type)
        copy.attributes["value"] = ir.DenseElementsAttr.get_splat(type_, value)
    for mine, result in zip(op.results, copy.results, strict=True):
        if is_tile(result):
            result.set_type(ir.RankedTensorType.get([width], result.type.element_type))
        made[mine] = result
    if op.operation.name == _RANGE and first:
        made[op.results[0]] = _moved(copy.results[0], first, at, op.location)


def _moved(numbers: ir.Value, first: int, at: ir.InsertionPoint, where: ir.Location) -> ir.Value:
    """A range that begins with `first`."""
    type_ = ir.RankedTensorType(numbers.type)
    value = ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(type_.element_type, first))
    start = ir.Operation.create(
        _CONSTANT, results=[type_], attributes={"value": value}, loc=where, ip=at
    ).result
    return ir.Operation.create(
        "arith.addi", results=[type_], operands=[numbers, start], loc=where, ip=at
    ).result

"""Work on a tile in parts, along its last axis, so that fewer registers are held at once.

    S = read;  E = exp(S - max);  sum = reduce(E);  P = narrow(E)

becomes, of two parts

    S = read; ..                                  what folds it sees all of it
    S0 = read; E0 = ..; sum0 = reduce(E0); P0     each thread has its registers of a part
    S1 = read; E1 = ..; sum1 = reduce(E1); P1
    sum = sum0 + sum1

What is elementwise is made again for each part, but for what folds see all of where that takes
long: parts are then made of that. Folds of what is made in parts become folds of parts, and what
they find is combined, so that sums are added in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tile_cute.linear import reshape, slice_dim, subtile

from tile_core.mlir import ir
from tile_tileas.analysis.pressure import used_values
from tile_tileas.analysis.users import within
from tile_tileas.dialect import distributed, layout_of
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.tensor import column_of, column_slice
from tile_tileas.pipelining.slices import is_pure
from tile_tileas.pipelining.writer import Writer
from tile_tileas.sched.facts import facts_of
from tile_tileas.tile_graph import kind_of, only_computes

_FOLD, _YIELD = "nv_tileas.reduce", "scf.yield"
_SLICE, _CONVERT = "nv_tileas.extract_slice", "nv_tileas.convert_layout"
#: Classes of operations that take long.
_COSTLY = ("special", "divide")


def columns_of(buffer: Buffer, width: int) -> Buffer | None:
    """The columns of a buffer in tensor memory that hold the first so many of its tile's; None if
    they do not hold all rows of those.
    """
    shape = (*buffer.shape[:-1], width)
    part = None if buffer.layout is None else column_slice(buffer.layout, shape)
    if part is None:
        return None
    tile = ir.RankedTensorType.get(list(shape), buffer.tile.element_type)
    return Buffer(ir.RankedTensorType(distributed(tile, part)), buffer.space, 1)


def some_of(at: Writer, held: ir.Value, number: int, width: int) -> ir.Value:
    """The columns of a buffer in tensor memory that hold part `number` of its tile."""
    whole = Buffer.of(held.type)
    assert whole is not None, "asked before"
    some = columns_of(whole, width)
    assert some is not None, "asked before"
    assert whole.layout is not None, "buffers in tensor memory are made with their layouts"
    origin = [*(0 for _ in whole.shape[:-1]), number * width]
    column = at.constant(column_of(whole.layout, origin))
    return at.create("nv_tileas.tmem_view", [held, column], [some.type]).result


def part_type(type_: ir.Type, width: int) -> ir.Type | None:
    """The type of a part of a tile; None if threads have no registers of their own for one."""
    layout = layout_of(type_)
    shape = [*type_.shape[:-1], width]
    if layout is None or layout.shape[-1] % width:
        return None
    part = subtile(layout, shape)
    plain = ir.RankedTensorType.get(shape, type_.element_type)
    return None if part is None else distributed(plain, part)


class Dependents:
    """What in a block depends on a tile, elementwise, and what folds it.

    Attributes:
        ops: the former, in order: those that give tiles of its shape.
        folds: those of the latter whose results `result` does not depend on.
        kept: what the others see all of, and what takes long to make again.
    """

    def __init__(self, tile: ir.Value, result: ir.Value, end: ir.OpView) -> None:
        """What `result` needs; `end` is where it is used, in the same block."""
        self.tile, self._end = tile, end.operation
        self._shape = list(tile.type.shape)
        self.block = end.operation.block
        needed = self._before(result)
        self.ops = [op for op in self.block.operations if op.operation in needed]
        made = {value for op in self.ops for value in op.results} | {tile}
        self.first = [
            op
            for op in self.block.operations
            if op.operation.name == _FOLD and op.operands[0] in made
        ]
        behind = self._needing(self.first)
        #: Made behind a fold of what they are made of, or all where nothing is folded.
        self.late = [op for op in self.ops if op.operation in behind or not self.first]
        late = {value for op in self.late for value in op.results}
        self.folds = [op for op in self.first if op.operands[0] in late]
        seen = {op.operands[0] for op in self.first} - late - {tile}
        self.kept = {value for value in seen if self._takes_long(value)}

    def is_whole(self, value: ir.Value) -> bool:
        """Whether it is a tile of the same shape."""
        type_ = value.type
        return isinstance(type_, ir.RankedTensorType) and list(type_.shape) == self._shape

    def _before(self, result: ir.Value) -> set[ir.Operation]:
        """Operations of the block between the tile and `result`, by tiles of its shape."""
        users = self._needing_value(self.tile)
        found: set[ir.Operation] = set()
        pending = [result]
        while pending:
            owner = pending.pop().owner
            if isinstance(owner, ir.Block) or owner.operation not in users:
                continue
            if owner.operation in found:
                continue
            found.add(owner.operation)
            pending += filter(self.is_whole, used_values(owner.operation.opview))
        return found

    def _takes_long(self, value: ir.Value) -> bool:
        """Whether there is a division or a function of each element between the tile and a value.

        B200 (model), attention of 32 heads of 128, 4096 x 4096, a window of 1024, scores through
        tanh: 487 us where parts made them again, 256 where not.
        """
        between = self._before(value)
        return any(facts_of(op.name).class_ in _COSTLY for op in between)

    def _needing(self, ops: Sequence[ir.OpView]) -> set[ir.Operation]:
        found: set[ir.Operation] = set()
        for op in ops:
            for value in op.results:
                found |= self._needing_value(value)
        return found

    def _needing_value(self, value: ir.Value) -> set[ir.Operation]:
        """Operations of the block that depend on a value, by whatever they are given."""
        found: set[ir.Operation] = set()
        pending = [value]
        while pending:
            for use in pending.pop().uses:
                op = within(use.owner.operation, self.block)
                assert op is not None, "inside of the block"
                if op not in found and op.name != _YIELD:
                    found.add(op)
                    pending += op.results
        return found

    def is_divisible(self, width: int) -> bool:
        """Whether all of it may be made for parts of `width` columns, and what folds find of parts
        be combined.
        """
        tiles = [self.tile, *(one for op in self.ops for one in op.results if self.is_whole(one))]
        parts = all(part_type(tile.type, width) is not None for tile in tiles)
        folds = all(combined_by(fold) is not None and self._along(fold) for fold in self.folds)
        behind = self._needing(self.folds)
        moved = all(is_pure(op) and not len(op.regions) for op in self._behind_folds())
        own = not any(op.operation in behind for op in self.ops)
        return (
            bool(self.late)
            and parts
            and folds
            and moved
            and own
            and all(map(is_divisible, self.ops))
        )

    def folds_reach(self, op: ir.OpView) -> bool:
        """Whether an operation of the block needs what folds find of all parts."""
        return op.operation in self._needing(self.folds)

    def _along(self, fold: ir.OpView) -> bool:
        """Whether it folds what parts are cut along: else each finds its own columns' values."""
        return _axis_of(fold) == len(self._shape) - 1

    def combine(self, at: Writer, found: Sequence[Sequence[ir.Value]]) -> None:
        """Put what folds find of all parts together where `at` stands, and what needs that behind
        it.
        """
        moved = self._behind_folds()
        last: ir.Operation | None = None
        for fold, *parts in zip(self.folds, *found, strict=True):
            one = combined_by(fold)
            assert one is not None, "asked before"
            attributes = {name: one.attributes[name] for name in one.attributes}
            result = parts[0]
            for other in parts[1:]:
                last = at.create(one.operation.name, [result, other], [other.type], attributes)
                result = last.results[0]
            assert last is not None, "there are several parts"
            if result.type != fold.results[0].type:
                last, result = _fold_along(at, fold, result, _axis_of(fold))
            fold.results[0].replace_all_uses_with(result)
            fold.operation.erase()
        for op in moved:
            assert last is not None, "folds give what they need"
            op.operation.move_after(last)
            last = op.operation

    def _behind_folds(self) -> list[ir.OpView]:
        """What needs the folds' results, up to what stores the parts."""
        behind = self._needing(self.folds)
        return [op for op in self._up_to_end() if op.operation in behind]

    def _up_to_end(self) -> Iterator[ir.OpView]:
        """Operations of the block in front of where the result is used."""
        for op in self.block.operations:
            if op.operation == self._end:
                return
            yield op


def is_divisible(op: ir.OpView) -> bool:
    """Whether an operation may be made for a part: of each element, or of its row, by itself, or
    between threads of a warp.
    """
    same = kind_of(op) == "same" and not len(op.regions) and only_computes(op)
    return same or _is_spread(op.operation) or op.operation.name == _CONVERT


def combined_by(fold: ir.OpView) -> ir.OpView | None:
    """The one operation of two values that a fold of one tile does, elementwise."""
    if len(fold.operands) != 1 or len(fold.results) != 1:
        return None
    *ops, end = fold.regions[0].blocks[0].operations
    if len(ops) != 1 or kind_of(ops[0]) != "same" or len(ops[0].operands) != 2:
        return None
    return ops[0] if end.operands[0] == ops[0].results[0] else None


def _axis_of(fold: ir.OpView) -> int:
    return ir.IntegerAttr(fold.attributes["axis"]).value


def lanes_along(type_: ir.Type) -> tuple[int, int] | None:
    """(columns, lanes): how many neighbours along the last axis of a tile a thread has, and lanes
    side by side that have others, in turn; None if threads have whole rows, or lie otherwise.
    """
    layout = layout_of(type_)
    assert layout is not None, "it has a layout"
    found = sorted(vector[-1] for vector in layout.bases["lane"] if vector[-1])
    if not found or any(vector[-1] for vector in layout.bases["warp"]):
        return None
    turns = found == [found[0] << bit for bit in range(len(found))]
    return (found[0], 1 << len(found)) if turns else None


def _fold_along(
    at: Writer, fold: ir.OpView, tile: ir.Value, axis: int
) -> tuple[ir.Operation, ir.Value]:
    """What `fold` does, to another tile and along another axis; what it finds."""
    layout = layout_of(tile.type)
    assert layout is not None, "tiles of parts have layouts"
    made = fold.operation.clone(ip=at.place)
    made.operands[0] = tile
    made.attributes["axis"] = ir.IntegerAttr.get(at.i32, axis)
    shape = [size for at_, size in enumerate(tile.type.shape) if at_ != axis]
    plain = ir.RankedTensorType.get(shape, tile.type.element_type)
    made.results[0].set_type(distributed(plain, slice_dim(layout, axis)))
    return made, made.results[0]


class Part:
    """Makes part `number`, of `width` columns, of what depends on a tile."""

    def __init__(
        self, at: Writer, known: Dependents, number: int, width: int, again: ir.Value,
        *, is_part: bool = False, given: Mapping[ir.Value, ir.Value] | None = None,
    ) -> None:  # fmt: skip
        """`again`: the tile once more, of which the part alone is read; that part if `is_part`.
        `given`: parts of other tiles.
        """
        self._at, self._whole, self._width, self._number = at, known, width, number
        self._ops = {op.operation for op in known.ops}
        self._once_more = again
        self._known: dict[ir.Value, ir.Value] = {known.tile: again} if is_part else {}
        self._known.update(given or {})

    def of(self, value: ir.Value) -> ir.Value:
        """The part of a value; the value itself if it is no such tile."""
        if not self._whole.is_whole(value):
            return value
        if value not in self._known:
            self._make(value)
        return self._known[value]

    def folded(self, fold: ir.OpView) -> ir.Value:
        """What a fold finds of the part; what each thread finds, if others have parts of rows."""
        at, tile = self._at, self.of(fold.operands[0])
        lanes = lanes_along(tile.type)
        if lanes is None:
            return _fold_along(at, fold, tile, _axis_of(fold))[1]
        low, count = lanes
        *rows, width = tile.type.shape
        layout = layout_of(tile.type)
        assert layout is not None, "it has a part of one"
        shape = [*rows, width // (low * count), count, low]
        plain = ir.RankedTensorType.get(shape, tile.type.element_type)
        type_ = distributed(plain, reshape(layout, shape))
        viewed = at.create("nv_tileas.view", [tile], [type_]).result
        pairs = _fold_along(at, fold, viewed, len(rows) + 2)[1]
        return _fold_along(at, fold, pairs, len(rows))[1]

    def _make(self, value: ir.Value) -> None:
        owner = value.owner
        if value == self._whole.tile:
            self._known[value] = self._cut(self._once_more)
        elif (
            isinstance(owner, ir.Block)
            or owner.operation not in self._ops
            or value in self._whole.kept
        ):
            self._known[value] = self._cut(value)
        else:
            self._again(owner.operation)

    def _again(self, op: ir.Operation) -> None:
        """The same, of parts."""
        operands = [self.of(value) for value in op.operands]
        types = [self._type(result.type) for result in op.results]
        attributes = {name: op.attributes[name] for name in op.attributes}
        made = self._at.create(op.name, operands, types, attributes)
        self._known.update(zip(op.results, made.results, strict=True))

    def _cut(self, value: ir.Value) -> ir.Value:
        """The registers of a tile that are of the part."""
        at, rank = self._at, len(value.type.shape)
        places = [at.constant(self._number if axis == rank - 1 else 0) for axis in range(rank)]
        return at.create(_SLICE, [value, *places], [self._type(value.type)]).result

    def _type(self, type_: ir.Type) -> ir.Type:
        found = part_type(type_, self._width)
        assert found is not None, "asked before"
        return found


def _is_spread(op: ir.Operation) -> bool:
    """Whether it gives each element of a tile the same, or its row's: of a part, too."""
    if op.name == "nv_tileaa.broadcast":
        return op.operands[0].type.shape[-1] == 1
    return op.name == "nv_tileaa.splat"

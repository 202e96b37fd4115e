"""tileas-order-blocks: blocks that have most to do begin first.

Blocks begin in the order of their numbers, x before y before z, and a multiprocessor takes the next
one when it is done with one. Where the last to begin are the longest, as those of causal attention,
whose loops run longer the further down their rows are, most of the GPU waits for a few in the end.

    x, y, z  =>  x, y, n - 1 - z          of the axis along which loops run longer
    x, y, z  =>  n - 1 - l / 8, first + l mod 8, z     of x, with l = (y - first) * n + x

Along x the shortest of one y begin right behind the longest of the one before. Eight y are gone
through together therefore, the longest of all first; more would be more that L2 has to keep.
"Longest processing time first": Graham, Bounds on multiprocessing timing anomalies (1969).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at
from tile_core.walk import inside
from tile_tileas.pipelining.writer import Writer

_ID, _COUNT = "nv_tileaa.get_program_id", "nv_tileaa.get_num_programs"
_PRODUCT = "nv_tileaa.dot"
#: Blocks of a grid along each axis (CUDA programming guide, technical specifications).
_GRID = ((1 << 31) - 1, 65535, 65535)
#: Values of y that are gone through together, a power of two. Of 64 blocks along x with loops of 1
#: to 64 turns, and 32 along y, the busiest multiprocessor has so much more to do than the mean one:
#: an H100 (132 at once) 7.7 % as they come, 5.6 % turned round, 0.1 % with 8; a B200 (296 at once)
#: 18, 16 and 1.8 %.
_TOGETHER = 8
#: What grows with its operands, of those that blocks differ in, if the others are positive.
_GROWING = frozenset(
    f"arith.{name}"
    for name in (
        "addi", "muli", "minsi", "minui", "maxsi", "maxui", "ceildivsi", "ceildivui", "divsi",
        "divui", "floordivsi", "extsi", "extui", "trunci", "index_cast", "shli", "shrsi", "shrui",
    )
) | {"nv_tileaa.assume"}  # fmt: skip
#: Of which the first operand alone may differ.
_FIRST_ALONE = frozenset(
    f"arith.{name}"
    for name in ("ceildivsi", "ceildivui", "divsi", "divui", "floordivsi", "shrsi", "shrui", "subi")
)
#: Parts of names of operations that may do what is not known here.
_TALKING = ("atomic", "asm", "extern", "call", "multimem", "gdc", "fence")
_SLE = 3  # arith.CmpIPredicate


@dataclass(frozen=True)
class OrderBlocks(Pass):
    """Number the blocks anew where loops with products run longer the larger a block's number is,
    so that the longest begin first. Blocks that talk to one another (atomics, ordered accesses,
    what is not known) keep their numbers: some wait for those before them.
    """

    name = "tileas-order-blocks"
    anchor = "func.func"
    statistics = {"ordered": "kernels whose longest blocks begin first"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        if len(list(op.regions[0].blocks)) > 1:
            raise error_at(op, "has branches; control flow must be structured (scf) here")
        growing = (_axis_of_growth(loop) for loop in _loops(op))
        axes = sorted({axis for axis in growing if axis is not None})
        if len(axes) != 1 or any(map(_talks, inside(op))):
            return
        ids = [one for one in inside(op) if one.name == _ID]
        new = _Numbers(op.regions[0].blocks[0]).ordered(axes[0])
        for one in ids:
            number = new.get(_axis(one))
            if number is not None:
                one.results[0].replace_all_uses_with(number)
                one.erase()
        cx.count("ordered")


def _loops(op: ir.Operation) -> Iterator[ir.OpView]:
    """Loops with products in them, the outermost of each nest."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name != "scf.for":
                    yield from _loops(inner.operation)
                elif any(one.name == _PRODUCT for one in inside(inner.operation)):
                    yield inner


def _talks(op: ir.Operation) -> bool:
    """Whether an operation may be how blocks hear of one another, or what it does is not known."""
    if "mem_semantic" in op.attributes:
        return ir.StringAttr(op.attributes["mem_semantic"]).value != "weak"
    return any(word in op.name for word in _TALKING)


def _axis(op: ir.Operation | ir.OpView) -> int:
    return ir.IntegerAttr(op.attributes["axis"]).value


# -- where loops run longer ------------------------------------------------------------------------


def _axis_of_growth(loop: ir.OpView) -> int | None:
    """The one axis along which a loop's upper bound grows with the block's number, and on which
    nothing else of its bounds depends.
    """
    lower, upper, step = list(loop.operands)[:3]
    found = _Growth()
    axes = found.axes(upper)
    if not axes or len(axes) != 1 or found.axes(lower) != frozenset() or found.axes(step):
        return None
    return next(iter(axes))


@dataclass
class _Growth:
    """Axes of the grid with which values grow; None where they may do anything."""

    known: dict[ir.Value, frozenset[int] | None] = field(default_factory=dict)

    def axes(self, value: ir.Value) -> frozenset[int] | None:
        if value not in self.known:
            self.known[value] = self._of(value)
        return self.known[value]

    def _of(self, value: ir.Value) -> frozenset[int] | None:
        owner = value.owner
        if isinstance(owner, ir.Block):
            parent = owner.owner
            return frozenset() if parent.operation.name == "func.func" else None
        op = owner.opview if isinstance(owner, ir.Operation) else owner
        name = op.operation.name
        if name == _ID:
            return frozenset([_axis(op)])
        if name in ("arith.constant", _COUNT, "nv_tileaa.get_dim_size"):
            return frozenset()
        parts = [self.axes(operand) for operand in op.operands]
        if len(op.regions) or None in parts:
            return None
        others = parts[1:] if name in _FIRST_ALONE else []
        if all(not part for part in parts):
            return frozenset() if name.startswith("arith.") or name == "nv_tileaa.assume" else None
        if (name not in _GROWING and name != "arith.subi") or any(others):
            return None
        return frozenset().union(*(part for part in parts if part))


# -- other numbers ---------------------------------------------------------------------------------


class _Numbers:
    """Writes what blocks are numbered by, where a kernel begins."""

    def __init__(self, entry: ir.Block) -> None:
        first = entry.operations[0]
        self._at = Writer(first.location)
        self._at.move(ir.InsertionPoint(first))

    def ordered(self, axis: int) -> Mapping[int, ir.Value]:
        """By axis, what stands for the block's number: the longest first, along `axis`."""
        place, count = self._asked(_ID, axis), self._asked(_COUNT, axis)
        if axis:
            return {axis: self._turned(place, count, axis)}
        y, rows = self._asked(_ID, 1), self._asked(_COUNT, 1)
        at, mask = self._at, self._at.constant(_TOGETHER - 1)
        in_group = at.binary("andi", y, mask)
        first = at.binary("subi", y, in_group)
        along = at.binary("addi", at.binary("muli", in_group, count), place)
        whole = self._is_whole(first, rows, count)
        bits = at.constant(_TOGETHER.bit_length() - 1)
        x = self._either(whole, at.binary("shrui", along, bits), place)
        row = self._either(whole, at.binary("andi", along, mask), in_group)
        return {0: self._turned(x, count, 0), 1: self._bounded(at.binary("addi", first, row), 1)}

    def _is_whole(self, first: ir.Value, rows: ir.Value, count: ir.Value) -> ir.Value:
        """i1: a group has all its y, and so few blocks that 31 bits number them."""
        at = self._at
        fits = at.compare(_SLE, at.plus(first, _TOGETHER), rows)
        few = at.is_less(count, at.constant((_GRID[0] + 1) // _TOGETHER))
        return at.binary("andi", fits, few)

    def _asked(self, name: str, axis: int) -> ir.Value:
        attribute = {"axis": ir.IntegerAttr.get(self._at.i32, axis)}
        return self._at.create(name, [], [self._at.i32], attribute).result

    def _either(self, flag: ir.Value, then: ir.Value, other: ir.Value) -> ir.Value:
        return self._at.create("arith.select", [flag, then, other], [then.type]).result

    def _turned(self, place: ir.Value, count: ir.Value, axis: int) -> ir.Value:
        """count - 1 - place."""
        last = self._at.plus(count, -1)
        return self._bounded(self._at.binary("subi", last, place), axis)

    def _bounded(self, value: ir.Value, axis: int) -> ir.Value:
        """The number of a block, as what follows may know."""
        i64 = self._at.i64
        predicate = {
            "kind": ir.StringAttr.get("bounded"),
            "lb": ir.IntegerAttr.get(i64, 0),
            "ub": ir.IntegerAttr.get(i64, _GRID[axis] - 1),
        }
        attribute = {"predicate": ir.DictAttr.get(predicate)}
        return self._at.create("nv_tileaa.assume", [value], [value.type], attribute).result

"""What rewriting needs: constants, substitution, purity, and a driver of patterns."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tile_core.deferred_numpy import np
from tile_cudatile.attrs import Dense, element_count, storage_bytes
from tile_cudatile.locations import Location
from tile_cudatile.ops import BODY_OPS
from tile_cudatile.tree import Block, Group, Op, Region, Value
from tile_cudatile.types import I1, Scalar, Tile, Type

_MOST_SWEEPS = 100
#: Operations behind one another that are compared.
_DEEPEST = 8


def make(
    name: str,
    operands: Iterable[Group],
    results: Iterable[Type],
    loc: Location,
    /,
    regions: tuple[Region, ...] = (),
    **attrs: Any,
) -> Op:
    """A new operation; attributes that are not given have their defaults."""
    spec = BODY_OPS.by_name[name]
    values = {a.name: a.default for a in spec.attrs if a.default is not None}
    made = tuple(Value(type_) for type_ in results)
    return Op(spec, tuple(operands), made, {**values, **attrs}, regions, loc)


def truth(value: Value) -> bool | None:
    """Whether `value` is a constant of truth values that are all true, or all false."""
    type_, owner = value.type, value.owner
    if not (isinstance(type_, Tile) and type_.element == I1 and isinstance(owner, Op)):
        return None
    data = owner.attrs.get("value")
    if owner.name != "constant" or not isinstance(data, Dense):
        return None
    if data.data in (b"\x00", b"\xff"):
        return data.data == b"\xff"
    count = element_count(type_.shape)
    bits = np.unpackbits(np.frombuffer(data.data, np.uint8), bitorder="little")[:count]
    return bool(bits[0]) if (bits == bits[0]).all() else None


def is_one(value: Value) -> bool:
    """Whether `value` is the constant 1 of a type of integers with more than a bit."""
    return number_of(value) == 1


def number_of(value: Value) -> int | None:
    """The integer, signed, that all elements of a constant are."""
    owner = value.owner
    data = owner.attrs.get("value") if isinstance(owner, Op) else None
    if not isinstance(data, Dense) or not data.is_splat:
        return None
    element = data.type.element
    if not isinstance(element, Scalar) or element.is_float or element == I1:
        return None
    return int.from_bytes(data.data, "little", signed=True)


def same_value(left: Value, right: Value) -> bool:
    """Whether two values are one, or constants with the same elements."""
    if left is right:
        return True
    constants = [v.owner for v in (left, right) if isinstance(v.owner, Op)]
    if len(constants) < 2 or any(op.name != "constant" for op in constants):
        return False
    return constants[0].attrs["value"] == constants[1].attrs["value"]


def made_alike(left: Value, right: Value, deep: int = _DEEPEST) -> bool:
    """Whether two values are the same, or made alike of the same ones, by operations that only
    compute.
    """
    if same_value(left, right):
        return True
    one, other = left.owner, right.owner
    if not isinstance(one, Op) or not isinstance(other, Op) or deep == 0:
        return False
    if one.name != other.name or left.index != right.index or one.attrs != other.attrs:
        return False
    if one.regions or one.spec.effects not in ("pure", "none") or left.type != right.type:
        return False
    pairs = one.values(), other.values()
    return len(pairs[0]) == len(pairs[1]) and all(
        made_alike(a, b, deep - 1) for a, b in zip(*pairs, strict=True)
    )


def only_computes(op: Op) -> bool:
    """Whether all that is to know of `op` are its results: no memory, no way out of a loop."""
    if op.spec.terminator:
        return op.name == "yield"
    if op.spec.effects == "recursive":
        return all(only_computes(o) for r in op.regions for b in r.blocks for o in b.ops)
    return op.name == "assume" or op.spec.effects in ("pure", "none")


def negated(value: Value) -> Value | None:
    """What `value` is the negation of, if it is made as one (`xori x, true`)."""
    owner = value.owner
    if isinstance(owner, Op) and owner.name == "xori":
        left, right = owner.operands
        if isinstance(left, Value) and isinstance(right, Value) and truth(right):
            return left
    return None


def constant_truth(type_: Tile, value: bool, loc: Location) -> Op:
    """A constant of equal truth values."""
    data = Dense(type_, b"\xff" if value else b"\x00")
    return make("constant", (), [type_], loc, value=data)


def constant_number(type_: Tile, number: int, loc: Location) -> Op:
    """A constant of equal integers."""
    if type_.element == I1:
        return constant_truth(type_, bool(number), loc)
    data = number.to_bytes(storage_bytes(type_.element), "little", signed=number < 0)
    return make("constant", (), [type_], loc, value=Dense(type_, data))


def negation(value: Value, loc: Location) -> list[Op]:
    """Operations that negate; the last has the result."""
    assert isinstance(value.type, Tile)
    true = constant_truth(value.type, True, loc)
    return [true, make("xori", (value, true.result), [value.type], loc)]


def substitute(ops: Iterable[Op], values: Mapping[Value, Value]) -> None:
    """Replaces operands in `ops` and all inside them."""
    for top in ops:
        for op in top.walk():
            op.operands = replaced(op.operands, values)


def replaced(groups: tuple[Group, ...], values: Mapping[Value, Value]) -> tuple[Group, ...]:
    """The operand groups with their values replaced, through chains of replacements."""

    def one(value: Value) -> Value:
        while value in values:
            value = values[value]
        return value

    return tuple(
        tuple(map(one, g)) if isinstance(g, tuple) else None if g is None else one(g)
        for g in groups
    )


def copied(
    region: Region, values: dict[Value, Value], instead: Callable[[Op], Op | None] | None = None
) -> Region:
    """A copy of a region: what it uses is found in `values`, which learns what it makes. Where
    `instead` has another operation, that one stands for the one asked about.
    """
    blocks: list[Block] = []
    for block in region.blocks:
        args = tuple(Value(arg.type) for arg in block.args)
        values.update(zip(block.args, args, strict=True))
        blocks.append(Block(args, [copied_op(op, values, instead) for op in block.ops]))
    return Region(blocks)


def copied_op(
    op: Op, values: dict[Value, Value], instead: Callable[[Op], Op | None] | None = None
) -> Op:
    """A copy of one operation; as `copied`."""
    made = None if instead is None else instead(op)
    if made is None:
        regions = tuple(copied(region, values, instead) for region in op.regions)
        results = tuple(Value(r.type) for r in op.results)
        operands = replaced(op.operands, values)
        made = Op(op.spec, operands, results, dict(op.attrs), regions, op.loc)
    values.update(zip(op.results, made.results, strict=True))
    return made


def defined(region: Region) -> set[Value]:
    """All values that are made inside a region."""
    found: set[Value] = set()
    for block in region.blocks:
        found.update(block.args)
        for op in block.ops:
            found.update(op.results)
            for inner in op.regions:
                found |= defined(inner)
    return found


def needed(ops: list[Op], values: Iterable[Value]) -> list[Op]:
    """Those of `ops` that `values` depend on."""
    wanted = set(values)
    found: list[Op] = []
    for op in reversed(ops):
        if wanted.intersection(op.results):
            found.append(op)
            wanted.update(value for inner in op.walk() for value in inner.values())
    return found[::-1]


def uses(region: Region) -> Counter[Value]:
    """How often each value is an operand."""
    counts: Counter[Value] = Counter()
    for op in region.walk():
        counts.update(op.values())
    return counts


def removable(op: Op, loops: frozenset[str] = frozenset()) -> bool:
    """Whether nobody would notice if `op`, whose results are not used, did not run."""
    if op.spec.terminator:
        return op.name == "yield" or op.name in loops
    if op.name in ("load_ptr_tko", "load_view_tko"):
        return op.attrs["memory_ordering_semantics"] == "weak"
    if op.name == "loop":
        return False  # it might not end
    if op.name == "assume" or op.spec.effects in ("pure", "none"):
        return True
    if op.spec.effects == "recursive":
        inner = frozenset({"continue"}) if op.name == "for" else loops
        return all(removable(o, inner) for r in op.regions for b in r.blocks for o in b.ops)
    return False


def drop_dead(region: Region) -> bool:
    """Removes operations without effect whose results are not used; says whether there were any."""
    counts = uses(region)
    return _drop_dead(region, counts)


def _drop_dead(region: Region, counts: Counter[Value]) -> bool:
    changed = False
    for block in region.blocks:
        kept: list[Op] = []
        for op in reversed(block.ops):
            dead = not op.spec.terminator and not any(counts[r] for r in op.results)
            if dead and removable(op):
                for inner in op.walk():
                    counts.subtract(inner.values())
                changed = True
                continue
            for inner_region in op.regions:
                changed |= _drop_dead(inner_region, counts)
            kept.append(op)
        block.ops = kept[::-1]
    return changed


@dataclass
class Place:
    """Where an operation is: what stands before it, what behind, and in what."""

    before: list[Op]
    behind: deque[Op]
    parent: str

    def again(self, *ops: Op) -> None:
        """Looks at `ops` (once more) as what follows."""
        self.behind.extendleft(reversed(ops))


#: Changes the program around an operation and returns True, or returns False. If True, the
#: operation is gone from its place, unless the pattern put it back.
Pattern: TypeAlias = Callable[["Rewriter", Op, Place], bool]


class Rewriter:
    """Applies patterns, innermost operations first, until none applies."""

    def __init__(self, body: Region, patterns: Mapping[str, tuple[Pattern, ...]]) -> None:
        self.body = body
        self.patterns = patterns
        self.uses: Counter[Value] = Counter()
        self.count = 0
        self.fired: Counter[str] = Counter()
        self._replaced: dict[Value, Value] = {}

    def run(self, parent: str = "entry") -> int:
        """Rewrites the body; returns how many patterns applied."""
        for _ in range(_MOST_SWEEPS):
            before = self.count
            self.uses = uses(self.body)
            self._region(self.body, parent)
            if not drop_dead(self.body) and self.count == before:
                break
        return self.count

    def replace(self, old: Value, new: Value) -> None:
        """Uses `new` in place of `old` from here on."""
        if old is not new:
            self._replaced[old] = new

    def _region(self, region: Region, parent: str) -> None:
        for block in region.blocks:
            self._block(block, parent)

    def _block(self, block: Block, parent: str) -> None:
        place = Place([], deque(block.ops), parent)
        while place.behind:
            op = place.behind.popleft()
            op.operands = replaced(op.operands, self._replaced)
            for region in op.regions:
                self._region(region, op.name)
            if not self._apply(op, place):
                place.before.append(op)
        block.ops = place.before

    def _apply(self, op: Op, place: Place) -> bool:
        for pattern in self.patterns.get(op.name, ()):
            if pattern(self, op, place):
                self.count += 1
                self.fired[pattern.__name__] += 1
                return True
        return False

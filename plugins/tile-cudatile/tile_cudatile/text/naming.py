"""Names of values, given as MLIR's printer gives them.

Values get a hint where the operation has one, a number otherwise. A name that is taken gets the
next number of a counter of conflicts behind it. The values of a block are all named before those
of the regions inside; sibling regions do not see each other's names.
"""

from __future__ import annotations

from tile_cudatile.attrs import Dense
from tile_cudatile.text.numbers import constant_name
from tile_cudatile.tree import Op, Region, Value

_HINTS = {
    "broadcast": "bcast",
    "reshape": "reshape",
    "reduce": "reduce",
    "for": "for",
    "make_tensor_view": "tview",
    "make_partition_view": "pview",
    "make_strided_view": "sview",
    "make_gather_scatter_view": "gsview",
}


def result_hints(op: Op) -> dict[int, str]:
    """Position of a result -> its hint."""
    if op.name == "constant":
        value = op.attrs["value"]
        assert isinstance(value, Dense)
        return {0: constant_name(value)}
    if op.name == "assume":
        return {0: _assume_hint(op)}
    if op.name in _HINTS:
        return {0: _HINTS[op.name]} if op.results else {}
    groups = op.spec.results
    if len(groups) > 1 and all(g.arity == "one" for g in groups):
        return {i: g.name for i, g in enumerate(groups)}
    return {}


#: Operations without hints that take part in naming, so that assumptions about them do not
#: count as assumptions about nothing.
_SILENT = frozenset({"scan", "if", "loop"})


def _assume_hint(op: Op) -> str:
    value = op.operands[0]
    assert isinstance(value, Value)
    producer = value.owner
    if not isinstance(producer, Op):
        return "assume"
    hints = result_hints(producer)
    if not hints and producer.name not in _SILENT:
        return "assume"
    return "assume_" + hints.get(value.index, "")


class Names:
    """The names of one kernel."""

    def __init__(self, body: Region) -> None:
        self._names: dict[Value, str] = {}
        self.groups: dict[Op, list[int]] = {}  # starts of groups of results with a name each
        # Region, its operation, counters of values, arguments and conflicts, names in scope.
        pending: list[tuple[Region, Op | None, tuple[int, int, int], frozenset[str]]]
        pending = [(body, None, (0, 0, 0), frozenset())]
        while pending:
            region, parent, counters, scope = pending.pop()
            self._value, self._argument, self._conflict = counters
            self._used = set(scope)
            self._region(region, parent)
            after = (self._value, self._argument, self._conflict)
            names = frozenset(self._used)
            for block in region.blocks:
                for op in block.ops:
                    for inner in op.regions:
                        pending.append((inner, op, after, names))

    def __getitem__(self, value: Value) -> str:
        """The name with its sign, and the number within its group of results."""
        owner = value.owner
        if isinstance(owner, Op) and len(owner.results) > 1:
            start = max(g for g in self.groups[owner] if g <= value.index)
            name = self._names[owner.results[start]]
            return f"%{name}#{value.index - start}" if self._size(owner, start) > 1 else f"%{name}"
        return f"%{self._names[value]}"

    def definition(self, op: Op) -> str:
        """What stands before the operation."""
        if not op.results:
            return ""
        parts: list[str] = []
        for start in self.groups[op]:
            size = self._size(op, start)
            count = f":{size}" if size > 1 else ""
            parts.append(f"%{self._names[op.results[start]]}{count}")
        return f"{', '.join(parts)} = "

    def _size(self, op: Op, start: int) -> int:
        later = [g for g in self.groups[op] if g > start]
        return (min(later) if later else len(op.results)) - start

    def _region(self, region: Region, parent: Op | None) -> None:
        for block in region.blocks[:1]:
            hints = _argument_hints(parent, len(block.args))
            for arg in block.args:
                if hints is None:
                    self._names[arg] = self._unique(f"arg{self._argument}")
                    self._argument += 1
                else:
                    self._names[arg] = self._unique(hints[arg.index])
        for block in region.blocks:
            for op in block.ops:
                self._op(op)

    def _op(self, op: Op) -> None:
        starts = [0]
        for index, hint in result_hints(op).items():
            self._names[op.results[index]] = self._unique(hint)
            if index:
                starts.append(index)
        self.groups[op] = starts
        if op.results and op.results[0] not in self._names:
            self._names[op.results[0]] = str(self._value)
            self._value += 1

    def _unique(self, name: str) -> str:
        if name in self._used:
            while (probe := f"{name}_{self._conflict}") in self._used:
                self._conflict += 1
            self._conflict += 1
            name = probe
        self._used.add(name)
        return name


def _argument_hints(parent: Op | None, count: int) -> list[str] | None:
    if parent is None:
        return None
    if parent.name == "for":
        return ["loopIdx", *(f"iterArg{i}" for i in range(count - 1))]
    if parent.name == "reduce":
        sides = ("reduce_lhs", "reduce_rhs")
        return [sides[i % 2] + (str(i // 2) if count > 2 else "") for i in range(count)]
    return None

"""What forward analyses share: facts flow from definitions to uses, through branches and loops.

A subclass says what is known of one operation's result and how two facts join; here is the walk.
Values that loops carry start with what comes in and take in what comes back until nothing changes;
what still changes after ROUNDS becomes unknown, so every analysis ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from tile_core.mlir import ir

F = TypeVar("F")

#: Turns of a loop after which what still changes is given up.
ROUNDS = 4


class Forward(ABC, Generic[F]):
    """Facts of one kind about the values of a function."""

    #: Operation name -> the fact about its only (or first) result.
    rules: ClassVar[Mapping[str, Callable[[ir.OpView, Any], Any]]] = {}

    def __init__(self, op: ir.Operation) -> None:
        self._facts: dict[ir.Value, F] = {}
        for region in op.regions:
            self._region(region)

    def __getitem__(self, value: ir.Value) -> F:
        found = self._facts.get(value)
        return self.unknown(value) if found is None else found

    @abstractmethod
    def tracks(self, type_: ir.Type) -> bool:
        """Whether there are facts about values of this type."""

    @abstractmethod
    def unknown(self, value: ir.Value) -> F:
        """What holds of any value of this type."""

    @abstractmethod
    def join(self, left: F, right: F) -> F:
        """What holds whichever of two facts does."""

    @abstractmethod
    def induction(self, loop: ir.OpView) -> F:
        """What holds of the induction variable of an `scf.for`, in every turn."""

    def _region(self, region: ir.Region) -> None:
        for block in region.blocks:
            for op in block.operations:
                self._operation(op)

    def _operation(self, op: ir.OpView) -> None:
        name = op.operation.name
        walk = _CONTROL.get(name)
        if walk is not None:
            getattr(self, walk)(op)
            return
        rule = self.rules.get(name)
        if rule is not None and len(op.results) and self.tracks(op.results[0].type):
            found = rule(op, self)
            each = found if isinstance(found, list) else [found]
            self._facts.update(zip(op.results, each, strict=False))
        for region in op.regions:
            self._region(region)

    def _for(self, op: ir.OpView) -> None:
        block = op.regions[0].blocks[0]
        arguments = list(block.arguments)
        if self.tracks(arguments[0].type):
            self._facts[arguments[0]] = self.induction(op)
        carried, start = arguments[1:], list(op.operands)[3:]

        def turn() -> list[ir.Value]:
            self._region(op.regions[0])
            return _ends_with(block)

        self._settle(carried, start, turn)
        self._pass_on(list(op.results), carried)

    def _while(self, op: ir.OpView) -> None:
        before, after = (region.blocks[0] for region in op.regions)

        def turn() -> list[ir.Value]:
            self._region(op.regions[0])
            self._pass_on(list(after.arguments), _ends_with(before)[1:])
            self._region(op.regions[1])
            return _ends_with(after)

        self._settle(list(before.arguments), list(op.operands), turn)
        self._pass_on(list(op.results), _ends_with(before)[1:])

    def _if(self, op: ir.OpView) -> None:
        for region in op.regions:
            self._region(region)
        if not len(op.results):
            return
        ends = [_ends_with(region.blocks[0]) for region in op.regions]
        for at, result in enumerate(op.results):
            if self.tracks(result.type):
                self._facts[result] = self.join(self[ends[0][at]], self[ends[1][at]])

    def _settle(
        self,
        carried: Sequence[ir.Value],
        start: Sequence[ir.Value],
        turn: Callable[[], list[ir.Value]],
    ) -> None:
        """Run a loop's body until what it hands on adds nothing to what its arguments hold."""
        tracked = [at for at, value in enumerate(carried) if self.tracks(value.type)]
        for at in tracked:
            self._facts[carried[at]] = self[start[at]]
        rounds = 0
        while True:
            back = turn()
            changed = False
            for at in tracked:
                value = carried[at]
                old = self[value]
                new = self.join(old, self[back[at]])
                if new != old:
                    changed = True
                    self._facts[value] = new if rounds < ROUNDS else self.unknown(value)
            if not changed:
                return
            rounds += 1

    def _pass_on(self, receivers: Sequence[ir.Value], values: Sequence[ir.Value]) -> None:
        for receiver, value in zip(receivers, values, strict=True):
            if self.tracks(receiver.type):
                self._facts[receiver] = self[value]


def _ends_with(block: ir.Block) -> list[ir.Value]:
    """What the last operation of a block hands on."""
    return list(block.operations[len(block.operations) - 1].operands)


#: Operation -> the method that walks it; subclasses may say more about their results.
_CONTROL = {"scf.for": "_for", "scf.while": "_while", "scf.if": "_if"}

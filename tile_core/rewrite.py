"""Local rewrites in place, to a fixed point.

A rule looks at one operation and says what its results are instead, or None if it does not match.
It matches fully before it makes anything, and makes operations only before the one it looks at.
Values that nobody needs afterwards are left to dead code elimination.

    rules = Rewrites("tileaa-canonicalize")

    @rules.on("nv_tileaa.view")
    def view_of_view(op: ir.OpView, cx: Rewriter) -> ir.Value | None:
        "view(view(x)) => view(x)"
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tile_core.diagnostics import CompileError, ConfigurationError
from tile_core.insertion import Inserter
from tile_core.mlir import ir

if TYPE_CHECKING:
    from tile_core.passes import PassContext

#: None among several: the result is not used, and no value takes its place.
Rewritten = ir.Value | Sequence[ir.Value | None] | None
Rule = Callable[[Any, "Rewriter"], Rewritten]

#: Sweeps over a function before the rules are taken to undo each other.
MAX_SWEEPS = 64


class Rewrites:
    """Rules by operation name, in the order in which they are tried."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rules: dict[str, list[Rule]] = {}

    def on(self, *names: str) -> Callable[[Rule], Rule]:
        """Add the decorated rule for the operations called `names`."""

        def register(rule: Rule) -> Rule:
            for name in names:
                known = self.rules.setdefault(name, [])
                if any(other.__name__ == rule.__name__ for other in known):
                    raise ConfigurationError(f"'{self.name}' has two rules '{rule.__name__}'")
                known.append(rule)
            return rule

        return register

    @property
    def statistics(self) -> dict[str, str]:
        """Rule name with dashes -> what it does, as `Pass.statistics` wants it."""
        rules = {rule.__name__: rule for found in self.rules.values() for rule in found}
        return {
            name.replace("_", "-"): (rule.__doc__ or "").strip().split("\n", 1)[0]
            for name, rule in sorted(rules.items())
        }

    def apply(self, root: ir.Operation, cx: PassContext | None = None) -> Counter[str]:
        """Rewrite everything inside `root` until no rule matches.

        Args:
            cx: of the pass that does it, so that its watchers may count rules and hold them back.

        Returns:
            How often each rule (name with dashes) was applied.

        Raises:
            CompileError: rules undo each other.
        """
        rewriter = Rewriter(self.rules, self.name, cx)
        for _ in range(MAX_SWEEPS):
            if not rewriter.sweep(root):
                return rewriter.applied
        raise CompileError(f"'{self.name}' finds no end: its rules undo each other")


class Rewriter(Inserter):
    """One run; makes operations before the one that a rule looks at."""

    def __init__(
        self, rules: Mapping[str, list[Rule]], name: str = "", cx: PassContext | None = None
    ) -> None:
        super().__init__()
        # Asking costs more than most rules do, so nobody is asked where nobody watches.
        self._name, self._cx = name, cx if cx is not None and cx.is_watched else None
        self.applied: Counter[str] = Counter()
        self._rules = rules

    def sweep(self, root: ir.Operation | ir.OpView) -> bool:
        """Visit everything inside `root` once, in order; whether anything changed."""
        before = self.applied.total()
        for region in root.regions:
            for block in region.blocks:
                for op in list(block.operations):
                    self._visit(op)
        return self.applied.total() > before

    def _visit(self, op: ir.OpView) -> None:
        for rule in self._rules.get(op.operation.name, ()):
            if self._cx is not None and not self._permitted(rule, op, self._cx):
                continue
            self._ip, self._location = ir.InsertionPoint(op), op.location
            found = rule(op, self)
            if found is None:
                continue
            values = (found,) if isinstance(found, ir.Value) else found
            assert len(values) == len(op.results), f"{rule.__name__} gave {len(values)} values"
            for old, new in zip(op.results, values, strict=True):
                if new is None:
                    assert not is_used(old), f"{rule.__name__} forgot a result"
                    continue
                assert old.type == new.type, f"{rule.__name__}: {old.type} became {new.type}"
                old.replace_all_uses_with(new)
            op.operation.erase()
            self.applied[rule.__name__.replace("_", "-")] += 1
            return
        if len(op.regions):
            self.sweep(op)

    def _permitted(self, rule: Rule, op: ir.OpView, cx: PassContext) -> bool:
        tag = f"{self._name}.{rule.__name__.replace('_', '-')}"
        return cx.permits("apply-pattern", tag, op.operation)


def made_by(value: ir.Value, *names: str) -> ir.OpView | None:
    """The operation that makes `value`, if it is called one of `names`."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name not in names:
        return None
    return owner.opview if isinstance(owner, ir.Operation) else owner


def is_used(value: ir.Value) -> bool:
    """Whether any operation has `value` as an operand."""
    return next(iter(value.uses), None) is not None

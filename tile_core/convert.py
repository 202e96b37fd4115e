"""Conversion in place and in program order.

A conversion is a table of rules by operation name. Operations are visited in dominance order, so
a rule sees operands that are converted already; what it returns takes the place of the results
and the operation is erased. Operations without a rule stay, and their result types and block
arguments are mapped through the type function. Nothing is cloned and no casts are left behind,
which makes this several times faster than a dialect conversion driven from Python.

    rules = RuleSet("convert-tileaa-to-tileas")

    @rules.on("nv_tileaa.view")
    def view(op: ir.Operation, cx: Conversion) -> ir.Value:
        "nv_tileaa.view => nv_tileas.view"
        return cx.create("nv_tileas.view", [op.operands[0]], [cx.type(op.results[0].type)]).result
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final, Generic, TypeVar

from tile_core.diagnostics import CompileError, ConfigurationError
from tile_core.insertion import Inserter
from tile_core.mlir import ir
from tile_core.passes import PassContext, error_at


class _Keep:
    """The operation stays as the rule left it; its results are not replaced."""


KEEP: Final = _Keep()

S = TypeVar("S")
Replacement = ir.Value | Sequence[ir.Value] | _Keep | None
Rule = Callable[[Any, "Conversion[Any]"], Replacement]


class RuleSet:
    """Rules of one conversion: operation name -> rule. Plugins may add their own.

    Args:
        name: of the pass.
        families: module -> the operations whose rules it registers here. It is imported when one
            of them is met first, as most programs have few kinds of operations.
    """

    def __init__(self, name: str, families: Mapping[str, Iterable[str]] | None = None) -> None:
        self.name = name
        self._rules: dict[str, Rule] = {}
        self._module_of = {
            operation: module
            for module, operations in (families or {}).items()
            for operation in operations
        }
        self.modules = frozenset(self._module_of.values())
        self._others: tuple[RuleSet, ...] = ()

    def on(self, *names: str) -> Callable[[Rule], Rule]:
        """Register the decorated function for the operations called `names`."""

        def register(rule: Rule) -> Rule:
            for name in names:
                if name in self._rules:
                    raise ConfigurationError(f"'{self.name}' has two rules for '{name}'")
                module = self._module_of.get(name)
                if module != rule.__module__ and (module or rule.__module__ in self.modules):
                    raise ConfigurationError(
                        f"'{self.name}' has a rule for '{name}' in {rule.__module__}, and its "
                        f"families say {module or 'nothing of it'}"
                    )
                self._rules[name] = rule
            return rule

        return register

    def find(self, name: str) -> Rule | None:
        """The rule for an operation."""
        for other in reversed(self._others):
            found = other.find(name)
            if found is not None:
                return found
        if name in self._module_of and name not in self._rules:
            import_module(self._module_of[name])
        return self._rules.get(name)

    def names(self) -> list[str]:
        """The operations that there are rules for, sorted."""
        own = {*self._rules, *self._module_of}
        return sorted(own.union(*(other.names() for other in self._others)))

    def joined(self, others: Iterable[RuleSet]) -> RuleSet:
        """A rule set in which `others` add to, and override, this one's rules."""
        result = RuleSet(self.name)
        result._others = (self, *others)
        return result


class Conversion(Inserter, Generic[S]):
    """One run of a rule set over one anchor operation; what rules are given.

    Operands have been converted when a rule sees them; `before` gives the types that they had.

    Args:
        rules: operation name -> rule.
        convert_type: maps a type of the source stage to one of the next.
        illegal: dialects of which nothing may remain.
        cx: the running pass's context.
        state: whatever the pass wants its rules to share; None if nothing.
    """

    def __init__(
        self,
        rules: RuleSet,
        convert_type: Callable[[ir.Type], ir.Type],
        illegal: Collection[str],
        cx: PassContext,
        state: S,
    ) -> None:
        super().__init__()
        self.rules = cache(rules.find)
        self.name = rules.name
        self.illegal = frozenset(illegal)
        self.cx = cx
        self.state = state
        self._convert_type = convert_type
        self._types: dict[ir.Type, ir.Type] = {}
        self._before: dict[ir.Value, ir.Type] = {}
        self._aliases: list[ir.Operation] = []
        self._op: ir.OpView | ir.Operation | None = None

    @property
    def target(self):
        """The GPU compiled for."""
        return self.cx.target

    def type(self, source: ir.Type) -> ir.Type:
        """The next stage's type for `source`, cached."""
        found = self._types.get(source)
        if found is None:
            try:
                found = self._types[source] = self._convert_type(source)
            except CompileError as error:
                raise self.error(error.message) from error
        return found

    def error(self, message: str) -> CompileError:
        """An error at the operation that is being converted; `'name' op <message>`."""
        assert self._op is not None
        return error_at(self._op, message)

    def before(self, value: ir.Value) -> ir.Type:
        """The type that `value`, or what it has taken the place of, has in the source stage."""
        return self._before.get(value) or value.type

    def stand_for(self, value: ir.Value, type_: ir.Type) -> None:
        """Let `before(value)` be `type_`: for values that a rule gives other rules to convert."""
        self._before.setdefault(value, type_)

    @property
    def insertion_point(self) -> ir.InsertionPoint:
        """Where `create` inserts."""
        assert self._ip is not None
        return self._ip

    def at(self, ip: ir.InsertionPoint) -> _At:
        """Context manager: `create` inserts at `ip` instead."""
        return _At(self, ip)

    def run(self, root: ir.Operation) -> None:
        """Convert everything inside `root`.

        Raises:
            CompileError: an operation of an illegal dialect has no rule.
        """
        self._op = root
        for region in root.regions:
            self.convert_region(region)
        for alias in reversed(self._aliases):
            alias.results[0].replace_all_uses_with(alias.operands[0])
            alias.erase()
        self._aliases.clear()

    def convert_region(self, region: ir.Region) -> None:
        """Convert the blocks of `region`; for rules that move regions into a new operation."""
        for block in region.blocks:
            self.convert_block(block)

    def convert_block(self, block: ir.Block) -> None:
        """Map the arguments of `block` and convert its operations in order."""
        for argument in block.arguments:
            self._map_type(argument)
        for op in list(block.operations):
            self.convert_op(op)

    def convert_op(self, op: ir.OpView) -> None:
        """Convert one operation; also for operations that a rule has just created."""
        # Not `op.name`: classes such as func.FuncOp show their symbol under that name.
        rule = self.rules(op.operation.name)
        outer = self._ip, self._location, self._op
        self._op = op
        if rule is None:
            self._keep(op)
            self._op = outer[2]
            return
        self._ip, self._location = ir.InsertionPoint(op), op.location
        types = [result.type for result in op.results]
        try:
            replacement = rule(op, self)
        finally:
            self._ip, self._location, self._op = outer
        if replacement is not KEEP:
            self._replace(op, types, replacement)
            return
        if types:  # the rule may have changed those of a kept operation
            self._before.update(zip(op.results, types, strict=True))

    def _keep(self, op: ir.OpView) -> None:
        if op.operation.name.split(".", 1)[0] in self.illegal:
            raise error_at(op, f"is not supported by '{self.name}': no rule converts it")
        for result in op.results:
            self._map_type(result)
        for region in op.regions:
            self.convert_region(region)

    def _map_type(self, value: Any) -> None:
        before = self._before[value] = value.type
        mapped = self.type(before)
        if mapped != before:
            value.set_type(mapped)

    def _replace(self, op: ir.OpView, types: Sequence[ir.Type], replacement: Replacement) -> None:
        if replacement is None:
            values: Sequence[ir.Value] = ()
        elif isinstance(replacement, ir.Value):
            values = (replacement,)
        else:
            values = replacement  # type: ignore[assignment]
        assert len(values) == len(op.results), (
            f"a rule for {op.operation.name} returned {len(values)} values"
        )
        for old, type_, new in zip(op.results, types, values, strict=True):
            old.replace_all_uses_with(self._standing_for(new, type_, op))
        self._forget(op)
        op.operation.erase()

    def _forget(self, op: ir.OpView) -> None:
        """Values that go with `op`: others may come to lie where they lay."""
        for result in op.results:
            self._before.pop(result, None)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    self._before.pop(argument, None)
                for inner in block.operations:
                    self._forget(inner)

    def _standing_for(self, value: ir.Value, type_: ir.Type, op: ir.OpView) -> ir.Value:
        """`value`, known to have been of `type_` before; a value that stood for one of another
        type goes by an alias until the run ends.
        """
        if self._before.setdefault(value, type_) == type_:
            return value
        alias = ir.Operation.create(
            "builtin.unrealized_conversion_cast",
            results=[value.type],
            operands=[value],
            loc=op.location,
            ip=ir.InsertionPoint(op),
        )
        self._aliases.append(alias)
        self._before[alias.result] = type_
        return alias.result


class _At:
    def __init__(self, conversion: Conversion, ip: ir.InsertionPoint) -> None:
        self._conversion = conversion
        self._ip = ip
        self._outer: ir.InsertionPoint | None = None

    def __enter__(self) -> None:
        self._outer = self._conversion._ip
        self._conversion._ip = self._ip

    def __exit__(self, *_: object) -> None:
        self._conversion._ip = self._outer

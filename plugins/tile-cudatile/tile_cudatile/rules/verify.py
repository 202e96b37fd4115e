"""Checks whole programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from tile_cudatile.errors import VerifyError
from tile_cudatile.locations import Location, place
from tile_cudatile.rules import arith, control, memory, shapes
from tile_cudatile.rules.debug import entry_problem, operation_problem
from tile_cudatile.rules.fields import field_problems, result_count_problem
from tile_cudatile.rules.registry import REGION_RULES, RULES
from tile_cudatile.rules.types import type_problem
from tile_cudatile.rules.words import quote, quote_all
from tile_cudatile.tree import Block, Entry, Global, Module, Op
from tile_cudatile.types import Pointer, Tile, Type

_FAMILIES = (arith, control, memory, shapes)
FAILED = "verification failed for deserialized cuda_tile::ModuleOp"

#: What a block of a region must end in; those of `if` and `loop` may end in any terminator.
_ENDS = {"for": "continue", "reduce": "yield", "scan": "yield"}


def verify(module: Module, *, types: bool = True, only: AbstractSet[Op] | None = None) -> None:
    """Checks every rule of the language; without `types` not those of types by themselves.

    With `only`, the rules that look at attributes and types of a single operation are checked for
    these alone: what reads a program knows which operations are like others before them.

    Raises:
        VerifyError: the first rule that is broken, in the words of the reference verifier.
    """
    if types:
        _check_types(module)
    _check_symbols(module)
    for item in module.globals:
        _check_global(item)
    tables = {item.name: item for item in module.globals}
    for entry in module.entries:
        _EntryVerifier(entry, tables, only).check()
    for entry in module.entries:
        _check_arguments(entry)


def _fail(where: Location, text: str) -> VerifyError:
    error = VerifyError(text, FAILED)
    error.where = place(where)
    return error


def _check_types(module: Module) -> None:
    seen: dict[int, Type] = {}
    for entry in module.entries:
        values = list(entry.args)
        for op in entry.body.walk():
            values.extend(op.results)
            values.extend(a for r in op.regions for b in r.blocks for a in b.args)
        for value in values:
            if id(value.type) not in seen:
                seen[id(value.type)] = value.type
                problem = type_problem(value.type)
                if problem is not None:
                    raise VerifyError(problem, FAILED)


def _check_symbols(module: Module) -> None:
    seen: set[str] = set()
    for item in (*module.globals, *module.entries):
        if item.name in seen:
            raise VerifyError(f"redefinition of symbol named '{item.name}'", FAILED)
        seen.add(item.name)


def _check_global(item: Global) -> None:
    if len(item.value.type.shape) != 1:
        raise VerifyError("'cuda_tile.global' op type must have rank 1", FAILED)


def _check_arguments(entry: Entry) -> None:
    for index, type_ in enumerate(entry.type.inputs):
        if not isinstance(type_, Tile) or type_.shape:
            error = VerifyError(
                f"unsupported type in bytecode for entry argument #{index}: {quote(type_)}; "
                "expected a rank-0 !cuda_tile.tile type",
                "deserialized module does not conform to bytecode format invariants",
            )
            error.where = place(entry.loc)
            raise error


class _EntryVerifier:
    """Checks one kernel."""

    def __init__(
        self, entry: Entry, tables: dict[str, Global], only: AbstractSet[Op] | None
    ) -> None:
        self._entry = entry
        self._tables = tables
        self._only = only
        self._places: dict[int, Op] = {}  # location, by identity -> the first operation there

    def check(self) -> None:
        """Raises for the first broken rule."""
        entry = self._entry
        for text in self._entry_problems():
            raise _fail(entry.loc, f"'cuda_tile.entry' op {text}")
        for block in entry.body.blocks:
            self._block(block, [])
            text = _end_problem(block, "return")
            if text is not None:
                raise _fail(entry.loc, f"'cuda_tile.entry' op {text}")
        for op in self._places.values():
            text = operation_problem(op.loc, entry)
            if text is not None:
                raise self._error(op, text)

    def _entry_problems(self) -> Iterator[str]:
        entry = self._entry
        if not all(isinstance(attrs, dict) for attrs in entry.arg_attrs):
            yield (
                "attribute 'arg_attrs' failed to satisfy constraint: Array of dictionary attributes"
            )
        elif any(entry.arg_attrs) and len(entry.arg_attrs) != len(entry.args):
            yield (
                "expects argument attribute array to have the same number of elements as the "
                f"number of function arguments, got {len(entry.arg_attrs)}, but expected "
                f"{len(entry.args)}"
            )
        if any("." not in name for attrs in entry.arg_attrs for name in attrs):  # type: ignore[union-attr]
            yield "arguments may only have dialect attributes"
        if entry.type.results:
            yield "entry op must not return values"
        for type_ in entry.type.inputs:
            if isinstance(type_, Tile) and type_.shape:
                yield "entry op must have scalar types (rank 0 !cuda_tile.tile)"
        text = entry_problem(entry)
        if text is not None:
            yield text
        if not entry.body.block.ops:
            yield "expects a non-empty block"

    def _block(self, block: Block, parents: list[Op]) -> None:
        only, places, last = self._only, self._places, block.ops[-1:]
        for op in block.ops:
            if op.spec.terminator and op is not last[0]:
                raise self._error(op, "must be the last operation in the parent block")
            if id(op.loc) not in places:
                places[id(op.loc)] = op
            if only is None or op in only or op.spec.parents:
                self._op(op, parents)

    def _error(self, op: Op, text: str) -> VerifyError:
        if text.startswith("!"):
            return _fail(op.loc, text[1:])
        return _fail(op.loc, f"'cuda_tile.{op.name}' op {text}")

    def _op(self, op: Op, parents: list[Op]) -> None:
        for text in self._problems(op, parents):
            raise self._error(op, text)
        inside = [*parents, op]
        for region in op.regions:
            for block in region.blocks:
                self._block(block, inside)
                text = _end_problem(block, _ENDS.get(op.name))
                if text is not None:
                    raise self._error(op, text)
        for check in REGION_RULES.get(op.name, ()):
            for text in check(op):
                raise self._error(op, text)

    def _problems(self, op: Op, parents: list[Op]) -> Iterator[str]:
        count = result_count_problem(op)
        if count is not None:
            yield count
        yield from field_problems(op)
        yield from _region_problems(op)
        if op.spec.parents:
            yield from _parent_problems(op, parents, self._entry)
        for check in RULES.get(op.name, ()):
            yield from check(op)
        if op.name == "get_global":
            yield from self._global_problems(op)

    def _global_problems(self, op: Op) -> Iterator[str]:
        name = str(op.attrs["name"])
        found = self._tables.get(name)
        if found is None:
            yield f"'{name}' does not reference a valid global"
            return
        type_ = op.result.type
        assert isinstance(type_, Tile)
        assert isinstance(type_.element, Pointer)
        element = found.value.type.element
        if type_.element.pointee != element:
            yield (
                f"pointee type of result type {quote(type_.element)} does not match type "
                f"{quote(element)} of the global @{name}"
            )


def _region_problems(op: Op) -> Iterator[str]:
    for index, region in enumerate(op.regions):
        optional = op.spec.regions[index] == "elseRegion"
        if optional and len(region.blocks) > 1:
            yield f"expects region #{index} to have 0 or 1 blocks"
            return
        if not optional and len(region.blocks) != 1:
            yield (
                f"region #{index} ('{op.spec.regions[index]}') failed to verify constraint: "
                "region with 1 blocks"
            )
            return
        for block in region.blocks:
            if op.name == "if" and block.args:
                yield f"region #{index} should have no arguments"


def _end_problem(block: Block, end: str | None) -> str | None:
    """Whether a block ends in another operation than its region asks for."""
    last = block.ops[-1].name
    if end is None or last == end:
        return None
    return f"expects regions to end with 'cuda_tile.{end}', found 'cuda_tile.{last}'"


def _parent_problems(op: Op, parents: Sequence[Op], entry: Entry) -> Iterator[str]:
    parent = parents[-1].name if parents else "entry"
    if parent not in op.spec.parents:
        # The released verifier names an operation of its own previews, too.
        named = [p if p != "entry" else "entry, cuda_tile.preview$func" for p in op.spec.parents]
        listed = ", ".join(f"cuda_tile.{p}" for p in named)
        yield f"expects parent op to be one of '{listed}'"
        return
    if op.name == "return":
        yield from _return_problems(op, parents, entry)
    elif op.name in ("break", "continue"):
        yield from _exit_problems(op, parents)


def _return_problems(op: Op, parents: Sequence[Op], entry: Entry) -> Iterator[str]:
    if any(p.name not in ("if", "loop") for p in parents):
        yield "must be used within a cuda_tile.entry, cuda_tile.if, or cuda_tile.loop operation"
    elif len(op.values()) != len(entry.type.results):
        yield (
            f"has {len(op.values())} operands, but enclosing function (@{entry.name}) returns "
            f"{len(entry.type.results)}"
        )


_LOOPS = {"break": ("loop",), "continue": ("for", "loop")}


def _exit_problems(op: Op, parents: Sequence[Op]) -> Iterator[str]:
    loops = _LOOPS[op.name]
    target = next((p for p in reversed(parents) if p.name != "if"), None)
    if target is None or target.name not in loops:
        listed = "', '".join(f"cuda_tile.{n}" for n in (*loops, "if"))
        yield f"can only be nested within a ancestor chain of '{listed}' operations"
        return
    found = tuple(v.type for v in op.values())
    results = tuple(v.type for v in target.results)
    if op.name == "break":
        if found != results:
            yield (
                "operand types must correspond to the parent loop result types: "
                f"({quote_all(found)}) vs ({quote_all(results)})"
            )
        return
    if target.name == "for":
        expected, what = results, "return types"
    else:
        expected, what = tuple(v.type for v in target.values()), "iter_values"
    if found != expected:
        yield (
            f"!`{target.name}` is missing a valid terminator. `continue` op should have operand "
            f"types that match the parent loop {what}: ({quote_all(expected)}), but found: "
            f"({quote_all(found)})"
        )

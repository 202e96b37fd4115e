"""Folding of layout arithmetic: what the types know already becomes `static` or a constant."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_cute.dialect.algebra_ops import QUERIES, inferred, queried
from tile_cute.dialect.base import type_of
from tile_cute.infer import RULES
from tile_cute.values import Value

_SKIPPED = ("make_fragment_like",)


@dataclass(frozen=True)
class FoldLayouts(Pass):
    """Replace pure layout operations by their static results, and drop what is unused then."""

    name = "cute-fold-layouts"
    anchor = "builtin.module"
    dependent_dialects: ClassVar[tuple[str, ...]] = ("cute",)
    statistics: ClassVar[Mapping[str, str]] = {
        "folded": "operations replaced by static values or constants",
        "erased": "operations without users",
    }

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        found: list[ir.Operation] = []
        _collect(op, found)
        # Users first: what only folded operations used is then unused itself.
        for inner in reversed(found):
            if _is_dead(inner):
                inner.erase()
                cx.count("erased")
            elif self._fold(inner):
                inner.erase()
                cx.count("folded")

    def _fold(self, op: ir.Operation) -> bool:
        short = op.name.split(".", 1)[1]
        with op.location, ir.InsertionPoint(op):
            new = _folded(op, short)
        if new is None:
            return False
        op.results[0].replace_all_uses_with(new.results[0])
        return True


def _folded(op: ir.Operation, short: str) -> ir.Operation | None:
    """The constant or static value that an operation stands for; None if that is not known."""
    if short in QUERIES:
        number = queried(op)
        return _constant(op.results[0].type, number) if isinstance(number, int) else None
    if short not in RULES or short in _SKIPPED:
        return None
    value = inferred(op)
    if not isinstance(value, Value) or value.dynamic:
        return None
    return ir.Operation.create("cute.static", results=[type_of(value)])


def _collect(op: ir.Operation, into: list[ir.Operation]) -> None:
    for region in op.regions:
        for block in region:
            for child in block.operations:
                inner = child.operation
                if inner.name.startswith("cute."):
                    into.append(inner)
                _collect(inner, into)


def _is_dead(op: ir.Operation) -> bool:
    short = op.name.split(".", 1)[1]
    foldable = short in QUERIES or short == "static" or (short in RULES and short not in _SKIPPED)
    return foldable and not any(True for result in op.results for _ in result.uses)


def _constant(type_: ir.Type, value: int) -> ir.Operation:
    attribute = ir.IntegerAttr.get(type_, value)
    return ir.Operation.create("arith.constant", results=[type_], attributes={"value": attribute})

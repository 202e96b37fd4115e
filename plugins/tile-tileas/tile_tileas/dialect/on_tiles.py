"""Checks that are written for tiles, on operations that take a buffer in a tile's place."""

from collections.abc import Sequence
from typing import Any

from tile_core.dialect import Check
from tile_core.mlir import ir
from tile_tileas.dialect.buffers import Buffer, BufferType
from tile_tileas.dialect.effects import effects


class _Value:
    """A value whose type is that of the tile in it."""

    def __init__(self, value: ir.Value) -> None:
        buffer = Buffer.of(value.type)
        self.type = value.type if buffer is None else buffer.tile


class _Tiles:
    """An operation whose operands are seen as tiles, wherever they are."""

    def __init__(self, op: ir.OpView, count: int | None = None) -> None:
        self._op = op
        self.attributes = op.attributes
        self.regions = op.regions
        self.results = list(op.results)
        self.operands = [_Value(value) for value in list(op.operands)[:count]]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._op, name)
        return _Value(found) if isinstance(found, ir.Value) else found


def on_tiles(check: Check) -> Check:
    """`check` of an operation that takes tiles, on one that takes tiles or buffers."""
    return lambda op: check(_Tiles(op))


def first_operands(check: Check) -> Check:
    """`check` of an operation with an operand for each result, on one that has more behind them."""
    return lambda op: check(_Tiles(op, len(op.results)))


def reads_buffers(names: Sequence[str]) -> tuple[type, ...]:
    """Traits of an operation without effects, but that it reads those fields that are buffers.

    On tiles alone it is pure: it may go, and may be moved.
    """

    class Reads(effects(reads=tuple(names))):
        @staticmethod
        def get_effects(op: Any, effects: ir.MemoryEffectInstancesList) -> None:
            uses = zip(op.operands, op.operation.op_operands, strict=True)
            for value, operand in uses:
                if isinstance(value.type, BufferType):
                    effects.append(ir.MemoryEffect.Read, operand)

    class Speculatable(ir.ConditionallySpeculatable):
        @staticmethod
        def get_speculatability(op: Any) -> ir.Speculatability:
            return ir.Speculatability.Speculatable

    return (Reads, Speculatable)

"""Effects on buffers: which operand or result an operation allocates, frees, reads or writes.

MLIR's passes treat an effect on one value as in the way of effects on any other; our own analyses
(liveness, barriers, fences) ask `buffer_effects`.
"""

from collections.abc import Iterator
from typing import Any

from tile_core.dialect import READ, WRITE, Effects
from tile_core.mlir import ir
from tile_tileas.dialect.fields import values_of

#: Trait classes by operation name, as `buffer_effects` looks them up.
_DECLARED: dict[str, tuple[tuple[str, str], ...]] = {}


def effects(
    *,
    allocates: str = "",
    frees: str = "",
    reads: tuple[str, ...] = (),
    writes: tuple[str, ...] = (),
) -> type[Effects]:
    """The trait of an operation that has these effects on its fields of these names.

    A field that holds no value (an optional operand that is absent) has no effect.
    """
    pairs = (
        *((name, "allocate") for name in (allocates,) if name),
        *((name, "free") for name in (frees,) if name),
        *((name, "read") for name in reads),
        *((name, "write") for name in writes),
    )

    class OnFields(Effects):
        @classmethod
        def attach(cls, op_name: object, **rest: Any) -> None:
            _DECLARED[str(op_name)] = pairs
            super().attach(op_name, **rest)

        @staticmethod
        def get_effects(op: Any, effects: ir.MemoryEffectInstancesList) -> None:
            for name, kind in pairs:
                for target in _targets(op, name):
                    effects.append(_KINDS[kind], target)

    return OnFields


_KINDS = {
    "allocate": ir.MemoryEffect.Allocate,
    "free": ir.MemoryEffect.Free,
    "read": READ,
    "write": WRITE,
}


def _targets(op: Any, name: str) -> Iterator[Any]:
    """The operands, or the result, that field `name` stands for."""
    for value in values_of(op, name):
        if isinstance(value, ir.OpResult) and value.owner == op.operation:
            yield value
        else:
            at = list(op.operands).index(value)
            yield list(op.operation.op_operands)[at]


def has_buffer_effects(name: str) -> bool:
    """Whether operations of this name are declared with effects on their fields."""
    return name in _DECLARED


def buffer_effects(op: ir.OpView) -> list[tuple[str, ir.Value]]:
    """What an operation of nv_tileas does to which values: ("read", buffer), ...

    Kinds are "allocate", "free", "read" and "write". Operations that are declared without effects
    on fields have none here.
    """
    return [
        (kind, value)
        for name, kind in _DECLARED.get(op.operation.name, ())
        for value in values_of(op, name)
    ]

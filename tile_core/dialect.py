"""What a Python-defined dialect is declared with.

    class NvTileAA(Dialect, name="nv_tileaa"): ...

    class AddPtrOp(Operation, dialect=NvTileAA, name="addptr", traits=[Pure]):
        '''base + offset, counted in elements.'''
        base: Operand[Any]
        offset: Operand[Any]
        result: Result[Any]

`tile_core.declarations` says what a field may be; IRDL underneath. Names are `[a-z0-9_]+`,
optional attributes stay undeclared and are checked in `verify_invariants`, and dialect files must
not use `from __future__ import annotations`, because live annotations are read.

Operations of one shape are declared from tables: an `OperationSpec` says what a class body would,
and `declare` makes the class, in as many dialects as have the operation.

Effects are interfaces of MLIR, so its own passes (cse, canonicalize, loop-invariant code motion)
treat our operations right. An operation without any of these traits stays where it is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tile_core.declarations import (
    Attribute,
    Dialect,
    Mixed,
    Operand,
    Operation,
    Region,
    Result,
    Type,
    runs_of_types,
)
from tile_core.mlir import ir

__all__ = [
    "READ",
    "WRITE",
    "Attribute",
    "Check",
    "Dialect",
    "Effects",
    "IsolatedFromAbove",
    "Mixed",
    "NoEffect",
    "NoTerminator",
    "Operand",
    "Operation",
    "OperationSpec",
    "Pure",
    "PureRegions",
    "ReadsAndWrites",
    "Region",
    "Result",
    "Terminator",
    "Type",
    "Writes",
    "declare",
    "declared_effect",
    "reject",
    "runs_of_types",
    "verifier",
]


#: The effects that traits append. MLIR makes a new object at every look, and none equals another.
READ, WRITE = ir.MemoryEffect.Read, ir.MemoryEffect.Write


class Terminator:
    """Trait: the operation ends its block."""

    @staticmethod
    def attach(op_name: str) -> None:
        ir.IsTerminatorTrait.attach(op_name)


class IsolatedFromAbove:
    """Trait: the operation's regions use no value from outside."""

    @staticmethod
    def attach(op_name: str) -> None:
        ir.IsIsolatedFromAboveTrait.attach(op_name)


class NoTerminator:
    """Trait: the blocks of the operation end without a terminator."""

    @staticmethod
    def attach(op_name: str) -> None:
        ir.NoTerminatorTrait.attach(op_name)


class Effects(ir.MemoryEffectsOpInterface):
    """Base of traits that say which effects an operation has; `get_effects` appends them.

    What is read or written is not said, so every write is in the way of every read.
    """

    @staticmethod
    def get_effects(op: Any, effects: ir.MemoryEffectInstancesList) -> None:
        raise NotImplementedError


class NoEffect(Effects):
    """Touches no memory, but must not run where it would not have run."""

    @staticmethod
    def get_effects(op: Any, effects: ir.MemoryEffectInstancesList) -> None:
        """No effect: nothing to append."""


class Pure:
    """Touches no memory, and may run where it would not have run."""

    class _Speculatable(ir.ConditionallySpeculatable):
        @staticmethod
        def get_speculatability(op: Any) -> ir.Speculatability:
            return ir.Speculatability.Speculatable

    @staticmethod
    def attach(op_name: str) -> None:
        NoEffect.attach(op_name)
        Pure._Speculatable.attach(op_name)


class Reads(Effects):
    """Reads memory."""

    @staticmethod
    def get_effects(op: Any, effects: ir.MemoryEffectInstancesList) -> None:
        effects.append(READ)


class Writes(Effects):
    """Changes memory, or something else that others see: stays, and keeps reads in their order."""

    @staticmethod
    def get_effects(op: Any, effects: ir.MemoryEffectInstancesList) -> None:
        effects.append(WRITE)


class ReadsAndWrites(Effects):
    """Reads memory and changes it."""

    @staticmethod
    def get_effects(op: Any, effects: ir.MemoryEffectInstancesList) -> None:
        effects.append(READ)
        effects.append(WRITE)


class PureRegions:
    """Trait: no effect; may run where all that its regions hold may."""

    class _Speculatable(ir.ConditionallySpeculatable):
        @staticmethod
        def get_speculatability(op: Any) -> ir.Speculatability:
            return ir.Speculatability.RecursivelySpeculatable

    @staticmethod
    def attach(op_name: str) -> None:
        NoEffect.attach(op_name)
        PureRegions._Speculatable.attach(op_name)


class _Recorder:
    """In place of MLIR's list of effects, which only MLIR can make."""

    def __init__(self) -> None:
        self.effects: list[Any] = []

    def append(self, effect: Any, *_target: Any) -> None:
        """An effect, on whatever value."""
        self.effects.append(effect)


def declared_effect(op: ir.OpView) -> str | None:
    """ "none", "read" or "write", by the traits of an operation of our dialects.

    Anything but reading is "write". What its regions do is not looked at. None if no trait says
    anything: the operation may do whatever it likes.
    """
    recorder, said = _Recorder(), False
    for trait in getattr(type(op), "_traits", ()):
        if trait in (Pure, PureRegions):
            said = True
        elif issubclass(trait, Effects):
            said = True
            trait.get_effects(op, recorder)  # type: ignore[arg-type]
    if not said:
        return None
    if all(effect is READ for effect in recorder.effects):
        return "read" if recorder.effects else "none"
    return "write"


#: What is wrong with an operation, in words that follow `'dialect.op' op `; None if nothing is.
Check = Callable[[Any], str | None]


@dataclass(frozen=True)
class OperationSpec:
    """One operation of a table.

    Attributes:
        name: the mnemonic, in snake case.
        fields: annotations by name, as in the body of an `Operation` class, in order.
        doc: what it does.
        traits: classes with `attach`.
        checks: the verifier: the first problem is reported.
    """

    name: str
    fields: Mapping[str, Any]
    doc: str
    traits: tuple[type, ...] = ()
    checks: tuple[Check, ...] = ()

    @property
    def class_name(self) -> str:
        """`make_range` is `MakeRangeOp`."""
        return "".join(part.capitalize() for part in self.name.split("_")) + "Op"


def declare(
    dialect: type[Dialect], spec: OperationSpec, class_name: str = "", module: str = __name__
) -> type[Operation]:
    """The class of an operation of `dialect`, as if it had been written out.

    Args:
        class_name: instead of `spec.class_name`.
        module: `__name__` of the module that the class shall seem to come from.
    """
    body: dict[str, Any] = {
        "__annotations__": dict(spec.fields),
        "__doc__": spec.doc,
        "__module__": module,
    }
    if spec.checks:
        body["verify_invariants"] = staticmethod(verifier(*spec.checks))
    metaclass: Any = type(Operation)
    return metaclass(
        class_name or spec.class_name, (Operation,), body,
        dialect=dialect, name=spec.name, traits=spec.traits,
    )  # fmt: skip


def verifier(*checks: Check) -> Callable[[Any], bool]:
    """What MLIR calls to verify: reports the first problem that `checks` find."""

    def verify(op: Any) -> bool:
        for check in checks:
            try:
                problem = check(op)
            except (IndexError, KeyError, TypeError, ValueError):
                # Operands were looked for where the text says that they are.
                problem = _segments(op)
                if problem is None:
                    raise
            if problem is not None:
                return reject(op, problem)
        return True

    return verify


def _segments(op: Any) -> str | None:
    """What is wrong with the sizes of the groups of operands and results, if anything is. MLIR
    looks at them behind the checks."""
    for name, values, groups in (
        ("operandSegmentSizes", op.operands, type(op)._ODS_OPERAND_SEGMENTS),
        ("resultSegmentSizes", op.results, type(op)._ODS_RESULT_SEGMENTS),
    ):
        if name not in op.attributes:
            # IRDL asks for sizes where more than one group may have another number than one.
            if sum(size != 1 for size in groups or ()) > 1:
                return f"requires attribute '{name}'"
            continue
        found = op.attributes[name]
        if not isinstance(found, ir.DenseI32ArrayAttr):
            return f"expects '{name}' to be an array of i32, but got {found}"
        sizes = list(found)
        if min(sizes, default=0) < 0 or sum(sizes) != len(values):
            return f"has {len(values)} values where '{name}' says {sizes}"
    return None


def reject(op: ir.OpView | ir.Operation, message: str) -> bool:
    """Report `'dialect.op' op <message>` at the operation; returns False for verifiers."""
    operation = op.operation
    operation.location.emit_error(f"'{operation.name}' op {message}")
    return False

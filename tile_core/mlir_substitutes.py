"""What some versions of MLIR's bindings lack, and what stands in for it.

`mlir_providers.SUBSTITUTED` names what may be lacking. Everything here is on the safe side: an
operation whose effects cannot be told to MLIR is one that may have any, and one that cannot be told
to be speculatable is not moved. So such bindings compile the same programs, to code that MLIR's own
passes have improved less.
"""

from __future__ import annotations

import re
from enum import Enum
from types import ModuleType
from typing import Any

from tile_core.diagnostics import ConfigurationError

#: Operations of MLIR itself that passes are nested on and that are isolated from above.
_ISOLATED = frozenset({"builtin.module", "func.func", "gpu.module", "gpu.func", "llvm.func"})


class MemoryEffect(Enum):
    """Kinds of effects, for those who only want to know which were appended."""

    Read = "read"
    Write = "write"
    Allocate = "allocate"
    Free = "free"


class Speculatability(Enum):
    """What `get_speculatability` returns."""

    NotSpeculatable = 0
    Speculatable = 1
    RecursivelySpeculatable = 2


class ConditionallySpeculatable:
    """The interface that cannot be attached: operations are not speculatable then."""

    @classmethod
    def attach(cls, op_name: object, **_rest: Any) -> None:
        """Nothing: what has no such interface is never moved to where it would not have run."""


class Float8E5M3FNUType:
    """The type that cannot be made."""

    @staticmethod
    def get(*_arguments: Any) -> Any:
        raise ConfigurationError(
            "the installed bindings of MLIR have no type f8E5M3FNU", hint="tilec doctor says which"
        )


def complete(ir: ModuleType) -> None:
    """Add what the module `ir` of the bindings lacks."""
    if not hasattr(ir, "MemoryEffect"):
        ir.MemoryEffectsOpInterface = _effects_interface(ir.MemoryEffectsOpInterface)  # type: ignore[attr-defined]
        ir.MemoryEffect = MemoryEffect  # type: ignore[attr-defined]
    if not hasattr(ir, "IsIsolatedFromAboveTrait"):
        ir.IsIsolatedFromAboveTrait = _isolated_trait(ir.DynamicOpTrait)  # type: ignore[attr-defined]
    for substitute in (Speculatability, ConditionallySpeculatable, Float8E5M3FNUType):
        if not hasattr(ir, substitute.__name__):
            setattr(ir, substitute.__name__, substitute)


def is_isolated(op: Any, trait: Any) -> bool:
    """Whether MLIR takes `op` for isolated from above; for its own operations by their names, where
    `trait` is a substitute that those do not have.
    """
    if getattr(trait, "substitute", False):
        if op.name in _ISOLATED:
            return True
        if not hasattr(trait, "_trait_typeid"):  # the bindings number it when it is first attached
            return False
    return op.has_trait(trait)


def is_loaded(context: Any, dialect: str) -> bool:
    """Whether a dialect, none of MLIR's own, has been declared in `context`."""
    known = getattr(context, "is_dialect_loaded", None)
    if known is not None:
        return known(dialect)
    try:
        context.dialects[dialect]
    except (IndexError, KeyError, RuntimeError, ValueError):
        return False
    return True


class _Recorder:
    """A list of effects in which nothing can be looked up."""

    def __init__(self) -> None:
        self.count = 0

    def append(self, *_effect: Any) -> None:
        self.count += 1


def _effects_interface(real: Any) -> type:
    """The interface, attached only to operations that have no effect whatever they look like."""

    class MemoryEffectsOpInterface(real):
        @classmethod
        def attach(cls, op_name: object, **rest: Any) -> None:
            recorder = _Recorder()
            try:
                cls.get_effects(None, recorder)  # type: ignore[attr-defined]
            except Exception:  # it depends on the operation
                return
            if not recorder.count:
                super().attach(op_name, **rest)

    return MemoryEffectsOpInterface


def _isolated_trait(real: Any) -> type:
    """The trait, which verifies what MLIR's own does: no value from outside of the regions."""

    class IsIsolatedFromAboveTrait(real):
        substitute = True

        @staticmethod
        def verify_invariants(_op: Any) -> bool:
            return True

        @staticmethod
        def verify_region_invariants(op: Any) -> bool:
            for value in _used_from_outside(op):
                op.location.emit_error(
                    f"'{op.operation.name}' op is isolated from above and uses {value.get_name()} "
                    "of outside"
                )
                return False
            return True

    return IsIsolatedFromAboveTrait


def _used_from_outside(op: Any) -> list[Any]:
    inside: set[Any] = set()
    found: list[Any] = []
    todo = [block for region in op.operation.regions for block in region.blocks]
    while todo:
        block = todo.pop()
        inside.update(block.arguments)
        for inner in block.operations:
            inside.update(inner.operation.results)
            found += inner.operation.operands
            todo += [b for region in inner.operation.regions for b in region.blocks]
    return [value for value in found if value not in inside]


#: The operation that `readable` writes in another form.
REWRITTEN = "nvvm.barrier"
#: A barrier as MLIR prints it; LLVM 22 takes what stands behind it, its location or an attribute,
#: for the kind of a reduction that is not there.
_BARRIER = re.compile(
    r"^(\s*)nvvm\.barrier(?: id = (%\S+))?(?: number_of_threads = (%\S+))?(?= loc\(|\s*$)",
    re.MULTILINE,
)


def readable(text: str) -> str:
    """`text` with what some versions of MLIR cannot read again in the form that all of them read;
    for such versions only, since that form has their numbers of operands."""
    return _BARRIER.sub(_generic_barrier, text)


def _generic_barrier(found: re.Match[str]) -> str:
    operands = [value for value in found.groups()[1:] if value]
    sizes = ", ".join(str(int(bool(value))) for value in (*found.groups()[1:], None))
    types = ", ".join("i32" for _ in operands)
    return (
        f'{found[1]}"nvvm.barrier"({", ".join(operands)}) '
        f"<{{operandSegmentSizes = array<i32: {sizes}>}}> : ({types}) -> ()"
    )

"""Vector accesses to global memory, plain or predicated: what tiled and pointer accesses share."""

from __future__ import annotations

from dataclasses import dataclass

from tile_cute.linear import LinearLayout
from tile_tileas.analysis.caches import acts, asked
from tile_tileas.materialize.leaders import LEADER

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.device.memory import (
    Manner,
    predicated_load,
    predicated_store,
    words_of,
)
from tile_nvptx.passes.tileas.ruleset import text
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import vector_of

_SCOPES = {"tl_blk": "cta", "cluster": "cluster", "gpu": "gpu", "sys": "sys"}


def qualifiers(op: ir.OpView) -> str:
    """PTX `.sem.scope` of an access; empty for weak ones."""
    semantic = text(op, "mem_semantic", "weak")
    if semantic == "weak":
        return ""
    return f".{semantic}.{_SCOPES[text(op, 'mem_scope')]}"


def manner(op: ir.OpView) -> Manner:
    """How a load or store is made: order, scope, what it asks of caches."""
    return Manner(qualifiers(op), *hints_to_caches(op))


def hints_to_caches(op: ir.OpView) -> tuple[str, str]:
    """(PTX cache operator, priority of L2) of a load or store; see `tile_tileas.analysis.caches`,
    which also says what has no effect.
    """
    modifier, priority = asked(op)
    return (f".{modifier}" if modifier and acts(op, modifier) else ""), priority


def reader(op: ir.OpView, cx: Kernel, layout: LinearLayout | None) -> ir.Value | None:
    """i1: this thread reads its elements, as their leader (`layout` None: a scalar).

    None if every thread may read for itself. Memory may change between two ordered reads, and
    then what should be one value would not be the same in all threads.
    """
    if not qualifiers(op) or (layout is not None and layout.is_injective):
        return None
    expect_leader(op)
    if layout is not None:
        return cx.state.holds_unique(cx, layout)
    b = Builder(cx)
    return b.compare(0, cx.state.thread_index(cx), b.constant(0))


def expect_leader(op: ir.OpView) -> None:
    """Raise an error if nothing passes on what leaders alone find out."""
    if LEADER not in op.attributes:
        raise error_at(
            op,
            "finds out in one thread what others want to know; "
            "run 'tileas-materialize-convert-layout' before",
        )


@dataclass
class VectorAccess:
    """Accesses of `width` elements of one storage type, in one manner."""

    cx: Kernel
    stored: ir.Type  # element as it is in memory
    width: int
    manner: Manner

    def __post_init__(self) -> None:
        self.builder = Builder(self.cx)
        self._element = max(1, self.stored.width // 8)
        self.size = self.width * self._element
        self.type = vector_of(self.width, self.stored)

    def load(
        self, pointer: ir.Value, condition: ir.Value | None, behind: int = 0, other: bytes = b""
    ) -> ir.Value:
        """`width` elements, so many `behind` the pointer; where the condition is false what one is
        `other`wise, by its bytes, or zeros.
        """
        if condition is None and self.manner == Manner():
            return self.builder.load(self._moved(pointer, behind), self.type, self.size)
        flag = condition or self.builder.constant(1, self.builder.i1)
        name, body = predicated_load(self.size, self.manner, behind * self._element, other)
        found = self.cx.state.helpers.call(self.cx, name, body, [pointer, flag], self._words())
        return self.builder.bitcast(found.result, self.type)

    def store(
        self, value: ir.Value, pointer: ir.Value, condition: ir.Value | None, behind: int = 0
    ) -> None:
        """Write `width` elements, so many `behind` the pointer, where the condition is true."""
        if condition is None and self.manner == Manner():
            self.builder.store(value, self._moved(pointer, behind), self.size)
            return
        flag = condition or self.builder.constant(1, self.builder.i1)
        name, body = predicated_store(self.size, self.manner, behind * self._element)
        words = self.builder.bitcast(value, self._words())
        self.cx.state.helpers.call(self.cx, name, body, [pointer, words, flag], None)

    def _moved(self, pointer: ir.Value, behind: int) -> ir.Value:
        byte = ir.IntegerType.get_signless(8)
        return self.builder.offset(pointer, behind * self._element, byte) if behind else pointer

    def _words(self) -> ir.Type:
        word, count = words_of(self.size)
        if count == 1:
            return ir.IntegerType.get_signless(8 * word)
        return vector_of(count, self.builder.i32)

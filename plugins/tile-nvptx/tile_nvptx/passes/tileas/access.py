"""Vector accesses to global memory, plain or predicated: what tiled and pointer accesses share."""

from __future__ import annotations

from dataclasses import dataclass

from tile_cute.linear import LinearLayout

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.build import Builder
from tile_nvptx.passes.tileas.helpers import predicated_load, predicated_store, words_of
from tile_nvptx.passes.tileas.rules import state, text
from tile_nvptx.passes.tileas.types import vector_of

_SCOPES = {"tl_blk": "cta", "device": "gpu", "sys": "sys"}


def qualifiers(op: ir.OpView) -> str:
    """PTX `.sem.scope` of an access; empty for weak ones."""
    semantic = text(op, "mem_semantic", "weak")
    if semantic == "weak":
        return ""
    return f".{semantic}.{_SCOPES[text(op, 'mem_scope')]}"


def refuse_copies(op: ir.OpView, layout: LinearLayout | None) -> None:
    """Refuse an ordered load that several threads would make of one element (None: a scalar).

    Memory may change between their reads, and then what should be one value is not the same in
    all threads.

    Raises:
        CompileError: the load is ordered, and the layout holds copies.
    """
    if qualifiers(op) and (layout is None or not layout.is_injective):
        raise error_at(
            op,
            f"with memory ordering '{text(op, 'mem_semantic')}' would be read by several threads, "
            "which is not supported",
            hint="load a tile with an element for each thread of the block",
        )


@dataclass
class VectorAccess:
    """Accesses of `width` elements of one storage type, with PTX qualifiers."""

    cx: Conversion
    stored: ir.Type  # element as it is in memory
    width: int
    qualifiers: str = ""

    def __post_init__(self) -> None:
        self.builder = Builder(self.cx)
        self.size = self.width * max(1, self.stored.width // 8)
        self.type = vector_of(self.width, self.stored)

    def load(self, pointer: ir.Value, condition: ir.Value | None) -> ir.Value:
        """`width` elements; zeros where the condition is false."""
        if condition is None and not self.qualifiers:
            return self.builder.load(pointer, self.type, self.size)
        flag = condition or self.builder.constant(1, self.builder.i1)
        name, body = predicated_load(self.size, self.qualifiers)
        found = state(self.cx).helpers.call(self.cx, name, body, [pointer, flag], self._words())
        return self.builder.bitcast(found.result, self.type)

    def store(self, value: ir.Value, pointer: ir.Value, condition: ir.Value | None) -> None:
        """Write `width` elements where the condition is true."""
        if condition is None and not self.qualifiers:
            self.builder.store(value, pointer, self.size)
            return
        flag = condition or self.builder.constant(1, self.builder.i1)
        name, body = predicated_store(self.size, self.qualifiers)
        words = self.builder.bitcast(value, self._words())
        state(self.cx).helpers.call(self.cx, name, body, [pointer, words, flag], None)

    def _words(self) -> ir.Type:
        word, count = words_of(self.size)
        if word < 4:
            return ir.IntegerType.get_signless(8 * word)
        return vector_of(count, self.builder.i32)

"""Vector accesses to global memory, plain or predicated: what tiled and pointer accesses share."""

from __future__ import annotations

from dataclasses import dataclass

from tile_cute.linear import LinearLayout

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device.memory import predicated_load, predicated_store, words_of
from tile_nvptx.passes.tileas.ruleset import text
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.row_major import flat_indices, write_row_major
from tile_nvptx.passes.tileas.thread.shared import expect_scratch, scratch_pointer
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import element_of, vector_of

_SCOPES = {"tl_blk": "cta", "cluster": "cluster", "gpu": "gpu", "sys": "sys"}


def qualifiers(op: ir.OpView) -> str:
    """PTX `.sem.scope` of an access; empty for weak ones."""
    semantic = text(op, "mem_semantic", "weak")
    if semantic == "weak":
        return ""
    return f".{semantic}.{_SCOPES[text(op, 'mem_scope')]}"


def reader(op: ir.OpView, cx: Kernel, layout: LinearLayout | None) -> ir.Value | None:
    """i1: this thread reads its elements for all threads that hold them (`layout` None: a scalar).

    None if every thread may read for itself. Memory may change between two ordered reads, and
    then what should be one value would not be the same in all threads.
    """
    if not qualifiers(op) or (layout is not None and layout.is_injective):
        return None
    expect_scratch(op)
    if layout is not None:
        return cx.state.holds_unique(cx, layout)
    b = Builder(cx)
    return b.compare(0, cx.state.thread_index(cx), b.constant(0))


def passed_on(op: ir.OpView, cx: Kernel, found: ir.Value, layout: LinearLayout | None) -> ir.Value:
    """What the reading threads have found (of storage type), in all threads."""
    if "shared_offset" not in op.attributes:
        return found
    b, base, element = Builder(cx), scratch_pointer(op, cx), element_of(found.type)
    size = element.width // 8
    if layout is not None:
        write_row_major(cx, found, layout, base)
        b.barrier()
        places = [b.offset(base, at, element) for at in flat_indices(cx, layout, layout.shape)]
        return b.concat([b.load(place, vector_of(1, element), size) for place in places])
    first = reader(op, cx, None)
    assert first is not None
    branch = cx.create("scf.if", [first], regions=2)
    with cx.at(ir.InsertionPoint(branch.regions[0].blocks.append())):
        b.store(found, base, size)
        cx.create("scf.yield")
    b.barrier()
    return b.load(base, found.type, size)


@dataclass
class VectorAccess:
    """Accesses of `width` elements of one storage type, with PTX qualifiers."""

    cx: Kernel
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
        found = self.cx.state.helpers.call(self.cx, name, body, [pointer, flag], self._words())
        return self.builder.bitcast(found.result, self.type)

    def store(self, value: ir.Value, pointer: ir.Value, condition: ir.Value | None) -> None:
        """Write `width` elements where the condition is true."""
        if condition is None and not self.qualifiers:
            self.builder.store(value, pointer, self.size)
            return
        flag = condition or self.builder.constant(1, self.builder.i1)
        name, body = predicated_store(self.size, self.qualifiers)
        words = self.builder.bitcast(value, self._words())
        self.cx.state.helpers.call(self.cx, name, body, [pointer, words, flag], None)

    def _words(self) -> ir.Type:
        word, count = words_of(self.size)
        if word < 4:
            return ir.IntegerType.get_signless(8 * word)
        return vector_of(count, self.builder.i32)

"""Stages filled by cp.async: each thread copies its part, and waits for groups of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tile_core.mlir import ir
from tile_tileas.analysis.caches import MODIFIER, POLICY
from tile_tileas.dialect.buffers import async_token
from tile_tileas.dialect.fields import operands_of
from tile_tileas.pipelining.filling import Place, Slot
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.writer import Writer

_GROUP = "cp.async"
#: Attributes of a load that one which takes its place has, too.
KEPT = ("access", "mem_semantic", "in_bounds", MODIFIER, POLICY)


class CpAsync:
    """A group of copies for each iteration, empty ones included: what is waited for stays the same
    number of groups.
    """

    name = _GROUP
    phased = False

    def __init__(self) -> None:
        self._exists: ir.Value | None = None

    @contextmanager
    def only_if(self, exists: ir.Value) -> Iterator[None]:
        """Copies that are made meanwhile do nothing where `exists` (i1) is false."""
        self._exists = exists
        try:
            yield
        finally:
            self._exists = None

    def prepare(self, at: Writer, stages: int, ahead: int) -> None:
        """Nothing: groups belong to threads."""

    def reclaim(self, at: Writer, slot: Slot) -> None:
        """Nothing: threads fill stages of their own block."""

    def fill(self, at: Writer, load: Prefetch, into: ir.Value, slot: Slot, place: Place) -> None:
        """cp.async of what each thread would have loaded."""
        old = load.load
        attributes = {name: old.attributes[name] for name in old.attributes if name in KEPT}
        attributes["layout"] = old.results[0].type.encoding
        if old.operation.name == "nv_tileas.load":
            name, where = "nv_tileas.async_load", [[old.base], operands_of(old, "mask")]
        else:
            name, where = "nv_tileas.async_tiled_load", [[old.view], list(old.coords)]
        groups = [*where, [into], operands_of(old, "token")]
        groups.append([] if self._exists is None else [self._exists])
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([len(one) for one in groups])
        types = [async_token(), old.results[1].type]
        operands = [place.of(value) for group in groups for value in group]
        at.create(name, operands, types, attributes)

    def close(self, at: Writer, slot: Slot) -> None:
        """The group of an iteration."""
        sizes = {"group": ir.StringAttr.get(_GROUP)}
        at.create("nv_tileas.async_commit_group", [], [async_token()], sizes)

    def wait(self, at: Writer, slot: Slot, pending: int) -> None:
        """Until at most `pending` groups are left."""
        attributes = {
            "pending": ir.IntegerAttr.get(at.i32, pending),
            "group": ir.StringAttr.get(_GROUP),
        }
        at.create("nv_tileas.async_wait", [], [], attributes)

    def finish(self, at: Writer) -> None:
        """Nothing: the groups that are left are empty."""

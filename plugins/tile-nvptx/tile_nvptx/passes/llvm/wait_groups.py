"""dedup-wait-groups: waits for groups of asynchronous work that others make superfluous.

Page 043 of the specification gathers waits at the end of a region, one of each flavour. That is
right only where nothing in between reads what was waited for; here a wait goes if another one does
its work: one before it, since which nothing was committed, or one behind it, with nothing but
arithmetic in between; with nothing at all where it is for wgmma, which writes registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_nvptx.passes.llvm.dead_sync import access

#: Wait -> (flavour, its attribute with how many groups may be left).
_WAITS = {
    "nvvm.cp.async.wait.group": ("cp.async", "n"),
    "nvvm.cp.async.bulk.wait_group": ("bulk", "group"),
    "nvvm.wgmma.wait.group.sync.aligned": ("wgmma", "group"),
}
_COMMITS = {
    "nvvm.cp.async.commit.group": "cp.async",
    "nvvm.cp.async.bulk.commit.group": "bulk",
    "nvvm.wgmma.commit.group.sync.aligned": "wgmma",
}
#: Dialects whose operations commit nothing, apart from the commits themselves.
_QUIET = ("arith", "math", "vector", "memref", "nvvm")
_ALSO_QUIET = ("llvm.load", "llvm.store")


class _Wait(NamedTuple):
    """At most `left` groups of a flavour are left; of bulk groups `read` waits for reads alone."""

    flavour: str
    left: int
    read: bool

    def covers(self, other: _Wait) -> bool:
        """Whether who did this wait need not do the other one."""
        return (
            self.flavour == other.flavour
            and self.left <= other.left
            and (other.read or not self.read)
        )


def _wait(op: ir.Operation) -> _Wait | None:
    found = _WAITS.get(op.name)
    if found is None:
        return None
    flavour, name = found
    return _Wait(flavour, ir.IntegerAttr(op.attributes[name]).value, "read" in op.attributes)


@dataclass(frozen=True)
class DedupWaitGroups(Pass):
    """Remove waits for groups of cp.async, bulk copies and wgmma that another wait of the same
    block makes superfluous.

    What a call or inline assembly commits is not known: behind it, every wait stays.
    """

    name = "dedup-wait-groups"
    anchor = "gpu.module"
    statistics = {"removed": "waits that others had done, or would do"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for region in op.regions:
            for block in region.blocks:
                for view in list(block.operations):
                    self.run(view.operation, cx)
                self._forward(block, cx)
                self._backward(block, cx)

    def _forward(self, block: ir.Block, cx: PassContext) -> None:
        """Waits that one before them has done."""
        done: list[_Wait] = []
        for view in list(block.operations):
            op = view.operation
            wait = _wait(op)
            if wait is not None:
                if any(former.covers(wait) for former in done):
                    self._remove(op, cx, "was done before")
                else:
                    done.append(wait)
            elif op.name in _COMMITS:
                flavour = _COMMITS[op.name]
                done = [w._replace(left=w.left + (w.flavour == flavour)) for w in done]
            elif not _commits_nothing(op):
                done.clear()

    def _backward(self, block: ir.Block, cx: PassContext) -> None:
        """Waits that one behind them does before anything depends on it."""
        coming: list[_Wait] = []
        for view in reversed(list(block.operations)):
            op = view.operation
            wait = _wait(op)
            if wait is not None:
                if any(later.covers(wait) for later in coming):
                    self._remove(op, cx, "is done behind")
                else:
                    coming.append(wait)
            elif op.regions or access(op, frozenset()) is not None:
                coming.clear()
            else:  # arithmetic may be on registers that a product is still writing
                coming = [later for later in coming if later.flavour != "wgmma"]

    def _remove(self, op: ir.Operation, cx: PassContext, why: str) -> None:
        cx.passed(op, f"removed a wait that {why}")
        cx.count("removed")
        op.erase()


def _commits_nothing(op: ir.Operation) -> bool:
    if op.regions:
        return False
    if op.name in _ALSO_QUIET or op.name.partition(".")[0] in _QUIET:
        return op.name != "nvvm.inline_ptx"
    return access(op, frozenset()) is None

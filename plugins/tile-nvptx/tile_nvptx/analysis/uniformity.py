"""Uniformity: which values are the same in all threads of a block, or of a warp.

For functions of one thread's code whose control flow is still structured. Threads differ by their
index alone: what is computed from uniform values is uniform, and so is what is read from an address
that is (two threads that read differently from one address would race).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, ClassVar

from tile_tileas.analysis.constants import splat_integer
from tile_tileas.analysis.forward import Forward

from tile_core.mlir import ir
from tile_core.passes import PassContext

_WARP_BITS = 5


class Same(IntEnum):
    """Among whom a value is the same."""

    NOBODY = 0
    WARP = 1
    BLOCK = 2


_THREAD_INDEX = "nvvm.read.ptx.sreg.tid.x"
#: Special registers that are the same in a whole block, and in a warp.
_OF_BLOCK = ("ctaid.", "nctaid.", "ntid.", "nctarank", "cluster", "nwarpid", "warpsize", "gridid")
_OF_WARP = ("warpid",)
#: Functions that give each thread its own result.
_OWN = ("__tile_atom", "__tile_shuffle", "__tile_ldmatrix", "malloc")
_OWN_OPERATIONS = ("llvm.alloca", "llvm.atomicrmw", "llvm.cmpxchg", "llvm.inline_asm", "nvvm.")

Rule = Callable[[ir.OpView, "UniformityAnalysis"], Same]


class UniformityAnalysis(Forward[Same]):
    """Among whom the values of one function are the same."""

    name: ClassVar[str] = "uniformity"

    def __init__(self, op: ir.Operation, cx: PassContext | None = None) -> None:
        self._arguments = {value for region in op.regions for value in region.blocks[0].arguments}
        super().__init__(op)

    def tracks(self, type_: ir.Type) -> bool:
        return True

    def unknown(self, value: ir.Value) -> Same:
        return Same.BLOCK if value in self._arguments else Same.NOBODY

    def join(self, left: Same, right: Same) -> Same:
        return min(left, right)

    def induction(self, loop: ir.OpView) -> Same:
        return self.all_of(list(loop.operands)[:3])

    def all_of(self, values: list[ir.Value]) -> Same:
        """Among whom all of `values` are the same."""
        return min((self[value] for value in values), default=Same.BLOCK)

    def decides(self, op: ir.OpView) -> Same:
        """Who goes the same way through a branch or loop."""
        name = op.operation.name
        if name == "scf.for":
            return self.all_of(list(op.operands)[:3])
        if name == "scf.if":
            return self[op.operands[0]]
        before = op.regions[0].blocks[0]
        return self[before.operations[len(before.operations) - 1].operands[0]]

    def _limit(self, op: ir.OpView) -> None:
        """Results hold at most for those who came the same way."""
        way = self.decides(op)
        for result in op.results:
            self._facts[result] = min(self[result], way)

    def _for(self, op: ir.OpView) -> None:
        super()._for(op)
        self._limit(op)

    def _while(self, op: ir.OpView) -> None:
        super()._while(op)
        self._limit(op)

    def _if(self, op: ir.OpView) -> None:
        super()._if(op)
        self._limit(op)


def _computed(op: ir.OpView, known: UniformityAnalysis) -> Same:
    name = op.operation.name
    if name.startswith(_OWN_OPERATIONS):
        return Same.NOBODY
    if name == "llvm.call":
        attributes = op.attributes
        callee = ir.FlatSymbolRefAttr(attributes["callee"]).value if "callee" in attributes else ""
        if not callee or callee.startswith(_OWN):
            return Same.NOBODY
    return known.all_of(list(op.operands))


def _bits(op: ir.OpView, known: UniformityAnalysis) -> Same:
    """Bits of the thread's index above those of the lane are the same in a warp."""
    source, number = op.operands[0], splat_integer(op.operands[1])
    name = op.operation.name
    index = not isinstance(source.owner, ir.Block) and source.owner.name == _THREAD_INDEX
    if index and number is not None:
        above = number >= _WARP_BITS if name == "arith.shrui" else not number & 31
        if above:
            return Same.WARP
    return known.all_of(list(op.operands))


class _Rules(dict[str, Rule]):
    """Every operation has a rule."""

    def get(self, key: str, default: Any = None) -> Rule:  # type: ignore[override]
        if key.startswith("nvvm.read.ptx.sreg."):
            register = key.removeprefix("nvvm.read.ptx.sreg.")
            same = Same.BLOCK if register.startswith(_OF_BLOCK) else Same.NOBODY
            same = Same.WARP if register in _OF_WARP else same
            return lambda op, known: same
        return super().get(key) or _computed


UniformityAnalysis.rules = _Rules({"arith.andi": _bits, "arith.shrui": _bits})

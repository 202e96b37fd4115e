"""What the rules of one kernel share: thread index, tile coordinates, helpers, shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tile_cute.linear import LinearLayout
from tile_tileas.dialect import layout_of

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device.helpers import Helpers
from tile_nvptx.passes.tileas.thread.agent import Agent
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.types import WITHOUT_LAYOUT

LANE_BITS = 5
LANES = 1 << LANE_BITS


@dataclass
class KernelState:
    """State of the conversion of one function; `agent` is the one whose code is converted,
    `num_ctas` how many blocks of a cluster run it together, and `alike` as in `alike`.
    """

    agent: Agent
    helpers: Helpers
    fast_path: bool
    num_ctas: int = 1
    alike: dict[ir.Value, tuple[int, ...]] = field(default_factory=dict)
    views: list[ir.OpView] = field(default_factory=list)  # erased at the end

    @property
    def num_warps(self) -> int:
        """Warps of the agent."""
        return self.agent.num_warps

    def thread_index(self, cx: Kernel) -> ir.Value:
        """The linear index of the thread in its agent, i32."""

        def make(b: Builder) -> ir.Value:
            if self.agent.only is not None:
                return b.constant(LANES * self.agent.only)
            index = cx.create("nvvm.read.ptx.sreg.tid.x", [], [b.i32]).result
            return b.with_constant("subi", index, LANES * self.agent.first_warp)

        return self.once(cx, ("tid",), make)

    def once(self, cx: Kernel, key: tuple[object, ...], make) -> ir.Value:
        """`make(builder)` at the top of the agent's code, computed at most once per key."""
        values = self.agent.values
        if key not in values:
            with cx.at(ir.InsertionPoint(self.agent.anchor)):
                values[key] = make(Builder(cx))
        return values[key]

    def variable(self, cx: Kernel, key: tuple[object, ...]) -> ir.Value:
        """The place of an i32 of each thread, 0 where the agent's code begins."""
        agent = self.agent

        def make(b: Builder) -> ir.Value:
            # LLVM makes registers of variables that are made where the kernel begins.
            with cx.at(ir.InsertionPoint(agent.entry or agent.anchor)):
                top = Builder(cx)
                type_ = {"elem_type": ir.TypeAttr.get(b.i32)}
                pointer = ir.Type.parse("!llvm.ptr")
                place = cx.create("llvm.alloca", [top.constant(1)], [pointer], type_).result
            cx.create("llvm.store", [b.constant(0), place])
            return place

        return self.once(cx, key, make)

    def linear(self, cx: Kernel, bases: Sequence[int]) -> ir.Value | None:
        """XOR of `bases[i]` over the set bits i of the thread index, i32; None if always 0."""
        if not any(bases):
            return None
        index = self.thread_index(cx)
        return self.once(cx, ("linear", tuple(bases)), lambda b: linear(b, index, bases))

    def coordinate(self, cx: Kernel, layout: LinearLayout, dim: int) -> ir.Value | None:
        """The thread's part of coordinate `dim`, i32; None if it is always 0."""
        return self.linear(cx, self.thread_bases(layout, dim))

    def thread_bases(self, layout: LinearLayout, dim: int) -> tuple[int, ...]:
        """What each bit of the thread index adds to coordinate `dim`."""
        bits = layout.coord_bits(dim)
        return (*bits.get("lane", ()), *bits.get("warp", ()))

    def holds_unique(self, cx: Kernel, layout: LinearLayout) -> ir.Value | None:
        """i1: the thread is the one that speaks for its elements; None if every thread is."""
        return self.speaks(cx, layout.free_mask("lane"), layout.free_mask("warp"))

    def speaks(self, cx: Kernel, lanes: int, warps: int) -> ir.Value | None:
        """i1: none of these bits of the lane's and warp's numbers are set; None if always."""
        mask = lanes | warps << LANE_BITS
        if not mask:
            return None
        index = self.thread_index(cx)

        def make(b: Builder) -> ir.Value:
            return b.compare(0, b.with_constant("andi", index, mask), b.constant(0))

        return self.once(cx, ("unique", mask), make)


Kernel = Conversion[KernelState]


def tile_layout(cx: Kernel, value: ir.Value) -> LinearLayout:
    """The layout of the tile that `value` is this thread's part of.

    Raises:
        CompileError: the tile had none.
    """
    layout = layout_of(cx.before(value))
    if layout is None:
        raise cx.error(WITHOUT_LAYOUT)
    return layout


def linear(b: Builder, index: ir.Value, bases: Sequence[int]) -> ir.Value:
    """XOR of `bases[i]` over the set bits i of `index`, i32; some basis is not 0.

    Runs of bits whose bases double are moved together: ((index >> i) & mask) * base.
    """
    terms: list[ir.Value] = []
    at = 0
    while at < len(bases):
        if not bases[at]:
            at += 1
            continue
        end = at + 1
        # Only multiples of a power of two add without carries, as XOR wants.
        single = bases[at] & (bases[at] - 1) == 0
        while single and end < len(bases) and bases[end] == bases[at] << (end - at):
            end += 1
        moved = b.with_constant("shrui", index, at)
        if end < len(bases) or at:
            moved = b.with_constant("andi", moved, (1 << (end - at)) - 1)
        terms.append(_times(b, moved, bases[at]))
        at = end
    result = terms[0]
    for term in terms[1:]:
        result = b.binary("xori", result, term)
    return result


def _times(b: Builder, value: ir.Value, factor: int) -> ir.Value:
    if factor & (factor - 1) == 0:
        return b.with_constant("shli", value, factor.bit_length() - 1)
    return b.with_constant("muli", value, factor)

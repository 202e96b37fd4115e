"""agent_switch: one branch per agent, by the number of the warp."""

from __future__ import annotations

from itertools import accumulate

from tile_tileas.dialect.agents import ALONE, INHERIT, agents_of, warps_of
from tile_tileas.dialect.barriers import NAMED_BARRIERS

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device import asynchronous as device
from tile_nvptx.passes.tileas.rules.synchronization import run
from tile_nvptx.passes.tileas.ruleset import rules
from tile_nvptx.passes.tileas.thread.agent import Agent
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.shared import when
from tile_nvptx.passes.tileas.thread.state import LANE_BITS, LANES, Kernel

_EQ, _UGE, _ULT = 0, 9, 6  # arith.CmpIPredicate
_WARPGROUP = 4  # warps that change their registers together


@rules.on("nv_tileas.async_pipeline_agent_switch")
def agent_switch(op: ir.OpView, cx: Kernel) -> None:
    """agent_switch => an scf.if per agent; then all threads of the block meet"""
    state = cx.state
    if state.agent.first_warp or state.agent.barrier is not None:
        raise cx.error("stands inside of an agent")
    block, agents = state.agent, agents_of(op)
    first = [0, *accumulate(map(warps_of, agents))]
    if first[-1] > block.num_warps:
        raise cx.error("agent warp count exceeds module budget")
    launched = _launched_registers(cx, [(a.max_regs.value, warps_of(a)) for a in agents])
    b = Builder(cx)
    warp = b.with_constant("shrui", state.thread_index(cx), LANE_BITS)
    entry = block.entry or block.anchor
    for number, (agent, start) in enumerate(zip(agents, first, strict=False)):
        end = start + warps_of(agent)
        flags = [b.compare(_UGE, warp, b.constant(start))] if start else []
        flags += [b.compare(_ULT, warp, b.constant(end))] if end < block.num_warps else []
        with when(cx, b.all_of(flags)):
            _launch(cx, agent, launched)
            if ALONE not in agent.attributes:
                _agent(cx, agent, number, start, entry)
                continue
            # Code for each warp: what is of one thread is known to be the same for a warp.
            copies = [agent.operation.clone() for _ in range(1, end - start)]
            for own, copy in enumerate([agent, *(copy.opview for copy in copies)]):
                here = b.compare(_EQ, warp, b.constant(start + own))
                with when(cx, here), when(cx, _elected(cx)):
                    _agent(cx, copy, number, start, entry, only=own)
    state.agent = block
    b.barrier()


def _elected(cx: Kernel) -> ir.Value:
    """i1: this is the one thread of its warp that does what one of them does. ptxas knows of such
    code that one thread runs it, and asks no others for their operands.
    """
    return cx.create("nvvm.elect.sync", [], [ir.IntegerType.get_signless(1)]).result


def _launch(cx: Kernel, op: ir.OpView, launched: int) -> None:
    """Give each thread of an agent the registers that it has."""
    if op.max_regs.value != INHERIT and launched:
        more = op.max_regs.value > launched
        run(cx, device.set_registers(op.max_regs.value, more=more))


def _agent(
    cx: Kernel,
    op: ir.OpView,
    number: int,
    start: int,
    entry: ir.Operation,
    only: int | None = None,
) -> None:
    """The code of one agent, where it is inserted."""
    # Barrier 0 is the block's; a pass may have given the agent another than its turn.
    barrier = number + 1
    if "barrier" in op.attributes:
        barrier = ir.IntegerAttr(op.attributes["barrier"]).value
    if not 0 < barrier < NAMED_BARRIERS:
        raise cx.error(f"has no named barrier for its agent {number}: there are {NAMED_BARRIERS}")
    zero = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0)
    anchor = cx.create("arith.constant", [], [zero.type], {"value": zero})
    cx.state.agent = Agent(anchor, warps_of(op), start, barrier, entry, only)
    body = op.regions[0].blocks[0]
    end = cx.insertion_point
    for inner in list(body.operations)[:-1]:
        end.insert(inner.operation.detach_from_parent())
        cx.convert_op(inner)
    anchor.erase()


def _launched_registers(cx: Kernel, budgets: list[tuple[int, int]]) -> int:
    """Registers that each thread has before agents change them; 0 if none does.

    Raises:
        CompileError: the target cannot, agents want more than there are, or a warpgroup would be
            cut.
    """
    if all(registers == INHERIT for registers, _ in budgets):
        return 0
    target = cx.target
    if not target.chip.endswith(("a", "f")):
        raise cx.error(f"changes registers, which {target.chip} does not do")
    threads = LANES * sum(warps for _, warps in budgets)
    launched = min(target.registers // threads // 8 * 8, target.max_registers // 8 * 8)
    of_warps = [registers for registers, warps in budgets for _ in range(warps)]
    for first in range(0, len(of_warps), _WARPGROUP):
        group = of_warps[first : first + _WARPGROUP]
        if any(group) and (len(group) < _WARPGROUP or len(set(group)) > 1):
            raise cx.error("changes registers of a part of a warpgroup")
    used = sum(LANES * warps * (registers or launched) for registers, warps in budgets)
    if used > launched * threads:
        raise cx.error(f"agents want {used} registers, but the block has {launched * threads}")
    return launched

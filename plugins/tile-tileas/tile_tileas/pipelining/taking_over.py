"""Whether blocks of a kernel with one loop of products take over tile blocks of their grid.

What follows the loop, and what comes before its first product, takes 4,000 to 6,000 clk of a B200
(model), in which nobody multiplies unless another block of the multiprocessor does: a block that
goes on with the next tile block begins its products meanwhile (`in_turn`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_tileas.analysis.users import operations
from tile_tileas.dot_plan import tensor_plan_of
from tile_tileas.pipelining import in_turn
from tile_tileas.pipelining.candidate import Candidate, Pipelined
from tile_tileas.pipelining.stage_count import led_by_threads
from tile_tileas.pipelining.taken_over import TakenOver, ordered_in, problem_of
from tile_tileas.pipelining.turns import Turns
from tile_tileas.pipelining.wgmma_in_flight import Kept

_INIT = "nv_tileas.barrier_init"
#: Stages at least: with two each step waits for its copies.
_LEAST_STAGES = 3


def pipelined(one: Candidate, products: Sequence[Kept]) -> Pipelined | None:
    """Let blocks take over tile blocks that have not been launched; None, and a remark, if they
    cannot, or do better without.
    """
    turns = _turns(one, products)
    if isinstance(turns, str):
        one.missed("multiplies for one tile block", turns, "BlocksNotTakenOver")
        return None
    TakenOver(one.func).wrap()
    one.cx.passed(
        one.loop.operation,
        "takes over tile blocks that have not been launched",
        category="pipeline",
        name="BlocksTakenOver",
    )
    return in_turn.rewritten(one, products, turns)


def _turns(one: Candidate, products: Sequence[Kept]) -> Turns | str:
    """What the loop has then; or why blocks take over no others. Blocks that have not begun may
    have to run beside those that have, where others wait for what they do.
    """
    ordered = next(ordered_in(one.func), None)
    if ordered is not None:
        return f"other blocks may wait for its '{ordered}'"
    if any(op.operation.name == _INIT for op in operations(one.func.regions[0])):
        return "it has barriers already, which are made for one tile block"
    found = problem_of(one.func, one.cx.target.sm) or Turns.of(one, products)
    return found if isinstance(found, str) else _loss(one, products, found) or found


def _loss(one: Candidate, products: Sequence[Kept], turns: Turns) -> str | None:
    """Why blocks do better without."""
    if turns.stages < _LEAST_STAGES:
        return f"{_LEAST_STAGES} stages do not fit beside what follows the loop"
    if turns.registers > one.cx.target.max_registers:
        return f"{turns.registers} registers of a thread are not enough for its sums"
    plan = tensor_plan_of(products[0].op, one.warps)
    alone = led_by_threads(one, products, apart=False)
    beside = alone.blocks(alone.stages(), plan.taken)
    if beside > turns.blocks:
        return f"{beside} blocks of a multiprocessor hide each other's beginnings and ends"
    return None

"""Blocks of a cluster that work on one tile block together: who one is, where they meet."""

# pyright: reportGeneralTypeIssues=false

from typing import Any

from tile_tileaa.dialect.types import is_integer

from tile_core.dialect import Operand, OperationSpec, Pure, ReadsAndWrites, Result, declare
from tile_core.mlir import ir
from tile_tileas.dialect.barriers import barrier_problem
from tile_tileas.dialect.base import NvTileAS
from tile_tileas.dialect.staging import is_index

#: Blocks of a cluster at most, and what every GPU with clusters takes (CUDA programming guide,
#: "Thread Block Clusters").
MOST_CTAS, PORTABLE_CTAS = 16, 8
#: Attribute of `cluster_arrive`: nothing is handed over but barriers whose making was fenced.
RELAXED = "relaxed"
#: Attribute of `cluster_sync`: accesses behind it come after accesses of other blocks before it, so
#: that stores by the copy engine are waited for.
ORDERS_ACCESSES = "orders_accesses"


def _rank(op: ir.OpView) -> str | None:
    type_ = op.results[0].type
    if is_integer(type_) and type_.width == 32:
        return None
    return f"expects an i32, but got {type_}"


def _arrive(op: ir.OpView) -> str | None:
    problem = barrier_problem(op.barrier.type)
    if problem is not None:
        return problem
    if not is_index(op.stage):
        return f"expects stage to be i32, but got {op.stage.type}"
    ctas = op.ctas.value
    if not 2 <= ctas <= MOST_CTAS:
        return f"expects 2 to {MOST_CTAS} blocks, but got {ctas}"
    return None


SPECS = (
    OperationSpec(
        "cta_rank",
        {"result": Result[Any]},
        "The number of this block in its cluster, i32.",
        (Pure,),
        (_rank,),
    ),
    OperationSpec(
        "cluster_sync",
        {},
        "All threads of all blocks of the cluster meet; what each did to memory is visible to all. "
        "With `orders_accesses` that includes stores by the copy engine.",
        (ReadsAndWrites,),
    ),
    OperationSpec(
        "cluster_arrive",
        {},
        "The first half of a meeting: what the thread did to memory so far is visible to all "
        "threads of all blocks of the cluster behind the `cluster_wait` that follows. Blocks meet "
        "nowhere else between both. With `relaxed` nothing is handed over but barriers that were "
        "made, with a `fence` behind that.",
        (ReadsAndWrites,),
    ),
    OperationSpec(
        "cluster_wait",
        {},
        "The second half: until all threads of all blocks of the cluster have arrived.",
        (ReadsAndWrites,),
    ),
    OperationSpec(
        "barrier_arrive_in_cluster",
        {"barrier": Operand[Any], "stage": Operand[Any], "ctas": ir.IntegerAttr},
        "The agent's first thread arrives at the same barrier of each of the `ctas` blocks of its "
        "cluster, its own included: memory that the block has read may be written. What other "
        "threads read is covered if they met before; nothing written is handed over.",
        (ReadsAndWrites,),
        (_arrive,),
    ),
)

for _spec in SPECS:
    declare(NvTileAS, _spec, module=__name__)

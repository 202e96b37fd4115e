"""What each operation asks of its operands, attributes and surroundings; LayoutError if not met."""

from tile_cute.cutlass.dialect.checks.barriers import (
    generic_barrier,
    named_barrier,
    same_depth,
    sequence,
    sequence_init,
    striped,
    striped_reduce,
)
from tile_cute.cutlass.dialect.checks.mods import mods, mods_end, throttle
from tile_cute.cutlass.dialect.checks.pipes import (
    async_exec,
    commit,
    participants,
    pipeline_init,
    same_stages,
    switch_by_executor,
)
from tile_cute.cutlass.dialect.checks.schedulers import (
    advance,
    cta_coord,
    fixup,
    fixup_counter,
    launched,
    params,
    params_field,
    query,
    same_kind,
    sizes,
    streamk,
    work,
    work_field,
)

__all__ = [
    "advance", "async_exec", "commit", "cta_coord", "fixup", "fixup_counter", "generic_barrier",
    "launched", "mods", "mods_end", "named_barrier", "params", "params_field", "participants",
    "pipeline_init", "query", "same_depth", "same_kind", "same_stages", "sequence",
    "sequence_init", "sizes", "streamk", "striped", "striped_reduce", "switch_by_executor",
    "throttle", "work", "work_field",
]  # fmt: skip

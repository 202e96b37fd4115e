"""From kernels of cutlass to PTX."""

from __future__ import annotations

from functools import cache

import tile_core
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import default_registry

PASSES = "convert-pipeline-to-nvvm,convert-cute-and-cute-nvgpu-to-llvm"


@cache
def ptx(text: str, target: str = "sm_90") -> str:
    """The kernel's PTX at -O1."""
    job = OptJob(default_registry(), Selection(passes=PASSES, target=target))
    lowered = optimize(text, 0, job).text
    assert '"cutlass.' not in lowered
    made = tile_core.compile(
        lowered.encode(), target, opt_level=1, start_at="llvm-dialect", emit="ptx"
    )
    return str(made.stage("ptx"))

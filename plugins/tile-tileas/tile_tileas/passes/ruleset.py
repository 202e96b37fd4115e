"""The rule set of `convert-tileaa-to-tileas`, and what its rules share."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.convert import RuleSet

rules = RuleSet(
    "convert-tileaa-to-tileas",
    {
        f"{__package__}.dot": ("nv_tileaa.dot",),
        f"{__package__}.directives": (
            "nv_tileaa.message",
            "nv_tileaa.optimization_barrier",
            "nv_tileaa.pragma",
            "nv_tileaa.pragma_mixed",
        ),
        f"{__package__}.generate": ("nv_tileaa.generate",),
    },
)


@dataclass(frozen=True)
class DotState:
    """What decides about products besides their types: the highest tier allowed, the block."""

    highest: str
    num_warps: int  # 0 outside of kernels

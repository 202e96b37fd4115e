"""All tiers, in the order in which products prefer them."""

from __future__ import annotations

from tile_tileas.mma.fma import FmaTier
from tile_tileas.mma.tier import Tier
from tile_tileas.mma.warp import WarpTier
from tile_tileas.mma.warpgroup import WarpgroupTier

#: The best first. A target that has none of a tier's instructions passes it over.
TIERS: tuple[Tier, ...] = (WarpgroupTier(), WarpTier(), FmaTier())
FAMILIES: tuple[str, ...] = tuple(tier.family for tier in TIERS)


def tiers_up_to(highest: str) -> tuple[Tier, ...]:
    """The tiers from the one called `highest` on; KeyError without such a one."""
    if highest not in FAMILIES:
        raise KeyError(highest)
    return TIERS[FAMILIES.index(highest) :]


def tier_of(atom: str) -> Tier:
    """The tier that has the instruction `atom`; KeyError if none has."""
    for tier in TIERS:
        if tier.has(atom):
            return tier
    raise KeyError(atom)

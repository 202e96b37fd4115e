"""All tiers, in the order in which products prefer them."""

from __future__ import annotations

from tile_tileas.mma.block_scaled import BlockScaledTier
from tile_tileas.mma.fma import FmaTier
from tile_tileas.mma.tensor import TensorTier
from tile_tileas.mma.tier import Tier
from tile_tileas.mma.warp import WarpTier
from tile_tileas.mma.warpgroup import WarpgroupTier

#: The best first. A target that has none of a tier's instructions passes it over.
TIERS: tuple[Tier, ...] = (TensorTier(), WarpgroupTier(), WarpTier(), FmaTier())
FAMILIES: tuple[str, ...] = tuple(tier.family for tier in TIERS)
#: Those whose products have block scales, by the tier whose instructions they extend.
SCALED_TIERS: dict[str, Tier] = {"mma.sync": BlockScaledTier()}


def tiers_up_to(highest: str, *, scaled: bool = False) -> tuple[Tier, ...]:
    """The tiers from the one called `highest` on, or those with block scales among what extends
    them; KeyError without such a one.
    """
    if highest not in FAMILIES:
        raise KeyError(highest)
    allowed = TIERS[FAMILIES.index(highest) :]
    if not scaled:
        return allowed
    return tuple(SCALED_TIERS[tier.family] for tier in allowed if tier.family in SCALED_TIERS)


def tier_of(atom: str) -> Tier:
    """The tier that has the instruction `atom`; KeyError if none has."""
    for tier in (*TIERS, *SCALED_TIERS.values()):
        if tier.has(atom):
            return tier
    raise KeyError(atom)

"""All tiers, in the order in which products prefer them."""

from __future__ import annotations

from functools import lru_cache

from tile_tileas.mma.block_scaled import BlockScaledTier
from tile_tileas.mma.families import FAMILIES
from tile_tileas.mma.fma import FmaTier
from tile_tileas.mma.tensor import TensorPlan, TensorTier, checked
from tile_tileas.mma.tensor_scaled import ScaledTensorTier
from tile_tileas.mma.tier import Planned, Tier
from tile_tileas.mma.warp import WarpTier
from tile_tileas.mma.warpgroup import WarpgroupTier

#: In the order of FAMILIES. A target that has none of a tier's instructions passes it over.
TIERS: tuple[Tier, ...] = (TensorTier(), WarpgroupTier(), WarpTier(), FmaTier())
#: Those whose products have block scales, by the tier whose instructions they extend.
SCALED_TIERS: dict[str, Tier] = {"tcgen05": ScaledTensorTier(), "mma.sync": BlockScaledTier()}


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


@lru_cache(maxsize=256)
def planned_tensor(planned: Planned) -> TensorPlan:
    """The plan of a product by tcgen05, with block scales or without, whose instruction is chosen.

    Raises:
        LayoutError: the instruction does not divide the product.
    """
    tier = tier_of(planned.atom)
    assert isinstance(tier, TensorTier), "asked about products by tcgen05"
    return checked(tier.plan(planned))

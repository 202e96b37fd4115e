"""What `Settings.avoid` may name: all that the generator asks about before it draws."""

from __future__ import annotations

from tile_fuzz.generator.elementwise import FEATURES, signatures
from tile_fuzz.generator.gaps import GAPS
from tile_fuzz.generator.maker import WEIGHTS
from tile_fuzz.generator.movement import MOVEMENTS

_PRODUCTS = ("mmaf", "mmai", "mmaf_scaled")
_MEMORY = ("alloca", "memory_fence_alias_tko", "atomic_red_view_tko")
_VIEWS = ("partition", "strided", "gather")
_ORDERS = ("acquire", "release")


def avoidable() -> frozenset[str]:
    """Operations, element types and other features that can be left out of programs."""
    return frozenset(
        (
            *signatures(), *_PRODUCTS, *_MEMORY, *FEATURES, *GAPS,
            *(movement.__name__.removeprefix("_") for movement in MOVEMENTS),
            *(element.name for element in WEIGHTS),
            *(f"shape of {view} view" for view in _VIEWS),
            *(f"{order} access" for order in _ORDERS),
        )
    )  # fmt: skip

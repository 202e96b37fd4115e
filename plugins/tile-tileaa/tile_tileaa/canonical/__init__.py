"""Local rewrites of nv_tileaa (Tile IR specification, "nv_tileaa folds, canonicalizers, tokens").

`rules` holds them all. Types of results never change, every effect leaves a token for the next,
and volatile accesses stay. What the specification's rules get wrong is corrected where it happens:
a product with zeros is folded for integers only (0 * NaN is NaN), offsets are added only where the
sum cannot wrap, and an atomic update that changes nothing becomes a load only if it neither
releases nor works on floats.
"""

from tile_tileaa.canonical import (
    atomics,
    integers,
    memory,
    pointers,
    products,
    regions,
    shapes,
    subnormals,
)
from tile_tileaa.canonical.registry import rules

__all__ = [
    "atomics",
    "integers",
    "memory",
    "pointers",
    "products",
    "regions",
    "rules",
    "shapes",
    "subnormals",
]

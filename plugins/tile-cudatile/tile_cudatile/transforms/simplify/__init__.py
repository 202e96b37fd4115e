"""Simplifies integer and boolean expressions.

Every integer operation of a kernel becomes an expression (`expressions.py`), for which the rules
(`linear.py`, `bits.py`, ...) find a simpler one of the same value. Operations whose expression
changed, or that an operation before them computes already, are replaced.

The rules keep to two principles, so that they are right for undefined and unspecified values too:
what they make depends on no value that the original does not depend on, and says about overflow
only what follows from what the original said.
"""

from __future__ import annotations

from tile_cudatile.transforms.simplify import bits, constants, division, linear, order, shapes
from tile_cudatile.transforms.simplify.registry import RULES
from tile_cudatile.transforms.simplify.walk import Simplified, simplify, simplify_counted

#: The modules that fill `RULES`. Every rule is right by itself: their order is free.
FAMILIES = (constants, shapes, linear, bits, division, order)

__all__ = ["FAMILIES", "RULES", "Simplified", "simplify", "simplify_counted"]

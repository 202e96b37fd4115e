"""What an instruction says to L2 about what it moves (PTX ISA, "Cache Eviction Priority Hints")."""

from __future__ import annotations

from typing import NamedTuple


class Hint(NamedTuple):
    """The parts of a text that gives a cache hint: in front of the instruction, in its name and
    behind its operands. The text stands in braces.
    """

    make: str
    suffix: str
    operand: str


def hint_text(priority: str) -> Hint:
    """A policy of one priority, such as "evict_first", for all that is moved; "" asks for nothing.

    ptxas makes a number of it, so that one for each instruction costs nothing.
    """
    if not priority:
        return Hint("", "", "")
    make = f".reg .b64 %policy; createpolicy.fractional.L2::{priority}.b64 %policy, 1.0; "
    return Hint(make, ".L2::cache_hint", ", %policy")

"""Which GPU architectures an instruction exists on.

A gate is a string: `80+` every architecture from sm_80 on, `90a` that architecture alone, `100f`
its family (sm_100f and the later members, arch-specific or family-specific code).
"""

import re
from functools import cache

from tile_cute.errors import LayoutError

_CHIP = re.compile(r"sm_(\d+)([af]?)")
_GATE = re.compile(r"(\d+)([+af])")


@cache
def parse_chip(chip: str) -> tuple[int, str]:
    """("sm_100a") -> (100, "a"); LayoutError for anything else."""
    match = _CHIP.fullmatch(chip)
    if match is None:
        raise LayoutError(f"'{chip}' is no GPU architecture; expected e.g. sm_90a")
    return int(match[1]), match[2]


@cache
def admits(gate: str, chip: str) -> bool:
    """Whether code for `chip` may use an instruction behind `gate`."""
    match = _GATE.fullmatch(gate)
    if match is None:
        raise LayoutError(f"'{gate}' is no architecture gate; expected e.g. 80+, 90a or 100f")
    floor, kind = int(match[1]), match[2]
    sm, suffix = parse_chip(chip)
    if kind == "+":
        return sm >= floor
    if kind == "a":
        return sm == floor and suffix == "a"
    return sm // 10 == floor // 10 and sm >= floor and suffix in ("a", "f")


def supported(gates: tuple[str, ...], chip: str) -> bool:
    """Whether any of the gates admits the chip."""
    return any(admits(gate, chip) for gate in gates)

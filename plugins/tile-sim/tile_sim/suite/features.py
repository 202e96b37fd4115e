"""What the code of a kernel uses of the asynchronous hardware, by the instructions in its PTX."""

from __future__ import annotations

import re

#: Work that completes at some time after its instruction: when is a matter of the schedule.
ASYNCHRONOUS = "asynchronous"
#: Name in reports, and what its instructions look like.
_PATTERNS: dict[str, re.Pattern[str]] = {
    ASYNCHRONOUS: re.compile(r"\.(?:mma_)?async\b|\btcgen05\."),
    "tma": re.compile(r"\bcp\.(?:reduce\.)?async\.bulk\.(?:prefetch\.)?tensor\b"),
    "wgmma": re.compile(r"\bwgmma\.mma_async\b"),
    "tcgen05 (1 CTA)": re.compile(r"\btcgen05\.mma\.\S*cta_group::1\b"),
    "tcgen05 (2 CTAs)": re.compile(r"\btcgen05\.mma\.\S*cta_group::2\b"),
    "clusters": re.compile(r"^\s*\.reqnctapercluster\s+(?!1(?:\s*,\s*1)*\s*$)", re.MULTILINE),
    "multicast": re.compile(r"\bcp\.async\.bulk\.\S*multicast::cluster\b"),
}
NAMES = tuple(_PATTERNS)


def features_of(ptx: str) -> list[str]:
    """The names of what PTX text uses, in the order of `NAMES`."""
    return [name for name, pattern in _PATTERNS.items() if pattern.search(ptx)]

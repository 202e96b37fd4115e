"""Statistics as text and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping


def statistics_text(statistics: Mapping[tuple[str, str], int]) -> str:
    """One block per pass, in order of the run; counts right-aligned."""
    ruler = "===" + "-" * 73 + "==="
    lines = [ruler, "... Pass statistics report ...".center(79).rstrip(), ruler]
    last = None
    for (name, statistic), count in statistics.items():
        if name != last:
            lines.append(f"'{name}'")
            last = name
        lines.append(f"  {count:8d} {statistic}")
    return "\n".join(lines) + "\n"


def statistics_json(statistics: Mapping[tuple[str, str], int]) -> str:
    """{pass: {statistic: count}}."""
    nested: dict[str, dict[str, int]] = {}
    for (name, statistic), count in statistics.items():
        nested.setdefault(name, {})[statistic] = count
    return json.dumps(nested, indent=1) + "\n"

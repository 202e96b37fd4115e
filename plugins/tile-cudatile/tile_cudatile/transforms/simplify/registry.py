"""Operation name -> the rules that are tried on it, in order."""

from __future__ import annotations

from collections.abc import Callable

from tile_cudatile.transforms.simplify.expressions import Rule

RULES: dict[str, list[Rule]] = {}


def simplifies(*names: str) -> Callable[[Rule], Rule]:
    """Registers a rule for the operations of these names."""

    def register(rule: Rule) -> Rule:
        for name in names:
            RULES.setdefault(name, []).append(rule)
        return rule

    return register

"""Memory order, scope and policy of accesses: their words, and what goes together.

Attributes never order anything by themselves; tokens do. PTX ISA, "Memory Consistency Model".
"""

from typing import Any

from tile_core.dialect import READ, WRITE, Check, Effects
from tile_core.mlir import ir

LOAD_ORDERINGS = ("weak", "relaxed", "acquire")
STORE_ORDERINGS = ("weak", "relaxed", "release")
ATOMIC_ORDERINGS = ("relaxed", "acquire", "release", "acq_rel")
#: Reductions whose results nobody sees may be weak where the language says so.
REDUCTION_ORDERINGS = ("weak", "relaxed", "acquire", "release")

SCOPES = ("tl_blk", "cluster", "gpu", "sys")
CACHE_MODIFIERS = ("none", "ca", "cg", "cs", "lu", "cv")
EVICTION_POLICIES = ("none", "first", "last", "normal")

_POLICIES = (("cache_modifier", CACHE_MODIFIERS), ("eviction_policy", EVICTION_POLICIES))

#: What nv_tileaa says of a scope too many, and of one that is missing.
SCOPE_TEXTS = (
    "weak memory ordering must not carry a scope",
    "non-weak memory ordering requires explicit scope",
)


def ordering(kinds: tuple[str, ...], texts: tuple[str, str] = SCOPE_TEXTS) -> Check:
    """`mem_semantic` is one of `kinds`, and a known scope stands with every non-weak one.

    Args:
        texts: what to say of a weak access with a scope, and of another one without.
    """

    def check(op: ir.OpView) -> str | None:
        attributes = op.attributes
        semantic = ir.StringAttr(attributes["mem_semantic"]).value
        if semantic not in kinds:
            return f"unsupported mem_semantic: {semantic}"
        scoped = "mem_scope" in attributes
        if scoped == (semantic == "weak"):
            return texts[0] if scoped else texts[1]
        if scoped and ir.StringAttr(attributes["mem_scope"]).value not in SCOPES:
            return f"expects a mem_scope of {', '.join(SCOPES)}, but got {attributes['mem_scope']}"
        return None

    return check


def policy(op: ir.OpView) -> str | None:
    """Hints to caches, where there are any, are known words."""
    attributes = op.attributes
    for name, words in _POLICIES:
        if name in attributes and ir.StringAttr(attributes[name]).value not in words:
            return f"expects a {name} of {', '.join(words)}, but got {attributes[name]}"
    return None


class LoadEffects(Effects):
    """A weak load reads; a stronger or volatile one must also stay where it is."""

    @staticmethod
    def get_effects(op: Any, effects: ir.MemoryEffectInstancesList) -> None:
        effects.append(READ)
        attributes = op.attributes
        weak = ir.StringAttr(attributes["mem_semantic"]).value == "weak"
        if not weak or "volatile" in attributes:
            effects.append(WRITE)

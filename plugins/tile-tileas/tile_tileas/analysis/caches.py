"""What accesses ask of caches, and where that has no effect.

`cache_modifier` is a cache operator of PTX `ld` and `st`. `eviction_policy` becomes a priority of
L2 for what is moved (`createpolicy` and `.L2::cache_hint`; PTX ISA, "Cache Operators" and "Cache
Eviction Priority Hints"). What none of them can express is said in a remark and left out: results
do not depend on it.
"""

from __future__ import annotations

from tile_core.mlir import ir

MODIFIER, POLICY, HINT = "cache_modifier", "eviction_policy", "cache_hint"
#: Policy -> priority of L2; "normal" is what L2 does unasked.
_PRIORITIES = {"first": "evict_first", "last": "evict_last"}
#: Kind of access -> the cache operators that its instruction has.
_LOADS = ("ca", "cg", "cs", "lu", "cv")
_ACTING = {
    "nv_tileas.load": _LOADS,
    "nv_tileas.load_rest": _LOADS,
    "nv_tileas.tiled_load": _LOADS,
    "nv_tileas.store": ("cg", "cs"),
    "nv_tileas.tiled_store": ("cg", "cs"),
    # .cg copies 16 bytes at a time, and threads may copy less.
    "nv_tileas.async_load": ("ca",),
    "nv_tileas.async_tiled_load": ("ca",),
}
_NONE = ("", "none")


def asked(op: ir.OpView) -> tuple[str, str]:
    """(cache operator, priority of L2) that an access asks for; "" for nothing."""
    modifier, policy = _word(op, MODIFIER), _word(op, POLICY)
    return ("" if modifier in _NONE else modifier), _PRIORITIES.get(policy, "")


def acts(op: ir.OpView, modifier: str) -> bool:
    """Whether the access's instruction has that cache operator."""
    if _word(op, "mem_semantic") not in ("", "weak"):
        return False
    return modifier in _ACTING.get(op.operation.name, ())


def handed_on(op: ir.OpView) -> dict[str, ir.Attribute]:
    """What copies by the copy engine inherit from the access that they make."""
    modifier, priority = asked(op)
    found: dict[str, ir.Attribute] = {}
    if priority:
        found[HINT] = ir.StringAttr.get(priority)
    if modifier:
        found[MODIFIER] = op.attributes[MODIFIER]  # which has no effect, as a remark will say
    return found


def without_effect(op: ir.OpView) -> list[str]:
    """What an access asks for in vain, and why."""
    modifier, priority = asked(op)
    name, found = op.operation.name, []
    if modifier and not acts(op, modifier):
        found.append(f"{MODIFIER} = {modifier}: {_why(op)}")
    if priority and name in _NO_POLICY:
        found.append(f"{POLICY} = {_word(op, POLICY)}: atomic operations are made without a policy")
    return found


_NO_POLICY = ("nv_tileas.atomic_rmw", "nv_tileas.atomic_cas")


def _why(op: ir.OpView) -> str:
    name = op.operation.name
    if name in _NO_POLICY:
        return "atomic operations work in L2"
    if _word(op, "mem_semantic") not in ("", "weak"):
        return "ordered accesses have no cache operator"
    if name not in _ACTING:
        return "copies by the copy engine pass L1 by"
    return f"the instruction has {', '.join(_ACTING[name])} only"


def _word(op: ir.OpView, name: str) -> str:
    attributes = op.attributes
    return ir.StringAttr(attributes[name]).value if name in attributes else ""

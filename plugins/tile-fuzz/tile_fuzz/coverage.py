"""What random programs consist of, and what of the language none of them has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tile_cudatile.ops import BODY_OPS
from tile_cudatile.ops.enums import RMW_MODE, SCOPE
from tile_cudatile.tree import Op, Region
from tile_cudatile.types import Pointer, TensorView, Tile, Type, View

from tile_fuzz.case import Case
from tile_fuzz.generator.forms import forms

#: Operations that no random program has, and why.
NEVER = {
    "print_tko": "the order in which blocks print is open",
    "gdc_launch_dependents_tko": "needs a second kernel that runs at the same time",
    "gdc_wait_tko": "needs a second kernel that runs at the same time",
    "multimem_load_reduce_view_tko": "needs several GPUs",
    "multimem_reduce_view_tko": "needs several GPUs",
    "multimem_store_view_tko": "needs several GPUs",
}


def features(case: Case) -> Counter[str]:
    """How often a program has an operation, a type or attribute of one, and a form of control.

    `addf`, `addf f32`, `addf rounding_mode=zero`, `control for/if/continue`.
    """
    found: Counter[str] = Counter()
    for entry in case.module.entries:
        for op, around in _walk(entry.body, ()):
            found[op.name] += 1
            found.update(f"{op.name} {kind}" for kind in {*_elements(op)})
            found.update(_attributes(op))
            if op.regions or op.spec.terminator:
                found[f"control {'/'.join((*around, op.name))}"] += 1
    found[f"entries {len(case.module.entries)}"] += 1
    return found


def _walk(region: Region, around: tuple[str, ...]) -> Iterator[tuple[Op, tuple[str, ...]]]:
    for block in region.blocks:
        for op in block.ops:
            yield op, around
            for inner in op.regions:
                yield from _walk(inner, (*around, op.name))


def _elements(op: Op) -> Iterator[str]:
    for value in (*op.values(), *op.results):
        kind = _element(value.type)
        if kind is not None:
            yield kind


def _element(type_: Type) -> str | None:
    if isinstance(type_, Tile | TensorView):
        return _element_name(type_.element)
    if isinstance(type_, View):
        return _element_name(type_.tensor_view.element)
    return None


def _element_name(element: object) -> str:
    return "ptr" if isinstance(element, Pointer) else str(element)


def _attributes(op: Op) -> Iterator[str]:
    for spec in op.spec.attrs:
        value = op.attrs.get(spec.name)
        if spec.kind in ("enum", "bool", "unit") and value is not None:
            yield f"{op.name} {spec.name}={value}"


def expected() -> set[str]:
    """What the tables of the language have, and forms of control that are rules of their own."""
    found = {spec.name for spec in BODY_OPS if spec.name not in NEVER}
    for form in forms():
        op = form.operation
        found.update(f"{op.name} {kind}" for kind in _elements(op))
        found.update(_attributes(op))
    for name, attr, values in _MEMORY:
        found.update(f"{name} {attr}={value}" for value in values)
    return found | _CONTROL


_ATOMIC = ("relaxed", "acquire", "release", "acq_rel")
#: Attributes of operations that are not elementwise, and what they can be.
_MEMORY = (
    *((f"load_{by}_tko", "memory_ordering_semantics", ("weak", "relaxed", "acquire"))
      for by in ("view", "ptr")),
    *((f"store_{by}_tko", "memory_ordering_semantics", ("weak", "relaxed", "release"))
      for by in ("view", "ptr")),
    *((f"atomic_{name}_tko", "memory_ordering_semantics", _ATOMIC) for name in ("rmw", "cas")),
    *((f"atomic_{name}_tko", "memory_scope", SCOPE) for name in ("rmw", "cas")),
    ("atomic_rmw_tko", "mode", RMW_MODE),
    ("scan", "reverse", (True, False)),
    ("for", "unsignedCmp", (True,)),
    ("mmaf", "fast_acc", (True,)),
    ("mmai", "signedness_lhs", ("signed", "unsigned")),
    ("mmai", "signedness_rhs", ("signed", "unsigned")),
    ("alloca", "global", (True,)),
)  # fmt: skip
_CONTROL = {
    f"control {path}"
    for path in (
        "for/for", "for/loop", "loop/for", "loop/loop", "if/if", "for/if/continue", "if/return",
        "loop/break", "loop/continue", "loop/if/break", "loop/if/continue", "loop/if/return",
        "loop/if/if/break", "for/if/if/continue", "reduce/if/yield", "scan/if/yield",
    )
} | {"entries 1", "entries 2"}  # fmt: skip

"""tileir-verify-ops-analysis: a whole module at nv_tileas, before code is made of it.

Pages 058, 061 and 150 of the specification: regions, atoms, schedules, metadata, and the graph of
producers and consumers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from tile_cute.atoms.records import CopyAtom, MmaRow
from tile_cute.atoms.registry import copy_atom, mma_atom
from tile_cute.errors import LayoutError

from tile_core.mlir import ir
from tile_core.passes import ALL_ANALYSES, Pass, PassContext, error_at
from tile_tileas.pipes.check import problems_of
from tile_tileas.pipes.extract import extract
from tile_tileas.sched.bodies import bodies_of, read

_KERNEL, _SPEC = "nv_tileaa.kernel", "nv_tileaa.kernel_spec"
#: Numbers of a kernel_spec and what they may be (CUDA programming guide, compute capabilities).
_BOUNDS = {"num_warps": (1, 32), "num_ctas": (1, 16)}
_ATOM = re.compile(r'!cute_nvgpu\.atom<"([^"]*)">')


@dataclass(frozen=True)
class VerifyModule(Pass):
    """Check what single operations cannot: that a module is whole, and its functions consistent.

    Kernels are marked and have launch bounds that exist; the instructions that operations name are
    those of the target; schedules that stand on operations agree with themselves; pipes, as
    `tileas-verify-pipes` has it. MLIR itself checks each operation and the names it refers to.
    """

    name = "tileir-verify-ops-analysis"
    anchor = "gpu.module"
    preserves = ALL_ANALYSES
    statistics: ClassVar[dict[str, str]] = {
        "operations": "operations looked at",
        "kernels": "kernels whose bounds were checked",
        "schedules": "bodies whose schedule was checked",
        "pipes": "pipes checked",
    }

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for inner in _inside(op):
            cx.count("operations")
            _check_atom(inner, cx)
        for func in _children(op):
            if func.name == "func.func":
                self._function(func, cx)

    def _function(self, func: ir.Operation, cx: PassContext) -> None:
        if not len(func.regions[0].blocks):
            return
        _check_bounds(func)
        cx.count("kernels", int(_KERNEL in func.attributes))
        for body in bodies_of(func):
            cx.count("schedules", int(read(body) is not None))
        found = extract(func.opview)
        cx.count("pipes", len(found.kernel.pipes))
        for problem in problems_of(found.kernel):
            where = func if problem.step is None else found.steps[problem.step.source]
            raise error_at(where, f"breaks the protocol of its pipe: {problem.text}")


def _children(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation


def _inside(op: ir.Operation) -> Iterator[ir.Operation]:
    for inner in _children(op):
        yield inner
        yield from _inside(inner)


def _check_bounds(func: ir.Operation) -> None:
    """A kernel says how it is launched, and nothing else does."""
    marked = _KERNEL in func.attributes
    if _SPEC not in func.attributes:
        if marked and any(inner.name.startswith("nv_tileas.") for inner in _inside(func)):
            raise error_at(func, f"is a kernel without '{_SPEC}'")
        return
    if not marked:
        raise error_at(func, f"has '{_SPEC}', but is not marked as a kernel")
    spec = ir.DictAttr(func.attributes[_SPEC])
    for key, (least, most) in _BOUNDS.items():
        value = ir.IntegerAttr(spec[key]).value if key in spec else least
        if not least <= value <= most:
            raise error_at(func, f"has {value} as '{key}', which is from {least} to {most}")


def _check_atom(op: ir.Operation, cx: PassContext) -> None:
    """An instruction that an operation names is one that the target has."""
    named = op.attributes.get("atom")
    texts = [named.value] if isinstance(named, ir.StringAttr) else []
    if op.name == "cute.make_atom":
        texts += [m[1] for result in op.results if (m := _ATOM.fullmatch(str(result.type)))]
    for text in texts:
        if not op.name.startswith(("cute.", "cute_nvgpu.")):
            continue
        if not _record(text).supported_on(cx.target.chip):
            raise error_at(op, f"is '{text}', which {cx.target.chip} does not have")


def _record(instruction: str) -> MmaRow | CopyAtom:
    """The registry's record of an instruction, whose name its operation has checked."""
    try:
        return mma_atom(instruction).row
    except LayoutError:
        return copy_atom(instruction)

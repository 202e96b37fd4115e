"""The plan of a memory access: who copies, along which axis, how wide, how bounds are checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd

from tile_tileaa.dialect.types import pointee_of

from tile_core.mlir import ir
from tile_core.target import Target
from tile_tileas.analysis import axis_info as facts
from tile_tileas.analysis.axis import AxisAnalysis, element_bytes, shape_of
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.ranges import Range
from tile_tileas.analysis.views import tiled_view

#: Ways of copying a tile, in the order in which `tileas-plan-accesses` asks for them: boxes of a
#: tensor map, runs of bytes by one thread, copies by each thread into shared memory for a later
#: iteration, registers.
TMA, BULK, CP_ASYNC, GENERIC = WAYS = ("tma", "bulk", "cp.async", "generic")
#: Not decided: by threads, ahead of loops where they can. Plans written by hand may be so.
UNDECIDED = ""
#: What speaks for a way that another one left.
FALLEN_BACK = "what was planned cannot be"
#: Attribute of a store by threads: a tensor map may store slices of the tile instead, if they are
#: read and staged one after the other.
MAY_LEAVE_IN_SLICES = "may_leave_in_slices"
#: Elements that `red` takes as vectors, and the compute capability since which it does (PTX ISA,
#: "red").
_SUMS, _SUMS_SINCE = ("f32", "f16", "bf16"), 90
#: The largest size or coordinate that a plan calls near: differences of two fit into 32 bits.
_MOST_NEAR = (1 << 31) - 1


@dataclass(frozen=True)
class AccessPlan:
    """How each thread touches memory; `vector` is in elements, a power of two.

    `order` lists tile axes from the one that lies contiguously (or closest) in memory. With
    `whole_vectors` a vector is never half in bounds, or half masked off. `checked` lists the
    tile axes along which a tile may reach past the end. `copy` is one of `WAYS`, `why` says what
    speaks for it, and `why_not` what speaks against each way that was asked before. Who cannot
    have it so falls back (`without`). With `near` sizes and all coordinates of elements along
    checked axes are numbers of 31 bits, so that 32 suffice to compare them. In aligned groups of
    `run` elements along the first axis of `order`, addresses follow from the first one's.
    """

    order: tuple[int, ...]
    vector: int
    whole_vectors: bool
    checked: tuple[int, ...] = ()
    copy: str = UNDECIDED
    why: str = ""
    why_not: tuple[tuple[str, str], ...] = ()
    near: bool = False
    run: int = 1

    @property
    def by_threads(self) -> bool:
        """Whether each thread moves what it holds."""
        return self.copy not in (TMA, BULK)

    def reason(self, way: str) -> str | None:
        """What speaks against a way; None if nothing was found, or it was not asked."""
        return dict(self.why_not).get(way)

    def by(self, way: str, why: str, why_not: Mapping[str, str] | None = None) -> AccessPlan:
        """The plan with a way of copying."""
        return replace(self, copy=way, why=why, why_not=tuple(sorted((why_not or {}).items())))

    def without(self, reason: str, *, ahead: bool = False) -> AccessPlan:
        """The plan where its way turned out to be impossible: cp.async if something can still run
        `ahead` of its loop, else registers.
        """
        way = CP_ASYNC if ahead and self.copy in (TMA, BULK) else GENERIC
        against = dict(self.why_not)
        if self.copy in (TMA, BULK, CP_ASYNC):
            against[self.copy] = reason
        return self.by(way, FALLEN_BACK, against)

    def attribute(self) -> ir.Attribute:
        """The plan as the `access` attribute of nv_tileas loads and stores."""
        i32 = ir.IntegerType.get_signless(32)
        fields: dict[str, ir.Attribute] = {
            "order": ir.DenseI32ArrayAttr.get(list(self.order)),
            "vector": ir.IntegerAttr.get(i32, self.vector),
            "checked": ir.DenseI32ArrayAttr.get(list(self.checked)),
        }
        if self.whole_vectors:
            fields["whole_vectors"] = ir.UnitAttr.get()
        if self.near:
            fields["near"] = ir.UnitAttr.get()
        if self.run > 1:
            fields["run"] = ir.IntegerAttr.get(i32, self.run)
        if self.copy != UNDECIDED:
            fields["copy"] = ir.StringAttr.get(self.copy)
            fields["why"] = ir.StringAttr.get(self.why)
        if self.why_not:
            against: dict[str, ir.Attribute] = {
                way: ir.StringAttr.get(reason) for way, reason in self.why_not
            }
            fields["why_not"] = ir.DictAttr.get(against)
        return ir.DictAttr.get(fields)

    @classmethod
    def of(cls, op: ir.OpView | ir.Operation) -> AccessPlan | None:
        """The plan that an operation carries, if any."""
        if "access" not in op.attributes:
            return None
        fields = ir.DictAttr(op.attributes["access"])
        return cls(
            tuple(ir.DenseI32ArrayAttr(fields["order"])),
            ir.IntegerAttr(fields["vector"]).value,
            "whole_vectors" in fields,
            tuple(ir.DenseI32ArrayAttr(fields["checked"])),
            _word(fields, "copy"),
            _word(fields, "why"),
            _against(fields),
            "near" in fields,
            ir.IntegerAttr(fields["run"]).value if "run" in fields else 1,
        )


def _word(fields: ir.DictAttr, name: str) -> str:
    return ir.StringAttr(fields[name]).value if name in fields else ""


def _against(fields: ir.DictAttr) -> tuple[tuple[str, str], ...]:
    if "why_not" not in fields:
        return ()
    found = ir.DictAttr(fields["why_not"])
    entries = [found[at] for at in range(len(found))]
    return tuple((entry.name, ir.StringAttr(entry.attr).value) for entry in entries)


def adds_vectors(op: ir.OpView, target: Target) -> bool:
    """Whether `red` may add several elements of an `atomic_rmw` at once: nobody asks what was there
    before.
    """
    result = op.results[0]
    if target.sm < _SUMS_SINCE or not isinstance(result.type, ir.RankedTensorType):
        return False
    used = any(True for _ in result.uses)
    mode = ir.StringAttr(op.attributes["rmw_mode"]).value
    return mode == "addf" and str(result.type.element_type) in _SUMS and not used


def fall_back(op: ir.OpView, reason: str, *, ahead: bool = False) -> None:
    """Write into the plan of `op`, if it has one, that its way is impossible, and why."""
    plan = AccessPlan.of(op)
    if plan is not None and plan.copy != GENERIC and not (ahead and plan.by_threads):
        op.attributes["access"] = plan.without(reason, ahead=ahead).attribute()


def plan_tiled(view: ir.Value, known: AxisAnalysis, max_bits: int) -> AccessPlan:
    """The plan for one tile of a tiled view.

    The tile's origin is a multiple of its step along every axis, so a vector is aligned when
    the base, the other strides and the step along the contiguous axis are.
    """
    record = tiled_view(view)
    memref = record.memref
    steps = [memref.strides[dim] for dim in record.dim_map]
    order = _memory_order(steps, record.tile)
    size = element_bytes(memref.element)
    fast = order[0]
    extents = [_divisor(memref.sizes[dim], known) for dim in record.dim_map]
    checked = tuple(
        t
        for t, extent in enumerate(extents)
        if extent % record.parts_of[t] or record.steps[t] % record.tile[t]
    )
    if steps[fast] != 1:
        return AccessPlan(order, 1, True, checked)
    alignment = gcd(known[memref.base].scalar, record.steps[fast] * size)
    for axis, step in enumerate(steps):
        if axis != fast:
            alignment = gcd(alignment, _divisor(step, known) * size)
    vector = max(1, min(alignment // size, max_bits // 8 // size, record.tile[fast]))
    return AccessPlan(order, vector, extents[fast] % vector == 0, checked)


def without_checks(plan: AccessPlan, op: ir.OpView, bounds: BoundsAnalysis) -> AccessPlan:
    """`plan` of a tiled load or store, less the checks along axes that the tile never leaves.

    That is what bounds prove, or what the program promises (`in_bounds`). What is left to check is
    `near` if bounds prove that, too.
    """
    record = tiled_view(op.view)
    promised = (
        list(ir.DenseBoolArrayAttr(op.attributes["in_bounds"]))
        if "in_bounds" in op.attributes
        else [False] * len(record.tile)
    )

    def leaves(axis: int) -> bool:
        if promised[axis]:
            return False
        size = record.memref.sizes[record.dim_map[axis]]
        smallest = size if isinstance(size, int) else bounds[size].lo
        furthest = bounds[op.coords[axis]].hi * record.steps[axis] + record.tile[axis]
        return furthest > smallest

    def is_near(axis: int) -> bool:
        size = record.memref.sizes[record.dim_map[axis]]
        sizes = Range(size, size) if isinstance(size, int) else bounds[size]
        coords = bounds[op.coords[axis]]
        furthest = coords.hi * record.steps[axis] + record.tile[axis] - 1
        return sizes.fits(0, _MOST_NEAR) and coords.lo >= 0 and furthest <= _MOST_NEAR

    checked = tuple(axis for axis in plan.checked if leaves(axis))
    return replace(plan, checked=checked, near=all(map(is_near, checked)) and bool(checked))


def _divisor(value: int | ir.Value, known: AxisAnalysis) -> int:
    return facts.pow2_divisor(value) if isinstance(value, int) else known[value].scalar


def _memory_order(steps: list[int | ir.Value], tile: tuple[int, ...]) -> tuple[int, ...]:
    """Axes by stride: constant strides first, smallest first; then later axes before earlier.

    Axes of one element go last whatever their stride, as nothing moves along them.
    """

    def key(axis: int) -> tuple[bool, bool, int, int]:
        step = steps[axis]
        known = isinstance(step, int)
        return (tile[axis] == 1, not known, step if isinstance(step, int) else 0, -axis)

    return tuple(sorted(range(len(steps)), key=key))


def plan_pointers(op: ir.OpView, known: AxisAnalysis, max_bits: int) -> AccessPlan:
    """The plan for a load or store through a tile of pointers."""
    pointers, shape = op.base, shape_of(op.base)
    element = pointee_of(pointers.type)
    if not shape or element is None:
        return AccessPlan((), 1, True)
    info, size = known[pointers], element_bytes(element)
    order = tuple(sorted(range(len(shape)), key=lambda axis: (-info.contiguity[axis], -axis)))
    fast = order[0]
    aligned = gcd(info.divisibility[fast], info.contiguity[fast] * size)
    vector = max(1, min(info.contiguity[fast], aligned // size, max_bits // 8 // size))
    if op.mask is not None:
        # Half-masked vectors are split, so the mask bounds the width.
        vector = min(vector, known[op.mask].constancy[fast])
    return AccessPlan(order, vector, True)

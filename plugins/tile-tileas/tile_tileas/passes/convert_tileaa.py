"""convert-tileaa-to-tileas: memory, shape and reduction operations get their nv_tileas form.

Elementwise operations, views of memory and tokens have no nv_tileas twin and stay as they are
until the LLVM level (the bridge set).
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_tileaa.dialect.accesses import operands_by_name
from tile_tileaa.dialect.extended import NOT_COMPILED
from tile_tileaa.dialect.types import element_of, is_float
from tile_tileaa.passes.cudatile.gather import ViewAddresses

from tile_core.convert import KEEP, Conversion, Replacement
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at, option
from tile_tileas.analysis.axis import AxisAnalysis
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.tokens import TokenOrder
from tile_tileas.copying.ahead import SPECIALIZE
from tile_tileas.hints import MODULE_CTAS, MODULE_WARPS
from tile_tileas.kernel_spec import SPEC, num_warps
from tile_tileas.launch_choice import LaunchChoice
from tile_tileas.mma.families import FAMILIES
from tile_tileas.one_warpgroup import OneWarpgroup
from tile_tileas.passes.ruleset import DotState, rules
from tile_tileas.tma.refusals import SINCE, SOURCES, Knowledge

_SAME_NAME = (
    "atomic_cas", "atomic_rmw", "cat", "extract_slice", "insert_slice", "load", "multimem", "store",
    "tiled_load", "tiled_store", "view",
)  # fmt: skip


@rules.on(*(f"nv_tileaa.{name}" for name in _SAME_NAME))
def same_name(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """nv_tileaa.x => nv_tileas.x, operands one to one, attributes kept"""
    new = cx.create(
        op.name.replace("nv_tileaa", "nv_tileas"),
        list(op.operands),
        [result.type for result in op.results],
        _volatile(_attributes(op)),
    )
    return list(new.results)


def _volatile(attributes: dict[str, ir.Attribute]) -> dict[str, ir.Attribute]:
    """Volatile accesses are relaxed ones of the whole system (PTX ISA, "ld.volatile")."""
    weak = "mem_semantic" in attributes and (
        ir.StringAttr(attributes["mem_semantic"]).value == "weak"
    )
    if "volatile" in attributes and weak:
        attributes["mem_semantic"] = ir.StringAttr.get("relaxed")
        attributes["mem_scope"] = ir.StringAttr.get("sys")
    return attributes


@rules.on("nv_tileaa.clampf")
def clampf(op: ir.OpView, cx: Conversion) -> ir.Value:
    """clampf(x, low, high) => min(max(x, low), high)"""
    names = ("maximumf", "minimumf") if "propagate_nan" in op.attributes else ("maxnumf", "minnumf")
    value, *limits = op.operands
    for name, limit in zip(names, limits, strict=True):
        value = cx.create(f"arith.{name}", [value, limit], [value.type]).result
    return value


@rules.on("nv_tileaa.tiled_atomic_rmw")
def tiled_atomic_rmw(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """tiled_atomic_rmw => atomic_rmw through pointers, masked where the tile leaves the memref"""
    given, coords = operands_by_name(op), list(op.coords)
    value, token = given["value"], [given["token"]] if "token" in given else []
    where = ViewAddresses(op, cx, given["view"], "nv_tileas.view").of(coords)
    attributes = _volatile(_attributes(op))
    attributes.pop("in_bounds", None)
    mode = ir.StringAttr(attributes["rmw_mode"]).value
    if mode == "add" and is_float(element_of(value.type)):
        attributes["rmw_mode"] = ir.StringAttr.get("addf")
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 1, 1, len(token)])
    made = cx.create(
        "nv_tileas.atomic_rmw",
        [where.pointers, value, where.inside, *token],
        [result.type for result in op.results],
        attributes,
    )
    return list(made.results)


@rules.on(*NOT_COMPILED)
def not_compiled(op: ir.OpView, cx: Conversion) -> Replacement:
    """what is declared and verified, but has no meaning that code could be made of"""
    raise error_at(
        op,
        f"is not supported by '{cx.name}': the specification describes no conversion of it",
        hint="write it with other operations: a product of tiles that are loaded for each place "
        "of the filter",
    )


@rules.on("nv_tileaa.expand_dims")
def expand_dims(op: ir.OpView, cx: Conversion) -> ir.Value:
    """expand_dims => view"""
    return cx.create("nv_tileas.view", list(op.operands), [op.results[0].type]).result


@rules.on(*(f"nv_tileaa.{name}" for name in ("reduce", "reduce_mixed", "scan", "scan_mixed")))
def fold(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """nv_tileaa.reduce => nv_tileas.reduce, the region moved"""
    new = cx.create(
        op.operation.name.replace("nv_tileaa", "nv_tileas"),
        list(op.operands),
        [result.type for result in op.results],
        _attributes(op),
        regions=1,
    )
    op.regions[0].blocks[0].append_to(new.regions[0])
    cx.convert_region(new.regions[0])
    return list(new.results)


@rules.on("nv_tileaa.yield", "nv_tileaa.yield_mixed")
def yield_(op: ir.OpView, cx: Conversion) -> Replacement:
    """nv_tileaa.yield => nv_tileas.yield"""
    name = op.operation.name.replace("nv_tileaa", "nv_tileas")
    cx.create(name, list(op.operands), attributes=_attributes(op))
    op.operation.erase()
    return KEEP


def _attributes(op: ir.OpView) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in op.attributes}


@dataclass(frozen=True)
class ConvertTileAAToTileAS(Pass):
    """Convert memory, shape and reduction operations of nv_tileaa to nv_tileas."""

    name = "convert-tileaa-to-tileas"
    anchor = "func.func"
    dependent_dialects = ("nv_tileas",)

    mma: str = option(
        FAMILIES[0], "the highest kind of instruction that products may run on", choices=FAMILIES
    )

    tma_descriptors: str = option(
        "off",
        "where tensor maps come from, which bring tiles past registers: 'host', 'device' or 'off'",
        choices=(*SOURCES, "off"),
    )
    strategy: str = option("unspecialize", "'none': no load runs ahead of its loop")
    occupancy: int = option(
        0, "blocks of a multiprocessor at once, for kernels without a hint; 0 leaves it open"
    )

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        self._attach_kernel_spec(op, cx)
        ruleset = rules.joined(cx.services.patterns(self.name))
        warps = num_warps(op) if SPEC in op.attributes else 0
        state = DotState(self.mma, warps)
        Conversion(ruleset, lambda type_: type_, (), cx, state).run(op)

    def _attach_kernel_spec(self, func: ir.Operation, cx: PassContext) -> None:
        """The launch record: module defaults, over which the hints for this target stand."""
        if "nv_tileaa.kernel" not in func.attributes:
            return
        parent = func.parent
        assert parent is not None, "a kernel stands in its gpu.module"
        for name in (MODULE_WARPS, MODULE_CTAS):
            if name not in parent.attributes:
                raise error_at(parent, f"has no '{name}', which its kernels are launched with")
        choice = LaunchChoice(
            func, cx, self.mma, self._runs_ahead, self.occupancy, lambda: self._one_group(func, cx)
        )
        i32 = ir.IntegerType.get_signless(32)
        func.attributes[SPEC] = ir.DictAttr.get(
            {key: ir.IntegerAttr.get(i32, value) for key, value in choice.spec().items()}
        )

    @property
    def _runs_ahead(self) -> bool:
        """Whether tensor maps may bring tiles ahead of loops."""
        return self.tma_descriptors != "off" and self.strategy != "none"

    def _one_group(self, func: ir.Operation, cx: PassContext) -> bool:
        """Whether one warpgroup makes the kernel's products better alone."""
        if not self._runs_ahead or cx.target.sm < SINCE:
            return False
        axis, bounds = cx.analysis(AxisAnalysis, func), cx.analysis(BoundsAnalysis, func)
        agents = self.strategy == SPECIALIZE
        known = Knowledge(func, axis, bounds, TokenOrder(), self.tma_descriptors, agents)
        return OneWarpgroup(cx.target, self.mma, known).suffices(func)

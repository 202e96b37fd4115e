"""Tile schedulers: parameters and work as records, asked of formulas or of the hardware."""

from __future__ import annotations

from collections.abc import Sequence

from tile_cute.cutlass import schedules
from tile_cute.cutlass.dialect.around import integer, integers
from tile_cute.cutlass.dialect.checks.schedulers import raster_of
from tile_cute.cutlass.dialect.types import kind_of, name_of
from tile_cute.cutlass.records import FIELDS, WORK

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.cutlass.numbers import Emitted
from tile_nvptx.passes.cutlass.state import (
    Cutlass,
    address,
    convert_type,
    get,
    pack,
    params_of,
    put,
    rules,
    unpack,
)
from tile_nvptx.passes.tileas.thread.build import Builder

_PREFIX = "cutlass.tile_scheduler_"
_INFO = "work_tile_info"
_NAMES = tuple(FIELDS)
_ONE_BLOCK = (1, 1, 1)


def _rules(*names: str):  # type: ignore[no-untyped-def]
    return rules.on(*(_PREFIX + name for name in names))


# --- parameters ----------------------------------------------------------------------------------


@_rules("create_dp_params", "create_static_persistent_params", "create_streamk_params")
def create_params(op: ir.OpView, cx: Cutlass) -> Replacement:
    """Counts of tiles, the cluster's shape, the blocks of the grid, the workspace"""
    m, n_, k, batches, *rest = op.operands
    n = Emitted(cx)
    shape = integers(op, "cluster_shape") if "cluster_shape" in op.attributes else _ONE_BLOCK
    blocks = shape[0] * shape[1] * shape[2]
    fields = {
        "num_tiles_m": m,
        "num_tiles_n": n_,
        "num_tiles_k": k,
        **{f"cluster_shape_{x}": n.constant(e) for x, e in zip("xyz", shape, strict=True)},
        "num_ctas_per_cluster": n.constant(blocks),
        "total_ctas": rest[0] if rest else _grid(cx, n),
        "k_split_count": n.constant(0),
        "more_batches": n.sub(batches, n.constant(1)),
    }
    i64 = ir.IntegerType.get_signless(64)
    workspace = n.b.constant(0, i64)
    if len(rest) > 1:
        fields["k_split_count"] = schedules.splits_at_most(n, fields)
        base = address(cx, rest[1], 1)
        workspace = cx.create("llvm.ptrtoint", [base], [i64]).result
    type_ = convert_type(op.results[0].type)
    record = cx.create("llvm.mlir.poison", [], [type_]).result
    for at, name in enumerate(_NAMES):
        value = workspace if name == "workspace_ptr" else n.number(fields[name])
        record = put(cx, record, at, value)
    return record


def _grid(cx: Cutlass, n: Emitted) -> ir.Value:
    """Blocks of the grid."""
    return n.mul(
        n.mul(_special(cx, "nctaid.x"), _special(cx, "nctaid.y")), _special(cx, "nctaid.z")
    )


def _special(cx: Cutlass, name: str) -> ir.Value:
    """A special register of 32 bits."""
    i32 = ir.IntegerType.get_signless(32)
    return cx.create(f"nvvm.read.ptx.sreg.{name}", [], [i32]).result


@_rules("make_dp_params", "make_static_persistent_params", "make_streamk_params")
def make_params(op: ir.OpView, cx: Cutlass) -> Replacement:
    """A load of each field of the record"""
    base, b = address(cx, op.operands[0], 1), Builder(cx)
    record = cx.create("llvm.mlir.poison", [], [convert_type(op.results[0].type)]).result
    for at, (offset, bits) in enumerate(FIELDS.values()):
        where = b.offset(base, offset, b.i8)
        kind = ir.IntegerType.get_signless(bits)
        record = put(cx, record, at, cx.create("llvm.load", [where], [kind]).result)
    return record


@_rules("params_get_value")
def params_get_value(op: ir.OpView, cx: Cutlass) -> Replacement:
    """A field"""
    at = _NAMES.index(ir.StringAttr(op.attributes["field"]).value)
    return get(cx, op.operands[0], at, op.results[0].type)


@_rules("get_grid_shape")
def grid_shape(op: ir.OpView, cx: Cutlass) -> Replacement:
    """Blocks along x, y and z: one cluster for each tile, or as many as stay"""
    n, p = Emitted(cx), params_of(cx, op.operands[0])
    if kind_of(cx.before(op.operands[0])) == "dp":
        counts = [p["num_tiles_m"], p["num_tiles_n"], n.add(p["more_batches"], n.constant(1))]
    else:
        counts = [schedules.width(n, p), n.constant(1), n.constant(1)]
    return [n.mul(c, p[f"cluster_shape_{x}"]) for c, x in zip(counts, "xyz", strict=True)]


# --- work ----------------------------------------------------------------------------------------


def work_of(cx: Cutlass, info: ir.Value) -> dict[str, ir.Value]:
    """All fields of a piece of work."""
    return unpack(cx, info, WORK)


def packed(cx: Cutlass, work: dict[str, ir.Value]) -> ir.Value:
    """The record of a piece of work."""
    return pack(cx, work, WORK, _INFO)


@_rules(
    "create_dp_work_tile_info",
    "create_static_persistent_work_tile_info",
    "create_streamk_work_tile_info",
)
def create_work(op: ir.OpView, cx: Cutlass) -> Replacement:
    """The work of a number"""
    return _numbered(op, cx, op.operands[0], op.operands[1])


def _numbered(op: ir.OpView, cx: Cutlass, params: ir.Value, number: ir.Value) -> ir.Value:
    n, p = Emitted(cx), params_of(cx, params)
    return packed(cx, schedules.work_of(n, _kind(op, cx), p, number, *raster_of(op)))


def _kind(op: ir.OpView, cx: Cutlass) -> str:
    """The kind of work that an operation is about."""
    for value in [*op.results, *op.operands]:
        type_ = cx.before(value)
        if name_of(type_) == _INFO:
            return kind_of(type_)
    raise cx.error("is about no work")


@_rules("initial_work_tile_info")
def initial(op: ir.OpView, cx: Cutlass) -> Replacement:
    """The work of the cluster's number"""
    params = op.operands[0]
    if name_of(cx.before(params)) == "tile_scheduler":
        params = get(cx, params, 0, _params_type())
    what = "clusterid" if cx.state.ctas > 1 else "ctaid"
    at = [_special(cx, f"{what}.{x}") for x in "xyz"]
    return _numbered(op, cx, params, linear(cx, what, at))


def _params_type() -> ir.Type:
    return convert_type(ir.Type.parse('!cutlass.tile_scheduler_params<"dp">'))


def linear(cx: Cutlass, what: str, at: Sequence[ir.Value]) -> ir.Value:
    """The number of a place in the grid, x fastest."""
    n = Emitted(cx)
    x, y, z = at
    rows = n.add(n.mul(z, _special(cx, f"n{what}.y")), y)
    return n.add(n.mul(rows, _special(cx, f"n{what}.x")), x)


@_rules("static_fetch_next_work")
def static_fetch(op: ir.OpView, cx: Cutlass) -> Replacement:
    """What a formula says comes behind"""
    return packed(cx, _next(op, cx)[0])


@_rules("advance_to_next_work")
def advance(op: ir.OpView, cx: Cutlass) -> Replacement:
    """What comes behind, whether it is any, whether the pipe's round ends"""
    work, ends = _next(op, cx)
    valid = Builder(cx).compare(1, Emitted(cx).number(work["valid"]), Emitted(cx).constant(0))
    return [packed(cx, work), valid, ends]


def _next(op: ir.OpView, cx: Cutlass) -> tuple[dict[str, ir.Value], ir.Value]:
    params, info = op.operands
    n, order = Emitted(cx), raster_of(op)
    rounds = integer(op, "tiles_per_pipeline_round", 1)
    p, work = params_of(cx, params), work_of(cx, info)
    return schedules.next_work(n, _kind(op, cx), p, work, *order, rounds)


@_rules("work_tile_info_get_value", "get_work_k_tile_count", "get_work_k_tile_start")
def get_value(op: ir.OpView, cx: Cutlass) -> Replacement:
    """A field"""
    return get(cx, op.operands[0], WORK.index(_field(op)), op.results[0].type)


def _field(op: ir.OpView) -> str:
    name = op.operation.name.removeprefix(_PREFIX)
    if name.startswith("get_work_"):
        return name.removeprefix("get_work_")
    return ir.StringAttr(op.attributes["field"]).value


@_rules("work_tile_info_set_value")
def set_value(op: ir.OpView, cx: Cutlass) -> Replacement:
    """The same work with another field"""
    return put(cx, op.operands[0], WORK.index(_field(op)), op.operands[1])


@_rules("work_tile_info_to_coord_mnkl")
def coord_mnkl(op: ir.OpView, cx: Cutlass) -> Replacement:
    """Fields m, n, k_tile_start and l"""
    work = work_of(cx, op.operands[0])
    return [work[name] for name in ("m", "n", "k_tile_start", "l")]


@_rules("work_tile_info_to_cta_coord")
def cta_coord(op: ir.OpView, cx: Cutlass) -> Replacement:
    """m, n and l of this block: its place in the cluster is added"""
    n, work = Emitted(cx), work_of(cx, op.operands[0])
    shape = integers(op, "cluster_shape") if "cluster_shape" in op.attributes else _ONE_BLOCK
    blocks = shape[0] * shape[1] * shape[2]
    if blocks != cx.state.ctas:
        raise cx.error(f"is for clusters of {blocks} blocks, but the kernel's have {cx.state.ctas}")
    if blocks == 1:
        return [work["m"], work["n"], work["l"]]
    rank = _special(cx, "cluster.ctarank")
    column = n.rem(rank, n.constant(shape[0]))
    row = n.rem(n.div(rank, n.constant(shape[0])), n.constant(shape[1]))
    return [n.add(work["m"], column), n.add(work["n"], row), work["l"]]

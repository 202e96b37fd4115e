"""Views, loads, stores, pointers and tokens."""

from __future__ import annotations

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileaa.dialect.accesses import tiled_mode
from tile_tileaa.passes.cudatile.gather import ViewAddresses, is_gather, padding
from tile_tileaa.passes.cudatile.hints import hints
from tile_tileaa.passes.cudatile.rules import (
    constant,
    element,
    expect_bytes,
    groups,
    i32,
    rules,
    text,
)

_SCOPES = {"device": "gpu"}


@rules.on("cuda_tile.make_token")
def make_token(op: ir.OpView, cx: Conversion) -> ir.Value:
    """make_token => create_mem_token"""
    return cx.create("nv_tileaa.create_mem_token", [], [cx.type(op.results[0].type)]).result


@rules.on("cuda_tile.join_tokens")
def join_tokens(op: ir.OpView, cx: Conversion) -> ir.Value:
    """join_tokens => join_mem_token; of one token: that token; of none: create_mem_token"""
    tokens = list(op.operands)
    if len(tokens) == 1:
        return tokens[0]
    name = "join_mem_token" if tokens else "create_mem_token"
    return cx.create(f"nv_tileaa.{name}", tokens, [cx.type(op.results[0].type)]).result


@rules.on("cuda_tile.offset")
def offset(op: ir.OpView, cx: Conversion) -> ir.Value:
    """offset => addptr"""
    expect_bytes(op, ir.TypeAttr(element(op.operands[0].type).params[0]).value)
    return cx.create("nv_tileaa.addptr", list(op.operands), [cx.type(op.results[0].type)]).result


@rules.on("cuda_tile.make_tensor_view")
def make_tensor_view(op: ir.OpView, cx: Conversion) -> ir.Value:
    """make_tensor_view => make_memref"""
    expect_bytes(op, ir.TypeAttr(op.results[0].type.params[0]).value)
    parts = groups(op)
    base, sizes, strides = parts["base"], parts["dynamicShape"], parts["dynamicStrides"]
    return cx.create(
        "nv_tileaa.make_memref",
        [*base, *sizes, *strides],
        [cx.type(op.results[0].type)],
        {"operandSegmentSizes": _segments(1, len(sizes), len(strides))},
    ).result


def _segments(*sizes: int) -> ir.Attribute:
    return ir.DenseI32ArrayAttr.get(list(sizes))


@rules.on("cuda_tile.make_partition_view")
def make_partition_view(op: ir.OpView, cx: Conversion) -> ir.Value:
    """make_partition_view => block_tile"""
    return cx.create("nv_tileaa.block_tile", [op.operands[0]], [cx.type(op.results[0].type)]).result


@rules.on("cuda_tile.make_strided_view")
def make_strided_view(op: ir.OpView, cx: Conversion) -> ir.Value:
    """make_strided_view => block_tile {steps}"""
    steps = {"steps": op.results[0].type.params[1]}
    return cx.create(
        "nv_tileaa.block_tile", [op.operands[0]], [cx.type(op.results[0].type)], steps
    ).result


@rules.on("cuda_tile.make_gather_scatter_view")
def make_gather_scatter_view(op: ir.OpView, cx: Conversion) -> ir.Value:
    """make_gather_scatter_view => block_tile {sparse_dim}; accesses go through pointers"""
    sparse = {"sparse_dim": op.results[0].type.params[2]}
    return cx.create(
        "nv_tileaa.block_tile", [op.operands[0]], [cx.type(op.results[0].type)], sparse
    ).result


@rules.on("cuda_tile.get_tensor_shape")
def get_tensor_shape(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """get_tensor_shape => get_dim_size per axis"""
    return [
        _dim_size(cx, op.operands[0], axis, cx.type(result.type))
        for axis, result in enumerate(op.results)
    ]


def _dim_size(cx: Conversion, memref: ir.Value, axis: int, type_: ir.Type) -> ir.Value:
    return cx.create("nv_tileaa.get_dim_size", [memref], [type_], {"dim": i32(axis)}).result


@rules.on("cuda_tile.get_index_space_shape")
def get_index_space_shape(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """get_index_space_shape => ceildivui(get_dim_size, tile extent) per tile axis"""
    view = op.operands[0]
    tiled = view.owner
    if tiled.name != "nv_tileaa.block_tile":
        raise error_at(op, "needs a view that make_partition_view made in this function")
    if "sparse_dim" in tiled.attributes:
        raise error_at(op, "is not supported on gather/scatter views")
    steps = tiled.attributes["steps"] if "steps" in tiled.attributes else view.type.params[1]
    tile = list(ir.DenseI32ArrayAttr(steps))
    dim_map = list(ir.DenseI32ArrayAttr(view.type.params[2]))
    found = []
    for axis, result in enumerate(op.results):
        type_ = cx.type(result.type)
        size = _dim_size(cx, tiled.operands[0], dim_map[axis], type_)
        extent = constant(cx, type_, tile[axis])
        found.append(cx.create("arith.ceildivui", [size, extent], [type_]).result)
    return found


def ordering(op: ir.OpView) -> dict[str, ir.Attribute]:
    """`mem_semantic` and, where there is one, `mem_scope`."""
    found: dict[str, ir.Attribute] = {
        "mem_semantic": ir.StringAttr.get(text(op, "memory_ordering_semantics"))
    }
    if "memory_scope" in op.attributes:
        scope = text(op, "memory_scope")
        found["mem_scope"] = ir.StringAttr.get(_SCOPES.get(scope, scope))
    return found


def in_bounds(op: ir.OpView) -> dict[str, ir.Attribute]:
    """`in_bounds`, if the program promises anything."""
    if "inbounds" not in op.attributes:
        return {}
    flags = op.attributes["inbounds"]
    return {"in_bounds": flags} if any(ir.DenseBoolArrayAttr(flags)) else {}


@rules.on("cuda_tile.load_view_tko")
def load_view(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """load_view_tko => tiled_load"""
    parts = groups(op)
    index, token = parts["index"], parts["token"]
    _expect_partition(op, parts["view"][0])
    if is_gather(index):
        return _gather(op, cx, parts)
    return list(
        cx.create(
            "nv_tileaa.tiled_load",
            [*parts["view"], *index, *token],
            [cx.type(result.type) for result in op.results],
            {
                **ordering(op),
                **in_bounds(op),
                **hints(op, cx),
                "operandSegmentSizes": _segments(1, len(index), len(token)),
            },
        ).results
    )


@rules.on("cuda_tile.store_view_tko")
def store_view(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """store_view_tko => tiled_store"""
    parts = groups(op)
    index, token = parts["index"], parts["token"]
    _expect_partition(op, parts["view"][0])
    if is_gather(index):
        return _scatter(op, cx, parts)
    return list(
        cx.create(
            "nv_tileaa.tiled_store",
            [*parts["view"], *parts["tile"], *index, *token],
            [cx.type(result.type) for result in op.results],
            {
                **ordering(op),
                **in_bounds(op),
                **hints(op, cx),
                "operandSegmentSizes": _segments(1, 1, len(index), len(token)),
            },
        ).results
    )


def _gather(op: ir.OpView, cx: Conversion, parts: dict[str, list[ir.Value]]) -> list[ir.Value]:
    """load_view_tko of a gather/scatter view => load through pointers"""
    view, token = parts["view"][0], parts["token"]
    where = ViewAddresses(op, cx, view).of(parts["index"])
    types = [cx.type(result.type) for result in op.results]
    other = padding(op, cx, view, types[0])
    return list(
        cx.create(
            "nv_tileaa.load",
            [where.pointers, where.inside, other, *token],
            types,
            {
                **ordering(op),
                **hints(op, cx),
                "operandSegmentSizes": _segments(1, 1, 1, len(token)),
            },
        ).results
    )


def _scatter(op: ir.OpView, cx: Conversion, parts: dict[str, list[ir.Value]]) -> list[ir.Value]:
    """store_view_tko of a gather/scatter view => store through pointers"""
    token = parts["token"]
    where = ViewAddresses(op, cx, parts["view"][0]).of(parts["index"])
    return list(
        cx.create(
            "nv_tileaa.store",
            [where.pointers, *parts["tile"], where.inside, *token],
            [cx.type(result.type) for result in op.results],
            {
                **ordering(op),
                **hints(op, cx),
                "operandSegmentSizes": _segments(1, 1, 1, len(token)),
            },
        ).results
    )


@rules.on("cuda_tile.atomic_red_view_tko")
def atomic_red_view(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """atomic_red_view_tko => tiled_atomic_rmw, its result unused; rows that are picked one by one,
    and what no tile can be updated by, go through pointers
    """
    parts = groups(op)
    _expect_partition(op, parts["view"][0])
    index, token, value = parts["index"], parts["token"], parts["value"][0]
    mode = text(op, "mode")
    tiled = tiled_mode(mode, element(value.type))
    types = [value.type, cx.type(op.results[0].type)]
    if is_gather(index) or tiled is None:
        where = ViewAddresses(op, cx, parts["view"][0]).of(index)
        operands = [where.pointers, value, where.inside, *token]
        name, sizes = "nv_tileaa.atomic_rmw", (1, 1, 1, len(token))
    else:
        operands = [*parts["view"], value, *index, *token]
        name, sizes = "nv_tileaa.tiled_atomic_rmw", (1, 1, len(index), len(token))
        mode = tiled
    made = cx.create(
        name,
        operands,
        types,
        {
            **ordering(op),
            "rmw_mode": ir.StringAttr.get(mode),
            "operandSegmentSizes": _segments(*sizes),
        },
    )
    return [made.results[1]]


def _expect_partition(op: ir.OpView, view: ir.Value) -> None:
    owner = view.owner
    if isinstance(owner, ir.Block) or owner.name != "nv_tileaa.block_tile":
        raise error_at(op, f"needs a view that was made in this function, but got '{view.type}'")


@rules.on("cuda_tile.load_ptr_tko")
def load_ptr(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """load_ptr_tko => load"""
    expect_bytes(op, element(cx.type(op.results[0].type)))
    parts = groups(op)
    mask, other, token = parts["mask"], parts["paddingValue"], parts["token"]
    return list(
        cx.create(
            "nv_tileaa.load",
            [*parts["source"], *mask, *other, *token],
            [cx.type(result.type) for result in op.results],
            {
                **ordering(op),
                **hints(op, cx),
                "operandSegmentSizes": _segments(1, len(mask), len(other), len(token)),
            },
        ).results
    )


@rules.on("cuda_tile.store_ptr_tko")
def store_ptr(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """store_ptr_tko => store"""
    parts = groups(op)
    expect_bytes(op, element(parts["value"][0].type))
    mask, token = parts["mask"], parts["token"]
    return list(
        cx.create(
            "nv_tileaa.store",
            [*parts["destination"], *parts["value"], *mask, *token],
            [cx.type(result.type) for result in op.results],
            {
                **ordering(op),
                **hints(op, cx),
                "operandSegmentSizes": _segments(1, 1, len(mask), len(token)),
            },
        ).results
    )

"""Memory accesses, which nv_tileaa and nv_tileas have in the same form.

`ACCESSES` is declared in both dialects; nv_tileas adds a layout to the tiles and the plan of
`tileas-plan-accesses` in the attribute `access`. There, each element is read, written or updated
by one thread, and every thread that holds an element of a result gets it.

Attributes that may be absent: `mem_scope`, `cache_modifier`, `eviction_policy`, `in_bounds` (per
axis of a tile: whether it is known to be inside the memref), the unit attribute `volatile`; of
loads and stores, `hints` (`tile_tileaa.dialect.hints`).
Texts follow the Tile IR specification, "nv_tileaa verifiers" and "TileAS TMA and memops family".
"""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from typing import Any

from tile_core.dialect import Check, Operand, OperationSpec, ReadsAndWrites, Result, Writes, declare
from tile_core.mlir import ir
from tile_tileaa.dialect.base import NvTileAA
from tile_tileaa.dialect.hints import hints_problem
from tile_tileaa.dialect.ordering import (
    ATOMIC_ORDERINGS,
    LOAD_ORDERINGS,
    REDUCTION_ORDERINGS,
    STORE_ORDERINGS,
    LoadEffects,
    ordering,
    policy,
)
from tile_tileaa.dialect.types import (
    count_of,
    element_of,
    is_float,
    is_integer,
    is_token,
    memref_parts,
    pointee_of,
    shape_of,
    view_parts,
)

#: Elements that a tile may have.
MAX_TILE_ELEMENTS = 1 << 24

RMW_MODES = ("add", "addf", "and", "or", "xor", "xchg", "min", "max", "umin", "umax")
MULTIMEM_ACTIONS = ("load_reduce", "reduce", "store")
REDUCTIONS = ("add", "min", "max", "and", "or", "xor", "umin", "umax")

_OP_TOKEN: dict[str, Any] = {"token": Operand[Any] | None}
_TOKEN: dict[str, Any] = {"result_token": Result[Any]}
_ORDER: dict[str, Any] = {"mem_semantic": ir.StringAttr}
_SCOPED: dict[str, Any] = {**_ORDER, "mem_scope": ir.StringAttr}


def operands_by_name(op: Any) -> dict[str, ir.Value]:
    """The operands that there are, by name; of a group, the first. Faster than the properties."""
    values, found, start = op.operands, {}, 0
    sizes = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    for field, size in zip(type(op)._fields, sizes, strict=False):
        if size:
            found[field.name] = values[start]
        start += size
    return found


def tokens(op: ir.OpView) -> str | None:
    """The token that comes in, if any, and the one that goes out are tokens."""
    came, gone = operands_by_name(op).get("token"), op.results[-1]
    for value in (came, gone):
        if value is not None and not is_token(value.type):
            return f"expects a memory token, but got {value.type}"
    return None


def _tile_problem(name: str, value: ir.Value, base: ir.Value, element: ir.Type) -> str | None:
    """What is wrong with a tile that must have an `element` for each pointer of `base`."""
    wanted, found = shape_of(base.type), shape_of(value.type)
    if wanted != found:
        return f"expects a {name} of shape {wanted}, but got {found}"
    if element_of(value.type) != element:
        return f"expects a {name} of {element}, but got {element_of(value.type)}"
    return None


def _mask_problem(mask: ir.Value, base: ir.Value) -> str | None:
    # Made without `IntegerType.get`: verifiers run where there is no current context.
    wanted, found, element = shape_of(base.type), shape_of(mask.type), element_of(mask.type)
    if wanted != found:
        return f"expects a mask of shape {wanted}, but got {found}"
    if not isinstance(element, ir.IntegerType) or element.width != 1:
        return f"expects a mask of i1, but got {element}"
    return None


def _through_pointers(*names: str) -> Check:
    """The named operands, and a tile that is read, have an element for each pointer."""

    def check(op: ir.OpView) -> str | None:
        given = operands_by_name(op)
        base = given["base"]
        pointee = pointee_of(base.type)
        if pointee is None:
            return f"expects pointers, but got {base.type}"
        tiles = [(name, given[name]) for name in names if name in given]
        if len(op.results) == 2:
            tiles.append(("result", op.results[0]))
        for name, value in tiles:
            problem = _tile_problem(name, value, base, pointee)
            if problem is not None:
                return problem
        return _mask_problem(given["mask"], base) if "mask" in given else None

    return check


def _rmw_mode(op: ir.OpView) -> str | None:
    mode = ir.StringAttr(op.rmw_mode).value
    if mode in RMW_MODES:
        return None
    return f"expects an rmw_mode of {', '.join(RMW_MODES)}, but got '{mode}'"


def through_view(op: ir.OpView) -> str | None:
    """An integer per axis of the tile; the tile that is read or written is the view's."""
    view = view_parts(op.operands[0].type)
    if view is None:
        return f"expects a tiled view, but got {op.operands[0].type}"
    source, tile, _, _ = view
    problem = _coordinates(op, tile)
    tiles = [op.operands[1]] if "value" in operands_by_name(op) else []
    if len(op.results) == 2:
        tiles.append(op.results[0])
    for value in tiles:
        problem = problem or _tile_of_view(value.type, source, tile)
    return problem or _tile_size(tile) or _in_bounds(op, tile)


def _coordinates(op: ir.OpView, tile: list[int]) -> str | None:
    coords = op.coords
    if len(coords) != len(tile):
        return f"expects {len(tile)} coordinates, but got {len(coords)}"
    if coords and not isinstance(coords[0].type, ir.IntegerType | ir.IndexType):  # of one type
        return f"expects CoordType is same as memref index type, but got {coords[0].type}"
    return None


def _tile_of_view(type_: ir.Type, source: ir.Type, tile: list[int]) -> str | None:
    if shape_of(type_) != tile:
        return "requires the same shape for tileSize and tensor value"
    memref, element = memref_parts(source), element_of(type_)
    kind = source if memref is None else memref[0]
    if kind != element:
        return f"view elementType not equal with tensor element type: {kind} != {element}"
    return None


def _tile_size(tile: list[int]) -> str | None:
    """Extents are powers of two, and their product is what a tile may hold."""
    for extent in tile:
        if extent <= 0:
            return f"all dimensions must be positive constants, got {tile}"
        if extent & (extent - 1):
            return f"all dimensions must be powers of two, got {tile}"
    if count_of(tile) > MAX_TILE_ELEMENTS:
        return f"tile would exceed the maximum of {MAX_TILE_ELEMENTS} elements, got {tile}"
    return None


def _in_bounds(op: ir.OpView, tile: list[int]) -> str | None:
    attributes = op.attributes
    if "in_bounds" not in attributes:
        return None
    flags = attributes["in_bounds"]
    if not isinstance(flags, ir.DenseBoolArrayAttr):
        return f"expects in_bounds to be an array of i1, but got {flags}"
    if len(flags) != len(tile):
        return f"incorrect number of in_bounds elements: expected {len(tile)}, " + (
            f"but found {len(flags)}"
        )
    return None


def tiled_rmw(op: ir.OpView) -> str | None:
    """Which updates of tiles there are, in the order of the specification."""
    attributes = op.attributes
    if "rmw_mode" not in attributes:
        return "requires attribute 'rmw_mode'"
    element, mode = element_of(op.value.type), ir.StringAttr(attributes["rmw_mode"]).value
    width = getattr(element, "width", None)
    if width == 8:
        return "tiled_atomic_rmw not supported for 8-bit types"
    if width == 16 and is_integer(element):
        return "tiled_atomic_rmw not supported for 16-bit integer"
    if mode in ("fadd", "addf"):
        return (
            "tiled_atomic_rmw op cannot use fadd operation, please use add instead for both int "
            "and float types"
        )
    if width == 16 and is_float(element) and mode not in ("add", "max", "min"):
        return "tiled_atomic_rmw for 16-bit float only supports add, max, min operations"
    if mode == "xchg":
        return "tiled_atomic_rmw op cannot use xchg operation"
    if mode not in RMW_MODES:
        return f"expects an rmw_mode of {', '.join(RMW_MODES)}, but got '{mode}'"
    return None


def tiled_mode(mode: str, element: ir.Type) -> str | None:
    """What `tiled_atomic_rmw` calls an update that `atomic_rmw` calls `mode`; None if it has none.

    `add` is for integers and floats.
    """
    width = getattr(element, "width", 0)
    if width == 8 or (width == 16 and is_integer(element)) or mode == "xchg":
        return None
    if mode == "addf":
        return "add"
    if width == 16 and mode not in ("max", "min"):
        return None
    return mode


def _multimem(op: ir.OpView) -> str | None:
    """A known action and reduction; a value goes with all but loads."""
    action, reduction = op.action.value, op.reduction.value
    if action not in MULTIMEM_ACTIONS:
        return f"expects an action of {', '.join(MULTIMEM_ACTIONS)}, but got '{action}'"
    if reduction not in REDUCTIONS:
        return f"expects a reduction of {', '.join(REDUCTIONS)}, but got '{reduction}'"
    if (op.value is None) != (action == "load_reduce"):
        return f"expects a value with every action but load_reduce, not '{action}'"
    return None


#: Checks of every access of a view, before those of its order.
VIEW_CHECKS = (tokens, through_view, policy, hints_problem)

LOAD = OperationSpec(
    "load",
    {
        "base": Operand[Any],
        "mask": Operand[Any] | None,
        "other": Operand[Any] | None,
        **_OP_TOKEN,
        "result": Result[Any],
        **_TOKEN,
        **_ORDER,
    },
    "Read through a tile of pointers; masked-off elements read `other`, or anything.",
    (LoadEffects,),
    (ordering(LOAD_ORDERINGS), _through_pointers("other"), tokens, policy, hints_problem),
)
STORE = OperationSpec(
    "store",
    {
        "base": Operand[Any],
        "value": Operand[Any],
        "mask": Operand[Any] | None,
        **_OP_TOKEN,
        **_TOKEN,
        **_ORDER,
    },
    "Write through a tile of pointers, where the mask is true.",
    (Writes,),
    (ordering(STORE_ORDERINGS), _through_pointers("value"), tokens, policy, hints_problem),
)
ATOMIC_RMW = OperationSpec(
    "atomic_rmw",
    {
        "base": Operand[Any],
        "value": Operand[Any],
        "mask": Operand[Any] | None,
        **_OP_TOKEN,
        "result": Result[Any],
        **_TOKEN,
        **_SCOPED,
        "rmw_mode": ir.StringAttr,
    },
    "Replace what each pointer points to by `rmw_mode` of it and the value; gives what was there. "
    "Where the mask is false, nothing happens and the result is unspecified.",
    (ReadsAndWrites,),
    (ordering(ATOMIC_ORDERINGS), _rmw_mode, _through_pointers("value"), tokens, policy),
)
ATOMIC_CAS = OperationSpec(
    "atomic_cas",
    {
        "base": Operand[Any],
        "cmp": Operand[Any],
        "value": Operand[Any],
        "mask": Operand[Any] | None,
        **_OP_TOKEN,
        "result": Result[Any],
        **_TOKEN,
        **_SCOPED,
    },
    "Store `value` where the bits of `cmp` are found; gives what was there. Where the mask is "
    "false, nothing happens and the result is `cmp`.",
    (ReadsAndWrites,),
    (ordering(ATOMIC_ORDERINGS), _through_pointers("cmp", "value"), tokens, policy),
)
MULTIMEM = OperationSpec(
    "multimem",
    {
        "base": Operand[Any],
        "value": Operand[Any] | None,
        "mask": Operand[Any],
        **_OP_TOKEN,
        "result": Result[Any],
        **_TOKEN,
        **_ORDER,
        "action": ir.StringAttr,
        "reduction": ir.StringAttr,
    },
    "Act on all copies that multicast addresses stand for (one on each of several GPUs), where the "
    "mask is true. `load_reduce` gives the reduction of the copies, `reduce` combines the value "
    "into each, `store` overwrites each. The result of the latter two is unspecified.",
    (ReadsAndWrites,),
    (_multimem, ordering(REDUCTION_ORDERINGS), _through_pointers("value"), tokens),
)
_VIEW: dict[str, Any] = {"view": Operand[Any]}
_COORDS: dict[str, Any] = {"coords": Sequence[Operand[Any]]}
TILED_LOAD = OperationSpec(
    "tiled_load",
    {**_VIEW, **_COORDS, **_OP_TOKEN, "result": Result[Any], **_TOKEN, **_ORDER},
    "Read one tile of a tiled view at grid coordinates, outer axis first. Elements outside the "
    "memref read the view's padding value.",
    (LoadEffects,),
    (*VIEW_CHECKS, ordering(LOAD_ORDERINGS)),
)
TILED_STORE = OperationSpec(
    "tiled_store",
    {**_VIEW, "value": Operand[Any], **_COORDS, **_OP_TOKEN, **_TOKEN, **_ORDER},
    "Write one tile of a tiled view; elements outside the memref are dropped.",
    (Writes,),
    (*VIEW_CHECKS, ordering(STORE_ORDERINGS)),
)
TILED_ATOMIC_RMW = OperationSpec(
    "tiled_atomic_rmw",
    {
        **_VIEW,
        "value": Operand[Any],
        **_COORDS,
        **_OP_TOKEN,
        "result": Result[Any],
        **_TOKEN,
        **_ORDER,
    },
    "Update one tile of a tiled view by `rmw_mode` of what is there and the value; gives what was "
    "there. Elements outside the memref stay, and read anything.",
    (ReadsAndWrites,),
    (*VIEW_CHECKS, tiled_rmw, ordering(("weak", *ATOMIC_ORDERINGS))),
)

#: What both dialects have in one form; accesses of views differ in what nv_tileas says of them.
ACCESSES = (LOAD, STORE, ATOMIC_RMW, ATOMIC_CAS, MULTIMEM)
TILED_ACCESSES = (TILED_LOAD, TILED_STORE, TILED_ATOMIC_RMW)

for _spec in (*ACCESSES, *TILED_ACCESSES):
    declare(NvTileAA, _spec, module=__name__)

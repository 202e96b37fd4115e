"""Matrix products of nv_tileas."""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tile_tileaa.dialect.dot import DOT, DOT_CHECKS, blocks_of, shape_problem, type_problem
from tile_tileaa.dialect.types import element_of, shape_of

from tile_core.dialect import Operand, OperationSpec, ReadsAndWrites, Result, declare
from tile_core.mlir import ir
from tile_tileas.dialect.base import NvTileAS
from tile_tileas.dialect.on_tiles import on_tiles, reads_buffers
from tile_tileas.mma.families import TENSOR, WARPGROUP

#: On a product of warpgroups whose A is a part of its columns: the row of B (i32) that the first of
#: them is multiplied by.
FROM_ROW = "from_row"


def from_row_of(op: ir.OpView) -> int:
    """The row of B that the first column of A is multiplied by."""
    return ir.IntegerAttr(op.attributes[FROM_ROW]).value if FROM_ROW in op.attributes else 0


def _atom(op: ir.OpView) -> str | None:
    from tile_tileas.mma.tensor import ctas_of  # most programs have no products
    from tile_tileas.mma.tiers import SCALED_TIERS, TIERS

    atom = ir.StringAttr(op.attributes["atom"]).value
    tiers = (*TIERS, *SCALED_TIERS.values())
    if not any(tier.has(atom) for tier in tiers):
        families = ", ".join(dict.fromkeys(tier.family for tier in tiers))
        return f"expects atom '{atom}' to be an instruction of {families}"
    if (op.sfa is None) == any(tier.has(atom) for tier in SCALED_TIERS.values()):
        return f"expects SFA and SFB with an atom that takes them, and no other, but got '{atom}'"
    if ctas_of(atom) != blocks_of(op):
        return f"expects {ctas_of(atom)} blocks to make a product by '{atom}', not {blocks_of(op)}"
    return None


def _types(op: ir.OpView) -> str | None:
    """Those of nv_tileaa, or bytes of two elements each."""
    from tile_tileas.mma.tensor_scaled import reads_packed

    if not reads_packed(ir.StringAttr(op.attributes["atom"]).value):
        return type_problem(op)
    types = [str(element_of(value.type)) for value in (op.a, op.b, op.c)]
    if types == ["i8", "i8", "f32"]:
        return None
    return f"expects bytes of two elements and an f32 accumulator, but got {', '.join(types)}"


def _warps(op: ir.OpView) -> str | None:
    if "warps" not in op.attributes:
        return None
    warps = op.attributes["warps"]
    if not isinstance(warps, ir.DenseI32ArrayAttr) or len(warps) != 3 or min(warps) < 1:
        return f"expects warps to count them along B, M and N, but got {warps}"
    return None


def _in_flight(op: ir.OpView) -> str | None:
    atom = ir.StringAttr(op.attributes["atom"]).value
    if "in_flight" not in op.attributes:
        return None
    from tile_tileas.mma.tiers import tier_of

    if tier_of(atom).family in (WARPGROUP, TENSOR):
        return None
    return f"expects products in flight to be of {WARPGROUP} or {TENSOR}, but got '{atom}'"


def _shapes(op: ir.OpView) -> str | None:
    """Those of nv_tileaa, or fewer columns of A than B has rows."""
    b = list(shape_of(op.b.type))
    if FROM_ROW not in op.attributes:
        return shape_problem(op, b)
    given, count = op.attributes[FROM_ROW], shape_of(op.a.type)[-1]
    first = given.value if isinstance(given, ir.IntegerAttr) else -1
    if not 0 <= first <= b[-2] - count:
        return f"expects {FROM_ROW} to be one of B's with {count} from there on, but got {given}"
    return shape_problem(op, [*b[:-2], count, b[-1]])


def _part(op: ir.OpView) -> str | None:
    from tile_tileas.mma.tiers import tier_of

    family = tier_of(ir.StringAttr(op.attributes["atom"]).value).family
    held = isinstance(op.a.type, ir.RankedTensorType)
    if FROM_ROW not in op.attributes or (family == WARPGROUP and held):
        return None
    return f"expects {FROM_ROW} on products of {WARPGROUP} with A in registers"


def _pending(op: ir.OpView) -> str | None:
    if "pending" not in op.attributes:
        return None
    pending = op.attributes["pending"]
    number = pending.value if isinstance(pending, ir.IntegerAttr) else -1
    if "done" in op.attributes:
        return "expects nothing to be pending behind products that are done"
    return None if number >= 0 else f"expects pending to be at least 0, but got {pending}"


def _in_place(op: ir.OpView) -> str | None:
    if "in_place" not in op.attributes:
        return None
    given = op.attributes["in_place"]
    if not isinstance(given, ir.UnitAttr):
        return f"expects in_place alone, but got {given}"
    if {"pending", "done"}.intersection(op.attributes) or len(op.operands) > 1:
        return "expects products in tensor memory to hold nothing, and none to be pending"
    return None


def _same(op: ir.OpView) -> str | None:
    source, result = op.operands[0].type, op.results[0].type
    if source == result and isinstance(source, ir.RankedTensorType):
        return None
    return f"expects one tile type, but got {source} and {result}"


#: Those of nv_tileaa, with other types and shapes.
_, _BLOCKS, _, _SCALES = DOT_CHECKS

_SPEC = replace(
    DOT,
    fields={**DOT.fields, "atom": ir.StringAttr},
    doc=f"{DOT.doc} `atom` is the name of an MMA of tile_cute's registry, or 'fma': with an MMA "
    "the layouts are tiles of its fragments; with 'fma' each thread computes what its accumulator "
    "holds. An atom that reads elements of four bits packed takes A and B as bytes of two, next to "
    "each other along K. `warps` says how many warps stand along B, M and N, once layouts are "
    "assigned; `promotes` that sums are kept outside of tensor cores; `in_flight` that nobody may "
    "touch the result, or write A and B, before a wait; `from_row` that A is a part of its "
    "columns, which are multiplied by the rows of B from that one on. A and B are tiles or "
    "buffers: their types say where they reside.",
    traits=reads_buffers(("a", "b")),
    checks=(
        *(on_tiles(check) for check in (_types, _BLOCKS, _shapes, _SCALES)),
        _atom,
        _warps,
        _in_flight,
        _part,
    ),
)

_WAIT = OperationSpec(
    "dot_wait",
    {"source": Operand[Any], "held": Sequence[Operand[Any]], "result": Result[Any]},
    "The accumulator of products in flight, when they are done: all groups of the warpgroup are, "
    "but the last `pending` ones. `held` are tiles that products read until then. With "
    "`done` a product just before has been waited for, and nothing is left to wait for. With "
    "`in_place` the branch that alone uses the result changes it in tensor memory.",
    (ReadsAndWrites,),
    (_same, _pending, _in_place),
)

declare(NvTileAS, _SPEC, module=__name__)
declare(NvTileAS, _WAIT, module=__name__)

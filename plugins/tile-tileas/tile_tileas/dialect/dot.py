"""Matrix products of nv_tileas."""

# pyright: reportGeneralTypeIssues=false

from dataclasses import replace

from tile_tileaa.dialect.dot import DOT

from tile_core.dialect import declare
from tile_core.mlir import ir
from tile_tileas.dialect.base import LayoutAttr, NvTileAS
from tile_tileas.dots import FMA, has_atom


def _atom(op: ir.OpView) -> str | None:
    atom = ir.StringAttr(op.attributes["atom"]).value
    if atom == FMA or has_atom(atom):
        return None
    return f"expects atom '{atom}' to be a warp-level MMA or '{FMA}'"


def _staging(op: ir.OpView) -> str | None:
    if "staging" not in op.attributes:
        return None
    staging = op.attributes["staging"]
    parts = list(staging) if isinstance(staging, ir.ArrayAttr) else []
    if len(parts) == 2 and all(isinstance(part, ir.UnitAttr | LayoutAttr) for part in parts):
        return None
    return "expects staging to be a layout or unit for each of the two operands"


_SPEC = replace(
    DOT,
    fields={**DOT.fields, "atom": ir.StringAttr},
    doc=f"{DOT.doc} `atom` is the name of a warp-level MMA of tile_cute's registry, or 'fma': with "
    "an MMA the layouts are tiles of its fragments; with 'fma' each thread computes what its "
    "accumulator holds and the operands pass through shared memory. `staging` holds the layout of "
    "each operand in shared memory, or unit for one that comes as fragments in registers.",
    checks=(*DOT.checks, _atom, _staging),
)

declare(NvTileAS, _SPEC, module=__name__)

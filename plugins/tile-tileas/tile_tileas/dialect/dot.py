"""Matrix products of nv_tileas."""

# pyright: reportGeneralTypeIssues=false

from dataclasses import replace

from tile_tileaa.dialect.dot import DOT

from tile_core.dialect import declare
from tile_core.mlir import ir
from tile_tileas.dialect.base import NvTileAS
from tile_tileas.dialect.on_tiles import on_tiles, reads_buffers
from tile_tileas.mma.tiers import FAMILIES, TIERS


def _atom(op: ir.OpView) -> str | None:
    atom = ir.StringAttr(op.attributes["atom"]).value
    if any(tier.has(atom) for tier in TIERS):
        return None
    return f"expects atom '{atom}' to be an instruction of {', '.join(FAMILIES)}"


def _warps(op: ir.OpView) -> str | None:
    if "warps" not in op.attributes:
        return None
    warps = op.attributes["warps"]
    if not isinstance(warps, ir.DenseI32ArrayAttr) or len(warps) != 3 or min(warps) < 1:
        return f"expects warps to count them along B, M and N, but got {warps}"
    return None


_SPEC = replace(
    DOT,
    fields={**DOT.fields, "atom": ir.StringAttr},
    doc=f"{DOT.doc} `atom` is the name of an MMA of tile_cute's registry, or 'fma': with an MMA "
    "the layouts are tiles of its fragments; with 'fma' each thread computes what its accumulator "
    "holds. `warps` says how many warps stand along B, M and N, once layouts are assigned; "
    "`promotes` that sums are kept outside of tensor cores. A and B are tiles or buffers: their "
    "types say where they reside.",
    traits=reads_buffers(("a", "b")),
    checks=(*(on_tiles(check) for check in DOT.checks), _atom, _warps),
)

declare(NvTileAS, _SPEC, module=__name__)

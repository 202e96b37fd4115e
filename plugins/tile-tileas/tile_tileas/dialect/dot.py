"""Matrix products of nv_tileas."""

# pyright: reportGeneralTypeIssues=false

from dataclasses import replace

from tile_tileaa.dialect.dot import DOT

from tile_core.dialect import declare
from tile_core.mlir import ir
from tile_tileas.dialect.base import NvTileAS
from tile_tileas.dialect.on_tiles import on_tiles, reads_buffers
from tile_tileas.dots import FMA, has_atom


def _atom(op: ir.OpView) -> str | None:
    atom = ir.StringAttr(op.attributes["atom"]).value
    if atom == FMA or has_atom(atom):
        return None
    return f"expects atom '{atom}' to be a warp-level MMA or '{FMA}'"


_SPEC = replace(
    DOT,
    fields={**DOT.fields, "atom": ir.StringAttr},
    doc=f"{DOT.doc} `atom` is the name of a warp-level MMA of tile_cute's registry, or 'fma': with "
    "an MMA the layouts are tiles of its fragments; with 'fma' each thread computes what its "
    "accumulator holds. A and B are tiles or buffers: their types say where they reside.",
    traits=reads_buffers(("a", "b")),
    checks=(*(on_tiles(check) for check in DOT.checks), _atom),
)

declare(NvTileAS, _SPEC, module=__name__)

"""Matrix products of nv_tileas."""

# pyright: reportGeneralTypeIssues=false

from typing import Any

from tile_tileaa.dialect.dot import verify_dot

from tile_core.dialect import Operand, Operation, Pure, Result, reject
from tile_core.mlir import ir
from tile_tileas.dialect.base import NvTileAS
from tile_tileas.dots import FMA, has_atom


class DotOp(Operation, dialect=NvTileAS, name="dot", traits=[Pure]):
    """c + a @ b by `atom`: the name of a warp-level MMA of tile_cute's registry, or "fma".

    With an MMA the layouts are tiles of its fragments; with "fma" each thread computes what its
    accumulator holds and the operands pass through shared memory. Otherwise as nv_tileaa.dot.
    """

    a: Operand[Any]
    b: Operand[Any]
    c: Operand[Any]
    sfa: Operand[Any] | None
    sfb: Operand[Any] | None
    result: Result[Any]
    atom: ir.StringAttr

    @staticmethod
    def verify_invariants(op: "DotOp") -> bool:
        if not verify_dot(op):
            return False
        atom = ir.StringAttr(op.attributes["atom"]).value
        if atom != FMA and not has_atom(atom):
            return reject(op, f"expects atom '{atom}' to be a warp-level MMA or '{FMA}'")
        return True

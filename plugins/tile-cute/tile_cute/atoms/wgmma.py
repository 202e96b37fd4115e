"""Warp-group MMAs of sm_90a: wgmma.mma_async, PTX ISA "wgmma.mma_async"."""

from collections.abc import Iterator
from itertools import product

from tile_cute.atoms.records import REGISTERS, SHARED, MmaRow
from tile_cute.atoms.types import FP8, INT8

_FLOAT_N = tuple(range(8, 257, 8))
_INT_N = (8, 16, 24, *range(32, 257, 16))

# (A types, accumulators, K, whether A and B may differ, Ns, orders in shared memory)
_TABLE = (
    (("f16",), ("f16", "f32"), 16, False, _FLOAT_N, ("K", "MN")),
    (("bf16",), ("f32",), 16, False, _FLOAT_N, ("K", "MN")),
    (("tf32",), ("f32",), 8, False, _FLOAT_N, ("K",)),
    (FP8, ("f16", "f32"), 32, True, _FLOAT_N, ("K",)),
    (INT8, ("s32",), 32, True, _INT_N, ("K",)),
    (("b1",), ("s32",), 256, False, _INT_N, ("K",)),
)


def _row(
    a: str, b: str, acc: str, k: int, ns: tuple[int, ...], majors: tuple[str, ...], sparse: bool
) -> MmaRow:
    opcode = "wgmma.mma_async.sp.sync" if sparse else "wgmma.mma_async.sync"
    tail = ".and.popc" if a == "b1" else ""
    return MmaRow(
        family="wgmma.sp" if sparse else "wgmma",
        template=f"{opcode}.aligned.m{{m}}n{{n}}k{{k}}.{acc}.{a}.{b}{tail}",
        shapes=((64, ns),),
        k=2 * k if sparse else k,
        a=a,
        b=b,
        acc=acc,
        gates=("90a",),
        threads=128,
        residency=((REGISTERS, SHARED), SHARED, REGISTERS),
        majors=majors,
        sparse=sparse,
        ptx=82 if sparse else 80,
        modifiers=(".satfinite",) if acc == "s32" and a != "b1" else (),
    )


def rows() -> Iterator[MmaRow]:
    """Every warp-group MMA, dense and sparse (binary ones have no sparse form)."""
    for sparse in (False, True):
        for types, accumulators, k, mixed, ns, majors in _TABLE:
            if sparse and types == ("b1",):
                continue
            pairs = list(product(types, types)) if mixed else [(t, t) for t in types]
            for (a, b), acc in product(pairs, accumulators):
                yield _row(a, b, acc, k, ns, majors, sparse)

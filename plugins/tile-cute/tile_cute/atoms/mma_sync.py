"""Warp-level MMAs: mma.sync and mma.sp, sm_75 shapes on, of PTX ISA "mma" and "mma.sp"."""

from collections.abc import Iterator
from itertools import product

from tile_cute.atoms.records import MmaRow, Scale
from tile_cute.atoms.types import FP8, INT4, INT8, NARROW_FLOATS

# (gate, M, Ks, A types, accumulators, whether A and B may differ, PTX version)
_Row = tuple[str, int, tuple[int, ...], tuple[str, ...], tuple[str, ...], bool, int]

_DENSE: tuple[_Row, ...] = (
    ("75+", 16, (8,), ("f16",), ("f16", "f32"), False, 65),
    ("75+", 8, (16,), INT8, ("s32",), True, 65),
    ("75+", 8, (32,), INT4, ("s32",), True, 65),
    ("80+", 16, (16,), ("f16",), ("f16", "f32"), False, 70),
    ("80+", 16, (8, 16), ("bf16",), ("f32",), False, 70),
    ("80+", 16, (4, 8), ("tf32",), ("f32",), False, 70),
    ("80+", 16, (16, 32), INT8, ("s32",), True, 70),
    ("80+", 16, (32, 64), INT4, ("s32",), True, 70),
    ("80+", 8, (4,), ("f64",), ("f64",), False, 70),
    ("89+", 16, (32,), FP8, ("f16", "f32"), True, 84),
    ("89+", 16, (16,), FP8, ("f16", "f32"), True, 87),
    ("90+", 16, (4, 8, 16), ("f64",), ("f64",), False, 78),
)

_SPARSE: tuple[_Row, ...] = (
    ("80+", 16, (16, 32), ("f16",), ("f16", "f32"), False, 85),
    ("80+", 16, (16, 32), ("bf16",), ("f32",), False, 85),
    ("80+", 16, (8, 16), ("tf32",), ("f32",), False, 85),
    ("80+", 16, (32, 64), INT8, ("s32",), True, 85),
    ("80+", 16, (64, 128), INT4, ("s32",), True, 85),
    ("89+", 16, (64,), FP8, ("f32",), True, 85),
    ("120f", 16, (64,), FP8, ("f16",), True, 87),
)

# (A types, K dense, kind, scale size, scale type, elements per scale)
_SCALED = (
    (NARROW_FLOATS, 32, "mxf8f6f4", "1X", "ue8m0", 32),
    (("e2m1",), 64, "mxf4", "2X", "ue8m0", 32),
    (("e2m1",), 64, "mxf4nvf4", "2X", "ue8m0", 32),
    (("e2m1",), 64, "mxf4nvf4", "4X", "ue4m3", 16),
)

_FAMILY_GATES = ("120f",)
_SPARSE_FP4_GATES = ("120a", "121a")
_EIGHT = (8,)


def _pairs(types: tuple[str, ...], mixed: bool) -> Iterator[tuple[str, str]]:
    return product(types, types) if mixed else zip(types, types, strict=True)


def _plain(row: _Row, sparse: bool) -> Iterator[MmaRow]:
    gate, m, ks, types, accumulators, mixed, ptx = row
    opcode = "mma.sp::ordered_metadata.sync" if sparse else "mma.sync"
    for k, (a, b), acc in product(ks, list(_pairs(types, mixed)), accumulators):
        yield MmaRow(
            family="mma.sp" if sparse else "mma.sync",
            template=f"{opcode}.aligned.m{{m}}n{{n}}k{{k}}.row.col.{acc}.{a}.{b}.{acc}",
            shapes=((m, _EIGHT),),
            k=k,
            a=a,
            b=b,
            acc=acc,
            gates=(gate,),
            sparse=sparse,
            ptx=ptx,
            modifiers=(".satfinite",) if acc == "s32" else (),
        )


def _bits() -> Iterator[MmaRow]:
    """Binary MMAs: XOR or AND, then population count."""
    for m, k, operation in product((8, 16), (128, 256), ("xor", "and")):
        if m == 8 and k == 256:
            continue
        gate = "75+" if (m, operation) == (8, "xor") else "80+"
        shape = "m{m}n{n}k{k}"
        yield MmaRow(
            family="mma.sync",
            template=f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{operation}.popc",
            shapes=((m, _EIGHT),),
            k=k,
            a="b1",
            b="b1",
            acc="s32",
            gates=(gate,),
            ptx=70 if operation == "xor" else 71,
        )


def _narrow(sparse: bool) -> Iterator[MmaRow]:
    """kind::f8f6f4 of sm_120: any pair of narrow floats, in byte containers."""
    opcode = "mma.sp::ordered_metadata.sync" if sparse else "mma.sync"
    for a, b, acc in product(NARROW_FLOATS, NARROW_FLOATS, ("f16", "f32")):
        yield MmaRow(
            family="mma.sp" if sparse else "mma.sync",
            template=(
                f"{opcode}.aligned.kind::f8f6f4.m{{m}}n{{n}}k{{k}}.row.col.{acc}.{a}.{b}.{acc}"
            ),
            shapes=((16, _EIGHT),),
            k=64 if sparse else 32,
            a=a,
            b=b,
            acc=acc,
            gates=_FAMILY_GATES,
            sparse=sparse,
            kind="f8f6f4",
            ptx=87,
        )


def _scaled(sparse: bool) -> Iterator[MmaRow]:
    opcode = "mma.sp::ordered_metadata.sync" if sparse else "mma.sync"
    for types, k, kind, size, scale, vector in _SCALED:
        for a, b in product(types, types):
            yield MmaRow(
                family="mma.sp.block_scale" if sparse else "mma.block_scale",
                template=(
                    f"{opcode}.aligned.kind::{kind}.block_scale.scale_vec::{size}"
                    f".m{{m}}n{{n}}k{{k}}.row.col.f32.{a}.{b}.f32.{scale}"
                ),
                shapes=((16, _EIGHT),),
                k=2 * k if sparse else k,
                a=a,
                b=b,
                acc="f32",
                gates=_SPARSE_FP4_GATES if sparse and k == 64 else _FAMILY_GATES,
                sparse=sparse,
                scale=Scale(scale, 2 * vector if sparse else vector, size),
                kind=kind,
                ptx=87,
            )


def rows() -> Iterator[MmaRow]:
    """Every warp-level MMA."""
    for sparse, table in ((False, _DENSE), (True, _SPARSE)):
        for row in table:
            yield from _plain(row, sparse)
        yield from _narrow(sparse)
        yield from _scaled(sparse)
    yield from _bits()

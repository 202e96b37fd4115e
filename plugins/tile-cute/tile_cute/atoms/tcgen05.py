"""MMAs into tensor memory, sm_100a and its kin: tcgen05.mma, PTX ISA "tcgen05.mma".

Where the PTX ISA shows figures only, the layouts are those of CUTLASS: sparsity metadata, scale
factors of B for a pair with M 128, and A for data paths with banks (see `tensor_memory`).
"""

from collections.abc import Iterator
from itertools import product

from tile_cute.atoms.records import SHARED, TENSOR, MmaRow, Scale
from tile_cute.atoms.types import INT8, NARROW_FLOATS

FAMILY = ("100f", "110f")
ARCH_INT8 = ("100a", "110a")

# kind: (type pairs, accumulators, dense K, gates)
_KINDS = {
    "f16": (
        (("f16", "f16"), ("bf16", "bf16")),
        ("f16", "f32"),
        16,
        FAMILY,
    ),
    "tf32": ((("tf32", "tf32"),), ("f32",), 8, FAMILY),
    "f8f6f4": (tuple(product(NARROW_FLOATS, NARROW_FLOATS)), ("f16", "f32"), 32, FAMILY),
    "i8": (tuple(product(INT8, INT8)), ("s32",), 32, ARCH_INT8),
}

# kind: (types, dense K, factors per K step, scale type, elements per factor)
_SCALED = (
    ("mxf8f6f4", NARROW_FLOATS, 32, "1X", "ue8m0", 32),
    ("mxf4", ("e2m1",), 64, "2X", "ue8m0", 32),
    ("mxf4nvf4", ("e2m1",), 64, "2X", "ue8m0", 32),
    ("mxf4nvf4", ("e2m1",), 64, "4X", "ue4m3", 16),
)


def _steps(first: int, last: int, step: int) -> tuple[int, ...]:
    return tuple(range(first, last + 1, step))


# (M, Ns) by cta_group; the i8 kind has fewer Ns
_SHAPES = {
    1: ((64, _steps(8, 256, 8)), (128, _steps(16, 256, 16))),
    2: ((128, _steps(16, 256, 16)), (256, _steps(32, 256, 32))),
}
_INT8_SHAPES = {
    1: ((64, (8, 16, 24, *_steps(32, 256, 16))), (128, _steps(16, 256, 16))),
    2: ((128, _steps(32, 256, 32)), (256, _steps(32, 256, 32))),
}
_SCALED_SHAPES = {
    1: ((128, _steps(8, 256, 8)),),
    2: ((128, _steps(16, 256, 16)), (256, _steps(16, 256, 16))),
}
_SPARSE_SCALED_SHAPES = {1: _SCALED_SHAPES[1], 2: _SCALED_SHAPES[2][1:]}
_WS_SHAPES = tuple((m, (64, 128, 256)) for m in (32, 64, 128))
_SPARSE_WS_SHAPES = tuple((m, (64, 128)) for m in (32, 64, 128))


def _row(
    kind: str,
    a: str,
    b: str,
    acc: str,
    k: int,
    group: int,
    shapes: tuple[tuple[int, tuple[int, ...]], ...],
    *,
    sparse: bool,
    gates: tuple[str, ...] = FAMILY,
    scale: Scale | None = None,
    stationary: bool = False,
) -> MmaRow:
    words = ["tcgen05.mma"]
    words += [".ws"] if stationary else []
    words += [".sp"] if sparse else []
    words.append(f".cta_group::{group}.kind::{kind}")
    if scale is not None:
        words.append(f".block_scale.scale_vec::{scale.size}")
    family = "tcgen05" + (".ws" if stationary else "") + (".sp" if sparse else "")
    return MmaRow(
        family=family + (".block_scale" if scale else ""),
        template="".join(words),
        shapes=shapes,
        k=2 * k if sparse else k,
        a=a,
        b=b,
        acc=acc,
        gates=gates,
        threads=1,
        residency=((SHARED, TENSOR), SHARED, TENSOR),
        majors=("K",) if kind in ("mxf4", "mxf4nvf4") else ("K", "MN"),
        sparse=sparse,
        scale=scale,
        kind=kind,
        cta_group=group,
        weight_stationary=stationary,
        ptx=86,
    )


def _accumulators(a: str, accumulators: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(acc for acc in accumulators if acc != "f16" or a != "bf16")


def _plain(
    kind: str,
    a: str,
    b: str,
    accumulators: tuple[str, ...],
    k: int,
    gates: tuple[str, ...],
    sparse: bool,
) -> Iterator[MmaRow]:
    """Both CTA groups, and the weight-stationary form of one CTA."""
    for acc in _accumulators(a, accumulators):
        for group in (1, 2):
            shapes = (_INT8_SHAPES if kind == "i8" else _SHAPES)[group]
            yield _row(kind, a, b, acc, k, group, shapes, sparse=sparse, gates=gates)
        shapes = _SPARSE_WS_SHAPES if sparse else _WS_SHAPES
        yield _row(kind, a, b, acc, k, 1, shapes, sparse=sparse, gates=gates, stationary=True)


def rows() -> Iterator[MmaRow]:
    """Every MMA into tensor memory: plain, weight-stationary and block-scaled; dense and sparse."""
    for kind, (pairs, accumulators, k, gates) in _KINDS.items():
        for sparse in (False, True):
            for a, b in pairs:
                yield from _plain(kind, a, b, accumulators, k, gates, sparse)
    for kind, types, k, size, scale, vector in _SCALED:
        for sparse, a, b, group in product((False, True), types, types, (1, 2)):
            row_scale = Scale(scale, 2 * vector if sparse else vector, size)
            shapes = (_SPARSE_SCALED_SHAPES if sparse else _SCALED_SHAPES)[group]
            yield _row(kind, a, b, "f32", k, group, shapes, sparse=sparse, scale=row_scale)

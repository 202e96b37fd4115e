"""Copies: vectors, cp.async, ldmatrix and stmatrix, bulk and tensor copies, tensor memory."""

from collections.abc import Iterator
from itertools import product

from tile_cute.atoms.records import GLOBAL, REGISTERS, SHARED, TENSOR, CopyAtom
from tile_cute.atoms.tensor_memory import copy_layout, load_fragment, load_repeats, load_shapes
from tile_cute.linear.layout import LinearLayout

_VECTORS = ((8, "b8"), (16, "b16"), (32, "b32"), (64, "b64"), (64, "v2.b32"), (128, "v4.b32"))
_TMEM_GATES = ("100f", "110f")


def _vectors() -> Iterator[CopyAtom]:
    """Plain loads and stores, one vector per thread; 256 bits from sm_100 on, global only."""
    for space, name in ((GLOBAL, "global"), (SHARED, "shared")):
        for bits, suffix in _VECTORS:
            common = {"gates": ("75+",), "bits": bits, "alignment": bits // 8}
            yield CopyAtom("vector", f"ld.{name}.{suffix}", space, REGISTERS, **common)
            yield CopyAtom("vector", f"st.{name}.{suffix}", REGISTERS, space, **common)
    for suffix in ("v8.b32", "v4.b64"):
        common = {"gates": ("100+",), "bits": 256, "alignment": 32, "ptx": 88}
        yield CopyAtom("vector", f"ld.global.{suffix}", GLOBAL, REGISTERS, **common)
        yield CopyAtom("vector", f"st.global.{suffix}", REGISTERS, GLOBAL, **common)


def _cp_async() -> Iterator[CopyAtom]:
    """Global to shared without registers: 4 or 8 bytes through L1, 16 bytes either way."""
    for cache, size in (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)):
        yield CopyAtom(
            "cp.async",
            f"cp.async.{cache}.shared.global",
            GLOBAL,
            SHARED,
            ("80+",),
            size * 8,
            size,
            asynchronous="cp.async group",
            modifiers=(f"cp-size {size}", "src-size", ".L2::cache_hint"),
        )


def _counts(number: int) -> list[tuple[int, int, int]]:
    return [(1 << i, 0, 0) for i in range(number.bit_length() - 1)]


def _rows_by_lane(number: int, rows: int) -> LinearLayout:
    """Lane `rows*j + r` supplies the address of row r of matrix j."""
    lane = [(0, 1 << i, 0) for i in range(rows.bit_length() - 1)] + _counts(number)
    lane += [(0, 0, 0)] * (5 - len(lane))
    return LinearLayout({"lane": lane}, (number, rows, 1))


def _matrix8(number: int, transposed: bool) -> LinearLayout:
    """8x8 of 16 bits: register j of lane t holds row t/4, columns 2(t%4) and +1 of matrix j."""
    register = [(0, 0, 1), *_counts(number)]
    lane = [(0, 0, 2), (0, 0, 4), (0, 1, 0), (0, 2, 0), (0, 4, 0)]
    layout = {"register": register, "lane": lane}
    if transposed:
        layout = {space: [(j, c, r) for j, r, c in v] for space, v in layout.items()}
    return LinearLayout(layout, (number, 8, 8))


def _matrix16_trans(number: int) -> LinearLayout:
    """16x16 of bytes, transposed: lane (g, t) gets rows 4t .. 4t+3 of column g in one register,
    of column g + 8 in the next.
    """
    register = [(0, 1, 0), (0, 2, 0), (0, 0, 8), *_counts(number)]
    lane = [(0, 4, 0), (0, 8, 0), (0, 0, 1), (0, 0, 2), (0, 0, 4)]
    return LinearLayout({"register": register, "lane": lane}, (number, 16, 16))


def _matrix8x16(number: int) -> LinearLayout:
    """8x16 of bytes: lane t gets row t/4, columns 4(t%4) .. +3."""
    register = [(0, 0, 1), (0, 0, 2), *_counts(number)]
    lane = [(0, 0, 4), (0, 0, 8), (0, 1, 0), (0, 2, 0), (0, 4, 0)]
    return LinearLayout({"register": register, "lane": lane}, (number, 8, 16))


def _matrix16x8_trans(number: int) -> LinearLayout:
    """16x8 of bytes, stored transposed as 8 rows of 16: the C fragment of m16n8.

    Derived from the published CuTe traits of the instruction.
    """
    register = [(0, 1, 0), (0, 0, 8), *_counts(number)]
    lane = [(0, 2, 0), (0, 4, 0), (0, 0, 1), (0, 0, 2), (0, 0, 4)]
    return LinearLayout({"register": register, "lane": lane}, (number, 8, 16))


# Expansions of packed rows: 16 elements of 4 or 6 bits in a 16-byte row, padded at the end.
_PACKED = ("b8x16.b6x16_p32", "b8x16.b4x16_p64")
_BYTE_GATES = ("100f", "110f", "120f")


def _matrix(
    instruction: str,
    load: bool,
    gates: tuple[str, ...],
    fragment: LinearLayout,
    bits: int,
    ptx: int,
) -> CopyAtom:
    number, rows = fragment.shape[0], fragment.shape[1]
    return CopyAtom(
        "ldmatrix" if load else "stmatrix",
        instruction,
        SHARED if load else REGISTERS,
        REGISTERS if load else SHARED,
        gates,
        fragment.elements_per_thread * bits,
        16,
        ptx,
        element_bits=bits,
        threads=32,
        fragment=fragment,
        addresses=_rows_by_lane(number, rows),
    )


def _matrices() -> Iterator[CopyAtom]:
    for number, trans in product((1, 2, 4), (False, True)):
        tail = f"x{number}{'.trans' if trans else ''}.shared.b16"
        fragment = _matrix8(number, trans)
        load, store = f"ldmatrix.sync.aligned.m8n8.{tail}", f"stmatrix.sync.aligned.m8n8.{tail}"
        yield _matrix(load, True, ("75+",), fragment, 16, 65)
        yield _matrix(store, False, ("90+",), fragment, 16, 78)
    for number in (1, 2):
        name = f"ldmatrix.sync.aligned.m16n16.x{number}.trans.shared"
        for form in ("b8", *_PACKED):
            yield _matrix(f"{name}.{form}", True, _BYTE_GATES, _matrix16_trans(number), 8, 86)
    for number, form in product((1, 2, 4), _PACKED):
        name = f"ldmatrix.sync.aligned.m8n16.x{number}.shared.{form}"
        yield _matrix(name, True, _BYTE_GATES, _matrix8x16(number), 8, 86)
    for number in (1, 2, 4):
        name = f"stmatrix.sync.aligned.m16n8.x{number}.trans.shared.b8"
        yield _matrix(name, False, _BYTE_GATES, _matrix16x8_trans(number), 8, 86)


def _tensor_load(rank: int, mode: str, multicast: bool, cluster: bool) -> CopyAtom:
    target = "shared::cluster" if cluster else "shared::cta"
    words = f"cp.async.bulk.tensor.{rank}d.{target}.global.{mode}.mbarrier::complete_tx::bytes"
    gates = ("100f", "110f") if "::w" in mode or "gather" in mode else ("90+",)
    return CopyAtom(
        "tma load",
        words + (".multicast::cluster" if multicast else ""),
        GLOBAL,
        SHARED,
        gates,
        0,
        128,
        80 if gates == ("90+",) and cluster else 86,
        asynchronous="mbarrier",
        modifiers=(".L2::cache_hint",),
    )


def _tensor_copies() -> Iterator[CopyAtom]:
    """Copies described by a tensor map: ranks 1..5 tiled, 3..5 im2col, rows by index."""
    modes = [(rank, "tile") for rank in range(1, 6)]
    modes += [(rank, "im2col") for rank in (3, 4, 5)]
    modes += [(rank, f"im2col::{w}") for rank in (3, 4, 5) for w in ("w", "w::128")]
    for rank, mode in [*modes, (2, "tile::gather4")]:
        for multicast in (False, True):
            yield _tensor_load(rank, mode, multicast, True)
        yield _tensor_load(rank, mode, False, False)
    stores = [(rank, "tile") for rank in range(1, 6)]
    stores += [(rank, "im2col_no_offs") for rank in (3, 4, 5)]
    for rank, mode in [*stores, (2, "tile::scatter4")]:
        gates = ("100f", "110f") if "scatter" in mode else ("90+",)
        yield CopyAtom(
            "tma store",
            f"cp.async.bulk.tensor.{rank}d.global.shared::cta.{mode}.bulk_group",
            SHARED,
            GLOBAL,
            gates,
            0,
            128,
            80 if gates == ("90+",) else 86,
            asynchronous="bulk group",
        )
    operations = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
    for (rank, mode), operation in product(stores, operations):
        yield CopyAtom(
            "tma reduce",
            f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{operation}.{mode}.bulk_group",
            SHARED,
            GLOBAL,
            ("90+",),
            0,
            128,
            80,
            asynchronous="bulk group",
        )


def _bulk_copies() -> Iterator[CopyAtom]:
    """Contiguous bytes, a multiple of 16, without a tensor map."""
    tail = "mbarrier::complete_tx::bytes"
    for instruction, source, target, done, ptx in (
        (f"cp.async.bulk.shared::cluster.global.{tail}", GLOBAL, SHARED, "mbarrier", 80),
        (f"cp.async.bulk.shared::cta.global.{tail}", GLOBAL, SHARED, "mbarrier", 86),
        (f"cp.async.bulk.shared::cluster.shared::cta.{tail}", SHARED, SHARED, "mbarrier", 80),
        ("cp.async.bulk.global.shared::cta.bulk_group", SHARED, GLOBAL, "bulk group", 80),
    ):
        yield CopyAtom("bulk", instruction, source, target, ("90+",), 0, 16, ptx, asynchronous=done)


def _tensor_memory() -> Iterator[CopyAtom]:
    for shape in load_shapes():
        for repeat in load_repeats(shape):
            fragment = load_fragment(shape, repeat)
            common = {
                "gates": _TMEM_GATES,
                "bits": fragment.elements_per_thread * 32,
                "alignment": 4,
                "ptx": 86,
                "element_bits": 32,
                "threads": 32,
                "fragment": fragment,
            }
            yield CopyAtom(
                "tcgen05.ld",
                f"tcgen05.ld.sync.aligned.{shape}.x{repeat}.b32",
                TENSOR,
                REGISTERS,
                asynchronous="tcgen05.wait::ld",
                modifiers=(".pack::16b",),
                **common,
            )
            yield CopyAtom(
                "tcgen05.st",
                f"tcgen05.st.sync.aligned.{shape}.x{repeat}.b32",
                REGISTERS,
                TENSOR,
                asynchronous="tcgen05.wait::st",
                modifiers=(".unpack::16b",),
                **common,
            )


# Shapes of tcgen05.cp with the multicast each of them demands.
_CP_SHAPES = (
    "128x256b",
    "4x256b",
    "128x128b",
    "64x128b.warpx2::02_13",
    "64x128b.warpx2::01_23",
    "32x128b.warpx4",
)


# What the PTX ISA leaves open, and how the table reads it.
_CP_NOTES = {
    "4x256b": "source rows go to one row of each warp's 32, as CUTLASS has it (4dp256bit)",
    "b8x16.b4x16_p64": "elements come to stand in bits 2 to 5 of a byte, where an MMA reads them",
}


def _shared_to_tensor() -> Iterator[CopyAtom]:
    for group, shape, form in product((1, 2), _CP_SHAPES, ("", *_PACKED)):
        rows, bits = shape.split(".")[0].removesuffix("b").split("x")
        yield CopyAtom(
            "tcgen05.cp",
            f"tcgen05.cp.cta_group::{group}.{shape}" + (f".{form}" if form else ""),
            SHARED,
            TENSOR,
            _TMEM_GATES,
            int(rows) * int(bits),
            16,
            86,
            element_bits=32,
            asynchronous="tcgen05.commit",
            fragment=copy_layout(shape),
            notes="; ".join(_CP_NOTES[name] for name in (shape, form) if name in _CP_NOTES),
        )


def rows() -> Iterator[CopyAtom]:
    """Every copy."""
    yield from _vectors()
    yield from _cp_async()
    yield from _matrices()
    yield from _bulk_copies()
    yield from _tensor_copies()
    yield from _tensor_memory()
    yield from _shared_to_tensor()

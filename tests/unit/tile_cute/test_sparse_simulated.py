"""mma.sp in the simulator: the fragments of the kept half of A, of B and C, and the metadata.

The kept places of every chunk are drawn at random, so that all legal patterns occur. Lanes whose
metadata the selector leaves out hold garbage.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
import tile_sim
from simulated import decode, kernel, mma_body, pack, raw, unpack, values
from tile_cute.atoms import MmaAtom, find_mma
from tile_cute.atoms.types import BITS
from tile_cute.linear import LinearLayout

SPARSE = [row.atoms()[0] for row in find_mma(family="mma.sp")]
SCALED = [row.atoms()[0] for row in find_mma(family="mma.sp.block_scale")]
Layouts = dict[str, LinearLayout]


@dataclass(frozen=True)
class Kept:
    """A sparse A: kept values, their metadata patterns (a field each), and A with its zeros."""

    values: np.ndarray
    fields: np.ndarray
    full: np.ndarray


def layouts_of(atom: MmaAtom) -> Layouts:
    found = {
        "a": atom.a_layout,
        "b": atom.b_layout,
        "c": atom.c_layout,
        "metadata": atom.metadata_layout,
    }
    return {name: layout for name, layout in found.items() if layout is not None}


def chunking(atom: MmaAtom) -> tuple[int, int, int]:
    """(places of a chunk, kept ones, neighbours that go together) of PTX ISA, "mma.sp"."""
    if atom.row.a == "tf32":
        return 2, 1, 1
    packed = BITS[atom.row.a] == 4 and atom.container_bits("a") == 4
    return 4, 2, 2 if packed else 1


def field_bits(atom: MmaAtom) -> int:
    return 4 if atom.row.a == "tf32" else 2


def sparse_a(rng: np.random.Generator, atom: MmaAtom) -> Kept:
    places, count, group = chunking(atom)
    chunks = atom.k // (places * group)
    drawn = rng.permuted(np.tile(np.arange(places), (atom.m, chunks, 1)), axis=2)
    kept = np.sort(drawn[:, :, :count], axis=2)
    packed = values(rng, atom.row.a, (atom.m, atom.stored_k))
    packed[packed == 0] = 1  # a zero would hide where it belongs
    full = np.zeros((atom.m, chunks, places, group))
    parts = packed.reshape(atom.m, chunks, count, group)
    np.put_along_axis(full, kept[..., None], parts, axis=2)
    # tf32 names the place by two halves: 0b0100 is the first, 0b1110 the second
    fields = np.where(kept == 1, 0b1110, 0b0100) if atom.row.a == "tf32" else kept
    return Kept(packed, fields.reshape(atom.m, -1), full.reshape(atom.m, atom.k))


def metadata_lanes(layout: LinearLayout) -> list[int]:
    """Lanes that hold metadata with selector 0."""
    return [lane for lane in range(32) if not lane & layout.free_mask("lane")]


def selectors(atom: MmaAtom) -> range:
    layout = atom.metadata_layout
    assert layout is not None
    return range(32 // len(metadata_lanes(layout)))


def metadata(kept: Kept, layout: LinearLayout, bits: int, selector: int) -> np.ndarray:
    """The registers (32 x 3, the others unused) with garbage where the selector does not look."""
    rng = np.random.default_rng(9)
    words = rng.integers(0, 1 << 32, (32, 3), dtype=np.uint64).astype(np.uint32)
    packed = pack(kept.fields.astype(np.uint64), layout, bits)
    used = metadata_lanes(layout)
    per_quad = len(used) // 8
    for lane in used:
        words[lane + selector * per_quad, 0] = packed[lane, 0]
    return words


def launch(body: str, arrays: list[np.ndarray]) -> None:
    module = tile_sim.Module(kernel(body, ["a", "b", "c", "d", "more"]))
    module.launch("k", (1, 1, 1), (32, 1, 1), arrays)


def product(
    atom: MmaAtom, layouts: Layouts, selector: int = 0, read: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(what the instruction computes through these layouts, what it should)."""
    rng = np.random.default_rng(1)
    row = atom.row
    kept = sparse_a(rng, atom)
    b, c = values(rng, row.b, (atom.k, atom.n)), values(rng, "f32", (atom.m, atom.n))
    images = [
        pack(raw(m, kind), layouts[name], atom.container_bits(name), atom.container_shift(name))
        for m, kind, name in ((kept.values, row.a, "a"), (b, row.b, "b"))
    ]
    images.append(pack(raw(c, row.acc), layouts["c"], BITS[row.acc]))
    out = np.zeros_like(images[2])
    words = metadata(kept, layouts["metadata"], field_bits(atom), selector)
    counts = (images[0].shape[1], images[1].shape[1], images[2].shape[1])
    body = mma_body(atom, counts, f", %r680, {selector if read is None else read}")
    launch(body, [*images, out, words])
    return decode(unpack(out, layouts["c"], BITS[row.acc]), row.acc), kept.full @ b + c


@pytest.mark.parametrize("atom", SPARSE, ids=str)
def test_sparse_mma(atom: MmaAtom) -> None:
    """With every selector that the shape has."""
    for selector in selectors(atom):
        got, wanted = product(atom, layouts_of(atom), selector)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("atom", SPARSE, ids=str)
def test_selectors_beyond_are_refused(atom: MmaAtom) -> None:
    with pytest.raises(tile_sim.SimError, match="selector"):
        product(atom, layouts_of(atom), 0, selectors(atom).stop)


def swapped(layout: LinearLayout, first: tuple[str, int], second: tuple[str, int]) -> LinearLayout:
    bases = {space: list(vectors) for space, vectors in layout.bases.items()}
    (s, i), (t, j) = first, second
    bases[s][i], bases[t][j] = bases[t][j], bases[s][i]
    return LinearLayout(bases, layout.shape)


def caught(atom: MmaAtom, layouts: Layouts, selector: int = 0, read: int | None = None) -> bool:
    return noticed(lambda: product(atom, layouts, selector, read))


def scaled_product(atom: MmaAtom) -> tuple[np.ndarray, np.ndarray]:
    """As `product`, with block scales: a factor of its own for each row and block."""
    rng = np.random.default_rng(3)
    row, layouts = atom.row, layouts_of(atom)
    assert row.scale is not None
    assert atom.scale_layouts is not None
    blocks = int(row.scale.size[0])
    kept, b = sparse_a(rng, atom), values(rng, row.b, (atom.k, atom.n))
    images = [
        pack(raw(m, kind), layouts[name], atom.container_bits(name), atom.container_shift(name))
        for m, kind, name in ((kept.values, row.a, "a"), (b, row.b, "b"))
    ]
    words = metadata(kept, layouts["metadata"], 2, 0)
    factors = []
    for side, extent in enumerate((atom.m, atom.n)):
        exponents, layout = rng.integers(0, 3, (extent, blocks)), atom.scale_layouts[side]
        patterns = exponents + 127 if row.scale.type == "ue8m0" else (exponents + 7) << 3
        used = [lane for lane in range(32) if not lane & layout.free_mask("lane")]
        words[used, 1 + side] = pack(patterns.astype(np.uint64), layout, 8)[used, 0]
        factors.append(np.repeat(2.0**exponents, atom.k // blocks, axis=1))
    out = np.zeros((32, 4), np.float32)
    counts = (images[0].shape[1], images[1].shape[1], 4)
    extra = ", %r680, 0, %r681, {%h0, %h0}, %r682, {%h0, %h0}"
    body = mma_body(atom, counts, extra)
    launch(body, [*images, np.zeros((32, 4), np.uint32), out, words])
    got = decode(unpack(out.view(np.uint32), layouts["c"], 32), "f32")
    return got, (kept.full * factors[0]) @ (b * factors[1].T)


@pytest.mark.parametrize("atom", SCALED, ids=str)
def test_sparse_mma_with_block_scales(atom: MmaAtom) -> None:
    got, wanted = scaled_product(atom)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", ["a_layout", "b_layout", "c_layout", "metadata_layout"])
@pytest.mark.parametrize("atom", SCALED[-3:], ids=str)
def test_wrong_bits_with_block_scales_are_caught(
    atom: MmaAtom, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = getattr(atom, name)
    bits = [(s, i) for s, b in layout.bases.items() for i, v in enumerate(b) if any(v)]
    for first, second in pairwise([*bits, bits[0]]):
        wrong = swapped(layout, first, second)
        with monkeypatch.context() as patch:
            patch.setattr(MmaAtom, name, property(lambda _, wrong=wrong: wrong))
            assert noticed(lambda: scaled_product(atom)), (first, second)


def noticed(run: Callable[[], tuple[np.ndarray, np.ndarray]]) -> bool:
    """Whether a product is wrong, or metadata came out that no chunk may have."""
    try:
        got, wanted = run()
    except tile_sim.SimError as error:
        if error.kind != "bad-metadata":
            raise
        return True
    return not np.array_equal(got, wanted)


def one_of_each_shape() -> list[MmaAtom]:
    found = {(a.row.a, a.k): a for a in SPARSE if a.row.a in ("f16", "tf32", "s8", "s4", "e2m1")}
    return list(found.values())


@pytest.mark.parametrize("atom", one_of_each_shape(), ids=str)
@pytest.mark.parametrize("operand", ["a", "b", "c", "metadata"])
def test_a_planted_wrong_bit_is_caught(atom: MmaAtom, operand: str) -> None:
    """Exchanged neighbours among the bits of registers and lanes, which no element may survive."""
    layouts = layouts_of(atom)
    layout = layouts[operand]
    bits = [(space, i) for space in ("register", "lane") for i in range(layout.in_bits(space))]
    bits = [(s, i) for s, i in bits if any(layout.bases[s][i])]
    for first, second in pairwise([*bits, bits[0]]):
        assert caught(atom, {**layouts, operand: swapped(layout, first, second)}), (first, second)


@pytest.mark.parametrize("atom", one_of_each_shape(), ids=str)
def test_a_wrong_selector_is_caught(atom: MmaAtom) -> None:
    for selector, other in pairwise(selectors(atom)):
        assert caught(atom, layouts_of(atom), selector, other)


def test_wide_chunks_occur_in_all_patterns() -> None:
    """The six pairs of places of a chunk of four, so that no pattern goes unseen."""
    atom = find_mma(family="mma.sp", a="f16", k=32)[0].atoms()[0]
    fields = sparse_a(np.random.default_rng(1), atom).fields.reshape(-1, 2)
    assert len({tuple(pair) for pair in fields.tolist()}) == 6

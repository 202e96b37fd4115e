"""Every row of tcgen05.mma in the simulator, through the registry's layouts.

Each kernel runs the product twice, with A from shared and from tensor memory, and each CTA of a
pair has its half of A and B. Tensor memory begins as garbage.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
import tile_sim
from simulated import decode, raw, values
from support import tensor_memory as tm
from test_sparse_simulated import Kept, field_bits, noticed, sparse_a, swapped
from test_tensor_memory_simulated import accumulators, operand_image
from tile_cute import gf2
from tile_cute.atoms import MmaAtom, MmaRow, find_mma
from tile_cute.atoms.descriptors import (
    InstructionDescriptor,
    ZeroColumnMask,
    scaled_instruction_descriptor,
)
from tile_cute.atoms.tensor_memory import datapath
from tile_cute.atoms.types import BITS
from tile_cute.linear import LinearLayout

FAMILIES = ("", ".block_scale", ".sp", ".sp.block_scale", ".ws", ".ws.sp")
ROWS = [row for name in FAMILIES for row in find_mma(family=f"tcgen05{name}")]
N = 64
FIRST, SECOND, A_AT, META_AT, SCALE_A, SCALE_B, COLUMNS = 0, 64, 128, 136, 140, 144, 152
SHARED_A, SHARED_B, ROOM = 0, 8192, 8192 + 6144
PTX = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 image_p, .param .u64 start_p, .param .u64 out_p) {{
.reg .pred %p<10>; .reg .b32 %r<120>; .reg .b64 %rd<40>;
.reg .u64 image; .reg .u64 start; .reg .u64 out;
ld.param.u64 image, [image_p]; ld.param.u64 start, [start_p]; ld.param.u64 out, [out_p];
{body}
ret;
}}
"""


@dataclass(frozen=True)
class Inputs:
    """One product: A of each CTA (as stored, and with its zeros), B, factors by row of both."""

    a: list[Kept]
    b: np.ndarray
    exponents: list[np.ndarray]

    def factors(self, which: slice, k: int) -> np.ndarray:
        found = np.concatenate(self.exponents[which])
        return np.repeat(2.0**found, k // found.shape[1], axis=1)


def draw(atom: MmaAtom) -> Inputs:
    rng = np.random.default_rng(14)
    row, ctas = atom.row, atom.row.cta_group
    if row.sparse:
        whole = sparse_a(rng, atom)
    else:
        dense = values(rng, row.a, (atom.m, atom.k))
        whole = Kept(dense, np.zeros((atom.m, 0)), dense)
    parts = [np.split(x, ctas) for x in (whole.values, whole.fields, whole.full)]
    b = values(rng, row.b, (atom.n, atom.k))
    blocks = int(row.scale.size[0]) if row.scale else 1
    top = 3 if row.scale else 1
    shapes = [*[(atom.m // ctas, blocks)] * ctas, (atom.n, blocks)]
    return Inputs(
        [Kept(*part) for part in zip(*parts, strict=True)],
        b,
        [rng.integers(0, top, shape) for shape in shapes],
    )


def place(
    words: np.ndarray, first: int, layout: LinearLayout, patterns: np.ndarray, bits: int, shift: int
) -> None:
    """Bit patterns of a matrix into tensor memory `[CTA, row, column]`, columns `first` on.

    `shift` is where they begin in their field of `bits`. All points of the layout get their
    element, replicas too.
    """
    spaces = ("block", "row", "column", "element")
    tables = [np.array(gf2.table(layout.flat(name))) for name in spaces]
    blocks, rows, columns, fields = (len(t) for t in tables)
    assert fields * bits == 32
    grid = np.ix_(*tables)
    index = grid[0] ^ grid[1] ^ grid[2] ^ grid[3]
    chosen = patterns.reshape(-1).astype(np.uint64)[index] << np.uint64(shift)
    at = np.arange(fields, dtype=np.uint64) * np.uint64(bits)
    found = np.bitwise_or.reduce(chosen << at, axis=-1).astype(np.uint32)
    words[:blocks, :rows, first : first + columns] = found


def fill_tensor_memory(atom: MmaAtom, inputs: Inputs, start: np.ndarray) -> None:
    row, layout = atom.row, atom.a_tensor_layout
    assert layout is not None
    stored = np.concatenate([part.values for part in inputs.a])
    bits, shift = atom.container_bits("a"), atom.container_shift("a")
    place(start, A_AT, layout, raw(stored, row.a), bits, shift)
    if row.sparse:
        assert atom.metadata_layout is not None
        fields = np.concatenate([part.fields for part in inputs.a])
        place(start, META_AT, atom.metadata_layout, fields, field_bits(atom), 0)
    if row.scale:
        assert atom.scale_layouts is not None
        bias, up = (127, 0) if row.scale.type == "ue8m0" else (7, 3)
        for cta, exponents in enumerate(inputs.exponents[:-1]):
            part = start[cta : cta + 1]
            place(part, SCALE_A, atom.scale_layouts[0], exponents + bias << up, 8, 0)
            whole = inputs.exponents[-1] + bias << up
            place(part, SCALE_B, atom.scale_layouts[1], whole, 8, 0)


def share(atom: MmaAtom, inputs: Inputs, images: np.ndarray) -> list[int]:
    """A and B in the shared memory of their CTAs; the two descriptors."""
    row, found = atom.row, []
    narrow = row.kind in ("mxf4", "mxf4nvf4")
    sides = (
        (SHARED_A, [part.values for part in inputs.a], row.a),
        (SHARED_B, np.split(inputs.b, len(images)), row.b),
    )
    for at, parts, kind in sides:
        bits = BITS[kind] if narrow else max(8, BITS[kind])
        swizzle = "64B" if row.sparse and at == SHARED_B else "32B"
        words = [
            operand_image(image, at, part, kind, bits, "K", swizzle, part.shape[1])
            for image, part in zip(images, parts, strict=True)
        ]
        found.append(words[0][0])
    return found


def descriptor(atom: MmaAtom, selector: int = 0) -> int:
    row = atom.row
    if row.scale:
        return scaled_instruction_descriptor(
            row.kind, row.a, row.b, atom.m, atom.n, row.scale.type, sparse=row.sparse
        )
    return InstructionDescriptor(
        row.kind, row.a, row.b, row.acc, atom.m, atom.n, sparse=row.sparse,
        sparsity_selector=selector,
    ).encode()  # fmt: skip


def issue(atom: MmaAtom, words: list[int], idesc: int, tail: str = "") -> str:
    row = atom.row
    lines = [
        f"add.u32 %r41, %r6, {A_AT}; add.u32 %r42, %r6, {META_AT}; add.u32 %r43, %r6, {SCALE_A};",
        f"add.u32 %r44, %r6, {SCALE_B}; mov.b32 %r45, {idesc}; add.u32 %r46, %r6, {SECOND};",
        f"add.u64 %rd21, %rd20, {words[0]}; add.u64 %rd22, %rd20, {words[1]};",
    ]
    for d, a in (("[%r6]", "%rd21"), ("[%r46]", "[%r41]")):
        operands = [d, a, "%rd22", *(["[%r42]"] if row.sparse else []), "%r45"]
        operands += ["[%r43]", "[%r44]"] if row.scale else []
        lines.append(f"{atom.instruction} {', '.join([*operands, '%p4'])}{tail};")
    return "\n".join(lines)


def run(atom: MmaAtom, images: np.ndarray, start: np.ndarray, text: str) -> np.ndarray:
    group, out = atom.row.cta_group, np.zeros_like(start)
    body = tm.text(text, COLUMNS, images.shape[1], group)
    tile_sim.Module(PTX.format(body=body)).launch(
        "k", (group, 1, 1), (128, 1, 1), [images, start, out], cluster=(group, 1, 1)
    )
    return out


def results(atom: MmaAtom, out: np.ndarray) -> np.ndarray:
    """Both D, through the registry's layout."""
    path = datapath(atom.m, atom.row.cta_group, atom.row.weight_stationary, atom.row.sparse)
    width = atom.n >> len(path.banks)
    mask = np.uint64(0xFFFF if atom.row.acc == "f16" else 0xFFFFFFFF)
    found = [
        accumulators(atom, out[:, :, first : first + width].astype(np.uint64)) & mask
        for first in (FIRST, SECOND)
    ]
    return np.stack([decode(part, atom.row.acc) for part in found])


def products(atom: MmaAtom) -> tuple[np.ndarray, np.ndarray]:
    """(both products as computed, as they should be)."""
    inputs, group = draw(atom), atom.row.cta_group
    start, images = tm.garbage(group, COLUMNS), np.zeros((group, ROOM), np.uint8)
    fill_tensor_memory(atom, inputs, start)
    text = issue(atom, share(atom, inputs, images), descriptor(atom))
    left = np.concatenate([part.full for part in inputs.a])
    left = left * inputs.factors(slice(0, -1), atom.k)
    wanted = left @ (inputs.b * inputs.factors(slice(-1, None), atom.k)).T
    return results(atom, run(atom, images, start, text)), np.stack([wanted] * 2)


def shape_of(row: MmaRow, turn: int) -> MmaAtom:
    """The rows take turns with their Ms, so that every data path is met by every family."""
    return row.atom(row.shapes[turn % len(row.shapes)][0], N)


CASES = [(row, turn) for turn, row in enumerate(ROWS)]


@pytest.mark.parametrize(
    ("row", "turn"), CASES, ids=[f"{row.name} {row.acc}.{row.a}.{row.b}" for row in ROWS]
)
def test_every_row(row: MmaRow, turn: int) -> None:
    got, wanted = products(shape_of(row, turn))
    np.testing.assert_array_equal(got, wanted)


def one_row(family: str, group: int, a: str) -> MmaRow:
    return next(row for row in find_mma(family=family, a=a) if row.cta_group == group)


SHAPES = [
    (family, group, a, m)
    for family, group, a in (
        ("tcgen05", 1, "f16"), ("tcgen05", 2, "f16"), ("tcgen05.sp", 1, "f16"),
        ("tcgen05.sp", 1, "tf32"), ("tcgen05.sp", 1, "s8"), ("tcgen05.sp", 2, "bf16"),
        ("tcgen05.ws", 1, "f16"), ("tcgen05.ws.sp", 1, "tf32"), ("tcgen05.ws.sp", 1, "e4m3"),
        ("tcgen05.block_scale", 2, "e2m1"), ("tcgen05.sp.block_scale", 1, "e2m1"),
    )
    for m, _ in one_row(family, group, a).shapes
]  # fmt: skip


@pytest.mark.parametrize(("family", "group", "a", "m"), SHAPES)
def test_every_data_path(family: str, group: int, a: str, m: int) -> None:
    got, wanted = products(one_row(family, group, a).atom(m, N))
    np.testing.assert_array_equal(got, wanted)


FAULTS = [
    ("tcgen05.sp", 1, "f16", 128), ("tcgen05.sp", 2, "tf32", 128), ("tcgen05.ws.sp", 1, "s8", 64),
    ("tcgen05.ws", 1, "f16", 32), ("tcgen05.sp.block_scale", 1, "e2m1", 128),
]  # fmt: skip


@pytest.mark.parametrize("name", ["a_tensor_layout", "metadata_layout", "c_layout"])
@pytest.mark.parametrize(("family", "group", "a", "m"), FAULTS)
def test_a_planted_wrong_bit_is_caught(
    family: str, group: int, a: str, m: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each exchange of neighbours among the bits that mean something."""
    atom = one_row(family, group, a).atom(m, N)
    layout = getattr(atom, name)
    if layout is None:
        assert name == "metadata_layout"
        assert not atom.row.sparse
        return
    bits = [(s, i) for s, b in layout.bases.items() for i, v in enumerate(b) if any(v)]
    for first, second in pairwise([*bits, bits[0]]):
        wrong = swapped(layout, first, second)
        with monkeypatch.context() as patch:
            patch.setattr(MmaAtom, name, property(lambda _, wrong=wrong: wrong))
            assert noticed(lambda: products(atom)), (first, second)


@pytest.mark.parametrize(("group", "m"), [(1, 128), (2, 128)])
@pytest.mark.parametrize("side", [0, 1])
def test_a_wrong_bit_of_the_scales_is_caught(
    group: int, m: int, side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B's factors lie otherwise where D has two banks."""
    row = next(
        row
        for row in find_mma(family="tcgen05.block_scale", kind="mxf4nvf4")
        if row.cta_group == group and row.scale and row.scale.size == "4X"
    )
    atom = row.atom(m, N)
    layouts = atom.scale_layouts
    assert layouts is not None
    layout = layouts[side]
    bits = [(s, i) for s, b in layout.bases.items() for i, v in enumerate(b) if any(v)]
    for first, second in pairwise([*bits, bits[0]]):
        wrong = list(layouts)
        wrong[side] = swapped(layout, first, second)
        with monkeypatch.context() as patch:
            patch.setattr(MmaAtom, "scale_layouts", property(lambda _, wrong=wrong: wrong))
            try:
                assert noticed(lambda: products(atom)), (first, second)
            except tile_sim.SimError as error:
                if "differ between the quarters" not in str(error):
                    raise


def test_the_sparsity_selector_names_the_column() -> None:
    """With selector 1 the metadata are one column further on."""
    atom = one_row("tcgen05.sp", 1, "f16").atom(128, N)
    inputs = draw(atom)
    start, images = tm.garbage(1, COLUMNS), np.zeros((1, ROOM), np.uint8)
    fill_tensor_memory(atom, inputs, start)
    start[:, :, META_AT + 1] = start[:, :, META_AT]
    start[:, :, META_AT] = 0x44444444
    words = share(atom, inputs, images)
    wanted = inputs.a[0].full @ inputs.b.T
    for selector in (0, 1):
        out = run(atom, images, start, issue(atom, words, descriptor(atom, selector)))
        assert bool((results(atom, out)[0] == wanted).all()) == (selector == 1)


# (M, mask, place in a round of each part's first column, columns of B in a round)
MASKS = [
    (128, ZeroColumnMask(4, 3, (2,), (False,)), (2,), 4),
    (64, ZeroColumnMask(5, 2, (0, 1), (True, False)), (5, 1), 5),
    (32, ZeroColumnMask(4, 3, (0, 1, 2, 1), (True, True, False, False)), (4, 5, 2, 1), 4),
]


@pytest.mark.parametrize(("m", "mask", "first", "used"), MASKS)
def test_zero_column_masks(m: int, mask: ZeroColumnMask, first: tuple[int, ...], used: int) -> None:
    """Stretches in turn (7 columns a round), counted from each part's own beginning."""
    atom = one_row("tcgen05.ws", 1, "f16").atom(m, N)
    inputs = draw(atom)
    start, images = tm.garbage(1, COLUMNS), np.zeros((1, ROOM), np.uint8)
    fill_tensor_memory(atom, inputs, start)
    text = f"mov.b64 %rd23, {mask.encode()};"
    text += issue(atom, share(atom, inputs, images), descriptor(atom), ", %rd23")
    wanted = inputs.a[0].full @ inputs.b.T
    part = N // len(first)
    wanted[:, [c for c in range(N) if (c % part + first[c // part]) % 7 >= used]] = 0
    np.testing.assert_array_equal(results(atom, run(atom, images, start, text))[1], wanted)

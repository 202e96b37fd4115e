"""The simulator, which has its own tables, agrees with the registry's fragments."""

from collections.abc import Callable

import numpy as np
import pytest
import tile_sim
from simulated import (
    decode,
    kernel,
    mma_body,
    move,
    names,
    pack,
    raw,
    table,
    unpack,
    values,
)
from tile_cute import gf2
from tile_cute.atoms import CopyAtom, MmaAtom, MmaRow, find_copies, find_mma
from tile_cute.atoms.descriptors import canonical_buffer, hopper_descriptor, match_operand
from tile_cute.atoms.types import BITS
from tile_cute.linear import LinearLayout

DENSE = [row.atoms()[0] for row in find_mma(family="mma.sync")]
SCALED = [row.atoms()[0] for row in find_mma(family="mma.block_scale")]


def run(text: str, arrays: list[np.ndarray], threads: int = 32) -> None:
    tile_sim.Module(text).launch("k", (1, 1, 1), (threads, 1, 1), arrays)


def expected(a: np.ndarray, b: np.ndarray, c: np.ndarray, atom: MmaAtom) -> np.ndarray:
    if atom.row.a != "b1":
        return a @ b + c
    pairs = a[:, :, None].astype(int), b[None, :, :].astype(int)
    mixed = pairs[0] ^ pairs[1] if "xor" in atom.instruction else pairs[0] & pairs[1]
    return mixed.sum(axis=1) + c


def product(
    atom: MmaAtom, layouts: dict[str, LinearLayout], seed: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """(what the instruction computes through these layouts, what it should)."""
    rng = np.random.default_rng(seed)
    row = atom.row
    a, b = values(rng, row.a, (atom.m, atom.k)), values(rng, row.b, (atom.k, atom.n))
    c = values(rng, "f32", (atom.m, atom.n))
    images = [
        pack(raw(m, kind), layouts[name], atom.container_bits(role), atom.container_shift(role))
        for m, kind, name, role in ((a, row.a, "a", "a"), (b, row.b, "b", "b"))
    ]
    images.append(pack(raw(c, row.acc), layouts["c"], BITS[row.acc]))
    out = np.zeros_like(images[2])
    body = mma_body(atom, tuple(image.shape[1] for image in images))  # type: ignore[arg-type]
    run(kernel(body, ["a", "b", "c", "d"]), [*images, out])
    return decode(unpack(out, layouts["c"], BITS[row.acc]), row.acc), expected(a, b, c, atom)


def layouts_of(atom: MmaAtom) -> dict[str, LinearLayout]:
    found = {"a": atom.a_layout, "b": atom.b_layout, "c": atom.c_layout}
    return {name: layout for name, layout in found.items() if layout is not None}


@pytest.mark.parametrize("atom", DENSE, ids=str)
def test_mma(atom: MmaAtom) -> None:
    got, wanted = product(atom, layouts_of(atom))
    np.testing.assert_array_equal(got, wanted)


def swapped(layout: LinearLayout, first: tuple[str, int], second: tuple[str, int]) -> LinearLayout:
    bases = {space: list(vectors) for space, vectors in layout.bases.items()}
    (s, i), (t, j) = first, second
    bases[s][i], bases[t][j] = bases[t][j], bases[s][i]
    return LinearLayout(bases, layout.shape)


@pytest.mark.parametrize("operand", ["a", "b", "c"])
def test_a_planted_wrong_bit_is_caught(operand: str) -> None:
    """Every exchange of two bits of a fragment changes the product."""
    atom = find_mma(family="mma.sync", a="s8", k=32)[0].atoms()[0]
    layouts = layouts_of(atom)
    bits = [
        (space, i) for space in ("register", "lane") for i in range(layouts[operand].in_bits(space))
    ]
    for index, first in enumerate(bits):
        second = bits[(index + 1) % len(bits)]
        wrong = {**layouts, operand: swapped(layouts[operand], first, second)}
        got, wanted = product(atom, wrong)
        assert not np.array_equal(got, wanted), (first, second)


@pytest.mark.parametrize("atom", SCALED, ids=str)
def test_block_scaled_mma(atom: MmaAtom) -> None:
    """Every block has its own factor; lanes that are not read hold garbage."""
    row, scale = atom.row, atom.row.scale
    assert scale is not None
    assert atom.scale_layouts is not None
    rng = np.random.default_rng(2)
    blocks = int(scale.size[0])
    a, b = values(rng, row.a, (atom.m, atom.k)), values(rng, row.b, (atom.k, atom.n))
    scales = [rng.integers(0, 3, (extent, blocks)) for extent in (atom.m, atom.n)]
    patterns = [_scale_pattern(s, scale.type) for s in scales]
    words = np.full((32, 3), 0x77777777, np.uint32)
    for side, (layout, pattern) in enumerate(zip(atom.scale_layouts, patterns, strict=True)):
        packed = pack(pattern.astype(np.uint64), layout, 8)
        used = [lane for lane in range(32) if not lane & layout.free_mask("lane")]
        words[used, side] = packed[used, 0]
    images = [
        pack(raw(a, row.a), atom.a_layout, atom.container_bits("a"), atom.container_shift("a")),  # type: ignore[arg-type]
        pack(raw(b, row.b), atom.b_layout, atom.container_bits("b"), atom.container_shift("b")),  # type: ignore[arg-type]
        np.zeros((32, 4), np.uint32),
    ]
    out = np.zeros((32, 4), np.uint32)
    body = mma_body(
        atom, (images[0].shape[1], images[1].shape[1], 4), ", %r680, {%h0, %h0}, %r681, {%h0, %h0}"
    )
    run(kernel(body, ["a", "b", "c", "d", "more"]), [*images, out, words])
    got = decode(unpack(out, atom.c_layout, 32), "f32")  # type: ignore[arg-type]
    repeat = atom.k // blocks
    factors = [np.repeat(2.0**s, repeat, axis=1) for s in scales]
    np.testing.assert_array_equal(got, (a * factors[0]) @ (b * factors[1].T))


def _scale_pattern(exponents: np.ndarray, kind: str) -> np.ndarray:
    """2^exponent as ue8m0 (bias 127) or ue4m3 (bias 7, 3 bits of mantissa)."""
    return exponents + 127 if kind == "ue8m0" else (exponents + 7) << 3


def matrix_body(atom: CopyAtom, count: int) -> str:
    """Shared memory from `image`, rows of 16 bytes; each lane addresses row `lane`."""
    lines = [
        ".shared .align 128 .b8 buf[1024];",
        "mov.u32 %r699, %tid.x; mov.u32 %r1, buf; shl.b32 %r2, %r699, 4; add.u32 %r3, %r1, %r2;",
    ]
    load = atom.family == "ldmatrix"
    if load:
        lines += move("ld", "image", 10, 4, False)
        lines.append("st.shared.v4.b32 [%r3], {%r10, %r11, %r12, %r13};")
        lines.append("bar.warp.sync -1;")
        lines.append(f"{atom.instruction} {names(100, count)}, [%r3];")
        lines += move("st", "regs", 100, count, False)
        return "\n".join(lines)
    lines += move("ld", "regs", 100, count, False)
    lines.append(f"{atom.instruction} [%r3], {names(100, count)};")
    lines.append("bar.warp.sync -1;")
    lines.append("ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r3];")
    return "\n".join(lines + move("st", "image", 10, 4, False))


def _matrix_cases(select: Callable[[CopyAtom], bool]) -> list[CopyAtom]:
    atoms = [*find_copies(family="ldmatrix"), *find_copies(family="stmatrix")]
    return [atom for atom in atoms if select(atom)]


PLAIN = _matrix_cases(lambda atom: "b8x16" not in atom.name)
EXPANDING = _matrix_cases(lambda atom: "b8x16" in atom.name)


@pytest.mark.parametrize("atom", PLAIN, ids=str)
def test_matrix_copies(atom: CopyAtom) -> None:
    """Distinct elements: row r of matrix j is row `rows * j + r` of shared memory."""
    fragment = atom.fragment
    assert fragment is not None
    bits = atom.element_bits
    number, rows, columns = fragment.shape
    rng = np.random.default_rng(3)
    matrices = rng.integers(0, 1 << bits, (number, rows, columns)).astype(np.uint64)
    image = np.zeros((32, 4), np.uint32)
    flat = matrices.astype(np.uint16 if bits == 16 else np.uint8).reshape(number * rows, columns)
    image[: number * rows] = np.ascontiguousarray(flat).view(np.uint32).reshape(-1, 4)
    registers = pack(matrices, fragment, bits)
    if atom.family == "ldmatrix":
        out = np.zeros_like(registers)
        run(kernel(matrix_body(atom, out.shape[1]), ["image", "regs"]), [image, out])
        np.testing.assert_array_equal(out, registers)
        return
    stored = np.zeros_like(image)
    text = kernel(matrix_body(atom, registers.shape[1]), ["image", "regs"])
    text = text.replace("mov.u32 %r699, %tid.x;", ZERO_FILL, 1)
    run(text, [stored, registers])
    np.testing.assert_array_equal(stored[: number * rows], image[: number * rows])


ZERO_FILL = """mov.u32 %r699, %tid.x; mov.u32 %r20, buf; shl.b32 %r21, %r699, 4;
add.u32 %r20, %r20, %r21; mov.u32 %r22, 0; st.shared.v4.b32 [%r20], {%r22, %r22, %r22, %r22};
bar.warp.sync -1;"""


@pytest.mark.parametrize("atom", EXPANDING, ids=str)
def test_expanding_loads(atom: CopyAtom) -> None:
    """16 elements of 4 or 6 bits of a row become bytes, in their low bits."""
    fragment = atom.fragment
    assert fragment is not None
    number, rows, columns = fragment.shape
    narrow = 4 if "b4x16" in atom.name else 6
    rng = np.random.default_rng(4)
    small = rng.integers(0, 1 << narrow, (number * rows, columns)).astype(np.uint64)
    image = np.zeros((32, 16), np.uint8)
    for r, line in enumerate(small):
        whole = sum(int(v) << (narrow * i) for i, v in enumerate(line))
        image[r] = np.frombuffer(whole.to_bytes(16, "little"), np.uint8)
    registers = pack(small.reshape(fragment.shape), fragment, 8)
    out = np.zeros_like(registers)
    text = kernel(matrix_body(atom, out.shape[1]), ["image", "regs"])
    run(text, [image.view(np.uint32), out])
    np.testing.assert_array_equal(out, registers)


WARPGROUP = list(find_mma(family="wgmma"))
# (A type, order of A, order of B, swizzle)
ORDERS = [
    (kind, major_a, major_b, swizzle)
    for kind in ("f16", "bf16")
    for major_a, major_b in (("K", "K"), ("MN", "K"), ("K", "MN"), ("MN", "MN"))
    for swizzle in ("none", "32B", "64B", "128B")
]
ORDERS += [
    (kind, "K", "K", swizzle)
    for kind in ("tf32", "e4m3", "s8", "b1")
    for swizzle in ("none", "64B", "128B")
]


def operand_bytes(matrix: np.ndarray, kind: str, buffer: LinearLayout) -> np.ndarray:
    """The matrix as it lies in shared memory."""
    data = raw(matrix, kind).reshape(-1)[np.array(gf2.table(buffer.flat("offset")))]
    bits = BITS[kind]
    if bits == 1:
        return np.packbits(data.astype(np.uint8), bitorder="little")
    return data.astype(f"u{bits // 8}").view(np.uint8)


def warpgroup_product(
    row: MmaRow, major_a: str, major_b: str, swizzle: str, steps: int, a_in_registers: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """(what 64 x 64 x `steps` instructions compute, what they should)."""
    atom = row.atom(64, 64)
    rng = np.random.default_rng(5)
    a, b = (values(rng, kind, (64, atom.k * steps)) for kind in (row.a, row.b))
    image = np.zeros(1 << 16, np.uint8)
    words = []
    for at, matrix, kind, major in ((1024, a, row.a, major_a), (33792, b, row.b, major_b)):
        rows, depth = matrix.shape
        buffer = canonical_buffer(rows, depth, BITS[kind], major, swizzle)
        data = operand_bytes(matrix, kind, buffer)
        image[at : at + len(data)] = data
        operand = match_operand(buffer, BITS[kind])
        words += [
            hopper_descriptor(at + operand.start(0, s * atom.k), operand) for s in range(steps)
        ]
    out = np.zeros((128, atom.registers("c")), np.uint32)
    arrays, parameters, registers = [image.view(np.uint32), out], ["image", "d"], 0
    if a_in_registers:
        assert atom.a_layout is not None
        arrays.append(pack(raw(a, row.a), atom.a_layout, BITS[row.a]))
        parameters, registers = [*parameters, "a"], arrays[-1].shape[1]
    body = _warpgroup_body(atom, words, steps, major_a, major_b, registers)
    run(kernel(body, parameters, "sm_90a"), arrays, 128)
    assert atom.c_layout is not None
    return decode(unpack(out, atom.c_layout, BITS[row.acc]), row.acc), a @ b.T


@pytest.mark.parametrize("case", ORDERS, ids=str)
def test_warpgroup_mma(case: tuple[str, str, str, str]) -> None:
    """Four steps: descriptors, their advance, and the accumulator's layout."""
    kind, major_a, major_b, swizzle = case
    row = next(row for row in WARPGROUP if row.a == kind and row.acc in ("f32", "s32"))
    got, wanted = warpgroup_product(row, major_a, major_b, swizzle, 4)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("row", WARPGROUP, ids=lambda row: row.name)
@pytest.mark.parametrize("a_in_registers", [False, True])
def test_every_warpgroup_row(row: MmaRow, a_in_registers: bool) -> None:
    """Every pair of types; the fragment of A over four warps."""
    got, wanted = warpgroup_product(row, "K", "K", "32B", 1, a_in_registers)
    np.testing.assert_array_equal(got, wanted)


def _warpgroup_body(
    atom: MmaAtom, words: list[int], steps: int, major_a: str, major_b: str, registers: int = 0
) -> str:
    """`registers` of A per thread come from parameter `a`; 0 takes A from shared memory."""
    majors = "MN" in atom.row.majors
    count = atom.registers("c")
    lines = [
        ".shared .align 1024 .b8 buf[65536];",
        "mov.u32 %r699, %tid.x; mov.u32 %r1, buf; mov.u32 %r2, %r699;",
        "FILL: setp.ge.u32 %p1, %r2, 16384; @%p1 bra FILLED; shl.b32 %r3, %r2, 2;",
        "cvt.u64.u32 %rd1, %r3; add.u64 %rd2, image, %rd1; ld.global.b32 %r4, [%rd2];",
        "add.u32 %r5, %r1, %r3; st.shared.b32 [%r5], %r4; add.u32 %r2, %r2, 128; bra FILL;",
        "FILLED: fence.proxy.async.shared::cta; bar.sync 0;",
        # descriptors were made for offsets in the buffer: add where it begins
        "shr.u32 %r6, %r1, 4; cvt.u64.u32 %rd3, %r6; setp.ne.b32 %p3, 0, 0;",
    ]
    lines += [f"mov.b32 %r{100 + i}, 0;" for i in range(count)]
    if registers:
        lines += move("ld", "a", 200, registers, False)
    a = names(200, registers) if registers else "%rd10"
    lines.append("wgmma.fence.sync.aligned;")
    for step in range(steps):
        lines.append(
            f"add.u64 %rd10, %rd3, {words[step]}; add.u64 %rd11, %rd3, {words[steps + step]};"
        )
        tail = ", 1, 1" if atom.row.acc != "s32" else ""
        if majors:
            tail += "" if registers else f", {int(major_a == 'MN')}"
            tail += f", {int(major_b == 'MN')}"
        lines.append(
            f"{atom.instruction} {names(100, count)}, {a}, %rd11, %p{4 if step else 3}{tail};"
        )
        if step == 0:
            lines.append("setp.eq.b32 %p4, 0, 0;")
    lines.append("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;")
    return "\n".join(lines + move("st", "d", 100, count, False))


def test_tables_are_bijections() -> None:
    atom = DENSE[0]
    assert atom.c_layout is not None
    assert sorted(table(atom.c_layout).reshape(-1)) == list(range(atom.m * atom.n))

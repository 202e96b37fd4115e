"""tcgen05 in the simulator: descriptors, accumulators, scales and register fragments."""

import numpy as np
import pytest
import tile_sim
from simulated import decode, raw, values
from tile_cute import gf2
from tile_cute.atoms import MmaAtom, find_mma
from tile_cute.atoms.descriptors import (
    InstructionDescriptor,
    blackwell_descriptor,
    canonical_buffer,
    match_operand,
    scaled_instruction_descriptor,
)
from tile_cute.atoms.tensor_memory import load_fragment, scale_layout
from tile_cute.atoms.types import BITS

A_AT, B_AT = 1024, 1024 + 32768
SCALE_A, SCALE_B = 256, 272  # columns of tensor memory

PTX = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 image_p, .param .u64 tmem_p, .param .u64 out_p) {{
.reg .pred %p<10>; .reg .b32 %r<300>; .reg .b64 %rd<40>;
.reg .u64 image; .reg .u64 tmem; .reg .u64 out;
.shared .align 1024 .b8 buf[{room}];
.shared .align 8 .b64 bar;
.shared .align 4 .b32 taddr;
ld.param.u64 image, [image_p]; ld.param.u64 tmem, [tmem_p]; ld.param.u64 out, [out_p];
mov.u32 %r1, %tid.x; shr.u32 %r5, %r1, 5; setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r5, 0;
mov.u32 %r2, buf; mov.u32 %r3, bar; mov.u32 %r4, taddr; mov.u32 %r10, %r1;
FILL: setp.ge.u32 %p3, %r10, {words}; @%p3 bra FILLED; shl.b32 %r11, %r10, 2;
cvt.u64.u32 %rd1, %r11; add.u64 %rd2, image, %rd1; ld.global.b32 %r13, [%rd2];
add.u32 %r12, %r2, %r11; st.shared.b32 [%r12], %r13; add.u32 %r10, %r10, 128; bra FILL;
FILLED: fence.proxy.async.shared::cta;
@%p1 mbarrier.init.shared.b64 [%r3], 1;
@%p2 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4], 512;
bar.sync 0;
tcgen05.fence::after_thread_sync;
ld.shared.b32 %r6, [%r4]; shl.b32 %r20, %r5, 21; add.u32 %r21, %r6, %r20;
{prepare}
tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
@!%p1 bra ISSUED;
shr.u32 %r7, %r2, 4; cvt.u64.u32 %rd20, %r7; setp.ne.u32 %p4, 0, 0; setp.eq.u32 %p6, 0, 0;
{issue}
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r3];
ISSUED:
WAIT: mbarrier.try_wait.parity.shared.b64 %p5, [%r3], 0; @!%p5 bra WAIT;
tcgen05.fence::after_thread_sync;
{finish}
tcgen05.fence::before_thread_sync; bar.sync 0;
@%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 512;
ret;
}}
"""


def store_columns(first: int, count: int, source: int) -> str:
    """Columns `first` .. of tensor memory from tmem[row][source ..], a word per column."""
    lines = ["mul.wide.u32 %rd3, %r1, 128; add.u64 %rd4, tmem, %rd3;"]
    for i in range(count):
        lines.append(
            f"ld.global.b32 %r30, [%rd4+{4 * (source + i)}]; add.u32 %r31, %r21, {first + i};"
        )
        lines.append("tcgen05.st.sync.aligned.32x32b.x1.b32 [%r31], {%r30};")
    return "\n".join([*lines, "tcgen05.wait::st.sync.aligned;"])


def load(shape: str, repeat: int, offset: str, stride: int, at: int) -> str:
    """One tcgen05.ld at `offset`, to out[thread][at ..] of rows of `stride` words."""
    count = load_fragment(shape, repeat).elements_per_thread
    regs = ", ".join(f"%r{100 + i}" for i in range(count))
    half = f", {repeat}" if shape == "16x32bx2" else ""
    lines = [
        f"add.u32 %r32, %r21, {offset};",
        f"tcgen05.ld.sync.aligned.{shape}.x{repeat}.b32 {{{regs}}}, [%r32]{half};",
        "tcgen05.wait::ld.sync.aligned;",
        f"mul.wide.u32 %rd5, %r1, {4 * stride}; add.u64 %rd6, out, %rd5;",
    ]
    lines += [f"st.global.b32 [%rd6+{4 * (at + i)}], %r{100 + i};" for i in range(count)]
    return "\n".join(lines)


def operand_image(
    image: np.ndarray,
    at: int,
    matrix: np.ndarray,
    kind: str,
    bits: int,
    major: str,
    swizzle: str,
    step: int,
) -> list[int]:
    """Place an operand; the descriptors of its steps along K."""
    rows, columns = matrix.shape
    buffer = canonical_buffer(rows, columns, bits, major, swizzle)
    order = np.array(gf2.table(buffer.flat("offset")))
    data = raw(matrix, kind).reshape(-1)[order]
    if bits == 8 and BITS[kind] < 8:
        packed = padded(data, BITS[kind])
    elif bits == 4:
        packed = (data[0::2] | data[1::2] << np.uint64(4)).astype(np.uint8)
    else:
        packed = data.astype(f"u{bits // 8}").view(np.uint8)
    image[at : at + len(packed)] = packed
    found = match_operand(buffer, bits)
    steps = matrix.shape[1] // step
    return [blackwell_descriptor(at + found.start(0, s * step), found) for s in range(steps)]


def padded(data: np.ndarray, bits: int) -> np.ndarray:
    """16 elements of 4 or 6 bits in the first bytes of each 16, as kind::f8f6f4 reads them."""
    fields = data.astype(np.uint8).reshape(-1, 16)[..., None] >> np.arange(bits) & 1
    packed = np.packbits(fields.reshape(-1, 16 * bits), axis=-1, bitorder="little")
    return np.pad(packed, ((0, 0), (0, 16 - packed.shape[1]))).reshape(-1)


def issue(atom: MmaAtom, a: list[int], b: list[int], idesc: int, tail: str = "") -> str:
    lines = [f"mov.b32 %r40, {idesc}; add.u32 %r41, %r6, {SCALE_A}; add.u32 %r42, %r6, {SCALE_B};"]
    for step, (da, db) in enumerate(zip(a, b, strict=True)):
        predicate = "%p6" if step else "%p4"
        lines.append(f"add.u64 %rd21, %rd20, {da}; add.u64 %rd22, %rd20, {db};")
        lines.append(f"{atom.instruction} [%r6], %rd21, %rd22, %r40{tail}, {predicate};")
    return "\n".join(lines)


def run(
    prepare: str, body: str, finish: str, image: np.ndarray, tmem: np.ndarray, out: np.ndarray
) -> None:
    text = PTX.format(
        room=len(image), words=len(image) // 4, prepare=prepare, issue=body, finish=finish
    )
    module = tile_sim.Module(text)
    module.launch("k", (1, 1, 1), (128, 1, 1), [image.view(np.uint32), tmem, out])


def accumulators(atom: MmaAtom, words: np.ndarray) -> np.ndarray:
    """D from tensor memory `[CTA, row, column]`, through the atom's layout."""
    layout = atom.c_layout
    assert layout is not None
    spaces = [name for name in ("block", "row", "column") if name in layout.spaces]
    kept = [[i for i in range(layout.in_size(s)) if not i & layout.free_mask(s)] for s in spaces]
    tables = [
        np.array(gf2.table(layout.flat(s)))[used] for s, used in zip(spaces, kept, strict=True)
    ]
    where = np.bitwise_xor.reduce(np.meshgrid(*tables, indexing="ij"))
    chosen = words if "block" in spaces else words[0]
    result = np.zeros(layout.size, np.uint64)
    result[where] = chosen[np.ix_(*kept)]
    return result.reshape(layout.shape)


# (kind, A type, accumulator, M, major of A and B, swizzle)
PLAIN = [
    ("f16", "f16", "f32", 128, "K", "128B"),
    ("f16", "f16", "f16", 128, "K", "64B"),
    ("f16", "bf16", "f32", 64, "K", "32B"),
    ("f16", "bf16", "f32", 128, "K", "none"),
    ("f16", "f16", "f32", 128, "MN", "128B"),
    ("f16", "f16", "f32", 64, "MN", "64B"),
    ("f16", "f16", "f32", 128, "MN", "none"),
    ("tf32", "tf32", "f32", 128, "K", "128B"),
    ("f8f6f4", "e4m3", "f32", 128, "K", "64B"),
    ("f8f6f4", "e5m2", "f16", 128, "MN", "128B"),
    ("i8", "s8", "s32", 64, "K", "128B"),
]


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_products(case: tuple[str, str, str, int, str, str]) -> None:
    """Four steps along K into one accumulator."""
    kind, element, acc, m, major, swizzle = case
    n = 64 if major == "K" else 128
    row = find_mma("sm_100a", family="tcgen05", kind=kind, a=element, acc=acc)[0]
    assert row.cta_group == 1
    atom = row.atom(m, n)
    bits, depth = BITS[element], 4 * atom.k
    rng = np.random.default_rng(7)
    a, b = values(rng, element, (m, depth)), values(rng, element, (n, depth))
    image = np.zeros(1 << 16, np.uint8)
    da = operand_image(image, A_AT, a, element, bits, major, swizzle, atom.k)
    db = operand_image(image, B_AT - 1024, b, element, bits, major, swizzle, atom.k)
    idesc = InstructionDescriptor(
        kind, element, element, acc, m, n, a_major=major, b_major=major
    ).encode()
    # rows 16..31 of each warp hold nothing for M 64: read with 16-row shapes only
    shape, repeat, wide = ("16x256b", 1, 8) if m == 64 else ("32x32b", 8, 8)
    per = load_fragment(shape, repeat).elements_per_thread
    loads = [
        load(shape, repeat, str(c), n // wide * per, c // wide * per) for c in range(0, n, wide)
    ]
    out = np.zeros((128, n // wide * per), np.uint32)
    run(
        "", issue(atom, da, db, idesc), "\n".join(loads), image, np.zeros((128, 32), np.uint32), out
    )
    words = read_back(out, shape, repeat, n)
    got = accumulators(atom, words[None])
    got = decode(got & np.uint64(0xFFFF), "f16") if acc == "f16" else decode(got, acc)
    np.testing.assert_array_equal(got, a @ b.T)


def paired(text: str) -> str:
    """The kernel for a pair of CTAs: each fills its own memory, the first issues."""
    text = text.replace("cta_group::1", "cta_group::2").replace(
        "bar.sync 0;", "barrier.cluster.arrive; barrier.cluster.wait;"
    )
    text = text.replace(
        "mov.u32 %r1, %tid.x;",
        "mov.u32 %r1, %tid.x; mov.u32 %r50, %cluster_ctarank; mul.wide.u32 %rd30, %r50, 65536;\n"
        "add.u64 image, image, %rd30; mul.wide.u32 %rd30, %r50, 32768; add.u64 out, out, %rd30;\n"
        "mul.wide.u32 %rd30, %r50, 16384; add.u64 tmem, tmem, %rd30;",
    )
    text = text.replace(
        "@!%p1 bra ISSUED;", "setp.ne.u32 %p7, %r50, 0; @%p7 bra ISSUED; @!%p1 bra ISSUED;"
    )
    return (
        text.replace(
            "shared::cluster.b64 [%r3];",
            "shared::cluster.multicast::cluster.b64 [%r3], %h0;",
        )
        .replace(".reg .b32 %r<300>;", ".reg .b32 %r<300>; .reg .b16 %h0;")
        .replace("{prepare}", "mov.b16 %h0, 3;\n{prepare}")
    )


@pytest.mark.parametrize("m", [128, 256])
def test_products_of_cta_pairs(m: int) -> None:
    """Each CTA holds half of A's and of B's rows; D is split as the layout's `block` says."""
    n = 64
    row = next(
        r
        for r in find_mma("sm_100a", family="tcgen05", kind="f16", a="f16", acc="f32")
        if r.cta_group == 2
    )
    atom = row.atom(m, n)
    depth = 4 * atom.k
    rng = np.random.default_rng(12)
    a, b = values(rng, "f16", (m, depth)), values(rng, "f16", (n, depth))
    images = np.zeros((2, 1 << 16), np.uint8)
    for rank in (0, 1):
        part = a[rank * m // 2 :][: m // 2]
        da = operand_image(images[rank], A_AT, part, "f16", 16, "K", "128B", atom.k)
        part = b[rank * n // 2 :][: n // 2]
        db = operand_image(images[rank], B_AT - 1024, part, "f16", 16, "K", "128B", atom.k)
    idesc = InstructionDescriptor("f16", "f16", "f16", "f32", m, n).encode()
    columns = n if m == 256 else n // 2
    loads = [load("32x32b", 8, str(c), 64, c) for c in range(0, columns, 8)]
    text = paired(PTX).format(
        room=1 << 16,
        words=1 << 14,
        prepare="",
        issue=issue(atom, da, db, idesc),
        finish="\n".join(loads),
    )
    out = np.zeros((2, 128, 64), np.uint32)
    module = tile_sim.Module(text)
    arrays = [images.view(np.uint32), np.zeros((2, 128, 32), np.uint32), out]
    module.launch("k", (2, 1, 1), (128, 1, 1), arrays, cluster=(2, 1, 1))
    layout = atom.c_layout
    assert layout is not None
    got = np.zeros((m, n), np.uint64)
    for block in (0, 1):
        for place in range(128):
            for column in range(columns):
                point = {"row": place, "column": column, "block": block}
                got[layout.apply(point)] = out[block, place, column]
    np.testing.assert_array_equal(decode(got, "f32"), a @ b.T)


def read_back(out: np.ndarray, shape: str, repeat: int, columns: int) -> np.ndarray:
    """Tensor memory as 128 rows, from what the four warps loaded piece by piece."""
    layout = load_fragment(shape, repeat)
    words = np.zeros((128, columns), np.uint64)
    per, wide = layout.elements_per_thread, layout.shape[1]
    for thread in range(128):
        for register in range(out.shape[1]):
            row, column = layout.apply({"lane": thread % 32, "register": register % per})
            words[thread // 32 * 32 + row, register // per * wide + column] = out[thread, register]
    return words


SCALED = [
    ("mxf8f6f4", "e4m3", "1X", 1),
    ("mxf4", "e2m1", "2X", 2),
    ("mxf4nvf4", "e2m1", "2X", 2),
    ("mxf4nvf4", "e2m1", "4X", 4),
]


@pytest.mark.parametrize("case", SCALED, ids=str)
def test_block_scaled_products(case: tuple[str, str, str, int]) -> None:
    """A factor of its own for each row and block, placed where `scale_layout` says."""
    kind, element, size, blocks = case
    rows = find_mma("sm_100a", family="tcgen05.block_scale", kind=kind, a=element)
    row = next(r for r in rows if r.scale and r.scale.size == size and r.cta_group == 1)
    assert row.scale is not None
    atom = row.atom(128, 64)
    bits = BITS[element]
    rng = np.random.default_rng(8)
    a, b = values(rng, element, (128, atom.k)), values(rng, element, (64, atom.k))
    image = np.zeros(1 << 16, np.uint8)
    da = operand_image(image, A_AT, a, element, bits, "K", "32B", atom.k)
    db = operand_image(image, B_AT - 1024, b, element, bits, "K", "32B", atom.k)
    tmem = np.zeros((128, 32), np.uint32)
    factors = []
    for first, extent in ((0, 128), (16, 64)):
        exponents = rng.integers(0, 3, (extent, blocks))
        factors.append(np.repeat(2.0**exponents, atom.k // blocks, axis=1))
        place_scales(tmem, first, exponents, row.scale.type)
    idesc = scaled_instruction_descriptor(kind, element, element, 128, 64, row.scale.type)
    prepare = store_columns(SCALE_A, 4, 0) + "\n" + store_columns(SCALE_B, 4, 16)
    loads = [load("32x32b", 8, str(c), 64, c) for c in range(0, 64, 8)]
    out = np.zeros((128, 64), np.uint32)
    body = issue(atom, da, db, idesc, ", [%r41], [%r42]")
    run(prepare, body, "\n".join(loads), image, tmem, out)
    got = decode(accumulators(atom, read_back(out, "32x32b", 8, 64)[None]), "f32")
    np.testing.assert_array_equal(got, (a * factors[0]) @ (b * factors[1]).T)


def place_scales(tmem: np.ndarray, first: int, exponents: np.ndarray, kind: str) -> None:
    layout = scale_layout(*exponents.shape)
    patterns = exponents + 127 if kind == "ue8m0" else (exponents + 7) << 3
    for row in range(128):
        for column in range(layout.in_size("column")):
            for byte in range(exponents.shape[1]):
                r, block = layout.apply(
                    {
                        name: index
                        for name, index in (("row", row), ("column", column), ("element", byte))
                        if layout.in_bits(name)
                    }
                )
                tmem[row, first + column] |= np.uint32(int(patterns[r, block]) << (8 * byte))

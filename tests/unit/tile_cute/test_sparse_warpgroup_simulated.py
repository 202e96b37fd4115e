"""wgmma.sp in the simulator: A as stored, from shared memory and from registers, B, D, metadata."""

from itertools import pairwise

import numpy as np
import pytest
import tile_sim
from simulated import decode, kernel, move, names, pack, raw, unpack, values
from test_atoms_simulated import operand_bytes
from test_sparse_simulated import field_bits, metadata_lanes, noticed, sparse_a, swapped
from tile_cute.atoms import MmaAtom, MmaRow, find_mma
from tile_cute.atoms.descriptors import canonical_buffer, hopper_descriptor, match_operand
from tile_cute.atoms.types import BITS

ROWS = list(find_mma(family="wgmma.sp"))
A_AT, B_AT, ROOM = 1024, 9216, 20480


def body(atom: MmaAtom, words: list[int], selector: int) -> str:
    """Two products: A from shared memory, then from registers."""
    count = atom.registers("c")
    lines = [
        f".shared .align 1024 .b8 buf[{ROOM}];",
        "mov.u32 %r699, %tid.x; mov.u32 %r1, buf; mov.u32 %r2, %r699;",
        f"FILL: setp.ge.u32 %p1, %r2, {ROOM // 4}; @%p1 bra FILLED; shl.b32 %r3, %r2, 2;",
        "cvt.u64.u32 %rd1, %r3; add.u64 %rd2, image, %rd1; ld.global.b32 %r4, [%rd2];",
        "add.u32 %r5, %r1, %r3; st.shared.b32 [%r5], %r4; add.u32 %r2, %r2, 128; bra FILL;",
        "FILLED: fence.proxy.async.shared::cta; bar.sync 0;",
        "shr.u32 %r6, %r1, 4; cvt.u64.u32 %rd3, %r6; setp.ne.b32 %p3, 0, 0;",
        f"add.u64 %rd10, %rd3, {words[0]}; add.u64 %rd11, %rd3, {words[1]};",
        *move("ld", "a", 200, 4, False),
        *move("ld", "meta", 210, 1, False),
    ]
    for source, a in (("s", "%rd10"), ("r", names(200, 4))):
        tail = ", 1, 1" if atom.row.acc != "s32" else ""
        if "MN" in atom.row.majors:
            tail += ", 0, 0" if source == "s" else ", 0"
        operands = f"{names(100, count)}, {a}, %rd11, %r210, {selector}, %p3{tail}"
        lines += [f"mov.b32 %r{100 + i}, 0;" for i in range(count)]
        lines += ["wgmma.fence.sync.aligned;", f"{atom.instruction} {operands};"]
        lines += ["wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"]
        lines += move("st", f"d{source}", 100, count, False)
    return "\n".join(lines)


def products(
    atom: MmaAtom, selector: int = 0, read: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(both products as computed, as they should be)."""
    row, rng = atom.row, np.random.default_rng(4)
    layout = atom.metadata_layout
    assert atom.a_layout is not None
    assert atom.c_layout is not None
    assert layout is not None
    kept, b = sparse_a(rng, atom), values(rng, row.b, (atom.n, atom.k))
    image, words = np.zeros(ROOM, np.uint8), []
    for at, matrix, kind, swizzle in ((A_AT, kept.values, row.a, "32B"), (B_AT, b, row.b, "64B")):
        buffer = canonical_buffer(matrix.shape[0], matrix.shape[1], BITS[kind], "K", swizzle)
        data = operand_bytes(matrix, kind, buffer)
        image[at : at + len(data)] = data
        words.append(hopper_descriptor(at, match_operand(buffer, BITS[kind])))
    packed = pack(kept.fields.astype(np.uint64), layout, field_bits(atom))
    meta = rng.integers(0, 1 << 32, (128, 1), np.uint32)
    used = metadata_lanes(layout)
    for thread in range(128):
        if thread % 32 in used:
            meta[thread + selector * len(used) // 8] = packed[thread]
    registers = pack(raw(kept.values, row.a), atom.a_layout, BITS[row.a])
    outs = [np.zeros((128, atom.registers("c")), np.uint32) for _ in range(2)]
    text = kernel(
        body(atom, words, selector if read is None else read),
        ["image", "a", "meta", "ds", "dr"],
        "sm_90a",
    )
    arrays = [image.view(np.uint32), registers, meta, *outs]
    tile_sim.Module(text).launch("k", (1, 1, 1), (128, 1, 1), arrays)
    got = [decode(unpack(out, atom.c_layout, BITS[row.acc]), row.acc) for out in outs]
    return np.stack(got), np.stack([kept.full @ b.T] * 2)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row(row: MmaRow) -> None:
    for selector in (0, 1) if BITS[row.a] >= 16 else (0,):
        got, wanted = products(row.atom(64, 32), selector)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", ["a_layout", "c_layout", "metadata_layout"])
@pytest.mark.parametrize("kind", ["f16", "tf32", "s8"])
def test_a_planted_wrong_bit_is_caught(
    kind: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    atom = next(row for row in ROWS if row.a == kind).atom(64, 16)
    layout = getattr(atom, name)
    bits = [(s, i) for s, b in layout.bases.items() for i, v in enumerate(b) if any(v)]
    for first, second in pairwise([*bits, bits[0]]):
        wrong = swapped(layout, first, second)
        with monkeypatch.context() as patch:
            patch.setattr(MmaAtom, name, property(lambda _, wrong=wrong: wrong))
            assert noticed(lambda: products(atom)), (first, second)


@pytest.mark.parametrize("kind", ["f16", "tf32"])
def test_a_wrong_selector_is_caught(kind: str) -> None:
    atom = next(row for row in ROWS if row.a == kind).atom(64, 16)
    assert noticed(lambda: products(atom, 0, 1))

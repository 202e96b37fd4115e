"""`tcgen05.cp`, `.shift` and the `.ashift` of a product: what moves, and what stays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support import tensor_memory as tm
from tile_sim import Module, SimError

Kernel = Callable[..., Module]
COLUMNS, ROOM = 40, 8192


def run(
    kernel: Kernel, issue: str, image: np.ndarray, start: np.ndarray, group: int = 1, **options: str
) -> np.ndarray:
    out = np.zeros_like(start)
    body = tm.text(issue, COLUMNS, ROOM, group)
    module = kernel(body, tm.PARAMS, target="sm_100a")
    shape = {"cluster": (group, 1, 1), **options}
    module.launch("k", (group, 1, 1), (128, 1, 1), [image, start, out], **shape)
    return out


def moved_down(words: np.ndarray) -> np.ndarray:
    """In each 32 rows, 31 take what is below them (CUTLASS: row r gets row r + 1)."""
    out = words.copy()
    for row in range(127):
        if row % 32 != 31:
            out[row] = words[row + 1]
    return out


@pytest.mark.parametrize("schedule", ["early", "late"])
@pytest.mark.parametrize("group", [1, 2])
def test_shift(kernel: Kernel, group: int, schedule: str) -> None:
    """32 bytes of each row, from the named column on; columns beside them stay."""
    start = tm.garbage(group, COLUMNS)
    issue = f"add.u32 %r40, %r6, 12; tcgen05.shift.cta_group::{group}.down [%r40];"
    out = run(kernel, issue, np.zeros((group, ROOM), np.uint8), start, group, schedule=schedule)
    wanted = start.copy()
    for cta in range(group):
        wanted[cta, :, 12:20] = moved_down(start[cta, :, 12:20])
    np.testing.assert_array_equal(out, wanted)


def test_shift_at_another_quarter_is_refused(kernel: Kernel) -> None:
    issue = "add.u32 %r40, %r6, 2097152; tcgen05.shift.cta_group::1.down [%r40];"
    with pytest.raises(SimError, match="shift at lane 32"):
        run(kernel, issue, np.zeros((1, ROOM), np.uint8), tm.garbage(1, COLUMNS))


@pytest.mark.parametrize("group", [1, 2])
def test_ashift(kernel: Kernel, group: int) -> None:
    """The product is that of A as it was; afterwards A has moved."""
    rng = np.random.default_rng(3)
    n = 16
    x, y = tm.integers(rng, (group, 128, 16)), tm.integers(rng, (n, 16))
    start, image = tm.garbage(group, COLUMNS), np.zeros((group, ROOM), np.uint8)
    word = 0
    for cta in range(group):
        start[cta, :, 24:32] = tm.cast(x[cta], "f16").view(np.uint32)
        part = y if group == 1 else y[cta * 8 : cta * 8 + 8]
        raw, word = tm.k_major(tm.rows_as_bytes(tm.cast(part, "f16"), "f16", ""))
        image[cta, : len(raw)] = raw
    issue = f"""
    add.u32 %r41, %r6, 24; add.u64 %rd22, %rd20, {word};
    mov.b32 %r45, {tm.idesc("f16", "f16", "f32", 128 * group, n)};
    tcgen05.mma.cta_group::{group}.kind::f16.ashift.collector::a::lastuse
        [%r6], [%r41], %rd22, %r45, %p4;
    """
    wanted = start.copy()
    for cta in range(group):
        wanted[cta, :, :n] = (x[cta] @ y.T).astype(np.float32).view(np.uint32)
        wanted[cta, :, 24:32] = moved_down(start[cta, :, 24:32])
    np.testing.assert_array_equal(run(kernel, issue, image, start, group), wanted)
    for old, new, message in (
        ("collector::a::lastuse", "collector::a::use", "does not go with"),
        ("[%r41], %rd22", "%rd22, %rd22", "A in tensor memory"),
        (str(tm.idesc("f16", "f16", "f32", 128 * group, n)),
         str(tm.idesc("f16", "f16", "f32", 64 * group, n)), "ashift needs M 128 or 256"),
    ):  # fmt: skip
        if group == 1:
            with pytest.raises(SimError, match=message):
                run(kernel, issue.replace(old, new), image, start)


COPIES = {
    "128x256b": (128, 8, lambda row: [row]),
    "128x128b": (128, 4, lambda row: [row]),
    "64x128b.warpx2::02_13": (64, 4, lambda row: [row, row + 64]),
    "64x128b.warpx2::01_23": (64, 4, lambda row: [row // 32 * 64 + row % 32 + i for i in (0, 32)]),
    "32x128b.warpx4": (32, 4, lambda row: [row, row + 32, row + 64, row + 96]),
    "4x256b": (4, 8, lambda row: [32 * row + 31]),
}
FORMATS = {"": 8, ".b8x16.b6x16_p32": 6, ".b8x16.b4x16_p64": 4}


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("shape", COPIES)
def test_copy(kernel: Kernel, shape: str, form: str, group: int) -> None:
    """Each CTA copies from its own shared memory. Row r of 4x256b goes to lane 32 r of the address'
    lane: here 31, which a shift leaves as it was (CUTLASS, SM100_UTCCP_4dp256bit).
    """
    rows, words, lanes = COPIES[shape]
    rng = np.random.default_rng(6)
    bits = FORMATS[form]
    start, wanted = tm.garbage(group, COLUMNS), tm.garbage(group, COLUMNS)
    image = rng.integers(0, 256, (group, ROOM)).astype(np.uint8)
    small = rng.integers(0, 1 << bits, (group, rows, 4 * words)).astype(np.uint8)
    stride = 16 * rows if rows >= 8 else 128
    for cta, row in np.ndindex(group, rows):
        line = small[cta, row]
        for part in range(words // 4):
            at = part * stride + row // 8 * 128 + row % 8 * 16
            word = sum(int(v) << bits * i for i, v in enumerate(line[16 * part : 16 * part + 16]))
            data = np.frombuffer(word.to_bytes(2 * bits, "little"), np.uint8)
            image[cta, at : at + 2 * bits] = data
        spread = (line << (2 if bits == 4 else 0)).view(np.uint32)
        for lane in lanes(row):
            wanted[cta, lane, 9 : 9 + words] = spread
    word = stride >> 4 << 16 | 8 << 32 | 1 << 46
    at = (31 << 16 if rows == 4 else 0) + 9
    issue = f"""
    add.u64 %rd21, %rd20, {word}; add.u32 %r40, %r6, {at};
    tcgen05.cp.cta_group::{group}.{shape}{form} [%r40], %rd21;
    """
    np.testing.assert_array_equal(run(kernel, issue, image, start, group), wanted)


def test_copies_at_other_lanes_are_refused(kernel: Kernel) -> None:
    for shape, lane in (("128x128b", 1), ("4x256b", 32)):
        issue = f"add.u32 %r40, %r6, {lane << 16}; mov.b64 %rd21, {1 << 46};"
        issue += f"tcgen05.cp.cta_group::1.{shape} [%r40], %rd21;"
        with pytest.raises(SimError, match="address at lane"):
            run(kernel, issue, np.zeros((1, ROOM), np.uint8), tm.garbage(1, COLUMNS))
    with pytest.raises(SimError, match="needs both formats"):
        run(
            kernel, "tcgen05.cp.cta_group::1.128x128b.b8x16 [%r6], %rd20;",
            np.zeros((1, ROOM), np.uint8), tm.garbage(1, COLUMNS),
        )  # fmt: skip

"""`tcgen05.cp`, from shared to tensor memory, and `tcgen05.shift` within tensor memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tile_sim.errors import SimError
from tile_sim.isa.bulk import lanes_of
from tile_sim.isa.common import B64, U32
from tile_sim.isa.tcgen05 import take_cta_group
from tile_sim.machine import shared
from tile_sim.machine.group import Group
from tile_sim.machine.local import threads
from tile_sim.machine.tmem import Step
from tile_sim.machine.wave import Wave
from tile_sim.numeric import elements
from tile_sim.numeric.descriptors import byte_offsets, decode_tcgen05, swizzle
from tile_sim.program.decode import Decode, Exec, Getter, instruction
from tile_sim.ptx.syntax import Address, Name

Array = np.ndarray


@dataclass(frozen=True)
class Shape:
    """Rows of the source, bytes of a row, the lanes each row goes to, and the lanes that the
    address may name. Row r of 4x256b goes to lane r of the quarters, counted from the address:
    it fills the lanes that `tcgen05.shift` leaves as they were."""

    rows: int
    row_bytes: int
    lanes: Callable[[int], list[int]]
    bases: range = range(1)


_SHAPES = {
    "128x256b": Shape(128, 32, lambda r: [r]),
    "4x256b": Shape(4, 32, lambda r: [32 * r], range(32)),
    "128x128b": Shape(128, 16, lambda r: [r]),
    "32x128b.warpx4": Shape(32, 16, lambda r: [r, r + 32, r + 64, r + 96]),
    "64x128b.warpx2::02_13": Shape(64, 16, lambda r: [r, r + 64]),
    "64x128b.warpx2::01_23": Shape(64, 16, lambda r: [r % 32 + r // 32 * 64 + k for k in (0, 32)]),
}
# Packed sources: bits of an element, and where it begins in its byte of tensor memory.
_PACKED = {"b6x16_p32": (6, 0), "b4x16_p64": (4, 2)}


@instruction("tcgen05.cp")
def tcgen05_cp(cx: Decode) -> Exec:
    """Rows of a matrix in shared memory (a descriptor) to lanes of tensor memory."""
    pair = take_cta_group(cx) == 2
    shape = cx.one_of("128x256b", "4x256b", "128x128b", "64x128b", "32x128b")
    spread = cx.option("warpx4", "warpx2::02_13", "warpx2::01_23")
    name = f"{shape}.{spread}" if spread else shape
    if name not in _SHAPES:
        cx.fail(f"there is no copy of shape .{name}")
    packed = cx.option(*_PACKED)
    if cx.flag("b8x16") != (packed is not None):
        cx.fail("needs both formats, .b8x16 and that of the source, or none")
    cx.done(2)
    target, source = tensor_address(cx, 0), cx.src(1, B64)

    def execute(g: Group) -> None:
        items = zip(
            threads(g), g.lane_rows(), lanes_of(g, target), lanes_of(g, source), strict=True
        )
        for thread, row, to, word in items:
            cta = int(g.wave.cta_of[row])
            ctas = [cta, cta ^ 1] if pair else [cta]
            if g.wave.monitor is not None:
                _observe(g.wave, int(row), ctas, to, word, _SHAPES[name])
            run = _copier(g.wave, ctas, to, word, _SHAPES[name], packed)
            g.wave.tmem.issue(int(thread), Step(run))

    return execute


def _observe(wave: Wave, row: int, ctas: list[int], to: int, word: int, shape: Shape) -> None:
    """Tell the checker what a copy reads in shared memory, and writes in tensor memory."""
    start, layout = decode_tcgen05(word)
    source = swizzle(start + byte_offsets(layout, shape.rows, shape.row_bytes, True), layout)
    lanes = np.array([shape.lanes(r) for r in range(shape.rows)]).reshape(-1, 1) + (to >> 16)
    column = (to & 0xFFFF) + np.arange(shape.row_bytes // 4)[None, :]
    for cta in ctas:
        where = shared.flat(wave, cta, source, "tcgen05.cp")
        wave.monitor.async_read(np.array([row]), where, "tcgen05.cp")
        wave.monitor.tensor.access(row, cta, lanes, column, True, "tcgen05.cp")


def tensor_address(cx: Decode, which: int) -> Getter:
    operand = cx.operand(which)
    if not isinstance(operand, Address) or not isinstance(operand.base, Name):
        cx.fail("needs a tensor memory address [taddr]")
    return cx.src(operand.base, U32)


def _copier(
    wave: Wave, ctas: list[int], to: int, word: int, shape: Shape, packed: str | None
) -> Callable[[], None]:
    base, column, words = to >> 16, to & 0xFFFF, shape.row_bytes // 4
    if base not in shape.bases:
        raise SimError("tmem", f"tcgen05.cp: address at lane {base}, at most {shape.bases[-1]}")
    lanes = np.array([shape.lanes(r) for r in range(shape.rows)]) + base

    def run() -> None:
        start, layout = decode_tcgen05(word)
        offsets = byte_offsets(layout, shape.rows, shape.row_bytes, True)
        for cta in ctas:
            wave.tmem.require(cta, column, words, "tcgen05.cp")
            where = shared.flat(wave, cta, swizzle(start + offsets, layout), "tcgen05.cp")
            data = _read(wave, where, packed)
            for k in range(lanes.shape[1]):
                place = column + np.arange(words)[None, :]
                wave.tmem.write(cta, lanes[:, k : k + 1], place, data)

    return run


def _read(wave: Wave, where: Array, packed: str | None) -> Array:
    """Words `[rows, columns]` as they go to tensor memory."""
    if packed is None:
        raw = shared.read(wave, where, "tcgen05.cp")
        return np.ascontiguousarray(raw).view(np.uint32)
    bits, shift = _PACKED[packed]
    groups = where.reshape(len(where), -1, 16)
    # The padding of a group may be anything, and is not read.
    raw = shared.read(wave, groups[..., : 2 * bits], "tcgen05.cp")
    fields = elements.unpack_fields(np.ascontiguousarray(raw), bits)
    spread = (fields << np.uint8(shift)).reshape(len(where), -1)
    return np.ascontiguousarray(spread).view(np.uint32)


@instruction("tcgen05.shift")
def tcgen05_shift(cx: Decode) -> Exec:
    """32 bytes of each row take the place of those of the row before, but for the last row.

    Each quarter of the lanes moves for itself, as CUTLASS describes it. The PTX ISA also allows
    addresses at the other quarters without a word on what moves then: those are refused.
    """
    pair = take_cta_group(cx) == 2
    cx.one_of("down")
    cx.done(1)
    target = tensor_address(cx, 0)

    def execute(g: Group) -> None:
        for thread, row, to in zip(threads(g), g.lane_rows(), lanes_of(g, target), strict=True):
            if to >> 16:
                raise SimError(
                    "tmem",
                    f"tcgen05.shift at lane {to >> 16}: which rows move is documented for lane 0 "
                    "only, from where all of them do",
                )
            cta = int(g.wave.cta_of[row])
            ctas = [cta, cta ^ 1] if pair else [cta]
            g.wave.tmem.issue(int(thread), Step(_shifter(g.wave, ctas, to & 0xFFFF)))

    return execute


def _shifter(wave: Wave, ctas: list[int], column: int) -> Callable[[], None]:
    def run() -> None:
        for cta in ctas:
            wave.tmem.shift_down(cta, column, 8, "tcgen05.shift")

    return run

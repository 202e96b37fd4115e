"""Offsets whose runs end early, and pointers that loops move: no vector runs over a cut."""

from __future__ import annotations

import numpy as np
import pytest
from support.programs import I32, Program
from tile_cudatile import types as t
from tile_cudatile.attrs import DivBy

EXTENT = 1024


@pytest.mark.parametrize("element", [t.I8, t.I1])
@pytest.mark.parametrize("signedness", ["signed", "unsigned"])
def test_offsets_that_went_through_a_narrow_type(element: t.Scalar, signedness: str) -> None:
    """0, 1, ... in i8 starts again at 256 (or goes on at -128): elements are no longer in a row."""
    program, wide = Program(), t.Tile((EXTENT,), t.I32)
    base = program.argument(t.Tile((), t.Pointer(t.F32)))
    aligned = program.emit("assume", [base], base.type, predicate=DivBy(16))
    lanes = program.emit("iota", [], wide)
    narrow = program.emit("trunci", [lanes], t.Tile((EXTENT,), element), overflow="none")
    again = program.emit("exti", [narrow], wide, signedness=signedness)
    ahead = program.emit("addi", [again, program.constant(wide, 128)], wide, overflow="none")
    found = program.emit(
        "load_ptr_tko",
        [program.addresses(aligned, t.F32, ahead)],
        t.Tile((EXTENT,), t.F32),
        t.TOKEN,
        memory_ordering_semantics="weak",
    )
    program.store(found, (EXTENT,), t.F32)
    source = np.arange(EXTENT, dtype=np.float32)
    for level in (0, 2):
        program.agrees(source, np.zeros(EXTENT, np.float32), opt_level=level)


def test_a_pointer_that_a_loop_moves_is_read_in_vectors() -> None:
    """The same alignment in every turn."""
    program, tile, lanes = Program(), t.Tile((512,), t.F32), t.Tile((512,), t.I32)
    base = program.argument(t.Tile((), t.Pointer(t.F32)))
    aligned = program.emit("assume", [base], base.type, predicate=DivBy(16))
    start = program.addresses(aligned, t.F32, program.emit("iota", [], lanes))
    zero, four, one = (program.constant(I32, number) for number in (0, 4, 1))
    sums = program.constant(tile, 0)
    step = program.constant(lanes, 512)

    def body(_: object, pointers: object, total: object) -> list:
        found = program.emit(
            "load_ptr_tko", [pointers], tile, t.TOKEN, memory_ordering_semantics="weak"
        )
        total = program.emit("addf", [total, found], tile, rounding_mode="nearest_even")
        return [program.emit("offset", [pointers, step], start.type), total]

    region = program.region([I32, start.type, tile], body, "continue")
    loop = program.emit(
        "for", [zero, four, one, (start, sums)], start.type, tile, regions=(region,)
    )
    del loop
    program.store(program.ops[-1].results[1], (512,), t.F32)
    program.agrees(np.arange(2048, dtype=np.float32), np.zeros(512, np.float32))
    # The pipeline of -O2 begins them iterations ahead; each thread copies what it reads.
    ptx = program.ptx()
    assert "ld.global.v4.b32" in ptx or "cp.async.cg.shared.global" in ptx

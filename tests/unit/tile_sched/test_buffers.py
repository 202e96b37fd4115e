"""Lifetimes, named barriers, shared memory and pipes: vectors V20 to V23."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tile_sched.buffers.lifetimes import Barriers, Request, place_shared, rows
from tile_sched.buffers.pipes import Member, Pipe, solve

from tile_core.diagnostics import CompileError

CAPACITY = 232448


def bits(*cycles: int) -> int:
    return sum(1 << cycle for cycle in cycles)


def test_v20_lifetimes_wrap() -> None:
    a, b, c = rows(3, 7, 5), rows(2, 3, 5), rows(8, 9, 5)
    assert (a, b, c) == (bits(3, 4, 0, 1), bits(2), bits(3))
    assert not a & b
    assert a & c


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 12))
def test_rows_are_the_cycles_one_by_one(start: int, length: int, ii: int) -> None:
    wanted = bits(*{cycle % ii for cycle in range(start, start + length)})
    assert rows(start, start + length, ii) == wanted


def test_v21_barriers_are_used_again() -> None:
    pool = Barriers(size=2, first=0)
    assert [pool.bind(bits(0, 1, 2)), pool.bind(bits(1, 2, 3)), pool.bind(bits(4, 5))] == [0, 1, 0]
    with pytest.raises(CompileError, match="fails to assign named barrier"):
        pool.bind(bits(0, 1, 2, 3, 4, 5))


def test_barrier_0_is_the_blocks_own() -> None:
    pool = Barriers()
    assert [pool.bind(1) for _ in range(15)] == list(range(1, 16))


def test_v22_depth_is_bounded_by_shared_memory() -> None:
    def tiles(depth: int) -> list[Request]:
        return [Request(name, 128 * 64 * 2, depth, 1024) for name in ("a", "b")]

    assert place_shared(tiles(7), CAPACITY) == {"a": 0, "b": 114688}
    with pytest.raises(CompileError, match="fails to assign smem buffer"):
        place_shared(tiles(8), CAPACITY)


def test_buffers_that_never_live_together_share_bytes() -> None:
    found = place_shared(
        [Request("a", 100, lifetime=bits(0, 1)), Request("b", 100, lifetime=bits(2)),
         Request("c", 100, lifetime=bits(1, 2))],
        1024,
    )  # fmt: skip
    assert found == {"a": 0, "b": 0, "c": 128}


def test_v23_producers_of_one_value_share_a_pipe() -> None:
    p, consumer = Member(0, "r", 0, 0), Member(9, "r", 1, 0)
    again = Member(1, "r", 0, 2, reads=True)
    assert solve("r", consumer, [again, p]).pipes == (Pipe("r", (0, 1), 9, 2),)
    assert solve("r", consumer, [again, p]).pipes[0].canonical == 0
    anew = Member(1, "r", 0, 2)
    assert [pipe.producers for pipe in solve("r", consumer, [p, anew]).pipes] == [(0,), (1,)]
    nothing = solve("r", consumer, [Member(3, "other", 0, 0)])
    assert nothing.trivial
    assert nothing.pipes[0].canonical is None

"""Broken programs are refused in good order, and by the same judgement as the released reader."""

from __future__ import annotations

import os

import pytest
from tile_cudatile import print_text, read_bytecode, verify, write_bytecode
from tile_cudatile import types as t
from tile_cudatile.bytecode.heads import Heads
from unit.tile_cudatile.apply import operation, program
from unit.tile_cudatile.differential import compare
from unit.tile_cudatile.mutants import LIMIT, mutants, ours, programs
from unit.tile_cudatile.releases import Release, releases

SEED = int(os.environ.get("FUZZ_SEED", "1"))


def test_no_input_is_too_much() -> None:
    for data in mutants(SEED, 400):
        assert ours(data).seconds < LIMIT, data.hex()


def test_the_quick_way_and_the_careful_way_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records with a known head are decoded and verified by other code than the first of them."""
    broken = list(mutants(SEED + 1, 300))
    quick = [ours(data).complaint for data in broken]
    for data, complaint in zip(broken, quick, strict=True):
        if not complaint:
            module = read_bytecode(data)
            verify(module)  # all operations
    monkeypatch.setattr(Heads, "find", lambda self, data, pos: (None, pos))
    assert [ours(data).complaint for data in broken] == quick


def test_the_quick_way_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = [print_text(read_bytecode(data), locations=True) for data in programs()]
    monkeypatch.setattr(Heads, "find", lambda self, data, pos: (None, pos))
    assert [print_text(read_bytecode(data), locations=True) for data in programs()] == quick


def test_many_sizes_of_heads_are_not_expensive() -> None:
    """As many sizes as there are lengths of lists, then records that would try them all."""
    tile = t.Tile((), t.I32)

    def build(ops, x) -> None:
        for size in [*range(300), *[300] * 1500]:
            ops.append(operation("permute", [x], [tile], permutation=(0,) * size))

    data = write_bytecode(program(build, [t.Tile((), t.I32)]))
    verdict = ours(data)
    assert "expects at least rank 2" in verdict.complaint
    assert verdict.seconds < LIMIT


@pytest.mark.skipif(not releases(), reason="needs the releases: make releases")
@pytest.mark.parametrize("release", releases(), ids=lambda r: r.name)
def test_the_released_readers_agree(release: Release) -> None:
    assert compare(release, SEED, 60).known(release.name).get(None, []) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_no_input_is_too_much_in_the_long_run(part: int) -> None:
    for data in mutants(SEED * 1000 + part, 5000):
        assert ours(data).seconds < LIMIT, data.hex()


@pytest.mark.slow
@pytest.mark.skipif(not releases(), reason="needs the releases: make releases")
@pytest.mark.parametrize("release", releases(), ids=lambda r: r.name)
def test_the_released_readers_agree_in_the_long_run(release: Release) -> None:
    assert compare(release, SEED + 1000, 4000).known(release.name).get(None, []) == []

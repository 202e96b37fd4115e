"""Broken programs are refused in good order, and by the same judgement as the released reader."""

from __future__ import annotations

import os

import pytest
from unit.tile_cudatile.mutants import LIMIT, disagreements, mutants, ours
from unit.tile_cudatile.peer import needs_disassembler

SEED = int(os.environ.get("FUZZ_SEED", "1"))


def test_no_input_is_too_much() -> None:
    for data in mutants(SEED, 400):
        assert ours(data).seconds < LIMIT, data.hex()


@needs_disassembler
def test_the_released_reader_agrees() -> None:
    assert disagreements(SEED, 100) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_no_input_is_too_much_in_the_long_run(part: int) -> None:
    for data in mutants(SEED * 1000 + part, 5000):
        assert ours(data).seconds < LIMIT, data.hex()


@needs_disassembler
@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_the_released_reader_agrees_in_the_long_run(part: int) -> None:
    assert disagreements(SEED * 1000 + part, 1000) == []

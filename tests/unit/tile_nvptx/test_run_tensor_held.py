"""Products on tcgen05 whose A threads make and leave in tensor memory: right, nothing too many."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tile_sim
from support.products import chained_kernel, mutants
from tile_cute.atoms.tensor_memory import operand_layout
from tile_sim import SimError
from tile_tileas.mma.tier import Planned
from tile_tileas.mma.tiers import planned_tensor

SCHEDULES = ("late", "early", "random")
#: A of a product is where columns are named instead of a descriptor.
HELD = r"tcgen05\.mma\S* \[place\], \[left\], right"


def chained(text: str, rows: int, turned: bool, schedule: str = "late") -> None:
    draw = np.random.default_rng(1)
    a = draw.integers(-1, 2, (rows, 64)).astype(np.float16)
    b, v = (draw.integers(-1, 2, (64, 64)).astype(np.float16) for _ in range(2))
    v[:, ::2] = 0  # sums stay small
    out = np.zeros((rows, 64), np.float32)
    report = tile_sim.Module(text).launch(
        "kernel", (1, 1, 1), None, [a, b, v, out], check=True, schedule=schedule, max_steps=20_000
    )
    assert not report.findings
    first = a.astype(np.float64) @ b.astype(np.float64)
    total = first
    for _ in range(3 if turned else 1):
        left = (-total if turned else total).astype(np.float16).astype(np.float64)
        total = left @ v.astype(np.float64) + first
    np.testing.assert_array_equal(out, total)


@pytest.mark.parametrize(
    ("rows", "warps", "turned"),
    [
        *[(64, warps, turned) for warps in (4, 8) for turned in (False, True)],
        *[(128, warps, turned) for warps in (4, 8) for turned in (False, True)],
        (256, 8, False),
    ],
)
def test_what_threads_make_is_read_from_tensor_memory(rows: int, warps: int, turned: bool) -> None:
    text = chained_kernel(rows, warps, turned).ptx("sm_100", 2)
    assert len(re.findall(HELD, text)) == max(1, rows // 128) * 4
    assert "tcgen05.st" in text
    for schedule in SCHEDULES:
        chained(text, rows, turned, schedule)


def test_a_second_block_keeps_its_half_of_the_columns() -> None:
    """Sums of 256 columns and 64 for A would leave none, though there are registers for two."""
    text = chained_kernel(256, 8, turned=True).ptx("sm_100", 2)
    assert not re.search(HELD, text)
    assert re.search(r"tcgen05\.alloc[^;]*, 256;", text)
    chained(text, 256, turned=True)


INSTRUCTIONS = (
    r"tcgen05\.st", r"tcgen05\.wait::st", r"tcgen05\.wait::ld", r"tcgen05\.commit",
    r"tcgen05\.fence::before_thread_sync", r"tcgen05\.fence::after_thread_sync",
    r"\bbar(rier)?\.\w*\.?sync",
)  # fmt: skip


@pytest.mark.parametrize(
    "turned", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["once", "turns"]
)
@pytest.mark.parametrize("rows", [64, 128])
def test_nothing_of_it_can_go(turned: bool, rows: int) -> None:
    text = chained_kernel(rows, 4, turned).ptx("sm_100", 2)
    for instruction in INSTRUCTIONS:
        broken = mutants(text, instruction)
        assert broken, instruction
        missed = [mutant for mutant in broken if not _seen(mutant, turned, rows)]
        assert len(missed) == SPARE.get(instruction, (0, 0))[turned], instruction


#: Around allocation and deallocation, and behind the initialisation of barriers (see
#: test_run_tensor_dot); with a loop, in front of it, where that of its first turn follows.
SPARE = {
    r"tcgen05\.fence::before_thread_sync": (2, 3),
    r"tcgen05\.fence::after_thread_sync": (2, 3),
    r"\bbar(rier)?\.\w*\.?sync": (1, 2),
}


def _seen(text: str, turned: bool, rows: int) -> bool:
    for schedule in SCHEDULES:
        try:
            chained(text, rows, turned, schedule)
        except (AssertionError, SimError):
            return True
    return False


@pytest.mark.parametrize(("types", "k"), [("f16.f32.f16.f16", 16), ("tf32.f32.tf32.tf32", 8)])
def test_where_an_operand_is_held(types: str, k: int) -> None:
    """As the table of atoms has it, tiles of the rows of an instruction one behind the other."""
    kind, rest = types.split(".", 1)
    bits = 16 if kind == "f16" else 32
    for each, rows in ((64, 64), (128, 128), (128, 256)):
        atom = f"tcgen05.mma.cta_group::1.kind::{kind}.m{each}n64k{k}.{rest}"
        held = planned_tensor(Planned(atom, (1, rows, 64, 64), 2, 8)).held
        assert held is not None
        one = operand_layout(each, 64, bits)
        for space in ("row", "element", "column"):
            known = one.bases[space]
            assert list(held.bases[space])[: len(known)] == list(known)
        assert held.shape == (rows, 64)

"""Products of warpgroups in flight from one iteration to the next: same bits, nothing too many."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tile_sim
from tile_nvptx.emit.resource_remarks import losses_in
from tile_sim import SimError

import tile_core

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))
import cases  # noqa: E402 # pyright: ignore[reportMissingImports] - beside the programs

_WAITS = re.compile(r"wgmma\.wait_group\.sync\.aligned (\d+)")


def compiled(strategy: str, stages: int = 4, tensor_maps: str = "off") -> tile_core.Artifact:
    """`matmul_f16` (tiles of 64 x 64 x 32) for sm_90 at -O2, its stages filled by cp.async."""
    options = {
        "pipeline-strategy": strategy,
        "unspecialized-pipeline-num-stages": stages,
        "tma-descriptors": tensor_maps,
    }
    bytecode = (EXAMPLES / "bytecode" / "matmul_f16.tileirbc").read_bytes()
    return tile_core.compile(bytecode, "sm_90", opt_level=2, options=options)


def ptx(strategy: str, stages: int = 4, tensor_maps: str = "off") -> str:
    return str(compiled(strategy, stages, tensor_maps).stage("ptx"))


def product(text: str, k: int, schedule: str = "late") -> np.ndarray:
    """One block of it for that K."""
    case = cases.matmul("matmul_f16", "float16", 56, 64, k, (64, 64))
    report = tile_sim.Module(text).launch(
        "matmul_f16", case.grid, None, case.flat, check=True, schedule=schedule
    )
    assert case.errors() == []
    assert not report.findings
    return case.arguments[2]


@pytest.mark.parametrize("stages", [3, 4, 5])
@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_every_trip_count_gives_the_same_bits(stages: int, schedule: str) -> None:
    ahead, still = ptx("unspecialize", stages), ptx("none")
    assert sorted(_WAITS.findall(ahead)) == ["0", "1"]
    assert _WAITS.findall(still) == ["0"]
    for k in (8, 32, 40, 64, 96, 128, 32 * (stages + 3)):
        np.testing.assert_array_equal(product(ahead, k, schedule), product(still, k))


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_stages_filled_by_tensor_maps_give_the_same_bits(schedule: str) -> None:
    ahead, still = ptx("unspecialize", tensor_maps="host"), ptx("none")
    assert "cp.async.bulk.tensor" in ahead
    assert sorted(_WAITS.findall(ahead)) == ["0", "1"]
    for k in (8, 64, 96, 224):
        np.testing.assert_array_equal(product(ahead, k, schedule), product(still, k))


def test_a_loop_that_does_not_run() -> None:
    a, b = np.zeros((64, 0), np.float16), np.zeros((0, 64), np.float16)
    out = np.ones((64, 64), np.float16)
    flat = cases.Case("matmul_f16", (1, 1, 1), (a, b, out), (None, None, None)).flat
    text = ptx("unspecialize")
    tile_sim.Module(text).launch("matmul_f16", (1, 1, 1), None, flat, check=True)
    assert not out.any()


def test_two_stages_leave_none_to_lag() -> None:
    """The stage that a product in flight reads cannot be filled: products are waited for."""
    text = ptx("unspecialize", 2)
    assert _WAITS.findall(text) == ["0"]
    product(text, 224)


@pytest.mark.parametrize(
    "instruction",
    [
        r"cp\.async\.wait_group", r"cp\.async\.commit_group", r"\bbar(rier)?\.\w*\.?sync",
        r"fence\.proxy\.async", r"wgmma\.wait_group", r"wgmma\.commit_group",
        r"wgmma\.fence",
    ],
)  # fmt: skip
def test_nothing_of_it_can_go(instruction: str) -> None:
    text = ptx("unspecialize")
    places = [match.span() for match in re.finditer(rf"{instruction}[^;]*;", text)]
    assert places
    for start, end in places:
        with pytest.raises((AssertionError, SimError)):
            product(text[:start] + text[end:], 224)


def test_no_wait_can_leave_one_product_more() -> None:
    text = ptx("unspecialize", 3)
    for pending in ("0", "1"):
        old = f"wgmma.wait_group.sync.aligned {pending}"
        assert old in text
        more = text.replace(old, f"wgmma.wait_group.sync.aligned {int(pending) + 1}")
        with pytest.raises((AssertionError, SimError)):
            product(more, 224)


def test_ptxas_lets_products_overlap() -> None:
    """A wait of the hardware's for each product in the loop would mean that it did not (C7515)."""
    made = compiled("unspecialize")
    assert "serialized" not in "\n".join(map(str, made.remarks))


def test_what_ptxas_could_not_do_is_a_remark() -> None:
    log = (
        "ptxas info    : (C7515) Potential Performance Loss: wgmma.mma_async instructions are "
        "serialized due to insufficient register resources in the function 'k' in line 3\n"
    )
    (remark,) = losses_in(log)
    assert remark.kind == "missed"
    assert "serialized due to insufficient register resources" in str(remark)


@cache
def attention(strategy: str = "unspecialize") -> str:
    """`attention_f16` (64 rows, 64 keys, depth 64): the second product is in flight while the
    first one of the next iteration begins.
    """
    bytecode = (EXAMPLES / "bytecode" / "attention_f16.tileirbc").read_bytes()
    options = {"pipeline-strategy": strategy}
    made = tile_core.compile(bytecode, "sm_90", opt_level=2, options=options, emit="ptx")
    return str(made.stage("ptx"))


def attend(text: str, length: int, schedule: str = "late") -> np.ndarray:
    case = cases.attention("attention_f16", "float16", (1, length, 64), 64)
    grid = (1, 1, 1)
    report = tile_sim.Module(text).launch(
        "attention_f16", grid, None, case.flat, check=True, schedule=schedule
    )
    assert not report.findings
    np.testing.assert_allclose(case.arguments[3][:, :64], case.expected[3][:, :64], atol=2e-3)
    return case.arguments[3]


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
def test_attention_gives_the_same_bits(schedule: str) -> None:
    ahead, still = attention(), attention("none")
    # The first product's, and that behind the loop; without pipelining each has its own.
    assert _WAITS.findall(ahead) == ["0", "0"]
    assert len(_WAITS.findall(still)) == 2
    for length in (40, 64, 72, 136, 328):
        np.testing.assert_array_equal(attend(ahead, length, schedule), attend(still, length))


@pytest.mark.parametrize(
    "instruction", [r"cp\.async\.wait_group", r"wgmma\.wait_group", r"wgmma\.commit_group"]
)
def test_nothing_of_attention_can_go(instruction: str) -> None:
    text = attention()
    for match in re.finditer(rf"{instruction}[^;]*;", text):
        with pytest.raises((AssertionError, SimError)):
            attend(text[: match.start()] + text[match.end() :], 328)


def test_attention_has_to_fence() -> None:
    """The loop's fence comes behind that of the queries, which are stored before the loop."""
    text = re.sub(r"fence\.proxy\.async[^;]*;", "", attention())
    with pytest.raises((AssertionError, SimError)):
        attend(text, 328)

"""Products of warpgroups in flight from one iteration to the next: same bits, nothing too many."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tile_sim
from support.removals import is_caught
from tile_nvptx.emit.resource_remarks import losses_in
from tile_sim import SimError

import tile_core

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))
import cases  # noqa: E402 # pyright: ignore[reportMissingImports] - beside the programs

#: So many steps of 32 that the eight stages of four, with products in flight, are filled again.
_LONG = 14 * 32
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
            product(text[:start] + text[end:], _LONG)


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


# -- products of which one reads what the other gives ----------------------------------------------


@cache
def attention(
    strategy: str = "unspecialize",
    stages: int = 4,
    tensor_maps: str = "host",
    name: str = "attention_f16",
) -> str:
    """`attention_f16` (64 rows, 64 keys, depth 64) or `attention_large_f16` (128 each, for two
    warpgroups): the second product of an iteration is in flight beside the next one.
    """
    bytecode = (EXAMPLES / "bytecode" / f"{name}.tileirbc").read_bytes()
    options = {
        "pipeline-strategy": strategy,
        "unspecialized-pipeline-num-stages": stages,
        "tma-descriptors": tensor_maps,
    }
    made = tile_core.compile(bytecode, "sm_90", opt_level=2, options=options, emit="ptx")
    return str(made.stage("ptx"))


def attend(text: str, length: int, schedule: str = "late") -> np.ndarray:
    large = "attention_large_f16" in text
    name, rows = ("attention_large_f16", 128) if large else ("attention_f16", 64)
    case = cases.attention(name, "float16", (1, length, rows), rows)
    report = tile_sim.Module(text).launch(
        name, (1, 1, 1), None, case.flat, check=True, schedule=schedule
    )
    assert not report.findings
    np.testing.assert_allclose(case.arguments[3][:, :rows], case.expected[3][:, :rows], atol=2e-3)
    return case.arguments[3]


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize(("tensor_maps", "stages"), [("host", 2), ("host", 4), ("off", 3)])
def test_attention_gives_the_same_bits(tensor_maps: str, stages: int, schedule: str) -> None:
    ahead, still = attention(stages=stages, tensor_maps=tensor_maps), attention("none")
    # Two in each step, one product before the loop and one behind it.
    assert sorted(_WAITS.findall(ahead)) == ["0", "0", "0", "1"]
    assert len(_WAITS.findall(still)) == 2
    for length in (40, 72, 136, 328):
        np.testing.assert_array_equal(attend(ahead, length, schedule), attend(still, length))


def test_stages_for_products_beside_each_other_do_not_fit() -> None:
    """Tiles of cp.async have their stages for two steps: two of them leave none to copy into."""
    text = attention(stages=2, tensor_maps="off")
    assert sorted(_WAITS.findall(text)) == ["0", "0"]
    np.testing.assert_array_equal(attend(text, 328), attend(attention("none"), 328))


def test_warpgroups_run_apart() -> None:
    text = attention(name="attention_large_f16")
    loop = text[text.index("wait_group.sync.aligned 1") :]
    assert not re.search(r"\bbar(rier)?\.(cta\.)?sync", loop[: loop.index("try_wait")])
    still = attention("none", name="attention_large_f16")
    wanted = attend(still, 648)
    for schedule in ("late", "early", "random"):
        np.testing.assert_array_equal(attend(text, 648, schedule), wanted)


def fails(text: str, length: int) -> bool:
    return is_caught(lambda schedule: attend(text, length, schedule))


@pytest.mark.parametrize(
    ("instruction", "spare"),
    [
        (r"mbarrier\.arrive\.(?!expect)", 0), (r"mbarrier\.arrive\.expect_tx", 0),
        (r"wgmma\.wait_group", 0), (r"wgmma\.commit_group", 0),
        # Two products begin in a row, and the fence of the first is one for both.
        (r"wgmma\.fence", 1), (r"fence\.mbarrier_init", 0),
    ],
)  # fmt: skip
def test_nothing_of_attention_can_go(instruction: str, spare: int) -> None:
    text = attention()
    found = [match.span() for match in re.finditer(rf"{instruction}[^;]*;", text)]
    missed = [span for span in found if not fails(text[: span[0]] + text[span[1] :], 328)]
    assert found
    assert len(missed) == spare


def test_no_wait_for_stages_of_two_warpgroups_can_go() -> None:
    """But for that of the first step, whose stage nobody has used before; and that of the next
    step's stage, which is a branch for ptxas and waits for nothing new.
    """
    text = attention(name="attention_large_f16")
    waits = [match.span() for match in re.finditer(r"\{[^{}]*mbarrier\.try_wait[^{}]*\}", text)]
    missed = [
        at for at, (start, end) in enumerate(waits) if not fails(text[:start] + text[end:], 648)
    ]
    assert len(waits) - len(missed) >= 4
    assert len(missed) == 2


def test_no_wait_of_attention_can_leave_one_product_more() -> None:
    text = attention()
    for match in re.finditer(r"(wgmma\.wait_group\.sync\.aligned )(\d)", text):
        more = f"{match[1]}{int(match[2]) + 1}"
        with pytest.raises((AssertionError, SimError)):
            attend(text[: match.start()] + more + text[match.end() :], 328)


def test_ptxas_lets_chained_products_overlap() -> None:
    bytecode = (EXAMPLES / "bytecode" / "attention_large_f16.tileirbc").read_bytes()
    made = tile_core.compile(bytecode, "sm_90", opt_level=2)
    assert "serialized" not in "\n".join(map(str, made.remarks))


def test_attention_by_copies_of_threads_has_to_fence() -> None:
    """The loop's fence comes behind that of the queries, which are stored before the loop."""
    text = re.sub(r"fence\.proxy\.async[^;]*;", "", attention(tensor_maps="off"))
    with pytest.raises((AssertionError, SimError)):
        attend(text, 328)

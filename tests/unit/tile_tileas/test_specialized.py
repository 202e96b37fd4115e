"""Which loops an agent of its own copies for, which not and why, and what memory they share."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tile_tileas.pipelining import stage_count
from tile_tileas.pipelining.depth import Room

import tile_core
from tile_core.target import Target

#: Of A and B of `matmul_f16`, tiles of 64 x 32 and 32 x 64.
STAGE_BYTES = 2 * 64 * 32 * 2
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "bytecode"


def made(name: str, target: str, **options: str | int) -> tile_core.Artifact:
    given = {"pipeline-strategy": "warp-specialize", **options}
    bytecode = (EXAMPLES / f"{name}.tileirbc").read_bytes()
    return tile_core.compile(bytecode, target, options=given, stop_after="tileas-insert-barriers")


def reasons(artifact: tile_core.Artifact) -> list[str]:
    return [r.message for r in artifact.remarks if r.name == "NotSpecialized"]


def text_of(artifact: tile_core.Artifact) -> str:
    return str(list(artifact.stages.values())[-1])


@pytest.mark.parametrize(
    ("target", "options", "why"),
    [
        ("sm_80", {}, "not all its loads are copied by tensor maps"),
        ("sm_120", {}, "for products of wgmma alone"),
        ("sm_90", {"tma-descriptors": "off"}, "not all its loads are copied by tensor maps"),
        ("sm_90", {"mma": "mma.sync"}, "for products of wgmma alone"),
        ("sm_90", {"unspecialized-pipeline-num-stages": 2}, "3 stages do not fit"),
    ],
)
def test_what_cannot_be_divided_is_made_by_one_agent(
    target: str, options: dict[str, str | int], why: str
) -> None:
    found = made("matmul_f16", target, **options)
    (reason,) = reasons(found)
    assert why in reason
    assert "agent_switch" not in text_of(found)


def test_without_room_for_what_is_in_flight_one_agent_does_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def small(target: Target) -> tuple[Room, None]:
        return Room(block_bytes=2 * STAGE_BYTES + 4096), None

    monkeypatch.setattr(stage_count, "room_of", small)
    found = made("matmul_f16", "sm_90")
    assert "3 stages do not fit" in reasons(found)[0]
    assert "agent_switch" not in text_of(found)


def test_the_kernels_results_leave_through_the_stages_memory() -> None:
    """A loop that runs once has no copies under way behind it."""
    found = made("matmul_large_f16", "sm_90")
    assert not reasons(found)
    text = text_of(found)
    assert "agent_switch" in text
    places = re.findall(
        r"alignment = 1024 : i32(, drained, pipelined)?, shared_offset = (\d+)", text
    )
    stages = [int(at) for drained, at in places if drained]
    (staged,) = [int(at) for drained, at in places if not drained]
    assert staged in stages


def test_maps_of_the_kernels_own() -> None:
    text = text_of(made("matmul_large_f16", "sm_90", **{"tma-descriptors": "device"}))
    assert text.index("fill_tma_desc") < text.index("agent_switch") < text.rindex("release_tma")

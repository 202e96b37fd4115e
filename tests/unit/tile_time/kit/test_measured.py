"""Measured numbers in machine files."""

from __future__ import annotations

from importlib import resources

import pytest
from tile_time.kit.measured import Measured, clock_number, measured_numbers, with_measured
from tile_time.mechanisms import NUMBERS, every

from tile_core.diagnostics import UsageError
from tile_core.machines import builtin_machines, parse_machine

H100 = builtin_machines()["h100-sxm"]


def _text(name: str) -> str:
    return (resources.files("tile_core.machines") / f"{name}.toml").read_text("utf-8")


def test_every_number_exists_and_is_measured_by_a_mechanism_that_exists() -> None:
    names = {mechanism.name for mechanism in every()}
    for number in NUMBERS:
        assert number.path in H100.sources, number.path
        assert set(number.mechanisms) <= names, number.path


def test_mechanisms_that_give_what_the_file_says_change_nothing() -> None:
    values = {m.name: m.expected for m in every() if m.gpu == "h100-sxm"}
    found = {one.path: one for one in measured_numbers(values, H100)}
    assert len(found) >= 20
    off = [one for one in found.values() if abs(one.change) > 0.06]
    assert not off, off


def test_a_file_with_measured_values_is_read_back() -> None:
    numbers = [
        Measured("memory.l2_latency", 262, 270), Measured("pipes.fma.rate", 4, 3.5),
        Measured("pipes.fma.latency", 4, 4.5), Measured("sync.bar_base", 22, 20),
    ]  # fmt: skip
    text = with_measured(_text("h100-sxm"), numbers, "measured 2026-11-23, NVIDIA H100")
    machine = parse_machine("h100-sxm", text, "test", {})
    assert machine.memory.l2_latency == 270
    assert (machine.pipes.fma.rate, machine.pipes.fma.latency) == (3.5, 4.5)
    assert machine.sources["pipes.fma.rate"].confidence == "A"
    assert machine.sources["memory.l2_latency"].origin == "measured 2026-11-23, NVIDIA H100"
    assert machine.pipes.half == H100.pipes.half
    assert len(text.splitlines()) == len(_text("h100-sxm").splitlines())


def test_a_number_of_the_base_is_not_written_elsewhere() -> None:
    with pytest.raises(UsageError, match=r"no number 'sync\.bar_base' of its own"):
        with_measured(_text("h200"), [Measured("sync.bar_base", 22, 20)], "measured")


def test_the_clock_under_load_follows_from_the_busiest_product() -> None:
    idle = {"tflops": 100.0, "clocks": {"sm_mhz": 1900.0}}
    busy = {"tflops": 132 * 4096 * 1500e6 * 0.8 / 1e12, "clocks": {"sm_mhz": 1500.0}}
    found = clock_number([idle, busy, {"us": 1.0}], H100)
    assert found is not None
    assert found.value == pytest.approx(1980 - 480 / 0.8)
    assert clock_number([idle], H100) is None

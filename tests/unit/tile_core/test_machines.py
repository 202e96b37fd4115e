"""Machine files: every number sourced and in its unit, strict reading, names, plugins, laws."""

from __future__ import annotations

import types
from importlib import resources
from pathlib import Path

import pytest

from tile_core.diagnostics import ConfigurationError
from tile_core.hookspecs import Lazy, hookimpl
from tile_core.machines import (
    builtin_machines,
    find_machine,
    machine_for,
    machines_of,
    parse_machine,
)
from tile_core.registry import Registry
from tile_core.target import builtin_targets

TEXTS = {
    name: resources.files("tile_core.machines").joinpath(f"{name}.toml").read_text()
    for name in builtin_machines()
}


def test_every_number_has_a_unit_a_source_and_a_confidence() -> None:
    for machine in builtin_machines().values():
        assert machine.target in builtin_targets()
        assert len(machine.sources) > 60
        for path, source in machine.sources.items():
            assert source.unit, path
            assert source.origin, path
            assert source.confidence in "ABC", path


def test_peaks_are_those_of_the_data_sheets() -> None:
    """Dense f16 FLOP per clk of an SM; mma.sync of H100 reaches only part of it."""
    machines = builtin_machines()
    assert machines["a100"].peak_flops_per_clk() == 2048
    assert machines["h100-sxm"].peak_flops_per_clk() == 4096
    assert machines["b200"].peak_flops_per_clk() == 8192
    assert machines["b200"].peak_flops_per_clk(8) == 16384
    assert machines["rtx5090"].peak_flops_per_clk() == 512
    assert machines["rtx5090"].peak_flops_per_clk(8) == 2048  # block scales escape the half rate


def test_products_from_shared_memory_lose_what_was_measured() -> None:
    """The published shares of wgmma's peak for small N with both operands in shared memory."""
    wgmma = builtin_machines()["h100-sxm"].wgmma
    for n, share in ((8, 0.217), (16, 0.394), (32, 0.655), (64, 1.0), (256, 1.0)):
        assert wgmma.clk(n, a_in_registers=True) / wgmma.clk(n) == pytest.approx(share, rel=0.05)


def test_intervals_of_tcgen05() -> None:
    unit = builtin_machines()["b200"].tcgen05
    assert unit.clk(128, 256) == 128
    assert unit.clk(128, 64) == 48
    assert unit.clk(128, 64, a_in_tensor_memory=True) == 32
    assert unit.clk(256, 64, ctas=2) == pytest.approx(43.7)
    assert unit.clk(256, 256, ctas=2) == 128


def test_latency_of_tensor_copies() -> None:
    copies = builtin_machines()["b200"].copies
    for kilobytes, clk in ((16, 530), (32, 655), (64, 925)):
        assert copies.tma_load_latency(kilobytes * 1024, 128) == pytest.approx(clk, rel=0.10)


def test_clock_falls_with_tensor_use() -> None:
    clock = builtin_machines()["b200"].clock
    assert clock.at(0) == 1965
    assert clock.at(0.23) == pytest.approx(1750, rel=0.05)
    assert clock.at(0.97) == pytest.approx(1370, rel=0.02)
    assert clock.at(2) == clock.full_tensor


def test_a_file_may_build_on_another() -> None:
    h100, h200 = builtin_machines()["h100-sxm"], builtin_machines()["h200"]
    assert h200.memory.dram_bandwidth > h100.memory.dram_bandwidth
    assert h200.wgmma == h100.wgmma
    assert not set(h200.aliases) & set(h100.aliases)
    assert not h200.stands_for


def test_names() -> None:
    machines = builtin_machines()
    assert find_machine("H100", machines).name == "h100-sxm"
    with pytest.raises(ConfigurationError) as caught:
        find_machine("h10", machines)
    assert "did you mean h100?" in str(caught.value.hint)
    assert "rtx5090" in caught.value.notes[0]


@pytest.mark.parametrize(
    ("target", "name"),
    [("sm_80", "a100"), ("sm_90", "h100-sxm"), ("sm_103", "b200"), ("sm_89", "rtx5090")],
)
def test_every_target_has_a_machine(target: str, name: str) -> None:
    assert machine_for(target).name == name
    assert all(machine_for(one) for one in builtin_targets())
    assert machine_for("sm_95").name in ("h100-sxm", "h200")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('sms = [132, "SM"', 'sms = [132, "CTA"', "has to be in 'SM'"),
        ("sms = [132,", "sms = [-1,", "no number of at least 0"),
        ("sms = [132,", "sms = [true,", "no number of at least 0"),
        ("sms = [132,", "sms = [nan,", "no number of at least 0"),
        ('sms = [132, "SM", "data sheet", "A"]', "sms = 132", "is not [value, unit"),
        ('"data sheet", "A"]', '"data sheet", "D"]', "confidence"),
        ("sms = ", "smz = ", "has no 'smz'"),
        ("[mma]", "[nma]", "'nma' is no section"),
        ("boost = ", "# boost = ", "'clock.boost' is missing"),
        ('target = "sm_90"', "", "'target' is missing"),
        ('target = "sm_90"', 'target = "sm_90"\nbase = "nothing"', "base 'nothing'"),
        ('target = "sm_90"', "target = [", "is no TOML"),
        ('title = "NVIDIA H100 SXM 80 GB"', "title = 3", "wrong type"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(old: str, new: str, words: str) -> None:
    text = TEXTS["h100-sxm"]
    assert old in text
    with pytest.raises(ConfigurationError) as caught:
        parse_machine("mine", text.replace(old, new, 1), "mine.toml", TEXTS)
    assert words in caught.value.message


def test_numbers_can_be_changed_by_path() -> None:
    machine = builtin_machines()["b200"].with_number("pipes.fma.rate", 1)
    assert machine.pipes.fma.rate == 1
    assert machine.pipes.fma.latency == 4
    with pytest.raises(KeyError):
        machine.with_number("pipes.fma.speed", 1)


def test_machines_of_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "my_machines"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "mine.toml").write_text('title = "Mine"\nbase = "a100"\naliases = ["my-gpu"]\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    module = types.SimpleNamespace(
        tile_machines=hookimpl(lambda: [Lazy("mine", "my_machines:mine.toml")])
    )
    found = machines_of(Registry.of(mine=module))
    assert find_machine("my-gpu", found).chip == builtin_machines()["a100"].chip

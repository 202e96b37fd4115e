"""What a simulated device says of itself: the GPU that stands for its architecture."""

from __future__ import annotations

import ctypes

import pytest
from tile_sim.bindings.device import Simulated
from tile_sim.chip import chip_of
from tile_sim.cutile.driver import Driver

from tile_core.machines import builtin_machines, find_machine

_MULTIPROCESSORS = 16


@pytest.mark.parametrize(
    ("capability", "gpu"),
    [((8, 0), "a100"), ((9, 0), "h100"), ((10, 0), "b200"), ((12, 0), "rtx5090")],
)
def test_it_has_as_many_multiprocessors(capability: tuple[int, int], gpu: str) -> None:
    chip = find_machine(gpu, builtin_machines()).chip
    assert chip_of(capability) == chip
    assert Simulated(capability).sms == chip.sms
    found = (ctypes.c_int * 1)()
    driver = Driver.__new__(Driver)
    driver.capability = capability
    driver.attribute(found, _MULTIPROCESSORS, 0)
    assert found[0] == chip.sms


@pytest.mark.torch
def test_a_torch_program_seeds_it_and_asks_for_it() -> None:
    import torch  # pyright: ignore[reportMissingImports]
    from tile_sim.cutile import torch_cuda

    device = torch_cuda._Device((10, 0)).replacements()
    device["manual_seed"](3)
    first = torch.rand(4)
    device["manual_seed_all"](3)
    assert torch.equal(first, torch.rand(4))
    assert device["get_device_properties"]().multi_processor_count == chip_of((10, 0)).sms
    assert device["max_memory_allocated"]() == 0

"""Kernels of cute copy by atoms that hold tensor maps, mbarriers, descriptors, and are right."""

from __future__ import annotations

import numpy as np
import pytest
from support.cute_atoms import BOUND, BOXES, tensor_memory_atoms
from support.cutlass_run import PASSES, ptx
from tile_sim import Module, SimError, TensorMap

import tile_core
from tile_core.diagnostics import CompileError
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import default_registry

TARGETS = ("sm_90", "sm_100", "sm_120")


def boxes(text: str, schedule: str = "late") -> None:
    x = np.arange(40 * 64, dtype=np.float16).reshape(40, 64) % 512
    y, z = np.full_like(x, -1), np.ones_like(x)
    maps = [TensorMap(array, (64, 8), swizzle="128B") for array in (x, y, z)]
    report = Module(text).launch("boxes", (5, 1, 1), None, maps, check=True, schedule=schedule)
    assert not report.findings, "\n".join(map(str, report.findings))
    np.testing.assert_array_equal(y, x + x)
    np.testing.assert_array_equal(z, x + x + 1)


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", [BOXES, BOUND], ids=["bound late", "bound at once"])
def test_boxes(kernel: str, target: str, schedule: str) -> None:
    boxes(ptx(kernel, target), schedule)


@pytest.mark.parametrize(
    "mark", ["bar.sync", "fence.proxy.async", "mbarrier.try_wait", "bulk.wait_group"]
)
def test_boxes_are_ordered(mark: str) -> None:
    lines = ptx(BOXES, "sm_90").split("\n")
    done = ["setp.eq.b32 P1, 0, 0;"] if "try_wait" in mark else []
    kept = [new for line in lines for new in (done if mark in line else [line])]
    assert kept != lines
    with pytest.raises((AssertionError, SimError)):
        boxes("\n".join(kept))


def tensor_memory(text: str) -> None:
    y, z = np.full((128, 8), -1, np.int32), np.full((128, 4), -1, np.int32)
    report = Module(text).launch("moves", (1, 1, 1), None, [y, z], check=True)
    assert not report.findings, "\n".join(map(str, report.findings))
    np.testing.assert_array_equal(y, np.arange(1024).reshape(128, 8))
    np.testing.assert_array_equal(z, np.arange(512).reshape(128, 4))


def test_tensor_memory() -> None:
    text = tensor_memory_atoms()
    assert "arch_copy_sm100_tmem_store" not in text
    tensor_memory(ptx(text, "sm_100"))


def test_its_wait_is_needed() -> None:
    text = ptx(tensor_memory_atoms(), "sm_100")
    assert "tcgen05.wait::st" in text
    with pytest.raises((AssertionError, SimError)):
        tensor_memory(text.replace("tcgen05.wait::st.sync.aligned;", ""))


def lowered(text: str, target: str) -> str:
    job = OptJob(default_registry(), Selection(passes=PASSES, target=target))
    return optimize(text, 0, job).text


@pytest.mark.parametrize("text", [BOXES, BOUND, tensor_memory_atoms()])
def test_ptxas_takes_it(text: str) -> None:
    made = tile_core.compile(
        lowered(text, "sm_100").encode(), "sm_100", opt_level=1, start_at="llvm-dialect"
    )
    assert made.stage("cubin")


MAKE = '%unbound = "cute_nvgpu.atom_make_non_exec_tiled_tma_load"(%mx) : (!map) -> !load'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (MAKE, '%unbound = "cute.make_atom"() : () -> !load', "an atom that holds map and barrier"),
        ("copy_atom_call\"(%load", "copy_atom_call\"(%unbound", "an atom without an mbarrier"),
        ('field = "barrier"', 'field = "mask"', r"what the atom holds \(map, barrier\)"),
        ('(%load) {field = "barrier"} : (!load)', '(%store) {field = "barrier"} : (!store)',
         r"what the atom holds \(map\)"),
        ('{field = "map"} : (!load) -> !map', '{field = "map"} : (!load) -> i64', "gives map as"),
        ("shared::cluster.global.tile.mbarrier::complete_tx::bytes",
         "shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster",
         "takes a mask of blocks"),
    ],
)  # fmt: skip
def test_what_cannot_be(old: str, new: str, words: str) -> None:
    text = BOXES.replace(old, new)
    if "i64" in new:
        text = text.replace('"cute_nvgpu.prefetch_tma_desc"(%map) : (!map) -> ()', "")
    with pytest.raises(CompileError, match=words):
        lowered(text, "sm_90")


def test_parts_of_coordinates_are_not_addressed() -> None:
    use = '%part = "cute_nvgpu.atom_tma_partition"(%load, %s) : (!load, !s) -> !s\n    %row ='
    with pytest.raises(CompileError, match=r"give the copy the cute\.coord where its box begins"):
        lowered(BOXES.replace("%row =", use, 1), "sm_90")

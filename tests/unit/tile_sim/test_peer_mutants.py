"""Faults planted in NVIDIA's code show in the simulator: dropped waits, fences, wrong phases."""

from __future__ import annotations

from collections import Counter

import pytest
from support import peer_mutants
from support.peer_mutants import KERNELS, caught, mutants, reached, right
from tile_sim.peer import tileiras

from tile_core.diagnostics import ConfigurationError


def _installed() -> bool:
    try:
        tileiras.find()
    except ConfigurationError:
        return False
    return True


pytestmark = pytest.mark.skipif(not _installed(), reason="needs tileiras")

#: Kinds of fault that no schedule shows, and why.
UNSEEN = {
    "load wait dropped": "this code uses the registers before the wait as it is: strict findings",
}
_NOT_REFILLED = "frees a slot that nobody fills again"
_OWN_SLOT = "each slice has a slot of its own"
_NO_STEPS = "orders the zeros that a product of no steps stores"
#: Single faults: kernel, architecture, fault, which of its kind, and why nothing showed.
HARMLESS = {
    ("matmul_large_f16", "sm_90", "arrival dropped", 1): _NOT_REFILLED,
    ("matmul_large_f16", "sm_90", "wgmma fence dropped", 1): "accumulators of the same shape",
    ("matmul_large_f16", "sm_100", "store wait dropped", 0): _NO_STEPS,
    ("matmul_large_f16", "sm_100", "tcgen05 fence dropped", 0): _NO_STEPS,
    ("matmul_large_f16", "sm_100", "tcgen05 fence dropped", 3): "no tcgen05 access comes after it",
    ("attention_large_f16", "sm_90", "group wait dropped", 0): _OWN_SLOT,
    ("attention_large_f16", "sm_100", "group wait dropped", 0): _OWN_SLOT,
    ("layer_norm_f16", "sm_100", "proxy fence dropped", 0): _NOT_REFILLED,
    ("layer_norm_f16", "sm_100", "arrival dropped", 0): _NOT_REFILLED,
    ("layer_norm_f16", "sm_100", "arrival dropped", 17): _NOT_REFILLED,
}
SAMPLE = ("wait dropped", "wrong phase", "expect_tx dropped", "fewer bytes expected",
          "commit dropped", "group wait dropped")  # fmt: skip


@pytest.mark.slow
def test_a_sample_of_faults_in_a_product() -> None:
    found = list(mutants("matmul_large_f16", "sm_90"))
    last = {mutant.fault: mutant for mutant in found if mutant.fault in SAMPLE}
    assert len(last) == len(SAMPLE)
    assert [str(m) for m in last.values() if caught(m) is None] == []


@pytest.mark.slow
def test_every_fault_is_seen_or_explained() -> None:
    seen, unseen, unreached = Counter(), [], 0
    for kernel, arch in KERNELS:
        right(kernel, arch)
        for mutant in mutants(kernel, arch):
            how = caught(mutant)
            if how is not None:
                seen[mutant.fault] += 1
            elif not reached(mutant):
                unreached += 1
            else:
                unseen.append(mutant)
    print(f"{seen.total()} seen: {dict(seen)}; {unreached} not reached; {len(unseen)} not seen")
    left = [m for m in unseen if m.fault not in UNSEEN]
    found = {(m.kernel, m.arch, m.fault, m.place) for m in left}
    assert found == HARMLESS.keys()
    assert seen.total() >= 80
    assert seen.keys() | UNSEEN == {fault for fault, _, _ in peer_mutants.FAULTS} - {
        "tcgen05 fence dropped"
    }


def test_the_faults_are_about_what_is_there() -> None:
    """Each kind of fault has a place in some kernel."""
    found = {m.fault for kernel, arch in KERNELS for m in mutants(kernel, arch)}
    assert found == {fault for fault, _, _ in peer_mutants.FAULTS}

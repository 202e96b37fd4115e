"""The planner's code, run in the simulator, moves every element to its place."""

import random
from typing import TYPE_CHECKING

import numpy as np
import ptx_plans
import pytest
import tile_sim
from simulated import table
from tile_cute import gf2
from tile_cute.linear import (
    LinearLayout,
    Plan,
    SharedRoundTrip,
    SharedSide,
    WarpShuffle,
    blocked,
    memory_access,
    plan_conversion,
    swizzled_rows,
)

if TYPE_CHECKING:
    from tile_sim.report import CostReport


def random_layout(rng: random.Random, bits: int, shape: tuple[int, int]) -> LinearLayout:
    """An invertible matrix, some columns mixed, spread over 5 lane and 2 warp bits."""
    vectors = [1 << i for i in range(bits)]
    rng.shuffle(vectors)
    for _ in range(rng.randint(0, 4)):
        i, j = rng.sample(range(bits), 2)
        vectors[i] ^= vectors[j]
    while len(vectors) < 7 or rng.random() < 0.15:
        vectors.insert(rng.randrange(len(vectors) + 1), rng.choice([0, rng.choice(vectors)]))
    flat = {"lane": vectors[:5], "warp": vectors[5:7], "register": vectors[7:]}
    return LinearLayout.from_flat(flat, shape)


def within_warps(rng: random.Random, src: LinearLayout) -> LinearLayout:
    """Another layout of which every warp holds what it holds in `src`."""
    vectors = [*src.flat("lane"), *src.flat("register")]
    rng.shuffle(vectors)
    return LinearLayout.from_flat(
        {"lane": vectors[:5], "register": vectors[5:], "warp": src.flat("warp")}, src.shape
    )


def pair(seed: int) -> tuple[LinearLayout, LinearLayout]:
    rng = random.Random(seed)
    bits = rng.randint(4, 10)
    shape = (1 << bits // 2, 1 << (bits - bits // 2))
    src = random_layout(rng, bits, shape)
    dst = within_warps(rng, src) if seed % 2 else random_layout(rng, bits, shape)
    return src, dst


def images(layout: LinearLayout, bits: int) -> list[np.ndarray]:
    """Registers of all threads; together the images tell all elements of the tile apart."""
    kind = np.uint64 if bits == 64 else np.uint32
    elements = table(layout).astype(kind)
    if bits >= 32:
        return [elements * kind(0x01010101)]
    mask = (1 << bits) - 1
    return [elements >> kind(s) & kind(mask) for s in range(0, layout.size.bit_length() - 1, bits)]


def check(
    src: LinearLayout,
    dst: LinearLayout,
    limit: int | None = None,
    guarded: bool = False,
    bits: int = 32,
) -> Plan:
    """Every element arrives, with the wavefronts and shuffles that the plan names."""
    plan = plan_conversion(src, dst, bits, max_smem=limit, guarded=guarded)
    text = ptx_plans.kernel(plan, src.elements_per_thread, dst.elements_per_thread, bits)
    threads = src.in_size("lane") * src.in_size("warp")
    module = tile_sim.Module(text)
    for given, wanted in zip(images(src, bits), images(dst, bits), strict=True):
        got = np.zeros_like(wanted)
        report = module.launch("k", (1, 1, 1), (threads, 1, 1), [given, got], stats=True)
        np.testing.assert_array_equal(got, wanted)
        assert report.cost is not None
        check_cost(plan, report.cost, src.in_size("warp"))
    return plan


def buffer_of(rng: random.Random, shape: tuple[int, int], bits: int) -> LinearLayout:
    """A shared buffer that holds each element once: rows in a swizzle, or a random matrix."""
    order = rng.choice([(0, 1), (1, 0)])
    span = rng.choice([16, 32, 64, 128])
    if rng.random() < 0.4 and shape[order[0]] * bits >= span * 8:
        return swizzled_rows(shape, order, bits, span)
    vectors = [1 << i for i in range(sum(extent.bit_length() - 1 for extent in shape))]
    if rng.random() < 0.5:
        rng.shuffle(vectors)
    for _ in range(rng.randint(0, 4)):
        i, j = rng.sample(range(len(vectors)), 2)
        vectors[i] ^= vectors[j]
    return LinearLayout.from_flat({"offset": vectors}, shape)


def check_buffer(seed: int, bits: int) -> tuple[SharedSide, SharedSide]:
    """One layout stores to a shared buffer, another one loads: elements and wavefronts."""
    rng = random.Random(seed)
    src, dst = pair(seed)
    buffer = buffer_of(rng, (src.shape[0], src.shape[1]), bits)
    store, load = (memory_access(buffer, tile, bits, unique=False) for tile in (src, dst))
    counts = src.elements_per_thread, dst.elements_per_thread
    module = tile_sim.Module(ptx_plans.through_buffer(store, load, src.size, *counts, bits))
    warps = src.in_size("warp")
    for given, wanted in zip(images(src, bits), images(dst, bits), strict=True):
        got = np.zeros_like(wanted)
        report = module.launch("k", (1, 1, 1), (32 * warps, 1, 1), [given, got], stats=True)
        np.testing.assert_array_equal(got, wanted)
        assert report.cost is not None
        counted = shared_wavefronts(report.cost)
        for name, side in (("st", store), ("ld", load)):
            assert counted[name] == side.wavefronts * warps >> merged_phases(side, bits // 8)
    return store, load


def shared_wavefronts(cost: "CostReport") -> dict[str, int]:
    counted = {"st": 0, "ld": 0}
    for _, text, one in cost.instructions:
        opcode = text.split()[0]
        if ".shared" in opcode:
            counted[opcode.split(".")[0]] += one.shared_wavefronts
    return counted


def merged_phases(side: SharedSide, elem_bytes: int) -> int:
    """log2 of the phases of a wide access that ask for the same words.

    The plan serves halves and quarters of a warp each on its own; the simulator gives a word that
    was fetched for one phase to all of them. They differ for lanes that are replicas of others.
    """
    late = max(0, (side.vector * elem_bytes).bit_length() - 1 - 2)
    first = len(side.lane_map) - late
    span = gf2.Span(side.lane_map[:first])
    return sum(not span.add(offset) for offset in side.lane_map[first:])


def check_cost(plan: Plan, cost: "CostReport", warps: int) -> None:
    """What the simulator counted is what the plan predicts."""
    counted = {"shfl": 0, "st": 0, "ld": 0}
    for _, text, one in cost.instructions:
        opcode = text.split()[0]
        name = opcode.split(".")[0]
        if name == "shfl":
            counted[name] += one.warps
        elif ".shared" in opcode:
            counted[name] += one.shared_wavefronts
    wanted = {"shfl": 0, "st": 0, "ld": 0}
    if isinstance(plan, WarpShuffle):
        wanted["shfl"] = plan.shuffles * warps
    if isinstance(plan, SharedRoundTrip):
        for name, side in (("st", plan.store), ("ld", plan.load)):
            wanted[name] = side.wavefronts * warps >> merged_phases(side, plan.elem_bytes)
    assert counted == wanted, plan.describe()


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("seed", range(80))
def test_random_pairs(seed: int, bits: int) -> None:
    check(*pair(seed), bits=bits)


@pytest.mark.slow
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("block", range(30))
def test_thousands_of_random_pairs(block: int, bits: int) -> None:
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        check(*pair(seed), bits=bits)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("seed", range(25))
def test_random_buffers(seed: int, bits: int) -> None:
    check_buffer(seed, bits)


@pytest.mark.slow
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("block", range(10))
def test_thousands_of_random_buffers(block: int, bits: int) -> None:
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        check_buffer(seed, bits)


def test_buffers_with_and_without_conflicts_occur() -> None:
    sides = [side for seed in range(25) for side in check_buffer(seed, 32)]
    assert {side.vector for side in sides} >= {1, 2}
    assert {side.wavefronts > side.ideal for side in sides} == {True, False}


def test_every_kind_of_plan_occurs() -> None:
    kinds = {type(plan_conversion(*pair(seed), 32)).__name__ for seed in range(80)}
    assert kinds == {"RegisterPermute", "WarpShuffle", "SharedRoundTrip"}


def test_passes() -> None:
    src = blocked((64, 64), (1, 4), (8, 4), (4, 1), (1, 0))
    dst = blocked((64, 64), (1, 1), (2, 16), (4, 1), (1, 0))
    plan = check(src, dst, 4096)
    assert isinstance(plan, SharedRoundTrip)
    assert plan.passes == 4


def test_guarded_passes() -> None:
    src = blocked((64, 64), (1, 4), (2, 16), (4, 1), (1, 0))
    dst = blocked((64, 64), (4, 1), (16, 2), (1, 4), (0, 1))
    plan = check(src, dst, 4096, guarded=True)
    assert isinstance(plan, SharedRoundTrip)
    assert plan.passes == 4


def test_a_wrong_plan_is_caught() -> None:
    src, dst = pair(2)
    other = LinearLayout({**dst.bases, "lane": dst.bases["lane"][::-1]}, dst.shape)
    assert other != dst
    plan = plan_conversion(src, other, 32)
    text = ptx_plans.kernel(plan, src.elements_per_thread, other.elements_per_thread)
    got = np.zeros(table(dst).shape, np.uint32)
    tile_sim.Module(text).launch("k", (1, 1, 1), (128, 1, 1), [table(src).astype(np.uint32), got])
    assert not np.array_equal(got, table(dst))

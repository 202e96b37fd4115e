"""Hints to caches reach the instructions, whoever copies; results do not depend on them."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
import tile_cudatile
from support.programs import I32, Program
from tile_cudatile import types as t
from tile_cudatile.attrs import DivBy
from tile_sim import Module

import tile_core
from tile_core.remarks import Remark

TILES, WIDTH = 5, 512
WEAK = {"memory_ordering_semantics": "weak"}
LOOP, BULK, TMA, THREADS = (
    {"unspecialized-pipeline-num-stages": 3},
    {"bulk-loads": "always", "tma-loads": "never"},
    {"tma-loads": "always", "tma-stores": "always"},
    {"pipeline-strategy": "none", "tma-stores": "never"},
)


def program() -> tile_cudatile.tree.Module:
    """y = the sum of tiles `first` to `last` of x, and as many elements of x once more."""
    p, tile = Program(), t.Tile((WIDTH,), t.F32)
    base, out = (p.argument(t.Tile((), t.Pointer(t.F32))) for _ in range(2))
    views = []
    for pointer, tiles in ((base, TILES), (out, 1)):
        aligned = p.emit("assume", [pointer], pointer.type, predicate=DivBy(16))
        tensor = t.TensorView(t.F32, (tiles * WIDTH,), (1,))
        view = p.emit("make_tensor_view", [aligned, (), ()], tensor)
        part = t.PartitionView((WIDTH,), tensor, (0,), "zero")
        views.append(p.emit("make_partition_view", [view], part))
    bounds = [p.argument(I32), p.argument(I32), p.constant(I32, 1)]

    def body(i, total):
        x = p.emit("load_view_tko", [views[0], (i,)], tile, t.TOKEN, **WEAK)
        return [p.emit("addf", [total, x], tile, rounding_mode="nearest_even")]

    region = p.region([I32, tile], body, "continue")
    done = p.emit("for", [*bounds, (p.constant(tile, 0),)], tile, regions=(region,))
    p.emit("store_view_tko", [done, views[1], (p.constant(I32, 0),)], t.TOKEN, **WEAK)
    return p.module()


@cache
def tileaa(target: str) -> str:
    """In nv_tileaa, where accesses can have such hints; cuda_tile has none."""
    made = tile_core.compile(
        str(tile_cudatile.to_mlir(program())), target, opt_level=2,
        start_at="convert-cudatile-to-tileaa", stop_after="convert-cudatile-to-tileaa",
    )  # fmt: skip
    return str(made.output)


def ptx(hints: str, options: dict, target: str = "sm_90") -> tuple[str, list[Remark]]:
    text = tileaa(target).replace('mem_semantic = "weak"', f'{hints}, mem_semantic = "weak"')
    assert hints in text
    made = tile_core.compile(
        text, target, opt_level=2, start_at="convert-tileaa-to-tileas", emit="ptx",
        options=options, keep_stages=False,
    )  # fmt: skip
    return str(made.stage("ptx")), [r for r in made.remarks if r.name == "CacheHint"]


def check(text: str, schedule: str = "late") -> None:
    x = np.random.default_rng(0).standard_normal(TILES * WIDTH).astype(np.float32)
    wanted, y = np.zeros(WIDTH, np.float32), np.ones(WIDTH, np.float32)
    for tile in x.reshape(TILES, WIDTH):
        wanted += tile
    arguments = [x, y, np.int32(0), np.int32(TILES)]
    report = Module(text).launch("k", (1, 1, 1), None, arguments, check=True, schedule=schedule)
    assert not report.findings
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("schedule", ["late", "early", "random"])
@pytest.mark.parametrize(("policy", "priority"), [("first", "evict_first"), ("last", "evict_last")])
@pytest.mark.parametrize(
    ("options", "load", "store"),
    [
        (THREADS, r"ld\.global", r"st\.global"),
        (LOOP, r"cp\.async\.cg\.shared\.global", r"st\.global"),
        (BULK, r"cp\.async\.bulk\.shared::cluster\S*", r"st\.global"),
        (TMA, r"cp\.async\.bulk\.tensor\.1d\.shared\S*", r"cp\.async\.bulk\.tensor\.1d\.global\S*"),
    ],
)
def test_priorities_of_l2(
    options: dict, load: str, store: str, policy: str, priority: str, schedule: str
) -> None:
    text, remarks = ptx(f'eviction_policy = "{policy}"', options)
    copies = [line for line in text.split("\n") if re.search(rf"({load}|{store})", line)]
    assert len(copies) >= 2
    assert any(re.search(load, line) for line in copies)
    assert any(re.search(store, line) for line in copies)
    for line in copies:
        assert "L2::cache_hint" in line
        assert f"createpolicy.fractional.L2::{priority}.b64" in line
    assert not remarks
    check(text, schedule)


@pytest.mark.parametrize("policy", ["none", "normal"])
def test_what_l2_does_unasked(policy: str) -> None:
    assert "cache_hint" not in ptx(f'eviction_policy = "{policy}"', LOOP)[0]


def test_cache_operators() -> None:
    text, remarks = ptx('cache_modifier = "cs", eviction_policy = "first"', THREADS)
    assert "ld.global.cs.L2::cache_hint.v4.b32" in text
    assert "st.global.cs.L2::cache_hint.v4.b32" in text
    assert not remarks
    check(text)
    text, remarks = ptx('cache_modifier = "ca"', LOOP)
    assert "cp.async.ca.shared.global" in text
    check(text)


@pytest.mark.parametrize(
    ("modifier", "options", "reasons"),
    [
        ("ca", THREADS, ["the instruction has cg, cs only"]),
        ("cs", LOOP, ["the instruction has ca only"] * 2),
        ("cg", BULK, ["copies by the copy engine pass L1 by"] * 2),
    ],
)
def test_a_remark_where_they_have_no_effect(
    modifier: str, options: dict, reasons: list[str]
) -> None:
    text, remarks = ptx(f'cache_modifier = "{modifier}"', options)
    said = [reason for remark in remarks for reason in remark.reasons]
    assert said
    assert set(said) == {f"cache_modifier = {modifier}: {reason}" for reason in reasons}
    check(text)

"""Random programs compile to what they mean, at every level and for every generation of GPUs."""

from __future__ import annotations

import copy
from importlib import resources

import numpy as np
import pytest
import tomli
from support.programs import Program
from support.strategies import RandomStrategy
from support.tiles import registry
from tile_cudatile import types as t
from tile_cudatile.bytecode.writer import write_bytecode
from tile_cudatile.evaluator.formats import element_of
from tile_fuzz.campaign import Plan
from tile_fuzz.case import Argument, Case, Launch
from tile_fuzz.generator import Settings, generate
from tile_fuzz.generator.gaps import GAPS
from tile_fuzz.oracle import LEVELS, TARGETS, Reference, Setting, examine

import tile_core
from tile_core.api import plan_for
from tile_core.diagnostics import ConfigurationError

SMALL = Settings(operations=16, elements=256, avoid=frozenset(GAPS))
PLAN = Plan(range(0), limits=SMALL)


@pytest.mark.parametrize("seed", range(32))
def test_small_programs(seed: int) -> None:
    """`make fuzz` runs thousands of larger ones."""
    failure = examine(generate(seed, SMALL), PLAN.settings(seed), registry())
    assert failure is None, f"seed {seed}, {failure}"


@pytest.mark.parametrize("seed", range(100, 108))
def test_under_random_layouts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tile in another layout than its neighbours: conversions everywhere."""
    monkeypatch.setattr(RandomStrategy, "seed", seed)
    setting = Setting(TARGETS[seed % 4], 1 + seed % 3, options={"layout-strategy": "random"})
    failure = examine(generate(seed, SMALL), [setting], registry())
    assert failure is None, f"seed {seed}, {failure}"


#: Options by which a program's numbers may change, or the order in which it sums: `ftz` is told to
#: the evaluator, too. `approx` stands below: no reference says its last bits.
CHANGING: tuple[dict[str, object], ...] = (
    {"ftz": True}, {"mma": "fma"}, {"mma": "mma.sync", "ftz": True}, {"ftz": True, "mma": "fma"},
)  # fmt: skip

#: Every other option of the levels, at values that its default is not; sums may be taken in
#: another order under the first three, which no generated program can tell.
OTHERS: tuple[dict[str, object], ...] = (
    {"num-warps": 1}, {"num-ctas": 2}, {"layout-strategy": "random"}, {"num-warps": 8},
    {"pipeline-strategy": "none"}, {"unspecialized-pipeline-num-stages": 1},
    {"pipeline-strategy": "warp-specialize"}, {"pipeline-strategy": "unspecialize"},
    {"occupancy": 2},
    {"tma-descriptors": "device"}, {"tma-descriptors": "off"}, {"tma-stores": "always"},
    {"tma-loads": "always"}, {"bulk-loads": "always"}, {"tma-stores": "never"},
    {"scheduler": "list"}, {"scheduler": "cost", "max-stages": 3, "rings": "shared"},
    {"persistent-scheduler": "serial"}, {"persistent-scheduler": "cost", "persistent-stages": 3},
    {"max-constraint-iterations": 0, "scheduler": "cost"},
    {"rrt-size-threshold": 1, "scheduler": "cost"}, {"lineinfo": True}, {"fast-path": False},
    {"reuse-loads": False}, {"dynamic-persistent": True}, {"index-bitwidth": 32},
    {"device-debug": True, "opt-level": 0},
)  # fmt: skip


def test_every_option_of_the_levels_is_run_or_refused() -> None:
    """What a level's table has stands above, or is reserved for later, which is refused."""
    table = plan_for("sm_90", opt_level=3, registry=registry()).options
    values = [o for name in LEVELS for o in _declared(f"O{name}").items()]
    reserved = {name for name, about in values if about.get("reserved")}
    run = {name for options in (*CHANGING, *OTHERS) for name in options}
    assert run | reserved | {"approx"} == {name for name, _ in values} == set(table)
    for name in reserved - run:
        with pytest.raises(ConfigurationError, match=name):
            plan_for("sm_90", opt_level=3, options={name: True}, registry=registry())


def _declared(level: str) -> dict[str, dict[str, object]]:
    text = resources.files("tile_pipelines").joinpath(f"{level}.toml").read_text("utf-8")
    return tomli.loads(text).get("options", {})


@pytest.mark.parametrize("number", range(len(OTHERS)), ids=lambda n: "-".join(OTHERS[n]))
def test_under_every_other_option(number: int) -> None:
    """The same numbers as the evaluator's, at two targets each."""
    options = dict(OTHERS[number])
    level = int(str(options.pop("opt-level", 3)))
    settings = [Setting(TARGETS[(number + i) % 4], level, options=options) for i in (0, 1)]
    failure = examine(generate(700 + number, SMALL), settings, registry())
    assert failure is None, failure


@pytest.mark.parametrize("seed", range(200, 216))
def test_under_options_that_change_numbers(seed: int) -> None:
    setting = Setting(TARGETS[seed // 4 % 4], 3, options=CHANGING[seed % 4])
    failure = examine(generate(seed, SMALL), [setting], registry())
    assert failure is None, f"seed {seed}, {failure}"


@pytest.mark.parametrize("seed", range(216, 240))
def test_approx_is_what_each_operation_might_say(seed: int) -> None:
    """Of a random program it makes what rounding modes that are written make, to the byte."""
    program = generate(seed, SMALL).module
    written = copy.deepcopy(program)
    for op in (op for entry in written.entries for op in entry.body.walk()):
        mode = {"divf": "full", "sqrt": "approx"}.get(op.name)
        rounds = op.attrs.get("rounding_mode") == "nearest_even"
        if mode and rounds and element_of(op.results[0].type) == t.F32:
            op.attrs["rounding_mode"] = mode
    ptx = [
        tile_core.compile(write_bytecode(module), TARGETS[seed % 4], emit="ptx", options=options)
        for module, options in ((program, {"approx": True}), (written, {}))
    ]
    assert ptx[0].stages["ptx"] == ptx[1].stages["ptx"]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 2000, 50))
def test_many_under_options_that_change_numbers(first: int) -> None:
    for seed in range(first, first + 50):
        setting = Setting(TARGETS[seed // 4 % 4], 3, options=CHANGING[seed % 4])
        failure = examine(generate(seed, SMALL), [setting], registry())
        assert failure is None, f"seed {seed}, {failure}"


def test_every_level_meets_every_target() -> None:
    found = {(s.target, s.opt_level) for seed in range(16) for s in PLAN.settings(seed)}
    assert found == {(target, level) for target in TARGETS for level in LEVELS}
    for seed in range(16):
        settings = PLAN.settings(seed)
        assert {s.target for s in settings} == {*TARGETS}
        assert {s.opt_level for s in settings} == {*LEVELS}


def test_options_that_change_numbers_reach_the_evaluator() -> None:
    """A sum that is subnormal: kept without `ftz`, zero with it, and no failure either way."""
    program = Program()
    tile = t.Tile((8,), t.F32)
    small = program.constant(tile, 2.0**-140)
    total = program.emit("addf", [small, small], tile, rounding_mode="nearest_even")
    program.store(total, (8,), t.F32)
    module = program.module()
    case = Case(module, [Launch("k", (1, 1, 1), (Argument("f32", 8),))])
    for options in ({}, {"ftz": "true"}, {"ftz": True}):
        setting = Setting("sm_90", 2, options=options)
        assert examine(case, (setting,), registry()) is None
        kept = Reference(case, ftz=setting.ftz).after[0][0]
        assert bool(np.any(kept)) == (not options)
    planted = Reference(case, ftz=True)
    assert examine(case, (Setting("sm_90", 2),), registry(), planted) is not None

"""`tilec plugins new`: a small plugin package that works, to start from."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template

from tile_core.diagnostics import ConfigurationError
from tile_core.hookspecs import SPEC_VERSION


def create_plugin(name: str, directory: Path, kind: str = "pass") -> Path:
    """Create package `name` in a new folder of `directory`; the folder.

    Args:
        kind: what the package brings, "pass" or "scheduler".

    Raises:
        ConfigurationError: the name is no package name, or the folder is there already.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ConfigurationError(
            f"'{name}' is not a plugin name",
            hint="use lower case letters, digits and single dashes, e.g. my-tile-passes",
        )
    root = directory / name
    package = name.replace("-", "_")
    values = {"name": name, "package": package, "spec": str(SPEC_VERSION)}
    try:
        root.mkdir(parents=True)
        for path, text in _KINDS[kind].items():
            file = root / path.replace("PACKAGE", package)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(Template(text).substitute(values), encoding="utf-8")
    except FileExistsError as error:
        raise ConfigurationError(f"'{root}' is already there") from error
    except OSError as error:
        raise ConfigurationError(f"cannot write '{root}': {error.strerror}") from error
    return root


_PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.26"]
build-backend = "hatchling.build"

[project]
name = "$name"
version = "0.1.0"
description = "Passes for tilec"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["tilec"]

[project.entry-points."tile.plugins"]
$package = "$package.plugin"

[tool.hatch.build.targets.wheel]
packages = ["$package"]
"""

_README = """\
# $name

A plugin of `tilec` with one pass, `$name-drop-unused-constants`.

    pip install -e .
    tilec plugins list
    tilec opt input.mlir -p $name-drop-unused-constants
    pytest
"""

_PLUGIN = '''\
"""What this package registers. It imports neither MLIR nor the passes: names are enough."""

from collections.abc import Iterable

from tile_core.hookspecs import Lazy, hookimpl

#: The plugin interface that this package is made for.
TILE_SPEC_VERSION = $spec


@hookimpl
def tile_passes() -> Iterable[Lazy]:
    return (
        Lazy(
            "$name-drop-unused-constants",
            "$package.drop_unused_constants:DropUnusedConstants",
            "erase constants that nothing uses",
        ),
    )
'''

_PASS = '''\
"""Erase constants that nothing uses."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option


@dataclass(frozen=True)
class DropUnusedConstants(Pass):
    """arith.constant without uses => nothing"""

    name = "$name-drop-unused-constants"
    anchor = "func.func"
    statistics = {"erased": "constants that were erased"}
    limit: int = option(1_000_000, "how many to erase at most")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        unused = [constant for constant in _constants(op) if not list(constant.result.uses)]
        for constant in unused[: self.limit]:
            constant.erase()
            cx.count("erased")


def _constants(op: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                inner = view.operation
                if inner.name == "arith.constant":
                    found.append(inner)
                found += _constants(inner)
    return found
'''

_TEST = '''\
"""The pass does what it says, leaves the rest alone, and is found by tilec."""

import pytest

from $package import plugin
from tile_core.diagnostics import ConfigurationError
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import Registry

PASS = "$name-drop-unused-constants"


def run(text: str, passes: str = PASS):
    registry = Registry.of($package=plugin)
    return optimize(text, 0, OptJob(registry, Selection(passes=passes)))


def test_unused_constants_go():
    result = run("func.func @f() { %0 = arith.constant 1 : i32 return }")
    assert "arith.constant" not in result.text
    assert result.artifact.statistics == {(PASS, "erased"): 1}


def test_used_constants_stay():
    result = run("func.func @f() -> i32 { %0 = arith.constant 1 : i32 return %0 : i32 }")
    assert "arith.constant 1 : i32" in result.text


def test_limit():
    text = "func.func @f() { %0 = arith.constant 1 : i32 %1 = arith.constant 2 : i32 return }"
    assert run(text, PASS + "{limit=1}").text.count("arith.constant") == 1


def test_wrong_option_is_named():
    with pytest.raises(ConfigurationError, match="limt"):
        run("func.func @f() { return }", PASS + "{limt=1}")
'''

_FILES = {
    "pyproject.toml": _PYPROJECT,
    "README.md": _README,
    "PACKAGE/__init__.py": '"""Passes for tilec."""\n',
    "PACKAGE/plugin.py": _PLUGIN,
    "PACKAGE/drop_unused_constants.py": _PASS,
    "tests/test_drop_unused_constants.py": _TEST,
}

_SCHEDULER_README = """\
# $name

A plugin of `tilec` with one scheduler, `$name`.

    pip install -e .
    tilec schedule kernel.tileirbc --scheduler $name --with list
    tilec compile kernel.tileirbc -O3 --scheduler $name
    pytest
"""

_SCHEDULER_PLUGIN = '''\
"""What this package registers. It imports nothing heavy: names are enough."""

from collections.abc import Iterable

from tile_core.hookspecs import Lazy, hookimpl

#: The plugin interface that this package is made for.
TILE_SPEC_VERSION = $spec


@hookimpl
def tile_schedulers() -> Iterable[Lazy]:
    return (Lazy("$name", "$package.scheduler:FirstFit", "each in the first cycle with room"),)
'''

_SCHEDULER = '''\
"""Operations in dependence order, each in the first cycle with room; one iteration at a time."""

from __future__ import annotations

from typing import ClassVar

from tile_core.sched import (
    Infeasible,
    LoopGraph,
    MachineModel,
    ReservationTable,
    Schedule,
    topological_order,
)


class FirstFit:
    """One iteration after the other; deterministic, ties by program order."""

    name: ClassVar[str] = "$name"

    def schedule(self, loop: LoopGraph, model: MachineModel) -> Schedule | Infeasible:
        order = topological_order(loop)
        if order is None:
            return Infeasible("it depends on itself within one iteration")
        waits = [max([op.duration, op.latency, 1]) for op in loop.ops]
        longest = max((edge.latency for edge in loop.edges), default=0)
        horizon = sum(waits) + longest * (len(waits) + 1) + 1  # so long that nothing wraps
        table = ReservationTable(horizon, model)
        start = [0] * len(loop.ops)
        for op in order:
            for edge in loop.edges:
                if edge.dst == op and edge.distance == 0:
                    start[op] = max(start[op], start[edge.src] + edge.latency)
            uses = loop.ops[op].footprint
            at = table.earliest(uses, start[op], horizon - 1)
            if at is None:
                return Infeasible(f"'{loop.ops[op].name}' asks for more than the SM has")
            table.commit(uses, at)
            start[op] = at
        # The next iteration begins when this one is done, its last result included.
        return Schedule(tuple(start), max(horizon, 1))
'''

_SCHEDULER_TEST = '''\
"""Schedules keep latencies and resources, and the scheduler is found by tilec."""

from $package import plugin
from $package.scheduler import FirstFit
from tile_core.registry import Registry
from tile_core.sched import Edge, Infeasible, LoopGraph, LoopOp, MachineModel, Schedule, violations

MODEL = MachineModel("sm_90", (("alu", 1), ("lsu", 1)), num_warps=4)


def test_it_is_registered():
    assert Registry.of($package=plugin).load("scheduler", "$name") is FirstFit


def test_latencies_and_resources_are_kept():
    ops = (
        LoopOp("load", "load", 400, occupancy=8, unit="lsu"),
        LoopOp("load", "load", 400, occupancy=8, unit="lsu"),
        LoopOp("add", "compute", 4),
    )
    loop = LoopGraph(ops, (Edge(0, 2, 400), Edge(1, 2, 400), Edge(2, 2, 4, distance=1)))
    found = FirstFit().schedule(loop, MODEL)
    assert isinstance(found, Schedule)
    assert not list(violations(loop, MODEL, found))
    assert found.start == (0, 8, 408)


def test_a_circle_is_refused():
    ops = (LoopOp("a", "compute", 1), LoopOp("b", "compute", 1))
    loop = LoopGraph(ops, (Edge(0, 1, 1), Edge(1, 0, 1)))
    assert isinstance(FirstFit().schedule(loop, MODEL), Infeasible)
'''

_SCHEDULER_FILES = {
    "pyproject.toml": _PYPROJECT.replace("Passes for tilec", "A scheduler for tilec"),
    "README.md": _SCHEDULER_README,
    "PACKAGE/__init__.py": '"""A scheduler for tilec."""\n',
    "PACKAGE/plugin.py": _SCHEDULER_PLUGIN,
    "PACKAGE/scheduler.py": _SCHEDULER,
    "tests/test_scheduler.py": _SCHEDULER_TEST,
}

#: What a package can bring -> its files.
_KINDS = {"pass": _FILES, "scheduler": _SCHEDULER_FILES}

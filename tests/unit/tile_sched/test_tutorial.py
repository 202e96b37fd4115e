"""The scheduler of docs/schedulers.md works as the text says, on random loops as well."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from support.loops import SMALL, loops

from tile_core.sched import Constraints, LoopGraph, Schedule, violations

TEXT = (Path(__file__).parents[3] / "docs" / "schedulers.md").read_text()
BLOCK = re.compile(r"```python\n# (\S+\.py)\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("tutorial")
    for name, text in BLOCK.findall(TEXT):
        (folder / name).write_text(text)
    sys.path.insert(0, str(folder))
    try:
        yield [importlib.import_module(name) for name in ("first_fit", "test_first_fit")]
    finally:
        sys.path.remove(str(folder))


def test_the_test_of_the_tutorial(modules: list[Any]) -> None:
    modules[1].test_iterations_overlap()


@settings(max_examples=60, deadline=None)
@given(loop=loops())
def test_what_it_finds_is_legal(modules: list[Any], loop: LoopGraph) -> None:
    from dataclasses import replace

    free = replace(loop, ops=tuple(replace(op, constraints=Constraints()) for op in loop.ops))
    found = modules[0].FirstFit().schedule(free, SMALL)
    if isinstance(found, Schedule):
        assert not list(violations(free, SMALL, found))

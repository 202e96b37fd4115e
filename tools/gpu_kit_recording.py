"""Launches of the simulator's own tests, with what the arrays held before and after.

The tests fix how the simulator reads what the PTX ISA leaves open; the same launches on a GPU say
whether the hardware reads it so. `ROWS` names the table's rows in tile-sim's README.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tile_sim import Module
from tile_sim.program.layout import size_of

ROOT = Path(__file__).resolve().parents[1]
_SIM = "tests/unit/tile_sim"
#: Row => tests that show it (node ids, or their beginnings), by target.
ROWS: dict[str, dict[str, tuple[str, ...]]] = {
    "sm_100": {
        "metadata of sparse products": (f"{_SIM}/test_tcgen05_variants.py::test_product",),
        "zero-column mask": (
            f"{_SIM}/test_tcgen05_variants.py::test_columns_that_count_as_zero_are_not_read",
        ),
        "B where A has no element": (
            f"{_SIM}/test_tcgen05_variants.py::test_elements_left_out_meet_no_infinity",
        ),
        "layouts B, E, G": (f"{_SIM}/test_tcgen05.py::test_pair_of_ctas",),
        ".ashift": (f"{_SIM}/test_tcgen05_moves.py::test_ashift",),
        "tcgen05.shift": (f"{_SIM}/test_tcgen05_moves.py::test_shift",),
        "4-bit types in bytes of tensor memory": (f"{_SIM}/test_tcgen05_moves.py::test_copy",),
        "shapes of tcgen05.ld and st": (
            f"{_SIM}/test_tcgen05.py::test_load_and_store_shapes_agree",
        ),
    },
    "sm_90": {
        "operands of wgmma": (f"{_SIM}/test_wgmma.py::test_product",),
        "steps inside a swizzle atom": (
            f"{_SIM}/test_wgmma.py::test_steps_along_k_inside_a_swizzle_atom",
        ),
        "A of wgmma in registers": (f"{_SIM}/test_wgmma.py::test_a_in_registers",),
    },
    "sm_120": {
        "fragments of mma.sync": (f"{_SIM}/test_mma.py::test_dense",),
        "block scales of mma.sync": (f"{_SIM}/test_mma.py::test_block_scaled",),
    },
}
#: Tests whose products are of reals: hardware rounds their sums in steps that the ISA leaves open.
_ROUNDED = re.compile(r"test_(?:product|dense|steps|a_in)\w*(?:\[.*?\b(f32|f16)\.\w+\.\w+)?")
_TARGET = re.compile(r"^\.target (sm_\d+)", re.MULTILINE)
_MOST, _FEW = 90, 2  # launches of a row
_SCHEDULE = "late"


@dataclass(frozen=True)
class Recorded:
    """One launch."""

    ptx: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] | None
    arguments: tuple[Any, ...]
    after: dict[int, np.ndarray]

    def rounded(self, kind: str) -> Recorded:
        """The same with results told as floats, which may differ by rounding."""
        dtype = {"f32": np.float32, "f16": np.float16}[kind]
        return replace(self, after={i: a.view(dtype) for i, a in self.after.items()})


class _Recorder:
    """A pytest plugin: launches of tests that passed."""

    def __init__(self) -> None:
        self.found: dict[str, list[Recorded]] = {}
        self._now: list[Recorded] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self._now = []
        return (yield)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and report.passed:
            self.found[report.nodeid] = self._now

    def launch(self, original: Any) -> Any:
        recorder = self

        def launch(module: Module, entry: str, grid: Any, block: Any, args: Any, **options: Any):
            before = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
            report = original(module, entry, grid, block, args, **options)
            usual = set(options) <= {"schedule", "seed", "cluster"}
            if usual and options.get("schedule", _SCHEDULE) == _SCHEDULE and block is not None:
                recorder.keep(module, grid, block, options.get("cluster"), before, args)
            return report

        return launch

    def keep(
        self, module: Module, grid: Any, block: Any, cluster: Any, before: list[Any], args: Any
    ) -> None:
        after = {
            i: a.copy() for i, a in enumerate(args)
            if isinstance(a, np.ndarray) and a.tobytes() != before[i].tobytes()
        }  # fmt: skip
        params = module.program("k").entry.params
        given = tuple(_bits(a, size_of(p)) for a, p in zip(before, params, strict=True))
        self._now.append(Recorded(module.text, grid, block, cluster, given, after))


def _bits(value: Any, size: int) -> Any:
    """A Python integer as the bytes of a parameter."""
    if isinstance(value, int):
        return (value % (1 << 8 * size)).to_bytes(size, "little")
    return value


def recorded(target: str, quick: bool = False) -> Iterator[tuple[str, str, Recorded]]:
    """(row, name of the launch, the launch) of all rows of a target."""
    most = _FEW if quick else _MOST
    for row, tests in ROWS.get(target, {}).items():
        count = 0
        for name, launches in _run(tests).items():
            for one in launches:
                own = (found := _TARGET.search(one.ptx)) is not None and found[1] == target
                if count < most and own and one.after and _plain(one.arguments):
                    yield row, f"{row}: {name.rpartition('::')[2]}", one
                    count += 1


def rounding_of(target: str, name: str) -> str | None:
    """The type of a result that hardware may round otherwise; None where all bits count.

    The tests of tcgen05 multiply integers, whose products are exact.
    """
    found = _ROUNDED.search(name) if target != "sm_100" else None
    return None if found is None or "s32." in name else found[1] or "f32"


def _plain(arguments: tuple[Any, ...]) -> bool:
    """Whether a kit can hold the arguments: arrays, NumPy scalars, bytes."""
    return all(isinstance(a, np.ndarray | np.generic | bytes) for a in arguments)


def _run(tests: tuple[str, ...]) -> dict[str, list[Recorded]]:
    recorder = _Recorder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Module, "launch", recorder.launch(Module.launch))
        patch.chdir(ROOT)
        options = ["-p", "no:cacheprovider", "--import-mode=importlib", "-o", "addopts="]
        with redirect_stdout(StringIO()) as said:
            status = pytest.main([*options, *tests], plugins=[recorder])
    if status not in (0, pytest.ExitCode.OK):
        raise RuntimeError(f"tests of the simulator failed: {', '.join(tests)}\n{said.getvalue()}")
    return recorder.found

"""What a program means, what its code does: the evaluator and the simulator, on every target."""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tile_cudatile
from tile_sim import Module

import tile_core
from tile_core.target import builtin_targets

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))
import cases  # noqa: E402 # pyright: ignore[reportMissingImports] - beside the programs


@cache
def meant(name: str) -> tuple[np.ndarray | None, ...]:
    """The arrays after the reference evaluator has run the program."""
    case = cases.case(name)
    program = tile_cudatile.read_bytecode(case.bytecode)
    tile_cudatile.evaluate(program, name, case.grid, case.flat)
    return tuple(
        argument if wanted is not None else None
        for argument, wanted in zip(case.arguments, case.expected, strict=True)
    )


#: Targets of `cases.LARGE`, at -O3 alone; test_examples.py runs them at other levels.
FEW = ("sm_80", "sm_90", "sm_120")
#: One of each family; code for the others differs in little, and `make fuzz` runs it.
FAMILIES = ("sm_80", "sm_89", "sm_90", "sm_100", "sm_120")


@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(name, target, marks=() if target in FAMILIES else pytest.mark.slow)
        for name in cases.NAMES
        for target in (FEW if name in cases.LARGE else builtin_targets())
    ],
)
def test_code_does_what_the_program_means(name: str, target: str) -> None:
    """At every -O level, with no race, no access out of bounds and nothing uninitialised."""
    for level in (3,) if name in cases.LARGE else range(4):
        case = cases.case(name)
        made = tile_core.compile(
            case.bytecode, target, opt_level=level, emit="ptx", keep_stages=False
        )
        report = Module(str(made.stage("ptx"))).launch(name, case.grid, None, case.flat, check=True)
        assert not report.findings, f"-O{level}: {report.findings[0]}"
        for got, wanted in zip(case.arguments, meant(name), strict=True):
            if wanted is not None:
                relative, absolute = cases.TOLERANCES[wanted.dtype.name]
                np.testing.assert_allclose(got, wanted, relative, absolute, err_msg=f"-O{level}")

"""No barrier too many: without any one of them, the simulator's check mode reports a race.

Two kinds are excepted. Between accesses that tokens order and that go through two pointers: a
caller may pass one array for both, and only then do threads meet. And around atomics that acquire
and release: what the block's other threads stored before has to be seen by whoever reads the
atomic's value, which is another block.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.programs import Program
from tile_cudatile import types as t
from tile_sim import Module, SimError
from unit.tile_nvptx.operations import CASES

import tile_core

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))
import cases  # noqa: E402 # pyright: ignore[reportMissingImports] - beside the programs

BARRIER = re.compile(r"^\t(?:@!?%p\d+ )?(?:bar|barrier)\.(?:cta\.)?sync[^\n]*\n", re.MULTILINE)
Launch = Callable[[Module], Sequence[Any]]


def without_each(ptx: str) -> list[str]:
    """`ptx` less one barrier, for each of them; lines keep their numbers."""
    return [ptx[: at.start()] + "\n" + ptx[at.end() :] for at in BARRIER.finditer(ptx)]


def findings(ptx: str, launch: Launch) -> Sequence[Any]:
    """What check mode says, errors that end a launch included."""
    try:
        return launch(Module(ptx))
    except SimError as error:
        return [error]


def every_barrier_is_needed(ptx: str, launch: Launch) -> int:
    """How many barriers there are; fails at the first one that can go."""
    assert not findings(ptx, launch)
    broken = without_each(ptx)
    for at, text in enumerate(broken):
        assert findings(text, launch), f"barrier {at} of {len(broken)} is not needed"
    return len(broken)


#: Barriers of each example at -O2. That of a loop whose stages tensor maps fill keeps a stage from
#: being filled while others read it, which takes more iterations than stages; the warps of one
#: warpgroup meet at each wgmma as well, so that products are those of single warps here.
EXPECTED = {
    "layer_norm_f32": 2, "matmul_f16": 3, "rms_norm_f32": 1, "saxpy_loop_f32": 0,
    "softmax_f16": 2, "transpose_f32": 1, "vector_add_f32": 0,
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_examples(name: str) -> None:
    case = cases.case(name)
    few = {"unspecialized-pipeline-num-stages": 2, "mma": "mma.sync"}
    made = tile_core.compile(
        case.bytecode, "sm_90", opt_level=2, emit="ptx", keep_stages=False, options=few
    )

    def launch(module: Module) -> Sequence[Any]:
        new = cases.case(name)
        return module.launch(name, new.grid, None, new.flat, check=True).findings

    assert every_barrier_is_needed(str(made.stage("ptx")), launch) == EXPECTED[name]


#: At -O3 the result of attention takes the room of a stage that an odd number of steps reads last;
#: the example has two. The backward pass adds to its sums by atomics that acquire and release.
AT_LEVELS = [
    (name, level)
    for name in cases.NAMES
    for level in (0, 3)
    if "large" not in name and "backward" not in name and (name, level) != ("attention_f16", 3)
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "level"), AT_LEVELS)
def test_examples_at_other_levels(name: str, level: int) -> None:
    case = cases.case(name)
    made = tile_core.compile(
        case.bytecode,
        "sm_80",
        opt_level=level,
        emit="ptx",
        keep_stages=False,
        # What follows a loop may take the room of its stages: of two, the last of three iterations
        # reads the one that is written first.
        options={"unspecialized-pipeline-num-stages": 2},
    )

    def launch(module: Module) -> Sequence[Any]:
        new = cases.case(name)
        return module.launch(name, new.grid, None, new.flat, check=True).findings

    every_barrier_is_needed(str(made.stage("ptx")), launch)


def _operations() -> list[Any]:
    """Every operation; the first case of some families always, all in the long run."""
    quick = {"atomics", "folds", "product", "shapes"}
    marked: list[Any] = []
    for make, kind in CASES:
        marks = () if make.__name__ in quick else pytest.mark.slow
        quick.discard(make.__name__)
        marked.append(pytest.param((make, kind), id=f"{make.__name__}-{kind}", marks=marks))
    return marked


@pytest.mark.parametrize("strategy", [None, 0])
@pytest.mark.parametrize("case", _operations())
def test_operations(case: Any, strategy: int | None) -> None:
    """With random layouts too, which need conversions."""
    make, kind = case
    made = make(kind)

    def launch(module: Module) -> Sequence[Any]:
        new = make(kind)
        return module.launch("k", new.grid, None, new.args, check=True).findings

    every_barrier_is_needed(made.p.ptx("sm_90", 2, strategy), launch)


def reversed_through(extent: int) -> Program:
    """b = 1, then c = a read backwards, after a token; a and b may be one array."""
    program, tile = Program(), t.Tile((extent,), t.F32)
    lanes = program.emit("iota", [], t.Tile((extent,), t.I32))
    last = program.constant(t.Tile((extent,), t.I32), extent - 1)
    back = program.emit("subi", [last, lanes], lanes.type, overflow="none")
    a, b, c = (program.argument(t.Tile((), t.Pointer(t.F32))) for _ in range(3))
    weak = {"memory_ordering_semantics": "weak"}
    ones = program.constant(tile, 1)
    written = program.emit(
        "store_ptr_tko", [program.addresses(b, t.F32, lanes), ones], t.TOKEN, **weak
    )
    pointers = program.addresses(a, t.F32, back)
    read = program.emit("load_ptr_tko", [pointers, None, None, written], tile, t.TOKEN, **weak)
    program.emit("store_ptr_tko", [program.addresses(c, t.F32, lanes), read], t.TOKEN, **weak)
    return program


def test_two_pointers_may_be_one() -> None:
    """The exception: needed if, and only if, both arguments are the same array."""
    extent = 512
    ptx = reversed_through(extent).ptx()
    arrays = [np.zeros(extent, np.float32) for _ in range(3)]

    def launch(*which: int) -> Launch:
        addresses = b"".join(arrays[at].ctypes.data.to_bytes(8, "little") for at in which)
        return lambda module: (
            module.launch_raw("k", (1, 1, 1), None, addresses, arrays, check=True).findings
        )

    same, apart = launch(0, 0, 2), launch(0, 1, 2)
    assert not findings(ptx, same)
    (broken,) = without_each(ptx)
    assert findings(broken, same)
    assert not findings(broken, apart)

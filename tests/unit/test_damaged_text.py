"""No text ends the process that compiles it: damaged IR of every stage, and damaged bytecode.

Each runs in a child, which says before it begins what it is about to do.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from support.tiles import registry
from unit.tile_cudatile.mutants import MUTATIONS

import tile_core
from tile_core.api import plan_for
from tile_core.diagnostics import TileError
from tile_core.opt import OptJob, Selection, optimize

BYTECODE = Path(__file__).parents[2] / "examples" / "bytecode"
#: Example, target, level: all passes and dialects between them.
PROGRAMS = (("vector_add_f32", "sm_80", 0), ("softmax_f16", "sm_90", 2), ("matmul_f16", "sm_90", 3))
_TOKEN = re.compile(r'"[^"]*"|[%#@!^]?[A-Za-z_][\w.$]*|-?\d+(?:\.\d+)?|\s+|.', re.DOTALL)
_NUMBERS = ("0", "1", "-1", "2", "3", "64", str(1 << 31), str(1 << 40), str(1 << 63))
_SIZES = "operandSegmentSizes = array<i32: {}>"
_TYPES = ("i1", "i8", "i32", "i64", "f16", "f32", "index", "bf16", "!llvm.ptr", "vector<4xi32>")


@cache
def stages() -> tuple[tuple[str, str, int, str], ...]:
    """Text, target, level, and the pass that takes the text."""
    found: list[tuple[str, str, int, str]] = []
    for name, target, level in PROGRAMS:
        data = (BYTECODE / f"{name}.tileirbc").read_bytes()
        resolved = plan_for(target, opt_level=level, registry=registry())
        made = tile_core.compile(
            data, target, opt_level=level, emit="mlir", registry=registry()
        ).stages
        before = "tileir"
        for segment in resolved.segments:
            start = f"{segment.name}/{segment.passes[0].id}"
            found.append((str(made[before]), target, level, start))
            before = f"mlir:{segment.name}"
    return tuple(found)


def damaged(text: str, rng: random.Random) -> str:
    """One to three tokens are gone, copied, swapped, or other numbers and types; or a line is."""
    tokens = _TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = [i for i, token in enumerate(tokens) if token and not token.isspace()]
        at, way = rng.choice(places), rng.randrange(6)
        numbers = [i for i in places if re.fullmatch(r"-?\d+", tokens[i])]
        types = [i for i in places if re.fullmatch(r"x?[if]\d+|x?bf16|index", tokens[i])]
        alike = [i for i in places if tokens[i][0] == tokens[at][0]]
        if way == 0:
            tokens[at] = ""
        elif way == 1 and numbers:
            tokens[rng.choice(numbers)] = rng.choice(_NUMBERS)
        elif way == 2 and types:
            tokens[rng.choice(types)] = rng.choice(_TYPES)
        elif way == 3:
            tokens[at] = tokens[rng.choice(alike)]
        else:
            lines = "".join(tokens).splitlines(keepends=True)
            first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[first] = "" if way == 4 else lines[second]
            tokens = _TOKEN.findall("".join(lines))
    return "".join(tokens)


def attempts(seed: int, count: int) -> Iterator[str]:
    """Says what is about to happen, each time before it does."""
    rng = random.Random(seed)
    for number in range(count):
        text, target, level, start = rng.choice(stages())
        broken = damaged(text, rng)
        yield f"text {number} of seed {seed}, {target} -O{level} from {start}"
        try:
            if number % 2:
                tile_core.compile(
                    broken, target, opt_level=level, start_at=start, emit="mlir",
                    registry=registry(),
                )  # fmt: skip
            else:
                optimize(broken, 0, OptJob(registry(), Selection(opt_level=level, target=target)))
        except TileError as error:
            assert error.message  # noqa: PT017 - which error it is, is open
        data = bytearray((BYTECODE / f"{rng.choice(PROGRAMS)[0]}.tileirbc").read_bytes())
        rng.choice(list(MUTATIONS))(data, rng, [bytes(data)])
        yield f"bytecode {number} of seed {seed}, {target} -O{level}"
        try:
            tile_core.compile(
                bytes(data), target, opt_level=level, emit="mlir", registry=registry()
            )
        except TileError as error:
            assert error.message  # noqa: PT017
    yield "done"


def check(seed: int, count: int) -> None:
    """Run the attempts in a child; the last thing that it said names the input that ended it."""
    stages()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            for what in attempts(seed, count):
                os.write(writer, what.encode() + b"\n")
            status = 0
        except BaseException as error:  # it is said, and the child ends in any case
            os.write(writer, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        said = stream.read().decode(errors="replace").splitlines()
    _, status = os.waitpid(child, 0)
    assert (status, said[-1:]) == (0, ["done"]), said[-3:]


def test_damaged_programs_end_in_errors() -> None:
    check(seed=1, count=30)


@pytest.mark.parametrize("sizes", ["1, 1, 1, 3, 0", "1, 0, 0, 1", "1, 1, -1, 0, 0"])
def test_sizes_of_groups_that_are_wrong(sizes: str) -> None:
    """Found by the above: verifiers looked for operands that were not there."""
    text = next(text for text, *_ in stages() if "nv_tileaa." in text and "operandSegment" in text)
    wrong = re.sub(r"operandSegmentSizes = array<i32: [^>]*>", _SIZES.format(sizes), text)
    with pytest.raises(TileError) as caught:
        optimize(wrong, 0, OptJob(registry(), Selection()))
    assert "internal error" not in caught.value.message


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 22))
def test_many_damaged_programs(seed: int) -> None:
    check(seed, count=200)

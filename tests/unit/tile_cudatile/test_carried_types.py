"""Loops and branches whose values have many types: many changes between two, and many different.

NVIDIA's compiler takes loops that carry 60 values of as many types.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from support.tiles import registry
from tile_cudatile import evaluate, from_mlir, parse_text, to_mlir, verify, write_bytecode
from tile_cudatile.dialect.ops import CARRIED_RUNS
from tile_sim import Module

import tile_core
from tile_core.diagnostics import CompileError
from tile_core.mlir import ir

COUNTS = (33, 40, 60, 100)
#: Shapes of at most eight elements, the small ones first.
SHAPES = sorted(
    (s for rank in range(5) for s in product((1, 2, 4, 8), repeat=rank) if np.prod(s) <= 8),
    key=lambda s: (np.prod(s), len(s), s),
)
ROUNDS = 3


def alternating(count: int) -> list[str]:
    """Two types, by turns."""
    return [("8xi32", "8xf32")[i % 2] for i in range(count)]


def different(count: int) -> list[str]:
    """No two alike."""
    found = ["x".join([*map(str, s), e]) for s in SHAPES for e in ("i32", "f32")]
    assert len(set(found)) >= count
    return found[:count]


KINDS = {"alternating": alternating, "different": different}


def written(types: list[str], body: str) -> str:
    """A kernel that carries value i, at first i, and stores the results' first elements."""
    lines = ["%n0 = constant <i32: 0> : tile<i32>", "%one = constant <i32: 1> : tile<i32>"]
    for i, t in enumerate(types):
        number = f"{i}.0" if "f32" in t else str(i)
        lines.append(f"%c{i} = constant <{t[-3:]}: {number}> : tile<{t}>")
    lines.append(body)
    for i, t in enumerate(types):
        flat = int(np.prod([int(x) for x in t.split("x")[:-1]] or [1]))
        rank = t.count("x")
        index = ", ".join(["%n0"] * rank)
        one = "x".join(["1"] * rank + [t[-3:]])
        last = f"%r#{i}"
        if flat > 1:
            lines.append(f"%e{i} = extract {last}[{index}] : tile<{t}> -> tile<{one}>")
            last = f"%e{i}"
        if rank:
            lines.append(f"%q{i} = reshape {last} : tile<{one}> -> tile<{t[-3:]}>")
            last = f"%q{i}"
        if "i32" in t:
            lines.append(f"%f{i} = itof {last} signed : tile<i32> -> tile<f32>")
            last = f"%f{i}"
        lines.append(f"%o{i} = constant <i32: {i}> : tile<i32>")
        lines.append(f"%p{i} = offset %out, %o{i} : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>")
        lines.append(
            f"%s{i} = store_ptr_tko weak %p{i}, {last} : tile<ptr<f32>>, tile<f32> -> token"
        )
    text = "\n".join(lines)
    return (
        "cuda_tile.module @m { entry @k(%out: tile<ptr<f32>>, %n: tile<i32>) {\n"
        f"{text}\nreturn }} }}"
    )


def body_of(kind: str, types: list[str]) -> str:
    """Adds each value's number to it, `ROUNDS` times in a loop and once in a branch."""
    names = lambda prefix: ", ".join(f"%{prefix}{i}" for i in range(len(types)))  # noqa: E731
    tiles = ", ".join(f"tile<{t}>" for t in types)
    carried = ", ".join(f"%a{i} = %c{i}" for i in range(len(types)))

    def sums(result: str, left: str) -> str:
        return "\n".join(
            f"%{result}{i} = add{'f' if 'f32' in t else 'i'} %{left}{i}, %c{i} : tile<{t}>"
            for i, t in enumerate(types)
        )

    if kind == "for":
        return f"""
    %r:{len(types)} = for %i in (%n0 to %n, step %one) : tile<i32> iter_values({carried}) -> ({
            tiles
        }) {{
      {sums("b", "a")}
      continue {names("b")} : {tiles}
    }}"""
    if kind == "loop":
        more = f"tile<i32>, {tiles}"
        return f"""
    %r0:{len(types) + 1} = loop iter_values(%i = %n0, {carried}) : {more} -> {more} {{
      %d = cmpi greater_than_or_equal %i, %n, signed : tile<i32> -> tile<i1>
      if %d {{
        break %i, {names("a")} : {more}
      }}
      %j = addi %i, %one : tile<i32>
      {sums("b", "a")}
      continue %j, {names("b")} : {more}
    }}"""
    return f"""
    %d = cmpi greater_than %n, %one, signed : tile<i32> -> tile<i1>
    %r:{len(types)} = if %d -> ({tiles}) {{
      {sums("b", "c")}
      yield {names("b")} : {tiles}
    }} else {{
      yield {names("c")} : {tiles}
    }}"""


def text_of(kind: str, types: list[str]) -> str:
    text = written(types, body_of(kind, types))
    if kind == "loop":  # its first result counts
        for i in reversed(range(len(types))):
            text = text.replace(f"%r#{i} ", f"%r0#{i + 1} ").replace(f"%r#{i}[", f"%r0#{i + 1}[")
    return text


def expected(kind: str, count: int) -> np.ndarray:
    return np.arange(count, dtype=np.float32) * (2 if kind == "if" else ROUNDS + 1)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("types", KINDS)
@pytest.mark.parametrize("kind", ["for", "loop", "if"])
def test_values_keep_their_places(kind: str, types: str, count: int) -> None:
    """Evaluated as written, and after MLIR."""
    module = parse_text(text_of(kind, KINDS[types](count)))
    verify(module)
    with ir.Context():
        made = to_mlir(module)
        assert made.operation.verify()
        again = from_mlir(made)
    verify(again)
    for each in (module, again):
        out = np.zeros(count, np.float32)
        evaluate(each, "k", (1,), [out, ROUNDS])
        np.testing.assert_array_equal(out, expected(kind, count))


@pytest.mark.parametrize(
    ("kind", "types", "count", "level"),
    [("for", "different", 60, 3), ("for", "alternating", 100, 0), ("loop", "different", 40, 3),
     ("if", "different", 100, 0), ("loop", "alternating", 33, 0), ("if", "alternating", 60, 3)],
)  # fmt: skip
def test_it_compiles_and_runs(kind: str, types: str, count: int, level: int) -> None:
    data = write_bytecode(parse_text(text_of(kind, KINDS[types](count))))
    made = tile_core.compile(data, "sm_90", opt_level=level, emit="ptx", registry=registry())
    out = np.zeros(count, np.float32)
    Module(str(made.stage("ptx"))).launch("k", (1, 1, 1), None, [out, ROUNDS])
    np.testing.assert_array_equal(out, expected(kind, count))


def test_more_than_there_is_room_for() -> None:
    module = parse_text(text_of("if", different(CARRIED_RUNS + 1)))
    with pytest.raises(CompileError) as caught:
        to_mlir(module)
    assert f"'cuda_tile.if' op has values of more than {CARRIED_RUNS} types" in caught.value.message

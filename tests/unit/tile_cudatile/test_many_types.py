"""Operations whose values alternate in type more often than the dialect has runs."""

from __future__ import annotations

import numpy as np
import pytest
from tile_cudatile import evaluate, from_mlir, parse_text, to_mlir, verify, write_bytecode
from tile_cudatile.dialect.ops import CARRIED_RUNS, RUNS

import tile_core
from tile_core.mlir import ir

COUNT = CARRIED_RUNS + 1
TYPES = ", ".join("tile<f32>" if i % 2 else "tile<i32>" for i in range(COUNT))
TILES = TYPES.replace("tile<", "tile<8x")
CONSTANTS = "\n".join(
    f"%c{i} = constant <{'f32' if i % 2 else 'i32'}: {i}{'.0' if i % 2 else ''}> : "
    f"tile<{'f32' if i % 2 else 'i32'}>"
    for i in range(COUNT)
)
LANES = "%lanes = iota : tile<8xi32>\n%parts = itof %lanes signed : tile<8xi32> -> tile<8xf32>\n"
LANES += "\n".join(
    f"""%k{i} = constant <{"f32" if i % 2 else "i32"}: {i}{".0" if i % 2 else ""}> : {t}
    %v{i} = {"addf %parts" if i % 2 else "addi %lanes"}, %k{i} : {t}"""
    for i, t in enumerate(TILES.split(", "))
)


def names(prefix: str) -> str:
    return ", ".join(f"%{prefix}{i}" for i in range(COUNT))


def sums(result: str, left: str, right: str) -> str:
    """Each of the `left` plus the `right` of its number, or of its type if there is one only."""
    return "\n".join(
        f"%{result}{i} = add{'f' if i % 2 else 'i'} %{left}{i}, %{right}{i} : "
        f"tile<{'f32' if i % 2 else 'i32'}>"
        for i in range(COUNT)
    )


def program(body: str, results: str = "r") -> str:
    """A kernel that runs `body`, which names its results, and stores every one of them."""
    stores = "\n".join(
        f"""%f{i} = {f"addf %{results}#{i}, %c1" if i % 2 else f"itof %{results}#{i} signed"} : {
            "tile<f32>" if i % 2 else "tile<i32> -> tile<f32>"
        }
        %o{i} = constant <i32: {i}> : tile<i32>
        %p{i} = offset %out, %o{i} : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
        %s{i} = store_ptr_tko weak %p{i}, %f{i} : tile<ptr<f32>>, tile<f32> -> token"""
        for i in range(COUNT)
    )
    return (
        "cuda_tile.module @m { entry @k(%out: tile<ptr<f32>>, %n: tile<i32>) {\n"
        f"{CONSTANTS}\n{body}\n{stores}\nreturn }} }}"
    )


CARRIED = ", ".join(f"%a{i} = %c{i}" for i in range(COUNT))
EARLY = f"""
    %two = constant <i32: 2> : tile<i32>
    %d = cmpi equal %i, %two, signed : tile<i32> -> tile<i1>
    if %d {{
      continue {names("a")} : {TYPES}
    }}
"""
BODIES = {
    "for": f"""
  %one = constant <i32: 1> : tile<i32>
  %r:{COUNT} = for %i in (%c0 to %n, step %one) : tile<i32> iter_values({CARRIED}) -> ({TYPES}) {{
    {EARLY}
    {sums("b", "a", "c")}
    continue {names("b")} : {TYPES}
  }}""",
    "loop": f"""
  %r:{COUNT} = loop iter_values({CARRIED}) : {TYPES} -> {TYPES} {{
    %d = cmpi greater_than_or_equal %a2, %n, signed : tile<i32> -> tile<i1>
    if %d {{
      break {names("a")} : {TYPES}
    }}
    {sums("b", "a", "c")}
    continue {names("b")} : {TYPES}
  }}""",
    "if": f"""
  %d = cmpi equal %n, %c4, signed : tile<i32> -> tile<i1>
  %r:{COUNT} = if %d -> ({TYPES}) {{
    {sums("b", "c", "c")}
    yield {names("b")} : {TYPES}
  }} else {{
    yield {names("c")} : {TYPES}
  }}""",
    "reduce": f"""
  {LANES}
  %r:{COUNT} = reduce {names("v")} dim=0 identities=[{
        ", ".join(f"{i}.0 : f32" if i % 2 else f"{i} : i32" for i in range(COUNT))
    }] : {TILES} -> {TYPES}
  ({
        ", ".join(
            f"%e{i}: tile<{t}>, %a{i}: tile<{t}>"
            for i, t in enumerate("f32" if i % 2 else "i32" for i in range(COUNT))
        )
    }) {{
    {sums("b", "e", "a")}
    yield {names("b")} : {TYPES}
  }}""",
}


def run(module) -> np.ndarray:
    out = np.zeros(COUNT, np.float32)
    evaluate(module, "k", (1,), [out, 4])
    return out


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_order_in_mlir_does_not_change_what_a_program_means(body: str) -> None:
    module = parse_text(program(body))
    verify(module)
    with ir.Context():
        made = to_mlir(module)
        assert made.operation.verify()
        again = from_mlir(made)
    verify(again)
    result = run(module)
    assert len(set(result)) > RUNS  # what stands in the wrong place would be seen
    np.testing.assert_array_equal(run(again), result)


def test_scans_and_prints() -> None:
    text = " ".join("%f" if i % 2 else "%d" for i in range(COUNT))
    module = parse_text(
        program(
            BODIES["if"] + f'\n%t = print_tko "<{text} 100%%>", {names("c")} : {TYPES} -> token'
        )
    )
    verify(module)
    with ir.Context():
        again = from_mlir(to_mlir(module))
    verify(again)
    out = np.zeros(COUNT, np.float32)
    printed = [
        evaluate(each, "k", (1,), [out, 4]).printed  # one text a print
        for each in (module, again)
    ]
    assert len(printed[1]) == 9  # of 16 values each
    assert "".join(printed[1]) == "".join(printed[0]) == f"<{expected()} 100%>"


def expected() -> str:
    return " ".join(f"{i}.000000" if i % 2 else str(i) for i in range(COUNT))


@pytest.mark.parametrize("name", ["for", "reduce"])
def test_it_compiles(name: str) -> None:
    data = write_bytecode(parse_text(program(BODIES[name])))
    assert tile_core.compile(data, "sm_90", emit="ptx").stage("ptx")

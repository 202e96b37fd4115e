"""The verbs `fuzz`, `reduce` and `bisect`, and the files that they exchange."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.planted import registry
from tile_cudatile import parse_text, print_text
from tile_cudatile.types import SCALARS
from tile_fuzz.case import FILLS, Argument, Case, Launch, argument_of, data_of, load, save
from tile_fuzz.generator import Settings, generate
from tile_sim import SimError
from tile_sim.arguments import parse_arguments, parse_spec

from tile_core.cli.main import run
from tile_core.diagnostics import InputError

WRONG = """
entry @k(%p: tile<ptr<i32>>) {
  %0 = constant <i32: 1> : tile<i32>
  %1 = constant <i32: 0> : tile<i32>
  %2 = divi %0, %1 signed : tile<i32>
  %3 = store_ptr_tko weak %p, %2 : tile<ptr<i32>>, tile<i32> -> token
  return
}
"""


def written(path: Path, text: str = WRONG) -> Path:
    save(Case(parse_text(text), [Launch("k", (1, 1, 1), (Argument("i32", 1),))]), path)
    return path


def test_a_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--operations", "6", "--elements", "16", "--gpu-name", "sm_90", "-O", "1")
    assert run(["fuzz", "--seeds", "0:2", *options]) == 0
    assert capsys.readouterr().out.startswith("2 programs, 0 failures")


def test_a_failure_is_reported_saved_and_made_small(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An option that does not exist makes every program fail."""
    options = ("--gpu-name", "sm_90", "--set", "layout-strategy=absent", "--operations", "6")
    assert run(["fuzz", "--seeds", "3", *options, "--save", str(tmp_path)]) != 0
    text = capsys.readouterr().out
    assert "seed 3: compile: " in text
    assert "tilec reduce --seed 3 --gpu-name sm_90 -O" in text
    assert "--set layout-strategy=absent --operations 6 -o seed3.mlir" in text
    small = tmp_path / "small.mlir"
    saved = str(tmp_path / "seed3.tileirbc")
    assert run(["reduce", saved, *options[:4], "-O1", "-o", str(small)]) == 0
    assert "operations became 1, " in capsys.readouterr().out
    assert small.read_text().startswith("module {")


def test_a_program_is_compiled_once_with_each_value(capsys: pytest.CaptureFixture[str]) -> None:
    """`blocked` passes, and a failure names the value that it is of."""
    options = ("--gpu-name", "sm_90", "-O", "2", "--operations", "6", "--elements", "16")
    assert run(["fuzz", "--seeds", "3", *options, "--each", "layout-strategy=blocked,absent"]) != 0
    text = capsys.readouterr().out
    assert "(--gpu-name sm_90 -O2 --set layout-strategy=absent)" in text
    assert run(["fuzz", "--seeds", "3", *options, "--each", "scheduler=list,ims"]) == 0
    assert run(["fuzz", "--seeds", "3", *options, "--each", "scheduler=list,,ims"]) == 1
    assert "is not OPTION=V1,V2" in capsys.readouterr().err


def test_every_combination_is_compiled_and_each_code_runs_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--gpu-name", "sm_90", "-O", "3", "--operations", "6", "--elements", "64")
    each = ("--each", "scheduler=serial,list,ims", "--each", "pipeline-strategy=none,unspecialize")
    assert run(["fuzz", "--seeds", "3:5", *options, *each, "--favour", "loops", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["codes"]) == {"3", "4"}
    for codes in found["codes"].values():
        assert len(codes) == 6
        assert codes[0] == 0
        assert set(codes) == set(range(max(codes) + 1))
    assert run(["fuzz", "--seeds", "3", *options, *each]) == 0
    assert "6 compilations gave " in capsys.readouterr().out


def test_undefined_programs_are_no_failures_of_the_compiler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "wrong.tileirbc")
    assert run(["bisect", str(path), "--gpu-name", "sm_90"]) != 0
    assert "no pass can be named: the program does what the language leaves undefined" in (
        capsys.readouterr().out
    )


def test_what_does_not_fail_is_not_reduced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "right.mlir", WRONG.replace("divi", "subi").replace("signed", ""))
    assert run(["reduce", str(path), "-o", str(tmp_path / "small.mlir")]) != 0
    assert "the program does not fail" in capsys.readouterr().err
    assert run(["bisect", str(path), "-O1"]) == 0
    assert "results are those of the reference evaluator" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", ["mlir", "tileirbc"])
def test_a_file_holds_the_whole_case(tmp_path: Path, suffix: str) -> None:
    for seed in range(3):
        case = generate(seed, Settings(elements=64))
        path = tmp_path / f"case.{suffix}"
        save(case, path)
        again = load(path.read_bytes(), registry())
        assert again.launches == case.launches
        assert print_text(again.module) == print_text(case.packed())


def test_assembly_is_read_too() -> None:
    text = f"cuda_tile.module @kernels {{{WRONG}}}"
    assert load(text.encode(), registry()).module.entries[0].name == "k"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fuzz", "--seeds", "a:b"], "--seeds 'a:b' is not FIRST:LAST"),
        (["reduce", "-o", "x.mlir"], "give a file or --seed"),
        (
            ["fuzz", "--seeds", "0:1", "--avoid", "f8E5M3"],
            "--avoid 'f8E5M3' names nothing that is drawn",
        ),
        (["bisect", "FILE", "--grid", "0"], "--grid '0' is not X,Y,Z"),
        (["bisect", "FILE", "--arg", "f32"], "--entry has to name a kernel"),
        (["bisect", "PLAIN"], "the program has no recipe"),
    ],
)
def test_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    case = generate(0, Settings(operations=4))
    two = Case(parse_text(WRONG + WRONG.replace("@k", "@l")), case.launches)
    save(two, tmp_path / "FILE")
    (tmp_path / "PLAIN").write_text(f"cuda_tile.module @kernels {{{WRONG}}}")
    given = [str(tmp_path / a) if a in ("FILE", "PLAIN") else a for a in arguments]
    assert run(given) == 1
    assert words in capsys.readouterr().err


def test_a_broken_recipe_is_refused() -> None:
    case = Case(parse_text(WRONG))
    case.module.producer = "tile-fuzz [{]"
    from tile_fuzz.case import launches_of

    with pytest.raises(InputError, match="recipe in the program's producer is broken"):
        launches_of(case.module)


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("f32[64]=bits@7", Argument("f32", 64, "bits", 7)),
        ("~f16[3]", Argument("f16", 3, exact=False)),
        ("i32=-5", Argument("i32", value=-5)),
        ("f64=0.25", Argument("f64", value=0.25)),
    ],
)
def test_arguments_as_they_are_spelt(text: str, argument: Argument) -> None:
    assert argument_of(parse_spec(text), 0) == argument


@pytest.mark.parametrize("text", ["f33[4]", "f32[4]=absent", "i32=x", "f32[4", ""])
def test_arguments_that_make_no_sense(text: str) -> None:
    with pytest.raises(SimError):
        parse_spec(text)


def test_all_verbs_launch_on_the_same_data(tmp_path: Path) -> None:
    """`run` makes of the same words what `bisect` and `reduce` do, files included."""
    np.save(tmp_path / "a.npy", np.arange(6, dtype=np.float16).reshape(2, 3))
    texts = [
        "f32[8,4]=random", "i32[5]=random", "~f8e4m3[4]=normal@9", "f64[3]=2.5", "i64=7",
        "bf16[9]=bits", "u8[3]=arange", "i1[4]=random", f"@{tmp_path / 'a.npy'}",
    ]  # fmt: skip
    for at, (text, value) in enumerate(zip(texts, parse_arguments(texts), strict=True)):
        mine = data_of(argument_of(parse_spec(text), at))
        assert np.asarray(mine).tobytes() == np.asarray(value).tobytes(), text
    assert not argument_of(parse_spec(texts[2]), 2).exact


def test_an_example_without_a_recipe_is_launched_as_by_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = Path(__file__).parents[3] / "examples" / "bytecode" / "vector_add_f32.tileirbc"
    words = ["--grid", "1", "--with-shape", *["--arg", "f32[128]=random"] * 2, "--arg", "f32[128]"]
    assert run(["bisect", str(file), "--gpu-name", "sm_90", "-O1", *words]) == 0
    assert "results are those of the reference evaluator" in capsys.readouterr().out


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("name", [n for n in SCALARS if n not in ("i4", "f4E2M1FN")])
def test_data_are_the_same_every_time(name: str, fill: str) -> None:
    first, second = (data_of(Argument(name, 100, fill, 3)) for _ in range(2))
    assert isinstance(first, np.ndarray)
    assert first.tobytes() == second.tobytes()
    if fill == "bits":
        assert len(set(first.tobytes())) > 1


def test_examples_of_old_versions_are_cases_too() -> None:
    """A recipe is the producer of a program, which versions before 13.3 have not."""
    from tile_cudatile import read_bytecode, verify, write_bytecode
    from tile_fuzz.case import Case

    files = sorted((Path(__file__).parents[3] / "examples" / "bytecode").glob("*.tileirbc"))
    assert files
    for file in files:
        packed = Case(read_bytecode(file.read_bytes())).packed()
        again = read_bytecode(write_bytecode(packed))
        verify(again)
        assert again.producer == packed.producer

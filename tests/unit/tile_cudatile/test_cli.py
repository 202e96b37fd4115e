"""`tilec dis`, `tilec as` and `tileirdisasm`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tile_cudatile import disassembler, print_text, read_bytecode
from unit.tile_cudatile import samples
from unit.tile_cudatile.peer import DISASSEMBLER, needs_disassembler

from tile_core.cli.main import run

SAMPLE = "matmul.13.4"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "k.tileirbc"
    path.write_bytes(samples.sample(SAMPLE))
    return path


def test_there_and_back(program: Path, tmp_path: Path) -> None:
    text, again = tmp_path / "k.txt", tmp_path / "again.tileirbc"
    assert run(["dis", str(program), "-o", str(text)]) == 0
    assert text.read_text() == print_text(read_bytecode(samples.sample(SAMPLE)))
    assert run(["as", str(text), "--bytecode-version", "13.4", "-o", str(again)]) == 0
    assert print_text(read_bytecode(again.read_bytes())) == text.read_text()


def test_bad_input_writes_nothing(program: Path, tmp_path: Path, capsys) -> None:
    program.write_bytes(samples.sample(SAMPLE)[:100])
    out = tmp_path / "out"
    assert run(["dis", str(program), "-o", str(out)]) == 3
    assert "exceeds remaining data size" in capsys.readouterr().err
    program.write_text("entry @k() { what }")
    assert run(["as", str(program), "-o", str(out)]) == 3
    assert f"loc(\"{program}\":1:14): error: unknown operation 'what'" in capsys.readouterr().err
    program.write_text("entry @k() { %0 = fpowi %0, %0 : tile<f32>, tile<i32> }")
    assert run(["as", str(program), "-o", str(out)]) == 3
    program.write_bytes(samples.sample(SAMPLE))
    assert run(["as", str(program), "-o", str(out)]) == 3
    assert "hint: for bytecode there is `tilec dis`" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "error: no input file provided"),
        (["/nowhere"], 2, "unable to read input file '/nowhere': No such file or directory"),
        ([__file__], 3, "error: input does not correspond to Tile IR bytecode"),
        (["a", "b"], 1, "Too many positional arguments specified!"),
        (["--bogus"], 1, "Unknown command line argument '--bogus'."),
        (["--preview=foo", "a"], 1, "unknown preview feature 'foo'; supported features: simt"),
        (["-g=maybe", "a"], 1, "'maybe' is invalid value for boolean argument! Try 0 or 1"),
        (["--version"], 0, ""),
        (["--help"], 0, ""),
    ],
)
def test_flags(arguments: list[str], code: int, message: str, capsys) -> None:
    assert disassembler.main(arguments) == code
    assert message in capsys.readouterr().err


@needs_disassembler
@pytest.mark.parametrize("flags", [[], ["-g"], ["--preview=simt", "-g=0"]])
@pytest.mark.parametrize("cut", [0, 100])
def test_like_the_released_tool(program: Path, flags: list[str], cut: int, capfd) -> None:
    import subprocess

    program.write_bytes(program.read_bytes()[: cut or None])
    assert DISASSEMBLER is not None
    released = subprocess.run(
        [DISASSEMBLER, *flags, str(program)], capture_output=True, text=True, check=False
    )
    code = disassembler.main([*flags, str(program)])
    out, err = capfd.readouterr()
    assert (code, out, err.strip()) == (
        released.returncode,
        released.stdout,
        released.stderr.strip(),
    )

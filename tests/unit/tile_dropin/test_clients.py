"""The command lines of programs that call `tileiras`, as they write them, and what they read back.

cuTile Python 1.7, cuTile.jl, cutile-rs, Triton to Tile IR.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tile_cudatile.bytecode.writer import write_bytecode
from tile_cudatile.tree import Module
from tile_dropin.main import run

from tile_core.diagnostics import CompileError, SourceLocation
from tile_core.elf import Elf

PROGRAM = str(Path(__file__).parents[3] / "examples" / "bytecode" / "vector_add_f32.tileirbc")

CALLS = {
    "cuTile": ("IN", "-o", "OUT", "--gpu-name", "sm_90", "-O3", "--lineinfo"),
    "cuTile, debugging": ("IN", "-o", "OUT", "--gpu-name", "sm_90", "-O0", "--device-debug"),
    "cuTile, remarks": (
        "IN", "-o", "OUT", "--gpu-name", "sm_90", "-O3", "--lineinfo", "--remark-format=yaml",
        "--remarks=all", "--remarks-output-file=REMARKS",
    ),
    "cuTile.jl, cutile-rs": ("--gpu-name", "sm_90", "-O3", "--lineinfo", "-o", "OUT", "IN"),
    "Triton to Tile IR": ("--gpu-name=sm_90", "--opt-level=3", "IN", "-o", "OUT"),
}  # fmt: skip


@pytest.mark.parametrize("client", CALLS)
def test_a_client_gets_its_cubin(
    client: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    files = {"IN": PROGRAM, "OUT": str(tmp_path / "out.cubin")}
    remarks = tmp_path / "remarks.yaml"
    arguments = [files.get(a, a).replace("REMARKS", str(remarks)) for a in CALLS[client]]
    assert run(arguments, "tileiras") == 0
    assert capfd.readouterr() == ("", "")
    cubin = Elf((tmp_path / "out.cubin").read_bytes())
    assert cubin.find(".text.vector_add_f32") is not None
    assert remarks.exists() == (client == "cuTile, remarks")


@pytest.mark.parametrize("minor", range(1, 8))
def test_the_probe_of_versions_ends_at_the_newest(minor: int, tmp_path: Path) -> None:
    """cuTile compiles an empty module, newest version first, until one is taken."""
    empty = bytearray(write_bytecode(Module(), version=(13, min(minor, 5))))
    empty[9] = minor
    (tmp_path / "empty").write_bytes(empty)
    out = tmp_path / "empty.cubin"
    code = run([str(tmp_path / "empty"), "-o", str(out), "--gpu-name", "sm_120"], "tileiras")
    assert (code, out.exists()) == ((0, True) if minor <= 5 else (3, False))


def test_the_version_is_read_as_clients_read_it(capfd: pytest.CaptureFixture[str]) -> None:
    """cuTile.jl and cutile-rs take the number after V, cuTile the whole text as a key."""
    assert run(["--version"], "tileiras") == 0
    text = capfd.readouterr().out
    found = re.search(r"release (\d+)\.(\d+), V(\d+)\.(\d+)\.(\d+)", text)
    assert found is not None
    assert found.groups()[:2] == found.groups()[2:4] == ("13", "5")
    assert run(["--version"], "tileiras") == 0
    assert capfd.readouterr().out == text


def test_an_error_becomes_a_place_in_python(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """cuTile takes the first place that a line names; lines without one belong to the message."""
    parse = pytest.importorskip("cuda.tile._compile")._parse_tileir_stderr

    def refuse(*_arguments: object, **_options: object) -> None:
        where = SourceLocation("kernel.py", 12, 5)
        raise CompileError("no such thing", where=where, notes=("because",), hint="do another")

    monkeypatch.setattr("tile_core.cached.compile_cached", refuse)
    assert run([PROGRAM, "--gpu-name=sm_90", "-o", str(tmp_path / "out")], "tileiras") == 5
    message, where = parse(capfd.readouterr().err)
    assert (where.filename, where.line, where.col) == ("kernel.py", 12, 5)
    place = 'loc("kernel.py":12:5): '
    assert message.splitlines() == [
        "no such thing", place + "note: because", "hint: do another",
        "failed to compile Tile IR program",
    ]  # fmt: skip

"""Several gpu.modules in one program: targets of their own, in parallel, the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_core.cli.main import run
from tile_core.diagnostics import CompileError, ConfigurationError, ExitCode, InputError
from tile_core.parts import Part, chosen, parts_of
from tile_core.registry import default_registry

KERNEL = """
  llvm.func @NAME(%p: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
    %x = llvm.load %p : !llvm.ptr<1> -> i32
    llvm.store %x, %p : i32, !llvm.ptr<1>
    llvm.return
  }
"""


def module(name: str, target: str = "") -> str:
    carried = f' [#nvvm.target<chip = "{target}">]' if target else ""
    return f"gpu.module @{name}{carried} {{{KERNEL.replace('NAME', name)}}}\n"


TWO = module("a", "sm_80") + module("b", "sm_90a")
EMIT = ("--start-at", "llvm-ir", "--emit", "ptx")


@pytest.fixture
def tilec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEC_SERVER", "off")

    def go(text: str, *arguments: str) -> tuple[int, str]:
        (tmp_path / "p.mlir").write_text(text)
        code = run(["compile", "p.mlir", "--no-cache", *EMIT, *arguments])
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return go


def test_each_has_its_target_and_its_bytes(tilec, tmp_path: Path) -> None:
    """At once or one after the other, together or alone."""
    for folder, jobs in (("one", "1"), ("two", "2")):
        (tmp_path / folder).mkdir()
        code, said = tilec(TWO, "-o", folder, "-j", jobs)
        assert code == ExitCode.OK, said
        assert "2 compiled, 0 failed" in said
    made = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert set(made) == {"p.a.ptx", "p.b.ptx"}
    assert made == {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()}
    assert b".target sm_80\n" in made["p.a.ptx"]
    assert b".target sm_90a\n" in made["p.b.ptx"]
    code, said = tilec(module("b"), "--gpu-name", "sm_90", "-o", "alone.ptx")
    assert code == ExitCode.OK, said
    assert (tmp_path / "alone.ptx").read_bytes() == made["p.b.ptx"]


def test_one_module_names_its_target(tilec, tmp_path: Path) -> None:
    assert tilec(module("a", "sm_80"), "-o", "a.ptx")[0] == ExitCode.OK
    assert ".target sm_80\n" in (tmp_path / "a.ptx").read_text()


def test_another_target_is_refused(tilec, tmp_path: Path) -> None:
    for text in (TWO, module("b", "sm_90")):
        code, said = tilec(text, "--gpu-name", "sm_120")
        assert code == ExitCode.CONFIGURATION
        assert "gpu.module already carries a conflicting target" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.mlir"]


def test_one_that_fails_does_not_keep_the_others(tilec, tmp_path: Path) -> None:
    bad = module("c", "sm_80").replace("llvm.return", "llvm.call @nobody() : () -> ()\nllvm.return")
    bad = bad.replace("{\n", "{ llvm.func @nobody()\n", 1)
    code, said = tilec(bad + module("b", "sm_90"))
    assert code == ExitCode.COMPILE
    assert "1 compiled, 1 failed" in said
    assert (tmp_path / "p.b.ptx").is_file()
    assert not (tmp_path / "p.c.ptx").exists()


def test_parts() -> None:
    registry = default_registry()
    found = parts_of(TWO.encode(), registry)
    assert [(part.name, part.target) for part in found] == [("a", "sm_80"), ("b", "sm_90")]
    assert parts_of(b"module {}", registry) == []
    assert parts_of(b"\x7fTileIR gpu.module", registry) == []
    with pytest.raises(InputError):
        parts_of(b"gpu.module @a {", registry)
    with pytest.raises(CompileError, match=r"'llvm\.func' stands beside 2 gpu\.modules"):
        parts_of((TWO + "llvm.func @f()").encode(), registry)
    both = '[#nvvm.target<chip = "sm_80">, #nvvm.target<chip = "sm_90">]'
    with pytest.raises(ConfigurationError, match="names sm_80 and sm_90"):
        parts_of(f"gpu.module @a {both} {{}}".encode(), registry)
    with pytest.raises(ConfigurationError, match="sm_70"):
        parts_of(b'gpu.module @a [#nvvm.target<chip = "sm_70">] {}', registry)


def test_who_decides() -> None:
    named, free = Part("a", "sm_80", b""), Part("a", "", b"")
    assert chosen(named, "sm_100", given=False) == "sm_80"
    assert chosen(named, "sm_80", given=True) == "sm_80"
    assert chosen(free, "sm_100", given=True) == "sm_100"
    with pytest.raises(ConfigurationError, match="conflicting target"):
        chosen(named, "sm_100", given=True)

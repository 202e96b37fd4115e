"""`tilec`: verbs, exit codes, one clear error, whole files or none."""

from __future__ import annotations

import json
import os
import stat
import types
from pathlib import Path

import click
import pytest

from tile_core.cli import main as cli
from tile_core.diagnostics import ExitCode
from tile_core.hookspecs import Lazy, hookimpl
from tile_core.registry import Registry

PIPELINE = """\
[pipeline]
name = "toy"
[options.n]
type = "int"
default = 5
[options.scheduler]
type = "str"
default = "toy-backwards"
names = "scheduler"
[[segment]]
name = "one"
nest = ["gpu.module", "func.func"]
passes = [{ pass = "toy-mark", value = "$n" }, "mlir:canonicalize"]
[emit]
chain = ["toy-text", "toy-bytes"]
"""


@pytest.fixture
def tilec(registry: Registry, monkeypatch: pytest.MonkeyPatch, capfd, tmp_path: Path):
    """Run `tilec` with the toy plugin in a fresh directory: (code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.Application, "registry", registry)
    monkeypatch.setattr(cli.Application, "lenient_registry", registry)

    def go(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(list(arguments))
        out, err = capfd.readouterr()
        return int(code), out, err

    return go


@pytest.fixture
def files(tmp_path: Path, module_text: str) -> Path:
    (tmp_path / "p.toml").write_text(PIPELINE)
    (tmp_path / "in.mlir").write_text(module_text)
    return tmp_path


TOY = ("--gpu-name", "sm_90", "--pipeline", "p.toml")


def test_compiling_to_a_file(tilec, files: Path) -> None:
    code, out, err = tilec("compile", "in.mlir", *TOY, "--emit", "bytes", "-o", "o.bin")
    assert (code, out, err) == (0, "", "")
    assert (files / "o.bin").read_text().startswith("sm_90\n")
    assert sorted(p.name for p in files.iterdir()) == ["in.mlir", "o.bin", "p.toml"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((files / "o.bin").stat().st_mode) == 0o666 & ~umask


def test_text_goes_to_standard_output(tilec, files: Path) -> None:
    code, out, _ = tilec("compile", "in.mlir", *TOY, "--emit", "mlir", "--set", "n=9")
    assert code == 0
    assert out.count("mark = 9") == 2
    _, out, _ = tilec("compile", "in.mlir", *TOY, "--emit", "mlir", "-D", "toy-mark.value=4")
    assert out.count("mark = 4") == 2


def test_two_runs_give_the_same_bytes(tilec, files: Path) -> None:
    runs = [tilec("compile", "in.mlir", *TOY, "--emit", "text") for _ in range(2)]
    assert runs[0] == runs[1]


FAILURES = [
    (("compile", "absent", *TOY), ExitCode.USAGE, "cannot read 'absent': No such file"),
    (("compile", ".", *TOY), ExitCode.USAGE, "cannot read '.': Is a directory"),
    (("compile",), ExitCode.USAGE, "missing argument 'INPUT...'"),
    (("compile", "in.mlir", "--gpu", "x"), ExitCode.USAGE, "no such option '--gpu'"),
    (("compile", "in.mlir", "--opt"), ExitCode.USAGE, "'opt' is a command: tilec opt"),
    (("compile", "in.mlir", "--emitt"), ExitCode.USAGE, "did you mean '--emit'?"),
    (("compile", "in.mlir", "--zzzz"), ExitCode.USAGE, "`tilec compile --help` lists them"),
    (("compile", "in.mlir", "-O", "x"), ExitCode.USAGE, "is not a valid integer"),
    (("compile", "in.mlir", *TOY, "--set", "n"), ExitCode.USAGE, "--set 'n' is not KEY=VALUE"),
    (("compiel", "in.mlir"), ExitCode.USAGE, "did you mean 'compile'?"),
    (("compile", "in.mlir", "-O7"), ExitCode.CONFIGURATION, "invalid optimization level '7'"),
    (("compile", "in.mlir", "--gpu-name", "sm_91"), ExitCode.CONFIGURATION, "sm_91 is not supp"),
    (("compile", "in.mlir", *TOY, "--set", "m=1"), ExitCode.CONFIGURATION, "no option 'm'"),
    (("compile", "in.mlir", *TOY, "--scheduler", "x"), ExitCode.CONFIGURATION, "no scheduler"),
    (("opt", "in.mlir", *TOY, "-D", "toy-mark.value=x"), ExitCode.CONFIGURATION, "an integer"),
    (("compile", "in.mlir", *TOY, "--emit", "x"), ExitCode.CONFIGURATION, "cannot emit 'x'"),
    (
        ("compile", "in.mlir", *TOY, "--emit", "text", "-o", "no/such/dir/o"),
        ExitCode.CONFIGURATION,
        "cannot write 'no/such/dir/o': No such file or directory",
    ),
    (
        ("compile", "in.mlir", *TOY, "--emit", "text", "-o", "."),
        ExitCode.CONFIGURATION,
        "write '.'",
    ),
    (("compile", "p.toml", *TOY, "--emit", "text", "-o", "o"), ExitCode.INPUT, '"p.toml":1:1'),
    (("compile", "bad", *TOY, "--emit", "text", "-o", "o"), ExitCode.INPUT, "Tile IR bytecode"),
    (("compile", "refuse", *TOY, "--emit", "bytes", "-o", "o"), ExitCode.COMPILE, "tool refuses"),
    (("opt", "in.mlir", "-p", "toy-fail"), ExitCode.COMPILE, "cannot be done"),
    (("opt", "in.mlir", "-p", "toy-fail{how=bug}"), ExitCode.COMPILE, "ZeroDivisionError"),
    (("opt", "in.mlir", "-p", "a", "--pass-pipeline", "b"), ExitCode.USAGE, "exclude each other"),
    (("opt", "bad"), ExitCode.INPUT, "'bad' is not textual MLIR"),
    (
        ("opt", "in.mlir", "--verify-each", "--no-verify"),
        ExitCode.CONFIGURATION,
        "exclude each other",
    ),
    (
        ("opt", "in.mlir", "--remarks", "missed"),
        ExitCode.CONFIGURATION,
        "--remarks - --remarks-only missed prints them",
    ),
    (("pipeline", "show", "O9"), ExitCode.CONFIGURATION, "no pipeline 'O9'"),
    (("plugins", "check", "toyz"), ExitCode.CONFIGURATION, "did you mean 'toys'?"),
    (("plugins", "list", "--kind", "pas"), ExitCode.CONFIGURATION, "did you mean 'pass'?"),
    (("plugins", "new", "Bad_Name"), ExitCode.CONFIGURATION, "is not a plugin name"),
]


@pytest.mark.parametrize(("arguments", "wanted", "words"), FAILURES)
def test_failures(tilec, files: Path, arguments, wanted: ExitCode, words: str) -> None:
    (files / "bad").write_bytes(b"\xff\x00\x01")
    (files / "refuse").write_text("module @refuse {}")
    before = sorted(files.iterdir())
    code, out, err = tilec(*arguments)
    assert code == wanted, err
    assert words in err
    assert out == ""
    assert err.count("error: ") == (
        2 if "toy-fail" in arguments else 1
    )  # a function each, but mistakes
    assert "Traceback" not in err
    assert sorted(files.iterdir()) == before


def test_a_link_stays_and_its_file_is_written(tilec, files: Path) -> None:
    (files / "far").mkdir()
    (files / "far" / "real.bin").write_text("old")
    (files / "link.bin").symlink_to("far/real.bin")
    (files / "new.bin").symlink_to("far/made.bin")
    for name in ("link.bin", "new.bin"):
        assert tilec("compile", "in.mlir", *TOY, "--emit", "bytes", "-o", name)[0] == 0
        assert (files / name).is_symlink()
    for name in ("real.bin", "made.bin"):
        assert (files / "far" / name).read_text().startswith("sm_90\n")


def test_a_pipe_by_name_is_written_to(tilec, files: Path) -> None:
    code, out, _ = tilec("compile", "in.mlir", *TOY, "--emit", "bytes", "-o", "/dev/stdout")
    assert (code, out[:6]) == (0, "sm_90\n")


@pytest.mark.parametrize("folder", [".", "./with space", "../up/down"])
def test_every_path_may_be_relative(tilec, files: Path, monkeypatch, folder: str) -> None:
    """Input, pipeline, output, and what observes: all relative to the working directory."""
    (files / "work").mkdir()
    (files / "up" / "down").mkdir(parents=True)
    (files / "work" / "with space").mkdir()
    monkeypatch.chdir(files / "work")
    for name in ("in.mlir", "p.toml"):
        Path(folder, name).write_text((files / name).read_text())
    watch = [f"--trace={folder}/t.json", f"--remarks={folder}/r.yaml", f"--dump-dir={folder}/d/e"]
    code, out, err = tilec(
        "compile", f"{folder}/in.mlir", "--gpu-name", "sm_90", "--pipeline", f"{folder}/p.toml",
        "--emit", "bytes", "-o", f"{folder}/o.bin", *watch,
    )  # fmt: skip
    assert (code, out, err) == (0, "", "")
    there = {path.name for path in Path(folder).iterdir()}
    assert {"o.bin", "t.json", "r.yaml", "d"} <= there
    assert list(Path(folder, "d", "e").iterdir())


def test_an_output_without_a_name_is_an_error(tilec, files: Path) -> None:
    code, _, err = tilec("compile", "in.mlir", *TOY, "--emit", "bytes", "-o", "")
    assert code == ExitCode.CONFIGURATION
    assert "cannot write ''" in err


def test_a_failing_run_keeps_the_old_output(tilec, files: Path) -> None:
    (files / "o").write_text("old")
    (files / "refuse").write_text("module @refuse {}")
    code, _, _ = tilec("compile", "refuse", *TOY, "--emit", "bytes", "-o", "o")
    assert code == ExitCode.COMPILE
    assert (files / "o").read_text() == "old"


def test_devices_are_written_not_replaced(tilec, files: Path) -> None:
    code, _, _ = tilec("compile", "in.mlir", *TOY, "--emit", "text", "-o", "/dev/null")
    assert code == 0
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_files_without_permission(tilec, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (files / "o").write_text("old")
    (files / "o").chmod(0o400)
    if os.geteuid() == 0:  # who may write anything, and is told what others would be
        monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    code, _, err = tilec("compile", "in.mlir", *TOY, "--emit", "text", "-o", "o")
    assert code == ExitCode.CONFIGURATION
    assert "Permission denied" in err


def test_observing(tilec, files: Path) -> None:
    code, _, err = tilec(
        "compile", "in.mlir", *TOY, "--emit", "bytes", "-o", "o", "--time-passes",
        "--timing-display", "tree", "--trace", "t.json", "--statistics", "--remarks", "r.yaml",
        "--dump-dir", "d", "--print-ir-after", "toy-mark", "--verify-each", "--reproducer", "r",
    )  # fmt: skip
    assert code == 0, err
    assert "Pass execution timing report" in err
    assert "toy-mark" in err
    assert "       2 marked" in err
    assert err.count("IR Dump After toy-mark") == 2
    names = {e["name"] for e in json.loads((files / "t.json").read_text())["traceEvents"]}
    assert {"total", "read", "one", "toy-mark", "mlir:canonicalize", "toy-text"} <= names
    assert (files / "r.yaml").read_text().count("--- !Missed") == 2
    assert sorted(p.name for p in (files / "d").iterdir()) == [
        "000-input.mlir", "001-toy-mark.mlir", "002-mlir-canonicalize.mlir",
        "output.bytes", "output.text",
    ]  # fmt: skip
    assert not (files / "r").exists()


def test_a_reproducer_from_the_command_line(tilec, files: Path) -> None:
    code, _, err = tilec("opt", "in.mlir", "-p", "toy-mark,toy-fail", "--reproducer", "r.mlir")
    assert code == ExitCode.COMPILE
    assert "reproducer generated at `r.mlir`" in err
    code, _, again = tilec("opt", "r.mlir", "--run-reproducer")
    assert code == ExitCode.COMPILE
    same = "3:3): error: 'func.func' op cannot be done"
    assert err.splitlines()[0].endswith(same)
    assert again.splitlines()[0].endswith(same)


def test_instrumentations_by_name(tilec, files: Path, toys) -> None:
    toys.Recorder.log.clear()
    code, _, _ = tilec("opt", "in.mlir", "-p", "toy-look", "--instrument", "toy-recorder")
    assert code == 0
    assert "before CountOps" in toys.Recorder.log


def test_opt_splits_and_verifies(tilec, files: Path) -> None:
    text = (
        "func.func @f() { return }\n// -----\n"
        "// expected-error@below {{cannot be done}}\nfunc.func @g() { return }\n"
    )
    (files / "s.mlir").write_text(text)
    code, out, _ = tilec("opt", "s.mlir", "--split-input-file", "-p", "toy-mark")
    assert code == 0
    assert out.count("// -----\n") == 1
    assert out.count("mark = 1") == 2
    both = ("--split-input-file", "--verify-diagnostics", "-p", "toy-fail")
    code, _, err = tilec("opt", "s.mlir", *both)
    assert code == 1
    assert err.splitlines() == ["s.mlir:1: error: unexpected error: 'func.func' op cannot be done"]
    (files / "s.mlir").write_text(text.split("// -----\n")[1])
    assert tilec("opt", "s.mlir", *both) == (0, "", "")


def test_pipelines(tilec, files: Path) -> None:
    code, out, _ = tilec("pipeline", "show", "p.toml", "--options", "--gpu-name", "sm_90")
    assert code == 0
    assert "one [gpu.module > func.func]" in out
    assert "toy-mark{value=5}" in out
    assert "toys 0" in out
    assert "n = 5" in out
    _, out, _ = tilec("pipeline", "show", "p.toml", "--text")
    assert out == "builtin.module(gpu.module(func.func(toy-mark{value=5},mlir:canonicalize)))\n"
    _, out, _ = tilec("pipeline", "show", "p.toml", "--json", "--set", "n=7")
    assert json.loads(out)["segments"][0]["passes"][0]["options"] == {"value": 7}
    assert tilec("pipeline", "validate", "p.toml") == (0, "p.toml: ok\n", "")
    code, out, _ = tilec("pipeline", "list", "--json")
    assert {row["name"] for row in json.loads(out)} >= {"O0", "O1", "O2", "O3"}
    _, out, _ = tilec("pipeline", "schema")
    assert json.loads(out)["title"] == "PipelineFile"


def test_validate_finds_what_does_not_run(tilec, files: Path) -> None:
    broken = PIPELINE.replace(
        '"mlir:canonicalize"]',
        '{ pass = "toy-mrk", when = "n > 100" }, { pass = "mlir:cse", nothing = 1 }, "toy-module"]',
    )
    (files / "p.toml").write_text(broken)
    code, _, err = tilec("pipeline", "validate", "p.toml")
    assert code == ExitCode.CONFIGURATION
    assert "there is no pass 'toy-mrk'" in err
    assert "no such option nothing" in err
    assert "pass 'toy-module' anchored on 'builtin.module' added to pipeline" in err
    assert err.count('loc("p.toml":13:1): error') == 3


def test_diff(tilec, files: Path) -> None:
    (files / "q.toml").write_text('[pipeline]\nname = "q"\nextends = "O0"\n[set]\nnum-warps = 8\n')
    code, out, _ = tilec("pipeline", "diff", "O0", "q.toml")
    assert code == 1
    assert "-num-warps = 0\n+num-warps = 8\n" in out
    assert tilec("pipeline", "diff", "O0", "O0") == (0, "", "")


def test_plugins(tilec) -> None:
    code, out, _ = tilec("plugins", "list", "--kind", "pass")
    assert code == 0
    assert "toys (toys 0)" in out
    assert "toy-mark" in out
    assert "Put an attribute on functions." in out
    _, out, _ = tilec("plugins", "list", "--json")
    rows = json.loads(out)["names"]
    assert {"plugin": "toys", "kind": "scheduler", "name": "toy-backwards", "summary": ""} in rows
    assert tilec("plugins", "check", "toys") == (0, "toys: ok\n", "")


def test_describing_a_name(tilec) -> None:
    code, out, _ = tilec("plugins", "show", "toy-mark")
    assert code == 0
    assert out.splitlines() == [
        "pass toy-mark (toys 0)",
        "  Put an attribute on functions.",
        "  from tile_core_toys:Mark",
        "  runs on func.func",
        "  counts marked: functions that got the attribute",
        "  option value = 1  # what to write",
        "  option key = 'mark' (mark, sign)  # where to write it",
    ]
    assert "turns mlir into text" in tilec("plugins", "show", "toy-text")[1]
    code, _, err = tilec("plugins", "show", "toy-mrk")
    assert code == ExitCode.CONFIGURATION
    assert "did you mean 'toy-mark'?" in err


def test_doctor(tilec) -> None:
    code, out, _ = tilec("doctor", "--json")
    found = {f["what"]: f for f in json.loads(out)}
    assert code == (0 if all(f["ok"] for f in found.values()) else ExitCode.CONFIGURATION)
    assert found["mlir"]["ok"]
    assert found["plugin toys"]["ok"]
    assert "ok   python" in tilec("doctor")[1]


def test_help_lists_the_verbs(tilec) -> None:
    code, out, _ = tilec("--help")
    assert code == 0
    for verb in ("compile", "opt", "pipeline", "plugins", "doctor"):
        assert verb in out


def test_verbs_of_plugins(tilec, toys, monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    @click.option("--loud", is_flag=True, help="Louder.")
    def good(loud: bool) -> None:
        """Say something."""
        click.echo("SOMETHING" if loud else "something")

    @hookimpl
    def tile_cli_commands():
        return [
            Lazy("good", "tile_core_toys:GOOD"),
            Lazy("absent", "tile_core_toys:ABSENT"),
            Lazy("number", "tile_core_toys:TILE_SPEC_VERSION"),
        ]

    monkeypatch.setattr(toys, "GOOD", good, raising=False)
    plugin = types.SimpleNamespace(tile_cli_commands=tile_cli_commands)
    monkeypatch.setattr(cli.Application, "lenient_registry", Registry.of(mine=plugin))
    assert tilec("good", "--loud") == (0, "SOMETHING\n", "")
    code, out, _ = tilec("--help")
    assert code == 0
    assert "Say something." in out
    assert "Cannot be loaded" in out
    code, _, err = tilec("absent", "--any", "thing")
    assert code == ExitCode.CONFIGURATION
    assert "mine 0" in err
    assert "is not a click command" in tilec("number")[2]


def test_no_color(tilec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "")
    assert "\x1b" not in tilec("--help")[1]

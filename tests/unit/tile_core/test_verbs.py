"""What all verbs have in common: `--json`, completion of names, the words of a launch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rich_click as click

from tile_core.cli.main import Application, cli, run

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "bytecode" / "vector_add_f32.tileirbc")
#: Verbs that need none, and why.
WITHOUT = {
    "lsp": "what it says is JSON, by the protocol of language servers",
    "pipeline schema": "what it prints is JSON Schema",
}
MODULE = "func.func @f(%a: i32) -> i32 {\n  %b = arith.addi %a, %a : i32\n  return %b : i32\n}\n"


def verbs() -> Iterator[tuple[str, Any]]:
    """All commands that are no groups, with their full names."""
    context = click.Context(cli, obj=Application())

    def walk(prefix: str, group: Any) -> Iterator[tuple[str, Any]]:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if hasattr(command, "list_commands"):
                yield from walk(f"{prefix}{name} ", command)
            else:
                yield prefix + name, command

    return walk("", cli)


def test_every_verb_prints_json() -> None:
    lacking = {
        name
        for name, command in verbs()
        if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert lacking == WITHOUT.keys()


#: Options whose values are registered names; flags, and names that are to be new, aside.
NAMED = {"--gpu-name", "--pipeline", "--scheduler", "--layout-strategy", "--gpu"}


def test_every_registered_name_is_completed() -> None:
    without = {
        f"{name} {option}"
        for name, command in verbs()
        for parameter in command.params
        for option in NAMED.intersection(parameter.opts)
        if not parameter.is_flag and parameter._custom_shell_complete is None
    }
    assert without == set()


def test_verbs_that_launch_take_the_same_words() -> None:
    launching = {"run", "check", "time", "compare", "bisect", "reduce"}
    taken = {
        name: {option for parameter in command.params for option in parameter.opts}
        for name, command in verbs()
        if name in launching
    }
    words = {"--arg", "--grid", "--entry", "--with-shape", "--set", "-D", "-O", "--pipeline"}
    assert taken.keys() == launching
    assert {name: words - options for name, options in taken.items() if words - options} == {}


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        (("dis", EXAMPLE), {"source", "version", "text"}),
        (("as", "k.tileir", "-o", "k.bc"), {"output", "version", "bytes"}),
        (("fuzz", "--coverage", "--seeds", "0:2"), {"drawn", "never", "known"}),
        (("plugins", "new", "some-plugin"), {"created"}),
        (("deactivate", "--project", "."), {"removed"}),
        (("activate", "--project", "."), {"script"}),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_it_is_json_alone(
    arguments: tuple[str, ...], keys: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert run(["dis", EXAMPLE, "-o", "k.tileir"]) == 0
    capsys.readouterr()
    assert run([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == keys


def test_passes_over_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "m.mlir"
    source.write_text(MODULE)
    assert run(["opt", str(source), "-p", "mlir:cse", "--json"]) == 0
    (made,) = json.loads(capsys.readouterr().out)
    assert "arith.addi" in made["text"]
    assert made["remarks"] == []
    source.write_text(f"{MODULE}// expected-error {{{{nothing of this}}}}\n")
    assert run(["opt", str(source), "-p", "mlir:cse", "--verify-diagnostics", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["problems"]


def test_layouts_and_a_server_that_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["layout", "(4,8):(8,1)", "--json"]) == 0
    (grid, *_) = json.loads(capsys.readouterr().out)
    assert (len(grid["cells"]), len(grid["cells"][0])) == (4, 8)
    monkeypatch.setenv("TILEC_SERVER_DIR", str(tmp_path / "run"))
    assert run(["serve", "--status", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"process": None, "socket": None}
    assert run(["serve", "--json"]) == 1


def test_bytecode_and_json_do_not_share_an_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["as", "-", "-o", "-", "--json"]) == 1
    assert "standard output" in capsys.readouterr().err

"""What an editor is told, and that the server says it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from tile_core.lsp.documents import Place, definition, hover, problems, word_at
from tile_core.registry import default_registry

MLIR = """\
#l = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] warp=[[128],[256]] : 512">
func.func @f(%a: i32, %n: i32) -> i32 {
  %0:2 = "x.two"(%a) : (i32) -> (i32, i32)
  %1 = arith.addi %0#0, %n : i32
  %t = "nv_tileas.dot"(%1) : (i32) -> i32
  return %1 : i32
}
"""
PIPELINE = """\
[pipeline]
name = "mine"
extends = "O2"

[[insert]]
segment = "tileas"
after = "tileas-plan-accesses"
passes = ["tileas-canonicalize"]
"""


@pytest.mark.parametrize(
    ("text", "name", "line", "words"),
    [
        ("func.func @f() { return }\n", "a.mlir", None, ""),
        ("\nfunc.func @f() { return %x : i32 }\n", "a.mlir", 1, "undeclared SSA value"),
        (PIPELINE, "a.toml", None, ""),
        (PIPELINE.replace("-canonicalize", "-canonicalise"), "a.toml", 7, "did you mean"),
        (PIPELINE.replace("[[insert]]", "[[insert]"), "a.toml", 4, ""),
        ("cuda_tile.module @m {\n  entry @k() {\n    %0 = nonsense\n  }\n}\n", "a.tileir", 2, ""),
    ],
)
def test_problems(text: str, name: str, line: int | None, words: str) -> None:
    found = problems(text, name, default_registry(), "sm_90")
    if line is None:
        assert found == []
    else:
        (problem,) = found
        assert problem.line == line, problem
        assert words in problem.message


def test_words_and_definitions() -> None:
    registry = default_registry()
    assert word_at(MLIR, 3, 21) == "%0"
    assert word_at(MLIR, 0, 0) == "#l"
    assert word_at(MLIR, 99, 0) == ""
    assert definition(MLIR, 3, 20, registry) == Place(2)  # a group of results
    assert definition(MLIR, 3, 26, registry) == Place(1)  # an argument
    assert definition(MLIR, 5, 10, registry) == Place(3)
    place = definition(PIPELINE, 6, 12, registry)
    assert place is not None
    assert place.file is not None
    assert "class PlanAccesses" in place.file.read_text().split("\n")[place.line + 1] or (
        place.file.name == "plan_accesses.py"
    )
    extends = definition(PIPELINE, 2, 12, registry)
    assert extends is not None
    assert extends.file is not None
    assert extends.file.name == "O2.toml"


def test_hover() -> None:
    registry = default_registry()
    assert "c + a @ b" in hover(MLIR, 4, 15, registry)
    assert hover(MLIR, 5, 10, registry) == "%1 = arith.addi %0#0, %n : i32"
    assert "option max-vector-bits" in hover(PIPELINE, 6, 12, registry)
    assert hover(MLIR, 2, 3, registry).startswith('%0:2 = "x.two"')
    assert hover("\n", 0, 0, registry) == ""


def _send(pipe: IO[bytes], message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    pipe.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    pipe.flush()


def _receive(pipe: IO[bytes], wanted: str | int) -> dict[str, Any]:
    """The next message with this method or id."""
    while True:
        length = 0
        while (line := pipe.readline().strip()) != b"":
            if line.lower().startswith(b"content-length"):
                length = int(line.split(b":")[1])
        assert length, "the server went away"
        message = json.loads(pipe.read(length))
        if wanted in (message.get("method"), message.get("id")):
            return message


def test_an_editor_is_served() -> None:
    pytest.importorskip("pygls")
    command = [sys.executable, "-m", "tile_core", "lsp", "--gpu-name", "sm_90"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        to, said = server.stdin, server.stdout
        assert to is not None
        assert said is not None
        _send(to, {"id": 1, "method": "initialize",
                   "params": {"capabilities": {}, "processId": None, "rootUri": None}})  # fmt: skip
        offers = _receive(said, 1)["result"]["capabilities"]
        assert offers["hoverProvider"]
        assert offers["definitionProvider"]
        _send(to, {"method": "initialized", "params": {}})
        uri = Path("/nowhere/a.mlir").as_uri()
        document = {"uri": uri, "languageId": "mlir", "version": 1,
                    "text": "func.func @f() {\n  return %x : i32\n}\n"}  # fmt: skip
        _send(to, {"method": "textDocument/didOpen", "params": {"textDocument": document}})
        (found,) = _receive(said, "textDocument/publishDiagnostics")["params"]["diagnostics"]
        assert found["range"]["start"]["line"] == 1
        assert "undeclared" in found["message"]
        at = {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 4}}
        _send(to, {"id": 2, "method": "textDocument/hover", "params": at})
        assert "result" in _receive(said, 2)
        _send(to, {"id": 3, "method": "shutdown"})
        _receive(said, 3)
        _send(to, {"method": "exit"})
        assert server.wait(timeout=30) == 0

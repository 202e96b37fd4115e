"""IR for reading, differences, and explanations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tile_core.cli.main import run
from tile_core.diagnostics import ConfigurationError, ExitCode
from tile_core.difference import coloured, unified
from tile_core.explain import Message, explanations, messages_of
from tile_core.pretty import pretty
from tile_core.registry import Registry, default_registry

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "bytecode"
VECTOR_ADD = str(EXAMPLES / "vector_add_f32.tileirbc")

TILE = 'tensor<64x64xf32, #x.layout<"register=[[0,1]] lane=[[0,2]] : 64x64">>'
TEXT = f"""\
#loc = loc(unknown)
#loc1 = loc("dir/k.py":8:0)
module {{
  func.func @f(%a: i32 loc(fused<{{line = 7 : i64, name = "(a"}}>[#loc1])) {{
    %0 = "x.load"(%a) {{operandSegmentSizes = array<i32: 1>, volatile}} : (i32) -> {TILE} loc(#loc2)
    "x.store"(%0) {{operandSegmentSizes = array<i32: 1>}} : ({TILE}) -> () loc(#loc1)
    %1 = "x.dim"() : () -> !x.memref<array<i64: -9223372036854775808>> loc(#loc)
  }} loc(#loc)
}} loc(#loc)
#loc2 = loc(callsite("f"(#loc1) at "main.py":20:4))
"""


def test_ir_is_made_readable() -> None:
    assert (
        pretty(TEXT)
        == """\
#layout0 = #x.layout<"register=[[0,1]] lane=[[0,2]] : 64x64">
module {
  func.func @f(%a: i32) {  // k.py:8:0
    %0 = "x.load"(%a) {volatile} : (i32) -> tensor<64x64xf32, #layout0>  // main.py:20:4
    "x.store"(%0) : (tensor<64x64xf32, #layout0>) -> ()  // k.py:8:0
    %1 = "x.dim"() : () -> !x.memref<array<i64: ?>>
  }
}
"""
    )
    plain = pretty(TEXT, locations=False, aliases=False)
    assert "//" not in plain
    assert TILE in plain


def test_a_difference() -> None:
    text = unified("a\nb\n", "a\nc\n", "x", "y")
    assert text == "--- x\n+++ y\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    assert unified("a\n", "a\n", "x", "y") == ""
    shown = coloured(text, lambda line, fg: f"<{fg}>{line}")
    assert "<red>-b\n" in shown
    assert "\n a\n" in shown


def test_two_levels_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["diff", VECTOR_ADD, "--gpu-name", "sm_90", "--emit", "mlir:tileas"]
    assert run([*words, "--left", "-O0", "--right", "-O2"]) == 1
    said = capsys.readouterr().out
    assert said.startswith(f"--- {VECTOR_ADD} -O0\n+++ {VECTOR_ADD} -O2\n")
    assert "loc(" not in said
    assert run([*words, "--left", "-O2", "--right", "-O3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["differ"], found["diff"]) == (False, [])
    assert run([*words[:4]]) == ExitCode.USAGE
    assert run([*words, "--left", "--nonsense"]) == ExitCode.USAGE


def test_what_each_pass_changed_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [VECTOR_ADD, "--gpu-name", "sm_90", "--emit", "mlir:tileas", "-o", str(tmp_path / "o")]
    assert run(["compile", *words, "--diff", "--no-cache"]) == 0
    said = capsys.readouterr().err
    assert "--- before convert-cudatile-to-tileaa\n+++ after convert-cudatile-to-tileaa\n" in said
    assert "\n+" in said
    assert "changed nothing" in said
    assert run(["compile", *words, "--pretty"]) == 0
    assert "// vector_add.py:" in (tmp_path / "o").read_text()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("tileas-plan-accesses", "pass tileas-plan-accesses (tile-tileas"),
        ("tileas-plan-accesses.max-vector-bits", "widest access of one thread"),
        ("ftz", "f32 operations flush subnormals to zero"),
        ("nv_tileas.dot", "operation nv_tileas.dot\n  c + a @ b"),
        ("cuda_tile.load_view_tko", "view: operand"),
        ("5", "exit code 5 (COMPILE)"),
        ("'nv_tileas.load' op has no access plan; run 'tileas-plan-accesses' before", "what to do"),
        ("op uses too much shared data (0x40000 bytes, 0x38c00 max)", "Smaller tiles"),
        ("serial", "scheduler serial"),
        ("TILEC_CACHE", "environment variable TILEC_CACHE\n  off: no artifact cache."),
    ],
)
def test_names_and_messages_are_explained(words: str, expected: str) -> None:
    assert any(expected in text for text in explanations(default_registry(), words))


def test_what_is_not_known_has_a_neighbour() -> None:
    with pytest.raises(ConfigurationError, match="nothing is known of 'tileas-plan-acceses'") as e:
        explanations(default_registry(), "tileas-plan-acceses")
    assert e.value.hint == "did you mean 'tileas-plan-accesses'?"


def test_every_message_of_the_catalogue_explains_itself() -> None:
    registry = Registry.discover()
    known = messages_of(registry)
    assert len(known) > 10
    for message in known:
        assert message.matches(message.text.replace("NAME", "some 'thing'"))
    assert not Message("op NAME is N", "", "").matches("nothing")

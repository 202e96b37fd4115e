"""`tilec schedule`: what it prints, what can be edited and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tile_core.cli.main import run

ROOT = Path(__file__).parents[3]
PROGRAM = str(ROOT / "examples" / "bytecode" / "matmul_f16.tileirbc")
LOOP = "matmul_f16/loop1"


def output(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    assert run(["schedule", PROGRAM, *arguments]) == code
    return capsys.readouterr()


def test_table_and_chart(capsys: pytest.CaptureFixture[str]) -> None:
    text, _ = output(capsys, "--loop", LOOP)
    head = text.splitlines()[0]
    assert head.startswith(f"{LOOP}: II ")
    assert "[cost, sm_90]" in head
    assert "nv_tileas.dot" in text
    assert any(line.startswith("tc_and_mma") for line in text.splitlines())


def test_two_schedulers_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    text, _ = output(capsys, "--loop", LOOP, "--with", "serial")
    lines = [line.split() for line in text.splitlines()]
    assert lines[0] == ["body", "cost", "serial", "ratio"]
    assert lines[1][:2] == [LOOP, "II"]
    assert int(lines[1][2]) < int(lines[1][3]), "iterations overlap"


def test_products_and_loads_do_not_wait_for_memory(capsys: pytest.CaptureFixture[str]) -> None:
    """The loop of a product only reads: nothing but values orders its operations."""
    (loop,) = json.loads(output(capsys, "--json", "--loop", LOOP)[0])["bodies"]
    assert {edge["kind"] for edge in loop["edges"]} == {"data", "order"}


def test_attention_overlaps_softmax_with_the_next_product(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The tensor cores are never idle: they bound the interval. While they do one iteration's first
    product, exponentials of another one are under way, and the chart has a row for each unit.
    """
    program = str(ROOT / "examples" / "bytecode" / "attention_large_f16.tileirbc")
    loop = ["--loop", "attention_large_f16/loop1"]
    assert run(["schedule", program, *loop]) == 0
    text, _ = capsys.readouterr()
    assert "(resource 'tc_and_mma')" in text.splitlines()[0]
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if "%" in line}
    assert rows["tc_and_mma"][-2:] == ["100", "%"]
    assert run(["schedule", program, *loop, "--json"]) == 0
    (body,) = json.loads(capsys.readouterr()[0])["bodies"]
    products = [op for op in body["ops"] if op["name"] == "nv_tileas.dot"]
    powers = max(
        (op for op in body["ops"] if op["name"] == "nv_tileaa.exp2"), key=lambda op: op["latency"]
    )
    first = min(products, key=lambda op: op["start"])
    assert powers["stage"] > first["stage"], "the next iterations' products have begun before"
    assert body["ii"] == sum(
        use["cycles"] for op in products for use in op["uses"] if use["resource"] == "tc_and_mma"
    )


def test_json_is_edited_and_read_back(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "schedule.json"
    output(capsys, "--json", "-o", str(path), "--stages", "1")
    data = json.loads(path.read_text())
    (loop,) = [body for body in data["bodies"] if body["name"] == LOOP]
    loop["ii"] += 7
    path.write_text(json.dumps(data))
    text, _ = output(capsys, "--schedule", str(path), "--loop", LOOP, "--stages", "1")
    assert f"II {loop['ii']}" in text
    made = tmp_path / "k.ptx"
    setting = f"tileas-generate-schedule-constraints.schedule={path}"
    arguments = ["--gpu-name", "sm_90", "-O3", "--emit", "ptx", "-o", str(made), "-D", setting]
    assert run(["compile", PROGRAM, *arguments]) == 0
    assert ".entry" in made.read_text()


def broken(capsys: pytest.CaptureFixture[str], tmp_path: Path, *edits: tuple[str, str, int]) -> str:
    """What is said about the loop's schedule after edits (operation, field, new value)."""
    path = tmp_path / "schedule.json"
    output(capsys, "--json", "-o", str(path))
    data = json.loads(path.read_text())
    data["bodies"] = [body for body in data["bodies"] if body["name"] == LOOP]
    (loop,) = data["bodies"]
    for name, field, value in edits:
        target = loop if not name else next(op for op in loop["ops"] if op["name"] == name)
        target[field] = value
    path.write_text(json.dumps(data))
    _, error = output(capsys, "--schedule", str(path), code=5)
    return error


def test_an_order_that_is_broken_names_the_edge(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    load, dot = ("nv_tileas.tiled_load", "start", 9), ("nv_tileas.dot", "start", 0)
    error = broken(capsys, tmp_path, load, dot)
    assert "'nv_tileas.dot' (#2) in cycle 0, before 'nv_tileas.tiled_load' (#0) in cycle 9" in error
    assert "data edge 0 -> 2" in error


def test_a_latency_that_is_broken_names_the_edge(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    error = broken(capsys, tmp_path, ("nv_tileas.dot", "start", 70))
    assert "less than its latency after 'nv_tileas.tiled_load'" in error


def test_a_resource_that_is_overbooked_names_the_cycle(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    load, dot = ("nv_tileas.tiled_load", "start", 66), ("nv_tileas.dot", "start", 900)
    error = broken(capsys, tmp_path, load, dot, ("scf.yield", "start", 2000))
    assert "is taken in cycle" in error
    assert "of the interval of" in error


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is no JSON"),
        ("{}", "expects version 1"),
        ('{"version": 1}', "'bodies' is missing"),
        ('{"version": 1, "bodies": [{"name": "x"}]}', "'ops' is missing"),
        ("[]", "is no schedule"),
    ],
)
def test_broken_files_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, reason: str
) -> None:
    path = tmp_path / "schedule.json"
    path.write_text(text)
    _, error = output(capsys, "--schedule", str(path), code=2)
    assert reason in error


def test_svg_html_and_trace(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    drawing, _ = output(capsys, "--format", "svg", "--loop", LOOP)
    assert ElementTree.fromstring(drawing).tag.endswith("svg")
    page, _ = output(capsys, "--format", "html")
    assert page.count("<svg") == 2
    events = json.loads(output(capsys, "--format", "trace", "--loop", LOOP)[0])["traceEvents"]
    seats = [event["args"] for event in events if "arm" in event.get("args", {})]
    assert {"permute"} <= {seat["arm"] for seat in seats}
    assert any(seat["cycle"] is not None and not seat["gate"] for seat in seats)


def test_a_trace_changes_no_schedule(capsys: pytest.CaptureFixture[str]) -> None:
    first = output(capsys, "--loop", LOOP)[0]
    output(capsys, "--loop", LOOP, "--format", "trace")
    assert output(capsys, "--loop", LOOP)[0] == first


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--loop", "nothing"], "there is no body 'nothing'"),
        (["--stages", "-1"], "must not be negative"),
        (["--with", "list", "--json"], "only as text"),
        (["--format", "svg"], "an SVG shows one body"),
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str) -> None:
    _, error = output(capsys, *arguments, code=1)
    assert reason in error

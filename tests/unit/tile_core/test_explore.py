"""The page that shows a compilation."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tile_core.cli.main import run
from tile_core.explore.record import _llvm_lines, _ptx_lines

ROOT = Path(__file__).resolve().parents[3]
SOURCE = str(ROOT / "examples" / "bytecode" / "vector_add_f32.tileirbc")
LAUNCH = ["--grid", "2", "--with-shape", *(x for _ in range(3) for x in ("--arg", "f32[2048]"))]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("page") / "k.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)  # the sources that its locations name
        assert run(["explore", SOURCE, "--gpu-name", "sm_90", "-o", str(file), *LAUNCH]) == 0
    return file.read_text(encoding="utf-8")


def data_of(page: str) -> dict:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(text)


def test_the_page_needs_nothing_else(page: str) -> None:
    """No address, no other file: it is opened from a disk, or sent by mail."""
    outside = re.sub(r'id="data">.*?</script>', "", page, flags=re.DOTALL)
    assert not re.search(r'(?:src|href)="|https?:|@import|url\(', outside)
    assert page.count("</script>") == 2


def test_stages_are_linked_by_line(page: str) -> None:
    data = data_of(page)
    (source,) = data["source"]
    assert source["name"] == "vector_add.py"
    line = next(i for i, t in enumerate(source["text"].split("\n"), 1) if "ct.store" in t)
    for name in ("input", "llvm", "ptx"):
        (stage,) = [s for s in data["stages"] if s["name"] == name]
        assert len(stage["lines"]) <= len(stage["text"].split("\n"))
        assert f"vector_add.py:{line}" in stage["lines"], name


def test_passes_remarks_and_views_are_there(page: str) -> None:
    data = data_of(page)
    changed = {p["name"] for p in data["passes"] if p["diff"]}
    assert "tileas-assign-layouts" in changed
    assert {s["name"].partition(" ")[2] for s in data["stages"]} >= changed
    assert all(p["ms"] >= 0 for p in data["passes"])
    assert any("LoadInstructionSelected" in r["name"] for r in data["remarks"])
    titles = [view["title"] for view in data["views"]]
    assert any(title.startswith("layout of") for title in titles)
    assert any(title.startswith("schedule of") for title in titles)
    assert any(title.startswith("predicted time") for title in titles)


def test_places_in_texts() -> None:
    ptx = '\t.file\t1 "/a/k.py"\n.entry f\n{\n\t.loc\t1 7 3\n\tadd;\n}\n\t.section x\n'
    assert _ptx_lines(ptx) == ["", "", "", "k.py:7", "k.py:7", "", ""]
    llvm = (
        'add i32 1, !dbg !4\nret void\n!1 = !DIFile(filename: "k.py", directory: "a")\n'
        "!4 = !DILocation(line: 9, column: 2, scope: !3)\n"
    )
    assert _llvm_lines(llvm) == ["k.py:9", "", "", ""]

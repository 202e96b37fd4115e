"""Our `tileiras` beside the released one, over hundreds of command lines.

`recorded.json` holds what release 13.5 did; `record.py` writes it anew. Where we differ, the
difference has a name below, and the test says of each name that it is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command_lines import command_lines, write_inputs
from tile_dropin.main import run

Answer = dict[str, Any]
RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text())
ANSWERS: list[Answer] = [
    {**answer, **{key: RECORDED["texts"][answer[key]] for key in ("out", "err")}}
    for answer in RECORDED["answers"]
]


# --- where we differ, by name --------------------------------------------------------------------


def _help(theirs: Answer, ours: Answer) -> None:
    """The descriptions of options are our own; options, order and columns are the same."""
    for answer in (theirs, ours):
        lines = answer["out"].splitlines()
        answer["out"] = "\n".join(re.sub(r" - .*|^OVERVIEW: .*", "", line) for line in lines)


def _version(theirs: Answer, ours: Answer) -> None:
    """Names and builds; what clients read is the same."""
    for answer in (theirs, ours):
        assert len(answer["out"].splitlines()) == 5
        (release,) = re.findall(r"release (\d+\.\d+), V\1\.\d+$", answer["out"], re.MULTILINE)
        answer["out"] = release


def _sm_107(theirs: Answer, ours: Answer) -> None:
    """LLVM does not know sm_107, so it is an architecture that is not supported."""
    assert ours["code"] == 2
    assert "GPU architecture sm_107 is not supported" in ours["err"]
    ours.update(theirs)


def _unwritable(theirs: Answer, ours: Answer) -> None:
    """The released tool says nothing when the output cannot be written."""
    assert theirs["err"] == ""
    assert ours["err"].startswith("error: cannot write '")
    ours["err"] = ""


def _library(theirs: Answer, ours: Answer) -> None:
    """Tile libraries cannot be linked yet; both give up with the same code."""
    assert theirs["code"] == ours["code"]
    assert "tile libraries cannot be linked yet" in ours["err"]
    ours["err"] = theirs["err"]


def _windows(theirs: Answer, ours: Answer) -> None:
    """Host code is for Linux."""
    assert (ours["code"], ours["err"]) == (2, "error: host code for windows cannot be made yet\n")
    ours.update(theirs)


def _for_windows(answer: Answer) -> bool:
    """Whether the last `--host-os` is windows."""
    words = [word for word in answer["arguments"] if word in ("linux", "windows") or "os=" in word]
    return answer["code"] == 0 and bool(words) and words[-1].endswith("windows")


DIFFERENCES: dict[str, tuple[Callable[[Answer], bool], Callable[[Answer, Answer], None]]] = {
    "help": (lambda a: "OVERVIEW" in a["out"], _help),
    "version": (lambda a: "Cuda compilation tools" in a["out"], _version),
    "sm_107": (lambda a: a["code"] == 0 and "sm_107" in " ".join(a["arguments"]), _sm_107),
    "library": (lambda a: "library.bc" in a["arguments"] and "simt" not in a["err"], _library),
    "windows": (_for_windows, _windows),
    "unwritable": (lambda a: a["code"] == 2 and not a["err"], _unwritable),
}


# --- comparing -----------------------------------------------------------------------------------


def _ours(arguments: list[str], folder: Path, capfdbinary: Any) -> Answer:
    before = {path.name for path in folder.iterdir()}
    code = run(arguments)
    out, err = capfdbinary.readouterr()
    made = sorted({path.name for path in folder.iterdir()} - before)
    for name in made:
        (folder / name).unlink()
    text = "ELF" if out.startswith(b"\x7fELF") else out.decode()
    return {
        "arguments": arguments, "code": int(code), "out": text, "err": err.decode(), "made": made,
    }  # fmt: skip


def _compare(theirs: Answer, ours: Answer) -> str | None:
    """What differs beyond the named differences."""
    theirs = dict(theirs)
    for applies, allow in DIFFERENCES.values():
        if applies(theirs):
            allow(theirs, ours)
    wrong = [key for key in theirs if theirs[key] != ours[key]]
    if not wrong:
        return None
    said = "; ".join(f"{key}: {theirs[key]!r} but ours {ours[key]!r}" for key in wrong)
    return f"{' '.join(theirs['arguments'])}: {said}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every input."""
    made = tmp_path_factory.mktemp("inputs")
    write_inputs(made)
    return made


def test_everything_is_recorded() -> None:
    assert [tuple(a["arguments"]) for a in ANSWERS] == command_lines()
    assert "release 13.5, V13.5" in RECORDED["version"]


@pytest.mark.parametrize("part", range(8))
def test_as_the_released_tool(
    part: int, folder: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TILEC_CACHE_DIR", str(folder.parent / "cache"))
    answers = ANSWERS[part::8]
    found = [_compare(a, _ours(a["arguments"], folder, capfdbinary)) for a in answers]
    wrong = [line for line in found if line]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_each_difference_is_needed(name: str) -> None:
    applies, _ = DIFFERENCES[name]
    assert any(applies(answer) for answer in ANSWERS)

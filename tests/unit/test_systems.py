"""docs/systems.md: each command that shows a system names what exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tile_core.registry import Registry

ROOT = Path(__file__).resolve().parents[2]
_COMMAND = re.compile(r"`((?:pytest|tilec) [^`]*)`")


def rows() -> list[tuple[str, list[str]]]:
    """(numbers of a row, its commands)."""
    found = []
    for line in (ROOT / "docs" / "systems.md").read_text(encoding="utf-8").splitlines():
        cells = re.split(r"(?<!\\)\|", line)
        if len(cells) >= 7 and re.match(r" \d", cells[1]):
            found.append((cells[1].strip(), _COMMAND.findall(cells[-2])))
    return found


def test_every_system_has_a_command() -> None:
    assert len(rows()) > 40
    assert [number for number, found in rows() if not found] == []


@pytest.mark.parametrize(("number", "found"), rows())
def test_commands_name_what_exists(number: str, found: list[str]) -> None:
    registry = Registry.discover()
    passes = set(registry.names("pass"))
    commands = {entry.lazy.name for entry in registry.entries("command")}
    for command in found:
        words = shlex.split(command)
        if words[0] == "tilec":
            assert words[1] in commands
            named = words[words.index("-p") + 1].split(",") if "-p" in words else []
            assert set(named) <= passes, command
            continue
        paths = [word for word in words[1:] if word.startswith("tests/")]
        assert paths, command
        for path in paths:
            assert (ROOT / path).exists(), path
        if "-k" in words:
            text = "".join((ROOT / p).read_text(encoding="utf-8") for p in paths)
            names = re.findall(r"[\w-]+", words[words.index("-k") + 1].replace(" or ", " "))
            files = {p.stem for p in (ROOT / "tests" / "filecheck").rglob("*.mlir")}
            assert all(n in text or any(n in stem for stem in files) for n in names), command

"""The file of compiled methods: the same classes with it and without, and nobody else's code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROBE = """
import builtins, dataclasses, sys
from tile_core import toml_text
from tile_core.generated_code import keep
compiled, real = [], compile
builtins.compile = lambda *given, **named: compiled.append(given) or real(*given, **named)
code = keep()
@dataclasses.dataclass(frozen=True, order=True)
class Point:
    x: int
    y: list = dataclasses.field(default_factory=list)
try:
    Point(1).x = 2
except dataclasses.FrozenInstanceError:
    print(Point(1), Point(1) < Point(2), hash(Point(3, ())) != 0)
table = toml_text.parsed("[table]\\nkey = [1, 2.5, 'text', true]\\n")
table["table"]["key"].append("of the caller alone")
print(toml_text.parsed("[table]\\nkey = [1, 2.5, 'text', true]\\n"))
loaded = "tomli" in sys.modules
print(toml_text.parsed("date = 2026-11-26")["date"], loaded, bool(compiled))
code.save()
"""


def probe(cache: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TILEC_CACHE_DIR", str(cache))
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


SAME = """\
Point(x=1, y=[]) True True
{'table': {'key': [1, 2.5, 'text', True]}}
2026-11-26 """


def kept(cache: Path) -> Path:
    (path,) = (cache / "snapshots").glob("generated-*.marshal")
    return path


def test_a_second_process_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert probe(tmp_path, monkeypatch) == f"{SAME}True True\n"
    assert kept(tmp_path).stat().st_mode & 0o777 == 0o600
    assert probe(tmp_path, monkeypatch) == f"{SAME}False False\n"


@pytest.mark.parametrize("harm", ["cut", "garbage", "open to others", "empty"])
def test_a_file_that_cannot_be_trusted_is_made_anew(
    harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe(tmp_path, monkeypatch)
    path = kept(tmp_path)
    data = path.read_bytes()
    if harm == "open to others":
        path.chmod(0o666)
    else:
        path.write_bytes({"cut": data[:-9], "garbage": b"\x80" * 99, "empty": b""}[harm])
    assert probe(tmp_path, monkeypatch) == f"{SAME}True True\n"
    assert probe(tmp_path, monkeypatch) == f"{SAME}False False\n"


def test_without_a_place_to_keep_it_all_is_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    assert probe(tmp_path / "file", monkeypatch) == f"{SAME}True True\n"

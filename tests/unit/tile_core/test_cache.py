"""The artifact cache: the same bytes, keys that cover what decides them, and damage."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tile_core import api, cached
from tile_core.cache import Cache, Entry, key_of
from tile_core.cached import compile_cached
from tile_core.cli.main import run

EXAMPLE = Path(__file__).parents[3] / "examples" / "bytecode" / "vector_add_f32.tileirbc"
PROGRAM = EXAMPLE.read_bytes()


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "artifacts")


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The targets of compilations that were not found in the cache."""
    done: list[str] = []
    real = api.compile

    def counted(source: Any, target: str, **arguments: Any) -> Any:
        done.append(target)
        return real(source, target, **arguments)

    monkeypatch.setattr(cached.api, "compile", counted)
    return done


def ptx(cache: Cache | None, target: str = "sm_80", **more: Any) -> Any:
    return compile_cached(PROGRAM, target, cache, opt_level=0, emit="ptx", **more)


def test_the_second_time_it_comes_from_the_cache(cache: Cache, compilations: list[str]) -> None:
    first, second = ptx(cache), ptx(cache)
    assert compilations == ["sm_80"]
    assert (first.from_cache, second.from_cache) == (False, True)
    assert first.output == second.output == ptx(None).output
    assert [str(r) for r in first.remarks] == [str(r) for r in second.remarks]


@pytest.mark.parametrize(
    "change",
    [
        {"target": "sm_90"},
        {"options": {"lineinfo": True}},
        {"options": {"ftz": True}},
        {"pass_options": {"ptx.ptx-version": 90}},
        {"variable": "TILEIR_ALWAYS_SWIZZLE"},
        {"tool": True},
    ],
    ids=str,
)
def test_what_decides_the_output_is_in_the_key(
    cache: Cache, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ptx(cache)
    if "variable" in change:
        monkeypatch.setenv(change.pop("variable"), "1")
    if change.pop("tool", False):
        library = tmp_path / "libdevice.10.bc"
        library.write_bytes(b"")
        change["toolchain"] = {"libdevice": library}
    assert not ptx(cache, **change).from_cache


def test_a_changed_installation_is_another_key(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    ptx(cache)
    monkeypatch.setattr(cached, "installed", lambda: "another")
    assert not ptx(cache).from_cache


def test_whoever_watches_passes_gets_them(cache: Cache) -> None:
    from tile_core.pipeline.instrument import Instrumentation

    ptx(cache)
    assert not ptx(cache, instrumentations=[Instrumentation()]).from_cache


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"garbage", None])
def test_a_damaged_entry_is_made_anew(cache: Cache, damage: bytes | None) -> None:
    whole = ptx(cache).output
    (path,) = (p for p in cache.folder.glob("??/*") if p.parent.name != "locks")
    path.write_bytes(path.read_bytes()[:-1] if damage is None else damage)
    again = ptx(cache)
    assert not again.from_cache
    assert again.output == whole
    assert ptx(cache).from_cache


def test_a_disk_that_takes_nothing_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert ptx(Cache(tmp_path / "file")).output


def test_errors_are_not_kept(cache: Cache) -> None:
    for _ in range(2):
        with pytest.raises(api.TileError, match="is unknown"):
            compile_cached(b"garbage", "sm_80", cache)
    assert not cache.entries()


def test_one_key_is_made_once(cache: Cache, compilations: list[str]) -> None:
    with ThreadPoolExecutor(4) as pool:
        outputs = {made.output for made in pool.map(lambda _: ptx(cache), range(4))}
    assert len(outputs) == 1
    assert len(compilations) == 1


def test_the_longest_unused_go_first(cache: Cache) -> None:
    keys = [key_of({"n": n}) for n in range(10)]
    for number, key in enumerate(keys):
        cache.store(key, Entry(bytes(1000), False))
        os.utime(cache.folder / key[:2] / key, (number, number))
    assert cache.find(keys[0]) is not None  # now the last used
    removed, _ = cache.collect(limit=6 * 1200)
    left = {entry.key for entry in cache.entries()}
    assert removed == 10 - len(left)
    assert left == {keys[0], *keys[-(len(left) - 1) :]}
    assert cache.clear()[0] == len(left)
    assert not cache.entries()


def test_unfinished_files_of_the_dead_are_removed(cache: Cache) -> None:
    cache.store("ab" * 32, Entry(b"x", False))
    old, new = cache.folder / "ab" / ".old.part", cache.folder / "ab" / ".new.part"
    for path in (old, new):
        path.write_bytes(b"")
    past = time.time() - 7200
    os.utime(old, (past, past))
    cache.collect()
    assert (old.exists(), new.exists()) == (False, True)


def test_the_verb(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    monkeypatch.setenv("TILEC_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TILEC_CACHE", "on")
    command = ["compile", str(EXAMPLE), "--gpu-name", "sm_80", "-O0", "--emit=ptx", "-o", "-"]
    monkeypatch.chdir(tmp_path)
    command[-1] = "out.ptx"
    assert run(command) == 0
    first = (tmp_path / "out.ptx").read_bytes()
    assert run([*command, "--no-cache"]) == 0
    assert run(command) == 0
    assert (tmp_path / "out.ptx").read_bytes() == first
    assert run(["cache", "ls"]) == 0
    listed = capsys.readouterr().out
    assert "sm_80   -O0 ptx" in listed
    assert "1 artifacts" in listed
    assert run(["cache", "gc", "--size", "0"]) == 0
    assert run(["cache", "clear"]) == 0
    assert "removed 0 artifacts" in capsys.readouterr().out
    monkeypatch.setenv("TILEC_CACHE", "off")
    assert run(["cache", "ls"]) == 2

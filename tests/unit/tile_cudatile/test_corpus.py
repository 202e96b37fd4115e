"""The corpus of cuTile kernels: read, verify, print, parse, write, as the releases do.

What the released disassemblers print is stored as hashes, so that none of them is needed.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from tile_cudatile import parse_text, print_text, read_bytecode, write_bytecode
from tile_cudatile.versions import SUPPORTED
from unit.tile_cudatile.corpus import archive
from unit.tile_cudatile.corpus.judge import digest, judge_all, round_trip
from unit.tile_cudatile.releases import releases

CASES = sorted({archive.case_of(name) for name in archive.files()})
#: Releases with a disassembler, and the versions whose files each of them was asked about.
DISASSEMBLERS = ("13.4.59", "13.4.92", "13.5.37")
#: These end with an illegal instruction on some numbers of the format f8E5M3FNU.
CRASHES = {("full_large.13.4", "13.4.59"), ("full_large.13.4", "13.4.92")}
#: Releases without one; compilers are slow, and were asked about a part of their version's files.
COMPILERS = {"13.1.80": "13.1", "13.2.86": "13.2", "13.3.36": "13.3"}


def _of(case: str) -> list[str]:
    return [name for name in archive.files() if archive.case_of(name) == case]


@pytest.mark.parametrize("case", CASES)
def test_every_version_prints_as_released_and_writes_its_bytes(case: str) -> None:
    for name in _of(case):
        data, entry = archive.files()[name], archive.index()[name]
        module = read_bytecode(data)
        assert f"{module.version[0]}.{module.version[1]}" == name.split(".", 1)[1]
        assert [e.name.removeprefix(f"{case}__") for e in module.entries] == entry["variants"]
        assert set(entry["text"].values()) == {digest(print_text(module))}, name
        assert write_bytecode(module) == data, name


@pytest.mark.parametrize("case", CASES)
def test_the_newest_version_comes_back_from_text(case: str) -> None:
    data = archive.files()[max(_of(case))]
    text = round_trip(data)
    parsed = parse_text(text, version=read_bytecode(data).version)
    assert print_text(read_bytecode(write_bytecode(parsed))) == text


def test_all_disassemblers_were_asked() -> None:
    for name, entry in archive.index().items():
        version = name.split(".", 1)[1]
        asked = {r for r in DISASSEMBLERS if r >= version and (name, r) not in CRASHES}
        assert set(entry["text"]) == asked, name


@pytest.mark.parametrize(("release", "version"), COMPILERS.items())
def test_older_compilers_were_asked(release: str, version: str) -> None:
    asked = [name for name, entry in archive.index().items() if release in entry["accepted"]]
    assert {name.split(".", 1)[1] for name in asked} == {version}


def test_every_version_is_there() -> None:
    versions = {name.split(".", 1)[1] for name in archive.files()}
    assert versions == {f"{major}.{minor}" for major, minor in SUPPORTED}


@pytest.mark.skipif(not releases(), reason="needs the releases: make releases")
def test_some_files_before_the_releases() -> None:
    names = sorted(archive.files())[::40]
    assert judge_all({name: archive.files()[name] for name in names}) == []


@pytest.mark.slow
@pytest.mark.skipif(not releases(), reason="needs the releases: make releases")
def test_all_files_before_the_releases() -> None:
    assert judge_all(archive.files()) == []


# --- what the kernels cover ---------------------------------------------------------------------


def _cutile():
    return pytest.importorskip("cuda.tile", reason="needs cuTile: pip install cuda-tile")


def _used() -> set[str]:
    """Names of attributes and methods in the sources of the kernels."""
    names: set[str] = set()
    for family in archive.FAMILIES:
        tree = ast.parse((Path(archive.__file__).parent / f"{family}.py").read_text())
        names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return names


def _public_operations(ct) -> set[str]:
    """What a kernel can call or ask of cuTile's objects."""
    stub = sys.modules["cuda.tile._stub"]
    names = {name for name in ct.__all__ if getattr(stub, name, None) is getattr(ct, name)}
    functions = {name for name in names if not isinstance(getattr(ct, name), type)}
    for holder in (ct.Array, ct.Tile, ct.TiledView, stub.RawArrayMemory):
        functions |= {name for name in vars(holder) if not name.startswith("_")}
    return functions


#: Annotations, and things that are other names of what is used.
_NO_OPERATIONS = {"IndexedWithInt64", "ScalarInt64", "Scalar"}


def test_every_public_operation_has_a_kernel() -> None:
    ct = _cutile()
    assert _public_operations(ct) - _used() - _NO_OPERATIONS == set()


def test_every_number_format_has_a_kernel() -> None:
    ct = _cutile()
    formats = {str(v) for n in ct.__all__ if isinstance(v := getattr(ct, n), ct.DType)}
    exported = {label for entry in archive.index().values() for label in entry["variants"]}
    assert formats - exported == set()

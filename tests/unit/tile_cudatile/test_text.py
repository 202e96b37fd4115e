"""The assembly form, against what the released disassembler prints."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from tile_cudatile import parse_text, print_text, read_bytecode, write_bytecode
from tile_cudatile import types as t
from tile_cudatile.text.numbers import LAYOUTS, float_text, quoted
from tile_cudatile.tree import Module
from tile_cudatile.versions import SUPPORTED, V13_5, Version
from unit.tile_cudatile import samples
from unit.tile_cudatile.everything import everything
from unit.tile_cudatile.peer import disassemble, needs_disassembler

TEXTS = sorted((samples.DATA / "text").glob("*.txt"))


def _families(version: Version) -> dict[str, Module]:
    whole = everything(version)
    return {
        entry.name: Module(version, whole.globals, [entry], whole.producer)
        for entry in whole.entries
    }


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.stem)
def test_prints_what_the_disassembler_prints(path: Path) -> None:
    if path.stem in samples.NAMES:
        module = read_bytecode(samples.sample(path.stem))
    else:
        module = _families(V13_5)[path.stem.split(".")[0]]
    assert print_text(module).splitlines() == path.read_text().splitlines()


@needs_disassembler
@pytest.mark.parametrize("name", samples.NAMES)
def test_samples_like_the_disassembler(name: str, tmp_path: Path) -> None:
    data = samples.sample(name)
    result = disassemble(data, tmp_path)
    assert result.stdout == print_text(read_bytecode(data))


@needs_disassembler
@pytest.mark.parametrize("version", SUPPORTED, ids=str)
def test_every_operation_like_the_disassembler(version: Version, tmp_path: Path) -> None:
    for module in _families(version).values():
        result = disassemble(write_bytecode(module), tmp_path)
        assert result.stderr == ""
        assert result.stdout == print_text(module)


@pytest.mark.parametrize(
    ("bits", "element", "text"),
    [
        (0x3F800000, t.F32, "1.000000e+00"),
        (0x80000000, t.F32, "-0.000000e+00"),
        (0x40490FDB, t.F32, "3.14159274"),
        (0x3EAAAAAB, t.F32, "0.333333343"),
        (0x00000001, t.F32, "1.401300e-45"),
        (0x7F800000, t.F32, "0x7F800000"),
        (0xFFC00001, t.F32, "0xFFC00001"),
        (0x2E66, t.F16, "9.997550e-02"),
        (0x7E, t.F8E4M3FN, "4.480000e+02"),
        (0x7F, t.F8E4M3FN, "0x7F"),
    ],
)
def test_floats(bits: int, element: t.Scalar, text: str) -> None:
    assert float_text(bits, element) == text


@pytest.mark.parametrize("name", ["f8E4M3FN", "f8E5M2", "f16", "bf16"])
def test_every_float_reads_back(name: str) -> None:
    layout, element = LAYOUTS[name], t.SCALARS[name]
    step = 1 if element.width == 8 else 37
    for bits in range(0, 1 << (element.width - 1), step):
        text = float_text(bits, element)
        if not text.startswith("0x"):
            assert layout.nearest(Fraction(text)) == bits


def test_strings() -> None:
    assert quoted('a"b\\c\n\xe9') == '"a\\22b\\\\c\\0A\\C3\\A9"'


@pytest.mark.parametrize(
    ("producer", "locations", "text"),
    [
        (None, False, "\n"),
        ("me", False, "// Producer: me\n\n"),
        (None, True, "\n#loc = loc(unknown)\n"),
    ],
)
def test_a_module_of_nothing_is_an_empty_line(
    producer: str | None, locations: bool, text: str
) -> None:
    module = Module(entries=[], producer=producer)
    assert print_text(module, locations=locations) == text
    again = parse_text(text)
    assert (again.entries, again.producer) == ([], producer)

"""Writing bytecode."""

from __future__ import annotations

import pytest
from tile_cudatile import print_text, read_bytecode, write_bytecode
from tile_cudatile import types as t
from tile_cudatile.attrs import Integer
from tile_cudatile.tree import Op
from tile_cudatile.versions import SUPPORTED, V13_1, V13_3, V13_5, Version
from unit.tile_cudatile import samples
from unit.tile_cudatile.apply import operation
from unit.tile_cudatile.everything import everything

from tile_core.diagnostics import InputError


@pytest.mark.parametrize("name", samples.NAMES)
def test_what_was_read_is_written_byte_by_byte(name: str) -> None:
    data = samples.sample(name)
    assert write_bytecode(read_bytecode(data)) == data


@pytest.mark.parametrize("name", samples.NAMES)
def test_a_new_layout_holds_the_same_program(name: str) -> None:
    module = read_bytecode(samples.sample(name))
    text = print_text(module)
    module.layout = None
    again = read_bytecode(write_bytecode(module))
    assert print_text(again) == text
    assert [op.loc for op in again.entries[0].body.walk()] == [
        op.loc for op in module.entries[0].body.walk()
    ]


@pytest.mark.parametrize("version", SUPPORTED, ids=str)
def test_every_operation_there_and_back(version: Version) -> None:
    module = everything(version)
    data = write_bytecode(module)
    again = read_bytecode(data)
    assert print_text(again) == print_text(module)
    assert write_bytecode(again) == data
    for entry, other in zip(module.entries, again.entries, strict=True):
        for op, copy in zip(entry.body.walk(), other.body.walk(), strict=True):
            assert op.name == copy.name
            assert op.attrs == copy.attrs


@pytest.mark.parametrize("name", ["vector_add", "softmax", "batch_matmul", "scan_rows"])
def test_older_and_newer_versions(name: str) -> None:
    newest = read_bytecode(samples.sample(f"{name}.13.5"))
    for version in SUPPORTED:
        other = read_bytecode(write_bytecode(newest, version))
        assert other.version == version
        assert print_text(other) == print_text(newest)
    oldest = read_bytecode(samples.sample(f"{name}.13.1"))
    assert print_text(read_bytecode(write_bytecode(oldest, V13_5))) == print_text(oldest)


def _with(op: Op):
    module = everything(V13_5)
    module.producer = None
    module.globals.clear()
    entry = module.entries[0]
    del module.entries[1:]
    entry.body.block.ops[:] = [op, entry.body.block.ops[-1]]
    return module


TILE = t.Tile((4,), t.F32)


@pytest.mark.parametrize(
    ("op", "version", "message"),
    [
        (
            operation("gdc_wait_tko", [None], [t.TOKEN]),
            V13_3,
            r"'cuda_tile.gdc_wait_tko' op requires bytecode version 13.4\+, but targeting 13.3",
        ),
        (
            operation("iota", [], [t.Tile((4,), t.I4)]),
            V13_1,
            r"type 'i4' requires bytecode version 13.3\+, but targeting 13.1",
        ),
        (
            operation(
                "alloca", [], [t.Tile((), t.Pointer(t.F32, "unicast"))], num_elem=1, alignment=4
            ),
            V13_3,
            r"parameter 'ptrAttr' requires bytecode version 13.4\+, but targeting 13.3",
        ),
    ],
    ids=["operation", "type", "pointer"],
)
def test_what_a_version_cannot_hold(op: Op, version: Version, message: str) -> None:
    module = _with(op)
    assert write_bytecode(module)
    with pytest.raises(InputError, match=message):
        write_bytecode(module, version)


def test_newer_attributes_are_refused_only_if_they_say_something() -> None:
    module = read_bytecode(samples.sample("vector_add.13.5"))
    ops = module.entries[0].body.block.ops
    load = next(op for op in ops if op.name == "load_view_tko")
    assert write_bytecode(module, V13_3)
    load.attrs["inbounds"] = (True,)
    with pytest.raises(InputError, match=r"attribute 'inbounds' requires bytecode version 13\.4"):
        write_bytecode(module, V13_3)


def test_a_used_result_that_the_version_lacks() -> None:
    module = read_bytecode(samples.sample("transpose.13.1"))
    ops = list(module.entries[0].body.walk())
    printed = next(op for op in ops if op.name == "print_tko")
    assert len(printed.results) == 1  # there, though the file does not have it
    assert write_bytecode(module) == samples.sample("transpose.13.1")
    stores = [op for op in ops if op.name == "store_view_tko"]
    assert stores


def test_hints_come_back() -> None:
    module = everything(V13_5)
    again = read_bytecode(write_bytecode(module))
    (target,) = again.entries[-1].hints.targets.values()
    assert target == {"num_cta_in_cga": Integer(t.I32, 2), "occupancy": Integer(t.I32, 4)}

"""What cannot be compiled: one error that names the operation, its place and the reason.

On every target where it cannot be; where it can, it compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import tile_cudatile
from support.programs import I32, Program
from support.tiles import registry
from tile_cudatile import types as t
from tile_cudatile.attrs import Dense
from tile_cudatile.tree import Global

import tile_core
from tile_core.diagnostics import ExitCode, TileError
from tile_core.target import Target, builtin_targets

TARGETS = tuple(builtin_targets().values())
CHOSEN = ("sm_80", "sm_90", "sm_120")


def compiled(program: Program, target: str, name: str = "k", **settings: object) -> str:
    """PTX from text, so that every operation has a line."""
    module = program.module()
    module.entries[0].name = name
    tile_cudatile.verify(module)
    made = tile_core.compile(
        str(tile_cudatile.to_mlir(module)),
        target,
        start_at="convert-cudatile-to-tileaa",
        emit="ptx",
        registry=registry(),
        keep_stages=False,
        **settings,  # type: ignore[arg-type]
    )
    return str(made.stage("ptx"))


def refused(program: Program, target: str, name: str = "k", **settings: object) -> TileError:
    """The error, which has a place in the text."""
    with pytest.raises(TileError) as caught:
        compiled(program, target, name, **settings)
    error = caught.value
    assert error.where is not None, error
    assert error.message.startswith("'"), "no operation is named"
    assert "Traceback" not in error.render()
    return error


def printing(count: int) -> Program:
    """Prints a tile, whose elements go through shared memory."""
    program = Program()
    value = program.load((count,), t.F32)
    program.emit("print_tko", [(value,)], t.TOKEN, str="%f")
    return program


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_too_much_shared_memory(target: Target) -> None:
    count = 1 << (target.max_shared // 4).bit_length()
    error = refused(printing(count), target.name)
    assert error.message == (
        f"'nv_tileaa.print' op uses too much shared data (0x{4 * count:x} bytes, "
        f"0x{target.max_shared:x} max)"
    )
    assert error.exit_code == ExitCode.COMPILE


def parameters(count: int) -> Program:
    program = Program()
    for _ in range(count):
        program.argument(t.Tile((), t.Pointer(t.F32)))
    return program


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_too_many_parameters(target: Target) -> None:
    error = refused(parameters(4096), target.name)
    assert error.message == (
        "'llvm.func' op Formal parameter space overflowed (32768 bytes required, max 32764 bytes "
        "allowed) in function k"
    )


@dataclass(frozen=True)
class Row:
    """A program, the targets that can run it, and what is said on the others."""

    make: Callable[[], Program]
    holds: Callable[[Target], bool]
    message: str


def copied(element: t.Scalar) -> Program:
    program = Program()
    program.store(program.load((256,), element), (256,), element)
    return program


def converted(element: t.Scalar) -> Program:
    program = Program()
    wide = program.load((256,), t.F32)
    narrow = program.emit("ftof", [wide], t.Tile((256,), element), rounding_mode="nearest_even")
    back = program.emit("ftof", [narrow], wide.type, rounding_mode="nearest_even")
    program.store(back, (256,), t.F32)
    return program


def product(element: t.Scalar, total: t.Scalar) -> Program:
    program, shape = Program(), (32, 32)
    left, right = program.load(shape, element), program.load(shape, element)
    start = program.constant(t.Tile(shape, total), 0)
    name = "mmai" if total == t.I32 else "mmaf"
    signs = {f"signedness_{side}": "signed" for side in ("lhs", "rhs")} if name == "mmai" else {}
    result = program.emit(name, [left, right, start], t.Tile(shape, total), **signs)
    program.store(result, shape, total)
    return program


def multicast() -> Program:
    program = Program()
    tensor = t.TensorView(t.I32, (1000,), (1,), "multicast")
    base = program.argument(t.Tile((), t.Pointer(t.I32, "multicast")))
    view = program.emit("make_tensor_view", [base, (), ()], tensor)
    tiles = program.emit(
        "make_partition_view", [view], t.PartitionView((64,), tensor, (0,), "zero")
    )
    value = program.load((64,), t.I32)
    program.emit(
        "multimem_reduce_view_tko", [tiles, value, (program.argument(I32),)], t.TOKEN,
        reduction="add", memory_ordering_semantics="relaxed", memory_scope="sys",
    )  # fmt: skip
    return program


def always(_: Target) -> bool:
    return True


ROWS = {
    "multicast memory": Row(
        multicast, lambda target: target.sm >= 90, "needs multicast memory, which {name} lacks"
    ),
    "numbers of four bits": Row(
        lambda: copied(t.F4E2M1FN), lambda _: False, "works on elements of type f4E2M1FN in memory"
    ),
    "f8E4M3FN": Row(lambda: converted(t.F8E4M3FN), always, ""),
    "f8E5M2": Row(lambda: converted(t.F8E5M2), always, ""),
    "f64 product": Row(lambda: product(t.F64, t.F64), always, ""),
    "f8 product": Row(lambda: product(t.F8E4M3FN, t.F32), always, ""),
    "i8 product": Row(lambda: product(t.I8, t.I32), always, ""),
}


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(target, marks=() if target.name in CHOSEN else pytest.mark.slow)
        for target in TARGETS
    ],
    ids=lambda t: t.name,
)
@pytest.mark.parametrize("name", ROWS)
def test_what_a_target_lacks(name: str, target: Target) -> None:
    """Refused, or made of what there is: nothing in between."""
    row = ROWS[name]
    if row.holds(target):
        assert ".entry k" in compiled(row.make(), target.name)
    else:
        message = row.message.format(name=target.name)
        assert message in refused(row.make(), target.name).message


@pytest.mark.parametrize("name", ["k-1", "a b", "kü", ".entry", "a.b", "1k", 'k"q', "%x", "_"])
def test_names_that_ptx_cannot_spell(name: str) -> None:
    error = refused(copied(t.F32), "sm_90", name)
    assert f"has the name '{name}', but names in PTX are letters, digits, _ and $" in error.message


@pytest.mark.parametrize("name", ["ret", "add", "k$1", "_k"])
def test_names_of_instructions_are_names(name: str) -> None:
    assert f".entry {name}" in compiled(copied(t.F32), "sm_90", name)


@pytest.mark.parametrize("name", ["global_smem", "vprintf", "malloc", "__nv_sinf", "__tile_x"])
def test_names_that_the_compiler_needs(name: str) -> None:
    assert "is reserved" in refused(copied(t.F32), "sm_90", name).message


def of_global(name: str) -> Program:
    program, pointer = Program(), t.Tile((), t.Pointer(t.I32))
    program.globals.append(Global(name, Dense(t.Tile((4,), t.I32), bytes(16)), 16))
    base = program.emit("get_global", [], pointer, name=name)
    value = program.emit("load_ptr_tko", [base], I32, t.TOKEN, memory_ordering_semantics="weak")
    program.store(value, (1,), t.I32)
    return program


def test_names_of_globals() -> None:
    assert "names in PTX are" in refused(of_global("a.b"), "sm_90").message
    assert "is reserved" in refused(of_global("global_smem"), "sm_90").message
    assert ".global .align 16 .b8 g" in compiled(of_global("g"), "sm_90")


def tangent() -> Program:
    program = Program()
    value = program.load((128,), t.F32)
    program.store(program.emit("tan", [value], value.type), (128,), t.F32)
    return program


def test_libdevice_is_missing(tmp_path: Path) -> None:
    """Said of the first operation that needs it; a program that does not need it compiles."""
    named = {"libdevice": tmp_path / "none.bc"}
    error = refused(tangent(), "sm_90", toolchain=named)
    assert "'llvm.call' op calls __nv_tanf of libdevice: libdevice not found" in error.message
    assert error.exit_code == ExitCode.CONFIGURATION
    assert any("none.bc" in note for note in error.notes)
    assert error.hint
    assert ".entry k" in compiled(copied(t.F32), "sm_90", toolchain=named)


def test_libdevice_is_something_else(tmp_path: Path) -> None:
    file = tmp_path / "libdevice.bc"
    file.write_bytes(b"BC\xc0\xde and then nothing of the kind")
    with pytest.raises(TileError) as caught:
        compiled(tangent(), "sm_90", toolchain={"libdevice": file})
    assert f"libdevice ({file}) cannot be read as LLVM bitcode" in caught.value.message
    assert "Traceback" not in caught.value.render()
    # And the worker lives on.
    assert ".entry k" in compiled(tangent(), "sm_90")


def test_clusters() -> None:
    """Of a number of blocks that no cluster has."""
    for target in CHOSEN:
        with pytest.raises(TileError) as caught:
            compiled(copied(t.F32), target, options={"num-ctas": 3})
        assert caught.value.exit_code == ExitCode.CONFIGURATION
        assert "num-ctas" in caught.value.message

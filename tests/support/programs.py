"""Programs of the input language, built in Python, run by the compiler and by the evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tile_cudatile
import tile_sim
from tile_cudatile import types as t
from tile_cudatile.attrs import Dense, Float, Integer
from tile_cudatile.evaluator.formats import dtype_of, encode
from tile_cudatile.ops import BODY_OPS
from tile_cudatile.tree import Block, Entry, Global, Module, Op, Region, Value

import support.strategies
import tile_core
from support.tiles import registry

STRATEGIES = ("blocked", "first-legal", 0, 1, 2)  # numbers: seeds of random layouts
I32 = t.Tile((), t.I32)


class Program:
    """Appends operations to a kernel `k`; arguments are pointers to whole tiles, and scalars."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.args: list[Value] = []
        self.globals: list[Global] = []

    def emit(self, name: str, operands: list[Any], /, *results: t.Type, **attrs: Any) -> Any:
        """An operation; its first result, or None. Absent attributes get their defaults."""
        spec = BODY_OPS.by_name[name]
        regions = attrs.pop("regions", ())
        values = {a.name: a.default for a in spec.attrs if a.default is not None}
        groups = [*operands, *[None] * (len(spec.operands) - len(operands))]
        if "inbounds" in values and "inbounds" not in attrs:
            values["inbounds"] = (False,) * len(groups[spec.operand_index["index"]])
        made = Op(
            spec, tuple(groups), tuple(map(Value, results)), {**values, **attrs}, tuple(regions)
        )
        self.ops.append(made)
        return made.results[0] if made.results else None

    def argument(self, type_: t.Type) -> Value:
        """A further kernel argument."""
        self.args.append(Value(type_))
        return self.args[-1]

    def constant(self, type_: t.Tile, values: Any) -> Value:
        """A dense constant, or a splat of one number."""
        element = type_.element
        assert isinstance(element, t.Scalar)
        data = np.asarray(values, dtype_of(element))
        if element == t.TF32:
            assert data.ndim == 0, "splats only"
            bits = int(data.view(np.uint32)) >> 13
            return self.emit("constant", [], type_, value=Dense(type_, bits.to_bytes(3, "little")))
        if element == t.I1:
            splat = b"\xff" if data.all() else b"\x00"
            return self.emit("constant", [], type_, value=Dense(type_, splat))
        return self.emit(
            "constant",
            [],
            type_,
            value=Dense(type_, np.ascontiguousarray(encode(data.reshape(-1), element)).tobytes()),
        )

    def view(self, shape: tuple[int, ...], element: t.Scalar, padding: str = "zero") -> Value:
        """A pointer argument seen as one tile of `shape`, row-major."""
        base = self.argument(t.Tile((), t.Pointer(element)))
        steps = tuple(int(np.prod(shape[at + 1 :])) for at in range(len(shape)))
        tensor = t.TensorView(element, shape, steps)
        view = self.emit("make_tensor_view", [base, (), ()], tensor)
        axes = tuple(range(len(shape)))
        return self.emit(
            "make_partition_view", [view], t.PartitionView(shape, tensor, axes, padding)
        )

    def load(self, shape: tuple[int, ...], element: t.Scalar) -> Value:
        """All of a new argument."""
        view = self.view(shape, element)
        index = (self.constant(I32, 0),) * len(shape)
        return self.emit(
            "load_view_tko",
            [view, index],
            t.Tile(shape, element),
            t.TOKEN,
            memory_ordering_semantics="weak",
        )

    def store(self, value: Value, shape: tuple[int, ...], element: t.Scalar) -> None:
        """A new argument = value; rank 0 goes through a tile of one element."""
        if not value.type.shape:  # type: ignore[union-attr]
            value = self.emit("reshape", [value], t.Tile(shape, element))
        view = self.view(shape, element)
        index = (self.constant(I32, 0),) * len(shape)
        self.emit("store_view_tko", [value, view, index], t.TOKEN, memory_ordering_semantics="weak")

    def addresses(self, base: Value, element: t.Scalar, offsets: Value) -> Value:
        """Tile of pointers `base + offsets`."""
        assert isinstance(offsets.type, t.Tile)
        shape = offsets.type.shape
        ones, lanes = (t.Tile(s, t.Pointer(element)) for s in ((1,) * len(shape), shape))
        spread = self.emit("broadcast", [self.emit("reshape", [base], ones)], lanes)
        return self.emit("offset", [spread, offsets], lanes)

    def region(
        self, types: list[t.Type], build: Callable[..., list[Value]], end: str = "yield"
    ) -> Region:
        """A region of one block, which ends in `end` of what `build(*arguments)` gives."""
        outer, self.ops = self.ops, []
        args = tuple(map(Value, types))
        self.emit(end, [tuple(build(*args))])
        block, self.ops = Block(args, self.ops), outer
        return Region([block])

    def module(self) -> Module:
        """The program."""
        block = Block(tuple(self.args), [*self.ops])
        block.ops.append(Op(BODY_OPS.by_name["return"], ((),), (), {}, ()))
        kind = t.Function(tuple(a.type for a in self.args), ())
        return Module(entries=[Entry("k", kind, Region([block]))], globals=self.globals)

    def ptx(
        self, target: str = "sm_90", opt_level: int = 2, strategy: Any = None, **options: Any
    ) -> str:
        """PTX of the program; `options` are those of the level."""
        module = self.module()
        tile_cudatile.verify(module)
        if strategy is not None:
            if isinstance(strategy, int):
                support.strategies.RandomStrategy.seed = strategy
                strategy = "random"
            options["layout-strategy"] = strategy
        artifact = tile_core.compile(
            str(tile_cudatile.to_mlir(module)),
            target,
            opt_level=opt_level,
            start_at="convert-cudatile-to-tileaa",
            emit="ptx",
            registry=registry(),
            keep_stages=False,
            options=options,
        )
        return str(artifact.stages["ptx"])

    def run(self, *args: Any, grid: tuple[int, int, int] = (1, 1, 1), **settings: Any) -> Any:
        """Compile and run in the simulator; arrays are changed in place, findings fail."""
        module = tile_sim.Module(self.ptx(**settings))
        report = module.launch("k", grid, None, list(args), check=True)
        assert not report.findings, "\n".join(map(str, report.findings))
        return report

    def agrees(self, *args: Any, grid: tuple[int, int, int] = (1, 1, 1), **settings: Any) -> None:
        """The compiled program changes the arrays to the same bytes as the evaluator."""
        expected = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        ftz = bool(settings.get("ftz"))
        tile_cudatile.evaluate(self.module(), "k", grid, expected, ftz=ftz)
        self.run(*args, grid=grid, **settings)
        for at, (found, wanted) in enumerate(zip(args, expected, strict=True)):
            if isinstance(found, np.ndarray):
                np.testing.assert_array_equal(*_bytes(found, wanted), err_msg=f"argument {at}")


def _bytes(found: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both as bytes, NaNs of any kind as the same one: which NaN results is left open."""
    if found.dtype.kind in "fV":
        found, wanted = found.copy(), wanted.copy()
        for array in (found, wanted):
            array[np.isnan(array.astype(np.float64))] = np.array(np.nan).astype(array.dtype)
    return found.view(np.uint8), wanted.view(np.uint8)


def number(element: t.Scalar, value: float) -> Float | Integer:
    """An identity of a reduction."""
    raw = np.asarray(value).astype(dtype_of(element))
    bits = int.from_bytes(np.ascontiguousarray(encode(raw.reshape(1), element)).tobytes(), "little")
    return Float(element, bits) if element.is_float else Integer(element, bits)


def numbers(shape: tuple[int, ...], element: t.Scalar, seed: int = 0) -> np.ndarray:
    """Small integers of a type, whose sums are exact in any order."""
    found = np.random.default_rng(seed).integers(-4, 5, shape)
    return found.astype(dtype_of(element)) if element != t.I1 else found > 0

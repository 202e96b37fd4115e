"""Random kernels of nv_tileaa and their arguments, made side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.tiles import DTYPES, Kernel, tile

Arrays = list[Any]


def shape_of(rng: np.random.Generator, count: int = 64, rank: int | None = None) -> tuple[int, ...]:
    """A shape of `count` elements."""
    rank = int(rng.integers(1, 4)) if rank is None else rank
    shape = [1] * rank
    while np.prod(shape) < count:
        shape[int(rng.integers(rank))] *= 2
    return tuple(map(int, shape))


def numbers(rng: np.random.Generator, shape: tuple[int, ...], element: str = "f32") -> Any:
    if element.startswith("i"):
        info = np.iinfo(DTYPES[element])
        return rng.integers(info.min, info.max, shape, DTYPES[element], endpoint=True)
    return rng.standard_normal(shape).astype(DTYPES[element])


class Making:
    """A kernel and its arguments, side by side."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.kernel, self.arrays = rng, Kernel(), []
        self._count = 0

    def name(self) -> str:
        self._count += 1
        return f"%n{self._count}"

    def op(self, text: str) -> str:
        """`text` as the value of a new name."""
        name = self.name()
        self.kernel.op(f"{name} = {text}")
        return name

    def load(self, shape: tuple[int, ...], element: str = "f32") -> str:
        name = self.name()
        self.kernel.load(name, shape, element)
        self.arrays.append(numbers(self.rng, shape, element))
        return name

    def scalar(self, element: str, value: Any) -> str:
        self.arrays.append(value)
        return self.kernel.param(element)

    def pointer(self, array: Any, element: str) -> str:
        self.arrays.append(array)
        return self.kernel.param(f"!nv_tileaa.ptr<{element}, 1 : i32>")

    def pointers(self, array: Any, element: str) -> str:
        """A tile of pointers to the elements of a 1-D array."""
        base, n = self.pointer(array, element), array.size
        kind, places = f"!nv_tileaa.ptr<{element}, 1 : i32>", f"tensor<{n}xi32>"
        type_ = tile((n,), kind)
        start = self.op(f'"nv_tileaa.splat"({base}) : ({kind}) -> {type_}')
        steps = self.op(f'"nv_tileaa.make_range"() : () -> {places}')
        return self.op(f'"nv_tileaa.addptr"({start}, {steps}) : ({type_}, {places}) -> {type_}')

    def store(self, value: str, shape: tuple[int, ...], element: str = "f32") -> None:
        self.kernel.store(value, shape, element)
        self.arrays.append(np.full(shape, 7, DTYPES[element]))

    def done(self) -> tuple[Kernel, Arrays]:
        return self.kernel, self.arrays

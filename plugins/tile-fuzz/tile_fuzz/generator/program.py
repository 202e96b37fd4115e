"""Whole programs: `generate(seed)` is the same program everywhere."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from tile_cudatile.attrs import Attr, Hints, Integer
from tile_cudatile.rules.verify import verify
from tile_cudatile.tree import Block, Entry, Global, Module, Region, Value
from tile_cudatile.types import (
    F4E2M1FN,
    F16,
    F32,
    F64,
    I1,
    I4,
    I8,
    I16,
    I32,
    I64,
    TOKEN,
    Function,
    Pointer,
    Scalar,
    Tile,
)

from tile_fuzz.case import Argument, Case, Launch
from tile_fuzz.favoured import CHAINS, HINTS, LOADS, LOOPS, MATRICES, MORE, PRODUCTS, SCALES
from tile_fuzz.generator import cells, memory
from tile_fuzz.generator.aggregates import aggregate, product
from tile_fuzz.generator.chains import chain
from tile_fuzz.generator.control import control
from tile_fuzz.generator.elementwise import convert, elementwise
from tile_fuzz.generator.facts import strengthen
from tile_fuzz.generator.maker import (
    IN_MEMORY,
    SCALAR_I32,
    Item,
    Maker,
    Settings,
    count,
    dense,
)
from tile_fuzz.generator.movement import iota, move
from tile_fuzz.generator.sweeps import sweep
from tile_fuzz.generator.values import fresh

_MOST_OUTPUTS = 6
#: Numbers that kernels take.
_PASSED = (I8, I16, I32, I64, F16, F32, F64)
#: Values that have no memory form are written by way of another format.
_WIDER = {I4: ("exti", I8), F4E2M1FN: ("ftof", F32)}


def generate(seed: int, settings: Settings | None = None) -> Case:
    """The program of a seed, and what to launch it on."""
    rng = random.Random(seed)
    settings = _sized(rng, settings or Settings())
    module = Module()
    launches = []
    for number in range(rng.choice((1, 1, 1, 1, 2))):
        entry, launch = _Kernel(rng, settings, module, f"k{number}").made()
        module.entries.append(entry)
        launches.append(launch)
    case = Case(module, launches)
    verify(module)
    strengthen(case, rng)
    verify(module)
    return case


def _sized(rng: random.Random, settings: Settings) -> Settings:
    """Most programs are small, so that there are many of them; some are as large as allowed."""
    share = rng.choice((1, 2, 2, 4, 4, 8, 16))
    return replace(
        settings,
        operations=rng.randint(max(settings.operations // 4, 1), settings.operations),
        elements=max(settings.elements // share, 1),
    )


class _Kernel:
    """One kernel and its launch."""

    def __init__(self, rng: random.Random, settings: Settings, module: Module, name: str) -> None:
        self.rng = rng
        self.module = module
        self.name = name
        self.store = cells.Store()
        self.chains = 0
        self.maker = maker = Maker(rng, settings, _shapes(rng, settings))
        maker.fresh = fresh
        most = settings.blocks
        maker.grid = (rng.randint(1, most), rng.choice((1, 1, 2)), rng.choice((1, 1, 1, 2)))

    def made(self) -> tuple[Entry, Launch]:
        """The kernel and how it is launched."""
        maker = self.maker
        self._start()
        self._statements(maker)
        self._finish()
        maker.emit("return", [()])
        type_ = Function(tuple(a.type for a in maker.args), ())
        body = Region([Block(tuple(maker.args), maker.ops)])
        entry = Entry(self.name, type_, body, self._hints())
        return entry, Launch(self.name, maker.grid, tuple(maker.arguments))

    def _hints(self) -> Hints:
        """What tunes code and must not change results."""
        targets: dict[str, Attr] = {}
        for target in ("default", "sm_80", "sm_90", "sm_100", "sm_120"):
            if self.rng.random() < (0.5 if {CHAINS, HINTS} & self.maker.settings.favour else 0.1):
                hints: dict[str, Attr] = {}
                if HINTS in self.maker.settings.favour and self.rng.random() < 0.5:
                    hints["num_cta_in_cga"] = Integer(I32, self.rng.choice((1, 2, 2, 4, 8)))
                if self.rng.random() < 0.5:
                    hints["occupancy"] = Integer(I32, self.rng.choice((1, 2, 4)))
                if self.rng.random() < 0.5:
                    hints["num_worker_warps_per_cta"] = Integer(I32, self.rng.choice((4, 8)))
                targets[target] = hints
        return Hints(targets)

    # --- beginning ----------------------------------------------------------------------------

    def _start(self) -> None:
        maker = self.maker
        maker.emit("get_tile_block_id", [], *[SCALAR_I32] * 3)
        ids = maker.ops[-1].results
        maker.emit("get_num_tile_blocks", [], *[SCALAR_I32] * 3)
        extents = maker.ops[-1].results
        for value in (*ids, *extents):
            maker.keep(value)
        maker.block = self._linear(ids, extents)
        maker.memory = maker.emit("make_token", [], TOKEN)
        for _ in range(self.rng.randint(0, 3)):
            kind = maker.element(_PASSED)
            number = Argument(kind.name, value=self.rng.randint(-100, 100))
            maker.keep(maker.argument(Tile((), kind), number))
        for _ in range(self.rng.randint(0, 3)):
            cell = cells.new_cell(maker, Tile(maker.shape(), maker.element(IN_MEMORY)))
            self.store.cells.append(cell)
        if maker.may("alloca") and self.rng.random() < 0.2:
            kind = maker.element(IN_MEMORY)
            self.store.cells.append(cells.new_scratch(maker, Tile(maker.shape(), kind)))
        if self.rng.random() < 0.4:
            self.store.counters.append(cells.new_counter(maker))
        for _ in range(self.rng.randint(1, 2)):
            memory.load(maker)

    def _linear(self, ids: tuple[Value, ...], extents: tuple[Value, ...]) -> Value:
        """The number of the block in the grid."""
        emit = self.maker.emit
        row = emit("muli", [ids[2], extents[1]], SCALAR_I32)
        row = emit("addi", [row, ids[1]], SCALAR_I32)
        start = emit("muli", [row, extents[0]], SCALAR_I32)
        return emit("addi", [start, ids[0]], SCALAR_I32)

    # --- statements ---------------------------------------------------------------------------

    def _statements(self, maker: Maker) -> None:
        """A few random statements; at the top, until the budget is spent."""
        number = maker.budget if maker.depth == 0 else maker.rng.randint(1, 5)
        favour = maker.settings.favour
        kinds = [kind for kind, *_ in _STATEMENTS]
        weights = [weight * (MORE if name in favour else 1) for _, weight, name in _STATEMENTS]
        if favour & {LOOPS, MATRICES, SCALES}:
            often = _SWEEPS * (MORE if favour & {MATRICES, SCALES} else 1)
            kinds, weights = [*kinds, _Kernel._sweep], [*weights, often]
        if CHAINS in favour:
            kinds, weights = [*kinds, _Kernel._chain], [*weights, _CHAINS]
        for _ in range(number):
            if maker.budget <= 0:
                return
            maker.budget -= 1
            kind: Callable[[_Kernel], None] = maker.rng.choices(kinds, weights)[0]
            kind(self)

    def _control(self) -> None:
        if self.maker.depth < self.maker.settings.depth:
            control(self.maker, self._statements)

    def _sweep(self) -> None:
        if self.maker.depth == 0:  # in another loop it would take long
            sweep(self.maker, self._statements)

    def _chain(self) -> None:
        """One of a kernel; some kernels have two."""
        if self.maker.depth == 0 and self.maker.chance(0.2**self.chains):
            self.chains += 1
            chain(self.maker, self._statements)

    def _cell(self) -> None:
        """A read, write or update of a cell."""
        maker = self.maker
        if maker.memory is None or not self.store.cells:
            return
        cell = maker.rng.choice(self.store.cells)
        action = maker.rng.choice(("read", "write", "update"))
        if action == "write":
            cells.write(maker, cell, maker.value(cell.type))
            return
        found = cells.read(maker, cell) if action == "read" else cells.update(maker, cell)
        if found is not None:
            maker.keep(found)

    def _count(self) -> None:
        for counter in self.store.counters:
            cells.count_up(self.maker, counter)

    def _global(self) -> None:
        """A load from an array that is part of the program."""
        maker = self.maker
        kind = maker.element([e for e in IN_MEMORY if e not in (I1,)])
        size = 1 << maker.rng.randint(0, 5)
        name = f"g{len(self.module.globals)}"
        data = dense(Tile((size,), kind), np.arange(size) % 5)
        self.module.globals.append(Global(name, data, alignment=16))
        pointer = maker.emit("get_global", [], Tile((), Pointer(kind)), name=name)
        shape = maker.shape()
        places = Tile(shape, I32)
        masked = maker.emit("andi", [maker.value(places), maker.constant(places, size - 1)], places)
        maker.keep(
            maker.emit(
                "load_ptr_tko", [memory.addresses(maker, pointer, masked), None, None, None],
                Tile(shape, kind), TOKEN, memory_ordering_semantics="weak",
            )
        )  # fmt: skip

    # --- end ----------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Writes what nothing else used, so that it is seen."""
        maker = self.maker
        used = {value for op in maker.ops for inner in op.walk() for value in inner.values()}
        unused = [item for item in maker.items if item.value not in used and _storable(item)]
        others = [item for item in maker.items if item.value in used and _storable(item)]
        maker.rng.shuffle(others)
        chosen = unused[-_MOST_OUTPUTS:] + others[: max(1, 3 - len(unused))]
        for item in chosen:
            value = self._in_memory(item.value)
            type_ = value.type
            assert isinstance(type_, Tile)
            cell = cells.new_cell(maker, type_, "zeros", item.exact)
            cells.write(maker, cell, value)

    def _in_memory(self, value: Value) -> Value:
        type_ = value.type
        assert isinstance(type_, Tile)
        if type_.element not in _WIDER:
            return value
        name, kind = _WIDER[type_.element]
        made = convert(self.maker, name, value, Tile(type_.shape, kind))
        assert made is not None
        return made


def _storable(item: Item) -> bool:
    type_ = item.value.type
    return isinstance(type_, Tile) and isinstance(type_.element, Scalar)


def _shapes(rng: random.Random, settings: Settings) -> list[tuple[int, ...]]:
    """A few shapes that recur, so that values meet."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(rng.randint(1, 3)):
        size = 1 << rng.randint(0, settings.elements.bit_length() - 1)
        extents = [1] * rng.choice((1, 1, 2, 2, 2, 3, 4))
        for _ in range(count((size,)).bit_length() - 1):
            extents[rng.randrange(len(extents))] *= 2
        found.append(tuple(extents))
    return found


#: How often a loop over the tiles of arrays is drawn where loops are favoured.
_SWEEPS = 30
#: And one whose products read what others gave.
_CHAINS = 300
#: What a statement is, how often it is drawn, and the name under which it is favoured.
_STATEMENTS: tuple[tuple[Callable[[_Kernel], None], int, str], ...] = (
    (lambda kernel: elementwise(kernel.maker), 24, ""),
    (lambda kernel: move(kernel.maker), 10, ""),
    (lambda kernel: aggregate(kernel.maker), 5, ""),
    (lambda kernel: product(kernel.maker), 2, PRODUCTS),
    (lambda kernel: memory.load(kernel.maker), 4, LOADS),
    (lambda kernel: iota(kernel.maker), 1, ""),
    (_Kernel._cell, 6, ""),
    (_Kernel._count, 1, ""),
    (_Kernel._global, 1, ""),
    (_Kernel._control, 7, LOOPS),
)

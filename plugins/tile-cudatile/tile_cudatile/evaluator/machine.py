"""Runs a grid of tile blocks, one block after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tile_cudatile.attrs import Float, Integer
from tile_cudatile.evaluator import (
    accesses,
    conversions,
    floats,
    integers,
    output,
    shapes,
)
from tile_cudatile.evaluator.errors import EvaluationError
from tile_cudatile.evaluator.formats import (
    Array,
    dense_array,
    dtype_of,
    element_of,
    encode,
    memory_bytes,
    scalar_value,
)
from tile_cudatile.evaluator.memory import Memory
from tile_cudatile.evaluator.registry import HANDLERS, handles
from tile_cudatile.locations import place
from tile_cudatile.tree import Block, Entry, Module, Op, Value
from tile_cudatile.types import F4E2M1FN, Pointer, Scalar, Tile

#: Why a block of operations was left, and with which values.
Exit: TypeAlias = tuple[str, tuple[Any, ...]]
Watch: TypeAlias = Callable[[Op, list[Any], tuple[Any, ...]], None]

_FAMILIES = (accesses, conversions, floats, integers, output, shapes)
_NOISE = 0xA5  # every byte of an unspecified value, with `noise`


@dataclass
class Outcome:
    """What a run left besides memory."""

    printed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # assertions


def evaluate(
    module: Module,
    entry: str | Entry,
    grid: Sequence[int],
    args: Sequence[Any],
    *,
    seed: int | None = None,
    noise: bool = False,
    ftz: bool = False,
    max_iterations: int = 1 << 24,
    watch: Watch | None = None,
) -> Outcome:
    """Runs `entry` for every block of `grid` (one to three extents, x first).

    `args` are the kernel's arguments in flattened order: for a pointer a C-contiguous NumPy array
    of any type, read and written in place; for a number a Python or NumPy scalar. Arrays that
    share memory alias.

    Blocks run one after the other, x fastest; with `seed` in a random order, and so do the
    elements of atomics and what is summed up: reductions, scans and products, which then round
    every sum. Unspecified values (loads outside of a tensor without padding, ...) are
    zero, with `noise` a pattern that shows up.

    With `ftz`, f32 operations run as if they said `flush_to_zero`, if they can: what the
    compiler's option `ftz` means.

    `watch` is called after every operation that is no terminator, with its operands (one per
    group) and results; within reductions and scans these stand for many elements at once.

    Raises:
        EvaluationError: wrong arguments, or undefined behaviour: a false assumption, division by
            zero, an access outside of every buffer, `max_iterations` rounds of a loop, ...
    """
    kernel = module.entry(entry) if isinstance(entry, str) else entry
    extents = (*map(int, grid), 1, 1)[:3]
    if not 1 <= len(grid) <= 3 or min(extents) < 0:
        raise EvaluationError(f"a grid has one to three extents, not {tuple(grid)}")
    memory = Memory()
    values = _bind(kernel, args, memory)
    shared = Shared(module, memory, extents, seed, noise, max_iterations)
    shared.watch, shared.ftz = watch, ftz
    with np.errstate(all="ignore"):
        for number in shared.order(int(np.prod(extents))):
            x, rest = int(number) % extents[0], int(number) // extents[0]
            Running(shared, (x, rest % extents[1], rest // extents[1])).entry(kernel, values)
    return shared.outcome


def _bind(kernel: Entry, args: Sequence[Any], memory: Memory) -> list[Array]:
    """The values of the kernel's arguments."""
    if len(args) != len(kernel.args):
        raise EvaluationError(
            f"@{kernel.name} has {len(kernel.args)} arguments, {len(args)} are given"
        )
    pointers = [i for i, a in enumerate(kernel.args) if _is_pointer(a)]
    arrays = [_check_array(kernel, i, args[i]) for i in pointers]
    addresses = dict(zip(pointers, memory.add_arrays(arrays), strict=True))
    return [
        np.asarray(addresses[i], np.int64)
        if i in addresses
        else _scalar(kernel, i, element_of(a.type), args[i])
        for i, a in enumerate(kernel.args)
    ]


def _is_pointer(value: Value) -> bool:
    return isinstance(value.type, Tile) and isinstance(value.type.element, Pointer)


def _check_array(kernel: Entry, index: int, array: Any) -> Array:
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
        raise EvaluationError(
            f"argument {index} of @{kernel.name} is a pointer: pass a C-contiguous NumPy array, "
            f"not {type(array).__name__}"
        )
    return array


def _scalar(kernel: Entry, index: int, element: Scalar, value: Any) -> Array:
    if isinstance(value, np.ndarray) and value.shape:
        raise EvaluationError(
            f"argument {index} of @{kernel.name} is a number ({element}), not an array"
        )
    if element.is_float:
        return np.asarray(value).astype(dtype_of(element))
    number = int(value)
    if not -(1 << element.width - 1) <= number < 1 << element.width:
        raise EvaluationError(f"argument {index} of @{kernel.name}: {number} is no {element}")
    return integers.wrap(np.asarray(number & ((1 << 64) - 1), np.uint64), element)


class Shared:
    """What all blocks of a run have in common."""

    def __init__(
        self,
        module: Module,
        memory: Memory,
        grid: tuple[int, ...],
        seed: int | None,
        noise: bool,
        max_iterations: int,
    ) -> None:
        self.memory = memory
        self.grid = grid
        self.outcome = Outcome()
        self.noise = noise
        self.max_iterations = max_iterations
        self.watch: Watch | None = None
        self.ftz = False
        self._random = None if seed is None else np.random.default_rng(seed)
        self.globals = {g.name: self._global(g.value, g.alignment) for g in module.globals}

    def _global(self, value: Any, alignment: int) -> int:
        element = element_of(value.type)
        address = self.memory.allocate(0, max(alignment, 1))
        cells = encode(dense_array(value), element)
        address = self.memory.allocate(cells.size, max(alignment, 1))
        buffer = self.memory.find(address, address + cells.size - 1, "global")
        buffer.data[:] = cells.ravel()
        return address

    @property
    def shuffled(self) -> bool:
        """Whether what is unordered happens in a random order."""
        return self._random is not None

    def order(self, count: int) -> Array:
        """The order in which `count` unordered things happen."""
        if self._random is None:
            return np.arange(count)
        return self._random.permutation(count)


class Running:
    """One tile block."""

    def __init__(self, shared: Shared, block_id: tuple[int, int, int]) -> None:
        self.shared = shared
        self.memory = shared.memory
        self.block_id = block_id
        self.values: dict[Value, Any] = {}

    def order(self, count: int) -> Array:
        """The order of `count` elements of an atomic operation."""
        return self.shared.order(count)

    def unspecified(self, element: Scalar) -> Array:
        """A value that the language does not specify."""
        dtype = dtype_of(element)
        if not self.shared.noise or dtype == np.bool_:
            return np.zeros((), dtype)
        return np.frombuffer(bytes([_NOISE]) * dtype.itemsize, dtype)[0]

    def entry(self, kernel: Entry, arguments: list[Array]) -> None:
        """Runs the whole kernel."""
        self.values.update(zip(kernel.args, arguments, strict=True))
        self.run(kernel.body.block)

    def run(self, block: Block) -> Exit:
        """Runs operations up to the terminator, or to an inner exit that leaves this block."""
        values = self.values
        for op in block.ops:
            arguments = [
                tuple([values[v] for v in group])
                if isinstance(group, tuple)
                else None
                if group is None
                else values[group]
                for group in op.operands
            ]
            if op.spec.terminator:
                return op.name, arguments[0]  # type: ignore[return-value]
            try:
                found = HANDLERS[op.name](self, op, *arguments)
            except EvaluationError as error:
                if error.where is None:
                    error.where = place(op.loc)
                raise
            if isinstance(found, _Leave):
                return found.exit
            if len(op.results) == 1:
                if isinstance(found, tuple):
                    (found,) = found
                values[op.results[0]] = found
            elif op.results:
                values.update(zip(op.results, found, strict=True))
            if self.shared.watch is not None:
                results = tuple([values[result] for result in op.results])
                self.shared.watch(op, arguments, results)
        raise EvaluationError("a block ends without terminator")

    def enter(self, block: Block, arguments: Sequence[Any]) -> Exit:
        """Runs a block with arguments."""
        self.values.update(zip(block.args, arguments, strict=True))
        return self.run(block)


@dataclass(frozen=True)
class _Leave:
    """An operation was left by an exit that an enclosing one must handle."""

    exit: Exit


@handles("get_tile_block_id")
def get_tile_block_id(run: Running, op: Op) -> tuple[Array, ...]:
    """Position of the block in the grid."""
    return tuple(np.asarray(i, np.int32) for i in run.block_id)


@handles("get_num_tile_blocks")
def get_num_tile_blocks(run: Running, op: Op) -> tuple[Array, ...]:
    """Extents of the grid."""
    return tuple(np.asarray(i, np.int32) for i in run.shared.grid)


@handles("get_global")
def get_global(run: Running, op: Op) -> Array:
    """The address of a global."""
    return np.asarray(run.shared.globals[str(op.attrs["name"])], np.int64)


@handles("alloca")
def alloca(run: Running, op: Op) -> Array:
    """Fresh memory, of this block alone."""
    type_ = op.result.type
    assert isinstance(type_, Tile)
    assert isinstance(type_.element, Pointer)
    number, kind = int(op.attrs["num_elem"]), type_.element.pointee  # type: ignore[arg-type]
    size = -(-number // 2) if kind == F4E2M1FN else number * memory_bytes(kind)
    return np.asarray(run.memory.allocate(size, int(op.attrs["alignment"])), np.int64)  # type: ignore


@handles("if")
def if_(run: Running, op: Op, condition: Array) -> Any:
    """One branch; `break`, `continue` and `return` in it leave the enclosing operation."""
    region = op.regions[0 if condition else 1]
    if not region.blocks:
        return ()
    kind, values = run.run(region.block)
    return values if kind == "yield" else _Leave((kind, values))


@handles("for")
def for_(run: Running, op: Op, lower: Array, upper: Array, step: Array, init: Any) -> Any:
    """Half open; signed unless `unsignedCmp`."""
    element = element_of(op.operands[0].type)  # type: ignore[union-attr]
    read = integers.unsigned if op.attrs.get("unsignedCmp") else integers.signed
    first, last, stride = (int(read(v, element)) for v in (lower, upper, step))
    if stride <= 0:
        raise EvaluationError(f"'cuda_tile.for' op step {stride} is not positive")
    block = op.regions[0].block
    carried = init
    for number in range(first, last, stride):
        induction = integers.wrap(np.asarray(number & _MASK64, np.uint64), element)
        kind, carried = run.enter(block, (induction, *carried))
        if kind != "continue":
            return _Leave((kind, carried))
    return carried


_MASK64 = (1 << 64) - 1


@handles("loop")
def loop(run: Running, op: Op, init: Any) -> Any:
    """Until `break`."""
    block = op.regions[0].block
    carried = init
    for _ in range(run.shared.max_iterations):
        kind, carried = run.enter(block, carried)
        if kind == "break":
            return carried
        if kind != "continue":
            return _Leave((kind, carried))
    raise EvaluationError(
        f"'cuda_tile.loop' op did not end after {run.shared.max_iterations} rounds"
    )


@handles("reduce")
def reduce(run: Running, op: Op, operands: tuple[Array, ...]) -> tuple[Array, ...]:
    """Halves are combined until one element is left; identities change nothing.

    The order is open: with a seed, it is a random one, and identities take part.
    """
    dim = int(op.attrs["dim"])  # type: ignore[arg-type]
    parts = [np.moveaxis(np.asarray(o), dim, 0) for o in operands]
    if run.shared.shuffled:
        order = run.order(parts[0].shape[0])
        parts = _combine(run, op, [p[order] for p in parts], _identities(op, parts, 0))
    while (size := parts[0].shape[0]) > 1:
        half = size // 2
        parts = _combine(run, op, [p[half:] for p in parts], [p[:half] for p in parts])
    return tuple(p[0] for p in parts)


@handles("scan")
def scan(run: Running, op: Op, operands: tuple[Array, ...]) -> tuple[Array, ...]:
    """One element after the other, from the identities; with a seed, two runs of them.

    The body takes the accumulator before the element, unlike a reduction's: so do the
    specification's example of scan (8.3.16) and tileiras' code, though not the text beside it.
    """
    dim = int(op.attrs["dim"])  # type: ignore[arg-type]
    parts = [np.moveaxis(np.asarray(o), dim, 0) for o in operands]
    if op.attrs["reverse"]:
        parts = [p[::-1] for p in parts]
    size = parts[0].shape[0]
    cut = int(run.order(size)[0]) if run.shared.shuffled else 0
    results = [np.empty_like(p) for p in parts]
    _scan_run(run, op, parts, results, range(cut))
    _scan_run(run, op, parts, results, range(cut, size))
    if cut:
        before = [np.broadcast_to(r[cut - 1], r[cut:].shape) for r in results]
        later = _combine(run, op, before, [r[cut:] for r in results])
        for result, value in zip(results, later, strict=True):
            result[cut:] = value
    if op.attrs["reverse"]:
        results = [r[::-1] for r in results]
    return tuple(np.moveaxis(r, 0, dim) for r in results)


def _scan_run(
    run: Running, op: Op, parts: list[Array], results: list[Array], positions: range
) -> None:
    state = _identities(op, parts)
    for position in positions:
        state = _combine(run, op, state, [p[position] for p in parts])
        for result, value in zip(results, state, strict=True):
            result[position] = value


def _identities(op: Op, parts: list[Array], dim: int = 1) -> list[Array]:
    """The identities in the shape of the operands from dimension `dim` on."""
    identities = op.attrs["identities"]
    assert isinstance(identities, tuple)
    found: list[Array] = []
    for identity, part in zip(identities, parts, strict=True):
        assert isinstance(identity, (Integer, Float))
        value = scalar_value(identity).astype(part.dtype)
        found.append(np.broadcast_to(value, part.shape[dim:]))
    return found


def _combine(run: Running, op: Op, first: list[Array], second: list[Array]) -> list[Array]:
    """The body for many elements at once, or, where it is not elementwise, one by one.

    `first` and `second` are for its arguments 2i and 2i + 1.
    """
    block = op.regions[0].block
    pairs = [value for pair in zip(first, second, strict=True) for value in pair]
    shape = np.shape(first[0])
    if _is_elementwise(block):
        _, values = run.enter(block, pairs)
        return [np.broadcast_to(v, shape) for v in values]
    results = [np.empty(shape, np.asarray(e).dtype) for e in first]
    for index in np.ndindex(shape):
        _, values = run.enter(block, [np.asarray(p)[index] for p in pairs])
        for result, value in zip(results, values, strict=True):
            result[index] = value
    return results


def _is_elementwise(block: Block) -> bool:
    """Whether every operation of a body works on scalars element by element."""
    return all(
        not op.regions
        and all(isinstance(v.type, Tile) and not v.type.shape for v in (*op.values(), *op.results))
        for op in block.ops
    )

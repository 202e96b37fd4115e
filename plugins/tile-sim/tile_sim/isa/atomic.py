"""`atom` and `red` in all spaces and types."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_sim.errors import SimError
from tile_sim.isa.address import address, take_space
from tile_sim.isa.half import Kind
from tile_sim.isa.loadstore import SCOPES, noted, take_cache
from tile_sim.machine.access import WRITTEN_WORD, Part, check_written, parts
from tile_sim.machine.group import Group
from tile_sim.machine.orders import Order, order_of
from tile_sim.numeric.rounding import canonical, flush
from tile_sim.program.decode import Decode, Exec, Getter, instruction
from tile_sim.program.types import TYPES, Type
from tile_sim.ptx.syntax import Operand

Array = np.ndarray
Update = Callable[[Array, list[Array]], Array]


def _inc(old: Array, args: list[Array]) -> Array:
    return np.where(old >= args[0], old.dtype.type(0), old + old.dtype.type(1))


def _dec(old: Array, args: list[Array]) -> Array:
    wrap = (old == 0) | (old > args[0])
    return np.where(wrap, args[0], old - old.dtype.type(1))


_UPDATES: dict[str, Update] = {
    "add": lambda old, args: old + args[0],
    "min": lambda old, args: np.minimum(old, args[0]),
    "max": lambda old, args: np.maximum(old, args[0]),
    "and": lambda old, args: old & args[0],
    "or": lambda old, args: old | args[0],
    "xor": lambda old, args: old ^ args[0],
    "exch": lambda old, args: args[0],
    "cas": lambda old, args: np.where(old == args[0], args[1], old),
    "inc": _inc,
    "dec": _dec,
}
# Operations whose result does not depend on the order, as NumPy does them on repeated indices.
_UNORDERED = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _half_update(op: str, bfloat: bool, packed: bool) -> Update:
    """Elementwise on halves; `packed` registers hold two."""
    kind = Kind(bfloat)
    fns = {"add": lambda a, b: a.astype(np.float64) + b, "min": np.fmin, "max": np.fmax}
    fn = fns[op]

    def run(old: Array, args: list[Array]) -> Array:
        a = np.ascontiguousarray(old).view("<u2")
        b = np.ascontiguousarray(args[0]).view("<u2")
        result = np.ascontiguousarray(kind.write(fn(kind.read(a), kind.read(b))))
        return result.view(old.dtype)

    return run


def _float_add(ftz: bool) -> Update:
    def run(old: Array, args: list[Array]) -> Array:
        total = old + args[0]
        return canonical(flush(total) if ftz else total)

    return run


def _update(cx: Decode, op: str, type_: Type, space: str) -> Update:
    if type_.kind == "f" and op not in ("add", "min", "max", "exch", "cas"):
        cx.fail(f".{op} is not for .{type_.name}")
    if type_.name in ("f16", "bf16", "f16x2", "bf16x2"):
        return _half_update(op, type_.name.startswith("bf"), type_.bits == 32)
    if type_.kind == "f" and op == "add":
        # Global binary32 additions flush subnormals, shared ones do not.
        return _float_add(type_.bits == 32 and space == "global")
    if type_.kind == "f" and op in ("min", "max"):
        fn = np.fmin if op == "min" else np.fmax
        return lambda old, args: fn(old, args[0])
    return _UPDATES[op]


class Atomic:
    """One atomic operation on one element at each address."""

    def __init__(self, op: str, type_: Type, update: Update, keep: bool) -> None:
        self.op = op
        self.type = type_
        self.update = update
        self.keep = keep
        integer = type_.kind != "f" and op in _UNORDERED
        self.unordered = _UNORDERED[op] if integer and not keep else None

    def run(
        self, g: Group, space: str, where: Array, args: list[Array], seen: int = 1
    ) -> Array | None:
        """Old values in the order of the active lanes, where they are kept.

        What watches is told of an access of `seen` elements: of a vector with the first of them.
        """
        dtype = self.type.dtype
        out = np.zeros(len(where), dtype) if self.keep else None
        g.wave.polled = True
        for part in parts(g, space, where, dtype.itemsize, dtype):
            if not part.writable:
                raise SimError("read-only", f"atomic on {part.name!r}, which is read-only")
            if part.space == "local":
                raise SimError("bad-address", "atomic operation on local memory")
            if seen:
                g.wave.observe("atomic", g, part, seen)
            if g.wave.check_uninitialised:
                check_written(part, part.index, WRITTEN_WORD[dtype.itemsize])
            if g.wave.unmade is not None and g.wave.unmade.spares(part, 1):
                continue
            mine = [a if part.pick is None else a[part.pick] for a in args]
            old = self._apply(g, part, mine)
            if out is not None:
                out[slice(None) if part.pick is None else part.pick] = old
        return out

    def _apply(self, g: Group, part: Part, args: list[Array]) -> Array:
        data, index = part.data, part.index
        if self.unordered is not None:
            self.unordered.at(data, index, args[0])
            g.wave.progress += 1
            return index
        old = np.zeros(len(index), data.dtype)
        for turn in turns(index):
            here = index[turn]
            before = data[here]
            after = self.update(before, [a[turn] for a in args])
            old[turn] = before
            data[here] = after
            if not np.array_equal(before, after):
                g.wave.progress += 1
        return old


def turns(index: Array) -> list[Array]:
    """Positions grouped so that no address repeats in a group, in lane order at each address."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    fresh = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    if fresh.all():
        return [np.arange(len(index))]
    start = np.maximum.accumulate(np.where(fresh, np.arange(len(index)), 0))
    turn = np.arange(len(index)) - start
    by_turn = np.argsort(turn, kind="stable")
    bounds = np.cumsum(np.bincount(turn))[:-1]
    return np.split(order[by_turn], bounds)


def _take_order(cx: Decode) -> Order:
    semantic = cx.option("relaxed", "acquire", "release", "acq_rel")
    scope = cx.option(*SCOPES)
    return noted(cx, order_of(semantic or "relaxed", scope))


@instruction("atom", "red")
def atom(cx: Decode) -> Exec:
    if "async" in cx.mods:
        from tile_sim.isa.remote import red_async

        return red_async(cx)
    order = _take_order(cx)
    run = _unordered(cx)

    def execute(g: Group) -> None:
        g.wave.order = order
        run(g)
        g.wave.order = None

    return execute


def _unordered(cx: Decode) -> Exec:
    """What is computed, whatever it orders."""
    keep = cx.ins.op == "atom"
    space = take_space(cx)
    op = cx.one_of(*_UPDATES)
    cx.flag("noftz")
    policy = take_cache(cx)
    count = int(cx.one_of("v2", "v4", "v8", default="v1")[1:])
    type_ = cx.type()
    first = 1 if keep else 0
    values = 2 if op == "cas" else 1
    cx.done((first + 1 + values, first + 1 + values + policy))
    if type_.bits == 128:
        return _atom128(cx, op, space)
    if type_.name in ("f16", "bf16") and op in ("cas", "exch"):
        cx.fail(f".{op} needs a .b type")
    discard = not keep or cx.is_sink(0)
    where, compute = address(cx, first, space)
    atomic = Atomic(op, type_, _update(cx, op, type_, where), not discard)
    if count > 1:
        return _vector(cx, atomic, where, compute, first, count)
    args = [cx.src(first + 1 + i, type_) for i in range(values)]
    slot = None if discard else cx.slot(0, type_)

    def execute(g: Group) -> None:
        old = atomic.run(g, where, compute(g), [g.lanes(np.asarray(get(g))) for get in args])
        if slot is not None and old is not None:
            g.spread(slot, old)

    return execute


def _vector(
    cx: Decode, atomic: Atomic, where: str, compute: Getter, first: int, count: int
) -> Exec:
    """Each element of the vector is atomic by itself."""
    size = np.uint64(atomic.type.bytes)
    gets = [cx.src(item, atomic.type) for item in cx.vector(first + 1)]
    slots = [] if not atomic.keep else [cx.slot(item, atomic.type) for item in cx.vector(0)]
    if len(gets) != count or (slots and len(slots) != count):
        cx.fail(f"needs vectors of {count}")

    def execute(g: Group) -> None:
        base = compute(g)
        if (base & (size * np.uint64(count) - np.uint64(1))).any():
            raise SimError("misaligned", f"a vector of {count} needs its own alignment")
        for i, get in enumerate(gets):
            values = [g.lanes(np.asarray(get(g)))]
            seen = 0 if i else count
            old = atomic.run(g, where, base + size * np.uint64(i), values, seen)
            if slots and old is not None:
                g.spread(slots[i], old)

    return execute


def _atom128(cx: Decode, op: str, space: str) -> Exec:
    """`exch` and `cas` of 128 bits: two words under one comparison."""
    if op not in ("exch", "cas"):
        cx.fail(f".{op} is not for .b128")
    where, compute = address(cx, 1, space)
    u64 = TYPES["b64"]
    file = cx.program.file

    def halves_of(operand: int | Operand) -> tuple[int, int]:
        reg = cx.reg(operand)
        if reg.halves is None:
            cx.fail(f"{reg.name} is no 128-bit register")
        low, high = (file.slot(h, u64.dtype.str) for h in reg.halves)
        return low, high

    target = halves_of(0)
    sources = [halves_of(i) for i in range(2, 4 if op == "cas" else 3)]

    def execute(g: Group) -> None:
        g.wave.polled = True
        args = [[g.lanes(g.v[s][g.sel]) for s in pair] for pair in sources]
        addresses = compute(g)
        out = [np.zeros(len(addresses), np.uint64) for _ in range(2)]
        for part in parts(g, where, addresses, 16, u64.dtype):
            g.wave.observe("atomic", g, part, 2)
            if g.wave.unmade is not None:
                g.wave.unmade.spares(part, 2)
            lanes = np.arange(len(addresses)) if part.pick is None else np.flatnonzero(part.pick)
            for turn in turns(part.index):
                here, who = part.index[turn], lanes[turn]
                old = [part.data[here + i] for i in range(2)]
                new = [args[-1][i][who] for i in range(2)]
                if op == "cas":
                    same = (old[0] == args[0][0][who]) & (old[1] == args[0][1][who])
                    new = [np.where(same, n, o) for n, o in zip(new, old, strict=True)]
                for i in range(2):
                    out[i][who] = old[i]
                    part.data[here + i] = new[i]
            g.wave.progress += 1
        for slot, values in zip(target, out, strict=True):
            g.spread(slot, values)

    return execute

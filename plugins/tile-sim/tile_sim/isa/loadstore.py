"""`ld`, `st`, `ldu`, prefetches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_sim.isa.address import address, kernel_parameter, take_space
from tile_sim.isa.common import B64
from tile_sim.machine.access import load, store
from tile_sim.machine.group import Group
from tile_sim.machine.orders import Order, order_of
from tile_sim.program.decode import Decode, Exec, Getter, instruction
from tile_sim.program.layout import PARAM_WINDOW
from tile_sim.program.types import Type
from tile_sim.ptx.syntax import Operand

Array = np.ndarray
SCOPES = ("cta", "cluster", "gpu", "sys")
_STRONG = ("volatile", "relaxed", "acquire", "release", "mmio")
_CACHE = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc")


def take_order(cx: Decode) -> Order | None:
    """Consume ordering and scope; None for weak accesses."""
    semantic = cx.option("weak", *_STRONG)
    if cx.flag("mmio"):
        semantic = "relaxed"
    scope = cx.option(*SCOPES)
    if semantic in (None, "weak"):
        return None
    return noted(cx, order_of(semantic, scope))


def noted(cx: Decode, order: Order) -> Order:
    """The program has accesses of that scope, unless they are of shared memory, where all agree."""
    if not any(word.startswith("shared") for word in cx.mods):
        cx.program.scopes.add(order.scope)
    return order


def take_cache(cx: Decode) -> bool:
    """Consume cache operators, eviction and prefetch hints; True with a policy operand."""
    cx.option(*_CACHE)
    cx.option(*_CACHE)
    policy = cx.flag("L2::cache_hint")
    for level in ("L1::", "L2::", "level::"):
        cx.prefixed(level)
    cx.flag("unified")
    return policy


def _elements(cx: Decode, which: int, type_: Type, count: int) -> tuple[Type, list[Operand]]:
    """The element type in memory and an operand for each; 128 bits are two of 64."""
    items = list(cx.vector(which))
    if len(items) != count:
        cx.fail(f"needs a vector of {count}")
    if type_.bits != 128:
        return type_, items
    return B64, items


def _scatter(cx: Decode, operand: Operand, type_: Type) -> Callable[[Group, Array], None]:
    """What writes values of the active lanes into a register that may be wider."""
    if cx.is_sink(operand):
        return lambda g, values: None
    reg = cx.reg(operand, type_, wide=True)
    file = cx.program.file
    if reg.type.bits == type_.bits:
        slot = file.slot(reg, type_.dtype.str)
        return lambda g, values: g.spread(slot, values)
    kind = "i" if type_.kind == "s" else "u"
    slot = file.slot(reg, f"<{kind}{reg.type.bits // 8}")
    narrow, wide = np.dtype(f"{kind}{type_.bytes}"), np.dtype(f"{kind}{reg.type.bits // 8}")
    return lambda g, values: g.spread(slot, values.view(narrow).astype(wide))


def _scatters(cx: Decode, items: list[Operand], type_: Type, wide: bool) -> list[Callable]:
    if not wide:
        return [_scatter(cx, item, type_) for item in items]
    out = []
    for item in items:
        reg = cx.reg(item)
        if reg.halves is None:
            cx.fail(f"{reg.name} is no 128-bit register")
        for half in reg.halves:
            slot = cx.program.file.slot(half, "<u8")
            out.append(_spread_to(slot))
    return out


def _spread_to(slot: int) -> Callable[[Group, Array], None]:
    return lambda g, values: g.spread(slot, values)


@instruction("ld", "ldu")
def ld(cx: Decode) -> Exec:
    order = take_order(cx)
    space = take_space(cx)
    policy = take_cache(cx)
    count = int(cx.one_of("v2", "v4", "v8", default="v1")[1:])
    type_ = cx.type()
    cx.done(3 if policy else 2)
    wide = type_.bits == 128
    element, items = _elements(cx, 0, type_, count)
    if wide and kernel_parameter(cx, 1) is not None:
        space = "global"
    writes = _scatters(cx, items, element, wide)
    if space in ("param", "generic") and kernel_parameter(cx, 1) is not None:
        return _load_parameter(cx, writes, element)
    where, compute = address(cx, 1, space)
    dtype, total = element.dtype, len(writes)

    def execute(g: Group) -> None:
        if order is not None:
            g.wave.polled = True
        g.wave.order = order
        for write, values in zip(writes, load(g, where, compute(g), dtype, total), strict=True):
            write(g, values)
        g.wave.order = None

    return execute


def _load_parameter(cx: Decode, writes: list[Callable], type_: Type) -> Exec:
    """The same bytes for all threads, read once."""
    offset = kernel_parameter(cx, 1)
    assert offset is not None
    size, count = type_.bytes, len(writes)
    if offset % (size * count):
        cx.fail(f"misaligned parameter offset {offset}")

    def execute(g: Group) -> None:
        raw = g.wave.memory.read(PARAM_WINDOW + offset, size * count)
        values = np.frombuffer(raw, type_.dtype)
        lanes = g.count()
        for write, value in zip(writes, values, strict=True):
            write(g, np.full(lanes, value))

    return execute


@instruction("st")
def st(cx: Decode) -> Exec:
    if "async" in cx.mods:
        from tile_sim.isa.remote import st_async

        return st_async(cx)
    order = take_order(cx)
    space = take_space(cx)
    policy = take_cache(cx)
    count = int(cx.one_of("v2", "v4", "v8", default="v1")[1:])
    type_ = cx.type()
    cx.done(3 if policy else 2)
    where, compute = address(cx, 0, "local" if space == "param" else space)
    element, items = _elements(cx, 1, type_, count)
    gets = _getters(cx, items, type_)
    dtype = element.dtype

    def execute(g: Group) -> None:
        g.wave.order = order
        store(g, where, compute(g), dtype, [g.lanes(np.asarray(get(g))) for get in gets])
        g.wave.order = None

    return execute


def _getters(cx: Decode, items: list[Operand], type_: Type) -> list[Getter]:
    if type_.bits != 128:
        return [cx.src(item, type_, wide=True) for item in items]
    out: list[Getter] = []
    for item in items:
        reg = cx.reg(item)
        if reg.halves is None:
            cx.fail(f"{reg.name} is no 128-bit register")
        out += [_read_slot(cx.program.file.slot(half, "<u8")) for half in reg.halves]
    return out


def _read_slot(slot: int) -> Getter:
    return lambda g: g.v[slot][g.sel]


@instruction("prefetch", "prefetchu", "applypriority", "discard")
def prefetch(cx: Decode) -> Exec:
    """No effect on what a program computes; the operand is still decoded."""
    if cx.ins.op == "discard":
        cx.fail("not supported", "unknown-instruction")
    tensormap = cx.flag("tensormap")
    space = take_space(cx)
    for level in ("L1", "L2", "L1::", "L2::"):
        if not cx.flag(level):
            cx.prefixed(level)
    cx.done((1, 2))
    if not tensormap or space != "param":
        address(cx, 0, space)
    return lambda g: None


@instruction("createpolicy")
def createpolicy(cx: Decode) -> Exec:
    """A cache policy only steers caches: its value is never looked at."""
    cx.mods.clear()
    slot = cx.slot(0, B64)
    return lambda g: g.put(slot, np.uint64(0))

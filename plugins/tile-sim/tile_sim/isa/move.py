"""Data movement between registers, and address conversion."""

from __future__ import annotations

import numpy as np

from tile_sim.errors import SimError
from tile_sim.machine.group import Group
from tile_sim.program.decode import Decode, Exec, instruction
from tile_sim.program.layout import LOCAL_WINDOW, RANK_SHIFT, SHARED_WINDOW
from tile_sim.program.names import Reg, Var
from tile_sim.program.types import TYPES, Type
from tile_sim.ptx.syntax import Name, Operand, Vector

Array = np.ndarray
U64 = np.uint64


@instruction("mov")
def mov(cx: Decode) -> Exec:
    type_ = cx.type()
    cx.done(2)
    target, source = cx.operands
    if isinstance(target, Vector):
        return _unpack(cx, type_, target, source)
    if isinstance(source, Vector):
        return _pack(cx, type_, target, source)
    if type_.bits == 128:
        return _move128(cx)
    # `.b` moves accept registers of every type of the width; constants keep their pattern.
    slot, a = cx.slot(0, type_), cx.src(1, type_)
    _remember_copy(cx, type_)
    return lambda g: g.put(slot, a(g))


def _remember_copy(cx: Decode, type_: Type) -> None:
    """Copies of 32-bit registers are known, for those that a pending product will write."""
    source = cx.operand(1)
    entity = cx.names.find(source.name) if isinstance(source, Name) else None
    if type_.bits == 32 and isinstance(entity, Reg):
        target = cx.reg(0)
        cx.program.file.slot(target, "<u4")
        cx.program.moves.append((target.index, entity.index))


def _move128(cx: Decode) -> Exec:
    (d0, d1), (a0, a1) = (register_words(cx, i) for i in (0, 1))

    def execute(g: Group) -> None:
        low, high = np.array(g.v[a0][g.sel]), g.v[a1][g.sel]
        g.put(d1, high)
        g.put(d0, low)

    return execute


def register_words(cx: Decode, which: int | Operand) -> tuple[int, int]:
    """The two 64-bit slots of a 128-bit register."""
    reg = cx.reg(which)
    if reg.halves is None:
        cx.fail(f"{reg.name} is no 128-bit register")
    first, second = (cx.program.file.slot(h, "<u8") for h in reg.halves)
    return first, second


def _element_type(cx: Decode, type_: Type, count: int) -> Type:
    bits = type_.bits // count
    if count not in (2, 4) or bits < 8:
        cx.fail(f"cannot split {type_.bits} bits into {count}")
    return TYPES[f"b{bits}"]


def _pack(cx: Decode, type_: Type, target: Operand, source: Vector) -> Exec:
    """`mov.b32 d, {a, b}`: the first element is the lowest."""
    element = _element_type(cx, type_, len(source.items))
    getters = [cx.src(item, element, wide=True) for item in source.items]
    if type_.bits == 128:
        d0, d1 = register_words(cx, target)
        if len(getters) != 2:
            cx.fail("a 128-bit register is packed from two 64-bit ones")

        def execute128(g: Group) -> None:
            low, high = (np.array(get(g)) for get in getters)
            g.put(d0, low)
            g.put(d1, high)

        return execute128
    wide, slot = np.dtype(f"u{type_.bytes}"), cx.slot(target, TYPES[f"b{type_.bits}"])

    def execute(g: Group) -> None:
        total = getters[0](g).astype(wide)
        for i, get in enumerate(getters[1:], 1):
            total = total | (get(g).astype(wide) << wide.type(i * element.bits))
        g.put(slot, total)

    return execute


def _unpack(cx: Decode, type_: Type, target: Vector, source: Operand) -> Exec:
    element = _element_type(cx, type_, len(target.items))
    puts = [cx.put(item, element, wide=True) for item in target.items]
    if type_.bits == 128:
        a0, a1 = register_words(cx, source)

        def execute128(g: Group) -> None:
            low, high = np.array(g.v[a0][g.sel]), np.array(g.v[a1][g.sel])
            puts[0](g, low)
            puts[1](g, high)

        return execute128
    get, dtype = cx.src(source, TYPES[f"b{type_.bits}"]), element.dtype
    wide = np.dtype(f"u{type_.bytes}")

    def execute(g: Group) -> None:
        value = np.array(get(g))
        for i, put in enumerate(puts):
            put(g, (value >> wide.type(i * element.bits)).astype(dtype))

    return execute


# --- addresses ----------------------------------------------------------------------------------

_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
_SPACES = ("global", "shared", "shared::cta", "shared::cluster", "local", "const", "param")


def _space(cx: Decode) -> str:
    """The state space, `shared::cta` and `shared::cluster` as `shared`."""
    if cx.flag("param::entry"):
        return "param"
    return cx.one_of(*_SPACES).split("::")[0]


def _variable(cx: Decode, which: int) -> Var | None:
    operand = cx.operand(which)
    if not isinstance(operand, Name) or (
        operand.name.startswith("%") and cx.names.find(operand.name) is None
    ):
        return None
    entity = cx.find(operand.name)
    return entity if isinstance(entity, Var) else None


@instruction("cvta")
def cvta(cx: Decode) -> Exec:
    """To a generic address by adding the window of the space, or back."""
    to_space = cx.flag("to")
    space = _space(cx)
    type_ = cx.type("u32 u64")
    cx.done(2)
    slot, a = cx.slot(0, type_), cx.src(1, type_)
    variable = _variable(cx, 1)
    if space == "param" and variable is not None and variable.space == "local":
        space = "local"
    window = _WINDOWS.get(space, 0)
    if not window or type_.bits == 32:
        return lambda g: g.put(slot, a(g))
    delta = U64(window)
    if to_space:
        return lambda g: g.put(slot, a(g) - delta)
    return lambda g: g.put(slot, a(g) + delta)


@instruction("isspacep")
def isspacep(cx: Decode) -> Exec:
    """Does a generic address lie in a space?"""
    cluster = "shared::cluster" in cx.mods
    space = _space(cx)
    cx.done(2)
    slot, a = cx.slot(0, TYPES["pred"]), cx.src(1, TYPES["u64"])

    def execute(g: Group) -> None:
        address = a(g)
        high = address >> U64(32)
        shared, local = high == U64(SHARED_WINDOW >> 32), high == U64(LOCAL_WINDOW >> 32)
        if space == "shared":
            rank = (address & U64(0xFFFFFFFF)) >> U64(RANK_SHIFT)
            mine = rank == g.wave.cluster_rank[g.sel].astype(np.uint64)
            found = shared if cluster else shared & mine
        elif space == "local":
            found = local
        else:
            found = ~(shared | local) & _in_buffer(g, address, space)
        g.put(slot, found)

    return execute


def _in_buffer(g: Group, address: Array, space: str) -> Array:
    """Global, const and parameter addresses are told apart by their buffer."""
    if space == "global":
        return np.ones(np.shape(address), bool)
    out = np.zeros(np.shape(address), bool)
    for value in np.unique(address):
        buffer = g.wave.memory.buffer_at(int(value))
        if buffer is not None and not buffer.writable:
            is_param = buffer.name == "parameters"
            out |= (address == value) & (is_param if space == "param" else not is_param)
    return out


@instruction("mapa")
def mapa(cx: Decode) -> Exec:
    """The same place in the shared memory of another CTA of the cluster."""
    shared = cx.flag("shared::cluster") or cx.flag("shared")
    type_ = cx.type("u32 u64")
    cx.done(3)
    slot, a, rank = cx.slot(0, type_), cx.src(1, type_), cx.src(2, TYPES["u32"])
    keep = type_.dtype.type((1 << RANK_SHIFT) - 1)
    window = type_.dtype.type(0 if shared else SHARED_WINDOW)

    def execute(g: Group) -> None:
        to = rank(g)
        if (g.lanes(np.asarray(to)) >= g.wave.cluster_size).any():
            raise SimError(
                "bad-address", f"mapa to a CTA outside the cluster of {g.wave.cluster_size}"
            )
        place = (a(g) & keep) | (to.astype(type_.dtype) << type_.dtype.type(RANK_SHIFT))
        g.put(slot, place + window)

    return execute


@instruction("getctarank")
def getctarank(cx: Decode) -> Exec:
    shared = cx.flag("shared::cluster") or cx.flag("shared")
    type_ = cx.type("u32 u64")
    cx.done(2)
    del shared
    slot, a = cx.slot(0, TYPES["u32"]), cx.src(1, type_)
    return lambda g: g.put(
        slot, ((a(g) >> type_.dtype.type(RANK_SHIFT)) & type_.dtype.type(0xFF)).astype(np.uint32)
    )

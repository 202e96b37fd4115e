"""Address operands: the space of an access and the addresses of the active lanes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_sim.machine.group import Group
from tile_sim.program.decode import Decode
from tile_sim.program.layout import PARAM_WINDOW
from tile_sim.program.names import Reg, Var
from tile_sim.program.types import TYPES
from tile_sim.ptx.syntax import Address, Int, Operand

Array = np.ndarray
Addresses = Callable[[Group], Array]
SPACES = {
    "global": "global",
    "const": "global",
    "param": "param",
    "param::entry": "param",
    "param::func": "local",
    "local": "local",
    "shared": "shared",
    "shared::cta": "shared",
    "shared::cluster": "shared",
}
_U64, _U32MASK = np.uint64, np.uint64(0xFFFFFFFF)


def take_space(cx: Decode) -> str:
    """Consume the state space modifier; `generic` when there is none."""
    word = cx.option(*SPACES)
    return SPACES[word] if word else "generic"


def address(cx: Decode, which: int | Operand, space: str) -> tuple[str, Addresses]:
    """The space that an address operand really means, and what computes it (uint64, active
    lanes). Shared and local addresses are 32 bits wide."""
    operand = cx.operand(which)
    if not isinstance(operand, Address):
        cx.fail("an address [a] is needed here")
    return address_of(cx, operand, space)


def address_of(cx: Decode, operand: Address, space: str) -> tuple[str, Addresses]:
    if isinstance(operand.base, Int):
        return space, _constant(operand.base.value)
    entity = cx.find(operand.base.name)
    if isinstance(entity, Var):
        return _of_variable(entity, operand.offset)
    if not isinstance(entity, Reg):
        cx.fail(f"{operand.base.name!r} has no address")
    if space == "param":
        # A register can only hold the address of a kernel parameter: those of functions live
        # in local memory, and their addresses are taken with mov.
        space = "global"
    return space, _of_register(cx, entity, operand.offset, space)


def _constant(value: int) -> Addresses:
    word = np.array(value % (1 << 64), np.uint64)
    return lambda g: g.lanes(word)


def _of_variable(var: Var, offset: int) -> tuple[str, Addresses]:
    place = _U64((var.offset + offset) % (1 << 64))
    if var.space == "shared":
        return "shared", lambda g: g.lanes(g.wave.shared_base[g.sel] + place)
    actual = "local" if var.space == "local" else "global"
    return actual, _constant(int(place))


def _of_register(cx: Decode, reg: Reg, offset: int, space: str) -> Addresses:
    bits = reg.type.bits
    if bits not in (32, 64):
        cx.fail(f"register {reg.name} of {bits} bits cannot hold an address")
    slot = cx.program.file.slot(reg, TYPES[f"u{bits}"].dtype.str)
    delta = _U64(offset % (1 << 64))
    narrow = bits == 32 or space in ("shared", "local")

    def compute(g: Group) -> Array:
        base = g.lanes(g.v[slot][g.sel])
        if bits == 32:
            base = base.astype(np.uint64)
        if offset:
            base = base + delta
            if narrow:
                base &= _U32MASK
        return base

    return compute


def kernel_parameter(cx: Decode, which: int) -> int | None:
    """The offset of a kernel parameter that an operand names directly."""
    operand = cx.operand(which)
    if not isinstance(operand, Address) or isinstance(operand.base, Int):
        return None
    entity = cx.find(operand.base.name)
    if isinstance(entity, Var) and entity.space == "param":
        return entity.offset - PARAM_WINDOW + operand.offset
    return None

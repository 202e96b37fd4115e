"""Decoding one instruction: its modifiers, its operands, and what executes it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tile_sim.errors import SimError, Where
from tile_sim.machine.group import Group
from tile_sim.program.names import LabelRef, Names, Reg, Var
from tile_sim.program.special import special_register
from tile_sim.program.types import TYPES, Type
from tile_sim.ptx.syntax import (
    Float,
    Function,
    Instr,
    Int,
    Name,
    Operand,
    Pair,
    Vector,
)

if TYPE_CHECKING:
    from tile_sim.program.program import Program

Array = np.ndarray
Getter = Callable[[Group], Array]
Exec = Callable[[Group], None]


@dataclass
class Sync:
    """An instruction that may wait.

    `arrive(new, parked)` gets the threads that just came and those that already wait here, and
    returns (threads that pass, threads that wait); `execute` then runs for those that pass.
    `reason` tells, for a deadlock report, what is waited for.
    """

    arrive: Callable[[Group | None, Group | None], tuple[Group | None, Group | None]]
    execute: Exec | None
    reason: str


Decoded = Exec | Sync
Decoder = Callable[["Decode"], Decoded]
REGISTRY: dict[str, Decoder] = {}


def instruction(*names: str) -> Callable[[Decoder], Decoder]:
    """Register a decoder for opcodes; a longer dotted name (`mma.sync`) wins over a shorter."""

    def register(decoder: Decoder) -> Decoder:
        for name in names:
            if name in REGISTRY:
                raise ValueError(f"instruction {name} has two decoders")
            REGISTRY[name] = decoder
        return decoder

    return register


class Decode:
    """One instruction on its way to a closure."""

    def __init__(self, program: Program, names: Names, ins: Instr) -> None:
        self.program = program
        self.names = names
        self.ins = ins
        self.mods = list(ins.mods)
        self.operands = ins.operands

    # --- failure ----------------------------------------------------------------------------

    @property
    def where(self) -> Where:
        return self.program.where(self.ins)

    def error(self, message: str, kind: str = "bad-instruction") -> SimError:
        return SimError(kind, f"{self.ins.spelling}: {message}", self.where)

    def fail(self, message: str, kind: str = "bad-instruction") -> NoReturn:
        raise self.error(message, kind)

    # --- modifiers --------------------------------------------------------------------------

    def flag(self, word: str) -> bool:
        """Consume `word` where present."""
        if word in self.mods:
            self.mods.remove(word)
            return True
        return False

    def one_of(self, *words: str, default: str | None = None) -> str:
        """Consume the first modifier among `words`; without a default one has to be there."""
        for mod in self.mods:
            if mod in words:
                self.mods.remove(mod)
                return mod
        if default is None:
            self.fail(f"needs one of .{', .'.join(words)}")
        return default

    def option(self, *words: str) -> str | None:
        """Consume one of `words`, or None."""
        for mod in self.mods:
            if mod in words:
                self.mods.remove(mod)
                return mod
        return None

    def prefixed(self, prefix: str) -> str | None:
        """Consume a modifier that starts with `prefix`; what follows it, or None."""
        for mod in self.mods:
            if mod.startswith(prefix):
                self.mods.remove(mod)
                return mod[len(prefix) :]
        return None

    def type(self, allowed: str = "") -> Type:
        """Consume the last modifier, a type; `allowed` lists names, empty allows all."""
        if not self.mods or self.mods[-1] not in TYPES:
            last = f".{self.mods[-1]}" if self.mods else "nothing"
            self.fail(f"needs a type at its end, found {last}")
        name = self.mods.pop()
        if allowed and name not in allowed.split():
            self.fail(f"type .{name} is not allowed here")
        return TYPES[name]

    def done(self, operands: int | tuple[int, ...] | None = None) -> None:
        """All modifiers must have been consumed, and the operand count must fit."""
        if self.mods:
            self.fail(f"unknown modifier .{self.mods[0]}", "unknown-instruction")
        if operands is not None:
            allowed = (operands,) if isinstance(operands, int) else operands
            if len(self.operands) not in allowed:
                wanted = " or ".join(str(n) for n in allowed)
                self.fail(f"takes {wanted} operands, found {len(self.operands)}")

    # --- operands ---------------------------------------------------------------------------

    def operand(self, which: int | Operand) -> Operand:
        if not isinstance(which, int):
            return which
        if which >= len(self.operands):
            self.fail(f"operand {which + 1} is missing")
        return self.operands[which]

    def find(self, name: str) -> object:
        entity = self.names.find(name)
        if entity is None:
            entity = self.program.global_entity(name)
        if entity is None:
            self.fail(f"{name!r} is not declared", "undeclared")
        return entity

    def reg(self, which: int | Operand, type_: Type | None = None, wide: bool = False) -> Reg:
        """The register that an operand names; `wide` allows more bits than the type has."""
        operand = self.operand(which)
        if not isinstance(operand, Name):
            self.fail("a register is needed here")
        entity = self.find(operand.name)
        if not isinstance(entity, Reg):
            self.fail(f"{operand.name!r} is not a register")
        if operand.part is not None:
            self.fail(f"{operand.name}.{operand.part}: vector registers are not supported")
        if type_ is not None:
            self._check_width(entity, type_, wide)
        return entity

    def _check_width(self, reg: Reg, type_: Type, wide: bool) -> None:
        have, need = reg.type.bits, type_.bits
        if have == need or (wide and have > need and have != 1):
            return
        self.fail(f"register {reg.name} has {have} bits, .{type_.name} needs {need}")

    def slot(self, which: int | Operand, type_: Type) -> int:
        """The slot of a register read or written as exactly this type."""
        reg = self.reg(which, type_)
        return self.program.file.slot(reg, type_.dtype.str)

    def is_sink(self, which: int | Operand) -> bool:
        operand = self.operand(which)
        return isinstance(operand, Name) and operand.name == "_"

    def src(self, which: int | Operand, type_: Type, wide: bool = False) -> Getter:
        """What reads an operand as `type_`: `[rows, 32]`, or something that broadcasts to it."""
        operand = self.operand(which)
        if isinstance(operand, Int | Float):
            return constant(self.immediate(operand, type_))
        if isinstance(operand, Name):
            return self._named(operand, type_, wide)
        raise self.error("a register or constant is needed here")

    def _named(self, operand: Name, type_: Type, wide: bool) -> Getter:
        getter = special_register(operand, type_)
        if getter is not None:
            return getter
        entity = self.find(operand.name)
        if isinstance(entity, Reg):
            return self._register(operand, type_, wide)
        if isinstance(entity, LabelRef):
            self.fail(f"label {operand.name!r} cannot be an operand here")
        return self.address_of(operand.name, operand.offset, type_)

    def _register(self, operand: Name, type_: Type, wide: bool) -> Getter:
        reg = self.reg(operand, type_, wide)
        if operand.offset:
            self.fail(f"{operand.name}{operand.offset:+d} is not an operand")
        file = self.program.file
        if reg.type.bits != type_.bits:
            slot, dtype = file.slot(reg, f"<u{reg.type.bits // 8}"), type_.dtype
            return lambda g: g.v[slot][g.sel].astype(dtype)
        slot = file.slot(reg, type_.dtype.str)
        if operand.negated:
            if type_.kind != "p":
                self.fail("`!` needs a predicate")
            return lambda g: ~g.v[slot][g.sel]
        return lambda g: g.v[slot][g.sel]

    def immediate(self, operand: Int | Float, type_: Type) -> Any:
        """A constant as a NumPy scalar of the type."""
        if isinstance(operand, Int):
            if type_.kind == "p":
                return np.bool_(operand.value != 0)
            if type_.dtype.kind == "f":
                return type_.dtype.type(operand.value)
            value = operand.value & ((1 << type_.bits) - 1)
            return np.array(value, f"<u{type_.bytes}").view(type_.dtype)[()]
        if type_.dtype.kind == "f":
            if operand.bits == type_.bits:
                return np.array(operand.pattern, f"<u{type_.bytes}").view(type_.dtype)[()]
            return type_.dtype.type(operand.value)
        if operand.bits > type_.bits and type_.bits == 32:
            pattern = struct.unpack("<I", struct.pack("<f", operand.value))[0]
            return np.array(pattern, "<u4").view(type_.dtype)[()]
        if operand.bits != type_.bits:
            self.fail(f"a {operand.bits}-bit floating constant is no .{type_.name}")
        return np.array(operand.pattern, f"<u{type_.bytes}").view(type_.dtype)[()]

    def constant(self, which: int | Operand) -> int:
        """An operand that has to be an integer constant."""
        operand = self.operand(which)
        if not isinstance(operand, Int):
            self.fail("an integer constant is needed here")
        return operand.value

    def address_of(self, name: str, offset: int, type_: Type) -> Getter:
        """The address of a variable or function in its own space."""
        entity = self.find(name)
        dtype = type_.dtype
        if isinstance(entity, Function):
            return constant(np.array(self.program.function_address(name), dtype)[()])
        if not isinstance(entity, Var):
            self.fail(f"{name!r} has no address")
        place = entity.offset + offset
        if entity.space == "shared":
            return lambda g: (g.wave.shared_base[g.sel] + place).astype(dtype)
        return constant(np.array(place & ((1 << type_.bits) - 1)).astype(dtype)[()])

    def vector(self, which: int | Operand) -> tuple[Operand, ...]:
        """The items of `{...}`, or the single operand."""
        operand = self.operand(which)
        return operand.items if isinstance(operand, Vector) else (operand,)

    def pair(self, which: int) -> tuple[Operand, Operand | None]:
        operand = self.operand(which)
        return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, None)

    # --- common results ---------------------------------------------------------------------

    def put(self, which: int | Operand, type_: Type, wide: bool = False) -> Callable:
        """What writes a destination: `(group, value)`; with `wide` a value is extended to the
        register, by its sign for signed types."""
        if self.is_sink(which):
            return lambda g, value: None
        reg = self.reg(which, type_, wide)
        file = self.program.file
        if reg.type.bits == type_.bits:
            slot = file.slot(reg, type_.dtype.str)
            return lambda g, value: g.put(slot, value)
        kind = "i" if type_.kind == "s" else "u"
        slot = file.slot(reg, f"<{kind}{reg.type.bits // 8}")
        narrow = np.dtype(f"{kind}{type_.bytes}")
        return lambda g, value: g.put(slot, np.asarray(value).view(narrow))


def constant(value: Any) -> Getter:
    """The same scalar for every group."""
    return lambda g: value


def decode(program: Program, names: Names, ins: Instr) -> Decoded:
    """The executable form of an instruction.

    Raises SimError (`unknown-instruction`, `bad-instruction`, `undeclared`).
    """
    cx = Decode(program, names, ins)
    found = _DECODERS.get((ins.op, ins.mods[:_LONGEST])) or _decoder(ins.op, ins.mods[:_LONGEST])
    if found is None:
        raise SimError("unknown-instruction", f"unknown instruction {ins.spelling!r}", cx.where)
    decoder, length = found
    cx.mods = list(ins.mods[length:])
    return decoder(cx)


#: Modifiers that names in the registry may have.
_LONGEST = 4
#: What was found in it for the words that an instruction begins with.
_DECODERS: dict[tuple[str, tuple[str, ...]], tuple[Decoder, int]] = {}


def _decoder(op: str, mods: tuple[str, ...]) -> tuple[Decoder, int] | None:
    """The decoder of the longest name that is registered, and how many modifiers it has."""
    for length in range(len(mods), -1, -1):
        decoder = REGISTRY.get(".".join((op, *mods[:length])))
        if decoder is not None:
            found = _DECODERS[op, mods] = decoder, length
            return found
    return None

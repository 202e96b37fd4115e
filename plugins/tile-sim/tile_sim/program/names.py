"""What names stand for: registers, variables, functions, in nested scopes."""

from __future__ import annotations

from dataclasses import dataclass, field

from tile_sim.program.types import TYPES, Type
from tile_sim.ptx.syntax import Function, Prototype, Variable

_DIGITS = "0123456789"


@dataclass(frozen=True)
class Reg:
    """A register: `index` into the register file; a 128-bit one is two of 64 bits."""

    name: str
    type: Type
    index: int
    halves: tuple[Reg, Reg] | None = None


@dataclass(frozen=True)
class Var:
    """A variable with its place: an offset in its space, or an address for `global`."""

    name: str
    space: str
    offset: int
    size: int
    type: Type


@dataclass
class LabelRef:
    """A label of a function; `block` is filled in when blocks are built."""

    name: str
    block: object = None


Entity = Reg | Var | LabelRef | Prototype | Function


@dataclass
class RegisterFile:
    """All registers of a program and the typed views ("slots") that the code reads."""

    bits: list[int] = field(default_factory=list)
    slots: list[tuple[int, str]] = field(default_factory=list)
    slot_of: dict[tuple[int, str], int] = field(default_factory=dict)

    def add(self, name: str, type_: Type) -> Reg:
        if type_.bits == 128:
            half = TYPES["b64"]
            return Reg(name, type_, -1, (self.add(name, half), self.add(name, half)))
        self.bits.append(type_.bits)
        return Reg(name, type_, len(self.bits) - 1)

    def slot(self, reg: Reg, dtype: str) -> int:
        """The slot that shows `reg` as `dtype` (a NumPy type of the same width)."""
        key = (reg.index, dtype)
        if key not in self.slot_of:
            self.slot_of[key] = len(self.slots)
            self.slots.append(key)
        return self.slot_of[key]


class Names:
    """One scope; lookups go outwards. Registers of a range are made when first named."""

    def __init__(self, file: RegisterFile, parent: Names | None = None) -> None:
        self.file = file
        self.parent = parent
        self._known: dict[str, Entity] = {}
        self._ranges: dict[str, tuple[int, Type]] = {}

    def declare(self, name: str, entity: Entity) -> bool:
        """False when the name is taken in this scope."""
        if name in self._known:
            return False
        self._known[name] = entity
        return True

    def declare_registers(self, variable: Variable) -> bool:
        type_ = TYPES[variable.type]
        if variable.count is not None:
            if variable.name in self._ranges:
                return False
            self._ranges[variable.name] = (variable.count, type_)
            return True
        return self.declare(variable.name, self.file.add(variable.name, type_))

    def find(self, name: str) -> Entity | None:
        scope: Names | None = self
        while scope is not None:
            entity = scope._known.get(name)
            if entity is None and scope._ranges:
                entity = scope._from_range(name)
            if entity is not None:
                return entity
            scope = scope.parent
        return None

    def _from_range(self, name: str) -> Reg | None:
        # `%r1<5>` also names `%r11`: the prefix itself may end in digits.
        for at in range(len(name.rstrip(_DIGITS)), len(name)):
            prefix, number = name[:at], name[at:]
            if prefix not in self._ranges or (number[0] == "0" and number != "0"):
                continue
            count, type_ = self._ranges[prefix]
            if int(number) < count:
                self._known[name] = reg = self.file.add(name, type_)
                return reg
        return None

"""Device functions that run assembly on groups of the elements of vectors, as MLIR text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_nvptx.passes.tileas.device.helpers import quoted

#: Constraint -> bits of its registers, and their type (LLVM, "Inline Asm Constraint String").
LETTERS = {
    "h": (16, "i16"),
    "r": (32, "i32"),
    "l": (64, "i64"),
    "f": (32, "f32"),
    "d": (64, "f64"),
}
_WORD = 32


@dataclass(frozen=True)
class Group:
    """How `packed` elements of one operand or result of `width` bits lie in registers."""

    element: str
    width: int
    packed: int
    letters: tuple[str, ...] = ()

    @property
    def shared(self) -> int:
        """Elements in one register."""
        return min(self.packed, max(1, _WORD // self.width))

    @property
    def registers(self) -> int:
        """Registers of a group."""
        return self.packed // self.shared

    @property
    def bits(self) -> int:
        """Of a register, that elements take."""
        return self.shared * self.width

    def takes(self, letter: str) -> bool:
        """Whether such a register has room: words for what is narrower, others exactly."""
        room = LETTERS[letter][0]
        return room == self.bits or (letter in "hr" and self.bits < room)


@dataclass(frozen=True)
class Assembly:
    """A statement, its operands and its results; all vectors are of `count` elements."""

    name: str
    text: str
    constraints: str
    effects: bool
    operands: tuple[Group, ...]
    results: tuple[Group, ...]
    count: int

    def function(self) -> str:
        """The function's text: it returns the vectors of results, a struct if there are several."""
        lines = _Lines(self)
        return "\n".join(lines.whole())


class _Lines:
    def __init__(self, what: Assembly) -> None:
        self.what = what
        self.lines: list[str] = []
        self._next = 0

    def new(self, text: str) -> str:
        """A value that `text` gives."""
        name = f"%t{self._next}"
        self._next += 1
        self.lines.append(f"  {name} = {text}")
        return name

    def whole(self) -> list[str]:
        what = self.what
        types = [f"vector<{what.count}x{g.element}>" for g in what.results]
        arguments = ", ".join(
            f"%x{k}: vector<{what.count}x{g.element}>" for k, g in enumerate(what.operands)
        )
        result = types[0] if len(types) == 1 else f"!llvm.struct<({', '.join(types)})>"
        vectors = [self.new(f"llvm.mlir.poison : {type_}") for type_ in types]
        packed = what.results[0].packed
        for first in range(0, what.count, packed):
            given = [
                self._register(k, group, first, at)
                for k, group in enumerate(what.operands)
                for at in range(group.registers)
            ]
            registers = self._statement(given)
            for k, group in enumerate(what.results):
                own, registers = registers[: group.registers], registers[group.registers :]
                vectors[k] = self._put(group, types[k], vectors[k], own, first)
        last = vectors[0]
        if len(types) > 1:
            last = self.new(f"llvm.mlir.poison : {result}")
            for k, vector in enumerate(vectors):
                last = self.new(f"llvm.insertvalue {vector}, {last}[{k}] : {result}")
        head = f"llvm.func internal @{what.name}({arguments}) -> {result}"
        return [
            f"{head} attributes {{always_inline}} {{",
            *self.lines,
            f"  llvm.return {last} : {result}",
            "}",
        ]

    def _element(self, k: int, group: Group, at: int) -> str:
        """An element of operand `k`; of those that are missing, the first one."""
        index = self.new(f"llvm.mlir.constant({at if at < self.what.count else 0} : i32) : i32")
        vector = f"vector<{self.what.count}x{group.element}>"
        return self.new(f"llvm.extractelement %x{k}[{index} : i32] : {vector}")

    def _register(self, k: int, group: Group, first: int, at: int) -> tuple[str, str]:
        """Register `at` of a group of operand `k`, and its type."""
        start = first + at * group.shared
        value, type_ = self._element(k, group, start), group.element
        if group.shared > 1:
            vector = f"vector<{group.shared}x{group.element}>"
            joined = self.new(f"llvm.mlir.poison : {vector}")
            for place in range(group.shared):
                value = self._element(k, group, start + place)
                index = self.new(f"llvm.mlir.constant({place} : i32) : i32")
                joined = self.new(f"llvm.insertelement {value}, {joined}[{index} : i32] : {vector}")
            value, type_ = joined, vector
        return self._as(value, type_, group.bits, group.letters[at]), LETTERS[group.letters[at]][1]

    def _as(self, value: str, type_: str, bits: int, letter: str) -> str:
        """`value` in a register of `letter`: zeros above."""
        room, wanted = LETTERS[letter]
        if bits == room:
            same = type_ == wanted
            return value if same else self.new(f"llvm.bitcast {value} : {type_} to {wanted}")
        if type_ != f"i{bits}":
            value = self.new(f"llvm.bitcast {value} : {type_} to i{bits}")
        return self.new(f"llvm.zext {value} : i{bits} to {wanted}")

    def _statement(self, given: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """The statement on these registers; those that it writes."""
        what = self.what
        types = [LETTERS[letter][1] for group in what.results for letter in group.letters]
        result = types[0] if len(types) == 1 else f"!llvm.struct<({', '.join(types)})>"
        effects = "has_side_effects " if what.effects else ""
        values, kinds = ", ".join(v for v, _ in given), ", ".join(t for _, t in given)
        found = self.new(
            f"llvm.inline_asm {effects}asm_dialect = att {quoted(what.text)}, "
            f"{quoted(what.constraints)} {values} : ({kinds}) -> {result}"
        )
        if len(types) == 1:
            return [(found, types[0])]
        return [
            (self.new(f"llvm.extractvalue {found}[{at}] : {result}"), type_)
            for at, type_ in enumerate(types)
        ]

    def _put(
        self,
        group: Group,
        type_: str,
        vector: str,
        registers: Sequence[tuple[str, str]],
        first: int,
    ) -> str:
        """`vector` with the elements of a group from `first` on; those past its end are dropped."""
        for at, (value, kind) in enumerate(registers):
            if LETTERS[group.letters[at]][0] != group.bits:
                value = self.new(f"llvm.trunc {value} : {kind} to i{group.bits}")
                kind = f"i{group.bits}"
            whole = f"vector<{group.shared}x{group.element}>" if group.shared > 1 else group.element
            if kind != whole:
                value = self.new(f"llvm.bitcast {value} : {kind} to {whole}")
            for place in range(group.shared):
                to = first + at * group.shared + place
                if to >= self.what.count:
                    continue
                index = self.new(f"llvm.mlir.constant({to} : i32) : i32")
                item = value
                if group.shared > 1:
                    where = self.new(f"llvm.mlir.constant({place} : i32) : i32")
                    item = self.new(f"llvm.extractelement {value}[{where} : i32] : {whole}")
                vector = self.new(f"llvm.insertelement {item}, {vector}[{index} : i32] : {type_}")
        return vector

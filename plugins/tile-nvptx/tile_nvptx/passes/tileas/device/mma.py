"""Warp-level matrix products of whole fragments, as MLIR text (PTX ISA, "mma")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from tile_cute.atoms import MmaAtom
from tile_cute.atoms.types import BITS

#: PTX type -> (MLIR element of a fragment, MLIR type of a register, inline-assembly constraint).
#: What is not listed travels as packed 32-bit words.
_REGISTERS = {"f32": ("f32", "f"), "s32": ("i32", "r"), "f64": ("f64", "d"), "tf32": ("i32", "r")}

Counts = tuple[int, int, int, int]  # atoms along B, M, N, K


@dataclass(frozen=True)
class _Operand:
    """One operand's fragment as registers: `count` of them for each atom."""

    name: str  # "a", "b" or "c"
    element: str  # MLIR type in the fragment
    register: str
    constraint: str
    count: int
    atoms: int

    @property
    def vector(self) -> str:
        """The fragment's type."""
        per_register = self.total_bits // _bits(self.element)
        return f"vector<{per_register}x{self.element}>"

    @property
    def total_bits(self) -> int:
        return self.atoms * self.count * _bits(self.register)

    @property
    def words(self) -> str:
        """The fragment as a vector of registers."""
        return f"vector<{self.atoms * self.count}x{self.register}>"


def _bits(element: str) -> int:
    return int(element.lstrip("bfi"))


def _operand(atom: MmaAtom, name: str, element: str, atoms: int) -> _Operand:
    kind = getattr(atom.row, "acc" if name == "c" else name)
    register, constraint = _REGISTERS.get(kind, ("i32", "r"))
    count = max(1, atom.registers(name) * 32 // max(32, BITS[kind]))
    return _Operand(name, element, register, constraint, count, atoms)


@dataclass
class _Text:
    """Lines of the function under construction."""

    atom: MmaAtom
    operands: dict[str, _Operand]
    counts: Counts
    lines: list[str] = field(default_factory=list)

    def registers(self, name: str) -> list[str]:
        """Split a fragment into registers; their names in order."""
        operand = self.operands[name]
        self.lines.append(
            f"  %{name}w = llvm.bitcast %{name} : {operand.vector} to {operand.words}"
        )
        names = []
        for i in range(operand.atoms * operand.count):
            names.append(f"%{name}{i}")
            self.lines.append(
                f"  %{name}{i} = llvm.extractelement %{name}w[%i{i} : i32] : {operand.words}"
            )
        return names

    def multiply(self, number: int, parts: list[list[str]]) -> list[str]:
        """One instruction; the names of its results. `parts` are registers of A, B and C."""
        c = self.operands["c"]
        types = [self.operands[n].register for n, p in zip("abc", parts, strict=True) for _ in p]
        constraints = [f"={c.constraint}"] * c.count
        constraints += [
            self.operands[n].constraint for n, p in zip("abc", parts, strict=True) for _ in p
        ]
        places = iter(range(len(constraints)))
        groups = [[f"${next(places)}" for _ in range(c.count)]]
        groups += [[f"${next(places)}" for _ in part] for part in parts]
        text = ", ".join("{" + ", ".join(group) + "}" for group in groups)
        struct = f"!llvm.struct<({', '.join([c.register] * c.count)})>"
        result = struct if c.count > 1 else c.register
        self.lines.append(
            f'  %m{number} = llvm.inline_asm asm_dialect = att "{self.atom.instruction} {text};", '
            f'"{",".join(constraints)}" {", ".join(v for part in parts for v in part)} : '
            f"({', '.join(types)}) -> {result}"
        )
        names = [f"%m{number}_{i}" for i in range(c.count)]
        for i, name in enumerate(names):
            self.lines.append(f"  {name} = llvm.extractvalue %m{number}[{i}] : {struct}")
        return names

    def join(self, registers: list[str]) -> None:
        """`%out`: the accumulator's fragment of its registers."""
        c = self.operands["c"]
        self.lines.append(f"  %o0 = llvm.mlir.poison : {c.words}")
        for i, name in enumerate(registers):
            self.lines.append(
                f"  %o{i + 1} = llvm.insertelement {name}, %o{i}[%i{i} : i32] : {c.words}"
            )
        self.lines.append(f"  %out = llvm.bitcast %o{len(registers)} : {c.words} to {c.vector}")


def _steps(counts: Counts) -> Iterator[tuple[int, int, int]]:
    """Places of the atoms in the fragments of A, B and C; K slowest, so that products that
    follow one another do not wait for one another.
    """
    batches, ms, ns, ks = counts
    for k, batch, m, n in product(range(ks), range(batches), range(ms), range(ns)):
        yield (
            (batch * ms + m) * ks + k,
            (batch * ns + n) * ks + k,
            (batch * ms + m) * ns + n,
        )


def mma_fragments(atom: MmaAtom, elements: tuple[str, str, str], counts: Counts) -> tuple[str, str]:
    """Name and text of `(A, B, C) -> C + A B` on the fragments of one thread.

    `elements` are the MLIR element types in which A, B and C are held, `counts` the atoms of a
    warp along B, M, N and K. Fragments are in the order of `tile_tileas.dots.fragment`.
    """
    batches, ms, ns, ks = counts
    atoms = {"a": batches * ms * ks, "b": batches * ns * ks, "c": batches * ms * ns}
    operands = {
        name: _operand(atom, name, element, atoms[name])
        for name, element in zip("abc", elements, strict=True)
    }
    shape = "x".join(map(str, counts))
    name = f"__tile_{atom.instruction.replace('.', '_').replace('::', '_')}_{shape}"
    text = _Text(atom, operands, counts)
    most = max(operand.atoms * operand.count for operand in operands.values())
    text.lines += [f"  %i{i} = llvm.mlir.constant({i} : i32) : i32" for i in range(most)]
    registers = {operand: text.registers(operand) for operand in "abc"}
    for number, places in enumerate(_steps(counts)):
        spans = [
            slice(at * operands[o].count, (at + 1) * operands[o].count)
            for o, at in zip("abc", places, strict=True)
        ]
        parts = [registers[o][span] for o, span in zip("abc", spans, strict=True)]
        registers["c"][spans[2]] = text.multiply(number, parts)
    text.join(registers["c"])
    arguments = ", ".join(f"%{o}: {operands[o].vector}" for o in "abc")
    result = operands["c"].vector
    head = f"llvm.func internal @{name}({arguments}) -> {result} attributes {{always_inline}} {{"
    return name, "\n".join([head, *text.lines, f"  llvm.return %out : {result}", "}"])

"""Warp-level matrix products of whole fragments, as MLIR text (PTX ISA, "mma")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from tile_cute.atoms import MmaAtom
from tile_cute.atoms.types import BITS

from tile_nvptx.passes.tileas.device.helpers import joined

#: PTX type -> (MLIR element of a fragment, MLIR type of a register, inline-assembly constraint).
#: What is not listed travels as packed 32-bit words.
_REGISTERS = {"f32": ("f32", "f"), "s32": ("i32", "r"), "f64": ("f64", "d"), "tf32": ("i32", "r")}

#: Kinds of instructions that take two elements of four bits from a byte.
_PACKED_KINDS = ("mxf4", "mxf4nvf4")
#: Kinds that take an element of four bits from the middle of a byte (PTX ISA, "Packed formats").
_MIDDLE_OF_BYTES = 2

Counts = tuple[int, int, int, int]  # atoms along B, M, N, K


@dataclass(frozen=True)
class Scales:
    """Which bytes of the words that hold block scales one step along K has: the first of A and B.

    The words are those of the first lanes of four (`tile_tileas.dots.scale_fragment`).
    """

    byte_a: int
    byte_b: int


@dataclass(frozen=True)
class _Operand:
    """One operand's fragment as registers: `count` of them for each atom."""

    name: str  # "a", "b" or "c"
    element: str  # MLIR type in the fragment
    register: str
    constraint: str
    count: int
    atoms: int
    packed: bool = False  # a byte of the fragment is half of one of the register

    @property
    def vector(self) -> str:
        """The fragment's type."""
        elements = (self.total_bits << self.packed) // _bits(self.element)
        return f"vector<{elements}x{self.element}>"

    @property
    def total_bits(self) -> int:
        return self.atoms * self.count * _bits(self.register)

    @property
    def words(self) -> str:
        """The fragment as a vector of registers, two for one where bytes are packed."""
        return f"vector<{self.atoms * self.count << self.packed}x{self.register}>"


def _bits(element: str) -> int:
    return int(element.lstrip("bfi"))


def _operand(atom: MmaAtom, name: str, element: str, atoms: int) -> _Operand:
    kind = getattr(atom.row, "acc" if name == "c" else name)
    register, constraint = _REGISTERS.get(kind, ("i32", "r"))
    count = max(1, atom.registers(name) * 32 // max(32, BITS[kind]))
    narrow = BITS[kind] < _bits(element)
    packed = name != "c" and atom.row.kind in _PACKED_KINDS and element == "i8" and narrow
    return _Operand(name, element, register, constraint, count, atoms, packed)


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
        count = operand.atoms * operand.count
        names = self._elements(name, count << operand.packed, operand.words)
        if operand.packed:
            return [self._packed(name, i, *names[2 * i : 2 * i + 2]) for i in range(count)]
        if name != "c" and self.atom.container_shift(name):
            return [self._shifted(register) for register in names]
        return names

    def words(self, name: str, count: int) -> list[str]:
        """Split the argument `name`, `count` words with scales; their names in order."""
        self.lines.append(f"  %{name}w = llvm.bitcast %{name} : vector<{count}xi32> to "
                          f"vector<{count}xi32>")  # fmt: skip
        return self._elements(name, count, f"vector<{count}xi32>")

    def _elements(self, name: str, count: int, type_: str) -> list[str]:
        for i in range(count):
            self.lines.append(f"  %{name}{i} = llvm.extractelement %{name}w[%i{i} : i32] : {type_}")
        return [f"%{name}{i}" for i in range(count)]

    def _packed(self, name: str, at: int, low: str, high: str) -> str:
        """One register of eight elements in two, each in the low half of a byte."""
        halves = []
        for source in (low, high):
            self.lines += [
                f"  {source}s = llvm.lshr {source}, %four : i32",
                f"  {source}p = llvm.or {source}, {source}s : i32",
            ]
            halves.append(f"{source}p")
        self.lines.append(
            f'  %{name}q{at} = llvm.inline_asm asm_dialect = att "prmt.b32 $0, $1, $2, 0x6420;", '
            f'"=r,r,r" {", ".join(halves)} : (i32, i32) -> i32'
        )
        return f"%{name}q{at}"

    def _shifted(self, register: str) -> str:
        """Elements of four bits in the low halves of bytes, moved to where they are taken from."""
        self.lines.append(f"  {register}m = llvm.shl {register}, %two : i32")
        return f"{register}m"

    def multiply(
        self,
        number: int,
        parts: list[list[str]],
        scales: list[tuple[str, int]],
        selector: int | None,
    ) -> list[str]:
        """One instruction; the names of its results.

        `parts` are registers of A, B and C; `scales` those with scales of A and B, and their first
        bytes. With a `selector` the argument `%e` is metadata.
        """
        c = self.operands["c"]
        words = [*(["%e"] if selector is not None else []), *(word for word, _ in scales)]
        values = [value for part in parts for value in part] + words
        types = [self.operands[n].register for n, p in zip("abc", parts, strict=True) for _ in p]
        types += ["i32"] * len(words)
        constraints = [f"={c.constraint}"] * c.count
        constraints += [
            self.operands[n].constraint for n, p in zip("abc", parts, strict=True) for _ in p
        ] + ["r"] * len(words)
        places = iter(range(len(constraints)))
        groups = [[f"${next(places)}" for _ in range(c.count)]]
        groups += [[f"${next(places)}" for _ in part] for part in parts]
        text = ", ".join("{" + ", ".join(group) + "}" for group in groups)
        text += f", ${next(places)}, {selector}" if selector is not None else ""
        text += "".join(f", ${next(places)}, {{{byte}, 0}}" for _, byte in scales)
        struct = f"!llvm.struct<({', '.join([c.register] * c.count)})>"
        result = struct if c.count > 1 else c.register
        self.lines.append(
            f'  %m{number} = llvm.inline_asm asm_dialect = att "{self.atom.instruction} {text};", '
            f'"{",".join(constraints)}" {", ".join(values)} : ({", ".join(types)}) -> {result}'
        )
        names = [f"%m{number}_{i}" for i in range(c.count)]
        for i, name in enumerate(names):
            self.lines.append(f"  {name} = llvm.extractvalue %m{number}[{i}] : {struct}")
        return names

    def join(self, registers: list[str]) -> None:
        """`%out`: the accumulator's fragment of its registers."""
        c = self.operands["c"]
        self.lines += joined("%o", registers, c.register)
        self.lines.append(f"  %out = llvm.bitcast %o : {c.words} to {c.vector}")


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


def mma_fragments(
    atom: MmaAtom,
    elements: tuple[str, str, str],
    counts: Counts,
    scales: Scales | None = None,
    selector: int | None = None,
) -> tuple[str, str]:
    """Name and text of `(A, B, C) -> C + A B` on the fragments of one thread.

    `elements` are the MLIR element types in which A, B and C are held, `counts` the atoms of a
    warp along B, M, N and K. Fragments are in the order of `tile_tileas.dots.fragment`. With
    `scales` two arguments follow: for each atom along B and M, and along B and N, a word. With a
    `selector`, of one sparse atom, its metadata follow: a word.
    """
    batches, ms, ns, ks = counts
    atoms = {"a": batches * ms * ks, "b": batches * ns * ks, "c": batches * ms * ns}
    operands = {
        name: _operand(atom, name, element, atoms[name])
        for name, element in zip("abc", elements, strict=True)
    }
    name = f"__tile_{atom.instruction.replace('.', '_').replace('::', '_')}"
    name += f"_{'x'.join(map(str, counts))}"
    if "i4" in elements:  # the same instruction takes bytes, too
        name += "_i4"
    elif atom.row.kind in _PACKED_KINDS and not any(o.packed for o in operands.values()):
        name += "_bytes"  # of two elements each, and of one, too
    text = _Text(atom, operands, counts)
    most = max(operand.atoms * operand.count << operand.packed for operand in operands.values())
    text.lines += [f"  %i{i} = llvm.mlir.constant({i} : i32) : i32" for i in range(most)]
    text.lines += [
        f"  %{word} = llvm.mlir.constant({value} : i32) : i32"
        for word, value in (("two", _MIDDLE_OF_BYTES), ("four", 4))
    ]
    registers = {operand: text.registers(operand) for operand in "abc"}
    words: list[tuple[list[str], int]] = []
    arguments = [f"%{o}: {operands[o].vector}" for o in "abc"]
    if scales is not None:
        name += f"_{scales.byte_a}_{scales.byte_b}"
        for letter, count, byte in (("x", ms, scales.byte_a), ("y", ns, scales.byte_b)):
            words.append((text.words(letter, batches * count), byte))
            arguments.append(f"%{letter}: vector<{batches * count}xi32>")
    if selector is not None:
        name += f"_selects_{selector}"
        arguments.append("%e: i32")
    for number, places in enumerate(_steps(counts)):
        spans = [
            slice(at * operands[o].count, (at + 1) * operands[o].count)
            for o, at in zip("abc", places, strict=True)
        ]
        parts = [registers[o][span] for o, span in zip("abc", spans, strict=True)]
        own = [(held[at // ks], byte) for (held, byte), at in zip(words, places, strict=False)]
        registers["c"][spans[2]] = text.multiply(number, parts, own, selector)
    text.join(registers["c"])
    result = operands["c"].vector
    head = f"llvm.func internal @{name}({', '.join(arguments)}) -> {result}"
    head += " attributes {always_inline} {"
    return name, "\n".join([head, *text.lines, f"  llvm.return %out : {result}", "}"])

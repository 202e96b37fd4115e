"""Matrix products of a warpgroup (PTX ISA, "wgmma.mma_async"), as MLIR text.

The accumulator's registers must not be touched while a product is in flight, so each function is
one statement of inline assembly that takes and gives all of them: nothing can be put in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from tile_cute.atoms import MmaAtom
from tile_cute.atoms.descriptors import SmemOperand
from tile_cute.atoms.types import BITS

from tile_nvptx.passes.tileas.device.helpers import joined

#: Bytes in which descriptors count.
_UNIT = 16
#: Accumulator -> (MLIR type of a register, inline-assembly constraint).
_ACCUMULATORS = {"f32": ("f32", "f"), "s32": ("i32", "r"), "f16": ("i32", "r")}
#: Inputs whose order in shared memory is a choice, given as an immediate of the instruction.
_ORDERED = ("f16", "bf16")
_INTEGERS = ("s8", "u8")


@dataclass(frozen=True)
class Accumulators:
    """Accumulator registers of a thread: `count` of PTX type `kind`, held as MLIR's `element`."""

    kind: str
    count: int
    element: str

    @property
    def elements(self) -> int:
        """Of the fragment."""
        return self.count * 32 // _bits(self.element)

    @property
    def fragment(self) -> str:
        """MLIR type of the fragment."""
        return f"vector<{self.elements}x{self.element}>"

    @property
    def register(self) -> str:
        """MLIR type of one register."""
        return _ACCUMULATORS[self.kind][0]

    def constraints(self, *, fresh: bool = False) -> list[str]:
        """Of inline assembly that takes and gives all of them, or, `fresh`, gives them alone."""
        letter = _ACCUMULATORS[self.kind][1]
        if fresh:
            return [f"=&{letter}"] * self.count
        return [f"={letter}"] * self.count + [str(i) for i in range(self.count)]


@dataclass(frozen=True)
class WarpgroupProduct:
    """What one warpgroup does: atoms along M, N and K, and where their operands lie.

    Attributes:
        counts: atoms along M, N, K.
        steps: how far apart atoms of a warpgroup are along M and N, in elements.
        a: A in shared memory; None for fragments in registers.
        element: MLIR element of the accumulator's fragment, of `a_element` that of A's.
        fresh: the accumulator is zero, and its registers are not read.
        from_row: the row of B, in elements, that A's first column is multiplied by.
    """

    atom: MmaAtom
    counts: tuple[int, int, int]
    steps: tuple[int, int]
    a: SmemOperand | None
    b: SmemOperand
    element: str
    a_element: str = ""
    fresh: bool = False
    from_row: int = 0

    @property
    def name(self) -> str:
        """One name for each text."""
        where = "registers" if self.a is None else _spelt(self.a)
        shape = "x".join(map(str, (*self.counts, *self.steps)))
        opcode = self.atom.instruction.replace(".", "_")
        start = "_fresh" if self.fresh else ""
        start += f"_from_{self.from_row}" if self.from_row else ""
        return f"__tile_{opcode}_{shape}_{where}_{_spelt(self.b)}_{self.element}{start}"

    @property
    def registers(self) -> int:
        """Accumulator registers of a thread, for all atoms."""
        return self.counts[0] * self.counts[1] * self.atom_registers

    @property
    def atom_registers(self) -> int:
        """Those of one atom."""
        return self.atom.n * BITS[self.atom.row.acc] // 64

    @property
    def accumulators(self) -> Accumulators:
        """Those of a thread, for all atoms."""
        return Accumulators(self.atom.row.acc, self.registers, self.element)

    @property
    def fragment(self) -> str:
        """MLIR type of the accumulator's fragment."""
        return self.accumulators.fragment

    @property
    def a_fragment(self) -> str:
        """MLIR type of A's fragment, in registers."""
        words = 4 * self.counts[0] * self.counts[2]
        return f"vector<{words * 32 // _bits(self.a_element)}x{self.a_element}>"


def _spelt(operand: SmemOperand) -> str:
    fields = operand.major, operand.swizzle, operand.leading, operand.stride
    return "_".join(map(str, fields))


def _bits(element: str) -> int:
    return int(element.lstrip("bfi"))


def issue(made: WarpgroupProduct) -> tuple[str, str]:
    """`(A, B, C) -> C + A B`, in flight: committed as one group, for `wait` to wait for.

    B is a descriptor of its buffer, and A one or a fragment. Descriptors are of the first atom. Of
    a fresh product there is no C.
    """
    text = _Text(made)
    body = text.assembly()
    return _function(f"{made.name}_issue", made.accumulators, text, body)


def multiply(made: WarpgroupProduct) -> tuple[str, str]:
    """`(A, B, C) -> C + A B`, done."""
    text = _Text(made)
    body = [*text.assembly(), "wgmma.wait_group.sync.aligned 0"]
    return _function(made.name, made.accumulators, text, body)


def wait(accumulators: Accumulators, pending: int, read: Sequence[str] = ()) -> tuple[str, str]:
    """`(C, A ..) -> C` when at most `pending` groups that were issued after it are still in flight.

    `read` are MLIR types of fragments that products read until then: their registers keep what
    they hold.
    """
    name = f"__tile_wgmma_wait_{pending}_{accumulators.count}_{accumulators.element}"
    return _passing(name, accumulators, read, [f"wgmma.wait_group.sync.aligned {pending}"])


def written(accumulators: Accumulators, read: Sequence[str] = ()) -> tuple[str, str]:
    """`(C, A ..) -> C` behind a wait that was one for C, too: nobody works on C before it."""
    name = f"__tile_wgmma_written_{accumulators.count}_{accumulators.element}"
    return _passing(name, accumulators, read, [])


class _Text:
    """Operands of the inline assembly, in order: accumulators, then inputs."""

    def __init__(self, made: WarpgroupProduct) -> None:
        self.made = made
        self.count = made.registers
        self.inputs: list[tuple[str, str]] = []
        if made.a is None:
            self.inputs += [(f"%a{i}", "i32") for i in range(self._a_words)]
        else:
            self.inputs.append(("%a", "i64"))
        self.inputs.append(("%b", "i64"))

    @property
    def _a_words(self) -> int:
        return 4 * self.made.counts[0] * self.made.counts[2]

    def assembly(self) -> list[str]:
        """The instructions; fragments that the caller just wrote are fenced first."""
        made = self.made
        first = self.count if made.fresh else 2 * self.count
        lines = [
            ".reg .pred accumulate, begin",
            ".reg .b64 left, right",
            "setp.eq.b32 accumulate, 0, 0",
            f"setp.{'ne' if made.fresh else 'eq'}.b32 begin, 0, 0",
            "wgmma.fence.sync.aligned",
        ]
        ms, ns, ks = made.counts
        for k, m, n in product(range(ks), range(ms), range(ns)):
            lines += self._one(k, m, n, first)
        return [*lines, "wgmma.commit_group.sync.aligned"]

    def _one(self, k: int, m: int, n: int, first: int) -> list[str]:
        made, atom = self.made, self.made.atom
        own = made.atom_registers
        start = (m * made.counts[1] + n) * own
        accumulators = "{" + ", ".join(f"${start + i}" for i in range(own)) + "}"
        lines: list[str] = []
        if made.a is None:
            at = first + 4 * (m * made.counts[2] + k)
            left = "{" + ", ".join(f"${at + i}" for i in range(4)) + "}"
        else:
            left = "left"
            lines.append(_moved("left", first, made.a.start(m * made.steps[0], k * atom.k)))
        b = first + len(self.inputs) - 1
        row = made.from_row + k * atom.k
        lines.append(_moved("right", b, made.b.start(n * made.steps[1], row)))
        rest = self._immediates("accumulate" if k else "begin")
        return [*lines, f"{atom.instruction} {accumulators}, {left}, right, {rest}"]

    def _immediates(self, scale: str) -> str:
        """What stands behind the operands, beginning with whether the accumulator is added to."""
        row = self.made.atom.row
        if row.a in _INTEGERS:
            return scale
        orders: list[str] = []
        if row.a in _ORDERED:
            sides = [self.made.b] if self.made.a is None else [self.made.a, self.made.b]
            orders = [str(int(side.major != "K")) for side in sides]
        return ", ".join([scale, "1", "1", *orders])


def _moved(name: str, operand: int, offset: int) -> str:
    if offset % _UNIT:
        raise ValueError(f"an operand starts {offset} bytes into its buffer, no multiple of 16")
    return f"add.s64 {name}, ${operand}, {offset // _UNIT}"


def _function(
    name: str, accumulators: Accumulators, text: _Text, body: list[str]
) -> tuple[str, str]:
    """Name and text of the function around `body`, whose inputs are those of `text`."""
    made = text.made
    arguments = [f"%a: {'i64' if made.a is not None else made.a_fragment}", "%b: i64"]
    splits: list[str] = []
    if made.a is None:
        many = len(text.inputs) - 1
        splits = _split("a", made.a_fragment, f"vector<{many}xi32>", many)
    taken = [] if made.fresh else [f"%c: {accumulators.fragment}"]
    statement = _Statement(accumulators, text.inputs, splits, fresh=made.fresh)
    return name, statement.function(name, [*arguments, *taken], body)


def _passing(
    name: str, accumulators: Accumulators, read: Sequence[str], body: list[str]
) -> tuple[str, str]:
    """Name and text of `(C, A ..) -> C` around `body`, which the fragments A stay valid for."""
    arguments, inputs, splits = (
        [f"%c: {accumulators.fragment}"],
        list[tuple[str, str]](),
        list[str](),
    )
    for at, fragment in enumerate(read):
        words = _words(fragment)
        arguments.append(f"%a{at}_: {fragment}")
        splits += _split(f"a{at}_", fragment, f"vector<{words}xi32>", words)
        inputs += [(f"%a{at}_{i}", "i32") for i in range(words)]
        name += f"_{words}"
    statement = _Statement(accumulators, inputs, splits)
    return name, statement.function(name, arguments, body)


def _words(fragment: str) -> int:
    """32-bit words of a fragment by its MLIR type, `vector<64xf16>`."""
    count, element = fragment.removeprefix("vector<").removesuffix(">").split("x")
    return int(count) * _bits(element) // 32


@dataclass(frozen=True)
class _Statement:
    """Inline assembly that takes and gives accumulators, and takes `inputs` that `splits` make."""

    accumulators: Accumulators
    inputs: list[tuple[str, str]]
    splits: list[str]
    fresh: bool = False

    def function(self, name: str, arguments: list[str], body: list[str]) -> str:
        """The function around it."""
        own = self.accumulators
        register, count, fragment = own.register, own.count, own.fragment
        taken = [] if self.fresh else [f"%c{i}" for i in range(count)]
        kinds = [register] * len(taken) + [kind for _, kind in self.inputs]
        struct = f"!llvm.struct<({', '.join([register] * count)})>"
        words = f"vector<{count}x{register}>"
        values = taken + [value for value, _ in self.inputs]
        constraints = own.constraints(fresh=self.fresh)
        constraints += ["l" if kind == "i64" else "r" for _, kind in self.inputs]
        block = " ".join(f"{line};" for line in body)
        lines = [
            f"llvm.func internal @{name}({', '.join(arguments)}) "
            f"-> {fragment} attributes {{always_inline}} {{",
            *([] if self.fresh else _split("c", fragment, words, count)),
            *self.splits,
            f'  %m = llvm.inline_asm has_side_effects asm_dialect = att "{{ {block} }}", '
            f'"{",".join(constraints)}" {", ".join(values)} : ({", ".join(kinds)}) -> {struct}',
            *(f"  %r{i} = llvm.extractvalue %m[{i}] : {struct}" for i in range(count)),
            *joined("%o", [f"%r{i}" for i in range(count)], register),
            f"  %out = llvm.bitcast %o : {words} to {fragment}",
        ]
        return "\n".join([*lines, f"  llvm.return %out : {fragment}", "}"])


def _split(name: str, fragment: str, words: str, count: int) -> list[str]:
    """Registers `%name0`, ... of the fragment `%name`."""
    lines = [f"  %{name}w = llvm.bitcast %{name} : {fragment} to {words}"]
    for i in range(count):
        lines.append(f"  %i{name}{i} = llvm.mlir.constant({i} : i32) : i32")
        lines.append(f"  %{name}{i} = llvm.extractelement %{name}w[%i{name}{i} : i32] : {words}")
    return lines

"""What the registries hold: rows of MMA instructions and of copies."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from tile_cute.atoms import fragments, tensor_memory
from tile_cute.atoms.arch import supported
from tile_cute.atoms.types import BITS
from tile_cute.errors import LayoutError
from tile_cute.linear.layout import LinearLayout

REGISTERS, SHARED, TENSOR, GLOBAL = "registers", "shared", "tensor", "global"


@dataclass(frozen=True)
class Scale:
    """Block scales: one factor of type `type` for `vector` elements along K."""

    type: str
    vector: int
    size: str  # "1X", "2X", "4X": factors per K step of the instruction


@dataclass(frozen=True)
class MmaRow:
    """A family of MMA instructions that differ in M and N alone.

    `shapes` pairs each M with its legal Ns. `template` is the PTX instruction with `{m}`, `{n}`,
    `{k}`. `residency` lists where A may live, then B, then the accumulator. `majors` are the
    orders in memory (K, or M/N for A/B) of operands read from shared memory.
    """

    family: str
    template: str
    shapes: tuple[tuple[int, tuple[int, ...]], ...]
    k: int
    a: str
    b: str
    acc: str
    gates: tuple[str, ...]
    threads: int = 32
    residency: tuple[tuple[str, ...], str, str] = ((REGISTERS,), REGISTERS, REGISTERS)
    majors: tuple[str, ...] = ("K",)
    sparse: bool = False
    scale: Scale | None = None
    kind: str = ""
    cta_group: int = 1
    weight_stationary: bool = False
    ptx: int = 70  # lowest PTX ISA version, x10
    modifiers: tuple[str, ...] = ()

    def atom(self, m: int, n: int) -> "MmaAtom":
        """The instruction of one shape; LayoutError, with the legal ones, for another."""
        legal = dict(self.shapes)
        if n not in legal.get(m, ()):
            options = "; ".join(f"M {m}: N {_ranges(ns)}" for m, ns in self.shapes)
            raise LayoutError(f"{self.name} has no shape M {m}, N {n}; it has {options}")
        return MmaAtom(self, m, n)

    def atoms(self) -> tuple["MmaAtom", ...]:
        return tuple(MmaAtom(self, m, n) for m, ns in self.shapes for n in ns)

    @property
    def name(self) -> str:
        """The instruction, with M and N left open where there are several."""
        ms = [m for m, _ in self.shapes]
        ns = sorted({n for _, legal in self.shapes for n in legal})
        m = ms[0] if len(ms) == 1 else "M"
        return self.template.format(m=m, n=ns[0] if len(ns) == 1 else "N", k=self.k)

    def supported_on(self, chip: str) -> bool:
        return supported(self.gates, chip)


def _ranges(values: tuple[int, ...]) -> str:
    if len(values) > 2:
        steps = {b - a for a, b in pairwise(values)}
        if len(steps) == 1:
            return f"{values[0]}..{values[-1]} step {steps.pop()}"
    return ", ".join(map(str, values))


@dataclass(frozen=True)
class MmaAtom:
    """One MMA instruction: D[M,N] = A[M,K] B[K,N] + C[M,N]."""

    row: MmaRow
    m: int
    n: int

    @property
    def k(self) -> int:
        return self.row.k

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.m, self.n, self.row.k

    @property
    def family(self) -> str:
        return self.row.family

    @property
    def instruction(self) -> str:
        """The PTX mnemonic with all its qualifiers."""
        return self.row.template.format(m=self.m, n=self.n, k=self.k)

    @property
    def stored_k(self) -> int:
        """Columns of A that are stored: half of K for a sparse MMA."""
        return self.k // 2 if self.row.sparse else self.k

    def container_bits(self, operand: str) -> int:
        """Bits an element of "a", "b" or "acc" takes in registers: fp6 and fp4 of kinds that mix
        narrow floats sit in bytes.
        """
        bits = BITS[getattr(self.row, operand)]
        mixed = self.row.kind in ("f8f6f4", "mxf8f6f4")
        return max(8, bits) if mixed and operand != "acc" else bits

    def container_shift(self, operand: str) -> int:
        """Where an element begins in its container: fp4 in a byte stands in bits 2..5."""
        return 2 if self.container_bits(operand) - BITS[getattr(self.row, operand)] == 4 else 0

    @cached_property
    def a_layout(self) -> LinearLayout | None:
        """A in registers; None where it is read from shared or tensor memory only."""
        if REGISTERS not in self.row.residency[0]:
            return None
        warps = self.row.threads // 32
        return fragments.fragment_a(self.m, self.stored_k, self.container_bits("a"), warps)

    @cached_property
    def a_tensor_layout(self) -> LinearLayout | None:
        """A in tensor memory (spaces `row`, `column`, `element`); None where it cannot be there."""
        row = self.row
        if TENSOR not in row.residency[0]:
            return None
        return tensor_memory.operand_layout(
            self.m,
            self.stored_k,
            self.container_bits("a"),
            row.cta_group,
            row.weight_stationary,
            row.sparse,
        )

    @cached_property
    def b_layout(self) -> LinearLayout | None:
        """B (K x N) in registers."""
        if self.row.residency[1] != REGISTERS:
            return None
        return fragments.fragment_b(self.n, self.k, self.container_bits("b"))

    @cached_property
    def c_layout(self) -> LinearLayout | None:
        """C and D in registers, or in tensor memory (spaces `row` and `column`); None for an N
        that is no power of two.
        """
        if self.row.residency[2] == TENSOR:
            row = self.row
            return tensor_memory.accumulator_layout(
                self.m, self.n, row.cta_group, row.weight_stationary, row.sparse
            )
        return fragments.fragment_c(self.m, self.n, self.row.threads // 32)

    @cached_property
    def metadata_layout(self) -> LinearLayout | None:
        """Which kept element of A each metadata field of a lane's register (or of a column of
        tensor memory) describes; in units of pairs for 4-bit elements, whose sparsity is by
        pairs. None for dense.
        """
        row = self.row
        if not row.sparse:
            return None
        paired = BITS[row.a] == 4 and row.kind not in ("f8f6f4", "mxf8f6f4")
        kept = self.stored_k // (2 if paired else 1)
        if row.residency[2] == TENSOR:
            return tensor_memory.metadata_layout(
                self.m, kept, BITS[row.a], row.cta_group, row.weight_stationary
            )
        fields = 8 if row.a == "tf32" else 16
        halved = BITS[row.a] >= 16
        return fragments.metadata_fragment(self.m, kept, fields, halved, row.threads // 32)

    @cached_property
    def scale_layouts(self) -> tuple[LinearLayout, LinearLayout] | None:
        """Block scales of A (M of one CTA x blocks) and B (N x blocks), in registers or tensor
        memory; None without, and for an N that is no power of two.
        """
        row = self.row
        if row.scale is None or self.n & (self.n - 1):
            return None
        blocks = int(row.scale.size[0])
        if row.residency[2] == TENSOR:
            path = tensor_memory.datapath(self.m, row.cta_group, False, row.sparse)
            return (
                tensor_memory.scale_layout(path.count, blocks),
                tensor_memory.scale_layout(self.n, blocks, 1 << len(path.banks)),
            )
        return (
            fragments.scale_fragment(self.m, blocks, True),
            fragments.scale_fragment(self.n, blocks, False),
        )

    def registers(self, operand: str) -> int:
        """32-bit registers of "a", "b" or "c" per thread; 0 for an operand in memory."""
        layout = {"a": self.a_layout, "b": self.b_layout, "c": self.c_layout}[operand]
        if operand == "c" and self.row.residency[2] == REGISTERS:
            bits = BITS[self.row.acc]
            return max(1, self.m * self.n * bits // (32 * self.row.threads))
        if layout is None or operand == "c":
            return 0
        return fragments.register_count(layout, self.container_bits(operand))

    def __str__(self) -> str:
        return self.instruction


@dataclass(frozen=True)
class CopyAtom:
    """One copy instruction.

    `bits` is what one thread moves (0 where the instruction's operand says it); layouts map the
    threads' registers, or lanes that supply addresses, to the tile that is moved, in elements of
    `element_bits`. `alignment` is that of every address, in bytes.
    """

    family: str
    instruction: str
    source: str
    target: str
    gates: tuple[str, ...]
    bits: int
    alignment: int
    ptx: int = 70
    element_bits: int = 8
    asynchronous: str = ""  # what completes it: "cp.async group", "bulk group", "mbarrier", ...
    threads: int = 1
    fragment: LinearLayout | None = None
    addresses: LinearLayout | None = None
    notes: str = ""
    modifiers: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        return self.instruction

    def supported_on(self, chip: str) -> bool:
        return supported(self.gates, chip)

    def with_notes(self, notes: str) -> "CopyAtom":
        return replace(self, notes=notes)

    def __str__(self) -> str:
        return self.instruction

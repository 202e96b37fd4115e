"""nvptx-compute-in-pieces: arithmetic on tiles, a few elements after the other.

Each operation on a tile is one on a vector of all elements that a thread has. LLVM and ptxas leave
them in that order, so that whatever one element needs on its way is held for all of them at once:
ten rounds of a random number's multiplications for 32 elements take 1128 bytes of spills, where
registers for two would do. Where a section of such arithmetic takes more registers than a thread
has, each operation is done for the first elements, then for the next ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_core.target import Target
from tile_nvptx.passes.llvm.module import functions, is_kernel

#: Operations that make each element of a vector of the same element of others.
_ELEMENTWISE = frozenset(
    f"llvm.{name}"
    for name in (
        "add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "fadd", "fsub", "fmul",
        "fneg", "icmp", "fcmp", "select", "trunc", "zext", "sext", "fptrunc", "fpext", "fptosi",
        "fptoui", "sitofp", "uitofp", "freeze", "intr.abs", "intr.ctlz", "intr.ctpop", "intr.cttz",
        "intr.exp2", "intr.fabs", "intr.fma", "intr.fshl", "intr.fshr", "intr.maximum",
        "intr.maxnum", "intr.minimum", "intr.minnum", "intr.smax", "intr.smin", "intr.sqrt",
        "intr.umax", "intr.umin",
    )
)  # fmt: skip
#: Elements of a piece: what the instructions take that take several.
_PIECE = 2
_WORD = 32
#: Registers of a thread for addresses, flags and what else a section's tiles do not count.
_OTHERS = 16
#: Times the registers that a section takes in pieces, from which on its order is changed.
_GAIN = 1.5


@dataclass(frozen=True)
class ComputeInPieces(Pass):
    """Do arithmetic on a thread's elements for two after two, where for all at once it takes more
    registers than a thread has.
    """

    name = "nvptx-compute-in-pieces"
    anchor = "gpu.module"
    statistics = {"sections": "sections of arithmetic that are done in pieces"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        for func in functions(op).values():
            if not is_kernel(func):
                continue
            room = _registers(func, cx.target) - _OTHERS
            for block in func.regions[0].blocks:
                for section, end in list(_sections(block)):
                    if section.takes() > max(room, _GAIN * section.takes_divided()):
                        section.divide(end)
                        cx.count("sections")


def _registers(func: ir.Operation, target: Target) -> int:
    """What a thread has, with as many blocks at once as the kernel asks for."""
    threads, blocks = 1, 1
    if "nvvm.reqntid" in func.attributes:
        threads = ir.DenseI32ArrayAttr(func.attributes["nvvm.reqntid"])[0]
    if "nvvm.minctasm" in func.attributes:
        blocks = ir.IntegerAttr(func.attributes["nvvm.minctasm"]).value
    return min(target.max_registers, target.registers // max(1, threads * blocks))


@dataclass
class _Section:
    """Elementwise operations on vectors of `count` elements, with nothing in between that uses what
    one of them makes.
    """

    count: int
    ops: list[ir.Operation] = field(default_factory=list)
    made: set[ir.Value] = field(default_factory=set)

    def add(self, op: ir.Operation) -> None:
        self.ops.append(op)
        self.made.add(op.results[0])

    def uses(self, op: ir.Operation) -> bool:
        """Whether `op` uses what the section makes."""
        return any(operand in self.made for operand in op.operands)

    def takes(self) -> int:
        """Registers for all vectors that are live at once, at most."""
        live = set(self._leaving())
        most = now = sum(map(_words, live))
        for op in reversed(self.ops):
            if op.results[0] in live:
                live.remove(op.results[0])
                now -= _words(op.results[0])
            for operand in op.operands:
                if operand not in live:
                    live.add(operand)
                    now += _words(operand)
            most = max(most, now)
        return most

    def takes_divided(self) -> int:
        """The same in pieces: what comes in and what goes out is whole, or what there is of it."""
        given = {operand for op in self.ops for operand in op.operands} - self.made
        whole = max(sum(map(_words, given)), sum(map(_words, self._leaving())))
        return whole + -(-self.takes() * _PIECE // self.count)

    def divide(self, end: ir.Operation) -> None:
        """Each operation for the first elements, then for the next ones: all before `end`."""
        pieces: dict[ir.Value, list[ir.Value]] = {op.results[0]: [] for op in self.ops}
        with ir.InsertionPoint(end):
            for first in range(0, self.count, _PIECE):
                picks = range(first, min(first + _PIECE, self.count))
                now: dict[ir.Value, ir.Value] = {}
                for op in self.ops:
                    now[op.results[0]] = _in_piece(op, now, picks)
                for value, piece in now.items():
                    pieces[value].append(piece)
            for value in self._leaving():
                value.replace_all_uses_with(_joined(pieces[value]))
        for op in reversed(self.ops):
            op.erase()

    def _leaving(self) -> list[ir.Value]:
        """What others use."""
        return [op.results[0] for op in self.ops if any(map(self._is_outside, op.results[0].uses))]

    def _is_outside(self, use: ir.OpOperand) -> bool:
        results = use.owner.operation.results
        return len(results) != 1 or results[0] not in self.made


def _sections(block: ir.Block) -> Iterator[tuple[_Section, ir.Operation]]:
    """What a block computes of vectors, in order, each with what comes behind it: something that
    needs one of its results as a whole, or the block's end.
    """
    now = _Section(0)
    for view in list(block.operations):
        op = view.operation
        count = _count(op)
        joins = count and (not now.ops or count == now.count)
        if now.ops and not joins and (now.uses(op) or op.successors or _returns(op)):
            yield now, op
            now = _Section(0)
        if joins:
            now = now if now.ops else _Section(count)
            now.add(op)


def _count(op: ir.Operation) -> int:
    """Elements of its vectors if it is elementwise; 0 if not."""
    if op.name not in _ELEMENTWISE or not isinstance(op.results[0].type, ir.VectorType):
        return 0
    return ir.VectorType(op.results[0].type).shape[0]


def _returns(op: ir.Operation) -> bool:
    return op.name in ("llvm.return", "llvm.unreachable")


def _words(value: ir.Value) -> int:
    """Registers of a vector, if it is neither a constant nor the same number again and again; flags
    are used up at once.
    """
    if not isinstance(value.type, ir.VectorType) or _is_uniform(value):
        return 0
    vector = ir.VectorType(value.type)
    element = vector.element_type
    if not isinstance(element, (ir.IntegerType, ir.FloatType)) or element.width == 1:
        return 0
    return -(-vector.shape[0] * element.width // _WORD)


def _is_uniform(value: ir.Value) -> bool:
    if isinstance(value.owner, ir.Block):
        return False
    op = value.owner.operation
    if op.name == "llvm.shufflevector":
        return len(set(ir.DenseI32ArrayAttr(op.attributes["mask"]))) == 1
    return op.name == "llvm.mlir.constant"


def _in_piece(op: ir.Operation, now: Mapping[ir.Value, ir.Value], picks: range) -> ir.Value:
    """What `op` makes of the elements `picks`; `now` has those of operations before it."""
    operands = [now.get(operand) or _part(operand, picks) for operand in op.operands]
    element = ir.VectorType(op.results[0].type).element_type
    made = ir.Operation.create(
        op.name,
        [ir.VectorType.get([len(picks)], element)],
        operands,
        {name: op.attributes[name] for name in op.attributes},
        loc=op.location,
    )
    return made.result


def _part(value: ir.Value, picks: range) -> ir.Value:
    """Elements of a vector; a number is the same for all."""
    if not isinstance(value.type, ir.VectorType):
        return value
    return _shuffled(value, value, list(picks))


def _joined(parts: Sequence[ir.Value]) -> ir.Value:
    """One vector of several, which are as long as each other but for the last."""
    while len(parts) > 1:
        pairs = [parts[at : at + 2] for at in range(0, len(parts), 2)]
        parts = [_pair(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]


def _pair(a: ir.Value, b: ir.Value) -> ir.Value:
    count = ir.VectorType(a.type).shape[0]
    return _shuffled(a, b, list(range(count + ir.VectorType(b.type).shape[0])))


def _shuffled(a: ir.Value, b: ir.Value, picks: list[int]) -> ir.Value:
    element = ir.VectorType(a.type).element_type
    return ir.Operation.create(
        "llvm.shufflevector",
        [ir.VectorType.get([len(picks)], element)],
        [a, b],
        {"mask": ir.DenseI32ArrayAttr.get(picks)},
    ).result

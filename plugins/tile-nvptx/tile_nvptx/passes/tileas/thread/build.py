"""Small pieces of thread-level code: integers, vectors, addresses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from tile_core.insertion import Inserter
from tile_core.mlir import ir
from tile_nvptx.passes import meeting
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, storage_type, vector_of

if TYPE_CHECKING:
    from tile_nvptx.passes.tileas.thread.state import Kernel

# GEP operand list: this constant in rawConstantIndices says "take the next operand".
DYNAMIC_INDEX = -(1 << 31)


def wrap(value: int, width: int) -> int:
    """`value` modulo 2**width, as the signed number that integer attributes take."""
    value &= (1 << width) - 1
    return value - (1 << width) if width > 1 and value >> (width - 1) else value


class Builder:
    """Emits operations where a conversion currently inserts."""

    def __init__(self, cx: Inserter) -> None:
        self.cx = cx
        self.i1 = ir.IntegerType.get_signless(1)
        self.i8 = ir.IntegerType.get_signless(8)
        self.i32 = ir.IntegerType.get_signless(32)
        self.i64 = ir.IntegerType.get_signless(64)

    # -- integers ---------------------------------------------------------------------------

    def constant(self, value: int, type_: ir.Type | None = None) -> ir.Value:
        """An integer constant, i32 unless said otherwise; modulo the type's width."""
        kind = type_ or self.i32
        attr = ir.IntegerAttr.get(kind, wrap(value, kind.width))
        return self.cx.create("arith.constant", [], [kind], {"value": attr}).result

    def binary(self, name: str, left: ir.Value, right: ir.Value) -> ir.Value:
        """`arith.<name>` of two values of one type."""
        return self.cx.create(f"arith.{name}", [left, right], [left.type]).result

    def with_constant(self, name: str, left: ir.Value, right: int) -> ir.Value:
        """`arith.<name>` with a constant on the right; nothing for the neutral element."""
        if right == (1 if name == "muli" else 0) and name != "andi":
            return left
        return self.binary(name, left, self.constant(right, left.type))

    def compare(self, predicate: int, left: ir.Value, right: ir.Value) -> ir.Value:
        """`arith.cmpi`; the predicate is a value of arith.CmpIPredicate."""
        attr = ir.IntegerAttr.get(self.i64, predicate)
        return self.cx.create("arith.cmpi", [left, right], [self.i1], {"predicate": attr}).result

    def all_of(self, conditions: Sequence[ir.Value]) -> ir.Value | None:
        """The conjunction of i1 values; None for none."""
        result: ir.Value | None = None
        for condition in conditions:
            result = condition if result is None else self.binary("andi", result, condition)
        return result

    def widen(self, value: ir.Value, type_: ir.Type, *, signed: bool = False) -> ir.Value:
        """Extend an integer to `type_`; nothing if it has that width."""
        if value.type == type_:
            return value
        name = "arith.extsi" if signed else "arith.extui"
        return self.cx.create(name, [value], [type_]).result

    def resize(self, value: ir.Value, type_: ir.Type) -> ir.Value:
        """The lowest bits of an integer, or zeros in front of it; nothing if it has that width."""
        if value.type.width <= type_.width:
            return self.widen(value, type_)
        return self.cx.create("arith.trunci", [value], [type_]).result

    # -- vectors ----------------------------------------------------------------------------

    def shuffle(
        self, value: ir.Value, picks: Sequence[int], other: ir.Value | None = None
    ) -> ir.Value:
        """A vector of the elements `picks`; those past `value` come from `other`."""
        if other is None and list(picks) == list(range(count_of(value.type))):
            return value
        if count_of(value.type) == 1:
            # LLVM's NVPTX back end cannot select some shuffles of vectors of one on sm_100.
            sources = [value] if other is None else [value, other]
            scalars = [self.extract(source, 0) for source in sources]
            return self.vector([scalars[pick % len(scalars)] for pick in picks])
        return self.cx.create(
            "llvm.shufflevector",
            [value, value if other is None else other],
            [vector_of(len(picks), element_of(value.type))],
            {"mask": ir.DenseI32ArrayAttr.get(list(picks))},
        ).result

    def vector(self, scalars: Sequence[ir.Value]) -> ir.Value:
        """A vector of scalars of one type."""
        type_ = vector_of(len(scalars), scalars[0].type)
        result = self.cx.create("llvm.mlir.poison", [], [type_]).result
        for at, scalar in enumerate(scalars):
            operands = [result, scalar, self.constant(at)]
            result = self.cx.create("llvm.insertelement", operands, [type_]).result
        return result

    def concat(self, parts: Sequence[ir.Value]) -> ir.Value:
        """Vectors of one type behind each other; a power of two of them."""
        while len(parts) > 1:
            width = 2 * count_of(parts[0].type)
            parts = [
                self.shuffle(left, range(width), right)
                for left, right in zip(parts[::2], parts[1::2], strict=True)
            ]
        return parts[0]

    def extract(self, vector: ir.Value, at: int) -> ir.Value:
        """One element as a scalar."""
        index = self.constant(at)
        return self.cx.create(
            "llvm.extractelement", [vector, index], [element_of(vector.type)]
        ).result

    def splat(self, scalar: ir.Value, count: int) -> ir.Value:
        """A vector that holds `scalar` everywhere."""
        type_ = vector_of(count, scalar.type)
        empty = self.cx.create("llvm.mlir.poison", [], [type_]).result
        first = self.cx.create(
            "llvm.insertelement", [empty, scalar, self.constant(0)], [type_]
        ).result
        return self.shuffle(first, [0] * count) if count > 1 else first

    def bitcast(self, value: ir.Value, type_: ir.Type) -> ir.Value:
        """The same bits as `type_`."""
        if value.type == type_:
            return value
        # LLVM makes one load of a load and what reads its bits as another type, with the location
        # of the latter: that is where the value is from, not where somebody wants it.
        where = None if isinstance(value.owner, ir.Block) else value.owner.location
        return self.cx.create("llvm.bitcast", [value], [type_], location=where).result

    def to_storage(self, value: ir.Value) -> ir.Value:
        """What goes to memory: i1 as bytes, pointers as addresses."""
        element = element_of(value.type)
        stored = storage_type(element)
        if stored == element:
            return value
        type_ = vector_of(count_of(value.type), stored)
        name = "llvm.zext" if isinstance(element, ir.IntegerType) else "llvm.ptrtoint"
        return self.cx.create(name, [value], [type_]).result

    def from_storage(self, value: ir.Value, element: ir.Type) -> ir.Value:
        """The inverse of `to_storage`; any byte that is not 0 is true."""
        if storage_type(element) == element:
            return value
        type_ = vector_of(count_of(value.type), element)
        if not isinstance(element, ir.IntegerType):
            return self.cx.create("llvm.inttoptr", [value], [type_]).result
        zero = self.cx.create(
            "arith.constant",
            [],
            [value.type],
            {"value": ir.DenseElementsAttr.get_splat(value.type, ir.IntegerAttr.get(self.i8, 0))},
        ).result
        not_equal = {"predicate": ir.IntegerAttr.get(self.i64, 1)}
        return self.cx.create("arith.cmpi", [value, zero], [type_], not_equal).result

    def intrinsic(self, name: str, operands: Sequence[ir.Value], result: ir.Type) -> ir.Value:
        """Call the LLVM intrinsic `name`, overloads spelt out."""
        return self.cx.create(
            "llvm.call_intrinsic",
            operands,
            [result],
            {
                "intrin": ir.StringAttr.get(name),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
                "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            },
        ).result

    # -- memory -----------------------------------------------------------------------------

    def offset(self, pointer: ir.Value, by: ir.Value | int, element: ir.Type) -> ir.Value:
        """pointer + by elements of `element` (storage type)."""
        if isinstance(by, int) and by == 0:
            return pointer
        static = isinstance(by, int) and -(1 << 31) < by < 1 << 31
        if isinstance(by, int) and not static:
            by = self.constant(by, self.i64)
        return self.cx.create(
            "llvm.getelementptr",
            [pointer] if isinstance(by, int) else [pointer, by],
            [pointer.type],
            {
                "elem_type": ir.TypeAttr.get(element),
                "rawConstantIndices": ir.DenseI32ArrayAttr.get(
                    [by if isinstance(by, int) else DYNAMIC_INDEX]
                ),
            },
        ).result

    def offset_by(
        self, pointer: ir.Value, by: ir.Value, element: ir.Type, result: ir.Type
    ) -> ir.Value:
        """pointer + by, elementwise on vectors; `by` is sign-extended."""
        return self.cx.create(
            "llvm.getelementptr",
            [pointer, by],
            [result],
            {
                "elem_type": ir.TypeAttr.get(element),
                "rawConstantIndices": ir.DenseI32ArrayAttr.get([DYNAMIC_INDEX]),
            },
        ).result

    def load(self, pointer: ir.Value, type_: ir.Type, alignment: int) -> ir.Value:
        """A plain load of `type_` at `alignment` bytes."""
        align = {"alignment": ir.IntegerAttr.get(self.i64, alignment)}
        return self.cx.create("llvm.load", [pointer], [type_], align).result

    def store(self, value: ir.Value, pointer: ir.Value, alignment: int) -> None:
        """A plain store at `alignment` bytes."""
        align = {"alignment": ir.IntegerAttr.get(self.i64, alignment)}
        self.cx.create("llvm.store", [value, pointer], [], align)

    def barrier(self) -> None:
        """All threads of the agent meet; shared and global accesses before it are visible."""
        agent = cast("Kernel", self.cx).state.agent
        if agent.barrier is None:
            meeting.block_meets(self.cx)
        else:
            some = self.constant(agent.barrier), self.constant(agent.threads)
            meeting.some_meet(self.cx, *some)


def token(cx: Inserter) -> ir.Value:
    """What a memory token becomes: a constant that nobody reads."""
    return Builder(cx).constant(0)


def join(b: Builder, parts: Sequence[ir.Value]) -> ir.Value:
    """Vectors of any lengths behind each other; in pairs, so that each element moves seldom."""
    while len(parts) > 1:
        pairs = [
            _pair(b, left, right) for left, right in zip(parts[::2], parts[1::2], strict=False)
        ]
        parts = [*pairs, *parts[2 * len(pairs) :]]
    return parts[0]


def _pair(b: Builder, left: ir.Value, right: ir.Value) -> ir.Value:
    """Two vectors behind each other."""
    counts = count_of(left.type), count_of(right.type)
    width = max(counts)
    padded = [
        b.shuffle(part, [*range(count), *[0] * (width - count)])
        for part, count in zip((left, right), counts, strict=True)
    ]
    return b.shuffle(padded[0], [*range(counts[0]), *range(width, width + counts[1])], padded[1])

"""Device functions that generated code calls, written as MLIR text and added when first needed.

They are internal and always inlined; keeping them out of line until LLVM keeps the number of
operations that Python touches small.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import lru_cache

from tile_core.insertion import Inserter
from tile_core.mlir import ir, passmanager
from tile_core.walk import children


class Helpers:
    """The helper functions of one gpu.module."""

    def __init__(self, module: ir.Operation) -> None:
        self._block = module.regions[0].blocks[0]
        self._known: dict[str, ir.Attribute] = {}
        self._tables: dict[ir.Attribute, str] = {}

    def call(
        self,
        cx: Inserter,
        name: str,
        text: str,
        operands: list[ir.Value],
        result: ir.Type | None,
    ) -> ir.Operation:
        """Call helper `name`, whose definition is `text`."""
        if name not in self._known:
            self._add(text)
        return _call(cx, self._known[name], operands, result)

    def defined(self, name: str) -> ir.Operation | None:
        """The program's own function of that name in the llvm dialect, if it has one with a body;
        it needs no declaration then.
        """
        for view in self._block.operations:
            found = view.operation
            if (
                found.name != "llvm.func"
                or ir.StringAttr(found.attributes["sym_name"]).value != name
            ):
                continue
            if not len(found.regions[0].blocks):
                return None
            self._known.setdefault(name, ir.FlatSymbolRefAttr.get(name))
            return found
        return None

    def _add(self, text: str) -> None:
        """Insert the functions that `text` defines or declares, each once."""
        parsed = ir.Module.parse(_bytecode(text))
        for helper in children(parsed.operation):
            symbol = ir.StringAttr(helper.attributes["sym_name"]).value
            if symbol not in self._known:
                self._known[symbol] = ir.FlatSymbolRefAttr.get(symbol)
                helper.detach_from_parent()
                ir.InsertionPoint(self._block).insert(helper)

    def text(self, cx: Inserter, text: str) -> ir.Value:
        """The generic address of a constant string, zero-terminated."""
        data = ir.StringAttr.get(text.encode() + bytes(1))
        name = self._tables.get(data)
        if name is None:
            name = self._tables[data] = f"__tile_text_{len(self._tables)}"
            array = f"!llvm.array<{len(text.encode()) + 1} x i8>"
            ir.Operation.create(
                "llvm.mlir.global",
                attributes={
                    "sym_name": ir.StringAttr.get(name),
                    "value": data,
                    "global_type": ir.TypeAttr.get(ir.Type.parse(array)),
                    "linkage": ir.Attribute.parse("#llvm.linkage<internal>"),
                    "constant": ir.UnitAttr.get(),
                    "addr_space": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1),
                },
                regions=1,
                loc=ir.Location.unknown(),
                ip=ir.InsertionPoint.at_block_begin(self._block),
            )
        symbol = {"global_name": ir.FlatSymbolRefAttr.get(name)}
        pointer = ir.Type.parse("!llvm.ptr<1>")
        place = cx.create("llvm.mlir.addressof", [], [pointer], symbol).result
        return cx.create("llvm.addrspacecast", [place], [ir.Type.parse("!llvm.ptr")]).result

    def zeros(self, cx: Inserter, name: str, size: int, alignment: int) -> ir.Value:
        """The address of `size` bytes of global memory, one and the same for each `name`, which are
        zero before the first launch.
        """
        if name not in self._known:
            self._known[name] = ir.FlatSymbolRefAttr.get(name)
            ir.InsertionPoint(self._block).insert(
                ir.Operation.parse(
                    f"llvm.mlir.global internal @{name}(dense<0> : tensor<{size // 4}xi32>) "
                    f"{{addr_space = 1 : i32, alignment = {alignment} : i64}} "
                    f": !llvm.array<{size // 4} x i32>"
                )
            )
        pointer = ir.Type.parse("!llvm.ptr<1>")
        symbol = {"global_name": self._known[name]}
        return cx.create("llvm.mlir.addressof", [], [pointer], symbol).result

    def table(self, cx: Inserter, values: list[ir.Attribute], element: ir.Type) -> ir.Value:
        """The address of a constant array in global memory that holds `values`."""
        type_ = ir.RankedTensorType.get([len(values)], element)
        data = ir.DenseElementsAttr.get(values, type_)
        name = self._tables.get(data)
        if name is None:
            name = self._tables[data] = f"__tile_table_{len(self._tables)}"
            array = f"!llvm.array<{len(values)} x {element}>"
            ir.InsertionPoint(self._block).insert(
                ir.Operation.parse(
                    f"llvm.mlir.global internal constant @{name}({data}) "
                    f"{{addr_space = 1 : i32, alignment = 16 : i64}} : {array}"
                )
            )
        pointer = ir.Type.parse("!llvm.ptr<1>")
        symbol = {"global_name": ir.FlatSymbolRefAttr.get(name)}
        return cx.create("llvm.mlir.addressof", [], [pointer], symbol).result


@lru_cache(maxsize=256)
def _bytecode(text: str) -> bytes:
    """The functions of a text in the form that MLIR reads soonest, a third of the time of text."""
    parsed = ir.Module.parse(text)
    # Lines of our own text would show up as the user's line numbers.
    passmanager.PassManager.parse("builtin.module(strip-debuginfo)").run(parsed.operation)
    found = io.BytesIO()
    parsed.operation.write_bytecode(found)
    return found.getvalue()


def _call(
    cx: Inserter, callee: ir.Attribute, operands: list[ir.Value], result: ir.Type | None
) -> ir.Operation:
    return cx.create(
        "llvm.call",
        operands,
        [] if result is None else [result],
        {
            "callee": callee,
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    )


def quoted(asm: str) -> str:
    """An assembly text as MLIR's strings have it."""
    return '"' + asm.replace("\\", "\\\\").replace('"', '\\"') + '"'


#: Elements that are inserted one after the other, before vectors of so many are put together.
_PIECE = 8


def joined(name: str, elements: Sequence[str], type_: str) -> list[str]:
    """Lines that make the vector `name` of scalars of `type_`.

    LLVM's work on a chain of insertions grows with the square of its length: one of 128 took it
    50 ms. So long vectors are made of short ones.
    """
    count = len(elements)
    width = _PIECE if count > _PIECE and not count & (count - 1) else count
    lines = [f"  {name}_at{i} = llvm.mlir.constant({i} : i32) : i32" for i in range(width)]
    parts = [name] if width == count else [f"{name}_{i}" for i in range(count // width)]
    for part, first in zip(parts, range(0, count, width), strict=True):
        lines += _inserted(name, part, elements[first : first + width], type_)
    while len(parts) > 1:
        halves = list(zip(parts[::2], parts[1::2], strict=True))
        wider = [f"{left}w" for left, _ in halves] if len(halves) > 1 else [name]
        order = ", ".join(map(str, range(2 * width)))
        lines += [
            f"  {whole} = llvm.shufflevector {left}, {right} [{order}] : vector<{width}x{type_}>"
            for whole, (left, right) in zip(wider, halves, strict=True)
        ]
        parts, width = wider, 2 * width
    return lines


def _inserted(name: str, part: str, elements: Sequence[str], type_: str) -> list[str]:
    """Lines that insert `elements` into the vector `part` of `name`, one after the other."""
    vector = f"vector<{len(elements)}x{type_}>"
    steps = [f"{part}_of{i}" for i in range(len(elements))] + [part]
    return [
        f"  {steps[0]} = llvm.mlir.poison : {vector}",
        *(
            f"  {steps[i + 1]} = llvm.insertelement {element}, {steps[i]}[{name}_at{i} : i32]"
            f" : {vector}"
            for i, element in enumerate(elements)
        ),
    ]

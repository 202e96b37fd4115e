"""printf-lowering: calls of `printf` in the llvm dialect become calls of `vprintf`.

Page 101 of the specification, with the layout of arguments that the CUDA C++ programming guide's
`vprintf` has: each at its natural alignment, after C's promotions.
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at
from tile_nvptx.passes.llvm.module import callee, functions, inside, size_of, space

_POINTER = "!llvm.ptr"


@dataclass(frozen=True)
class PrintfLowering(Pass):
    """Pack what `printf` prints into a buffer on the stack, and call `vprintf`.

    Floats become doubles and small integers i32. Without arguments the buffer is null. A format
    that is no constant of the module is refused.
    """

    name = "printf-lowering"
    anchor = "gpu.module"
    dependent_dialects = ("llvm",)
    statistics = {"lowered": "calls of printf"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        found = [c for f in functions(op).values() for c in inside(f) if _prints(c)]
        if not found:
            return
        _declare(op)
        for call in found:
            _lower(call)
            cx.count("lowered")
        _drop_declaration(op)


def _prints(op: ir.Operation) -> bool:
    return op.name == "llvm.call" and callee(op) == "printf"


def _declare(module: ir.Operation) -> None:
    body = module.regions[0].blocks[0]
    known = [ir.StringAttr(v.operation.attributes["sym_name"]).value
             for v in body.operations if "sym_name" in v.operation.attributes]  # fmt: skip
    if "vprintf" in known:
        return
    text = "llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32"
    declared = ir.Module.parse(text, module.context).body.operations[0].operation
    ir.InsertionPoint.at_block_begin(body).insert(declared.clone())


def _drop_declaration(module: ir.Operation) -> None:
    for view in list(module.regions[0].blocks[0].operations):
        op = view.operation
        if op.name == "llvm.func" and ir.StringAttr(op.attributes["sym_name"]).value == "printf":
            op.erase()


def _lower(call: ir.Operation) -> None:
    if not len(call.operands):
        raise error_at(call, "unsupported printf form: it has no format")
    text, *values = call.operands
    if not _is_constant(text):
        raise error_at(call, "printf format string must be a constant address space pointer")
    with ir.InsertionPoint(call), call.location:
        generic = ir.Type.parse(_POINTER)
        if space(text.type) != 0:
            text = _make("llvm.addrspacecast", [generic], [text])
        promoted = [_promoted(call, value) for value in values]
        buffer = _packed(call, promoted) if promoted else _make("llvm.mlir.zero", [generic], [])
        i32 = ir.IntegerType.get_signless(32)
        printed = ir.Operation.create(
            "llvm.call", results=[i32], operands=[text, buffer],
            attributes={
                "callee": ir.FlatSymbolRefAttr.get("vprintf"),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 0]),
                "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            },
        ).result  # fmt: skip
    if len(call.results):
        call.results[0].replace_all_uses_with(printed)
    call.erase()


def _is_constant(value: ir.Value) -> bool:
    """Whether a pointer leads to a global of the module."""
    while not isinstance(value.owner, ir.Block):
        owner = value.owner.operation
        if owner.name == "llvm.mlir.addressof":
            return True
        if owner.name not in ("llvm.getelementptr", "llvm.addrspacecast"):
            return False
        value = owner.operands[0]
    return False


def _promoted(call: ir.Operation, value: ir.Value) -> ir.Value:
    """As C passes it to a function of any number of arguments."""
    kind = value.type
    if isinstance(kind, ir.FloatType):
        double = ir.F64Type.get()
        return value if kind == double else _make("llvm.fpext", [double], [value])
    if isinstance(kind, ir.IntegerType):
        if kind.width in (32, 64):
            return value
        if kind.width < 32:
            # The dialect's integers have no sign; as clang extends those that C calls signed.
            wide = ir.IntegerType.get_signless(32)
            return _make("llvm.zext" if kind.width == 1 else "llvm.sext", [wide], [value])
    if space(kind) is not None:
        generic = ir.Type.parse(_POINTER)
        return value if space(kind) == 0 else _make("llvm.addrspacecast", [generic], [value])
    raise error_at(call, f"unsupported printf form: an argument of {kind}")


def _packed(call: ir.Operation, values: list[ir.Value]) -> ir.Value:
    """A buffer on the stack with the values at their natural alignment."""
    kinds = ", ".join(_spelt(value.type) for value in values)
    struct = ir.Type.parse(f"!llvm.struct<({kinds})>")
    widest = max(size_of(value.type) for value in values)
    i32, i64 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(64)
    # In the entry block: in a loop, the stack would grow.
    with ir.InsertionPoint.at_block_begin(_function(call).regions[0].blocks[0]):
        one = _make("llvm.mlir.constant", [i32], [], value=ir.IntegerAttr.get(i32, 1))
        buffer = _make(
            "llvm.alloca",
            [ir.Type.parse(_POINTER)],
            [one],
            elem_type=ir.TypeAttr.get(struct),
            alignment=ir.IntegerAttr.get(i64, widest),
        )
    for at, value in enumerate(values):
        place = _make(
            "llvm.getelementptr", [buffer.type], [buffer],
            elem_type=ir.TypeAttr.get(struct),
            rawConstantIndices=ir.DenseI32ArrayAttr.get([0, at]),
        )  # fmt: skip
        ir.Operation.create("llvm.store", operands=[value, place])
    return buffer


def _function(op: ir.Operation) -> ir.Operation:
    while op.name != "llvm.func":
        assert op.parent is not None
        op = op.parent.operation
    return op


def _spelt(type_: ir.Type) -> str:
    return str(type_).removeprefix("!llvm.") if space(type_) is not None else str(type_)


def _make(
    name: str, results: list[ir.Type], operands: list[ir.Value], **attributes: ir.Attribute
) -> ir.Value:
    return ir.Operation.create(
        name, results=results, operands=operands, attributes=attributes
    ).result

"""`llvm.call_intrinsic` through two LLVMs.

MLIR looks the name up in its own LLVM and its bindings crash when it is not there. Here the call
becomes one of a plain function with a name that no LLVM knows; `restore` puts the real name back
into the text, and the LLVM that generates code decides whether the intrinsic exists.
"""

from __future__ import annotations

from tile_core.mlir import ir
from tile_core.passes import error_at

_HIDDEN = "__hidden_intrinsic__"
_CARRIED = ("fastmathFlags",)


def hide(module: ir.Operation) -> None:
    """Turn every `llvm.call_intrinsic` in `module` (changed in place) into a plain call.

    Raises:
        CompileError: one name is used with two signatures.
    """
    calls: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "llvm.call_intrinsic":
            calls.append(op)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    declared: dict[str, ir.Attribute] = {}
    for call in calls:
        _replace(call, module, declared)


def restore(text: str) -> str:
    """LLVM IR `text` with the real names of intrinsics."""
    return text.replace(f"@{_HIDDEN}", "@")


def _replace(call: ir.Operation, module: ir.Operation, declared: dict[str, ir.Attribute]) -> None:
    name = ir.StringAttr(call.attributes["intrin"]).value
    kind = _function_type(call)
    symbol = _HIDDEN + name
    if name not in declared:
        declared[name] = kind
        _declare(symbol, kind, module)
    elif declared[name] != kind:
        raise error_at(call, f"calls '{name}' with two signatures; spell out the overloaded types")
    attributes = {key: call.attributes[key] for key in _CARRIED if key in call.attributes}
    count = len(call.operands)
    attributes |= {
        "callee": ir.FlatSymbolRefAttr.get(symbol),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([count, 0]),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
    }
    with ir.InsertionPoint(call), call.location:
        plain = ir.Operation.create(
            "llvm.call",
            results=[result.type for result in call.results],
            operands=list(call.operands),
            attributes=attributes,
        )
    for old, new in zip(call.results, plain.results, strict=True):
        old.replace_all_uses_with(new)
    call.erase()


def _function_type(call: ir.Operation) -> ir.Attribute:
    result = str(call.results[0].type) if len(call.results) else "void"
    arguments = ", ".join(str(operand.type) for operand in call.operands)
    return ir.TypeAttr.get(ir.Type.parse(f"!llvm.func<{result} ({arguments})>"))


def _declare(symbol: str, kind: ir.Attribute, module: ir.Operation) -> None:
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), ir.Location.unknown():
        ir.Operation.create(
            "llvm.func",
            regions=1,
            attributes={
                "sym_name": ir.StringAttr.get(symbol),
                "function_type": kind,
                "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
                "CConv": ir.Attribute.parse("#llvm.cconv<ccc>"),
            },
        )

"""What kernels of cute print, by vprintf."""

from __future__ import annotations

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.cute.numbers import wide
from tile_nvptx.passes.cute.offsets import Offsets
from tile_nvptx.passes.cute.tensors import Cute, moved, rules
from tile_nvptx.passes.tileas.device.printing import print_values

#: Words of 64 bits in a tensor map.
_WORDS = 16


def _print(cx: Cute, text: str, values: list[ir.Value]) -> None:
    """One call of vprintf, so that what other threads print does not come between."""
    name, body = print_values(tuple(str(value.type) for value in values))
    cx.state.helpers.call(cx, name, body, [cx.state.helpers.text(cx, text), *values], None)


@rules.on("cute.print")
def print_scalars(op: ir.OpView, cx: Cute) -> Replacement:
    """print(a, b) => a line of integers, as i64, and floats, as f64"""
    forms, values = [], []
    for value in op.operands:
        kind = value.type
        if isinstance(kind, ir.IntegerType | ir.IndexType):
            forms.append("%lld")
            values.append(_whole(cx, value))
        elif isinstance(kind, ir.FloatType):
            forms.append("%f")
            f64 = ir.F64Type.get()
            wider = kind != f64
            values.append(cx.create("arith.extf", [value], [f64]).result if wider else value)
        else:
            raise cx.error(f"prints integers and floats, but got {kind}")
    _print(cx, " ".join(forms) + "\n", values)
    return None


def _whole(cx: Cute, value: ir.Value) -> ir.Value:
    """An integer as C prints it; a truth value is 0 or 1."""
    if str(value.type) == "i1":
        return cx.create("arith.extui", [value], [ir.IntegerType.get_signless(64)]).result
    return wide(cx, value)


@rules.on("cute.print_tma_desc_tiled", "cute.print_tma_desc_im2col")
def print_map(op: ir.OpView, cx: Cute) -> Replacement:
    """print_tma_desc(m) => a line with its kind and its 16 words of 64 bits"""
    i64, map_ = ir.IntegerType.get_signless(64), op.operands[0]
    words = []
    for at in range(_WORDS):
        place = moved(cx, map_, i64, Offsets(cx).constant(at))
        words.append(cx.create("llvm.load", [place], [i64]).result)
    kind = op.operation.name.removeprefix("cute.print_tma_desc_")
    _print(cx, f"tma_descriptor_{kind}" + " %016llx" * _WORDS + "\n", words)
    return None

"""math-to-libdevice: functions that LLVM has no code for become calls of libdevice."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.convert import Conversion, Replacement, RuleSet
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_nvptx.passes.tileas.device.helpers import Helpers

#: Operation of math -> (its function of libdevice for f64, the fast one for f32, if there is one).
#: With an `f` behind it, a name is that for f32 (page 107). What LLVM has instructions for, square
#: roots and roundings, is left to it.
FUNCTIONS: dict[str, tuple[str, str]] = {
    "acos": ("__nv_acos", ""),
    "acosh": ("__nv_acosh", ""),
    "asin": ("__nv_asin", ""),
    "asinh": ("__nv_asinh", ""),
    "atan": ("__nv_atan", ""),
    "atan2": ("__nv_atan2", ""),
    "atanh": ("__nv_atanh", ""),
    "cbrt": ("__nv_cbrt", ""),
    "cos": ("__nv_cos", "__nv_fast_cosf"),
    "cosh": ("__nv_cosh", ""),
    "erf": ("__nv_erf", ""),
    "erfc": ("__nv_erfc", ""),
    "exp": ("__nv_exp", "__nv_fast_expf"),
    "exp2": ("__nv_exp2", ""),
    "expm1": ("__nv_expm1", ""),
    "log": ("__nv_log", "__nv_fast_logf"),
    "log10": ("__nv_log10", "__nv_fast_log10f"),
    "log1p": ("__nv_log1p", ""),
    "log2": ("__nv_log2", "__nv_fast_log2f"),
    "powf": ("__nv_pow", "__nv_fast_powf"),
    "sin": ("__nv_sin", "__nv_fast_sinf"),
    "sinh": ("__nv_sinh", ""),
    "tan": ("__nv_tan", "__nv_fast_tanf"),
    "tanh": ("__nv_tanh", "__nv_fast_tanhf"),
}
#: Elements of fewer bits are computed in f32.
_NARROW = ("f16", "bf16")

_rules = RuleSet("math-to-libdevice")


@dataclass(frozen=True)
class MathToLibdevice(Pass):
    """Call libdevice for operations of math that LLVM has no code for on this target.

    Vectors are taken apart, f16 and bf16 are computed in f32 and rounded. Where `fastmath` has
    `afn`, f32 takes the fast function, if there is one.
    """

    name = "math-to-libdevice"
    anchor = "gpu.module"
    dependent_dialects = ("arith", "llvm", "vector")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        Conversion(_rules, lambda type_: type_, (), cx, Helpers(op)).run(op)


@_rules.on(*(f"math.{name}" for name in FUNCTIONS))
def call(op: ir.OpView, cx: Conversion[Helpers]) -> Replacement:
    """math.f(x) => llvm.call @__nv_f(x), for each element"""
    type_ = op.results[0].type
    if not isinstance(type_, ir.VectorType):
        return _scalar(op, cx, list(op.operands), type_)
    if len(type_.shape) != 1 or type_.scalable:
        raise cx.error(f"expects a scalar or a vector of one dimension, but got {type_}")
    element, items = type_.element_type, []
    for at in range(type_.shape[0]):
        place = {"static_position": ir.DenseI64ArrayAttr.get([at])}
        parts = [cx.create("vector.extract", [v], [element], place).result for v in op.operands]
        items.append(_scalar(op, cx, parts, element))
    return cx.create("vector.from_elements", items, [type_]).result


def _scalar(
    op: ir.OpView, cx: Conversion[Helpers], values: list[ir.Value], type_: ir.Type
) -> ir.Value:
    single = ir.F32Type.get()
    if str(type_) in _NARROW:
        wide = [cx.create("arith.extf", [value], [single]).result for value in values]
        return cx.create("arith.truncf", [_scalar(op, cx, wide, single)], [type_]).result
    if str(type_) not in ("f32", "f64"):
        raise cx.error(f"is for f16, bf16, f32 and f64, but got {type_}")
    double, fast = FUNCTIONS[op.operation.name.removeprefix("math.")]
    name = double
    if type_ == single:
        name = fast if fast and _approximate(op) else f"{double}f"
    text = f"llvm.func @{name}({', '.join([str(type_)] * len(values))}) -> {type_}"
    return cx.state.call(cx, name, text, values, type_).result


def _approximate(op: ir.OpView) -> bool:
    if "fastmath" not in op.attributes:
        return False
    words = str(op.attributes["fastmath"])
    return "afn" in words or "fast>" in words

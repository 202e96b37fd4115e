"""Integer and float arithmetic, comparisons and casts."""

from __future__ import annotations

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileaa.passes.cudatile.rules import constant, element, rules, text

# cuda_tile name -> operation of the same operands, nothing to carry over
PLAIN = {
    "andi": "arith.andi",
    "ori": "arith.ori",
    "xori": "arith.xori",
    "negf": "arith.negf",
    "remf": "arith.remf",
    "select": "arith.select",
    "absi": "math.absi",
    "absf": "math.absf",
    "ceil": "math.ceil",
    "floor": "math.floor",
    "cos": "nv_tileaa.cos",
    "sin": "nv_tileaa.sin",
    "tan": "nv_tileaa.tan",
    "cosh": "nv_tileaa.cosh",
    "sinh": "nv_tileaa.sinh",
    "log": "nv_tileaa.log",
    "log2": "nv_tileaa.log2",
    "fpowf": "nv_tileaa.pow",
    "atan2": "nv_tileaa.atan2",
    "int_to_ptr": "nv_tileaa.int_to_ptr",
    "ptr_to_int": "nv_tileaa.ptr_to_int",
    "ptr_to_ptr": "nv_tileaa.bitcast",
}
# cuda_tile name -> nv_tileaa name; rounding mode and flush-to-zero are carried
ROUNDED = ("addf", "subf", "mulf", "divf", "fma", "sqrt", "rsqrt", "exp2")
OVERFLOW = {"addi": "arith.addi", "subi": "arith.subi", "muli": "arith.muli", "shli": "arith.shli"}
OVERFLOW_FLAGS = {
    "none": "none",
    "no_signed_wrap": "nsw",
    "no_unsigned_wrap": "nuw",
    "no_wrap": "nsw, nuw",
}
# cuda_tile name -> (signed form, unsigned form)
SIGNED = {
    "remi": ("arith.remsi", "arith.remui"),
    "maxi": ("arith.maxsi", "arith.maxui"),
    "mini": ("arith.minsi", "arith.minui"),
    "shri": ("arith.shrsi", "arith.shrui"),
    "exti": ("arith.extsi", "arith.extui"),
}
# (rounding, signedness) of divi
DIVISIONS = {
    ("zero", "signed"): "arith.divsi",
    ("zero", "unsigned"): "arith.divui",
    ("negative_inf", "signed"): "arith.floordivsi",
    ("positive_inf", "signed"): "arith.ceildivsi",
    ("positive_inf", "unsigned"): "arith.ceildivui",
}
# propagate_nan -> operation
EXTREMA = {
    "maxf": ("arith.maxnumf", "arith.maximumf"),
    "minf": ("arith.minnumf", "arith.minimumf"),
}
# Values of arith.CmpIPredicate: equal and not_equal have no signedness.
INT_PREDICATES = {
    "equal": (0, 0),
    "not_equal": (1, 1),
    "less_than": (2, 6),
    "less_than_or_equal": (3, 7),
    "greater_than": (4, 8),
    "greater_than_or_equal": (5, 9),
}
# Values of arith.CmpFPredicate: (ordered, unordered)
FLOAT_PREDICATES = {
    "equal": (1, 8),
    "not_equal": (6, 13),
    "less_than": (4, 11),
    "less_than_or_equal": (5, 12),
    "greater_than": (2, 9),
    "greater_than_or_equal": (3, 10),
}


def _result(op: ir.OpView, cx: Conversion) -> ir.Type:
    return cx.type(op.results[0].type)


@rules.on(*(f"cuda_tile.{name}" for name in PLAIN))
def plain(op: ir.OpView, cx: Conversion) -> ir.Value:
    """cuda_tile.x(a, ..) => the operation of PLAIN on the same operands"""
    name = PLAIN[op.name.removeprefix("cuda_tile.")]
    return cx.create(name, list(op.operands), [_result(op, cx)]).result


@rules.on(*(f"cuda_tile.{name}" for name in ROUNDED))
def rounded(op: ir.OpView, cx: Conversion) -> ir.Value:
    """cuda_tile.addf {rounding_mode, flush_to_zero} => nv_tileaa.addf {rounding_mode, ftz}"""
    name = op.name.replace("cuda_tile", "nv_tileaa")
    return cx.create(name, list(op.operands), [_result(op, cx)], _float_flags(op, cx)).result


def _flushes(op: ir.OpView, cx: Conversion) -> bool:
    """Whether the operation, one of those that can, flushes f32 subnormals to zero."""
    if "flush_to_zero" in op.attributes:
        return True
    return cx.state.ftz and isinstance(element(_result(op, cx)), ir.F32Type)


def _float_flags(op: ir.OpView, cx: Conversion) -> dict[str, ir.Attribute]:
    flags = _rounding(op, cx)
    if _flushes(op, cx):
        flags["ftz"] = ir.UnitAttr.get()
    return flags


#: With the option `approx`, what stands for rounding to nearest even: of 2 ulp over the whole range
#: for quotients, 1 ulp for roots (PTX ISA 9.7.3, div.full and sqrt.approx).
_APPROXIMATE = {"cuda_tile.divf": "full", "cuda_tile.sqrt": "approx"}


def _rounding(op: ir.OpView, cx: Conversion) -> dict[str, ir.Attribute]:
    mode = text(op, "rounding_mode", "nearest_even")
    f32 = isinstance(element(_result(op, cx)), ir.F32Type)
    if mode == "nearest_even" and cx.state.approx and f32:
        mode = _APPROXIMATE.get(op.name, mode)
    return {} if mode == "nearest_even" else {"rounding_mode": ir.StringAttr.get(mode)}


@rules.on(*(f"cuda_tile.{name}" for name in OVERFLOW))
def with_overflow(op: ir.OpView, cx: Conversion) -> ir.Value:
    """cuda_tile.addi {overflow} => arith.addi overflow<..>"""
    return _overflowing(op, cx, OVERFLOW[op.name.removeprefix("cuda_tile.")])


@rules.on("cuda_tile.trunci")
def trunci(op: ir.OpView, cx: Conversion) -> ir.Value:
    """cuda_tile.trunci => arith.trunci"""
    return _overflowing(op, cx, "arith.trunci")


def _overflowing(op: ir.OpView, cx: Conversion, name: str) -> ir.Value:
    flags = OVERFLOW_FLAGS[text(op, "overflow", "none")]
    attributes = {}
    if flags != "none":
        attributes["overflowFlags"] = ir.Attribute.parse(f"#arith.overflow<{flags}>")
    return cx.create(name, list(op.operands), [_result(op, cx)], attributes).result


@rules.on(*(f"cuda_tile.{name}" for name in SIGNED))
def signed_or_not(op: ir.OpView, cx: Conversion) -> ir.Value:
    """cuda_tile.maxi signed => arith.maxsi, unsigned => arith.maxui"""
    forms = SIGNED[op.name.removeprefix("cuda_tile.")]
    name = forms[text(op, "signedness") == "unsigned"]
    return cx.create(name, list(op.operands), [_result(op, cx)]).result


@rules.on("cuda_tile.divi")
def divi(op: ir.OpView, cx: Conversion) -> ir.Value:
    """cuda_tile.divi => the arith division of that rounding and signedness"""
    key = (text(op, "rounding", "zero"), text(op, "signedness"))
    if key not in DIVISIONS:
        raise error_at(op, f"rounding mode '{key[0]}' is not allowed with '{key[1]}' flag")
    return cx.create(DIVISIONS[key], list(op.operands), [_result(op, cx)]).result


@rules.on("cuda_tile.negi")
def negi(op: ir.OpView, cx: Conversion) -> ir.Value:
    """negi(x) => 0 - x"""
    zero = constant(cx, _result(op, cx), 0)
    return cx.create("arith.subi", [zero, op.operands[0]], [_result(op, cx)]).result


@rules.on("cuda_tile.mulhii")
def mulhii(op: ir.OpView, cx: Conversion) -> ir.Value:
    """mulhii => nv_tileaa.mulhiui; the operation is defined on unsigned operands"""
    return cx.create("nv_tileaa.mulhiui", list(op.operands), [_result(op, cx)]).result


@rules.on("cuda_tile.maxf", "cuda_tile.minf")
def extremum(op: ir.OpView, cx: Conversion) -> ir.Value:
    """maxf => arith.maxnumf, propagate_nan => arith.maximumf, flush_to_zero => nv_tileaa.maxf"""
    forms = EXTREMA[op.name.removeprefix("cuda_tile.")]
    nan, flags = "propagate_nan" in op.attributes, {}
    name = forms[nan]
    if _flushes(op, cx):
        name = op.name.replace("cuda_tile", "nv_tileaa")
        flags = {flag: ir.UnitAttr.get() for flag in ("ftz", *["nan"] * nan)}
    return cx.create(name, list(op.operands), [_result(op, cx)], flags).result


@rules.on("cuda_tile.cmpi")
def cmpi(op: ir.OpView, cx: Conversion) -> ir.Value:
    """cuda_tile.cmpi => arith.cmpi"""
    predicate = INT_PREDICATES[text(op, "comparison_predicate")]
    return _compare(op, cx, "arith.cmpi", predicate[text(op, "signedness") == "unsigned"])


@rules.on("cuda_tile.cmpf")
def cmpf(op: ir.OpView, cx: Conversion) -> ir.Value:
    """cuda_tile.cmpf => arith.cmpf"""
    predicate = FLOAT_PREDICATES[text(op, "comparison_predicate")]
    return _compare(op, cx, "arith.cmpf", predicate[text(op, "comparison_ordering") == "unordered"])


def _compare(op: ir.OpView, cx: Conversion, name: str, predicate: int) -> ir.Value:
    attr = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    return cx.create(name, list(op.operands), [_result(op, cx)], {"predicate": attr}).result


_UPSTREAM_FLOATS = (ir.F16Type, ir.BF16Type, ir.F32Type, ir.F64Type)


@rules.on("cuda_tile.itof")
def itof(op: ir.OpView, cx: Conversion) -> ir.Value:
    """itof => arith.sitofp or arith.uitofp; to other formats nv_tileaa.int_to_fp {signedness}"""
    signedness, result = text(op, "signedness"), _result(op, cx)
    if isinstance(element(result), _UPSTREAM_FLOATS):
        name = "arith.uitofp" if signedness == "unsigned" else "arith.sitofp"
        return cx.create(name, list(op.operands), [result]).result
    flags = {"signedness": ir.StringAttr.get(signedness)}
    return cx.create("nv_tileaa.int_to_fp", list(op.operands), [result], flags).result


@rules.on("cuda_tile.ftoi")
def ftoi(op: ir.OpView, cx: Conversion) -> ir.Value:
    """cuda_tile.ftoi => nv_tileaa.fp_to_int {signedness}; saturating, NaN is 0"""
    flags = {"signedness": ir.StringAttr.get(text(op, "signedness"))}
    return cx.create("nv_tileaa.fp_to_int", list(op.operands), [_result(op, cx)], flags).result


@rules.on("cuda_tile.ftof")
def ftof(op: ir.OpView, cx: Conversion) -> ir.Value:
    """cuda_tile.ftof => nv_tileaa.fp_to_fp"""
    return cx.create(
        "nv_tileaa.fp_to_fp", list(op.operands), [_result(op, cx)], _rounding(op, cx)
    ).result


@rules.on("cuda_tile.bitcast")
def bitcast(op: ir.OpView, cx: Conversion) -> ir.Value:
    """cuda_tile.bitcast => nv_tileaa.bitcast"""
    return cx.create("nv_tileaa.bitcast", list(op.operands), [_result(op, cx)]).result


@rules.on("cuda_tile.exp", "cuda_tile.tanh")
def exp_or_tanh(op: ir.OpView, cx: Conversion) -> ir.Value:
    """exp => nv_tileaa.exp; rounding approx (f32) => nv_tileaa.exp {rounding_mode = "approx"}"""
    flags = {}
    if text(op, "rounding_mode", "full") == "approx":
        flags["rounding_mode"] = ir.StringAttr.get("approx")
    name = op.name.replace("cuda_tile", "nv_tileaa")
    return cx.create(name, list(op.operands), [_result(op, cx)], flags).result


@rules.on("cuda_tile.fpowi")
def fpowi(op: ir.OpView, cx: Conversion) -> ir.Value:
    """fpowi(x, n) => nv_tileaa.pow in f64, which has every n, rounded once to the type of x"""
    source, exponent = op.operands
    result = _result(op, cx)
    wide = _with_element(result, ir.F64Type.get())
    power = cx.create("arith.sitofp", [exponent], [wide]).result
    if source.type != wide:
        source = cx.create("nv_tileaa.fp_to_fp", [source], [wide]).result
    value = cx.create("nv_tileaa.pow", [source, power], [wide]).result
    if result == wide:
        return value
    return cx.create("nv_tileaa.fp_to_fp", [value], [result]).result


def _with_element(type_: ir.Type, kind: ir.Type) -> ir.Type:
    """The tile or scalar type `type_` with elements of `kind`."""
    if isinstance(type_, ir.RankedTensorType):
        return ir.RankedTensorType.get(type_.shape, kind)
    return kind

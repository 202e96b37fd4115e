"""Arithmetic on fragments: one vector operation per tile operation.

Round-to-nearest arithmetic is upstream `arith`, with no fast-math flags, so that nothing is
contracted. Other rounding modes, flush-to-zero and approximations are PTX intrinsics applied per
element; transcendental functions are libdevice's.
"""

from __future__ import annotations

from tile_tileaa.dialect.math import FUNCTIONS
from tile_tileas.dialect import layout_of

from tile_core.convert import KEEP, Replacement
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.ruleset import rules, text
from tile_nvptx.passes.tileas.thread.alike import COMPARISON, firsts
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.each import apply_each
from tile_nvptx.passes.tileas.thread.functions import computed
from tile_nvptx.passes.tileas.thread.quotients import divided
from tile_nvptx.passes.tileas.thread.rounding import narrowed
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, vector_of

_PLAIN = {
    "nv_tileaa.addf": "arith.addf",
    "nv_tileaa.subf": "arith.subf",
    "nv_tileaa.mulf": "arith.mulf",
    "nv_tileaa.divf": "arith.divf",
    "nv_tileaa.fma": "math.fma",
    "nv_tileaa.sqrt": "math.sqrt",
}
_ROUNDING_SUFFIX = {
    "nearest_even": "rn",
    "zero": "rz",
    "negative_inf": "rm",
    "positive_inf": "rp",
}
# operation -> stem of the NVVM intrinsics `llvm.nvvm.<stem>.<rounding>[.ftz].<type>`
_INTRINSIC_STEM = {
    "nv_tileaa.addf": "add",
    "nv_tileaa.mulf": "mul",
    "nv_tileaa.divf": "div",
    "nv_tileaa.fma": "fma",
    "nv_tileaa.sqrt": "sqrt",
}
_LETTER = {"f32": "f", "f64": "d"}
# operation -> libdevice function of f64; that of f32 ends in f
_LIBDEVICE = {
    "arith.remf": "__nv_fmod",
    "math.powf": "__nv_pow",
    **{f"math.{name}": f"__nv_{name}" for name in FUNCTIONS},
    **{f"nv_tileaa.{name}": f"__nv_{name}" for name in FUNCTIONS},
    **{f"nv_tileaa.{name}": f"__nv_{name}" for name in ("atan2", "exp2", "pow", "rsqrt")},
}


def _apply(
    op: ir.OpView, cx: Kernel, callee: str, operands: list[ir.Value], *, intrinsic: bool
) -> ir.Value:
    """`callee` on each element of the operands; half types go through f32."""
    result = cx.type(op.results[0].type)
    via = "f32" if str(element_of(result)) in ("f16", "bf16") else None
    return apply_each(cx, callee, operands, result, via=via, intrinsic=intrinsic)


@rules.on(*_PLAIN)
def rounded(op: ir.OpView, cx: Kernel) -> ir.Value:
    """nv_tileaa.addf => arith.addf; another rounding mode or ftz => the PTX instruction"""
    mode, ftz = text(op, "rounding_mode", "nearest_even"), "ftz" in op.attributes
    result = cx.type(op.results[0].type)
    if mode == "nearest_even" and not ftz:
        together = _together(op, cx)
        if together is not None:
            return together
        return cx.create(_PLAIN[op.name], list(op.operands), [result]).result
    return _special(op, cx, mode, ".ftz" if ftz else "")


def _together(op: ir.OpView, cx: Kernel) -> ir.Value | None:
    """What branches, of several elements at once, where they are enough."""
    if op.name == "nv_tileaa.divf":
        return divided(cx, *op.operands)
    return computed(cx, op.name.rpartition(".")[2], op.operands[0])


#: Approximations -> what has them, of f32 alone.
_APPROXIMATE = {"approx": ("nv_tileaa.divf", "nv_tileaa.sqrt"), "full": ("nv_tileaa.divf",)}


def _expect_mode(op: ir.OpView, mode: str) -> None:
    """Raise an error for a rounding mode that the operation lacks."""
    element = element_of(op.operands[0].type)
    approximate = op.name in _APPROXIMATE.get(mode, ()) and isinstance(element, ir.F32Type)
    if mode not in _ROUNDING_SUFFIX and not approximate:
        raise error_at(op, f"on elements of {element} does not round in mode '{mode}'")


def _special(op: ir.OpView, cx: Kernel, mode: str, ftz: str) -> ir.Value:
    _expect_mode(op, mode)
    operands, name = list(op.operands), op.name
    if name == "nv_tileaa.subf":  # a - b == a + (-b) in every rounding mode
        negated = cx.create("arith.negf", [operands[1]], [operands[1].type]).result
        operands, name = [operands[0], negated], "nv_tileaa.addf"
    element = str(element_of(operands[0].type))
    if element in ("f16", "bf16") and mode != "nearest_even":
        return _directed(cx, name, mode, operands)
    letter = _LETTER.get(element, "f")
    if mode == "full":  # of division alone; unlike its neighbours, its name has no type
        return _apply(op, cx, f"llvm.nvvm.div.full{ftz}", operands, intrinsic=True)
    if mode == "approx":
        stem = {"nv_tileaa.divf": "div.approx", "nv_tileaa.sqrt": "sqrt.approx"}[name]
        return _apply(op, cx, f"llvm.nvvm.{stem}{ftz}.{letter}", operands, intrinsic=True)
    stem = f"{_INTRINSIC_STEM[name]}.{_ROUNDING_SUFFIX[mode]}"
    return _apply(op, cx, f"llvm.nvvm.{stem}{ftz}.{letter}", operands, intrinsic=True)


def _directed(cx: Kernel, name: str, mode: str, operands: list[ir.Value]) -> ir.Value:
    """f16 and bf16 in f32: rounding twice in one direction is rounding once."""
    b, kind = Builder(cx), element_of(operands[0].type)
    scalar = not isinstance(operands[0].type, ir.VectorType)
    if scalar:
        operands = [b.splat(operand, 1) for operand in operands]
    count = count_of(operands[0].type)
    f32 = vector_of(count, ir.F32Type.get())
    wide = [cx.create("arith.extf", [operand], [f32]).result for operand in operands]
    callee = f"llvm.nvvm.{_INTRINSIC_STEM[name]}.{_ROUNDING_SUFFIX[mode]}.f"
    found = apply_each(cx, callee, wide, f32, intrinsic=True)
    narrow = narrowed(cx, found, kind, mode)
    return b.extract(narrow, 0) if scalar else narrow


@rules.on(*_LIBDEVICE)
def libdevice(op: ir.OpView, cx: Kernel) -> ir.Value:
    """nv_tileaa.exp => __nv_expf per element, and so on; approx, ftz => the PTX instruction"""
    mode = text(op, "rounding_mode", "full")
    if mode not in ("full", "approx"):
        raise error_at(op, f"does not round in mode '{mode}'")
    if mode == "approx" or "ftz" in op.attributes:
        return _approximate(op, cx)
    together = _together(op, cx)
    if together is not None:
        return together
    element = str(element_of(op.operands[0].type))
    suffix = "" if element == "f64" else "f"
    return _apply(op, cx, _LIBDEVICE[op.name] + suffix, list(op.operands), intrinsic=False)


def _approximate(op: ir.OpView, cx: Kernel) -> ir.Value:
    """f32 only: ex2.approx, rsqrt.approx, tanh.approx; exp as ex2 of x * log2(e)"""
    ftz, operands = ".ftz" if "ftz" in op.attributes else "", list(op.operands)
    if op.name == "nv_tileaa.exp":
        type_ = operands[0].type
        factor = ir.FloatAttr.get(element_of(type_), 1.4426950408889634)
        if isinstance(type_, ir.VectorType):
            value: ir.Attribute = ir.DenseElementsAttr.get_splat(type_, factor)
        else:
            value = factor
        scale = cx.create("arith.constant", [], [type_], {"value": value}).result
        operands = [cx.create("arith.mulf", [operands[0], scale], [type_]).result]
    callee = {
        "nv_tileaa.exp": f"llvm.nvvm.ex2.approx{ftz}.f",
        "nv_tileaa.exp2": f"llvm.nvvm.ex2.approx{ftz}.f",
        "nv_tileaa.rsqrt": f"llvm.nvvm.rsqrt.approx{ftz}.f",
        "nv_tileaa.tanh": "llvm.nvvm.tanh.approx.f32",
    }.get(op.name)
    if callee is None:
        raise error_at(op, "has no approximate form")
    return _apply(op, cx, callee, operands, intrinsic=True)


#: `mlir:arith-expand` of LLVM 22 makes comparisons of these, which know no sign of zero.
_EXTREMA = {
    "arith.maxnumf": "llvm.intr.maxnum",
    "arith.minnumf": "llvm.intr.minnum",
    "arith.maximumf": "llvm.intr.maximum",
    "arith.minimumf": "llvm.intr.minimum",
}


@rules.on(*_EXTREMA)
def extremum(op: ir.OpView, cx: Kernel) -> Replacement:
    """=> llvm.intr.maxnum, ..; f64 maximum is built from the number form and a NaN test"""
    element = element_of(op.operands[0].type)
    if isinstance(element, ir.F64Type) and op.name.endswith("imumf"):
        return _nan_aware(op, cx)
    return _extremum(op.name, list(op.operands), cx, op)


def _extremum(name: str, operands: list[ir.Value], cx: Kernel, op: ir.OpView) -> ir.Value:
    attributes = {}
    if "fastmath" in op.attributes:
        text = str(op.attributes["fastmath"]).replace("#arith.", "#llvm.")
        attributes["fastmathFlags"] = ir.Attribute.parse(text)
    return cx.create(_EXTREMA[name], operands, [operands[0].type], attributes).result


@rules.on("nv_tileaa.maxf", "nv_tileaa.minf")
def flushed_extremum(op: ir.OpView, cx: Kernel) -> ir.Value:
    """nv_tileaa.maxf {ftz, nan} => max.ftz.NaN.f32"""
    stem = {"nv_tileaa.maxf": "fmax", "nv_tileaa.minf": "fmin"}[op.name]
    flags = "".join(f".{flag}" for flag in ("ftz", "nan") if flag in op.attributes)
    return _apply(op, cx, f"llvm.nvvm.{stem}{flags}.f", list(op.operands), intrinsic=True)


def _nan_aware(op: ir.OpView, cx: Kernel) -> ir.Value:
    left, right = op.operands
    name = "arith.maxnumf" if "max" in op.name else "arith.minnumf"
    best = _extremum(name, [left, right], cx, op)
    is_vector = isinstance(left.type, ir.VectorType)
    i1 = ir.IntegerType.get_signless(1)
    flags = vector_of(count_of(left.type), i1) if is_vector else i1
    unordered = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 14)}
    unclear = cx.create("arith.cmpf", [left, right], [flags], unordered).result
    total = cx.create("arith.addf", [left, right], [left.type]).result  # NaN if either is
    return cx.create("arith.select", [unclear, total, best], [left.type]).result


@rules.on(COMPARISON)
def compare_integers(op: ir.OpView, cx: Kernel) -> Replacement:
    """cmpi stays; of neighbours that have one answer, that of the first is taken for all"""
    result = op.results[0]
    sizes, layout = cx.state.alike.pop(result, None), layout_of(result.type)
    result.set_type(cx.type(result.type))
    if sizes is None or layout is None:
        return KEEP
    again = {"predicate": op.attributes["predicate"]}
    flags = cx.create(COMPARISON, list(op.operands), [result.type], again).result
    return Builder(cx).shuffle(flags, firsts(layout, sizes))


@rules.on("nv_tileaa.bitcast")
def bitcast(op: ir.OpView, cx: Kernel) -> ir.Value:
    """bitcast => llvm.bitcast; pointers are opaque and stay"""
    return Builder(cx).bitcast(op.operands[0], cx.type(op.results[0].type))


@rules.on("nv_tileaa.mulhiui")
def mulhiui(op: ir.OpView, cx: Kernel) -> ir.Value:
    """mulhiui => the high result of arith.mului_extended"""
    type_ = cx.type(op.results[0].type)
    return cx.create("arith.mului_extended", list(op.operands), [type_, type_]).results[1]


@rules.on("nv_tileaa.int_to_ptr")
def int_to_ptr(op: ir.OpView, cx: Kernel) -> ir.Value:
    """int_to_ptr => llvm.inttoptr"""
    return cx.create("llvm.inttoptr", [op.operands[0]], [cx.type(op.results[0].type)]).result


@rules.on("nv_tileaa.ptr_to_int")
def ptr_to_int(op: ir.OpView, cx: Kernel) -> ir.Value:
    """ptr_to_int => llvm.ptrtoint"""
    return cx.create("llvm.ptrtoint", [op.operands[0]], [cx.type(op.results[0].type)]).result


@rules.on("nv_tileaa.assume")
def assume(op: ir.OpView, cx: Kernel) -> ir.Value:
    """assume(x) => x; the analyses have used it"""
    return op.operands[0]

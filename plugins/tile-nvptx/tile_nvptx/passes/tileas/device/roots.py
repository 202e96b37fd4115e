"""Square roots of several f32 numbers at once, as MLIR text (see `helpers`, `together`)."""

from __future__ import annotations

from tile_nvptx.passes.tileas.device.together import each, ending, f32s, i32s, within

#: Words of numbers from 2**-101 to the largest finite one: between them nothing on the way leaves
#: f32's normal numbers.
LEAST, END = 0x0D000000, 0x7F800000


def roots(count: int) -> tuple[str, str]:
    """Name and text of `(vector<count x f32> x) -> vector`: square roots, rounded to nearest even.

    g = x y and h = y / 2, where y is `rsqrt.approx` of x, and then g + (x - g g) h (Markstein,
    "Computation of elementary functions on the IBM RISC System/6000 processor", 1990): the
    instructions that ptxas makes of `sqrt.rn.f32`, between the same bounds. All are computed one by
    one where one of them lies beyond.
    """
    name, vector, words = f"__tile_roots_v{count}", f32s(count), i32s(count)
    three = f"({vector}, {vector}, {vector}) -> {vector}"
    reciprocal = 'llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.ftz.f"(%x) : (f32) -> f32'
    quick = f"""  %half = llvm.mlir.constant(dense<0.5> : {vector}) : {vector}
{each("x", "y", count, reciprocal)}
  %g = llvm.fmul %x, %y : {vector}
  %h = llvm.fmul %y, %half : {vector}
  %minus = llvm.fneg %g : {vector}
  %left = llvm.intr.fma(%minus, %g, %x) : {three}
  %quick = llvm.intr.fma(%left, %h, %g) : {three}"""
    exact = f"  %exact = llvm.intr.sqrt(%x) : ({vector}) -> {vector}"
    text = f"""
llvm.func internal @{name}(%x: {vector}) -> {vector} attributes {{always_inline}} {{
  %word = llvm.bitcast %x : {vector} to {words}
{within("word", count, LEAST, END)}
{quick}
{ending("%within", [], [exact], count)}
}}"""
    return name, text

"""Products as small kernels: operands of every type and order, with NumPy's answer."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np

from support.tiles import Kernel, tile

DTYPES = {
    "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype(np.float32),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn), "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "i8": np.dtype(np.int8), "i32": np.dtype(np.int32), "tf32": np.dtype(np.float32),
}  # fmt: skip
Size = tuple[int, int, int]
Types = tuple[str, str, str]
F16, BF16, TF32 = ("f16", "f16", "f32"), ("bf16", "bf16", "f32"), ("tf32", "tf32", "f32")
HALF, BYTES, INT8 = ("f16",) * 3, ("f8E4M3FN", "f8E5M2", "f32"), ("i8", "i8", "i32")


def operand(
    kernel: Kernel, name: str, shape: tuple[int, int], element: str, *, turned: bool
) -> str:
    """A new parameter, transposed in memory if `turned`; the value's name."""
    stored = "f32" if element == "tf32" else element
    there = shape[::-1] if turned else shape
    kernel.load(f"%{name}", there, stored)
    value = f"%{name}"
    if turned:
        kernel.op(
            f'{value}_t = "nv_tileaa.permute"({value}) {{permutation = array<i32: 1, 0>}} : '
            f"({tile(there, stored)}) -> {tile(shape, stored)}"
        )
        value += "_t"
    if element != stored:
        kernel.op(
            f'{value}_n = "nv_tileaa.fp_to_fp"({value}) : ({tile(shape, stored)}) -> '
            f"{tile(shape, element)}"
        )
        value += "_n"
    return value


def dot(name: str, values: tuple[str, str, str], size: Size, types: Types, flags: str = "") -> str:
    m, n, k = size
    if types[0] == "i8":
        flags += ', signedness_a = "signed", signedness_b = "unsigned"'
    shapes = (m, k), (k, n), (m, n)
    kinds = [tile(shape, element) for shape, element in zip(shapes, types, strict=True)]
    return (
        f'{name} = "nv_tileaa.dot"({", ".join(values)}) '
        f"{{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>{flags}}} : "
        f"({', '.join(kinds)}) -> {kinds[2]}"
    )


def product_kernel(
    size: Size,
    types: Types,
    turned: tuple[bool, bool] = (False, False),
    warps: int = 4,
    flags: str = "",
) -> Kernel:
    """D = A B + C; operands that are turned lie transposed in memory."""
    m, n, k = size
    kernel = Kernel(warps)
    a = operand(kernel, "a", (m, k), types[0], turned=turned[0])
    b = operand(kernel, "b", (k, n), types[1], turned=turned[1])
    kernel.load("%c", (m, n), types[2])
    kernel.op(dot("%d", (a, b, "%c"), size, types, flags))
    kernel.store("%d", (m, n), types[2])
    return kernel


def inputs(size: Size, types: Types, turned: tuple[bool, bool]) -> list[np.ndarray]:
    """A and B as they lie in memory, C and D: small integers, whose sums are exact."""
    m, n, k = size
    draw = np.random.default_rng(m + n + k)
    a = draw.integers(-4, 5, (m, k)).astype(DTYPES[types[0]])
    b = draw.integers(0 if types[1] == "i8" else -4, 5, (k, n)).astype(DTYPES[types[1]])
    c = draw.integers(-9, 10, (m, n)).astype(DTYPES[types[2]])
    found = [x.T.copy() if over else x for x, over in zip((a, b), turned, strict=True)]
    return [*found, c, np.zeros_like(c)]


def wanted(arrays: list[np.ndarray], turned: tuple[bool, bool]) -> np.ndarray:
    a, b, c = (x.astype(np.float64) for x in arrays[:3])
    return (a.T if turned[0] else a) @ (b.T if turned[1] else b) + c


def chained_kernel(rows: int = 64, warps: int = 4, turned: bool = False) -> Kernel:
    """O = f16(A B) V + A B, as attention without its softmax; of so many rows, K and N of 64.
    `turned`: f16(A B) and its product with V are made in three turns of a loop.
    """
    size, kernel = (rows, 64, 64), Kernel(warps)
    kernel.load("%a", (rows, 64), "f16")
    for name in "bv":
        kernel.load(f"%{name}", (64, 64), "f16")
    acc, half = tile((rows, 64), "f32"), tile((rows, 64), "f16")
    kernel.op(f"%init = arith.constant dense<0.0> : {acc}")
    kernel.op(dot("%s", ("%a", "%b", "%init"), size, F16))
    if turned:
        for name, value in (("one", 1), ("three", 3)):
            kernel.op(f"%{name} = arith.constant {value} : i32")
        kernel.op(
            f"%o = scf.for %i = %zero to %three step %one iter_args(%acc = %s) -> ({acc}) : i32 {{"
        )
        kernel.op(f"%n = arith.negf %acc : {acc}")
    into, value = ("%d", "%n") if turned else ("%o", "%s")
    kernel.op(f'%p = "nv_tileaa.fp_to_fp"({value}) : ({acc}) -> {half}')
    kernel.op(dot(into, ("%p", "%v", "%s"), size, F16))
    if turned:
        kernel.op(f"scf.yield %d : {acc}")
        kernel.op("}")
    kernel.store("%o", (rows, 64), "f32")
    return kernel


def loop_kernel(
    size: Size = (64, 64, 64), types: Types = F16, turned: tuple[bool, bool] = (False, False)
) -> Kernel:
    """Three turns of acc = A B + acc, of tiles made before the loop."""
    (m, n, k), kernel = size, Kernel(4)
    a = operand(kernel, "a", (m, k), types[0], turned=turned[0])
    b = operand(kernel, "b", (k, n), types[1], turned=turned[1])
    acc = tile((m, n), types[2])
    zero = "0" if types[2].startswith("i") else "0.0"
    kernel.op(f"%init = arith.constant dense<{zero}> : {acc}")
    for name, value in (("one", 1), ("three", 3)):
        kernel.op(f"%{name} = arith.constant {value} : i32")
    kernel.op(
        f"%r = scf.for %i = %zero to %three step %one iter_args(%acc = %init) -> ({acc}) : i32 {{"
    )
    kernel.op(dot("%d", (a, b, "%acc"), size, types))
    kernel.op(f"scf.yield %d : {acc}")
    kernel.op("}")
    kernel.store("%r", (m, n), types[2])
    return kernel


def mutants(text: str, instruction: str) -> list[str]:
    """`text` less one of these instructions, for each of them."""
    places = [match.span() for match in re.finditer(rf"{instruction}[^;]*;", text)]
    return [text[:start] + text[end:] for start, end in places]

"""Elementwise arithmetic of nv_tileaa, compiled and run in the simulator, against NumPy."""

from itertools import permutations

import numpy as np
import pytest
from support.tiles import DTYPES, Kernel, tile

SHAPE = (16, 32)
COUNT = 512
EDGES = {
    "f": [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 6e-8, 3e4, -0.5],
    "i": [0, 1, -1, 2, 7, 31],
}


def values(element: str, seed: int = 0) -> np.ndarray:
    """Random numbers of a type with its edge values mixed in."""
    rng = np.random.default_rng(seed)
    dtype = DTYPES[element]
    if element == "i1":
        return rng.integers(0, 2, COUNT).astype(bool)
    if element.startswith("i"):
        info = np.iinfo(dtype)
        found = rng.integers(info.min, info.max, COUNT, dtype, endpoint=True)
        edges = [*EDGES["i"], info.min, info.max]
    else:
        found = (rng.standard_normal(COUNT) * 4).astype(dtype)
        edges = EDGES["f"]
    places = rng.permutation(COUNT)[: 8 * len(edges)]
    found[places] = np.resize(np.array(edges).astype(dtype), len(places))
    return found


def run(op: str, sources: list[str], result: str, args: list[np.ndarray], **settings) -> np.ndarray:
    """`op` (with %0, %1, ... for operands) on tiles of SHAPE."""
    kernel = Kernel()
    for at, element in enumerate(sources):
        kernel.load(f"%x{at}", SHAPE, element)
    operands = ", ".join(f"%x{at}" for at in range(len(sources)))
    types = ", ".join(tile(SHAPE, element) for element in sources)
    name, _, attributes = op.partition(" ")
    kernel.op(f'%y = "{name}"({operands}) {attributes} : ({types}) -> {tile(SHAPE, result)}')
    kernel.store("%y", SHAPE, result)
    out = np.zeros(COUNT, DTYPES[result])
    kernel.run(*args, out, **settings)
    return out


def same(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal bits, any NaN for a NaN."""
    nan = np.isnan(expected.astype(np.float64)) if expected.dtype.kind in "fV" else None
    if nan is None:
        np.testing.assert_array_equal(found, expected)
        return
    assert np.isnan(found.astype(np.float64))[nan].all()
    bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[expected.dtype.itemsize]
    np.testing.assert_array_equal(found.view(bits)[~nan], expected.view(bits)[~nan])


FLOATS = ("f16", "bf16", "f32", "f64")
EXACT = {
    "nv_tileaa.addf": np.add,
    "nv_tileaa.subf": np.subtract,
    "nv_tileaa.mulf": np.multiply,
    "nv_tileaa.divf": np.divide,
}


@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("name", EXACT)
def test_float_arithmetic_rounds_once(name, element):
    a, b = values(element, 1), values(element, 2)
    with np.errstate(all="ignore"):
        wide = np.float64 if element != "f64" else np.longdouble
        expected = EXACT[name](a.astype(wide), b.astype(wide)).astype(DTYPES[element])
        if element == "f64":
            expected = EXACT[name](a, b)
    same(run(name, [element] * 2, element, [a, b]), expected)


@pytest.mark.parametrize("element", FLOATS)
def test_sqrt_is_exact(element):
    a = np.abs(values(element, 3))
    with np.errstate(all="ignore"):
        expected = np.sqrt(a.astype(np.float64)).astype(DTYPES[element])
    same(run("nv_tileaa.sqrt", [element], element, [a]), expected)


def test_fma_rounds_once():
    a, b, c = (values("f32", seed) for seed in (4, 5, 6))
    with np.errstate(all="ignore"):
        exact = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    found = run("nv_tileaa.fma", ["f32"] * 3, "f32", [a, b, c])
    finite = np.isfinite(exact)
    # The product is exact in f64; its sum is rounded there first, at most half a unit apart.
    np.testing.assert_allclose(found[finite], exact[finite], rtol=6.1e-8)
    assert np.isnan(found[np.isnan(exact)]).all()


@pytest.mark.parametrize(
    ("mode", "direction"), [("zero", 0), ("negative_inf", -1), ("positive_inf", 1)]
)
def test_rounding_modes(mode, direction):
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal(COUNT).astype(np.float32) for _ in range(2))
    exact = a.astype(np.float64) * b.astype(np.float64)
    nearest = exact.astype(np.float32)
    towards = {0: np.zeros_like(nearest), -1: np.float32(-np.inf), 1: np.float32(np.inf)}[direction]
    beyond = (
        np.abs(nearest.astype(np.float64)) > np.abs(exact)
        if direction == 0
        else (nearest.astype(np.float64) - exact) * direction < 0
    )
    expected = np.where(beyond, np.nextafter(nearest, towards), nearest)
    op = f'nv_tileaa.mulf {{rounding_mode = "{mode}"}}'
    same(run(op, ["f32"] * 2, "f32", [a, b]), expected)


def test_flush_to_zero():
    a = np.full(COUNT, 1e-30, np.float32)
    b = np.full(COUNT, -1e-10, np.float32)
    found = run("nv_tileaa.mulf {ftz}", ["f32"] * 2, "f32", [a, b])
    same(found, np.full(COUNT, -0.0, np.float32))
    kept = run("nv_tileaa.mulf", ["f32"] * 2, "f32", [a, b])
    assert (kept != 0).all()


@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("name", ["addi", "subi", "muli", "andi", "ori", "xori"])
def test_integer_arithmetic_wraps(name, element):
    function = {
        "addi": np.add, "subi": np.subtract, "muli": np.multiply,
        "andi": np.bitwise_and, "ori": np.bitwise_or, "xori": np.bitwise_xor,
    }[name]  # fmt: skip
    a, b = values(element, 8), values(element, 9)
    with np.errstate(all="ignore"):
        expected = function(a, b)
    same(run(f"arith.{name}", [element] * 2, element, [a, b]), expected)


@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64"])
def test_high_half_of_the_product(element):
    a, b = values(element, 10), values(element, 11)
    width = a.dtype.itemsize * 8
    unsigned = [[int(v) % (1 << width) for v in x] for x in (a, b)]
    expected = np.array([(x * y) >> width for x, y in zip(*unsigned, strict=True)], object)
    found = run("nv_tileaa.mulhiui", [element] * 2, element, [a, b])
    assert [int(v) % (1 << width) for v in found] == list(expected)


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", ["maxnumf", "minnumf", "maximumf", "minimumf"])
def test_extrema(name, element):
    a, b = values(element, 12), values(element, 13)
    wide = [x.astype(np.float64) for x in (a, b)]
    with np.errstate(all="ignore"):
        best = (np.fmax if "max" in name else np.fmin)(*wide)
    if name.endswith("imumf"):
        best = np.where(np.isnan(wide[0]) | np.isnan(wide[1]), np.nan, best)
    zeros = (wide[0] == 0) & (wide[1] == 0)  # +0 is above -0
    signs = np.signbit(wide[0]) & np.signbit(wide[1])
    if "min" in name:
        signs = np.signbit(wide[0]) | np.signbit(wide[1])
    best = np.where(zeros, np.where(signs, -0.0, 0.0), best)
    same(run(f"arith.{name}", [element] * 2, element, [a, b]), best.astype(DTYPES[element]))


@pytest.mark.parametrize(("source", "target"), list(permutations(FLOATS, 2)))
def test_float_conversions(source, target):
    a = values(source, 14)
    with np.errstate(all="ignore"):
        expected = a.astype(np.float64).astype(DTYPES[target])
    same(run("nv_tileaa.fp_to_fp", [source], target, [a]), expected)


@pytest.mark.parametrize("target", ["i8", "i32", "i64"])
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("signedness", ["signed", "unsigned"])
def test_float_to_integer_saturates(source, target, signedness):
    a = values(source, 15)
    with np.errstate(over="ignore"):  # f16 has no 1e9
        edges = np.array([1e9, -1e9, 300.7, -300.7, 127.9, -128.9, 255.9, np.nan])
        a[:8] = edges.astype(a.dtype)
    width = np.dtype(DTYPES[target]).itemsize * 8
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    if signedness == "unsigned":
        low, high = 0, (1 << width) - 1
    expected = []
    for value in a.astype(np.float64):
        if np.isnan(value):
            number = 0
        elif np.isinf(value):
            number = high if value > 0 else low
        else:
            number = min(max(int(value), low), high)
        expected.append(number - (1 << width) if number >= 1 << (width - 1) else number)
    op = f'nv_tileaa.fp_to_int {{signedness = "{signedness}"}}'
    found = run(op, [source], target, [a])
    np.testing.assert_array_equal(found, np.array(expected, dtype=DTYPES[target]))


LIBRARY = {
    "math.exp": np.exp,
    "nv_tileaa.exp": np.exp,
    "nv_tileaa.exp2": np.exp2,
    "nv_tileaa.log": lambda x: np.log(np.abs(x)),
    "nv_tileaa.tanh": np.tanh,
    "nv_tileaa.sin": np.sin,
    "math.cos": np.cos,
}


@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("name", LIBRARY)
def test_library_functions(name, element):
    a = np.linspace(-3.5, 3.5, COUNT).astype(DTYPES[element])
    if name == "nv_tileaa.log":
        a = np.abs(a) + a.dtype.type(0.25)
    expected = LIBRARY[name](a.astype(np.float64))
    found = run(name, [element], element, [a]).astype(np.float64)
    # Documented errors of libdevice: 2 ulp in f32, 2 in f64; half types are rounded from f32.
    ulp = {"f16": 2**-10, "bf16": 2**-7, "f32": 2**-22, "f64": 2**-51}[element]
    np.testing.assert_allclose(found, expected, rtol=2 * ulp, atol=ulp * 2**-3)


def test_pow():
    a, b = (np.linspace(*ends, COUNT).astype(np.float32) for ends in ((0.01, 9), (-5, 5)))
    found = run("nv_tileaa.pow", ["f32"] * 2, "f32", [a, b])
    np.testing.assert_allclose(found, a.astype(np.float64) ** b, rtol=2**-19)


@pytest.mark.parametrize(
    ("op", "text"),
    [
        ('nv_tileaa.exp {rounding_mode = "zero"}', "does not round in mode 'zero'"),
        ('nv_tileaa.sin {rounding_mode = "approx"}', "has no approximate form"),
    ],
)
def test_a_function_that_is_not_there_is_named(op, text):
    from tile_core.diagnostics import CompileError

    with pytest.raises(CompileError, match=text):
        run(op, ["f32"], "f32", [values("f32")])


def test_rsqrt():
    a = np.linspace(0.01, 100, COUNT).astype(np.float32)
    found = run("nv_tileaa.rsqrt", ["f32"], "f32", [a])
    np.testing.assert_allclose(found, 1 / np.sqrt(a.astype(np.float64)), rtol=2**-22)


@pytest.mark.parametrize("flag", ["", ", ftz"])
@pytest.mark.parametrize("mode", ["approx", "full"])
def test_approximate_division(mode, flag):
    a, b = (np.linspace(1, 9, COUNT).astype(np.float32) for _ in range(2))
    op = f'nv_tileaa.divf {{rounding_mode = "{mode}"{flag}}}'
    # PTX ISA, div: 2 ulp, where the divisor is neither tiny nor huge.
    expected = a[::-1].astype(np.float64) / b
    np.testing.assert_allclose(
        run(op, ["f32"] * 2, "f32", [a[::-1].copy(), b]), expected, rtol=2**-22
    )


@pytest.mark.parametrize(
    ("op", "element", "mode"),
    [("addf", "f32", "nearest_away"), ("divf", "f64", "approx"), ("sqrt", "f32", "full")],
)
def test_a_rounding_mode_that_is_not_there_is_named(op, element, mode):
    from tile_core.diagnostics import CompileError

    count = 1 if op == "sqrt" else 2
    with pytest.raises(CompileError, match=f"of {element} does not round in mode '{mode}'"):
        run(f'nv_tileaa.{op} {{rounding_mode = "{mode}"}}', [element] * count, element,
            [values(element)] * count)  # fmt: skip

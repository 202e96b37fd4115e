"""Programs under the option `ftz`, and without it, against the evaluator told the same.

Everything that touches f32 has subnormal numbers among its operands and results.
"""

import numpy as np
import pytest
import tile_cudatile
from support.programs import Program, number
from tile_cudatile import types as t
from tile_cudatile.evaluator.formats import dtype_of
from tile_cudatile.rules.arith import _MODES

SHAPE = (128,)
F32 = t.Tile(SHAPE, t.F32)
TARGETS = ("sm_80", "sm_90", "sm_100", "sm_120")
FTZ = pytest.mark.parametrize("ftz", [False, True], ids=["plain", "ftz"])
EXACT_MODES = ("nearest_even", "zero", "negative_inf", "positive_inf")


def subnormals(seed: int, exponents: int = 3) -> np.ndarray:
    """Numbers around the smallest normal one, of both signs, and the special ones."""
    rng = np.random.default_rng(seed)
    fractions = rng.integers(0, 1 << 23, SHAPE[0]).astype(np.uint32)
    scales = rng.integers(0, exponents, SHAPE[0]).astype(np.uint32)
    signs = rng.integers(0, 2, SHAPE[0]).astype(np.uint32)
    found = (signs << 31 | scales << 23 | fractions).view(np.float32)
    found[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 2.0**-126, -(2.0**-149), 1.0]
    return rng.permutation(found)


def operands(name: str, seed: int) -> list[np.ndarray]:
    """Operands of an operation, with results around the smallest normal number."""
    a, b, c = (subnormals(seed + at) for at in range(3))
    ones = np.random.default_rng(seed).uniform(0.25, 4, SHAPE).astype(np.float32)
    if name in ("mulf", "divf"):
        return [a, np.where(np.arange(SHAPE[0]) % 3, ones, b).astype(np.float32)]
    if name == "fma":
        return [a, ones, c]
    if name == "sqrt":
        return [np.abs(a)]
    return [a, b]


@FTZ
@pytest.mark.parametrize("target", TARGETS)
def test_arithmetic_in_every_mode(target: str, ftz: bool) -> None:
    """Sums, products, quotients and roots, as the option says and as the operation says."""
    for name in ("addf", "subf", "mulf", "divf", "fma", "sqrt"):
        p, data = Program(), operands(name, seed=7)
        inputs = [p.load(SHAPE, t.F32) for _ in data]
        outputs = 0
        for mode in set(_MODES[name]) & set(EXACT_MODES):
            for flag in ({}, {"flush_to_zero": True}):
                result = p.emit(name, inputs, F32, rounding_mode=mode, **flag)
                p.store(result, SHAPE, t.F32)
                outputs += 1
        p.agrees(*data, *np.zeros((outputs, *SHAPE), np.float32), target=target, ftz=ftz)


@FTZ
@pytest.mark.parametrize("target", TARGETS)
def test_order_signs_and_whole_numbers(target: str, ftz: bool) -> None:
    """Those of them that the language lets flush do; the others keep subnormals."""
    p, data = Program(), [subnormals(1), subnormals(2)]
    a, b = (p.load(SHAPE, t.F32) for _ in data)
    found = [
        p.emit(name, [a, b], F32, **flags)
        for name in ("maxf", "minf")
        for flags in ({}, {"propagate_nan": True})
    ]
    found += [p.emit(name, [a], F32) for name in ("absf", "negf", "floor", "ceil")]
    found.append(p.emit("remf", [a, b], F32))
    flag = p.emit(
        "cmpf", [a, b], t.Tile(SHAPE, t.I1),
        comparison_predicate="less_than", comparison_ordering="ordered",
    )  # fmt: skip
    found.append(p.emit("select", [flag, a, b], F32))
    for value in found:
        p.store(value, SHAPE, t.F32)
    p.agrees(*data, *np.zeros((len(found), *SHAPE), np.float32), target=target, ftz=ftz)


SMALL = (t.F8E4M3FN, t.F8E5M2, t.F8E8M0FNU, t.F8E5M3FNU)


@FTZ
@pytest.mark.parametrize("target", TARGETS)
def test_every_code_of_a_small_float_is_its_number(target: str, ftz: bool) -> None:
    """Decoding goes through no subnormal of f32 that could be lost."""
    shape, p = (256,), Program()
    for kind in SMALL:
        value = p.emit(
            "ftof", [p.load(shape, kind)], t.Tile(shape, t.F32), rounding_mode="nearest_even"
        )
        p.store(value, shape, t.F32)
    codes = np.arange(256, dtype=np.uint8)
    data = [part for kind in SMALL for part in (codes.view(dtype_of(kind)), np.zeros(256, "f4"))]
    p.agrees(*data, target=target, ftz=ftz)


@FTZ
@pytest.mark.parametrize("target", TARGETS)
def test_every_code_of_four_bits_is_its_number(target: str, ftz: bool) -> None:
    """FP4 comes from bytes: two codes each."""
    shape, p = (256,), Program()
    pairs = p.emit("unpack", [p.load((128,), t.I8)], t.Tile(shape, t.F4E2M1FN))
    value = p.emit("ftof", [pairs], t.Tile(shape, t.F32), rounding_mode="nearest_even")
    p.store(value, shape, t.F32)
    data = np.random.default_rng(3).permutation(np.arange(128)).astype(np.int8)
    p.agrees(data, np.zeros(256, np.float32), target=target, ftz=ftz)


@FTZ
@pytest.mark.parametrize("target", TARGETS)
def test_conversions_keep_subnormals(target: str, ftz: bool) -> None:
    """To and from formats that hold numbers below the smallest normal f32."""
    p, data = Program(), subnormals(5, exponents=40)
    x = p.load(SHAPE, t.F32)
    kinds = (t.F16, t.BF16, t.F64, t.TF32, *SMALL[:2])
    for kind in kinds:
        there = p.emit("ftof", [x], t.Tile(SHAPE, kind), rounding_mode="nearest_even")
        back = p.emit("ftof", [there], F32, rounding_mode="nearest_even")
        p.store(back, SHAPE, t.F32)
    with np.errstate(all="ignore"):
        p.agrees(data, *np.zeros((len(kinds), *SHAPE), np.float32), target=target, ftz=ftz)


@FTZ
@pytest.mark.parametrize("target", ["sm_80", "sm_100"])
@pytest.mark.parametrize("name", ["addf", "mulf", "maxf"])
def test_reductions_and_scans(name: str, target: str, ftz: bool) -> None:
    """What combines the elements flushes as it would elsewhere."""
    p, scalar = Program(), t.Tile((), t.F32)
    mode = {} if name == "maxf" else {"rounding_mode": "nearest_even"}
    start = {"addf": 0.0, "mulf": 1.0, "maxf": -np.inf}[name]
    for op in ("reduce", "scan"):
        shape = (16, 8) if op == "reduce" else (8, 16)
        axis = 0 if op == "reduce" else 1
        body = p.region([scalar, scalar], lambda a, b: [p.emit(name, [a, b], scalar, **mode)])
        result = t.Tile((8,) if op == "reduce" else shape, t.F32)
        more = {"reverse": False} if op == "scan" else {}
        value = p.emit(
            op, [(p.load(shape, t.F32),)], result, dim=axis,
            identities=(number(t.F32, start),), regions=(body,), **more,
        )  # fmt: skip
        p.store(value, result.shape, t.F32)
    # Powers of two around the smallest normal number: sums are exact in any order.
    data = np.ldexp(np.float32(1), np.random.default_rng(2).integers(-132, -124, 128))
    if name == "mulf":
        data = np.where(np.arange(128) % 16 == 3, data, 1).astype(np.float32)
    data = data.astype(np.float32)
    if name == "addf" and ftz:
        data = np.where(np.abs(data) < 2.0**-126, data, 0).astype(np.float32)
    # Whether an element that is alone is combined with the identity is open.
    data[:8] = data[::16] = 2.0**-120 if name != "mulf" else 1.0
    rows, columns = data.reshape(16, 8), data.reshape(8, 16)
    p.agrees(rows, np.zeros(8, "f4"), columns, np.zeros((8, 16), "f4"), target=target, ftz=ftz)


FUNCTIONS = ("exp", "exp2", "log", "log2", "sin", "cos", "tan", "sinh", "cosh", "tanh", "rsqrt")


@FTZ
@pytest.mark.parametrize("target", ["sm_80", "sm_120"])
def test_functions(target: str, ftz: bool) -> None:
    """Functions that cannot flush in the language do not; those that can, do."""
    p, data = Program(), subnormals(9, exponents=4)
    data[::5] = np.random.default_rng(4).uniform(-100, 100, SHAPE[0])[::5]
    x = p.load(SHAPE, t.F32)
    for name in FUNCTIONS:
        more = {"rounding_mode": "full"} if name in ("exp", "tanh") else {}
        p.store(p.emit(name, [x], F32, **more), SHAPE, t.F32)
    found, wanted = (
        [data.copy(), *np.zeros((len(FUNCTIONS), *SHAPE), np.float32)] for _ in range(2)
    )
    tile_cudatile.evaluate(p.module(), "k", (1,), wanted, ftz=ftz)
    p.run(*found, target=target, ftz=ftz)
    for name, left, right in zip(FUNCTIONS, found[1:], wanted[1:], strict=True):
        np.testing.assert_allclose(left, right, rtol=2e-5, atol=0, err_msg=name)

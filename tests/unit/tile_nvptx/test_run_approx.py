"""The option `approx`: divisions and roots of f32 that round to nearest even may err by 2 ulp."""

import numpy as np
import pytest
import tile_cudatile
from support.programs import Program
from tile_cudatile import types as t

SHAPE = (128,)
TARGETS = ("sm_80", "sm_90", "sm_100", "sm_120")
#: Operation -> how the PTX says it: to nearest even, and under the option.
FORMS = {"divf": ("div.rn.f32", "div.full.f32"), "sqrt": ("sqrt.rn.f32", "sqrt.approx.f32")}


def _program(name: str, element: t.Scalar, mode: str = "nearest_even") -> Program:
    p, count = Program(), 2 if name == "divf" else 1
    inputs = [p.load(SHAPE, element) for _ in range(count)]
    p.store(p.emit(name, inputs, t.Tile(SHAPE, element), rounding_mode=mode), SHAPE, element)
    return p


def _operands(name: str) -> list[np.ndarray]:
    rng, special = np.random.default_rng(3), [0.0, 1.0, np.inf, np.nan, 2.0**-126, 2.0**127]
    found = []
    for _ in range(2 if name == "divf" else 1):
        values = (rng.uniform(0.5, 2, SHAPE) * 2.0 ** rng.integers(-60, 60, SHAPE)).astype("f4")
        values[: len(special)] = rng.permutation(special)
        found.append(values)
    return found


@pytest.mark.parametrize("ftz", [False, True], ids=["plain", "ftz"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", FORMS)
def test_within_two_places(name: str, target: str, ftz: bool) -> None:
    p, data = _program(name, t.F32), _operands(name)
    wanted = [*data, np.zeros(SHAPE, "f4")]
    tile_cudatile.evaluate(p.module(), "k", (1, 1, 1), wanted, ftz=ftz)
    found = [*map(np.copy, data), np.zeros(SHAPE, "f4")]
    p.run(*found, target=target, ftz=ftz, approx=True)
    np.testing.assert_array_max_ulp(found[-1], wanted[-1], 2)
    exact, approximate = FORMS[name]
    if ftz:
        exact, approximate = (form.replace(".f32", ".ftz.f32") for form in (exact, approximate))
    plain, made = p.ptx(target, ftz=ftz), p.ptx(target, ftz=ftz, approx=True)
    assert (exact in plain, approximate in plain) == (True, False)
    assert (exact in made, approximate in made) == (False, True)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(
    ("element", "mode"),
    [(t.F64, "nearest_even"), (t.F16, "nearest_even"), (t.BF16, "nearest_even"), (t.F32, "zero")],
)
def test_others_stay(name: str, element: t.Scalar, mode: str) -> None:
    """Other formats, and operations that ask for another rounding."""
    p = _program(name, element, mode)
    assert p.ptx() == p.ptx(approx=True)

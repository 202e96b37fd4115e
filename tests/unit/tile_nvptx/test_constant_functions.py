"""Functions of constants give what they give at run time: nobody asks the host's math library."""

from typing import Any

import numpy as np
import pytest
from support.programs import Program
from tile_cudatile import types as t

COUNT = 16
FULL = {"rounding_mode": "full"}
#: Function -> operands, attributes. `fpowf` becomes nv_tileaa.pow.
FUNCTIONS: dict[str, tuple[int, dict[str, Any]]] = {
    **{name: (1, {}) for name in ("cos", "sin", "tan", "cosh", "sinh", "log", "log2")},
    **{name: (1, {}) for name in ("exp2", "rsqrt")},
    **dict.fromkeys(("exp", "tanh"), (1, FULL)),
    **{name: (2, {}) for name in ("atan2", "fpowf", "remf")},
}


@pytest.mark.parametrize("element", [t.F32, t.F64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_constants_are_folded_as_the_gpu_computes(name: str, element: t.Scalar) -> None:
    count, attributes = FUNCTIONS[name]
    type_ = {"f32": np.float32, "f64": np.float64}[element.name]
    rng = np.random.default_rng(len(name))
    data = [
        np.concatenate([rng.uniform(0.01, 4, COUNT - 2), rng.uniform(4, 80, 2)]).astype(type_)
        for _ in range(count)
    ]
    folded, loaded, one = Program(), Program(), t.Tile((1,), element)
    for at in range(COUNT):
        operands = [folded.constant(one, float(values[at])) for values in data]
        folded.store(folded.emit(name, operands, one, **attributes), (1,), element)
    operands = [loaded.load((COUNT,), element) for _ in data]
    result = loaded.emit(name, operands, t.Tile((COUNT,), element), **attributes)
    loaded.store(result, (COUNT,), element)

    found, wanted = [np.zeros(1, type_) for _ in range(COUNT)], np.zeros(COUNT, type_)
    folded.run(*found, opt_level=3)
    loaded.run(*data, wanted, opt_level=3)
    assert np.concatenate(found).tobytes() == wanted.tobytes()

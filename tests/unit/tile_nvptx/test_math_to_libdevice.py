"""math-to-libdevice: every function in every type, run in the simulator and compared."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tile_nvptx.passes.llvm.libdevice import FUNCTIONS
from tile_sim import Module

import tile_core
from tile_core.diagnostics import TileError
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import default_registry

_KERNEL = """
gpu.module @m {
  func.func @k(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %o: !llvm.ptr<1>) attributes {nv_tileaa.kernel,
      nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 1 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %px = llvm.getelementptr %p[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, TYPE
    %qx = llvm.getelementptr %q[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, TYPE
    %ox = llvm.getelementptr %o[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, TYPE
    %x = llvm.load %px : !llvm.ptr<1> -> TYPE
    %y = llvm.load %qx : !llvm.ptr<1> -> TYPE
    BODY
    llvm.store %r, %ox : TYPE, !llvm.ptr<1>
    return
  }
}
"""
_TWO = ("atan2", "powf")
_KINDS = {"f32": np.float32, "f64": np.float64, "f16": np.float16}
_TOLERANCE = {"f32": 2e-6, "f64": 1e-14, "f16": 2e-3}


def lowered(name: str, type_: str, flags: str = "") -> str:
    """The kernel behind the pass: r = name(x), or of x and y."""
    operands = "%x, %y" if name in _TWO else "%x"
    text = _KERNEL.replace("BODY", f"%r = math.{name} {operands} {flags} : {type_}")
    job = OptJob(default_registry(), Selection(passes="math-to-libdevice", target="sm_90"))
    return str(optimize(text.replace("TYPE", type_), 0, job).text)


def run(text: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    made = tile_core.compile(
        text.encode(), "sm_90", opt_level=1, start_at="llvm-dialect", emit="ptx"
    )
    out = np.zeros_like(x)
    Module(str(made.stage("ptx"))).launch("k", (1, 1, 1), None, [x, y, out], check=True)
    return out


def _reference(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if name in ("erf", "erfc", "cbrt"):
        one = {"erf": math.erf, "erfc": math.erfc, "cbrt": np.cbrt}[name]
        return np.array([one(float(value)) for value in x])
    if name in _TWO:
        return {"atan2": np.arctan2, "powf": np.power}[name](x, y)
    spelt = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh",
             "atan": "arctan", "atanh": "arctanh"}.get(name, name)  # fmt: skip
    return getattr(np, spelt)(x)


@pytest.mark.parametrize("type_", _KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, type_: str) -> None:
    low = 1.0 if name == "acosh" else 0.05
    x = np.linspace(low, low + 0.9, 32).astype(_KINDS[type_])
    y = np.linspace(0.5, 1.5, 32).astype(_KINDS[type_])
    text = lowered(name, type_)
    assert f"@{FUNCTIONS[name][0]}{'' if type_ == 'f64' else 'f'}(" in text
    wanted = _reference(name, x.astype(np.float64), y.astype(np.float64))
    found = run(text, x, y).astype(np.float64)
    np.testing.assert_allclose(found, wanted, rtol=_TOLERANCE[type_], atol=_TOLERANCE[type_])


@pytest.mark.parametrize("name", [name for name, (_, fast) in FUNCTIONS.items() if fast])
def test_fast_functions(name: str) -> None:
    """For f32 alone, and for who allows it."""
    assert f"@{FUNCTIONS[name][1]}(" in lowered(name, "f32", "fastmath<afn>")
    assert f"@{FUNCTIONS[name][1]}(" in lowered(name, "f32", "fastmath<fast>")
    assert "__nv_fast" not in lowered(name, "f32", "fastmath<nnan>")
    assert "__nv_fast" not in lowered(name, "f64", "fastmath<afn>")


def test_vectors_are_taken_apart() -> None:
    assert lowered("erf", "vector<4xf32>").count("llvm.call @__nv_erff") == 4


def test_what_llvm_has_code_for_stays() -> None:
    assert "math.sqrt" in lowered("sqrt", "f32")


def test_other_types_are_refused() -> None:
    with pytest.raises(TileError, match="is for f16, bf16, f32 and f64, but got f128"):
        lowered("erf", "f128")

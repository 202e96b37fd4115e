"""Kernels for the tests of the simulator: nvcc's, and PTX written here."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from tile_sim import Module

HERE = Path(__file__).parent / "cuda"


@cache
def _load(name: str) -> Module:
    return Module((HERE / f"{name}.ptx").read_text())


@pytest.fixture(scope="session")
def cuda() -> Callable[[str], Module]:
    """The module that nvcc made of `cuda/<name>.cu`."""
    return _load


def ptx_text(
    body: str, params: str = "", target: str = "", version: str = "8.8", outside: str = ""
) -> str:
    """A module with one kernel `k` around `body`; `params` such as `u64 out, u32 n`.

    Registers: %p %h %r %rd %f %d, 600 of each. 64-bit parameters are loaded into registers named
    after them, 32-bit ones too.
    """
    target = target or ("sm_100a" if "tcgen05" in body else "sm_90a")
    declared, loads = [], []
    for param in filter(None, (p.strip() for p in params.split(","))):
        kind, name = param.split()
        declared.append(f".param .{kind} {name}_p")
        loads.append(f".reg .{kind} {name}; ld.param.{kind} {name}, [{name}_p];")
    return f"""
.version {version}
.target {target}
.address_size 64
{outside}
.visible .entry k({", ".join(declared)}) {{
.reg .pred %p<20>;
.reg .b16 %h<40>;
.reg .b32 %r<600>;
.reg .b64 %rd<100>;
.reg .f32 %f<600>;
.reg .f64 %d<60>;
{chr(10).join(loads)}
{body}
ret;
}}
"""


@pytest.fixture(scope="session")
def kernel() -> Callable[..., Module]:
    """Builds a module with one kernel `k` (see `ptx_text`)."""

    def build(body: str, params: str = "", **options: str) -> Module:
        return Module(ptx_text(body, params, **options))

    return build

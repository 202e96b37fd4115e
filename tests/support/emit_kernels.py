"""Hand-written kernels in the `llvm` dialect for the tests of the emitters."""

from __future__ import annotations

import textwrap

from tile_core.emit import EmitContext
from tile_core.mlir import ir
from tile_core.target import builtin_targets


def module(body: str, name: str = "k", arguments: str = "", extra: str = "") -> ir.Module:
    """A module with one kernel of `body`, 128 threads a block, and `extra` beside it."""
    text = f"""
    gpu.module @kernels {{
      {extra}
      llvm.func @{name}({arguments}) attributes {{nvvm.kernel, nvvm.reqntid = array<i32: 128>}} {{
        {body}
        llvm.return
      }}
    }}"""
    return ir.Module.parse(textwrap.dedent(text), ir.Context())


def context(target: str = "sm_90", **options: object) -> EmitContext:
    """Options are spelt with underscores here."""
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return EmitContext(builtin_targets()[target], named)


VECTOR_ADD_ARGUMENTS = "%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>"
VECTOR_ADD = """
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %i = llvm.zext nneg %t : i32 to i64
  %pa = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, vector<4xf32>
  %pb = llvm.getelementptr %b[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, vector<4xf32>
  %pc = llvm.getelementptr %c[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, vector<4xf32>
  %x = llvm.load %pa {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  %y = llvm.load %pb {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  %z = llvm.fadd %x, %y : vector<4xf32>
  llvm.store %z, %pc {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
"""


def unary(operation: str, kind: str = "f32") -> str:
    """`p[0] = operation(p[0])`, where `operation` defines %y from %x."""
    return f"""
  %x = llvm.load %p : !llvm.ptr<1> -> {kind}
  {operation}
  llvm.store %y, %p : {kind}, !llvm.ptr<1>
"""


LIBDEVICE_EXP = unary("%y = llvm.call @__nv_expf(%x) : (f32) -> f32")
DECLARE_EXP = "llvm.func @__nv_expf(f32) -> f32"

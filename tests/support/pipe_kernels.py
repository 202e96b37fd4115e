"""Kernels of agents and pipes as text of nv_tileas: tiles of 8 x 64 f32 are doubled.

One agent fetches tiles of `x` into a pipe, in one of several ways; another reads them, doubles
them and stores them to `y`, or, with one agent, the same warps do both in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tile_sim import LaunchReport, Module, TensorMap

import support.schedulers
import tile_core
from support.tiles import registry
from tile_core.mlir import ir
from tile_core.opt import OptJob, Selection, optimize
from tile_core.session import session_of

ROWS, COLUMNS = 8, 64
TILE_BYTES = ROWS * COLUMNS * 4
_ZEROS = ", ".join(["0"] * 16)
_ONE = ", ".join(["1", *["0"] * 15])
_RESULT = f"resultSegmentSizes = array<i32: 1, {_ZEROS}>"
_P = "nv_tileas.async_pipeline_"
PASSES = "tileas-plan-accesses,tileas-verify-pipes,tileas-assign-phases,tileas-materialize-barriers"

TYPES = """
#row = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[0,16],[0,32],[1,0],[2,0],[4,0]] : 8x64">
#r = #nv_tileas.layout<"register=[[0,1],[0,2]] lane=[[0,4],[0,8],[0,16],[0,32],[1,0]] warp=[[2,0],[4,0]] : 8x64">
#q = #nv_tileas.layout<"register=[[0,1],[0,2]] lane=[[0,4],[0,8],[1,0],[2,0],[4,0]] warp=[[0,16],[0,32]] : 8x64">
!t = tensor<8x64xf32, #r>
!u = tensor<8x64xf32, #q>
!v = !nv_tileas.buffer<tensor<8x64xf32, #row>, "shared", 1 : i32>
!pt = !nv_tileas.pipeline_producer_token
!ct = !nv_tileas.pipeline_consumer_token
!it = !nv_tileas.pipeline_iterator<!v>
!async = !nv_tileas.async_token
!tok = !nv_tileaa.mem_token
!d = !nv_tileas.tma_desc<tensor<8x64xf32>, "none">
!p = !nv_tileaa.ptr<f32, 1 : i32>
!m = !nv_tileaa.memref<f32, array<i64: -9223372036854775808, 64>, array<i64: 64, 1>>
!view = !nv_tileaa.tiled_view<!m, array<i32: 8, 64>, array<i32: 0, 1>, "zero">
"""  # noqa: E501


@dataclass(frozen=True)
class Doubling:
    """A kernel: how tiles are fetched and stored, how deep the pipe is, whose warps do what."""

    fetch: str = "generic"  # "cp.async", "tma"
    store: str = "generic"  # "tma"
    stages: int = 2
    producer_warps: int = 4
    one_agent: bool = False
    registers: tuple[int, int] = (0, 0)
    target: str = "sm_90"

    @property
    def warps(self) -> int:
        """Warps of the block."""
        return 4 if self.one_agent else 4 + self.producer_warps

    # --- text --------------------------------------------------------------------------------

    def text(self) -> str:
        """The kernel; parameters are x, y, their rows, the number of tiles, then tensor maps."""
        params = "%x: !p, %y: !p, %rows: i32, %n: i32"
        params += ", %dx: !d" if self.fetch == "tma" else ""
        params += ", %dy: !d" if self.store == "tma" else ""
        stages = f'!b = !nv_tileas.buffer<tensor<8x64xf32, #row>, "shared", {self.stages} : i32>'
        body = self._one_agent() if self.one_agent else self._two_agents()
        attributes = f"nv_tileaa.kernel, nv_tileaa.kernel_spec = {{num_warps = {self.warps} : i32}}"
        return (
            f"{TYPES}{stages}\nmodule {{ gpu.module @kernels {{\n"
            f"func.func @kernel({params}) attributes {{{attributes}}} {{\n"
            f"{self._head()}\n{body}\nreturn\n}}\n}} }}"
        )

    def _head(self) -> str:
        head = """
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%two = arith.constant dense<2.0> : !u
%mx = "nv_tileaa.make_memref"(%x, %rows) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!p, i32) -> !m
%my = "nv_tileaa.make_memref"(%y, %rows) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!p, i32) -> !m
%vx = "nv_tileaa.block_tile"(%mx) : (!m) -> !view
%vy = "nv_tileaa.block_tile"(%my) : (!m) -> !view
%b = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !b
"""  # noqa: E501
        if self.store == "tma":
            head += '%out = "nv_tileas.alloc_tensor"() {alignment = 128 : i32} : () -> !v\n'
        group = 0 if self.one_agent else 1
        return head + (
            f'%pt, %ct = "{_P}create_pipeline"(%b) {{numStages = {self.stages} : i32, '
            f"producerGroupId = 0 : i8, consumerGroupId = {group} : i8, "
            f"operandSegmentSizes = array<i32: {_ONE}>}} : (!b) -> (!pt, !ct)"
        )

    def produce(self, number: str) -> str:
        """Fetch tile `number`."""
        kind = self.fetch
        size = f", bytes = {TILE_BYTES} : i32" if kind == "tma" else ""
        return f"""
%t1 = "{_P}produce_one"(%t, %i) ({{
^bb0(%s: !v):
  {self._fetch(number)}
  "{_P}yield"() {{operandSegmentSizes = array<i32: {_ZEROS}>}} : () -> ()
}}) {{producer_types = [!v], kind = "{kind}"{size}, {_RESULT}}} : (!pt, !it) -> !pt
%j = "{_P}inc_iter"(%i) : (!it) -> !it
"""

    def _fetch(self, number: str) -> str:
        weak = 'mem_semantic = "weak"'
        if self.fetch == "generic":
            return (
                f'%l:2 = "nv_tileas.tiled_load"(%vx, {number}, %zero) {{{weak}, '
                "operandSegmentSizes = array<i32: 1, 2, 0>} : (!view, i32, i32) -> (!t, !tok)\n"
                '"nv_tileas.copy"(%l#0, %s) : (!t, !v) -> ()'
            )
        if self.fetch == "cp.async":
            return (
                f'%l:2 = "nv_tileas.async_tiled_load"(%vx, {number}, %zero, %s) {{{weak}, '
                "layout = #r, operandSegmentSizes = array<i32: 1, 2, 1, 0, 0>} : "
                "(!view, i32, i32, !v) -> (!async, !tok)"
            )
        if self.fetch == "tma":
            return (
                f"%row = arith.muli {number}, %eight : i32\n"
                '%l = "nv_tileas.async_tiled_tma_load"(%dx, %s, %row, %zero, %t) '
                f"{{tx_count = {TILE_BYTES} : i32, operandSegmentSizes = "
                "array<i32: 1, 1, 2, 1, 0, 0>} : (!d, !v, i32, i32, !pt) -> !async"
            )
        raise ValueError(self.fetch)

    def consume(self, number: str) -> str:
        """Double tile `number`."""
        return f"""
%c1 = "{_P}consume_one"(%c, %k) ({{
^bb0(%s: !v):
  %a = "nv_tileas.copy"(%s) : (!v) -> !u
  %d2 = arith.mulf %a, %two : !u
  {self._store(number)}
  "{_P}yield"() {{operandSegmentSizes = array<i32: {_ZEROS}>}} : () -> ()
}}) {{consumer_types = [!v], consumer_idx = 0 : i32, kind = "generic", {_RESULT}}} \
: (!ct, !it) -> !ct
%g = "{_P}inc_iter"(%k) : (!it) -> !it
"""

    def _store(self, number: str) -> str:
        if self.store == "generic":
            return (
                f'%w = "nv_tileas.tiled_store"(%vy, %d2, {number}, %zero) '
                '{mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 2, 0>} '
                ": (!view, !u, i32, i32) -> !tok"
            )
        return f"""
  "nv_tileas.async_wait"() {{pending = 0 : i32, group = "bulk.read"}} : () -> ()
  "nv_tileas.sync"() : () -> ()
  "nv_tileas.copy"(%d2, %out) : (!u, !v) -> ()
  "nv_tileas.fence"() {{proxy = "async"}} : () -> ()
  "nv_tileas.sync"() : () -> ()
  %row = arith.muli {number}, %eight : i32
  %w = "nv_tileas.async_tiled_tma_store"(%dy, %out, %row, %zero)
    {{operandSegmentSizes = array<i32: 1, 1, 2, 0>}} : (!d, !v, i32, i32) -> !async
  %h = "nv_tileas.async_commit_group"(%w) {{group = "bulk"}} : (!async) -> !async
"""

    def _tail(self) -> str:
        if self.store == "generic":
            return ""
        return '"nv_tileas.async_wait"() {pending = 0 : i32, group = "bulk"} : () -> ()'

    def _two_agents(self) -> str:
        first, second = self.registers
        eight = "%eight = arith.constant 8 : i32"
        end = f'"{_P}yield"() {{operandSegmentSizes = array<i32: {_ZEROS}>}} : () -> ()'
        return f"""
"{_P}agent_switch"() ({{
"nv_tileas.agent"() ({{
{eight}
%i0 = "{_P}create_iterator"(%ct) : (!ct) -> !it
%r:2 = scf.for %q = %zero to %n step %one iter_args(%c = %ct, %k = %i0) -> (!ct, !it) : i32 {{
{self.consume("%q")}
scf.yield %c1, %g : !ct, !it
}}
{self._tail()}
{end}
}}) {{num_warps = 4 : i32, max_regs = {second} : i32}} : () -> ()
"nv_tileas.agent"() ({{
{eight}
%i0 = "{_P}create_iterator"(%pt) : (!pt) -> !it
%r:2 = scf.for %q = %zero to %n step %one iter_args(%t = %pt, %i = %i0) -> (!pt, !it) : i32 {{
{self.produce("%q")}
scf.yield %t1, %j : !pt, !it
}}
{end}
}}) {{num_warps = {self.producer_warps} : i32, max_regs = {first} : i32}} : () -> ()
}}) {{num_agents_per_group = array<i32: 1, 1>, isolated = false}} : () -> ()
"""

    def _one_agent(self) -> str:
        """Produce, then consume, round by round."""
        return f"""
%eight = arith.constant 8 : i32
%i0 = "{_P}create_iterator"(%pt) : (!pt) -> !it
%k0 = "{_P}create_iterator"(%ct) : (!ct) -> !it
%r:4 = scf.for %q = %zero to %n step %one iter_args(%t = %pt, %i = %i0, %c = %ct, %k = %k0) -> (!pt, !it, !ct, !it) : i32 {{
{self.produce("%q")}
{self.consume("%q")}
scf.yield %t1, %j, %c1, %g : !pt, !it, !ct, !it
}}
{self._tail()}
"""  # noqa: E501

    # --- running -----------------------------------------------------------------------------

    def lowered(self) -> str:
        """With barriers in place of pipes, and every buffer in its place."""
        return placed(passes(self.text(), PASSES, self.target))

    def ptx(self, opt_level: int = 1) -> str:
        """Its PTX."""
        return ptx_of(self.lowered(), self.target, opt_level)

    def run(self, ptx: str, tiles: int, **options: Any) -> tuple[LaunchReport, np.ndarray]:
        """Run on `tiles` whole tiles and half of one more row of tiles; report and what y holds."""
        rows = max(1, tiles * ROWS - ROWS // 2)
        x = np.arange(rows * COLUMNS, dtype=np.float32).reshape(rows, COLUMNS) + 1
        y = np.full_like(x, -1)
        maps = [
            TensorMap(a, (COLUMNS, ROWS))
            for a, how in ((x, self.fetch), (y, self.store))
            if how == "tma"
        ]
        args: list[Any] = [x, y, rows, tiles, *maps]
        options = {"check": True, "max_steps": 20000, **options}
        report = Module(ptx).launch("kernel", (1, 1, 1), None, args, **options)
        wanted = x * 2 if tiles else np.full_like(x, -1)
        np.testing.assert_array_equal(y, wanted)
        return report, y


def passes(text: str, names: str, target: str) -> str:
    """The module after passes, as text."""
    more: Any = support.schedulers  # modules hash, though no stub says so
    job = OptJob(registry(schedulers=more), Selection(passes=names, target=target), "kernel")
    return optimize(text, 0, job).text


def placed(text: str) -> str:
    """Every buffer that has no place yet in shared memory of its own."""
    with session_of(registry()) as session:
        module = session.parse(text)
        with session.context, ir.Location.unknown():
            kernels = module.body.operations[0]
            for func in kernels.regions[0].blocks[0].operations:
                _place(func)
        return str(module)


def _place(func: ir.OpView) -> None:
    from tile_tileas.dialect.buffers import Buffer

    i32, top = ir.IntegerType.get_signless(32), 0
    if "nv_tileas.shared_bytes" in func.attributes:
        top = ir.IntegerAttr(func.attributes["nv_tileas.shared_bytes"]).value
    for op in func.regions[0].blocks[0].operations:
        if op.operation.name != "nv_tileas.alloc_tensor" or "shared_offset" in op.attributes:
            continue
        buffer, alignment = Buffer.of(op.results[0].type), op.alignment.value
        assert buffer is not None
        top = -(-top // alignment) * alignment
        op.attributes["shared_offset"] = ir.IntegerAttr.get(i32, top)
        top += buffer.bytes
    func.attributes["nv_tileas.shared_bytes"] = ir.IntegerAttr.get(i32, top)


def ptx_of(text: str, target: str, opt_level: int) -> str:
    """PTX of a kernel whose buffers have their places."""
    artifact = tile_core.compile(
        text,
        target,
        opt_level=opt_level,
        start_at="convert-tileas-to-llvm",
        emit="ptx",
        registry=registry(),
        keep_stages=False,
    )
    return str(artifact.stages["ptx"])

"""Products of warpgroups: plan, buffers, descriptors and instructions, run in the simulator."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import ml_dtypes
import numpy as np
import pytest
from support.emit_kernels import context
from tile_cute.atoms.descriptors import SmemOperand, hopper_descriptor
from tile_cute.atoms.types import BITS
from tile_cute.linear import LinearLayout
from tile_nvptx.emit.llvm_ir import LlvmIrEmitter
from tile_nvptx.emit.ptx import PtxEmitter
from tile_nvptx.passes.tileas.device.warpgroup_mma import WarpgroupProduct, issue, multiply, wait
from tile_sim import Module
from tile_tileas.mma.operands import operand_buffer
from tile_tileas.mma.warpgroup import WarpgroupPlan, plan_warpgroups

from tile_core.mlir import ir

DTYPES = {
    "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype(np.float32),
    "tf32": np.dtype(np.float32), "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2), "s8": np.dtype(np.int8), "u8": np.dtype(np.uint8),
    "s32": np.dtype(np.int32),
}  # fmt: skip
MLIR = {"f32": "f32", "s32": "i32", "f16": "f16"}


@dataclass(frozen=True)
class Case:
    a: str
    b: str
    acc: str
    shape: tuple[int, int, int]
    warps: int = 4
    a_major: str = "K"
    b_major: str = "K"
    a_in_registers: bool = False

    def plan(self) -> WarpgroupPlan:
        made = plan_warpgroups("sm_90a", (self.a, self.b, self.acc), self.shape, self.warps)
        assert made is not None
        return made


CASES = [
    Case("f16", "f16", "f32", (64, 64, 16)),
    Case("f16", "f16", "f32", (128, 128, 64)),
    Case("f16", "f16", "f32", (128, 256, 64), 8, b_major="MN"),
    Case("f16", "f16", "f32", (64, 256, 32), 8, a_major="MN", b_major="MN"),
    Case("f16", "f16", "f16", (256, 64, 32), 8),
    Case("bf16", "bf16", "f32", (64, 8, 128), a_major="MN"),
    Case("bf16", "bf16", "f32", (128, 64, 64), 4, b_major="MN", a_in_registers=True),
    Case("f16", "f16", "f32", (128, 128, 32), 8, a_in_registers=True),
    Case("tf32", "tf32", "f32", (64, 128, 32)),
    Case("e4m3", "e5m2", "f32", (64, 64, 64)),
    Case("e5m2", "e4m3", "f16", (128, 32, 128), 8),
    Case("s8", "u8", "s32", (64, 128, 64)),
    Case("s8", "s8", "s32", (128, 64, 128), 4, a_in_registers=True),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("schedule", ["late", "early"])
def test_products(case: Case, schedule: str) -> None:
    got, expected = run(case, schedule, asynchronous=False)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("case", CASES[1:8:3], ids=str)
def test_products_that_are_waited_for_later(case: Case) -> None:
    got, expected = run(case, "late", asynchronous=True)
    np.testing.assert_array_equal(got, expected)


def test_a_wait_that_is_missing_is_found() -> None:
    got, expected = run(CASES[1], "late", asynchronous=True, waits=False)
    assert not np.array_equal(got, expected)


@pytest.mark.parametrize(
    ("types", "shape", "warps"),
    [
        (("f16", "f16", "f32"), (32, 64, 16), 4),  # fewer rows than an instruction has
        (("f16", "f16", "f32"), (64, 4, 16), 4),
        (("f16", "f16", "f32"), (64, 64, 8), 4),
        (("f16", "f16", "f32"), (64, 64, 16), 2),  # no warpgroup
        (("f16", "f16", "f32"), (128, 256, 16), 4),  # more registers than a thread has
        (("f16", "f16", "f32"), (64, 8, 16), 8),  # nothing for the second warpgroup
        (("f64", "f64", "f64"), (64, 64, 16), 4),
    ],
)
def test_what_does_not_fit_has_no_plan(
    types: tuple[str, str, str], shape: tuple[int, int, int], warps: int
) -> None:
    assert plan_warpgroups("sm_90a", types, shape, warps) is None


def test_other_chips_have_no_warpgroup_products() -> None:
    assert plan_warpgroups("sm_100a", ("f16", "f16", "f32"), (64, 64, 16), 4) is None


# --- one kernel ---------------------------------------------------------------------------------


def run(
    case: Case, schedule: str, *, asynchronous: bool, waits: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """C + A B of small whole numbers, from the simulator and from NumPy."""
    m, n, k = case.shape
    draw = np.random.default_rng(len(str(case)))
    low = 0 if "u8" in (case.a, case.b) else -3
    a, b = (draw.integers(low, 4, size).astype(np.float64) for size in ((m, k), (k, n)))
    c = draw.integers(-3, 4, (m, n)).astype(np.float64)
    plan = case.plan()
    sides = [
        None if case.a_in_registers else operand_buffer(m, k, BITS[case.a], case.a_major),
        operand_buffer(n, k, BITS[case.b], case.b_major),
    ]
    image = b""
    if sides[0] is not None:
        image += in_memory(a.astype(DTYPES[case.a]), sides[0][0])
    image = image.ljust(-(-len(image) // 1024) * 1024, b"\0")
    b_at = len(image)
    assert sides[1] is not None
    image += in_memory(b.T.astype(DTYPES[case.b]), sides[1][0])
    held = by_thread(c.astype(DTYPES[case.acc]), plan.accumulator)
    fragment = by_thread(a.astype(DTYPES[case.a]), plan.a_fragment)
    product = WarpgroupProduct(
        plan.atom, plan.counts, plan.steps, None if sides[0] is None else sides[0][1], sides[1][1],
        MLIR[case.acc], f"i{BITS[case.a]}",
    )  # fmt: skip
    origins = [plan.origin(group) for group in range(case.warps // 4)]
    starts = [
        [0 if product.a is None else product.a.start(x, 0) for x, _ in origins],
        [b_at + product.b.start(x, 0) for _, x in origins],
    ]
    text = kernel(product, case.warps, len(image), starts, asynchronous, waits)
    cx = context("sm_90")
    ptx = PtxEmitter().emit(LlvmIrEmitter().emit(ir.Module.parse(text, ir.Context()), cx), cx)
    memory = np.frombuffer(image.ljust(-(-len(image) // 4) * 4, b"\0"), np.uint32).copy()
    done = Module(ptx).launch(
        "k",
        (1, 1, 1),
        (case.warps * 32, 1, 1),
        [memory, fragment, held],
        schedule=schedule,
        check=True,
    )
    assert not done.findings
    return from_threads(held, plan.accumulator), c + a @ b


def in_memory(tile: np.ndarray, buffer: LinearLayout) -> bytes:
    """The bytes of a buffer that holds `tile`."""
    places = [buffer.apply({"offset": offset}) for offset in range(prod(tile.shape))]
    return np.array([tile[tuple(place)] for place in places], tile.dtype).tobytes()


def by_thread(tile: np.ndarray, layout: LinearLayout) -> np.ndarray:
    """What each thread holds, one behind the other, in order of its registers."""
    return np.array([tile[place] for place in places_of(layout)], tile.dtype)


def from_threads(held: np.ndarray, layout: LinearLayout) -> np.ndarray:
    tile = np.zeros(layout.shape, held.dtype)
    for value, place in zip(held, places_of(layout), strict=True):
        tile[place] = value
    return tile


def places_of(layout: LinearLayout) -> list[tuple[int, ...]]:
    sizes = [layout.in_size(space) for space in ("warp", "lane", "register")]
    return [
        tuple(layout.apply({"warp": w, "lane": t, "register": r}))
        for w in range(sizes[0])
        for t in range(sizes[1])
        for r in range(sizes[2])
    ]


def kernel(
    made: WarpgroupProduct, warps: int, size: int, starts: list[list[int]], asynchronous: bool,
    waits: bool,
) -> str:  # fmt: skip
    """Copy the image to shared memory, multiply, store the accumulators where they came from."""
    functions = [issue(made), wait(made.accumulators, 0)] if asynchronous else [multiply(made)]
    name = functions[0][0]
    descriptors = "\n".join(
        _descriptor(side, operand, starts[at])
        for at, (side, operand) in enumerate((("a", made.a), ("b", made.b)))
        if operand is not None
    )
    a_type = "i64" if made.a is not None else made.a_fragment
    call = (
        f"%p = llvm.call @{name}(%a, %b, %c) : ({a_type}, i64, {made.fragment}) -> {made.fragment}"
    )
    result = "%p"
    if asynchronous and waits:
        call += f"\n%q = llvm.call @{functions[1][0]}(%p) : ({made.fragment}) -> {made.fragment}"
        result = "%q"
    fragment = f"""
      %pa = llvm.getelementptr %frag[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, {a_type}
      %a = llvm.load %pa {{alignment = 4 : i64}} : !llvm.ptr<1> -> {a_type}"""
    return f"""
    gpu.module @kernels {{
      llvm.mlir.global internal @smem() {{addr_space = 3 : i32, alignment = 1024 : i64}} :
        !llvm.array<{size} x i8>
      {chr(10).join(text for _, text in functions)}
      llvm.func @k(%image: !llvm.ptr<1>, %frag: !llvm.ptr<1>, %held: !llvm.ptr<1>) attributes {{
          nvvm.kernel, nvvm.reqntid = array<i32: {32 * warps}>}} {{
        %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
        %t = nvvm.read.ptx.sreg.tid.x : i32
        %threads = llvm.mlir.constant({32 * warps} : i32) : i32
        %words = llvm.mlir.constant({-(-size // 4)} : i32) : i32
        llvm.br ^head(%t : i32)
      ^head(%i: i32):
        %more = llvm.icmp "ult" %i, %words : i32
        llvm.cond_br %more, ^body, ^done
      ^body:
        %from = llvm.getelementptr %image[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        %to = llvm.getelementptr %smem[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
        %w = llvm.load %from : !llvm.ptr<1> -> i32
        llvm.store %w, %to : i32, !llvm.ptr<3>
        %next = llvm.add %i, %threads : i32
        llvm.br ^head(%next : i32)
      ^done:
        nvvm.fence.proxy {{kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}}
        nvvm.barrier
        {descriptors}
        {fragment if made.a is None else ""}
        %pc = llvm.getelementptr %held[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, {made.fragment}
        %c = llvm.load %pc {{alignment = 4 : i64}} : !llvm.ptr<1> -> {made.fragment}
        {call}
        llvm.store {result}, %pc {{alignment = 4 : i64}} : {made.fragment}, !llvm.ptr<1>
        llvm.return
      }}
    }}"""


def _descriptor(side: str, operand: SmemOperand, starts: list[int]) -> str:
    """%a or %b: the descriptor of the warpgroup's first atom."""
    other = starts[-1] - starts[0]
    constant = hopper_descriptor(0, operand)
    signed = constant - (1 << 64) if constant >> 63 else constant
    return f"""
      %{side}0 = llvm.ptrtoint %smem : !llvm.ptr<3> to i32
      %{side}g = llvm.mlir.constant(7 : i32) : i32
      %{side}w = llvm.lshr %t, %{side}g : i32
      %{side}s = llvm.mlir.constant({other} : i32) : i32
      %{side}m = llvm.mul %{side}w, %{side}s : i32
      %{side}f = llvm.mlir.constant({starts[0]} : i32) : i32
      %{side}1 = llvm.add %{side}0, %{side}m : i32
      %{side}2 = llvm.add %{side}1, %{side}f : i32
      %{side}4 = llvm.mlir.constant(4 : i32) : i32
      %{side}3 = llvm.lshr %{side}2, %{side}4 : i32
      %{side}5 = llvm.zext %{side}3 : i32 to i64
      %{side}k = llvm.mlir.constant({signed} : i64) : i64
      %{side} = llvm.or %{side}5, %{side}k : i64"""

"""Plans of memory accesses, compared with the addresses that the accesses touch."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.functions import function
from tile_tileas.access import AccessPlan, plan_pointers, plan_tiled
from tile_tileas.analysis.axis import AxisAnalysis

DYNAMIC = -(1 << 63)
ELEMENTS = {"i8": 1, "f16": 2, "f32": 4, "f64": 8}
WIDTHS = (8, 16, 32, 64, 128)


@dataclass(frozen=True)
class Extent:
    """A size or stride: a number in the type, or an argument of which a divisor is known."""

    value: int
    known: bool
    divisor: int = 1


@st.composite
def extents(draw: st.DrawFn) -> Extent:
    divisor = 1 << draw(st.integers(0, 5))
    value = divisor * draw(st.integers(1, 5))
    return Extent(value, draw(st.booleans()), divisor)


@dataclass(frozen=True)
class View:
    """A tiled view; `base` is a byte address of which `base_divisor` is known."""

    element: str
    base: int
    base_divisor: int
    sizes: tuple[Extent, ...]
    strides: tuple[Extent, ...]
    tile: tuple[int, ...]
    dim_map: tuple[int, ...]

    def text(self) -> str:
        """A function that makes the view and loads one tile of it."""
        dynamic = [e for e in (*self.sizes, *self.strides) if not e.known]
        names = [f"%d{at}" for at in range(len(dynamic))]
        pointer = f"!nv_tileaa.ptr<{self.element}, 1 : i32>"
        spelt = [
            ", ".join(str(e.value if e.known else DYNAMIC) for e in some)
            for some in (self.sizes, self.strides)
        ]
        memref = (
            f"!nv_tileaa.memref<{self.element}, array<i64: {spelt[0]}>, array<i64: {spelt[1]}>>"
        )
        view = (
            f"!nv_tileaa.tiled_view<{memref}, array<i32: {', '.join(map(str, self.tile))}>, "
            f'array<i32: {", ".join(map(str, self.dim_map))}>, "zero">'
        )
        lines = [assumed("%base", "%p", self.base_divisor, pointer)]
        lines += [
            assumed(name, f"%a{at}", e.divisor, "i32")
            for at, (name, e) in enumerate(zip(names, dynamic, strict=True))
        ]
        counts = [sum(not e.known for e in some) for some in (self.sizes, self.strides)]
        types = ", ".join([pointer, *["i32"] * len(dynamic)])
        lines.append(
            f'%m = "nv_tileaa.make_memref"({", ".join(["%base", *names])}) {{operandSegmentSizes = '
            f"array<i32: 1, {counts[0]}, {counts[1]}>}} : ({types}) -> {memref}"
        )
        lines.append(f'%v = "nv_tileaa.block_tile"(%m) : ({memref}) -> {view}')
        arguments = ", ".join([f"%p: {pointer}", *[f"%a{at}: i32" for at in range(len(dynamic))]])
        return f"func.func @f({arguments}) {{\n" + "\n".join(lines) + "\nreturn\n}"


def assumed(name: str, source: str, divisor: int, type_: str) -> str:
    predicate = f'{{kind = "div_by", divisor = {divisor} : i64}}'
    return (
        f'{name} = "nv_tileaa.assume"({source}) {{predicate = {predicate}}} : ({type_}) -> {type_}'
    )


@st.composite
def views(draw: st.DrawFn) -> View:
    rank = draw(st.integers(1, 3))
    strides = [draw(extents()) for _ in range(rank)]
    strides[draw(st.integers(0, rank - 1))] = Extent(1, draw(st.integers(0, 3)) > 0)
    divisor = 1 << draw(st.integers(0, 8))
    return View(
        draw(st.sampled_from(sorted(ELEMENTS))),
        divisor * draw(st.integers(1, 9)),
        divisor,
        tuple(draw(extents()) for _ in range(rank)),
        tuple(strides),
        tuple(1 << draw(st.integers(0, 4)) for _ in range(rank)),
        tuple(draw(st.permutations(range(rank)))),
    )


@settings(max_examples=150, deadline=None)
@given(view=views(), max_bits=st.sampled_from(WIDTHS))
def test_tiled_plans(view: View, max_bits: int) -> None:
    with function(view.text()) as func:
        last = func.regions[0].blocks[0].operations[-2].results[0]
        plan = plan_tiled(last, AxisAnalysis(func.operation), max_bits)
    check_tiled(view, plan, max_bits)


def check_tiled(view: View, plan: AccessPlan, max_bits: int) -> None:
    size = ELEMENTS[view.element]
    assert sorted(plan.order) == list(range(len(view.tile)))
    assert plan.vector == 1 or plan.vector * size * 8 <= max_bits
    fast = plan.order[0]
    assert view.tile[fast] % plan.vector == 0
    sizes = [view.sizes[dim].value for dim in view.dim_map]
    steps = [view.strides[dim].value for dim in view.dim_map]
    for axis, extent in enumerate(sizes):
        if axis not in plan.checked:
            assert extent % view.tile[axis] == 0, "a tile may stick out"
    if plan.vector == 1:
        return
    assert steps[fast] == 1
    for index in product(range(2), repeat=len(sizes)):
        starts = [range(i * t, (i + 1) * t) for i, t in zip(index, view.tile, strict=True)]
        starts[fast] = range(index[fast] * view.tile[fast], (index[fast] + 1) * view.tile[fast])
        starts[fast] = starts[fast][:: plan.vector]
        for coords in product(*[axis[:: max(1, len(axis) // 2)] for axis in starts]):
            address = view.base + size * sum(c * s for c, s in zip(coords, steps, strict=True))
            assert address % (plan.vector * size) == 0, "misaligned"
            if plan.whole_vectors:
                first = coords[fast] < sizes[fast]
                assert first == (coords[fast] + plan.vector - 1 < sizes[fast])


ROWS, COLUMNS = 4, 32


@settings(max_examples=60, deadline=None)
@given(
    element=st.sampled_from(sorted(ELEMENTS)),
    base_bits=st.integers(0, 8),
    stride=st.integers(0, 70),
    shift=st.integers(0, 40),
    bound_bits=st.integers(0, 5),
    bound=st.integers(0, 8),
    max_bits=st.sampled_from(WIDTHS),
)
def test_pointer_plans(element, base_bits, stride, shift, bound_bits, bound, max_bits) -> None:
    """base + row * stride + column + shift, masked by column < bound."""
    text = pointer_text(element, 1 << base_bits, stride, shift, 1 << bound_bits)
    with function(text) as func:
        load = func.regions[0].blocks[0].operations[-2]
        plan = plan_pointers(load, AxisAnalysis(func.operation), max_bits)
    size, vector = ELEMENTS[element], plan.vector
    rows, columns = np.meshgrid(np.arange(ROWS), np.arange(COLUMNS), indexing="ij")
    addresses = (3 << base_bits) + size * (rows * stride + columns + shift)
    mask = columns < bound << bound_bits
    assert vector == 1 or vector * size * 8 <= max_bits
    groups = np.moveaxis(addresses, plan.order[0], -1).reshape(-1, vector)
    assert not (groups[:, 0] % (vector * size)).any() or vector == 1
    assert (np.diff(groups, axis=1) == size).all()
    masks = np.moveaxis(mask, plan.order[0], -1).reshape(-1, vector)
    assert (masks == masks[:, :1]).all()


def pointer_text(element: str, base: int, stride: int, shift: int, bound: int) -> str:
    pointer, shape = f"!nv_tileaa.ptr<{element}, 1 : i32>", f"{ROWS}x{COLUMNS}"
    ints, pointers = f"tensor<{shape}xi32>", f"tensor<{shape}x{pointer}>"
    return f"""
    func.func @f(%p: {pointer}, %n: i32) {{
      {assumed("%base", "%p", base, pointer)}
      {assumed("%bound", "%n", bound, "i32")}
      %r = "nv_tileaa.make_range"() : () -> tensor<{ROWS}xi32>
      %r1 = "nv_tileaa.view"(%r) : (tensor<{ROWS}xi32>) -> tensor<{ROWS}x1xi32>
      %r2 = "nv_tileaa.broadcast"(%r1) : (tensor<{ROWS}x1xi32>) -> {ints}
      %c = "nv_tileaa.make_range"() : () -> tensor<{COLUMNS}xi32>
      %c1 = "nv_tileaa.view"(%c) : (tensor<{COLUMNS}xi32>) -> tensor<1x{COLUMNS}xi32>
      %c2 = "nv_tileaa.broadcast"(%c1) : (tensor<1x{COLUMNS}xi32>) -> {ints}
      %stride = arith.constant dense<{stride}> : {ints}
      %shift = arith.constant dense<{shift}> : {ints}
      %o1 = arith.muli %r2, %stride : {ints}
      %o2 = arith.addi %o1, %c2 : {ints}
      %o3 = arith.addi %o2, %shift : {ints}
      %s = "nv_tileaa.splat"(%base) : ({pointer}) -> {pointers}
      %a = "nv_tileaa.addptr"(%s, %o3) : ({pointers}, {ints}) -> {pointers}
      %b = "nv_tileaa.splat"(%bound) : (i32) -> {ints}
      %m = arith.cmpi slt, %c2, %b : {ints}
      %x:2 = "nv_tileas.load"(%a, %m) {{mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 0, 0>}} : ({pointers}, tensor<{shape}xi1>) -> (tensor<{shape}x{element}>, !nv_tileaa.mem_token)
      return
    }}"""  # noqa: E501


@pytest.mark.parametrize(
    ("element", "stride", "bound", "vector"),
    [
        ("f32", 32, 16, 4),
        ("f16", 32, 16, 8),
        ("f16", 32, 2, 2),
        ("f16", 4, 16, 4),
        ("f32", 5, 16, 1),
    ],
)
def test_pointers_are_vectorised_where_they_can_be(element, stride, bound, vector) -> None:
    with function(pointer_text(element, 16, stride, 0, bound)) as func:
        load = func.regions[0].blocks[0].operations[-2]
        plan = plan_pointers(load, AxisAnalysis(func.operation), 128)
    assert plan == AccessPlan((1, 0), vector, True)


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        (
            View("f32", 16, 16, (Extent(64, True),), (Extent(1, True),), (16,), (0,)),
            AccessPlan((0,), 4, True, ()),
        ),
        (  # 102 elements: the last vector of four would be half outside
            View("f32", 16, 16, (Extent(102, True),), (Extent(1, True),), (16,), (0,)),
            AccessPlan((0,), 4, False, (0,)),
        ),
        (  # rows 6 elements apart: pairs are as far as they are aligned
            View(
                "f32", 16, 16, (Extent(8, True), Extent(4, True)),
                (Extent(6, True), Extent(1, True)), (8, 4), (0, 1),
            ),
            AccessPlan((1, 0), 2, True, ()),
        ),
        (  # the step is an argument: nothing lies side by side for sure
            View("f32", 16, 16, (Extent(64, True),), (Extent(1, False),), (16,), (0,)),
            AccessPlan((0,), 1, True, ()),
        ),
    ],
)  # fmt: skip
def test_known_plans(view: View, plan: AccessPlan) -> None:
    with function(view.text()) as func:
        last = func.regions[0].blocks[0].operations[-2].results[0]
        assert plan_tiled(last, AxisAnalysis(func.operation), 128) == plan


@pytest.mark.parametrize(
    "plan", [AccessPlan((1, 0), 4, True, (0,)), AccessPlan((), 1, False), AccessPlan((0,), 8, True)]
)
def test_plans_survive_as_attributes(plan: AccessPlan) -> None:
    text = """func.func @f(%p: !nv_tileaa.ptr<f32, 1 : i32>) {
      %x:2 = "nv_tileas.load"(%p) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!nv_tileaa.ptr<f32, 1 : i32>) -> (f32, !nv_tileaa.mem_token)
      return
    }"""  # noqa: E501
    with function(text) as func:
        load = func.regions[0].blocks[0].operations[0]
        assert AccessPlan.of(load) is None
        load.attributes["access"] = plan.attribute()
        assert AccessPlan.of(load) == plan

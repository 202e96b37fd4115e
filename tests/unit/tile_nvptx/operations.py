"""Programs that use every operation of the language, in every element type that it takes.

Each `make` gives a `Case`: a program, its arguments, and how near its results have to be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from support.programs import I32, Program, number
from tile_cudatile import types as t
from tile_cudatile.attrs import Bounded, Dense
from tile_cudatile.evaluator.formats import dtype_of
from tile_cudatile.tree import Global, Op

SHAPE = (128,)
INTS = (t.I8, t.I16, t.I32, t.I64)
FLOATS = (t.F16, t.BF16, t.F32, t.F64)
SMALL = (t.F8E4M3FN, t.F8E5M2)
I1_TILE = t.Tile(SHAPE, t.I1)
WEAK = {"memory_ordering_semantics": "weak"}
RELAXED = {"memory_ordering_semantics": "relaxed", "memory_scope": "device"}
#: Largest error of functions, in units of the last place of f32 and f64 (CUDA programming guide,
#: "Mathematical Functions"), the reference's own rounding included.
ULPS = 5


@dataclass
class Case:
    """A program under construction and its arguments, in order."""

    p: Program = field(default_factory=Program)
    args: list[Any] = field(default_factory=list)
    near: set[int] = field(default_factory=set)  # arguments that need not be equal bit for bit
    grid: tuple[int, int, int] = (1, 1, 1)

    def load(self, data: np.ndarray, element: t.Scalar) -> Any:
        """A new argument as a tile."""
        value = self.p.load(data.shape, element)
        self.args.append(data)
        return value

    def store(self, value: Any, *, near: bool = False) -> None:
        """A new argument for a tile or scalar."""
        type_ = value.type
        shape = type_.shape or (1,)
        self.p.store(value, shape, type_.element)
        if near:
            self.near.add(len(self.args))
        self.args.append(np.zeros(shape, dtype_of(type_.element)))

    def pointer(self, data: np.ndarray, element: t.Scalar) -> Any:
        """A new argument as a pointer."""
        self.args.append(data)
        return self.p.argument(t.Tile((), t.Pointer(element)))

    def names(self) -> set[str]:
        """The operations of the program, nested ones too."""
        return set().union(*(_names(op) for op in self.p.module().entries[0].body.block.ops))


def _names(op: Op) -> set[str]:
    inner = (_names(i) for region in op.regions for block in region.blocks for i in block.ops)
    return {op.name}.union(*inner)


def whole(element: t.Scalar, low: int, high: int, seed: int = 0) -> np.ndarray:
    """Whole numbers of a type."""
    return np.random.default_rng(seed).integers(low, high, SHAPE).astype(dtype_of(element))


# -- elementwise ------------------------------------------------------------------------------


def integers(element: t.Scalar) -> Case:
    """Integer arithmetic, both signednesses."""
    c, tile = Case(), t.Tile(SHAPE, element)
    info = np.iinfo(dtype_of(element))
    rng = np.random.default_rng(1)
    a = rng.integers(info.min, info.max, SHAPE, dtype_of(element), endpoint=True)
    x, y = c.load(a, element), c.load(whole(element, 1, min(info.bits - 1, 30), 2), element)
    for name in ("addi", "subi", "muli", "shli"):
        c.store(c.p.emit(name, [x, y], tile, overflow="none"))
    for name in ("andi", "ori", "xori", "mulhii"):
        c.store(c.p.emit(name, [x, y], tile))
    c.store(c.p.emit("absi", [x], tile))
    c.store(c.p.emit("negi", [x], tile))
    for sign in ("signed", "unsigned"):
        for name in ("maxi", "mini", "remi", "shri"):
            c.store(c.p.emit(name, [x, y], tile, signedness=sign))
        c.store(c.p.emit("divi", [x, y], tile, signedness=sign, rounding="zero"))
        flag = c.p.emit("cmpi", [x, y], I1_TILE, signedness=sign, comparison_predicate="less_than")
        c.store(c.p.emit("select", [flag, x, y], tile))
    return c


EXACT = {"addf": 2, "subf": 2, "mulf": 2, "divf": 2, "fma": 3, "maxf": 2, "minf": 2, "sqrt": 1,
         "absf": 1, "negf": 1, "ceil": 1, "floor": 1, "remf": 2}  # fmt: skip
ROUNDED = ("addf", "subf", "mulf", "divf", "fma", "sqrt")
FUNCTIONS = ("cos", "cosh", "exp", "exp2", "log", "log2", "rsqrt", "sin", "sinh", "tan", "tanh")


def floats(element: t.Scalar) -> Case:
    """Arithmetic that rounds once, comparisons, and functions to their documented error."""
    c, tile = Case(), t.Tile(SHAPE, element)
    rng = np.random.default_rng(3)
    data = [rng.uniform(0.25, 4, SHAPE).astype(dtype_of(element)) for _ in range(3)]
    inputs = [c.load(values, element) for values in data]
    for name, arity in EXACT.items():
        mode = {"rounding_mode": "nearest_even"} if name in ROUNDED else {}
        c.store(c.p.emit(name, inputs[:arity], tile, **mode))
    flag = c.p.emit(
        "cmpf", inputs[:2], I1_TILE, comparison_predicate="less_than", comparison_ordering="ordered"
    )
    c.store(c.p.emit("select", [flag, *inputs[1:]], tile))
    for name in FUNCTIONS:
        c.store(c.p.emit(name, inputs[:1], tile), near=True)
    for name in ("fpowf", "atan2"):
        c.store(c.p.emit(name, inputs[:2], tile), near=True)
    power = c.load(whole(t.I32, -3, 4), t.I32)
    c.store(c.p.emit("fpowi", [inputs[0], power], tile), near=True)
    return c


def casts(element: t.Scalar) -> Case:
    """From one type to every other that it converts to, and its bytes."""
    c = Case()
    x = c.load(whole(element, 0, 2 if element == t.I1 else 9), element)
    for other in (*FLOATS, *SMALL, t.TF32):
        tile = t.Tile(SHAPE, other)
        if element.is_float and other != element:
            c.store(c.p.emit("ftof", [x], tile, rounding_mode="nearest_even"))
        elif not element.is_float:
            c.store(c.p.emit("itof", [x], tile, signedness="unsigned",
                             rounding_mode="nearest_even"))  # fmt: skip
    for other in (t.I1, *INTS):
        tile, wider = t.Tile(SHAPE, other), other.width > element.width
        if element.is_float:
            c.store(c.p.emit("ftoi", [x], tile, signedness="signed",
                             rounding_mode="nearest_int_to_zero"))  # fmt: skip
        elif other != element:
            name, attrs = ("exti", {"signedness": "signed"}) if wider else ("trunci", {})
            c.store(c.p.emit(name, [x], tile, **attrs))
    if element.width != 8 and element != t.TF32:
        packed = c.p.emit("pack", [x], t.Tile((SHAPE[0] * element.width // 8,), t.I8))
        c.store(packed)
        c.store(c.p.emit("unpack", [packed], t.Tile(SHAPE, element)))
    same = [i for i in (t.I8, t.I16, t.I32, t.I64) if i.width == element.width]
    if element.is_float and same:
        c.store(c.p.emit("bitcast", [x], t.Tile(SHAPE, same[0])))
    return c


# -- tiles ------------------------------------------------------------------------------------


def shapes(element: t.Scalar) -> Case:
    """What moves elements without computing."""
    c = Case()
    x = c.load(whole(element, 0, 2).reshape(8, 16), element)
    turned = c.p.emit("permute", [x], t.Tile((16, 8), element), permutation=(1, 0))
    again = c.p.emit("reshape", [turned], t.Tile((8, 16), element))
    both = c.p.emit("cat", [x, again], t.Tile((16, 16), element), dim=0)
    zero, one = c.p.constant(I32, 0), c.p.constant(I32, 1)
    part = c.p.emit("extract", [both, (one, zero)], t.Tile((4, 8), element))
    c.store(c.p.emit("insert", [part, both, (zero, one)], t.Tile((16, 16), element)))
    row = c.p.emit("extract", [part, (zero, zero)], t.Tile((1, 8), element))
    c.store(c.p.emit("broadcast", [row], t.Tile((16, 8), element)))
    c.store(c.p.constant(t.Tile(SHAPE, element), 1))
    if not element.is_float and element != t.I1:
        c.store(c.p.emit("iota", [], t.Tile((64,), element)))
    return c


def folds(element: t.Scalar) -> Case:
    """A sum, or a conjunction, along each axis, and its prefixes."""
    c = Case()
    x = c.load(whole(element, 0, 2).reshape(8, 16), element)
    scalar = t.Tile((), element)
    name = "addf" if element.is_float else "xori" if element == t.I1 else "addi"
    attrs = {"addi": {"overflow": "none"}, "addf": {"rounding_mode": "nearest_even"}}.get(name, {})

    def body(a: Any, b: Any) -> list[Any]:
        return [c.p.emit(name, [a, b], scalar, **attrs)]

    for dim, kind in ((0, "reduce"), (1, "reduce"), (1, "scan")):
        region = c.p.region([scalar, scalar], body)
        result = (8, 16) if kind == "scan" else ((16,), (8,))[dim]
        extra = {"reverse": False} if kind == "scan" else {}
        identities = (number(element, 0),)
        c.store(
            c.p.emit(
                kind, [(x,)], t.Tile(result, element), regions=(region,), dim=dim,
                identities=identities, **extra,
            )
        )  # fmt: skip
    return c


PRODUCTS = ((t.F16, t.F32), (t.F16, t.F16), (t.BF16, t.F32), (t.TF32, t.F32), (t.F32, t.F32),
            (t.F64, t.F64), (t.F8E4M3FN, t.F32), (t.F8E5M2, t.F16), (t.I8, t.I32))  # fmt: skip


def product(pair: tuple[t.Scalar, t.Scalar]) -> Case:
    """A product whose sums are exact."""
    element, total = pair
    c, rng = Case(), np.random.default_rng(5)
    a, b = (rng.integers(-2, 3, s).astype(dtype_of(element)) for s in ((16, 32), (32, 16)))
    acc = rng.integers(-4, 5, (16, 16)).astype(dtype_of(total))
    operands = [c.load(a, element), c.load(b, element), c.load(acc, total)]
    signs = {"signedness_lhs": "signed", "signedness_rhs": "signed"} if element == t.I8 else {}
    name = "mmai" if element == t.I8 else "mmaf"
    c.store(c.p.emit(name, operands, t.Tile((16, 16), total), **signs))
    return c


def scaled_product(_: None) -> Case:
    """A product with block scales."""
    c, rng = Case(), np.random.default_rng(6)
    a, b = (rng.integers(-2, 3, s).astype(dtype_of(t.F8E5M2)) for s in ((16, 32), (32, 8)))
    sfa, sfb = (np.full(s, code, np.uint8).view(dtype_of(t.F8E8M0FNU))
                for s, code in (((16, 1), 128), ((1, 8), 126)))  # fmt: skip
    acc = np.ones((16, 8), np.float32)
    operands = [c.load(a, t.F8E5M2), c.load(b, t.F8E5M2), c.load(acc, t.F32)]
    operands += [c.load(sfa, t.F8E8M0FNU), c.load(sfb, t.F8E8M0FNU)]
    c.store(c.p.emit("mmaf_scaled", operands, t.Tile((16, 8), t.F32)))
    return c


# -- memory -----------------------------------------------------------------------------------


def memory(element: t.Scalar) -> Case:
    """Pointers and views of every kind."""
    c = Case()
    base = c.pointer(whole(element, 0, 2), element)
    places = c.p.emit("iota", [], t.Tile(SHAPE, t.I32))
    token = c.p.emit("make_token", [], t.TOKEN)
    x = c.p.emit("load_ptr_tko", [c.p.addresses(base, element, places), None, None, token],
                 t.Tile(SHAPE, element), t.TOKEN, **WEAK)  # fmt: skip
    joined = c.p.emit("join_tokens", [(token, c.p.ops[-1].results[1])], t.TOKEN)
    out = c.pointer(np.zeros(SHAPE, dtype_of(element)), element)
    c.p.emit("store_ptr_tko", [c.p.addresses(out, element, places), x, None, joined], t.TOKEN,
             **WEAK)  # fmt: skip
    tensor = t.TensorView(element, (12, 8), (8, 1))
    view = c.p.emit("make_tensor_view", [base, (), ()], tensor)
    for size in c.p.emit("get_tensor_shape", [view], I32, I32) and c.p.ops[-1].results:
        c.store(size)
    strided = t.StridedView((8, 8), (4, 8), tensor, (0, 1), "zero")
    rows = t.GatherScatterView((4, 8), tensor, 0, "zero")
    parts = t.PartitionView((8, 8), tensor, (0, 1), "zero")
    for kind, name in ((parts, "partition"), (strided, "strided"), (rows, "gather_scatter")):
        made = c.p.emit(f"make_{name}_view", [view], kind)
        first = c.p.constant(I32, 1)
        if name == "gather_scatter":
            first = c.p.constant(t.Tile((4,), t.I32), [3, 0, 20, 11])
        else:
            c.p.emit("get_index_space_shape", [made], I32, I32)
            for size in c.p.ops[-1].results:
                c.store(size)
        index = (first, c.p.constant(I32, 0))
        tile = t.Tile(kind.tile_shape, element)
        found = c.p.emit("load_view_tko", [made, index], tile, t.TOKEN, **WEAK)
        c.store(found)
    return c


def atomics(element: t.Scalar) -> Case:
    """Exchanges, sums and comparisons in memory."""
    c, tile = Case(), t.Tile(SHAPE, element)
    places = c.p.emit("iota", [], t.Tile(SHAPE, t.I32))
    x = c.load(whole(element, 0, 9, 7), element)
    modes = ["addf"] if element.is_float else ["add", "and", "or", "xor", "max", "umin"]
    if element.width >= 32:
        modes.append("xchg")
    for mode in modes:
        where = c.p.addresses(c.pointer(whole(element, 0, 9, 8), element), element, places)
        c.store(c.p.emit("atomic_rmw_tko", [where, x], tile, t.TOKEN, mode=mode, **RELAXED))
    if element.width >= 32:
        where = c.p.addresses(c.pointer(whole(element, 0, 2, 9), element), element, places)
        c.store(c.p.emit("atomic_cas_tko", [where, x, x], tile, t.TOKEN, **RELAXED))
    tensor = t.TensorView(element, SHAPE, (1,))
    view = c.p.emit(
        "make_tensor_view", [c.pointer(whole(element, 0, 9, 4), element), (), ()], tensor
    )
    view = c.p.emit("make_partition_view", [view], t.PartitionView(SHAPE, tensor, (0,)))
    c.p.emit("atomic_red_view_tko", [view, (c.p.constant(I32, 0),), x], t.TOKEN, mode=modes[0],
             **RELAXED)  # fmt: skip
    return c


# -- the rest ---------------------------------------------------------------------------------


def control(_: None) -> Case:
    """Branches, loops, and leaving them early; blocks of a grid."""
    c, p = Case(grid=(3, 2, 1)), Program()
    c.p = p
    out = c.pointer(np.full(6, -1, np.int32), t.I32)
    ids, sizes = (p.emit(name, [], I32, I32, I32) and p.ops[-1].results
                  for name in ("get_tile_block_id", "get_num_tile_blocks"))  # fmt: skip
    place = p.emit("addi", [p.emit("muli", [ids[1], sizes[0]], I32), ids[0]], I32)
    place = p.emit("assume", [place], I32, predicate=Bounded(0, 5))

    def flag(predicate: str, a: Any, b: int) -> Any:
        return p.emit("cmpi", [a, p.constant(I32, b)], t.Tile((), t.I1),
                      comparison_predicate=predicate, signedness="signed")  # fmt: skip

    leave = p.region([], list, "return")
    p.emit("if", [flag("equal", place, 4)], regions=(leave, p.region([], list)))

    def around(i: Any, total: Any) -> list[Any]:
        skip = p.region([], lambda: [total], "continue")
        p.emit("if", [flag("equal", i, 2)], regions=(skip, p.region([], list)))
        return [p.emit("addi", [total, i], I32)]

    bounds = [p.constant(I32, 0), p.emit("addi", [place, p.constant(I32, 2)], I32),
              p.constant(I32, 1)]  # fmt: skip
    total = p.emit("for", [*bounds, (p.constant(I32, 0),)], I32,
                   regions=(p.region([I32, I32], around, "continue"),))  # fmt: skip

    def down(left: Any) -> list[Any]:
        done = p.region([], lambda: [left], "break")
        p.emit("if", [flag("less_than", left, 3)], regions=(done, p.region([], list)))
        return [p.emit("subi", [left, p.constant(I32, 3)], I32)]

    rest = p.emit("loop", [(total,)], I32, regions=(p.region([I32], down, "continue"),))
    p.emit("store_ptr_tko", [p.emit("offset", [out, place], t.Tile((), t.Pointer(t.I32))), rest],
           t.TOKEN, **WEAK)  # fmt: skip
    return c


def system(_: None) -> Case:
    """Globals, addresses, memory of a block, dependent grids, fences, the host."""
    c, p = Case(), Program()
    c.p = p
    table = t.Tile((4,), t.I32)
    p.globals.append(Global("table", Dense(table, np.arange(4, dtype=np.int32).tobytes())))
    one, pointer = t.Tile((), t.I64), t.Tile((), t.Pointer(t.I32))
    address = p.emit("ptr_to_int", [p.emit("get_global", [], pointer, name="table")], one)
    back = p.emit("int_to_ptr", [address], pointer)
    back = p.emit("ptr_to_ptr", [back], t.Tile((), t.Pointer(t.F32)))
    back = p.emit("ptr_to_ptr", [back], pointer)
    places = p.emit("iota", [], table)
    x = p.emit("load_ptr_tko", [p.addresses(back, t.I32, places)], table, t.TOKEN, **WEAK)
    mine = p.emit("alloca", [], pointer, num_elem=4, alignment=16)
    token = p.emit("store_ptr_tko", [p.addresses(mine, t.I32, places), x], t.TOKEN, **WEAK)
    for name in ("gdc_launch_dependents_tko", "gdc_wait_tko", "memory_fence_alias_tko"):
        token = p.emit(name, [token], t.TOKEN)
    y = p.emit("load_ptr_tko", [p.addresses(mine, t.I32, places), None, None, token], table,
               t.TOKEN, **WEAK)  # fmt: skip
    c.store(y)
    p.emit("print_tko", [(y,)], t.TOKEN, str="%d\n")
    good = p.emit("cmpi", [y, p.constant(table, 9)], t.Tile((4,), t.I1),
                  comparison_predicate="less_than", signedness="signed")  # fmt: skip
    p.emit("assert", [good], message="too large")
    return c


CASES: list[tuple[Callable[[Any], Case], Any]] = [
    *((integers, element) for element in INTS),
    *((floats, element) for element in FLOATS),
    *((casts, element) for element in (t.I1, *INTS, *FLOATS, *SMALL, t.TF32)),
    *((shapes, element) for element in (t.I1, *INTS, *FLOATS, *SMALL)),
    *((folds, element) for element in (t.I1, *INTS, *FLOATS)),
    *((product, pair) for pair in PRODUCTS),
    *((memory, element) for element in (t.I1, *INTS, *FLOATS, *SMALL, t.TF32)),
    *((atomics, element) for element in (t.I32, t.I64, *FLOATS)),
    (scaled_product, None),
    (control, None),
    (system, None),
]
#: Operations that no program runs, and why.
NOT_RUN = {
    "multimem_load_reduce_view_tko": "several GPUs share multicast memory: see test_multimem",
    "multimem_reduce_view_tko": "several GPUs share multicast memory: see test_multimem",
    "multimem_store_view_tko": "several GPUs share multicast memory: see test_multimem",
}

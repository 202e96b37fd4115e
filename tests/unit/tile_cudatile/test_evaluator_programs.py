"""Whole kernels in the evaluator, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_cudatile import evaluate, parse_text, read_bytecode
from tile_cudatile import types as t
from tile_cudatile.attrs import Bounded, Dense, DivBy, SameElements
from tile_cudatile.evaluator import EvaluationError
from tile_cudatile.evaluator.formats import dense_array
from tile_cudatile.tree import Block, Op, Region, Value
from unit.tile_cudatile import samples
from unit.tile_cudatile.apply import operation, pointer, program

VERSIONS = ("13.1", "13.3", "13.5")
SCALAR = t.Tile((), t.I32)


def flat(array: np.ndarray) -> list[Any]:
    """An array as cuTile passes it: pointer, shape, strides in elements."""
    return [array, *array.shape, *(s // array.itemsize for s in array.strides)]


def launch(name: str, version: str, grid: tuple[int, ...], *arrays: Any, **options: Any):
    args = [v for a in arrays for v in (flat(a) if isinstance(a, np.ndarray) else [a])]
    return evaluate(read_bytecode(samples.sample(f"{name}.{version}")), name, grid, args, **options)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize("version", VERSIONS)
def test_vector_add(version: str, rng: np.random.Generator) -> None:
    a, b = (rng.standard_normal(240).astype(np.float32) for _ in range(2))
    c = np.zeros_like(a)
    launch("vector_add", version, (4,), a, b, c)  # the last tile is partly outside
    assert (c == a + b).all()


@pytest.mark.parametrize("version", VERSIONS)
def test_softmax(version: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((16, 112)).astype(np.float16)
    out = np.zeros_like(x)
    launch("softmax", version, (16,), x, out)
    exact = np.exp(x.astype(float))
    np.testing.assert_allclose(out, exact / exact.sum(1, keepdims=True), atol=1e-4)


@pytest.mark.parametrize("version", ["13.1", "13.2", "13.3", "13.4", "13.5"])
def test_matmul(version: str, rng: np.random.Generator) -> None:
    a = rng.standard_normal((112, 80)).astype(np.float16)
    b = rng.standard_normal((80, 64)).astype(np.float16)
    c = np.zeros((112, 64), np.float16)
    launch("matmul", version, (2, 1), a, b, c)
    np.testing.assert_allclose(c, a.astype(float) @ b.astype(float), rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("version", VERSIONS)
def test_batched_integer_matmul(version: str, rng: np.random.Generator) -> None:
    a, b = (rng.integers(-128, 128, (16, 32, 32)).astype(np.int8) for _ in range(2))
    c = np.zeros((16, 32, 32), np.int32)
    launch("batch_matmul", version, (16, 1, 1), a, b, c)
    assert (c == a.astype(int) @ b.astype(int)).all()


@pytest.mark.parametrize("version", VERSIONS)
def test_gather_and_scatter(version: str, rng: np.random.Generator) -> None:
    table = rng.standard_normal((32, 16)).astype(np.float32)
    rows = rng.integers(0, 40, 64).astype(np.int32)  # some are no rows
    out = np.zeros((64, 16), np.float32)
    launch("gather_rows", version, (4,), table, rows, out)
    expected = np.where((rows < 32)[:, None], table[rows % 32], -1)
    assert (out == expected).all()


@pytest.mark.parametrize("seed", [None, 3])
def test_atomics_in_any_order(seed: int | None, rng: np.random.Generator) -> None:
    data = rng.integers(1, 8, 128).astype(np.int32)
    bins = np.full(16, 1000, np.int32)  # above every block number, with which it takes maxima
    launch("histogram", "13.3", (4,), data, bins, seed=seed)
    assert (bins == 1000 + np.bincount(data, minlength=16)).all()


@pytest.mark.parametrize("version", VERSIONS)
def test_loops_with_breaks(version: str) -> None:
    data = np.arange(1, 17, dtype=np.int32)
    out = np.zeros(16, np.int32)
    launch("collatz", version, (16,), data, out, 1000)

    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    assert list(out) == [steps(n) for n in range(1, 17)]
    launch("collatz", version, (16,), data, out, 3)
    assert list(out) == [min(steps(n), 3) for n in range(1, 17)]


@pytest.mark.parametrize("version", VERSIONS)
def test_scans_and_argmin(version: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((16, 32)).astype(np.float32)
    out, low = np.zeros_like(x), np.zeros(16, np.int32)
    launch("scan_rows", version, (4,), x, out, low)
    groups = x.astype(float).reshape(4, 4, 32)
    sums = groups.cumsum(2)
    products = groups[:, ::-1].cumprod(1)[:, ::-1]
    expected = np.maximum(sums, products).reshape(16, 32)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
    assert (low == x.argmin(1)).all()


@pytest.mark.parametrize("version", VERSIONS)
def test_transpose_print_and_assert(version: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((64, 32)).astype(np.float32)
    y = np.zeros((32, 64), np.float32)
    outcome = launch("transpose", version, (2, 2), x, y)
    assert (y == x.T).all()
    assert outcome.printed == ["block 0 0\n", "block 0 1\n"]
    assert outcome.failed == []
    x[3, 5] = np.nan
    assert launch("transpose", version, (2, 2), x, y).failed == ["nan at [5, 3]"]


def test_narrow_casts(rng: np.random.Generator) -> None:
    x = rng.standard_normal(128).astype(np.float32) * 300
    y, z = np.zeros(128, np.uint8), np.zeros(128, np.int64)
    launch("casts", "13.5", (2,), x, y, z)
    assert (
        y.view(ml_dtypes.float8_e4m3fn) == np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    ).all()


def test_wrong_assumptions_are_reported() -> None:
    a, b, c = (np.zeros(250, np.float32) for _ in range(3))
    with pytest.raises(EvaluationError, match="not divisible by 16") as caught:
        launch("vector_add", "13.3", (1,), a, b, c)
    assert "export_kernels.py" in str(caught.value)


def test_wrong_arguments_are_reported() -> None:
    module = read_bytecode(samples.sample("vector_add.13.3"))
    with pytest.raises(EvaluationError, match="has 9 arguments, 1 are given"):
        evaluate(module, "vector_add", (1,), [1])
    with pytest.raises(EvaluationError, match="is a pointer"):
        evaluate(module, "vector_add", (1,), [1] * 9)
    with pytest.raises(KeyError, match="no entry named nothing"):
        evaluate(module, "nothing", (1,), [])


def test_reading_outside_of_a_buffer_is_reported() -> None:
    a, b = np.zeros(64, np.float32), np.zeros(64, np.float32)
    module = read_bytecode(samples.sample("vector_add.13.3"))
    with pytest.raises(EvaluationError, match="outside of every buffer"):
        evaluate(module, "vector_add", (1,), [a[:32], 64, 1, b, 64, 1, b, 64, 1])


def test_arrays_that_share_memory_alias() -> None:
    a = np.arange(128, dtype=np.float32)
    module = read_bytecode(samples.sample("vector_add.13.3"))
    evaluate(module, "vector_add", (1,), [a[:64], 64, 1, a[64:], 64, 1, a[:64], 64, 1])
    assert (a[:64] == np.arange(64) + np.arange(64, 128)).all()


# Operations that the samples do not have.


def _views(view: t.View, extents: tuple[int, ...], index, tile: np.ndarray | None = None):
    """Loads (or stores) one tile of an i32 tensor that counts its elements."""
    tensor = np.arange(int(np.prod(extents)), dtype=np.int32)
    out = np.zeros(view.tile_shape, np.int32)

    def build(ops: list[Op], source: Value, target: Value, *indices: Value) -> None:
        def emit(name: str, operands: list[Any], *results: t.Type, **attrs: Any) -> Value:
            ops.append(operation(name, operands, list(results), **attrs))
            return ops[-1].results[0]

        tv = emit("make_tensor_view", [source, (), ()], view.tensor_view)
        kind = {t.PartitionView: "partition", t.StridedView: "strided"}.get(
            type(view), "gather_scatter"
        )
        made = emit(f"make_{kind}_view", [tv], view)
        type_ = t.tile_type_of(view)
        plain = t.TensorView(
            t.I32,
            view.tile_shape,
            tuple(int(np.prod(view.tile_shape[i + 1 :])) for i in range(len(view.tile_shape))),
        )
        whole = t.PartitionView(view.tile_shape, plain, tuple(range(len(view.tile_shape))))
        target_view = emit(
            "make_partition_view", [emit("make_tensor_view", [target, (), ()], plain)], whole
        )
        zero = emit("constant", [], SCALAR, value=Dense(SCALAR, bytes(4)))
        zeros = (zero,) * len(view.tile_shape)
        places: list[Value] = []
        for position, i in enumerate(indices):
            if isinstance(view, t.GatherScatterView) and position == view.sparse_dim:
                rows = t.Tile((view.tile_shape[position],), t.I32)
                places.append(
                    emit(
                        "constant",
                        [],
                        rows,
                        value=Dense(rows, np.asarray(index[position], np.int32).tobytes()),
                    )
                )
            else:
                places.append(i)
        first, last = (made, tuple(places)), (target_view, zeros)
        if tile is not None:
            first, last = last, first
        loaded = emit(
            "load_view_tko", list(first), type_, t.TOKEN, memory_ordering_semantics="weak"
        )
        emit("store_view_tko", [loaded, *last], t.TOKEN, memory_ordering_semantics="weak")

    if tile is not None:
        out[...] = tile
    module = program(build, [pointer(t.I32), pointer(t.I32), *[SCALAR] * len(extents)])
    numbers = [i if isinstance(i, int) else 0 for i in index]
    evaluate(module, "k", (1,), [tensor, out, *numbers])
    return out if tile is None else tensor.reshape(extents)


def _tensor(*extents: int) -> t.TensorView:
    strides = tuple(int(np.prod(extents[i + 1 :])) for i in range(len(extents)))
    return t.TensorView(t.I32, extents, strides)


def test_partition_view_with_a_dimension_map() -> None:
    whole = np.arange(6 * 8).reshape(6, 8)
    view = t.PartitionView((2, 4), _tensor(6, 8), (1, 0), "zero")
    found = _views(view, (6, 8), (3, 1))
    expected = np.zeros((2, 4))
    expected[:, :2] = whole[4:6, 6:8].T
    assert (found == expected).all()


def test_strided_view() -> None:
    view = t.StridedView((4,), (3,), _tensor(16), (0,), "zero")
    assert list(_views(view, (16,), (2,))) == [6, 7, 8, 9]
    assert list(_views(view, (16,), (5,))) == [15, 0, 0, 0]
    with pytest.raises(EvaluationError, match="index 6 is outside of the index space"):
        _views(view, (16,), (6,))


def test_gather_scatter_view() -> None:
    view = t.GatherScatterView((4, 2), _tensor(8, 6), 0, "zero")
    whole = np.arange(48).reshape(8, 6)
    found = _views(view, (8, 6), ([5, 0, 7, 5], 1))
    assert (found == whole[[5, 0, 7, 5], 1:3]).all()
    assert (_views(view, (8, 6), ([5, 9, 7, 5], 5))[:, 1] == 0).all()
    stored = _views(view, (8, 6), ([5, 0, 7, 1], 3), tile=np.full((4, 2), -1, np.int32))
    whole[[5, 0, 7, 1], 3:5] = -1
    assert (stored == whole).all()


def test_stores_outside_of_the_tensor_are_dropped() -> None:
    view = t.PartitionView((4,), _tensor(6), (0,), None)
    assert list(_views(view, (6,), (1,), tile=np.full(4, -1, np.int32))) == [0, 1, 2, 3, -1, -1]


def _compute(build, operands: list[t.Tile], arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Evaluates `build(emit, *values)` on constants; gives the arrays of its values."""
    found: list[Any] = []

    def make(ops: list[Op]) -> None:
        def emit(name: str, args: list[Any], *results: t.Type, **attrs: Any) -> Value:
            ops.append(operation(name, args, list(results), **attrs))
            return ops[-1].results[0]

        values = [
            emit("constant", [], type_, value=Dense(type_, array.tobytes()))
            for type_, array in zip(operands, arrays, strict=True)
        ]
        for value in build(emit, *values):
            ops.append(operation("print_tko", [(value,)], [t.TOKEN], str="%lld"))
            found.append(value)

    outcome = evaluate(program(make, []), "k", (1,), [])
    return [np.array(eval(text)) for text in outcome.printed]


def test_moving_elements() -> None:
    tile = t.Tile((2, 4), t.I32)
    x = np.arange(8, dtype=np.int32).reshape(2, 4)

    def build(emit, a: Value):
        one = emit("constant", [], SCALAR, value=Dense(SCALAR, b"\x01\0\0\0"))
        zero = emit("constant", [], SCALAR, value=Dense(SCALAR, bytes(4)))
        yield emit("permute", [a], t.Tile((4, 2), t.I32), permutation=(1, 0))
        yield emit("cat", [a, a], t.Tile((4, 4), t.I32), dim=0)
        part = emit("extract", [a, (one, one)], t.Tile((1, 2), t.I32))
        yield part
        yield emit("insert", [part, a, (zero, one)], tile)
        yield emit("reshape", [a], t.Tile((8,), t.I32))
        yield emit("broadcast", [part], t.Tile((4, 2), t.I32))

    found = _compute(build, [tile], [x])
    expected = [x.T, np.vstack([x, x]), x[1:, 2:], x.copy(), x.ravel(), np.tile(x[1:, 2:], (4, 1))]
    expected[3][0, 2:] = x[1, 2:]
    for got, want in zip(found, expected, strict=True):
        assert (got == want).all()


def test_reductions_that_are_not_elementwise() -> None:
    tile, row = t.Tile((2, 4), t.I32), t.Tile((1,), t.I32)
    x = np.arange(8, dtype=np.int32).reshape(2, 4)
    args = (Value(SCALAR), Value(SCALAR))
    grown = operation("reshape", [args[0]], [row])
    back = operation("reshape", [grown.result], [SCALAR])
    total = operation("addi", [back.result, args[1]], [SCALAR])
    body = Block(args, [grown, back, total, operation("yield", [(total.result,)], [])])

    def build(emit, a: Value):
        reduced = operation("reduce", [(a,)], [t.Tile((2,), t.I32)], dim=1, identities=())
        reduced.regions = (Region([body]),)
        emit.__closure__[0].cell_contents.append(reduced)
        yield reduced.result

    assert list(_compute(build, [tile], [x])[0]) == [6, 22]


@pytest.mark.parametrize(
    ("predicate", "values", "holds"),
    [
        (DivBy(4), [4, 8, 12, 0], True),
        (DivBy(4), [4, 8, 13, 0], False),
        (DivBy(4, 2, 0), [4, 5, 8, 9], True),
        (DivBy(4, 2, 0), [4, 6, 8, 9], False),
        (SameElements((2,)), [1, 1, 2, 2], True),
        (SameElements((2,)), [1, 2, 2, 2], False),
        (Bounded(0, 5), [0, 5, 1, 2], True),
        (Bounded(0, None), [0, -1, 1, 2], False),
        (Bounded(None, 1), [0, -1, 1, 2], False),
    ],
    ids=str,
)
def test_assumptions(predicate, values: list[int], holds: bool) -> None:
    tile = t.Tile((4,), t.I32)

    def build(emit, a: Value):
        yield emit("assume", [a], tile, predicate=predicate)

    data = [np.array(values, np.int32)]
    if holds:
        assert list(_compute(build, [tile], data)[0]) == values
    else:
        with pytest.raises(EvaluationError, match=r"'cuda_tile\.assume' op"):
            _compute(build, [tile], data)


def test_packing_nibbles() -> None:
    nibbles = t.Tile((4,), t.I4)
    bytes_ = t.Tile((2,), t.I8)

    def build(emit, a: Value):
        packed = emit("pack", [a], bytes_)
        yield packed
        yield emit("unpack", [packed], nibbles)

    found = _compute(build, [nibbles], [np.array([1, 15, 8, 7], np.uint8)])
    assert list(found[0]) == [-15, 120]
    assert list(found[1]) == [1, -1, -8, 7]


def test_constants_as_arrays() -> None:
    tf32 = dense_array(Dense(t.Tile((2,), t.TF32), bytes.fromhex("00fc01000003")))
    assert list(tf32) == [1.0, np.float32(np.uint32(0x30000 << 13).view(np.float32))]
    assert list(dense_array(Dense(t.Tile((4,), t.I1), b"\x05"))) == [True, False, True, False]
    assert list(dense_array(Dense(t.Tile((4,), t.I1), b"\xff"))) == [True] * 4


def test_every_operation_can_be_watched() -> None:
    seen: list[tuple[str, list[int], list[int]]] = []

    def watch(op: Op, operands: list[Any], results: tuple[Any, ...]) -> None:
        flat = [int(o) for o in operands if np.ndim(o) == 0 and o is not None]
        seen.append((op.name, flat, [int(r) for r in results]))

    text = """entry @k(%x: tile<i32>) {
      %1 = addi %x, %x : tile<i32>
      %c = cmpi equal %x, %1, signed : tile<i32> -> tile<i1>
      %2 = if %c -> (tile<i32>) { yield %x : tile<i32> } else { yield %1 : tile<i32> }
      return
    }"""
    evaluate(parse_text(text), "k", (1,), [4], watch=watch)
    assert seen == [("addi", [4, 4], [8]), ("cmpi", [4, 8], [0]), ("if", [0], [8])]


ORDERS = """entry @k(%p: tile<ptr<f32>>, %q: tile<ptr<f32>>) {{
  %i = iota : tile<16xi32>
  %a = reshape %p : tile<ptr<f32>> -> tile<1xptr<f32>>
  %b = broadcast %a : tile<1xptr<f32>> -> tile<16xptr<f32>>
  %c = offset %b, %i : tile<16xptr<f32>>, tile<16xi32> -> tile<16xptr<f32>>
  %x, %t = load_ptr_tko weak %c : tile<16xptr<f32>> -> tile<16xf32>, token
  {operation}
  %r = store_ptr_tko weak %q, %y : tile<ptr<f32>>, tile<f32> -> token
  return
}}"""
SUM = """%y = reduce %x dim=0 identities=[0.0 : f32] : tile<16xf32> -> tile<f32>
  (%e: tile<f32>, %acc: tile<f32>) { %s = addf %e, %acc : tile<f32> yield %s : tile<f32> }"""
LAST = """%s = scan %x dim=0 reverse=true identities=[0.0 : f32] : tile<16xf32> -> tile<16xf32>
  (%acc: tile<f32>, %e: tile<f32>) { %s = addf %acc, %e : tile<f32> yield %s : tile<f32> }
  %z = constant <i32: 0> : tile<i32>
  %f = extract %s[%z] : tile<16xf32> -> tile<1xf32>
  %y = reshape %f : tile<1xf32> -> tile<f32>"""
PRODUCT = """%l = reshape %x : tile<16xf32> -> tile<1x16xf32>
  %o = constant <f32: 1.0> : tile<16x1xf32>
  %z = constant <f32: 0.0> : tile<1x1xf32>
  %m = mmaf %l, %o, %z : tile<1x16xf32>, tile<16x1xf32>, tile<1x1xf32>
  %y = reshape %m : tile<1x1xf32> -> tile<f32>"""


@pytest.mark.parametrize("operation", [SUM, LAST, PRODUCT])
def test_sums_are_taken_in_many_orders(operation: str) -> None:
    """Exact sums do not notice; others are rounded differently."""
    program_ = parse_text(ORDERS.format(operation=operation))

    def sums(values: np.ndarray) -> set[float]:
        found = np.zeros(1, np.float32)
        results = set()
        for seed in range(20):
            evaluate(program_, "k", (1,), [values, found], seed=seed)
            results.add(float(found[0]))
        return results

    assert sums(np.arange(16, dtype=np.float32)) == {120.0}
    assert len(sums(np.geomspace(1e-6, 1e6, 16).astype(np.float32))) > 1


@pytest.mark.parametrize("kind", ["tf32", "i1", "i64", "f8E5M2"])
def test_allocated_memory_has_room_for_its_elements(kind: str) -> None:
    """In their memory form: a tf32 takes four bytes."""
    one = "1" if kind[0] == "i" else "1.0"
    text = f"""entry @k() {{
      %p = alloca num_elem = 4, alignment = 16 : tile<ptr<{kind}>>
      %i = constant <i32: 3> : tile<i32>
      %l = offset %p, %i : tile<ptr<{kind}>>, tile<i32> -> tile<ptr<{kind}>>
      %v = constant <{kind}: {"true" if kind == "i1" else one}> : tile<{kind}>
      %t = store_ptr_tko weak %l, %v : tile<ptr<{kind}>>, tile<{kind}> -> token
      return
    }}"""
    assert evaluate(parse_text(text), "k", (1,), []).failed == []


FIRST = """entry @k(%p: tile<ptr<i32>>, %q: tile<ptr<i32>>) {{
  %i = iota : tile<8xi32>
  %a = reshape %p : tile<ptr<i32>> -> tile<1xptr<i32>>
  %b = broadcast %a : tile<1xptr<i32>> -> tile<8xptr<i32>>
  %c = offset %b, %i : tile<8xptr<i32>>, tile<8xi32> -> tile<8xptr<i32>>
  %x, %t = load_ptr_tko weak %c : tile<8xptr<i32>> -> tile<8xi32>, token
  %y = scan %x dim=0 reverse={reverse} identities=[0 : i32] : tile<8xi32> -> tile<8xi32>
    (%acc: tile<i32>, %e: tile<i32>) {{
      %z = constant <i32: 0> : tile<i32>
      %none = cmpi equal %acc, %z, signed : tile<i32> -> tile<i1>
      %first = select %none, %e, %acc : tile<i1>, tile<i32>
      yield %first : tile<i32>
    }}
  %d = reshape %q : tile<ptr<i32>> -> tile<1xptr<i32>>
  %f = broadcast %d : tile<1xptr<i32>> -> tile<8xptr<i32>>
  %g = offset %f, %i : tile<8xptr<i32>>, tile<8xi32> -> tile<8xptr<i32>>
  %r = store_ptr_tko weak %g, %y : tile<8xptr<i32>>, tile<8xi32> -> token
  return
}}"""


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
@pytest.mark.parametrize(
    ("reverse", "wanted"),
    [("false", [0, 3, 3, 3, 3, 3, 3, 3]), ("true", [19, 19, 19, 19, 19, 19, 19, 0])],
)
def test_a_scan_takes_the_accumulator_before_the_element(
    reverse: str, wanted: list[int], seed: int | None
) -> None:
    """The first element that is not zero; with the arguments exchanged it would be the last."""
    found = np.zeros(8, np.int32)
    values = np.array([0, 3, 5, 0, 11, 13, 19, 0], np.int32)
    evaluate(parse_text(FIRST.format(reverse=reverse)), "k", (1,), [values, found], seed=seed)
    assert found.tolist() == wanted

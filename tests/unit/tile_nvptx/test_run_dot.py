"""Matrix products, compiled and run: tensor cores and multiply-adds, against NumPy."""

import numpy as np
import pytest
import support.strategies
from support.programs import Program
from support.tiles import DTYPES, Kernel, ptx_of, registry, tile
from tile_cudatile import types as t
from tile_cudatile.evaluator.formats import dtype_of

import tile_core
from tile_core.diagnostics import TileError

STRATEGIES = ["blocked", "first-legal", *range(2)]  # numbers: seeds of random layouts


def settings(strategy) -> dict:
    """Options that choose the strategy."""
    if isinstance(strategy, int):
        support.strategies.RandomStrategy.seed = strategy
        strategy = "random"
    return {"options": {"layout-strategy": strategy}}


def shapes_of(m, n, k, batch=0):
    """Shapes of A, B and C; with batches, of rank 3."""
    head = (batch,) if batch else ()
    return (*head, m, k), (*head, k, n), (*head, m, n)


def of(elements):
    """Element types of A, B and C."""
    return elements[0], elements[0], elements[1]


def dot_text(name, operands, shapes, elements, flags="") -> str:
    """%name = dot of three operands; elements of A and B, and of C."""
    types = [tile(s, e) for s, e in zip(shapes, of(elements), strict=True)]
    return (
        f'{name} = "nv_tileaa.dot"({", ".join(operands)}) '
        f"{{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>{flags}}} : "
        f"({', '.join(types)}) -> {types[2]}"
    )


def product_kernel(shapes, elements, flags="", num_warps=4) -> Kernel:
    """D = dot(A, B, C), each a parameter."""
    kernel = Kernel(num_warps)
    for name, shape, element in zip("abc", shapes, of(elements), strict=True):
        kernel.load(f"%{name}", shape, element)
    kernel.op(dot_text("%d", ("%a", "%b", "%c"), shapes, elements, flags))
    kernel.store("%d", shapes[2], elements[1])
    return kernel


def integers(shape, element, seed=0, low=-4, high=5):
    """Small integers, whose sums of products are exact in every type and any order."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(DTYPES[element])


def run_product(shapes, elements, **options):
    """Inputs of small integers through the kernel; what it gave and what NumPy gives."""
    a, b = (integers(s, elements[0], i) for i, s in enumerate(shapes[:2]))
    c = integers(shapes[2], elements[1], 2, -9, 10)
    out = np.zeros_like(c)
    flags = ', signedness_a = "signed", signedness_b = "signed"' if elements[0] == "i8" else ""
    kernel = product_kernel(shapes, elements, flags, options.pop("num_warps", 4))
    kernel.run(a, b, c, out, **options)
    wide = np.int64 if elements[0] == "i8" else np.float64
    return out.astype(wide), a.astype(wide) @ b.astype(wide) + c.astype(wide)


TARGETS = (
    "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_100", "sm_103", "sm_110", "sm_120",
    "sm_121",
)  # fmt: skip
PAIRS = [
    ("f16", "f32"),
    ("f16", "f16"),
    ("bf16", "f32"),
    ("f32", "f32"),
    ("f64", "f64"),
    ("i8", "i32"),
]
# The last ones are too small for tensor cores.
SIZES = [(64, 32, 32), (16, 8, 16), (8, 8, 8), (1, 4, 2), (2, 1, 64), (1, 2, 1)]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("elements", PAIRS, ids="-".join)
def test_integers_are_exact(elements, strategy):
    for size in SIZES:
        got, wanted = run_product(shapes_of(*size), elements, **settings(strategy))
        np.testing.assert_array_equal(got, wanted, str(size))


@pytest.mark.parametrize("elements", PAIRS, ids="-".join)
@pytest.mark.parametrize(("batch", "warps"), [(1, 4), (2, 4), (8, 4), (4, 8), (2, 1)])
def test_batches(elements, batch, warps):
    got, wanted = run_product(shapes_of(32, 16, 32, batch), elements, num_warps=warps)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("elements", [p for p in PAIRS if p[0] in ("f16", "bf16")], ids="-".join)
@pytest.mark.parametrize("batch", [0, 2])
def test_few_rows_are_few_columns_of_the_turned_product(elements, batch, strategy):
    """Of which an instruction has eight: each is made several times where there are fewer."""
    for size in [(8, 16, 32), (4, 32, 128), (2, 64, 64), (1, 16, 32)]:
        rows = size[0]
        got, wanted = run_product(shapes_of(*size, batch), elements, **settings(strategy))
        np.testing.assert_array_equal(got, wanted, str(size))
        ptx = product_kernel(shapes_of(rows, 64, 64, batch), elements).ptx("sm_80", 3)
        assert "mma.sync" in ptx


def test_signs_of_a_turned_product():
    shapes, types = shapes_of(4, 64, 64), ("i8", "i32")
    kernel = product_kernel(shapes, types, ', signedness_a = "signed", signedness_b = "unsigned"')
    a, b = (integers(shape, "i8", seed, -128, 128) for seed, shape in enumerate(shapes[:2]))
    c, out = integers(shapes[2], "i32", 2), np.zeros(shapes[2], np.int32)
    kernel.run(a, b, c, out)
    assert ".u8.s8." in kernel.ptx("sm_80", 3)
    wanted = a.astype(np.int64) @ b.view(np.uint8).astype(np.int64) + c
    np.testing.assert_array_equal(out, wanted)


LARGE = [
    (("f32", "f32"), (128, 128, 64)),  # 64 KiB of operands: K in two parts
    (("f64", "f64"), (4, 128, 128)),  # no atom has 4 rows
    (("f16", "f32"), (256, 32, 64)),  # A is too large to be staged inside the product
    (("i8", "i32"), (128, 64, 128)),
]


@pytest.mark.parametrize("strategy", ["blocked", "first-legal"])
@pytest.mark.parametrize(("elements", "size"), LARGE, ids=str)
def test_operands_larger_than_shared_memory(elements, size, strategy):
    got, wanted = run_product(shapes_of(*size), elements, **settings(strategy))
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("elements", PAIRS, ids="-".join)
def test_tensor_cores_on_every_target(elements, target):
    flags = ', signedness_a = "signed", signedness_b = "unsigned"' if "i8" in elements else ""
    ptx = product_kernel(shapes_of(32, 32, 32), elements, flags).ptx(target, 3)
    assert ("mma.sync" in ptx) == (elements[0] != "f32")
    assert ("fma.rn.f32" in ptx) == (elements[0] == "f32")
    assert "tf32" not in ptx
    assert ".local" not in ptx


@pytest.mark.parametrize("size", [(64, 64, 64), (8, 16, 4)], ids=str)
@pytest.mark.parametrize("elements", [p for p in PAIRS if p[0] != "i8"], ids="-".join)
def test_floats_are_as_precise_as_the_accumulator(elements, size):
    rng = np.random.default_rng(7)
    shapes = shapes_of(*size)
    a, b, c = (
        rng.standard_normal(s).astype(DTYPES[e]) for s, e in zip(shapes, of(elements), strict=True)
    )
    out = np.zeros_like(c)
    product_kernel(shapes, elements).run(a, b, c, out)
    wide = [x.astype(np.longdouble) for x in (a, b, c)]
    sizes = np.abs(wide[0]) @ np.abs(wide[1]) + np.abs(wide[2])
    epsilon = {"f16": 2.0**-10, "f32": 2.0**-23, "f64": 2.0**-52}[elements[1]]
    error = np.abs(out.astype(np.longdouble) - (wide[0] @ wide[1] + wide[2]))
    assert (error <= (size[2] + 2) * epsilon * sizes).all()


@pytest.mark.parametrize("size", [(16, 8, 32), (4, 4, 8)], ids=str)
@pytest.mark.parametrize("left", ["signed", "unsigned"])
@pytest.mark.parametrize("right", ["signed", "unsigned"])
def test_signedness_of_bytes(left, right, size):
    p = Program()
    m, n, k = size
    a, b = p.load((m, k), t.I8), p.load((k, n), t.I8)
    c = p.load((m, n), t.I32)
    kinds = {"signedness_lhs": left, "signedness_rhs": right}
    p.store(p.emit("mmai", [a, b, c], t.Tile((m, n), t.I32), **kinds), (m, n), t.I32)
    rng = np.random.default_rng(3)
    first, second = (rng.integers(0, 256, s).astype(np.uint8) for s in ((m, k), (k, n)))
    # Near the end of the range, so that sums wrap.
    sums = np.full((m, n), 2**31 - 1000, np.int32)
    inputs = [x.view(np.int8) for x in (first, second)]
    p.agrees(*inputs, sums, np.zeros((m, n), np.int32))


BYTES = [t.F8E4M3FN, t.F8E5M2]


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_120"])
@pytest.mark.parametrize("size", [(32, 16, 32), (4, 8, 2)], ids=str)
@pytest.mark.parametrize("acc", [t.F32, t.F16], ids=str)
@pytest.mark.parametrize("element", BYTES, ids=str)
def test_byte_floats(element, acc, size, target):
    p = Program()
    m, n, k = size
    a, b, c = p.load((m, k), element), p.load((k, n), element), p.load((m, n), acc)
    p.store(p.emit("mmaf", [a, b, c], t.Tile((m, n), acc)), (m, n), acc)
    if k == 32:
        kind = {"sm_80": "f16.f16"}.get(
            target, "e4m3.e4m3" if "E4" in str(element) else "e5m2.e5m2"
        )
        assert f".{kind}." in p.ptx(target)
    rng = np.random.default_rng(5)
    inputs = [rng.integers(-4, 5, s).astype(dtype_of(element)) for s in ((m, k), (k, n))]
    sums = rng.integers(-9, 10, (m, n)).astype(dtype_of(acc))
    p.agrees(*inputs, sums, np.zeros_like(sums), target=target)


@pytest.mark.parametrize("element", BYTES, ids=str)
def test_every_byte_float_widens_exactly(element):
    p = Program()
    x = p.load((256,), element)
    for wide in (t.F16, t.F32, t.F64, t.BF16):
        p.store(p.emit("ftof", [x], t.Tile((256,), wide)), (256,), wide)
    source = np.arange(256, dtype=np.uint8).view(dtype_of(element))
    kinds = (t.F16, t.F32, t.F64, t.BF16)
    outs = [np.zeros(256, dtype_of(kind)) for kind in kinds]
    p.run(source, *outs)
    for out in outs:
        np.testing.assert_array_equal(out.astype(np.float64), source.astype(np.float64))


@pytest.mark.parametrize("size", [(16, 8, 8), (4, 4, 4)], ids=str)
def test_tf32(size):
    p = Program()
    m, n, k = size
    a, b = p.load((m, k), t.F32), p.load((k, n), t.F32)
    short = [p.emit("ftof", [x], t.Tile(s, t.TF32)) for x, s in ((a, (m, k)), (b, (k, n)))]
    c = p.load((m, n), t.F32)
    p.store(p.emit("mmaf", [*short, c], t.Tile((m, n), t.F32)), (m, n), t.F32)
    assert ("mma.sync.aligned.m16n8k8.row.col.f32.tf32" in p.ptx("sm_80")) == (m == 16)
    rng = np.random.default_rng(2)
    # 1 + 2^-12 is 1 in tf32; 1 + 3 * 2^-11 rounds to the even neighbour, 1 + 2^-9.
    first = rng.choice(np.array([1 + 2**-12, 1 + 3 * 2**-11, -3, 0], np.float32), (m, k))
    second = rng.integers(-4, 5, (k, n)).astype(np.float32)
    out = np.zeros((m, n), np.float32)
    p.run(first, second, np.ones((m, n), np.float32), out)
    rounded = np.where(first == 1 + 2**-12, 1, np.where(first == 1 + 3 * 2**-11, 1 + 2**-9, first))
    np.testing.assert_array_equal(out, rounded.astype(np.float64) @ second + 1)


@pytest.mark.parametrize("level", range(4))
def test_a_second_product_takes_the_first(level):
    """As in attention: rows of a product are reduced, then it is an operand itself."""
    shapes = shapes_of(32, 32, 32)
    kernel = Kernel()
    for name in "abv":
        kernel.load(f"%{name}", (32, 32), "f16")
    kernel.op(f"%zero_acc = arith.constant dense<0.0> : {tile((32, 32), 'f32')}")
    kernel.op(dot_text("%s", ("%a", "%b", "%zero_acc"), shapes, ("f16", "f32")))
    kernel.op(
        f'%p = "nv_tileaa.fp_to_fp"(%s) : ({tile((32, 32), "f32")}) -> {tile((32, 32), "f16")}'
    )
    kernel.op(dot_text("%o", ("%p", "%v", "%s"), shapes, ("f16", "f32")))
    kernel.store("%o", (32, 32), "f32")
    a, b, v = (integers((32, 32), "f16", seed, -1, 2) for seed in range(3))
    out = np.zeros((32, 32), np.float32)
    kernel.run(a, b, v, out, opt_level=level)
    first = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(out, first @ v.astype(np.float64) + first)


def loop_kernel(n: int = 64) -> Kernel:
    """Three turns of acc = dot(a, b, acc), of 64 x 32 by 32 x n."""
    kernel = Kernel()
    kernel.load("%a", (64, 32), "f16")
    kernel.load("%b", (32, n), "f16")
    acc = tile((64, n), "f32")
    kernel.op(f"%init = arith.constant dense<0.0> : {acc}")
    kernel.op("%one = arith.constant 1 : i32")
    kernel.op("%three = arith.constant 3 : i32")
    kernel.op(
        f"%r = scf.for %i = %zero to %three step %one iter_args(%acc = %init) -> ({acc}) : i32 {{"
    )
    kernel.op(dot_text("%d", ("%a", "%b", "%acc"), shapes_of(64, n, 32), ("f16", "f32")))
    kernel.op(f"scf.yield %d : {acc}")
    kernel.op("}")
    kernel.store("%r", (64, n), "f32")
    return kernel


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_loop_carries_the_accumulator(strategy):
    kernel = loop_kernel()
    a, b = integers((64, 32), "f16", 1), integers((32, 64), "f16", 2)
    out = np.zeros((64, 64), np.float32)
    kernel.run(a, b, out, **settings(strategy))
    np.testing.assert_array_equal(out, 3 * (a.astype(np.float64) @ b.astype(np.float64)))


def test_no_conversion_remains_in_the_loop():
    artifact = tile_core.compile(
        loop_kernel().text(),
        "sm_80",
        opt_level=1,
        start_at="convert-tileaa-to-tileas",
        emit="ptx",
        registry=registry(),
    )
    tileas, ptx = str(artifact.stages["mlir:tileas"]), str(artifact.stages["ptx"])
    assert "nv_tileas.dot" in tileas
    assert "convert_layout" not in tileas
    loop = ptx[ptx.index("$L__BB0_1:") : ptx.index("bra", ptx.index("$L__BB0_1:"))]
    assert loop.count("bar.sync") <= 2
    assert "mma.sync" in loop


def test_an_operand_that_stays_the_same_is_moved_once():
    """A takes no more registers as fragments, and leaves the loop; B would be held four times."""
    artifact = tile_core.compile(
        loop_kernel(8).text(),
        "sm_80",
        opt_level=1,
        start_at="convert-tileaa-to-tileas",
        emit="ptx",
        registry=registry(),
    )
    before, _, loop = str(artifact.stages["mlir:tileas"]).partition("scf.for")
    assert before.count("nv_tileas.convert_layout") == 1
    assert loop.count("nv_tileas.convert_layout") == 0
    a, b = integers((64, 32), "f16", 1), integers((32, 8), "f16", 2)
    out = np.zeros((64, 8), np.float32)
    loop_kernel(8).run(a, b, out)
    np.testing.assert_array_equal(out, 3 * (a.astype(np.float64) @ b.astype(np.float64)))


def bad(shapes, elements, flags=""):
    """The first line of what is said about a wrong product."""
    with pytest.raises(TileError) as caught:
        ptx_of(product_kernel(shapes, elements, flags).text(), "sm_90", 2)
    return str(caught.value)


def test_diagnostics():
    square = shapes_of(16, 16, 16)
    assert "expects #C element type to be f32, but got f16" in bad(square, ("bf16", "f16"))
    assert "expects #C element type to be either f32 or f16, but got f64" in bad(
        square, ("f16", "f64")
    )
    assert "to be either all integers or all floats." in bad(square, ("i8", "f32"))
    assert "expect signedness attribute for operand A" in bad(square, ("i8", "i32"))
    assert "expects rank-2 or rank-3 tensor for result, but got (1)" in bad(
        ((16,), (16,), (16,)), ("f16", "f32")
    )
    assert "shape of operand #A and #B to be compatible" in bad(
        ((16, 32), (16, 16), (16, 16)), ("f16", "f32")
    )
    assert "shape of operand #C is compatible with operands #A and #B" in bad(
        ((16, 16), (16, 16), (16, 32)), ("f16", "f32")
    )


#: Of a product whose operands are loaded in vectors of 16 bytes.
LONG_ROWS = (16, 128, 128)


@pytest.mark.parametrize("target", ["sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize("turned", ["b", "a"])
@pytest.mark.parametrize("size", [(32, 64, 64), (64, 16, 32), LONG_ROWS], ids=str)
def test_bytes_are_transposed_on_their_way(size, turned, target):
    """Rows of B, columns of A: registers hold four bytes along the other axis."""
    m, n, k = size
    p = Program()
    a = p.load((m, k) if turned == "b" else (k, m), t.I8)
    b = p.load((k, n) if turned == "b" else (n, k), t.I8)
    if turned == "a":
        a = p.emit("permute", [a], t.Tile((m, k), t.I8), permutation=(1, 0))
        b = p.emit("permute", [b], t.Tile((k, n), t.I8), permutation=(1, 0))
    c = p.load((m, n), t.I32)
    kinds = {"signedness_lhs": "signed", "signedness_rhs": "signed"}
    p.store(p.emit("mmai", [a, b, c], t.Tile((m, n), t.I32), **kinds), (m, n), t.I32)
    rng = np.random.default_rng(13)
    shapes = ((m, k), (k, n)) if turned == "b" else ((k, m), (n, k))
    inputs = [rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes]
    sums = rng.integers(-9, 10, (m, n)).astype(np.int32)
    p.agrees(*inputs, sums, np.zeros_like(sums), target=target)
    if size == LONG_ROWS:
        used = "ldmatrix.sync.aligned.m16n16.x2.trans" in p.ptx(target)
        assert used == (target != "sm_90")

"""Matrix products, compiled and run: tensor cores and multiply-adds, against NumPy."""

import numpy as np
import pytest
import support.strategies
from support.tiles import DTYPES, Kernel, tile

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


PAIRS = [
    ("f16", "f32"),
    ("f16", "f16"),
    ("bf16", "f32"),
    ("f32", "f32"),
    ("f64", "f64"),
    ("i8", "i32"),
]
# The last ones are too small for tensor cores.
SIZES = [(64, 32, 32), (16, 8, 16), (8, 8, 8), (1, 4, 2), (2, 1, 64)]
CASES = [(pair, size) for pair in PAIRS for size in SIZES]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("elements", PAIRS, ids="-".join)
def test_integers_are_exact(elements, strategy):
    for size in SIZES:
        got, wanted = run_product(shapes_of(*size), elements, **settings(strategy))
        np.testing.assert_array_equal(got, wanted, str(size))

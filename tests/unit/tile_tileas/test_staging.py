"""How operands of a product lie in shared memory: chosen once, written into the IR, obeyed."""

import re
import sys

import numpy as np
import pytest
import tile_cudatile
import tile_sim
from support.programs import Program
from support.tiles import registry
from tile_cudatile import types as t
from tile_cute.linear import swizzled_rows
from tile_tileas import stages
from tile_tileas.dots import Fragments, choose_atom
from tile_tileas.materialize import dots
from tile_tileas.stages import reading, staging_layout
from tile_tileas.strategies.spread import spread

import tile_core
from tile_core.diagnostics import CompileError, InputError

SHAPE = (16, 128, 128)  # M, N, K
_LAYOUT = r'#nv_tileas\.layout<"(offset=[^"]*)">'


def product(element: t.Scalar, acc: t.Scalar) -> Program:
    """D = A B + C, each a whole argument of SHAPE."""
    m, n, k = SHAPE
    p = Program()
    a, b, c = p.load((m, k), element), p.load((k, n), element), p.load((m, n), acc)
    kinds = {"signedness_lhs": "signed", "signedness_rhs": "signed"} if element == t.I8 else {}
    op = "mmai" if kinds else "mmaf"
    p.store(p.emit(op, [a, b, c], t.Tile((m, n), acc), **kinds), (m, n), acc)
    return p


def allocated(program: Program, target: str) -> str:
    """The program's MLIR after 'tileas-materialize-convert-layout'."""
    made = tile_core.compile(
        str(tile_cudatile.to_mlir(program.module())), target, registry=registry(),
        start_at="convert-cudatile-to-tileaa",
        emit="mlir:tileas-materialize-convert-layout",
    )  # fmt: skip
    return str(made.output)


def lowered(text: str, target: str) -> str:
    made = tile_core.compile(
        text, target, registry=registry(), start_at="tileas-allocate-shared", emit="ptx"
    )
    return str(made.output)


def outcome(ptx: str, element: np.dtype, acc: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel makes of small integers, and what it should."""
    m, n, k = SHAPE
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-4, 5, shape).astype(element) for shape in ((m, k), (k, n)))
    c, out = rng.integers(-9, 9, (m, n)).astype(acc), np.zeros((m, n), acc)
    tile_sim.Module(ptx).launch("k", (1, 1, 1), None, [a, b, c, out], check=True)
    wide = np.float64 if acc.kind == "f" else np.int64
    return out, (a.astype(wide) @ b.astype(wide) + c).astype(acc)


CASES = [
    pytest.param(t.I8, t.I32, np.int8, np.int32, "sm_100", id="bytes"),
    pytest.param(t.F16, t.F32, np.float16, np.float32, "sm_90", id="halves"),
    pytest.param(t.F64, t.F64, np.float64, np.float64, "sm_80", id="doubles"),
    pytest.param(t.F32, t.F32, np.float32, np.float32, "sm_90", id="multiply-adds"),
]


@pytest.mark.parametrize(("element", "acc", "a", "c", "target"), CASES)
def test_the_lowering_obeys_what_the_ir_says(element, acc, a, c, target):
    """Another layout in the IR gives other code, which is as right."""
    text = allocated(product(element, acc), target)
    chosen = re.findall(_LAYOUT, text)
    assert chosen, "both operands come from memory in vectors"
    # Rows one after another, without a swizzle: never the cheapest.
    shape = [int(size) for size in chosen[-1].rpartition(":")[2].split("x")]
    rows = [[0, 1 << bit] for bit in range(shape[1].bit_length() - 1)]
    rows += [[1 << bit, 0] for bit in range(shape[0].bit_length() - 1)]
    plain = f"offset={str(rows).replace(' ', '')} : {'x'.join(map(str, shape))}"
    assert plain not in chosen
    edited = lowered(text.replace(chosen[-1], plain), target)
    first = lowered(text, target)
    assert edited != first
    for ptx in (first, edited):
        np.testing.assert_array_equal(*outcome(ptx, np.dtype(a), np.dtype(c)))


#: M, N, K, warps of products of bytes, and whether B is transposed in memory.
SAMPLED = [(16 << i % 4, 8 << (i // 2) % 5, 32 << i % 3, 1 << i % 4, i % 2) for i in range(24)]


@pytest.mark.parametrize(("m", "n", "k", "warps", "turned"), SAMPLED)
def test_the_lowering_chooses_nothing(m, n, k, warps, turned, monkeypatch):
    """Bytes at sm_100, where choices differ by whether ldmatrix turns matrices of bytes."""
    p = Program()
    a = p.load((m, k), t.I8)
    b = p.load((n, k) if turned else (k, n), t.I8)
    if turned:
        b = p.emit("permute", [b], t.Tile((k, n), t.I8), permutation=(1, 0))
    c = p.load((m, n), t.I32)
    signs = {"signedness_lhs": "signed", "signedness_rhs": "signed"}
    p.store(p.emit("mmai", [a, b, c], t.Tile((m, n), t.I32), **signs), (m, n), t.I32)
    made = tile_core.compile(
        str(tile_cudatile.to_mlir(p.module())), "sm_100", registry=registry(),
        start_at="convert-cudatile-to-tileaa", options={"num-warps": warps, "mma": "mma.sync"},
        emit="mlir:tileas-materialize-convert-layout",
    )  # fmt: skip

    def chosen_again(*args, **kwargs):
        raise AssertionError("a layout of a buffer is chosen after it was written into the IR")

    monkeypatch.setattr(stages, "staging_layout", chosen_again)
    monkeypatch.setattr(dots, "staging_layout", chosen_again)
    ptx = lowered(str(made.output), "sm_100")
    lowering = [name for name in sys.modules if name.startswith("tile_nvptx.")]
    assert not [name for name in lowering if hasattr(sys.modules[name], "staging_layout")]
    rng = np.random.default_rng(m + n + k)
    x, y = (rng.integers(-99, 99, s, np.int8) for s in ((m, k), (n, k) if turned else (k, n)))
    z, out = rng.integers(-9, 9, (m, n), np.int32), np.zeros((m, n), np.int32)
    tile_sim.Module(ptx).launch("k", (1, 1, 1), None, [x, y, z, out], check=True)
    wide = y.T if turned else y
    np.testing.assert_array_equal(out, x.astype(np.int32) @ wide.astype(np.int32) + z)


def test_a_buffer_that_does_not_fit_is_refused():
    text = allocated(product(t.F16, t.F32), "sm_90")
    chosen = re.findall(_LAYOUT, text)[-1]
    wrong = "offset=[[0,1],[0,2]] : 1x4"
    with pytest.raises((CompileError, InputError), match="expects a layout of"):
        lowered(text.replace(chosen, wrong), "sm_90")
    folded = chosen.replace("[1,0]", "[0,1]")
    with pytest.raises((CompileError, InputError), match="with a place for every element"):
        lowered(text.replace(chosen, folded), "sm_90")


def test_rows_that_a_tensor_map_brings_are_read_as_they_lie() -> None:
    """Where that takes at most twice as long: B of tf32 along N, which ldmatrix does not turn."""
    atom = choose_atom("sm_120a", ("tf32", "tf32", "f32"), (128, 128, 32))
    assert atom is not None
    wanted = Fragments.of(atom, "b", (1, 128, 128, 32), 2, (1, 4, 2))
    source = spread((32, 128), 8, (1, 0), 4)
    own = staging_layout(source, wanted, 32)
    brought = staging_layout(source, wanted, 32, brought_along=1)
    assert brought == swizzled_rows((32, 128), (1, 0), 32, 128) != own
    assert reading(brought, wanted, 32).cost <= 2 * reading(own, wanted, 32).cost

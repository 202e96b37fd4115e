"""Products by one instruction, written with cute, are right: fp8, sparse, with block scales."""

from __future__ import annotations

import numpy as np
import pytest
import test_tensor_products_simulated as tensor
import tile_sim
from simulated import decode, pack, raw, unpack, values
from support import tensor_memory as tm
from support.cute_products import tensor_kernel, warp_kernel
from support.cutlass_run import PASSES, ptx
from test_sparse_simulated import field_bits, metadata, sparse_a
from tile_cute.atoms import MmaAtom, find_mma
from tile_cute.atoms.types import BITS
from tile_cute.dialect.nvgpu_ops import count_of, element_of

import tile_core
from tile_core.diagnostics import CompileError
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import default_registry

#: Target of each family of instructions, by what only it has.
SM80, SM89, SM90, SM120 = "sm_80", "sm_89", "sm_90", "sm_120"


def first(family: str, **wanted: object) -> MmaAtom:
    return find_mma(family=family, **wanted)[0].atoms()[0]  # type: ignore[arg-type]


def types_of(atom: MmaAtom, narrow: str = "") -> list[tuple[int, str]]:
    """(elements, type) of A, B and C; `narrow` is that of A and B."""
    found = [(count_of(atom, name), element_of(atom, name)) for name in "ABC"]
    return [(n, narrow or e) for n, e in found[:2]] + [found[2]]


def images(atom: MmaAtom, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> list[np.ndarray]:
    layouts = (atom.a_layout, atom.b_layout, atom.c_layout)
    made = []
    for matrix, name, layout in zip((a, b, c), ("a", "b", "acc"), layouts, strict=True):
        assert layout is not None
        kind = getattr(atom.row, name)
        bits = atom.container_bits(name)
        made.append(pack(raw(matrix, kind), layout, bits))
    return made


def launch(text: str, arrays: list[np.ndarray]) -> None:
    report = tile_sim.Module(text).launch("k", (1, 1, 1), None, arrays, check=True)
    assert not report.findings, "\n".join(map(str, report.findings))


def result(atom: MmaAtom, text: str, parts: list[np.ndarray], words: np.ndarray) -> np.ndarray:
    out = np.zeros_like(parts[2])
    launch(text, [*parts, out, words])
    assert atom.c_layout is not None
    return decode(unpack(out, atom.c_layout, BITS[atom.row.acc]), atom.row.acc)


def drawn(atom: MmaAtom) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return (
        values(rng, atom.row.a, (atom.m, atom.k)),
        values(rng, atom.row.b, (atom.k, atom.n)),
        values(rng, "f32", (atom.m, atom.n)),
    )


FP8 = first("mma.sync", a="e4m3", acc="f32", kind="")
DENSE = [
    ("arch_mma_sm89", FP8, SM89, ""),
    ("arch_mma_sm89", FP8, SM90, "i8"),
    ("arch_mma_sm89", first("mma.sync", a="e5m2", b="e4m3", acc="f32", kind=""), SM89, ""),
    ("arch_mma_sm89", first("mma.sync", a="e4m3", acc="f16", kind=""), SM120, ""),
    ("arch_mma_sm80", find_mma(family="mma.sync", a="s4", acc="s32")[-1].atoms()[0], SM80, ""),
]


@pytest.mark.parametrize(("operation", "atom", "target", "narrow"), DENSE, ids=str)
def test_dense(operation: str, atom: MmaAtom, target: str, narrow: str) -> None:
    a, b, c = drawn(atom)
    text = ptx(warp_kernel(operation, atom.instruction, types_of(atom, narrow)), target)
    got = result(atom, text, images(atom, a, b, c), np.zeros((32, 2), np.uint32))
    np.testing.assert_array_equal(got, a @ b + c)


SPARSE = [
    first("mma.sp", a="f16", acc="f32"),
    find_mma(family="mma.sp", a="f16", acc="f32")[-1].atoms()[0],
    first("mma.sp", a="tf32", acc="f32"),
    first("mma.sp", a="s8", acc="s32"),
]


def sparse(atom: MmaAtom, selector: int, read: int) -> tuple[np.ndarray, np.ndarray]:
    kept = sparse_a(np.random.default_rng(4), atom)
    _, b, c = drawn(atom)
    layout = atom.metadata_layout
    assert layout is not None
    words = metadata(kept, layout, field_bits(atom), selector)[:, :2].copy()
    text = ptx(
        warp_kernel(
            "arch_mma_sm80_sparse", atom.instruction, types_of(atom), more=1,
            attributes=f", selector = {read} : i32",
        ),
        SM80,
    )  # fmt: skip
    return result(atom, text, images(atom, kept.values, b, c), words), kept.full @ b + c


@pytest.mark.parametrize("atom", SPARSE, ids=str)
def test_sparse(atom: MmaAtom) -> None:
    np.testing.assert_array_equal(*sparse(atom, 0, 0))


def test_the_selector_counts() -> None:
    atom = SPARSE[0]
    np.testing.assert_array_equal(*sparse(atom, 1, 1))
    with pytest.raises((AssertionError, tile_sim.SimError)):  # garbage is no metadata
        np.testing.assert_array_equal(*sparse(atom, 1, 0))
    with pytest.raises(CompileError, match="has selectors below 4, but got 4"):
        sparse(atom, 0, 4)


SCALED = [
    (first("mma.block_scale", kind="mxf8f6f4", a="e4m3", b="e5m2"), "", 0),
    (first("mma.block_scale", kind="mxf8f6f4", a="e4m3", b="e2m1"), "i8", 3),
    (first("mma.block_scale", kind="mxf4"), "", 2),
    (first("mma.block_scale", kind="mxf4nvf4"), "i4", 0),
]


def scales(atom: MmaAtom, byte: int) -> tuple[list[np.ndarray], np.ndarray]:
    """(factors of A and B by block, words of the lanes) with garbage where nobody looks."""
    assert atom.row.scale is not None
    assert atom.scale_layouts is not None
    rng = np.random.default_rng(5)
    words = rng.integers(0, 1 << 32, (32, 2), dtype=np.uint64).astype(np.uint32)
    bias, up = (127, 0) if atom.row.scale.type == "ue8m0" else (7, 3)
    blocks, found = int(atom.row.scale.size[0]), []
    for side, (rows, layout) in enumerate(zip((atom.m, atom.n), atom.scale_layouts, strict=True)):
        exponents = rng.integers(0, 3, (rows, blocks))
        found.append(2.0**exponents)
        held = pack((exponents + bias << up).astype(np.uint64), layout, 8)[:, 0].astype(np.uint64)
        mask = ((1 << 8 * blocks) - 1) << 8 * byte
        for lane in range(32):
            if not lane & layout.free_mask("lane"):
                rest = int(words[lane, side]) & ~mask & 0xFFFFFFFF
                words[lane, side] = rest | int(held[lane]) << 8 * byte & mask
    return found, words


BOUND = [(*case, False) for case in SCALED] + [(*SCALED[1], True)]


@pytest.mark.parametrize(("atom", "narrow", "byte", "bound"), BOUND, ids=str)
def test_block_scales(atom: MmaAtom, narrow: str, byte: int, bound: bool) -> None:
    """Also by an atom that has the scales, of tensors in registers."""
    a, b, c = drawn(atom)
    (left, right), words = scales(atom, byte)
    types = types_of(atom, narrow)
    text = ptx(
        warp_kernel(
            "arch_mma_sm120_block_scaled", atom.instruction, types, more=2, bound=bound,
            attributes=f", byte_a = {byte} : i32, byte_b = {byte} : i32",
        ),
        SM120,
    )  # fmt: skip
    got = result(atom, text, images(atom, a, b, c), words)
    wide = [np.repeat(f, atom.k // f.shape[1], axis=1) for f in (left, right)]
    np.testing.assert_array_equal(got, (a * wide[0]) @ (b.T * wide[1]).T + c)


# --- tensor memory -------------------------------------------------------------------------------

UMMA = [
    ("arch_mma_sm100_umma", first("tcgen05", kind="f16"), ""),
    ("arch_mma_sm100_umma", first("tcgen05", kind="f16"), ', collector = "fill"'),
    ("arch_mma_sm100_umma_sparse", first("tcgen05.sp", kind="f16"), ""),
    ("arch_mma_sm100_umma_sparse", first("tcgen05.sp", kind="tf32"), ""),
    ("arch_mma_sm100_umma_block_scaled", first("tcgen05.block_scale", kind="mxf8f6f4"), ""),
    ("arch_mma_sm100_umma_block_scaled", first("tcgen05.block_scale", kind="mxf4"), ""),
    ("arch_mma_sm100_umma_block_scaled", find_mma(family="tcgen05.block_scale", kind="mxf4nvf4")[-2]
     .atom(128, 64), ""),
    ("arch_mma_sm100_umma_block_scaled_sparse", first("tcgen05.sp.block_scale", kind="mxf4"), ""),
]  # fmt: skip


def umma_kernel(operation: str, atom: MmaAtom, words: list[int], attributes: str) -> str:
    columns = {
        "first": tensor.FIRST, "second": tensor.SECOND, "a": tensor.A_AT, "all": tensor.COLUMNS,
        "meta": tensor.META_AT, "sfa": tensor.SCALE_A, "sfb": tensor.SCALE_B,
    }  # fmt: skip
    more = [*(["meta"] if atom.row.sparse else []), *(["sfa", "sfb"] if atom.row.scale else [])]
    return tensor_kernel(
        operation, atom.instruction, words, tensor.descriptor(atom), columns,
        words=tensor.ROOM // 4, more=more, attributes=attributes,
    )  # fmt: skip


@pytest.mark.parametrize(("operation", "atom", "attributes"), UMMA, ids=str)
def test_tensor_memory(operation: str, atom: MmaAtom, attributes: str) -> None:
    atom = atom.row.atom(128, tensor.N)
    inputs = tensor.draw(atom)
    start, images = tm.garbage(1, tensor.COLUMNS), np.zeros((1, tensor.ROOM), np.uint8)
    tensor.fill_tensor_memory(atom, inputs, start)
    words, out = tensor.share(atom, inputs, images), np.zeros_like(start)
    launch(ptx(umma_kernel(operation, atom, words, attributes), "sm_100"), [images, start, out])
    left = inputs.a[0].full * inputs.factors(slice(0, -1), atom.k)
    wanted = left @ (inputs.b * inputs.factors(slice(-1, None), atom.k)).T
    np.testing.assert_array_equal(tensor.results(atom, out), np.stack([wanted] * 2))


@pytest.mark.parametrize(
    ("attributes", "words"),
    [(", ashift", "shifts rows of A in tensor memory only"),
     (', collector = "keep"', "keeps A as one of fill, use")],
)  # fmt: skip
def test_qualifiers_that_cannot_be(attributes: str, words: str) -> None:
    atom = first("tcgen05", kind="f16")
    text = umma_kernel("arch_mma_sm100_umma", atom, [0, 0], attributes)
    if "ashift" in attributes:
        text = text.replace(attributes, "").replace('"} : (i32, i64', '", ashift} : (i32, i64')
    with pytest.raises(CompileError, match=words):
        lowered(text, "sm_100")


def lowered(text: str, target: str) -> str:
    job = OptJob(default_registry(), Selection(passes=PASSES, target=target))
    return optimize(text, 0, job).text


CUBINS = [
    *((warp_kernel(op, atom.instruction, types_of(atom, narrow)), target)
      for op, atom, target, narrow in DENSE),
    *((warp_kernel("arch_mma_sm80_sparse", atom.instruction, types_of(atom), more=1), SM80)
      for atom in SPARSE),
    *((warp_kernel("arch_mma_sm120_block_scaled", atom.instruction, types_of(atom, narrow), more=2),
       SM120) for atom, narrow, _ in SCALED),
    *((umma_kernel(op, atom.row.atom(128, 64), [0, 0], attributes), "sm_100")
      for op, atom, attributes in [*UMMA, (*UMMA[0][:2], ", ashift")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "target"), CUBINS)
def test_ptxas_takes_it(text: str, target: str) -> None:
    made = tile_core.compile(
        lowered(text, target).encode(), target, opt_level=1, start_at="llvm-dialect"
    )
    assert made.stage("cubin")


@pytest.mark.parametrize(
    ("operation", "atom", "more", "attributes", "target", "words"),
    [
        ("arch_mma_sm89", FP8, 0, "", SM80, "which sm_80 does not have"),
        ("arch_mma_sm120_block_scaled", SCALED[0][0], 2, "", SM90, "which sm_90a does not have"),
        ("arch_mma_sm120_block_scaled", SCALED[2][0], 2, ", byte_a = 1 : i32", SM120,
         r"takes 2 bytes from one of \[0, 2\] on"),
        ("arch_mma_sm120_block_scaled", SCALED[1][0], 2, "", SM120,
         "takes 64 bits of B from registers, but got vector<8xf4E2M1FN>"),
    ],
)  # fmt: skip
def test_what_cannot_be(
    operation: str, atom: MmaAtom, more: int, attributes: str, target: str, words: str
) -> None:
    types = types_of(atom)
    text = warp_kernel(operation, atom.instruction, types, more=more, attributes=attributes)
    with pytest.raises(CompileError, match=words):
        lowered(text, target)

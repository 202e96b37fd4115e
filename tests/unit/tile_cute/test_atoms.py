"""Fragments against the index formulas of the PTX ISA, written here a second time."""

import itertools

import pytest
from tile_cute.atoms import (
    CopyAtom,
    MmaAtom,
    MmaRow,
    copy_atoms,
    find_copies,
    find_mma,
    mma_rows,
    register_rows,
    require_supported,
    unregister_rows,
)
from tile_cute.atoms.arch import admits
from tile_cute.atoms.fragments import accumulator_register
from tile_cute.atoms.tensor_memory import (
    accumulator_layout,
    load_fragment,
    operand_layout,
    scale_layout,
)
from tile_cute.atoms.types import BITS
from tile_cute.bridge import fragment_layout
from tile_cute.errors import LayoutError
from tile_cute.linear import LinearLayout, permute_dims
from tile_cute.text import parse_layout

WARP = [
    atom
    for row in mma_rows()
    if row.family.startswith("mma.")
    for atom in row.atoms()
]  # fmt: skip
GROUP = [row.atom(64, n) for row in mma_rows() if row.family.startswith("wgmma") for n in (8, 64)]


def at(layout: LinearLayout, **point: int) -> tuple[int, ...]:
    for space, index in point.items():
        assert index < layout.in_size(space)
    return layout.apply(point)


def threads(layout: LinearLayout) -> list[tuple[int, int]]:
    return list(itertools.product(range(layout.in_size("warp")), range(32)))


@pytest.mark.parametrize("atom", [*WARP, *GROUP], ids=str)
def test_a_fragment(atom: MmaAtom) -> None:
    """a_i: row groupID or groupID + 8, columns by register words."""
    layout = atom.a_layout
    assert layout is not None
    assert layout.shape == (atom.m, atom.stored_k)
    assert layout.is_surjective
    assert layout.is_injective
    word = max(1, 32 // atom.container_bits("a"))
    halves = min(2, atom.m // 8)
    for warp, lane in threads(layout):
        group, thread = lane >> 2, lane % 4
        for i in range(layout.elements_per_thread):
            register, within = divmod(i, word)
            row = group + 8 * (register % halves) + 16 * warp
            column = thread * word + within + 4 * word * (register // halves)
            assert at(layout, register=i, lane=lane, warp=warp) == (row, column)


@pytest.mark.parametrize("atom", WARP, ids=str)
def test_b_fragment(atom: MmaAtom) -> None:
    layout = atom.b_layout
    assert layout is not None
    assert layout.is_surjective
    assert layout.is_injective
    word = max(1, 32 // atom.container_bits("b"))
    for lane in range(32):
        for i in range(layout.elements_per_thread):
            row = lane % 4 * word + i % word + 4 * word * (i // word)
            assert at(layout, register=i, lane=lane) == (row, lane >> 2)


@pytest.mark.parametrize("atom", [*WARP, *GROUP], ids=str)
def test_c_fragment(atom: MmaAtom) -> None:
    layout = atom.c_layout
    assert layout is not None
    assert layout.is_surjective
    assert layout.is_injective
    for warp, lane in threads(layout):
        for i in range(layout.elements_per_thread):
            rows = 2 if atom.m > 8 else 1
            row = (lane >> 2) + 8 * (i // 2 % rows) + 16 * warp
            column = lane % 4 * 2 + i % 2 + 8 * (i // (2 * rows))
            assert at(layout, register=i, lane=lane, warp=warp) == (row, column)
    elements = layout.elements_per_thread
    assert atom.registers("c") == max(1, elements * BITS[atom.row.acc] // 32)


@pytest.mark.parametrize(
    ("a", "k", "role", "text", "shape"),
    [
        ("f16", 8, "a", "((4,8),(2,2)):((32,1),(16,8))", (16, 8)),
        ("f16", 8, "b", "((4,8),2):((16,1),8)", (8, 8)),
        ("f16", 16, "a", "((4,8),(2,2,2)):((32,1),(16,8,128))", (16, 16)),
        ("f16", 16, "b", "((4,8),(2,2)):((16,1),(8,64))", (8, 16)),
        ("tf32", 4, "a", "((4,8),2):((16,1),8)", (16, 4)),
        ("tf32", 8, "a", "((4,8),(2,2)):((16,1),(8,64))", (16, 8)),
        ("tf32", 8, "b", "((4,8),2):((8,1),32)", (8, 8)),
        ("s8", 32, "a", "((4,8),(4,2,2)):((64,1),(16,8,256))", (16, 32)),
        ("s8", 32, "b", "((4,8),(4,2)):((32,1),(8,128))", (8, 32)),
        ("s4", 64, "a", "((4,8),(8,2,2)):((128,1),(16,8,512))", (16, 64)),
        ("s4", 64, "b", "((4,8),(8,2)):((64,1),(8,256))", (8, 64)),
    ],
)
def test_thread_value_layouts(a: str, k: int, role: str, text: str, shape: tuple[int, int]) -> None:
    """The CuTe layouts of the same fragments: A is M x K, B is N x K, first dimension fastest."""
    row = next(r for r in find_mma(family="mma.sync", a=a, k=k) if r.shapes[0][0] == 16)
    atom = row.atoms()[0]
    layout = atom.a_layout if role == "a" else atom.b_layout
    assert layout is not None
    if role == "b":
        layout = permute_dims(layout, (1, 0))
    written = parse_layout(text)
    assert fragment_layout(written, shape) == layout  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [8, 24, 256])
def test_wide_accumulators(n: int) -> None:
    """Distinct registers for any N, and equal to the layout where there is one."""
    seen = {accumulator_register(row, column) for row in range(64) for column in range(n)}
    assert len(seen) == 64 * n
    assert max(register for _, _, register in seen) == n // 2 - 1
    layout = find_mma("sm_90a", family="wgmma", a="f16", acc="f32")[0].atom(64, n).c_layout
    if n == 24:
        assert layout is None
        return
    assert layout is not None
    for row, column in itertools.product(range(64), range(n)):
        warp, lane, register = accumulator_register(row, column)
        assert at(layout, warp=warp, lane=lane, register=register) == (row, column)


SPARSE = [atom for atom in WARP if atom.row.sparse]


@pytest.mark.parametrize("atom", SPARSE, ids=str)
def test_metadata_covers_each_kept_element_once(atom: MmaAtom) -> None:
    layout = atom.metadata_layout
    assert layout is not None
    paired = BITS[atom.row.a] == 4 and atom.container_bits("a") == 4
    assert layout.shape == (16, atom.stored_k // (2 if paired else 1))
    assert layout.is_surjective
    bits = 4 if atom.row.a == "tf32" else 2
    assert layout.elements_per_thread * bits == 32
    assert layout.free_mask("register") == 0
    needed = layout.size * bits // 32
    readers = [lane for lane in range(32) if not lane & layout.free_mask("lane")]
    assert len(readers) == needed
    assert {lane % 4 for lane in readers} == set(range(needed // 8))


def test_metadata_places() -> None:
    """16-bit elements: rows g and g + 8 share a register; bytes: a lane each."""
    half = find_mma(family="mma.sp", a="f16", k=32)[0].atoms()[0].metadata_layout
    byte = find_mma(family="mma.sp", a="s8", k=64)[0].atoms()[0].metadata_layout
    assert half is not None
    assert byte is not None
    assert at(half, register=8, lane=0) == (8, 0)
    assert at(half, register=0, lane=1) == (0, 8)
    assert at(byte, register=8, lane=0) == (0, 8)
    assert at(byte, register=0, lane=1) == (8, 0)
    assert at(byte, register=0, lane=2) == (0, 16)


@pytest.mark.parametrize(
    "atom", [atom for atom in WARP if atom.row.scale is not None and atom.row.a == "e2m1"], ids=str
)
def test_scales(atom: MmaAtom) -> None:
    assert atom.row.scale is not None
    assert atom.scale_layouts is not None
    blocks = atom.k // atom.row.scale.vector
    assert blocks == int(atom.row.scale.size[0])
    a, b = atom.scale_layouts
    for lane, block in itertools.product(range(32), range(blocks)):
        assert at(a, register=block, lane=lane) == ((lane >> 2) + 8 * (lane & 1), block)
        assert at(b, register=block, lane=lane) == (lane >> 2, block)


def matrix_atoms(family: str) -> list[CopyAtom]:
    return list(find_copies(family=family))


@pytest.mark.parametrize("atom", matrix_atoms("ldmatrix") + matrix_atoms("stmatrix"), ids=str)
def test_matrix_copies(atom: CopyAtom) -> None:
    fragment, addresses = atom.fragment, atom.addresses
    assert fragment is not None
    assert addresses is not None
    assert fragment.is_injective
    assert fragment.is_surjective
    number = int(atom.instruction.split(".x")[1][0])
    assert fragment.shape[0] == number
    rows = fragment.shape[1]
    for lane in range(number * rows):
        assert addresses.apply({"lane": lane}) == (lane // rows, lane % rows, 0)
    if ".m8n8" in atom.instruction:
        for lane, j, half in itertools.product(range(32), range(number), (0, 1)):
            row, column = lane // 4, lane % 4 * 2 + half
            if ".trans" in atom.instruction:
                row, column = column, row
            assert fragment.apply({"register": 2 * j + half, "lane": lane}) == (j, row, column)
    assert atom.bits == 32 * number * (2 if ".m16n16" in atom.instruction else 1)


def test_ldmatrix_feeds_mma() -> None:
    """x4 gives A of m16n8k16 when the matrices are its quadrants, column of quadrants last."""
    load = next(c for c in matrix_atoms("ldmatrix") if c.name.endswith("m8n8.x4.shared.b16"))
    a = find_mma(family="mma.sync", a="f16", k=16)[0].atoms()[0].a_layout
    assert load.fragment is not None
    assert a is not None
    for lane, register in itertools.product(range(32), range(8)):
        j, row, column = load.fragment.apply({"lane": lane, "register": register})
        assert a.apply({"lane": lane, "register": register}) == (
            row + 8 * (j % 2),
            column + 8 * (j // 2),
        )


def test_tensor_memory_loads() -> None:
    plain = load_fragment("32x32b", 8)
    assert plain.apply({"lane": 17, "register": 5}) == (17, 5)
    wide = load_fragment("16x256b", 2)
    for lane, r in itertools.product(range(32), range(8)):
        row = lane // 4 + 8 * (r // 2 % 2)
        assert wide.apply({"lane": lane, "register": r}) == (row, lane % 4 * 2 + r % 2 + r // 4 * 8)
    middle = load_fragment("16x128b", 2)
    for lane, r in itertools.product(range(32), range(4)):
        row = lane // 4 + 8 * (r % 2)
        assert middle.apply({"lane": lane, "register": r}) == (row, lane % 4 + r // 2 * 4)
    narrow = load_fragment("16x64b", 4)
    for lane, r in itertools.product(range(32), range(4)):
        row = lane // 4 + 8 * (lane % 2)
        assert narrow.apply({"lane": lane, "register": r}) == (row, lane // 2 % 2 + 2 * r)
    split = load_fragment("16x32bx2", 4)
    assert split.apply({"lane": 19, "register": 2}) == (3, 6)


@pytest.mark.parametrize(
    ("m", "group", "stationary", "place"),
    [
        (128, 1, False, lambda row, column: (0, row, column)),
        (64, 1, False, lambda row, column: (0, row % 16 + row // 16 * 32, column)),
        (256, 2, False, lambda row, column: (row // 128, row % 128, column)),
        (128, 2, False, lambda row, column: (row // 64, row % 64 + column // 32 * 64, column % 32)),
        (64, 1, True, lambda row, column: (0, row + column // 32 * 64, column % 32)),
        (32, 1, True, lambda row, column: (0, row + column // 16 * 32, column % 16)),
    ],
)
def test_accumulators_in_tensor_memory(m, group, stationary, place) -> None:  # type: ignore[no-untyped-def]
    """N = 64: where each element of D lies, by data path."""
    layout = accumulator_layout(m, 64, group, stationary)
    assert layout is not None
    assert layout.is_surjective
    for row, column in itertools.product(range(m), range(64)):
        block, lane, tcolumn = place(row, column)
        point = {"row": lane, "column": tcolumn}
        if group == 2:
            point["block"] = block
        assert layout.apply(point) == (row, column)


def test_other_tensor_memory() -> None:
    with pytest.raises(LayoutError, match="no tensor-memory layout for M 96"):
        accumulator_layout(96, 64, 1, False)
    halves = operand_layout(128, 16, 16)
    assert halves.apply({"row": 77, "column": 3, "element": 1}) == (77, 7)
    scales = scale_layout(128, 4)
    assert scales.apply({"row": 5, "column": 2, "element": 3}) == (69, 3)
    assert scales.apply({"row": 37, "column": 2, "element": 3}) == (69, 3)


def test_names_are_unique() -> None:
    names = [f"{row.name} {row.a} {row.b} {row.acc}" for row in mma_rows()]
    assert len(set(names)) == len(names)
    copies = [atom.name for atom in copy_atoms() if atom.family != "cp.async"]
    assert len(set(copies)) == len(copies)


@pytest.mark.parametrize(
    ("gate", "chip", "allowed"),
    [
        ("80+", "sm_80", True),
        ("80+", "sm_75", False),
        ("90a", "sm_90a", True),
        ("90a", "sm_90", False),
        ("90a", "sm_100a", False),
        ("100f", "sm_103a", True),
        ("100f", "sm_100f", True),
        ("100f", "sm_100", False),
        ("100f", "sm_110a", False),
        ("120f", "sm_121f", True),
    ],
)
def test_gates(gate: str, chip: str, allowed: bool) -> None:
    assert admits(gate, chip) == allowed


def test_lookup_and_errors() -> None:
    row = find_mma("sm_90a", family="wgmma", a="bf16")[0]
    assert row.atom(64, 128).instruction == (
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"
    )
    with pytest.raises(LayoutError, match=r"no shape M 64, N 12; it has M 64: N 8..256 step 8"):
        row.atom(64, 12)
    with pytest.raises(LayoutError, match="needs one of 90a; sm_89 lacks it"):
        require_supported(row, "sm_89")
    with pytest.raises(LayoutError, match="'hopper' is no GPU architecture"):
        find_mma("hopper")


def test_third_party_rows() -> None:
    mine = MmaRow("toy", "toy.mma.m{m}n{n}k{k}", ((16, (8,)),), 16, "f16", "f16", "f32", ("80+",))
    copy = CopyAtom("toy", "toy.copy", "global", "shared", ("80+",), 32, 4)
    try:
        register_rows([mine, copy], "toy-plugin")
        assert find_mma(family="toy") == (mine,)
        assert find_copies("sm_80", family="toy") == (copy,)
        with pytest.raises(LayoutError, match="of other is already defined by toy-plugin"):
            register_rows([mine], "other")
        with pytest.raises(LayoutError, match="already defined by tile-cute"):
            register_rows([mma_rows()[0]], "other")
    finally:
        unregister_rows("toy-plugin")
    assert not find_mma(family="toy")

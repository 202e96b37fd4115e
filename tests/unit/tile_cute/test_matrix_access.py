"""ldmatrix and stmatrix for tiles of MMA operands: by enumeration, and in the simulator."""

import itertools

import numpy as np
import pytest
from simulated import kernel, move, pack, table
from tile_cute import gf2
from tile_cute.atoms import find_copies, find_mma
from tile_cute.atoms.tiled import tiled_fragment
from tile_cute.linear import (
    LinearLayout,
    MatrixSide,
    SharedRoundTrip,
    SharedSide,
    blocked,
    byte_matrix_access,
    matrix_access,
    matrix_side,
    plan_conversion,
    strided,
    swizzled_rows,
)

F16 = find_mma("sm_80", family="mma.sync", a="f16", acc="f32", k=16)[0].atoms()[0]
S8 = find_mma("sm_80", family="mma.sync", a="s8", k=32)[0].atoms()[0]
TILE = (64, 64, 64)


def offsets(shared: LinearLayout) -> dict[int, int]:
    return {element: offset for offset, element in enumerate(gf2.table(shared.flat("offset")))}


def check(side: MatrixSide, shared: LinearLayout, tile: LinearLayout, bits: int) -> None:
    """Registers receive what the instruction's own fragment takes from the addressed rows."""
    name = f"ldmatrix.sync.aligned.m8n8.x{side.matrices}{'.trans' if side.transposed else ''}"
    atom = next(c for c in find_copies() if c.name == f"{name}.shared.b16")
    assert atom.fragment is not None
    place, holds = offsets(shared), table(tile)
    for warp, access in itertools.product(range(tile.in_size("warp")), side.accesses):
        for lane in range(0, 32, 5):
            for k, register in enumerate(access.registers):
                byte = k * bits // 8
                j, row, column = atom.fragment.apply({"register": byte // 2, "lane": lane})
                start = side.address(8 * j + row, warp, access)
                wanted = start * bits // 8 + column * 2 + byte % 2
                element = int(holds[32 * warp + lane, register])
                assert place[element] * bits // 8 == wanted


CASES = [
    ("a", F16, 16, False, swizzled_rows((64, 64), (1, 0), 16, 128)),
    ("a", F16, 16, True, swizzled_rows((64, 64), (0, 1), 16, 128)),
    ("b", F16, 16, False, swizzled_rows((64, 64), (0, 1), 16, 128)),
    ("b", F16, 16, True, swizzled_rows((64, 64), (1, 0), 16, 64)),
    ("a", F16, 16, False, strided((64, 64), (1, 0))),
    ("a", S8, 8, False, swizzled_rows((64, 64), (1, 0), 8, 64)),
    ("c", F16, 16, False, swizzled_rows((64, 64), (1, 0), 16, 128)),
    ("c", F16, 16, True, swizzled_rows((64, 64), (0, 1), 16, 128)),
]


@pytest.mark.parametrize(("operand", "atom", "bits", "transposed", "shared"), CASES, ids=str)
def test_operands(operand, atom, bits, transposed, shared) -> None:  # type: ignore[no-untyped-def]
    tile = tiled_fragment(atom, operand, TILE, (2, 2))
    side = matrix_access(shared, tile, bits, transposed=transposed)
    assert side is not None
    assert side.matrices == 4
    assert side.transposed == transposed
    moved = sorted(r for access in side.accesses for r in access.registers)
    assert moved == list(range(tile.elements_per_thread))
    check(side, shared, tile, bits)


GRIDS = [(1, 4), (2, 2), (4, 1)]
ROWS = [
    blocked((64, 64), box, lanes, (4, 1), order)
    for order in ((1, 0), (0, 1))
    for box, lanes in (((1, 8), (4, 8)), ((8, 1), (8, 4)), ((1, 4), (2, 16)), ((2, 2), (4, 8)))
]


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("dst", range(len(ROWS)))
def test_vector_accesses_as_matrices(dst: int, grid: tuple[int, int]) -> None:
    """Where matrices can do what a plan's stores or loads do, they reach the same places."""
    found = 0
    for operand, bits in (("a", 16), ("b", 16), ("c", 16), ("a", 8), ("b", 8), ("c", 8)):
        tile = tiled_fragment(F16 if bits == 16 else S8, operand, TILE, grid)
        for plan in (
            plan_conversion(tile, ROWS[dst], bits),
            plan_conversion(ROWS[dst], tile, bits),
        ):
            if not isinstance(plan, SharedRoundTrip):
                continue
            for side, transposed in itertools.product((plan.store, plan.load), (False, True)):
                matrices = matrix_side(side, bits, transposed=transposed)
                if matrices is not None:
                    found += 1
                    assert reached(matrices, bits) == touched(side, bits)
    assert found or (dst, grid) not in ((0, (4, 1)), (4, (4, 1)))


def touched(side: SharedSide, bits: int) -> dict[tuple[int, int, int], int]:
    """(warp, lane, register) -> byte, for a plan's vector accesses."""
    return {
        (warp, lane, register): ((side.thread_offset(lane, warp) ^ access.offset) + at) * bits // 8
        for warp, lane in itertools.product(range(1 << len(side.warp_map)), range(32))
        for access in side.accesses[0]
        for at, register in enumerate(access.registers)
    }


def reached(side: MatrixSide, bits: int) -> dict[tuple[int, int, int], int]:
    """(warp, lane, register) -> byte, by the fragment of the instruction."""
    name = f"ldmatrix.sync.aligned.m8n8.x{side.matrices}{'.trans' if side.transposed else ''}"
    (fragment,) = (c.fragment for c in find_copies() if c.name == f"{name}.shared.b16")
    assert fragment is not None
    places: dict[tuple[int, int, int], int] = {}
    for warp, access in itertools.product(range(1 << len(side.warp_map)), side.accesses):
        for lane, (at, register) in itertools.product(range(32), enumerate(access.registers)):
            byte = at * bits // 8
            j, row, column = fragment.apply({"register": byte // 2, "lane": lane})
            start = side.address(8 * j + row, warp, access) * bits // 8
            places[warp, lane, register] = start + column * 2 + byte % 2
    return places


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("operand", ["a", "b"])
def test_bytes_are_transposed(operand: str, width: int) -> None:
    """Registers hold four bytes along K, rows of the buffer run along M or N."""
    tile = tiled_fragment(S8, operand, TILE, (1, 1))
    shared = swizzled_rows((64, 64), (0, 1) if operand == "a" else (1, 0), 8, width)
    side = byte_matrix_access(shared, tile)
    assert side is not None
    assert (side.rows, side.matrices, side.words) == (16, 2, 4)
    place, holds = offsets(shared), table(tile)
    moved = sorted(r for access in side.accesses for r in access.registers)
    assert moved == list(range(tile.elements_per_thread))
    name = "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8"
    (fragment,) = (copy.fragment for copy in find_copies() if copy.name == name)
    assert fragment is not None
    for access, lane in itertools.product(side.accesses, range(32)):
        for at, register in enumerate(access.registers):
            j, row, column = fragment.apply({"register": at, "lane": lane})
            wanted = side.address(16 * j + row, 0, access) + column
            assert place[int(holds[lane, register])] == wanted


def test_bytes_that_are_not() -> None:
    rows, columns = (swizzled_rows((64, 64), order, 8, 64) for order in ((1, 0), (0, 1)))
    assert byte_matrix_access(rows, tiled_fragment(S8, "a", TILE, (1, 1))) is None
    assert byte_matrix_access(columns, tiled_fragment(S8, "b", TILE, (1, 1))) is None
    apart = tiled_fragment(S8, "b", TILE, (1, 4))  # columns 8 to 15 are another warp's
    assert byte_matrix_access(rows, apart) is None


def test_conflicts_are_counted() -> None:
    tile = tiled_fragment(F16, "a", TILE, (2, 2))
    good = matrix_access(swizzled_rows((64, 64), (1, 0), 16, 128), tile, 16)
    bad = matrix_access(strided((64, 64), (1, 0)), tile, 16)
    assert good is not None
    assert bad is not None
    assert good.wavefronts == good.ideal
    assert bad.wavefronts == 8 * bad.ideal


def test_what_does_not_fit() -> None:
    rows = swizzled_rows((64, 64), (1, 0), 16, 128)
    columns = swizzled_rows((64, 64), (0, 1), 16, 128)
    a = tiled_fragment(F16, "a", TILE, (2, 2))
    assert matrix_access(columns, a, 16) is None
    assert matrix_access(rows, a, 16, transposed=True) is None
    assert matrix_access(rows, a, 64) is None
    plain = blocked((64, 64), (1, 1), (1, 32), (4, 1), (1, 0))
    assert matrix_access(rows, plain, 16) is None
    assert matrix_access(rows, blocked((64, 64), (1, 1), (8, 2), (4, 2), (1, 0)), 16) is None


@pytest.mark.parametrize("transposed", [False, True])
def test_in_the_simulator(transposed: bool) -> None:
    """A warp loads an operand, and stores it again with stmatrix."""
    import tile_sim

    tile = tiled_fragment(F16, "a", (16, 8, 64))
    shared = swizzled_rows(
        (16, 64), (0, 1) if transposed else (1, 0), 16, 32 if transposed else 128
    )
    side = matrix_access(shared, tile, 16, transposed=transposed)
    assert side is not None
    rng = np.random.default_rng(11)
    matrix = rng.integers(0, 1 << 16, (16, 64)).astype(np.uint64)
    image = matrix.reshape(-1)[np.array(gf2.table(shared.flat("offset")))].astype(np.uint16)
    wanted = pack(matrix, tile, 16)
    count = wanted.shape[1]
    got, stored = np.zeros_like(wanted), np.zeros(512, np.uint32)
    text = kernel(_body(side, count), ["image", "regs", "stored"], "sm_90")
    arrays = [image.view(np.uint32), got, stored]
    tile_sim.Module(text).launch("k", (1, 1, 1), (32, 1, 1), arrays)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(stored.view(np.uint16), image)


def _body(side: MatrixSide, count: int) -> str:
    lines = [
        ".shared .align 128 .b8 buf[2048]; .shared .align 128 .b8 other[2048];",
        "mov.u32 %r699, %tid.x; mov.u32 %r1, buf; mov.u32 %r2, other; shl.b32 %r3, %r699, 2;",
    ]
    for i in range(16):
        lines.append("cvt.u64.u32 %rd1, %r3; add.u64 %rd2, image, %rd1; add.u32 %r4, %r1, %r3;")
        lines.append(f"ld.global.b32 %r5, [%rd2+{128 * i}]; st.shared.b32 [%r4+{128 * i}], %r5;")
    lines += ["bar.warp.sync -1;", "mov.b32 %r10, 0;"]
    for bit, column in enumerate(side.lane_map):
        lines.append(f"bfe.u32 %r11, %r699, {bit}, 1; mul.lo.u32 %r11, %r11, {column};")
        lines.append("xor.b32 %r10, %r10, %r11;")
    trans = ".trans" if side.transposed else ""
    for access in side.accesses:
        first = access.registers[0] // 2
        assert [r // 2 for r in access.registers[::2]] == list(range(first, first + side.matrices))
        regs = "{" + ", ".join(f"%r{100 + first + i}" for i in range(side.matrices)) + "}"
        lines.append(f"xor.b32 %r12, %r10, {access.offset}; shl.b32 %r12, %r12, 1;")
        lines.append("add.u32 %r13, %r12, %r1; add.u32 %r14, %r12, %r2;")
        form = f"sync.aligned.m8n8.x{side.matrices}{trans}.shared.b16"
        lines.append(f"ldmatrix.{form} {regs}, [%r13]; stmatrix.{form} [%r14], {regs};")
    lines.append("bar.warp.sync -1;")
    for i in range(16):
        lines.append("cvt.u64.u32 %rd1, %r3; add.u64 %rd2, stored, %rd1; add.u32 %r4, %r2, %r3;")
        lines.append(f"ld.shared.b32 %r5, [%r4+{128 * i}]; st.global.b32 [%rd2+{128 * i}], %r5;")
    return "\n".join(lines + move("st", "regs", 100, count, False))

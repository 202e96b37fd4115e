"""Every row of the copy registry in the simulator, on distinct values.

Matrix copies (ldmatrix, stmatrix) are in `test_atoms_simulated.py`; what remains without a proof is
in `EXCEPTIONS`, with its reason, and the simulator refuses it.
"""

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import test_atoms_simulated
import tile_sim
from simulated import kernel
from support import tensor_memory as tm
from test_atoms_ptxas import copy_statement
from test_sparse_simulated import swapped
from tile_cute import gf2
from tile_cute.atoms import CopyAtom, copy_atoms
from tile_cute.atoms.descriptors import blackwell_descriptor, canonical_buffer, match_operand

REASON = "the simulator has no im2col maps along W alone: the PTX ISA gives them in figures only"
EXCEPTIONS = {atom: REASON for atom in copy_atoms() if ".im2col::w" in atom.name}


def rows(*families: str) -> list[CopyAtom]:
    return [a for a in copy_atoms() if a.family in families and a not in EXCEPTIONS]


VECTORS, ASYNC, BULK = rows("vector"), rows("cp.async"), rows("bulk")
LOADS, STORES = rows("tma load"), rows("tma store", "tma reduce")
TENSOR, UNPACKED = rows("tcgen05.ld", "tcgen05.st"), rows("tcgen05.cp")
PROVED = [*VECTORS, *ASYNC, *BULK, *LOADS, *STORES, *TENSOR, *UNPACKED]
PROVED += [*test_atoms_simulated.PLAIN, *test_atoms_simulated.EXPANDING]
SHARED = ".shared .align 1024 .b8 buf[4096];\n.shared .align 8 .b64 bar;\n"
START = (
    "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, buf; mov.u32 %r3, bar;\n"
    "@%p1 mbarrier.init.shared.b64 [%r3], 1;\nbarrier.cluster.arrive; barrier.cluster.wait;\n"
)
WAIT = "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra WAIT;\n"


def test_every_row_is_proved() -> None:
    everything = set(copy_atoms())
    assert not {atom.name for atom in everything - set(PROVED) - set(EXCEPTIONS)}
    assert not set(PROVED) & set(EXCEPTIONS)
    assert len(PROVED) == len(set(PROVED))
    assert len(EXCEPTIONS) == 18


@pytest.mark.parametrize("atom", EXCEPTIONS, ids=str)
def test_exceptions_are_refused(atom: CopyAtom) -> None:
    statement = copy_statement(atom)
    assert statement is not None
    text = ".reg .b16 %h<2>; .reg .b32 %r<100>; .reg .b64 %rd<2>;\n" + statement
    with pytest.raises(tile_sim.SimError, match="is not supported"):
        tile_sim.Module(
            f".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k() {{\n{text}\n}}"
        )


def run(
    body: str, names: list[str], arguments: list[Any], target: str = "sm_100a", ctas: int = 1
) -> None:
    module = tile_sim.Module(kernel(body, names, target))
    module.launch("k", (ctas, 1, 1), (32, 1, 1), arguments, cluster=(ctas, 1, 1))


def byte_by_byte(count: int, source: tuple[str, str], target: tuple[str, str]) -> list[str]:
    """Move `count` bytes of a thread; both ends are (space, address)."""
    lines = []
    for i in range(count):
        lines.append(f"ld.{source[0]}.u8 %r30, [{source[1]}+{i}];")
        lines.append(f"st.{target[0]}.u8 [{target[1]}+{i}], %r30;")
    return lines


@pytest.mark.parametrize("atom", VECTORS, ids=str)
def test_vectors(atom: CopyAtom) -> None:
    """All 32 threads, each its own piece; the other way goes byte by byte."""
    size, found = atom.bits // 8, re.fullmatch(r"(ld|st)\.(\w+)\.(?:v(\d)\.)?b(\d+)", atom.name)
    assert found is not None
    number, width = int(found[3] or 1), int(found[4])
    prefix = {8: "%h", 16: "%h", 32: "%r", 64: "%rd"}[width]
    first = {"%h": 0, "%r": 10, "%rd": 10}[prefix]
    regs = ", ".join(f"{prefix}{first + i}" for i in range(number))
    regs = f"{{{regs}}}" if number > 1 else regs
    lines = [
        SHARED + f"mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, {size}; mov.u32 %r3, buf;",
        "add.u32 %r3, %r3, %r2; cvt.u64.u32 %rd1, %r2; add.u64 %rd2, x, %rd1;",
        "add.u64 %rd3, y, %rd1;",
    ]
    shared = "shared" in atom.name
    if shared:
        lines += byte_by_byte(size, ("global", "%rd2"), ("shared", "%r3"))
    place = "%r3" if shared else "%rd2"
    if found[1] == "ld":
        lines.append(f"{atom.instruction} {regs}, [{place}];")
        lines.append(f"{atom.instruction.replace('ld', 'st').replace('shared', 'global')} "
                     f"[%rd3], {regs};")  # fmt: skip
    else:
        load = atom.instruction.replace("st", "ld", 1).replace("shared", "global")
        lines.append(f"{load} {regs}, [%rd2];")
        if shared:
            lines += [f"mov.u32 %r31, 0; st.shared.u8 [%r3+{i}], %r31;" for i in range(size)]
        lines.append(f"{atom.instruction} [{'%r3' if shared else '%rd3'}], {regs};")
        if shared:
            lines += byte_by_byte(size, ("shared", "%r3"), ("global", "%rd3"))
    x = np.random.default_rng(1).integers(0, 256, 32 * size).astype(np.uint8)
    y = np.zeros_like(x)
    run("\n".join(lines), ["x", "y"], [x, y])
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("atom", ASYNC, ids=lambda atom: f"{atom.name} {atom.bits // 8}")
def test_asynchronous_vectors(atom: CopyAtom) -> None:
    size = atom.bits // 8
    words = size // 4
    lines = [
        SHARED + f"mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, {size}; mov.u32 %r3, buf;",
        "add.u32 %r3, %r3, %r2; cvt.u64.u32 %rd1, %r2; add.u64 %rd2, x, %rd1;",
        f"add.u64 %rd3, y, %rd1; {atom.instruction} [%r3], [%rd2], {size};",
        "cp.async.commit_group; cp.async.wait_group 0;",
    ]
    for i in range(words):
        lines.append(f"ld.shared.b32 %r10, [%r3+{4 * i}]; st.global.b32 [%rd3+{4 * i}], %r10;")
    x = np.random.default_rng(2).integers(0, 256, 32 * size).astype(np.uint8)
    y = np.zeros_like(x)
    run("\n".join(lines), ["x", "y"], [x, y])
    np.testing.assert_array_equal(y, x)


DUMP = """ld.shared.b32 %r30, [%r6]; ld.shared.b32 %r31, [%r6+128];
st.global.b32 [%rd3], %r30; st.global.b32 [%rd3+128], %r31;"""


@pytest.mark.parametrize("atom", BULK, ids=str)
def test_bulk(atom: CopyAtom) -> None:
    """256 bytes; from one CTA of a pair to the other where the instruction goes there."""
    lines = [SHARED + START, "mov.u32 %r9, %cluster_ctarank; mul.lo.u32 %r8, %r9, 256;"]
    lines += ["cvt.u64.u32 %rd1, %r8; add.u64 x, x, %rd1; add.u64 y, y, %rd1;"]
    lines += ["shl.b32 %r4, %r1, 2; add.u32 %r5, %r2, %r4; cvt.u64.u32 %rd2, %r4;"]
    lines += ["add.u64 %rd3, y, %rd2; add.u64 %rd4, x, %rd2; add.u32 %r6, %r5, 0;"]
    fill = (
        "ld.global.b32 %r30, [%rd4]; st.shared.b32 [%r5], %r30; ld.global.b32 %r31, [%rd4+128];"
        " st.shared.b32 [%r5+128], %r31; fence.proxy.async.shared::cta; bar.warp.sync -1;"
    )
    expect = "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 256;"
    ctas = 1
    if atom.target == "global":
        lines += [fill, f"@%p1 {atom.instruction} [y], [%r2], 256;"]
        lines += ["@%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;"]
    elif atom.source == "global":
        lines += [expect, f"@%p1 {atom.instruction} [%r2], [x], 256, [%r3];", WAIT, DUMP]
    else:
        ctas = 2
        lines += [fill, expect, "barrier.cluster.arrive; barrier.cluster.wait;"]
        lines += ["xor.b32 %r10, %r9, 1; add.u32 %r11, %r2, 1024; add.u32 %r6, %r5, 1024;"]
        lines += ["mapa.shared::cluster.u32 %r12, %r11, %r10;"]
        lines += ["mapa.shared::cluster.u32 %r13, %r3, %r10;"]
        lines += [f"@%p1 {atom.instruction} [%r12], [%r2], 256, [%r13];", WAIT, DUMP]
    lines.append("barrier.cluster.arrive; barrier.cluster.wait;")
    x = np.random.default_rng(3).integers(0, 256, (ctas, 256)).astype(np.uint8)
    y = np.zeros_like(x)
    run("\n".join(lines), ["x", "y"], [x, y], ctas=ctas)
    np.testing.assert_array_equal(y, x[::-1])


def tensor_copy(atom: CopyAtom) -> tuple[int, str, str]:
    """(rank, mode, coordinates of the copied box)."""
    rank = int(atom.name.split(".tensor.")[1][0])
    mode = next(m for m in ("im2col", "gather4", "scatter4", "tile") if m in atom.name)
    if mode in ("gather4", "scatter4"):
        return rank, mode, "4, 5, 0, 3, 1"
    return rank, mode, ", ".join(["4", "1", "2", "0", "1"][:rank])


SIZES = (2, 3, 4, 4, 8)  # outermost first


def tensor_map(rank: int, mode: str, x: np.ndarray) -> tile_sim.TensorMap:
    if mode == "im2col":
        corner = (0,) * (rank - 2)
        return tile_sim.TensorMap(x, (), channels=4, pixels=4, lower=corner, upper=corner)
    if mode in ("gather4", "scatter4"):
        return tile_sim.TensorMap(x, box=(4, 1))
    return tile_sim.TensorMap(x, box=(4, 2, 2, 2, 1)[:rank])


def elements(rank: int, mode: str, x: np.ndarray) -> list[tuple[int, ...]]:
    """Places of the copied elements in the array, in the order of shared memory; -1: outside."""
    if mode in ("gather4", "scatter4"):
        return [(row, 4 + c) for row in (5, 0, 3, 1) for c in range(4)]
    start = [4, 1, 2, 0, 1][:rank][::-1]
    if mode == "im2col":
        pixels = list(np.ndindex(*x.shape[:-1]))
        first = pixels.index(tuple(start[:-1]))
        return [(*pixel, 4 + c) for pixel in pixels[first : first + 4] for c in range(4)]
    box = (4, 2, 2, 2, 1)[:rank][::-1]
    return [tuple(s + i for s, i in zip(start, at, strict=True)) for at in np.ndindex(*box)]


def array_of(rank: int, mode: str, rng: np.random.Generator) -> np.ndarray:
    shape = (6, 8) if mode in ("gather4", "scatter4") else SIZES[5 - rank :]
    return rng.integers(0, 1 << 31, shape, np.uint32)


def within(place: tuple[int, ...], x: np.ndarray) -> bool:
    return all(0 <= i < n for i, n in zip(place, x.shape, strict=True))


@pytest.mark.parametrize("atom", LOADS, ids=str)
def test_tensor_loads(atom: CopyAtom) -> None:
    """A box that may end outside of the tensor; with multicast to both CTAs of a pair."""
    rank, mode, coordinates = tensor_copy(atom)
    x = array_of(rank, mode, np.random.default_rng(4))
    places = elements(rank, mode, x)
    ctas = 2 if "multicast" in atom.name else 1
    offsets = ", {" + ", ".join(["%h0"] * (rank - 2)) + "}" if mode == "im2col" else ""
    mask = ", %h1" if ctas == 2 else ""
    lines = [SHARED + START, "mov.u32 %r9, %cluster_ctarank; setp.eq.u32 %p3, %r9, 0;"]
    lines += [f"@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], {4 * len(places)};"]
    lines += ["barrier.cluster.arrive; barrier.cluster.wait; and.pred %p4, %p1, %p3;"]
    lines += ["mov.b16 %h0, 0; mov.b16 %h1, 3;"]
    tensor = f"[map, {{{coordinates}}}]"
    lines += [f"@%p4 {atom.instruction} [%r2], {tensor}, [%r3]{offsets}{mask};", WAIT]
    lines += [f"mul.lo.u32 %r8, %r9, {4 * len(places)}; cvt.u64.u32 %rd1, %r8;"]
    lines += ["add.u64 y, y, %rd1; shl.b32 %r4, %r1, 2; add.u32 %r5, %r2, %r4;"]
    lines += [f"cvt.u64.u32 %rd2, %r4; add.u64 %rd3, y, %rd2; setp.lt.u32 %p5, %r1, {len(places)};"]
    lines += ["@%p5 ld.shared.b32 %r30, [%r5]; @%p5 st.global.b32 [%rd3], %r30;"]
    lines += ["barrier.cluster.arrive; barrier.cluster.wait;"]
    y = np.zeros((ctas, len(places)), np.uint32)
    assert len(places) <= 32
    run("\n".join(lines), ["map", "y"], [tensor_map(rank, mode, x), y], ctas=ctas)
    wanted = [x[place] if within(place, x) else 0 for place in places]
    np.testing.assert_array_equal(y, np.broadcast_to(wanted, y.shape))


REDUCTIONS = {
    "add": lambda a, b: a + b,
    "min": np.minimum,
    "max": np.maximum,
    "inc": lambda a, b: np.where(a >= b, 0, a + 1),
    "dec": lambda a, b: np.where((a == 0) | (a > b), b, a - 1),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("atom", STORES, ids=str)
def test_tensor_stores_and_reductions(atom: CopyAtom) -> None:
    """The box's elements change, and no others; what lies outside of the tensor is dropped."""
    rank, mode, coordinates = tensor_copy(atom)
    rng = np.random.default_rng(5)
    y = array_of(rank, mode, rng)
    places, wanted = elements(rank, mode, y), y.copy()
    data = rng.integers(0, 1 << 31, len(places), np.uint32)
    data[::3] = y[places[0]]
    combine = next((f for word, f in REDUCTIONS.items() if f".{word}." in atom.name), None)
    for value, place in zip(data, places, strict=True):
        if within(place, y):
            wanted[place] = value if combine is None else combine(y[place], value)
    count = len(places)
    lines = [SHARED + START, f"setp.lt.u32 %p5, %r1, {count}; shl.b32 %r4, %r1, 2;"]
    lines += ["add.u32 %r5, %r2, %r4; cvt.u64.u32 %rd2, %r4; add.u64 %rd3, x, %rd2;"]
    lines += ["@%p5 ld.global.b32 %r30, [%rd3]; @%p5 st.shared.b32 [%r5], %r30;"]
    lines += ["fence.proxy.async.shared::cta; bar.warp.sync -1; @!%p1 bra END;"]
    lines += [f"{atom.instruction} [map, {{{coordinates}}}], [%r2];"]
    lines += ["cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nEND:"]
    run("\n".join(lines), ["x", "map"], [data, tensor_map(rank, mode, y)])
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("atom", TENSOR, ids=str)
def test_tensor_memory_and_registers(atom: CopyAtom) -> None:
    """Loads: registers as the layout says; stores: the cells as it says, and no others."""
    fragment = atom.fragment
    assert fragment is not None
    count, columns = fragment.elements_per_thread, fragment.shape[1]
    width = max(8, columns)
    regs = ", ".join(f"%r{200 + i}" for i in range(count))
    half = f", {columns // 2}" if "x32bx2" in atom.name else ""
    lanes = np.array(gf2.table(fragment.flat("lane")))
    cells = lanes[:, None] ^ np.array(gf2.table(fragment.flat("register")))[None, :]
    rows_, columns_ = np.divmod(cells, columns)
    start = tm.garbage(1, width)
    values = np.random.default_rng(6).integers(0, 1 << 32, (128, count), np.uint32)
    place = f"mul.wide.u32 %rd7, %r1, {4 * count}; add.u64 %rd8, image, %rd7;"
    move = [f"add.u32 %r199, %r6, %r20; {place}"]
    if atom.family == "tcgen05.ld":
        move += [f"{atom.instruction} {{{regs}}}, [%r199]{half};", "tcgen05.wait::ld.sync.aligned;"]
        move += [f"st.global.b32 [%rd8+{4 * i}], %r{200 + i};" for i in range(count)]
    else:
        move += [f"ld.global.b32 %r{200 + i}, [%rd8+{4 * i}];" for i in range(count)]
        move += [f"{atom.instruction} [%r199]{half}, {{{regs}}};", "tcgen05.wait::st.sync.aligned;"]
    body = tm.text("", width, 2048).replace("setp.eq.u32 %p7, %r30, 0;", "\n".join(move) + "\n"
        "setp.eq.u32 %p7, %r30, 0;")  # fmt: skip
    body = re.sub(r"(?s)FILL:.*?FILLED:", "", body)
    image, out = values.copy(), np.zeros_like(start)
    text = kernel(body, ["image", "start", "out"], "sm_100a")
    tile_sim.Module(text).launch("k", (1, 1, 1), (128, 1, 1), [image, start, out])
    thread = np.arange(128)
    at = (thread // 32 * 32)[:, None] + rows_[thread % 32], columns_[thread % 32]
    if atom.family == "tcgen05.ld":
        np.testing.assert_array_equal(image, start[0][at])
        values = start[0][at]
    wanted = start.copy()
    wanted[0][at] = values
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("atom", UNPACKED, ids=str)
def test_shared_to_tensor_memory(atom: CopyAtom) -> None:
    """Distinct elements of a K-major buffer arrive in the places that the layout names."""
    layout = atom.fragment
    assert layout is not None
    group, (lines, columns) = 2 if "cta_group::2" in atom.name else 1, layout.shape
    bits = 4 if "b4x16" in atom.name else 6 if "b6x16" in atom.name else 8
    rng = np.random.default_rng(10)
    small = rng.integers(0, 1 << bits, (group, lines, 4 * columns)).astype(np.uint8)
    spread = (small << (2 if bits == 4 else 0)).view(np.uint32)
    buffer = canonical_buffer(max(lines, 8), 4 * columns, 8, "K", "none")
    image = np.zeros((group, 8192), np.uint8)
    order = np.array(gf2.table(buffer.flat("offset")))
    padded = np.zeros((group, max(lines, 8), 4 * columns), np.uint8)
    for index in np.ndindex(group, lines, columns // 4):
        part = small[index[0], index[1], 16 * index[2] : 16 * index[2] + 16]
        word = sum(int(v) << bits * i for i, v in enumerate(part))
        packed = np.frombuffer(word.to_bytes(16, "little"), np.uint8)
        padded[index[0], index[1], 16 * index[2] : 16 * index[2] + 16] = packed
    for cta in range(group):
        image[cta, : padded[cta].size] = padded[cta].reshape(-1)[order]
    start = tm.garbage(group, 8)
    wanted, out = start.copy(), np.zeros_like(start)
    warps_only = ".4x256b" in atom.name
    for cta, row, column in np.ndindex(group, layout.in_size("row"), columns):
        lane = 32 * row + 31 if warps_only else row
        wanted[cta, lane, column] = spread[cta][layout.apply({"row": row, "column": column})]
    word = blackwell_descriptor(0, match_operand(buffer, 8))
    at = 31 << 16 if warps_only else 0
    issue = f"add.u64 %rd21, %rd20, {word}; add.u32 %r40, %r6, {at};"
    body = tm.text(f"{issue} {atom.instruction} [%r40], %rd21;", 8, 8192, group)
    text = kernel(body, ["image", "start", "out"], "sm_100a")
    tile_sim.Module(text).launch(
        "k", (group, 1, 1), (128, 1, 1), [image, start, out], cluster=(group, 1, 1)
    )
    np.testing.assert_array_equal(out, wanted)


ONE_OF_EACH = {
    re.sub(r"\.x\d+\.", ".", atom.name): atom
    for atom in (*TENSOR, *UNPACKED)
    if atom.fragment is not None and atom.fragment.shape[1] <= 32 and "group::2" not in atom.name
}


@pytest.mark.parametrize("atom", ONE_OF_EACH.values(), ids=str)
def test_a_planted_wrong_bit_is_caught(atom: CopyAtom) -> None:
    """Each exchange of neighbours among the bits that mean something."""
    layout = atom.fragment
    assert layout is not None
    prove = test_shared_to_tensor_memory if atom in UNPACKED else test_tensor_memory_and_registers
    bits = [(s, i) for s, b in layout.bases.items() for i, v in enumerate(b) if any(v)]
    for first, second in pairwise([*bits, bits[0]] if len(bits) > 2 else bits):
        with pytest.raises(AssertionError, match="not equal"):
            prove(replace(atom, fragment=swapped(layout, first, second)))

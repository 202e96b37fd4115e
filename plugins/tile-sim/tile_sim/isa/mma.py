"""`mma.sync`: dense, block-scaled and the first-generation shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tile_sim.errors import SimError
from tile_sim.isa.common import B32, B64
from tile_sim.isa.warp import aligned_sync, full
from tile_sim.machine.group import Group
from tile_sim.numeric import elements, fragments
from tile_sim.numeric.elements import ELEMENTS, Element
from tile_sim.program.decode import Decode, Getter, Sync, instruction
from tile_sim.program.types import TYPES
from tile_sim.ptx.syntax import Operand

Array = np.ndarray
Shape = tuple[int, int, int]

# Legal K for (M, width of A in bits); N is 8.
_SHAPES: dict[int, tuple[Shape, ...]] = {
    64: ((8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)),
    32: ((16, 8, 4), (16, 8, 8)),
    16: ((16, 8, 8), (16, 8, 16)),
    8: ((8, 8, 16), (16, 8, 16), (16, 8, 32)),
    4: ((8, 8, 32), (16, 8, 32), (16, 8, 64)),
    1: ((8, 8, 128), (16, 8, 128), (16, 8, 256)),
}
_FLOAT8 = ("e4m3", "e5m2")
_FLOAT6 = ("e2m3", "e3m2", "e2m1")
_ACCUMULATORS = {"f16": 16, "f32": 32, "s32": 32, "f64": 64}
# What A and B may be together, by accumulator.
_OPERANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "f16": (("f16",), _FLOAT8 + _FLOAT6),
    "f32": (("f16",), ("bf16",), ("tf32",), _FLOAT8 + _FLOAT6),
    "s32": (("u8", "s8"), ("u4", "s4"), ("b1",)),
    "f64": (("f64",),),
}


@dataclass(frozen=True)
class Form:
    """The static part of an `mma.sync`."""

    shape: Shape
    a: Element
    b: Element
    accumulator: str
    saturate: bool = False
    bit_op: str | None = None

    @property
    def c_bits(self) -> int:
        return _ACCUMULATORS[self.accumulator]


def take_shape(cx: Decode) -> Shape:
    for mod in cx.mods:
        if mod.startswith("m") and "n" in mod and "k" in mod:
            try:
                m, rest = mod[1:].split("n")
                n, k = rest.split("k")
                shape = (int(m), int(n), int(k))
            except ValueError:
                continue
            cx.mods.remove(mod)
            return shape
    raise cx.error("needs a shape such as .m16n8k16")


def take_types(cx: Decode) -> tuple[str, str, str, str]:
    """`.dtype.atype.btype.ctype`, in this order."""
    names = [m for m in cx.mods if m in ELEMENTS or m in _ACCUMULATORS]
    if len(names) != 4:
        cx.fail("needs the four types of D, A, B and C")
    for name in names:
        cx.mods.remove(name)
    return names[0], names[1], names[2], names[3]


@instruction("mma.sync.aligned")
def mma(cx: Decode) -> Sync:
    shape = take_shape(cx)
    layout_a, layout_b = _take_layouts(cx)
    kind = cx.prefixed("kind::")
    if cx.flag("block_scale"):
        return _block_scaled(cx, shape, kind)
    d, a, b, c = take_types(cx)
    saturate = cx.flag("satfinite")
    bit_op = cx.option("xor", "and")
    if bit_op and not cx.flag("popc"):
        cx.fail("needs .popc")
    cx.done(4)
    if shape == (8, 8, 4) and a == "f16":
        return _volta(cx, layout_a, layout_b, d, c)
    if (layout_a, layout_b) != ("row", "col"):
        cx.fail("is .row.col only")
    if d != c or not any(a in types and b in types for types in _OPERANDS.get(d, ())):
        cx.fail(f"cannot multiply .{a} by .{b} into .{d} from .{c}")
    if (a in _FLOAT6 or b in _FLOAT6) and kind != "f8f6f4":
        cx.fail("this type needs .kind::f8f6f4")
    form = Form(shape, ELEMENTS[a], ELEMENTS[b], d, saturate, bit_op)
    _check_shape(cx, form)
    return _dense(cx, form)


def _take_layouts(cx: Decode) -> tuple[str, str]:
    return cx.one_of("row", "col"), cx.one_of("row", "col")


def _check_shape(cx: Decode, form: Form) -> None:
    if form.shape not in _SHAPES[form.a.bits] or form.a.bits != form.b.bits:
        m, n, k = form.shape
        cx.fail(f"no shape m{m}n{n}k{k} for .{form.a.name}")


def gather(g: Group, gets: list[Getter], order: Array, bits: int, rows: int) -> Array:
    """Registers of a fragment to a matrix of raw elements, `[warps, rows, columns]`."""
    width = 8 if bits == 64 else 4
    stacked = np.empty((len(g.rows), 32, len(gets)), f"<u{width}")
    for i, get in enumerate(gets):
        stacked[:, :, i] = get(g)
    flat = elements.unpack(stacked.reshape(len(g.rows), -1), bits)
    return flat[:, order].reshape(len(g.rows), rows, -1)


def sources(cx: Decode, which: int | Operand, count: int, bits: int) -> list[Getter]:
    items = cx.vector(which)
    if len(items) != count:
        cx.fail(f"needs {count} registers, found {len(items)}")
    return [cx.src(item, B64 if bits == 64 else B32) for item in items]


def targets(cx: Decode, which: int | Operand, count: int, bits: int) -> list[int]:
    items = cx.vector(which)
    if len(items) != count:
        cx.fail(f"needs {count} registers, found {len(items)}")
    return [cx.slot(item, B64 if bits == 64 else B32) for item in items]


def scatter(g: Group, slots: list[int], order: Array, matrix: Array) -> None:
    """A matrix (`[warps, rows, columns]`, in its own type) to the registers of a fragment."""
    rows = len(g.rows)
    width = 8 if matrix.dtype.itemsize == 8 else 4
    flat = np.empty((rows, len(order)), matrix.dtype)
    flat[:, order] = matrix.reshape(rows, -1)
    registers = flat.view(f"<u{width}").reshape(rows, 32, len(slots))
    for i, slot in enumerate(slots):
        g.put(slot, registers[:, :, i])


def finish(total: Array, accumulator: str, saturate: bool) -> Array:
    if accumulator == "f32":
        return elements.to_f32(total)
    if accumulator == "f16":
        return elements.to_f16(total)
    if accumulator == "s32":
        return elements.to_s32(total, saturate)
    return total


def read_accumulator(raw: Array, accumulator: str) -> Array:
    return ELEMENTS[accumulator].decode(raw)


def multiply(a: Array, b: Array, bit_op: str | None) -> Array:
    """Exact for integers and bits; binary64 sums for floating operands."""
    product = np.matmul(a, b)
    if bit_op == "xor":
        return a.sum(axis=-1)[..., None] + b.sum(axis=-2)[..., None, :] - 2 * product
    return product


def _dense(cx: Decode, form: Form) -> Sync:
    m, n, k = form.shape
    order_a, count_a = fragments.a_order(m, k, form.a.bits)
    order_b, count_b = fragments.b_order(k, n, form.b.bits)
    order_c, count_c = fragments.c_order(m, n, form.c_bits)
    slots = targets(cx, 0, count_c, form.c_bits)
    a = sources(cx, 1, count_a, form.a.bits)
    b = sources(cx, 2, count_b, form.b.bits)
    c = sources(cx, 3, count_c, form.c_bits)

    def execute(g: Group) -> None:
        require_whole(g)
        if "products" in g.wave.settings.skipped:
            return
        x = form.a.decode(gather(g, a, order_a, form.a.bits, m))
        y = form.b.decode(gather(g, b, order_b, form.b.bits, k))
        z = read_accumulator(gather(g, c, order_c, form.c_bits, m), form.accumulator)
        total = multiply(x, y, form.bit_op) + z
        scatter(g, slots, order_c, finish(total, form.accumulator, form.saturate))

    return aligned_sync(execute)


def require_whole(g: Group) -> None:
    if g.mask is not None:
        raise SimError("divergent", "a matrix instruction needs all 32 threads of the warp")


# --- mma.m8n8k4 ---------------------------------------------------------------------------------


def _volta(cx: Decode, layout_a: str, layout_b: str, d: str, c: str) -> Sync:
    a, b = sources(cx, 1, 2, 16), sources(cx, 2, 2, 16)
    count_c, count_d = (4 if t == "f16" else 8 for t in (c, d))
    if c not in ("f16", "f32") or d not in ("f16", "f32"):
        cx.fail("accumulates in .f16 or .f32")
    z, slots = sources(cx, 3, count_c, 32), targets(cx, 0, count_d, 32)
    where_a = fragments.volta_positions("a", layout_a == "row")
    where_b = fragments.volta_positions("b", layout_b == "row")
    where_c = fragments.volta_positions("c16" if c == "f16" else "c32", True)
    where_d = fragments.volta_positions("c16" if d == "f16" else "c32", True)
    half = ELEMENTS["f16"]

    def execute(g: Group) -> None:
        require_whole(g)
        x = _volta_read(g, a, where_a, half, (8, 4))
        y = _volta_read(g, b, where_b, half, (4, 8))
        total = np.matmul(x, y) + _volta_read(g, z, where_c, ELEMENTS[c], (8, 8))
        result = finish(total, d, False)[(slice(None), *where_d)]
        words = np.ascontiguousarray(result).view(np.uint32).reshape(len(g.rows), 32, count_d)
        for i, slot in enumerate(slots):
            g.put(slot, words[:, :, i])

    return aligned_sync(execute)


def _volta_read(
    g: Group, gets: list[Getter], where: tuple[Array, ...], element: Element, shape: tuple[int, int]
) -> Array:
    stacked = np.stack([np.ascontiguousarray(full(g, get(g))) for get in gets], axis=-1)
    raw = elements.unpack(stacked, element.bits)
    out = np.zeros((len(g.rows), 4, *shape))
    out[(slice(None), *where)] = element.decode(raw)
    return out


# --- block scaling ------------------------------------------------------------------------------

# kind -> {scale_vec: (K, elements of A and B, scale types)}.
_SCALED: dict[str, dict[str, tuple[int, tuple[str, ...], tuple[str, ...]]]] = {
    "mxf8f6f4": {"1X": (32, _FLOAT8 + _FLOAT6, ("ue8m0",))},
    "mxf4": {"2X": (64, ("e2m1",), ("ue8m0",))},
    "mxf4nvf4": {
        "2X": (64, ("e2m1",), ("ue8m0",)),
        "4X": (64, ("e2m1",), ("ue4m3", "ue8m0")),
    },
}
_DEFAULT_VECTOR = {"mxf8f6f4": "1X", "mxf4": "2X"}


@dataclass(frozen=True)
class Scaling:
    """Block scales of a product: each block of K elements of a row of A (column of B) has one."""

    k: int
    a: Element
    b: Element
    blocks: int
    scale_a: Getter
    scale_b: Getter

    def apply(self, g: Group, x: Array, y: Array) -> tuple[Array, Array]:
        """`x` is `[warps, 16, k]`, `y` `[warps, k, 8]`."""
        repeat = self.k // self.blocks
        x = x * np.repeat(self.scale_a(g), repeat, axis=2)
        return x, y * np.repeat(self.scale_b(g).transpose(0, 2, 1), repeat, axis=1)


def take_scaling(cx: Decode, kind: str | None, first: int, sparse: bool) -> Scaling:
    """The modifiers of `.block_scale`, and its four operands from `first` on."""
    if kind not in _SCALED:
        cx.fail("needs .kind::mxf8f6f4, .kind::mxf4 or .kind::mxf4nvf4")
    vector = cx.prefixed("scale_vec::") or _DEFAULT_VECTOR.get(kind)
    if vector not in _SCALED[kind]:
        cx.fail(f"no .scale_vec::{vector} with .kind::{kind}")
    k, allowed, scale_types = _SCALED[kind][vector]
    scale = cx.one_of("ue8m0", "ue4m3")
    d, a, b, c = take_types(cx)
    cx.done(first + 4)
    if scale not in scale_types:
        cx.fail(f".{scale} does not fit .kind::{kind}.scale_vec::{vector}")
    if (d, c) != ("f32", "f32") or a not in allowed or b not in allowed:
        cx.fail(f"cannot multiply .{a} by .{b} into .{d}")
    suffix = "" if kind == "mxf8f6f4" else ".packed"
    blocks = int(vector[0])
    return Scaling(
        2 * k if sparse else k, ELEMENTS[a + suffix], ELEMENTS[b + suffix], blocks,
        _scales(cx, first, blocks, scale, "a"), _scales(cx, first + 2, blocks, scale, "b"),
    )  # fmt: skip


def _block_scaled(cx: Decode, shape: Shape, kind: str | None) -> Sync:
    scaling = take_scaling(cx, kind, 4, sparse=False)
    if shape != (16, 8, scaling.k):
        cx.fail(f"no shape m{shape[0]}n{shape[1]}k{shape[2]} with .kind::{kind}")
    m, n, k = shape
    order_a, count_a = fragments.a_order(m, k, scaling.a.bits)
    order_b, count_b = fragments.b_order(k, n, scaling.b.bits)
    order_c, count_c = fragments.c_order(m, n, 32)
    slots = targets(cx, 0, count_c, 32)
    a, b = sources(cx, 1, count_a, 8), sources(cx, 2, count_b, 8)
    c = sources(cx, 3, count_c, 32)

    def execute(g: Group) -> None:
        require_whole(g)
        x = scaling.a.decode(gather(g, a, order_a, scaling.a.bits, m))
        y = scaling.b.decode(gather(g, b, order_b, scaling.b.bits, k))
        x, y = scaling.apply(g, x, y)
        z = read_accumulator(gather(g, c, order_c, 32, m), "f32")
        scatter(g, slots, order_c, elements.to_f32(np.matmul(x, y) + z))

    return aligned_sync(execute)


def _scales(cx: Decode, which: int, blocks: int, scale: str, side: str) -> Getter:
    """Scale factors, `[warps, rows of A or columns of B, blocks]`.

    A: in each quad the threads 2 * id and 2 * id + 1 hold those of rows g and g + 8. B: thread id
    holds that of column g. The bytes start at the byte id.
    """
    words = cx.vector(which)  # ptxas takes the register in braces, too
    if len(words) != 1:
        cx.fail(f"scale factors are in one register, not in {len(words)}")
    register = cx.src(words[0], B32)
    byte_id, thread_id = _selectors(cx, which + 1)

    def read(g: Group) -> Array:
        word = np.ascontiguousarray(full(g, register(g)))
        byte = int(g.lanes(np.asarray(byte_id(g)))[0])
        thread = int(g.lanes(np.asarray(thread_id(g)))[0])
        _check_selectors(byte, thread, blocks, side)
        quads = word.view(np.uint8).reshape(len(g.rows), 8, 4, 4)
        if side == "a":
            pair = quads[:, :, 2 * thread : 2 * thread + 2]
            raw = pair.transpose(0, 2, 1, 3).reshape(len(g.rows), 16, 4)
        else:
            raw = quads[:, :, thread]
        return elements.scale_values(raw[..., byte : byte + blocks], scale)

    return read


def _selectors(cx: Decode, which: int) -> tuple[Getter, Getter]:
    items = cx.vector(which)
    if len(items) != 2:
        cx.fail("the selector is {byte-id, thread-id}")
    u16: Callable[[Operand], Getter] = lambda item: cx.src(item, TYPES["u16"], wide=True)  # noqa: E731
    return u16(items[0]), u16(items[1])


def _check_selectors(byte: int, thread: int, blocks: int, side: str) -> None:
    threads = 2 if side == "a" else 4
    if thread >= threads or byte % blocks or byte + blocks > 4:
        raise SimError("bad-selector", f"byte-id {byte}, thread-id {thread} of scale {side}")

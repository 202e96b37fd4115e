"""`cvt` into and out of tf32, packed halves, fp8, fp6, fp4 and ue8m0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_sim.isa.common import B32, halves
from tile_sim.machine.group import Group
from tile_sim.numeric import formats
from tile_sim.numeric.rounding import flush
from tile_sim.program.decode import Decode, Exec, Getter
from tile_sim.program.types import TYPES, Type

Array = np.ndarray
_SMALL = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "ue8m0")
_PACKED = {"f16x2": "f16", "bf16x2": "bf16"}
_PAIRS = {f"{name}x2": name for name in _SMALL}
_QUADS = {f"{name}x4": name for name in _SMALL}
_ROUND = ("rn", "rna", "rz", "rp", "rm", "rs")
_SPECIAL = {"tf32", *_PACKED, *_PAIRS, *_QUADS}


def handles(cx: Decode) -> bool:
    return any(mod in _SPECIAL for mod in cx.mods)


def cvt(cx: Decode) -> Exec:
    source_name, result_name = cx.mods[-1], cx.mods[-2] if len(cx.mods) > 1 else ""
    if "scaled" in cx.mods or any(m.startswith("scaled::") for m in cx.mods):
        cx.fail("scaled conversions are not supported")
    if result_name == "tf32":
        return _to_tf32(cx)
    if source_name in _PAIRS and result_name in _PACKED:
        return _from_pair(cx)
    if result_name in _PAIRS or result_name in _PACKED:
        return _to_pair(cx)
    if result_name in _QUADS:
        return _to_quad(cx)
    raise cx.error(f"no conversion from .{source_name} to .{result_name}")


def _to_tf32(cx: Decode) -> Exec:
    """The pattern stays in the upper 19 bits of the register."""
    mode = cx.one_of("rn", "rna", "rz")
    relu, finite = cx.flag("relu"), cx.flag("satfinite")
    source = cx.type("f32")
    cx.mods.remove("tf32")
    cx.done(2)
    slot, a = cx.slot(0, B32), cx.src(1, source)

    def execute(g: Group) -> None:
        x = a(g).astype(np.float64)
        if relu:
            x = np.where(x < 0, 0.0, x) + 0.0
        bits = formats.encode(x, formats.TF32, mode, finite)
        pattern = bits << np.uint32(13)
        g.put(slot, np.where(np.isnan(x), np.uint32(0x7FFFFFFF), pattern))

    return execute


def encode_element(x: Array, name: str, mode: str, finite: bool, relu: bool) -> Array:
    """binary64 to patterns of a small format or a half, uint32."""
    if relu:
        x = np.where(x < 0, 0.0, x)
        x = np.where(x == 0, 0.0, x)
    if name == "ue8m0":
        return encode_ue8m0(x, mode)
    return formats.encode(x, formats.FORMATS[name], mode, finite)


def encode_ue8m0(x: Array, mode: str) -> Array:
    """Powers of two: rounded up (`rp`) or towards zero; NaN is 0xff, magnitudes are taken."""
    magnitude = np.abs(x)
    mantissa, exponent = np.frexp(magnitude)
    lead = exponent - 1
    if mode == "rp":
        lead = lead + (mantissa > 0.5)
    field = np.clip(lead + 127, 0, 254)
    field = np.where(magnitude == 0, 0, field)
    field = np.where(np.isinf(magnitude), 254, field)
    return np.where(np.isnan(x), 255, field).astype(np.uint32)


def decode_element(bits: Array, name: str) -> Array:
    """Patterns (uint32) to binary64."""
    if name == "ue8m0":
        value = np.ldexp(1.0, bits.astype(np.int64) - 127)
        return np.where(bits == 255, np.nan, value)
    return formats.decode(bits, formats.FORMATS[name])


def _width(name: str) -> int:
    """Bits of one packed element: fp6 takes a byte, fp4 half of one."""
    if name in ("f16", "bf16"):
        return 16
    return 4 if name == "e2m1" else 8


def _pair_sources(cx: Decode, source: str, first: int) -> tuple[list[Getter], int]:
    """What gives the elements, upper first, as binary64; and the operands used."""
    if source in _PACKED:
        name, get = _PACKED[source], cx.src(first, B32)

        def element(which: int) -> Getter:
            return lambda g: decode_element(
                halves(g, get(g), "<u2")[:, which::2].astype(np.uint32), name
            )

        return [element(1), element(0)], 1
    type_ = TYPES["f32"]
    a, b = cx.src(first, type_), cx.src(first + 1, type_)
    return [_wide(a), _wide(b)], 2


def _wide(get: Getter) -> Getter:
    return lambda g: get(g).astype(np.float64)


def _to_pair(cx: Decode) -> Exec:
    mode = cx.option(*_ROUND) or "rn"
    finite, relu, ftz = cx.flag("satfinite"), cx.flag("relu"), cx.flag("ftz")
    source, result = cx.mods.pop(), cx.mods.pop()
    if source not in ("f32", *_PACKED):
        cx.fail(f"no conversion from .{source} to .{result}")
    name = _PACKED.get(result) or _PAIRS[result]
    sources, used = _pair_sources(cx, source, 1)
    random = cx.src(1 + used, TYPES["b32"]) if mode == "rs" else None
    cx.done(1 + used + (mode == "rs"))
    width = _width(name)
    type_ = TYPES[{16: "b32", 8: "b16", 4: "b8"}[width]]
    put = cx.put(0, type_, wide=width == 4)
    fn = _encoder(name, mode, finite, relu)

    def execute(g: Group) -> None:
        high, low = (get(g) for get in sources)
        if ftz:
            high, low = flush(high), flush(low)
        if random is not None:
            bits = random(g)
            high, low = _dithered(high, bits >> np.uint32(16), name), _dithered(low, bits, name)
        packed = (fn(high) << np.uint32(width)) | fn(low)
        put(g, packed.astype(type_.dtype))

    return execute


def _encoder(name: str, mode: str, finite: bool, relu: bool) -> Callable[[Array], Array]:
    actual = "rz" if mode == "rs" else mode
    return lambda x: encode_element(x, name, actual, finite, relu)


def _dithered(x: Array, random: Array, name: str) -> Array:
    """Stochastic rounding: random bits are added below the kept mantissa, then cut off."""
    fmt = formats.FORMATS[name]
    drop = 23 - fmt.mantissa
    kept = min(drop, 16 if _width(name) == 16 else 8)
    noise = (random & np.uint32((1 << kept) - 1)).astype(np.float64)
    _, exponent = np.frexp(x)
    lead = np.maximum(exponent - 1, fmt.smallest_exponent)
    unit = np.ldexp(1.0, lead - fmt.mantissa)
    moved = np.abs(x) + noise * np.ldexp(unit, -kept)
    return np.where(np.isfinite(x), np.copysign(moved, x), x)


def _to_quad(cx: Decode) -> Exec:
    """`cvt.rs.e4m3x4.f32 d, {a, b, e, f}, rbits`: the first element is the uppermost."""
    mode = cx.one_of("rs")
    finite, relu = cx.flag("satfinite"), cx.flag("relu")
    source, result = cx.mods.pop(), cx.mods.pop()
    if source != "f32":
        cx.fail(f"no conversion from .{source} to .{result}")
    name = _QUADS[result]
    cx.done(3)
    items = [_wide(cx.src(item, TYPES["f32"])) for item in cx.vector(1)]
    random, width = cx.src(2, B32), _width(name)
    type_ = TYPES["b32" if width == 8 else "b16"]
    put, fn = cx.put(0, type_), _encoder(name, mode, finite, relu)
    if len(items) != 4:
        cx.fail("needs four elements")

    def execute(g: Group) -> None:
        bits, total = random(g), np.uint32(0)
        for i, get in enumerate(items):
            x = _dithered(get(g), bits >> np.uint32(8 * (3 - i)), name)
            total = (total << np.uint32(width)) | fn(x)
        put(g, np.asarray(total).astype(type_.dtype))

    return execute


def _from_pair(cx: Decode) -> Exec:
    """Small formats to packed halves: exact (ue8m0 into bfloat16 too)."""
    cx.option("rn")
    relu, finite = cx.flag("relu"), cx.flag("satfinite")
    source, result = cx.mods.pop(), cx.mods.pop()
    cx.done(2)
    name, target = _PAIRS[source], _PACKED[result]
    width = _width(name)
    type_: Type = TYPES["b16" if width == 8 else "b8"]
    get, slot = cx.src(1, type_, wide=width == 4), cx.slot(0, B32)
    mask = np.uint32((1 << width) - 1)
    fn = _encoder(target, "rn", finite, relu)

    def execute(g: Group) -> None:
        raw = get(g).astype(np.uint32)
        low, high = raw & mask, (raw >> np.uint32(width)) & mask
        value = fn(decode_element(high, name)) << np.uint32(16)
        g.put(slot, value | fn(decode_element(low, name)))

    return execute

"""The instruction descriptor of `tcgen05.mma` (PTX ISA, "Instruction descriptor")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tile_sim.errors import SimError
from tile_sim.numeric.elements import ELEMENTS, Element

_F8F6F4 = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
# Codes of A and B, and the accumulators that a kind allows.
_FORMATS: dict[str, dict[int, str]] = {
    "f16": {0: "f16", 1: "bf16"},
    "tf32": {2: "tf32"},
    "f8f6f4": _F8F6F4,
    "i8": {0: "u8", 1: "s8"},
    "mxf8f6f4": _F8F6F4,
    "mxf4": {1: "e2m1.packed"},
    "mxf4nvf4": {1: "e2m1.packed"},
}
_ACCUMULATORS = {
    "f16": {0: "f16", 1: "f32"},
    "tf32": {1: "f32"},
    "f8f6f4": {0: "f16", 1: "f32"},
    "i8": {2: "s32"},
}
SCALED = ("mxf8f6f4", "mxf4", "mxf4nvf4")
KINDS = tuple(_FORMATS)


@dataclass(frozen=True)
class Instruction:
    """What the descriptor says; `scale` and the ids only for block-scaled kinds."""

    kind: str
    m: int
    n: int
    k: int
    a: Element
    b: Element
    accumulator: str
    negate_a: bool
    negate_b: bool
    a_k_major: bool
    b_k_major: bool
    saturate: bool
    scale: str = ""
    a_scale_id: int = 0
    b_scale_id: int = 0


def _field(word: int, low: int, bits: int) -> int:
    return word >> low & ((1 << bits) - 1)


def decode(word: int, kind: str, cta_group: int) -> Instruction:
    """Raises SimError (`bad-descriptor`) for codes and shapes that the kind has not."""
    formats = _FORMATS[kind]
    codes = _field(word, 7, 3), _field(word, 10, 3)
    if any(code not in formats for code in codes):
        raise SimError("bad-descriptor", f"types {codes} are not of .kind::{kind}")
    if _field(word, 2, 1):
        raise SimError("bad-descriptor", "the descriptor says sparse, the instruction is dense")
    a, b = (ELEMENTS[formats[code]] for code in codes)
    m, n = _field(word, 24, 5) * 16, _field(word, 17, 6) * 8
    _check_shape(m, n, cta_group)
    bits = {"tf32": 32, "f16": 16}.get(kind, 4 if "mxf4" in kind else 8)
    common: dict[str, Any] = {
        "kind": kind, "m": m, "n": n, "k": 256 // bits, "a": a, "b": b,
        "negate_a": bool(_field(word, 13, 1)), "negate_b": bool(_field(word, 14, 1)),
        "a_k_major": not _field(word, 15, 1), "b_k_major": not _field(word, 16, 1),
    }  # fmt: skip
    if kind in SCALED:
        scale = "ue8m0" if _field(word, 23, 1) else "ue4m3"
        ids: dict[str, Any] = {"a_scale_id": _field(word, 29, 2), "b_scale_id": _field(word, 4, 2)}
        return Instruction(**common, accumulator="f32", saturate=False, scale=scale, **ids)
    code = _field(word, 4, 2)
    if code not in _ACCUMULATORS[kind]:
        raise SimError("bad-descriptor", f"accumulator type {code} is not of .kind::{kind}")
    saturate = bool(_field(word, 3, 1))
    return Instruction(**common, accumulator=_ACCUMULATORS[kind][code], saturate=saturate)


def _check_shape(m: int, n: int, cta_group: int) -> None:
    legal_m = (64, 128) if cta_group == 1 else (128, 256)
    step = 8 if m == 64 else 16
    if m not in legal_m or not 8 <= n <= 256 or n % step:
        raise SimError("bad-descriptor", f"no shape M {m}, N {n} with .cta_group::{cta_group}")

"""The instruction descriptor of `tcgen05.mma` (PTX ISA, "Instruction descriptor")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tile_sim.errors import SimError
from tile_sim.numeric.columnmask import MAX_SHIFTS
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
    sparse: bool = False
    selector: int = 0
    max_shift: int = 0


def _field(word: int, low: int, bits: int) -> int:
    return word >> low & ((1 << bits) - 1)


def decode(
    word: int, kind: str, cta_group: int, sparse: bool = False, stationary: bool = False
) -> Instruction:
    """Raises SimError (`bad-descriptor`) for codes and shapes that the instruction has not."""
    formats = _FORMATS[kind]
    codes = _field(word, 7, 3), _field(word, 10, 3)
    if any(code not in formats for code in codes):
        raise SimError("bad-descriptor", f"types {codes} are not of .kind::{kind}")
    if bool(_field(word, 2, 1)) != sparse:
        says, is_ = ("dense", "sparse") if sparse else ("sparse", "dense")
        raise SimError("bad-descriptor", f"the descriptor says {says}, the instruction is {is_}")
    a, b = (ELEMENTS[formats[code]] for code in codes)
    m, n = _field(word, 24, 5) * 16, _field(word, 17, 6) * 8
    bits = {"tf32": 32, "f16": 16}.get(kind, 4 if "mxf4" in kind else 8)
    common: dict[str, Any] = {
        "kind": kind, "m": m, "n": n, "k": (512 if sparse else 256) // bits, "a": a, "b": b,
        "negate_a": bool(_field(word, 13, 1)), "negate_b": bool(_field(word, 14, 1)),
        "a_k_major": not _field(word, 15, 1), "b_k_major": not _field(word, 16, 1),
        "sparse": sparse, "selector": _selector(word, kind) if sparse else 0,
    }  # fmt: skip
    _check_shape(kind, m, n, cta_group, sparse, stationary)
    if bits == 8 and not common["b_k_major"] and n % (16 * cta_group):
        raise SimError("bad-descriptor", f"an N-major B of 8 bits has no N {n}")
    if kind in SCALED:
        return _scaled(word, common)
    code = _field(word, 4, 2)
    if code not in _ACCUMULATORS[kind]:
        raise SimError("bad-descriptor", f"accumulator type {code} is not of .kind::{kind}")
    shift = MAX_SHIFTS[_field(word, 30, 2)]
    accumulator, saturate = _ACCUMULATORS[kind][code], bool(_field(word, 3, 1))
    return Instruction(**common, accumulator=accumulator, saturate=saturate, max_shift=shift)


def _scaled(word: int, common: dict[str, Any]) -> Instruction:
    scale = "ue8m0" if _field(word, 23, 1) else "ue4m3"
    if _field(word, 31, 1):
        raise SimError("bad-descriptor", "K 96 of .kind::mxf4 and .kind::mxf4nvf4 is not supported")
    ids: dict[str, Any] = {"a_scale_id": _field(word, 29, 2), "b_scale_id": _field(word, 4, 2)}
    return Instruction(**common, accumulator="f32", saturate=False, scale=scale, **ids)


def _selector(word: int, kind: str) -> int:
    """Which column of a pair holds the metadata; other kinds use both.

    The descriptor has room for 2 and 3, of which the layouts of the PTX ISA show nothing.
    """
    found, legal = _field(word, 0, 2), (0, 1) if kind in ("f16", "tf32") else (0,)
    if found not in legal:
        raise SimError("bad-descriptor", f"sparsity selector {found} with .kind::{kind}")
    return found


def _legal_m(kind: str, cta_group: int, sparse: bool, stationary: bool) -> tuple[int, ...]:
    if stationary:
        return (32, 64, 128)
    if kind in SCALED:
        return (128,) if cta_group == 1 else (256,) if sparse else (128, 256)
    return (64, 128) if cta_group == 1 else (128, 256)


def _legal_n(kind: str, cta_group: int, sparse: bool, stationary: bool) -> tuple[int, ...]:
    if stationary:
        return (64, 128) if sparse else (64, 128, 256)
    if kind == "i8":
        return (8, 16, 24, *range(32, 257, 16)) if cta_group == 1 else (*range(32, 257, 32),)
    return tuple(range(8 * cta_group, 257, 8 * cta_group))


def _check_shape(kind: str, m: int, n: int, cta_group: int, sparse: bool, stationary: bool) -> None:
    """PTX ISA, "Matrix shape" of tcgen05: the table of kinds and shapes."""
    form = kind, cta_group, sparse, stationary
    if stationary and (kind in SCALED or cta_group == 2):
        raise SimError("bad-descriptor", f".ws has no .kind::{kind} with .cta_group::{cta_group}")
    if m not in _legal_m(*form) or n not in _legal_n(*form):
        words = f".kind::{kind}{'.sp' if sparse else ''}{'.ws' if stationary else ''}"
        message = f"no shape M {m}, N {n} with {words}.cta_group::{cta_group}"
        raise SimError("bad-descriptor", message)

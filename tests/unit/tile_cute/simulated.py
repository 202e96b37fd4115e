"""Kernels for the simulator that put registers through one instruction, and fragments for them."""

import ml_dtypes
import numpy as np
from tile_cute.atoms import MmaAtom
from tile_cute.atoms.types import BITS
from tile_cute.linear import LinearLayout

NUMPY = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "f32": np.float32,
    "f64": np.float64,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}

PTX = """.version 9.0
.target {target}
.address_size 64
.visible .entry k({params}) {{
.reg .pred %p<12>;
.reg .b16 %h<8>;
.reg .b32 %r<700>;
.reg .b64 %rd<200>;
{loads}
{body}
ret;
}}
"""


def kernel(body: str, names: list[str], target: str = "sm_120a") -> str:
    """A kernel with 64-bit parameters, each in a register of its name."""
    params = ", ".join(f".param .u64 {name}_p" for name in names)
    loads = "\n".join(f".reg .u64 {name}; ld.param.u64 {name}, [{name}_p];" for name in names)
    return PTX.format(target=target, params=params, loads=loads, body=body)


def move(kind: str, name: str, first: int, count: int, wide: bool) -> list[str]:
    """Load or store registers first .. of every thread, thread by thread."""
    size, reg, suffix = (8, "%rd", "b64") if wide else (4, "%r", "b32")
    lines = [f"mul.wide.u32 %rd190, %r699, {count * size}; add.u64 %rd191, {name}, %rd190;"]
    for i in range(count):
        place = f"[%rd191+{size * i}]"
        value = f"{reg}{first + i}"
        pair = f"{value}, {place}" if kind == "ld" else f"{place}, {value}"
        lines.append(f"{kind}.global.{suffix} {pair};")
    return lines


def names(first: int, count: int, wide: bool = False) -> str:
    reg = "%rd" if wide else "%r"
    return "{" + ", ".join(f"{reg}{first + i}" for i in range(count)) + "}"


def values(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> np.ndarray:
    """Small integers that the type holds exactly."""
    if kind in ("s4", "s8", "e2m1"):
        low, high = -3, 5
    elif kind in ("u4", "u8"):
        low, high = 0, 8
    elif kind == "b1":
        low, high = 0, 2
    else:
        low, high = -3, 5
    return rng.integers(low, high, shape).astype(np.float64)


def raw(matrix: np.ndarray, kind: str) -> np.ndarray:
    """Bit patterns of the values in the type."""
    if kind in NUMPY:
        dtype = np.dtype(NUMPY[kind])
        unsigned = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype.itemsize]
        return matrix.astype(dtype).view(unsigned).astype(np.uint64)
    return (matrix.astype(np.int64) & ((1 << BITS[kind]) - 1)).astype(np.uint64)


def table(layout: LinearLayout) -> np.ndarray:
    """Flat element of `[warp * lanes + lane, register]`."""
    from tile_cute import gf2

    threads = gf2.table([*layout.flat("lane"), *layout.flat("warp")])
    registers = gf2.table(layout.flat("register"))
    return np.array(threads)[:, None] ^ np.array(registers)[None, :]


def pack(elements: np.ndarray, layout: LinearLayout, bits: int, shift: int = 0) -> np.ndarray:
    """Bit patterns of a matrix as the registers of all threads, low elements first."""
    chosen = elements.reshape(-1)[table(layout)] << np.uint64(shift)
    width = 64 if bits == 64 else 32
    per = width // bits
    if chosen.shape[1] < per:  # a register that is not full
        chosen = np.pad(chosen, ((0, 0), (0, per - chosen.shape[1])))
    out = np.zeros((len(chosen), chosen.shape[1] // per), np.uint64)
    for i in range(per):
        out |= chosen[:, i::per] << np.uint64(i * bits)
    return out.astype(np.uint64 if bits == 64 else np.uint32)


def unpack(registers: np.ndarray, layout: LinearLayout, bits: int) -> np.ndarray:
    """The opposite of `pack`: a matrix of bit patterns."""
    width = 64 if bits == 64 else 32
    per = width // bits
    mask = np.uint64((1 << bits) - 1 if bits < 64 else 0xFFFFFFFFFFFFFFFF)
    wide = registers.astype(np.uint64)
    parts = [(wide >> np.uint64(i * bits)) & mask for i in range(per)]
    elements = np.stack(parts, axis=-1).reshape(len(registers), -1)
    out = np.zeros(layout.size, np.uint64)
    out[table(layout)] = elements
    return out.reshape(layout.shape)


def decode(patterns: np.ndarray, kind: str) -> np.ndarray:
    if kind == "s32":
        return patterns.astype(np.uint32).view(np.int32).astype(np.float64)
    dtype = np.dtype(NUMPY[kind])
    unsigned = {2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype.itemsize]
    return patterns.astype(unsigned).view(dtype).astype(np.float64)


def mma_body(atom: MmaAtom, counts: tuple[int, int, int], extra: str = "") -> str:
    """Load A, B, C, multiply, store D; with `extra` operands, first the 3 words of `more`."""
    a, b, c = counts
    wide = atom.row.acc == "f64"
    lines = ["mov.u32 %r699, %tid.x;"]
    starts = (10, 10 + a, 10 + a + b, 10 + a + b + c)
    for name, first, count in zip("abc", starts, counts, strict=False):
        lines += move("ld", name, first, count, wide)
    operands = ", ".join(
        names(first, count, wide)
        for first, count in ((starts[3], c), (10, a), (starts[1], b), (starts[2], c))
    )
    if extra:
        lines += [*move("ld", "more", 680, 3, False), "mov.b16 %h0, 0;"]
    lines.append(f"{atom.instruction} {operands}{extra};")
    return "\n".join(lines + move("st", "d", starts[3], c, wide))

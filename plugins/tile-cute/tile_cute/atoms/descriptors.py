"""Matrix operands in shared memory: canonical layouts, their descriptors, and the instruction
descriptor of tcgen05. PTX ISA, "Matrix descriptor" of wgmma, "Shared memory descriptor" and
"Instruction descriptor" of tcgen05.
"""

from dataclasses import dataclass

from tile_cute import gf2
from tile_cute.atoms.types import BITS
from tile_cute.errors import LayoutError
from tile_cute.linear.layout import LinearLayout, log2
from tile_cute.linear.memory import swizzled_rows
from tile_cute.swizzle import BYTE_SWIZZLES, Swizzle

SPANS = {"none": 16, "32B": 32, "64B": 64, "128B": 128, "128B_32B_atom": 128}
_HOPPER_CODES = {"none": 0, "128B": 1, "64B": 2, "32B": 3}
_BLACKWELL_CODES = {"none": 0, "128B_32B_atom": 1, "128B": 2, "64B": 4, "32B": 6}
_UNIT = 16  # bytes: the granule of all descriptor fields


@dataclass(frozen=True)
class SmemOperand:
    """How an MMA finds an operand in a buffer.

    `leading` and `stride` are the two byte offsets of the descriptor, `columns_mn` and
    `columns_k` how many bits each bit of the coordinates adds to the address before the swizzle,
    so that a sub-tile starts `start(mn, k)` bytes into the buffer.
    """

    swizzle: str
    major: str
    leading: int
    stride: int
    columns_mn: tuple[int, ...]
    columns_k: tuple[int, ...]

    def start(self, mn: int, k: int) -> int:
        """Byte offset of the sub-tile that begins at (mn, k); add it to the start address."""
        return (gf2.combine(self.columns_mn, mn) + gf2.combine(self.columns_k, k)) // 8


def canonical_buffer(mn: int, k: int, elem_bits: int, major: str, swizzle: str) -> LinearLayout:
    """The buffer (offset -> (mn, k)) of an operand tile that wgmma and tcgen05 read.

    Major "K": rows of `swizzle` bytes along K; major "MN": along M or N. A longer extent is cut
    into such columns, each with all rows behind each other, as a tensor map writes them. The
    swizzle "128B_32B_atom" (tcgen05 only, major MN) moves pieces of 32 bytes.
    """
    coarse = swizzle == "128B_32B_atom"
    if major not in ("K", "MN") or swizzle not in SPANS or (coarse and major == "K"):
        raise LayoutError(f"no canonical layout with major '{major}' and swizzle '{swizzle}'")
    order = (1, 0) if major == "K" else (0, 1)
    pattern = BYTE_SWIZZLES[swizzle] if coarse else None
    return swizzled_rows((mn, k), order, elem_bits, SPANS[swizzle], pattern)


def match_operand(buffer: LinearLayout, elem_bits: int) -> SmemOperand:
    """Read the descriptor's fields off a buffer layout (offset -> (mn, k)).

    LayoutError, saying for each way of reading what does not fit, if it is not canonical.
    """
    if buffer.rank != 2 or not (buffer.is_surjective and buffer.is_injective):
        raise LayoutError(
            f"{buffer} is no buffer of an MMA operand: it must hold (mn, k) once each"
        )
    place = gf2.Span(buffer.flat("offset"))
    columns: list[list[int]] = []  # in bits, since elements may be smaller than bytes
    for dim, extent in enumerate(buffer.shape):
        unit = buffer.shape[1] if dim == 0 else 1
        found = [place.solve(unit << bit) or 0 for bit in range(log2(extent))]
        columns.append([v * elem_bits for v in found])
    kind = "MN" if columns[0] and columns[0][0] == elem_bits else "K"
    faults, nearest = [], (0, "")
    for major in ("K", "MN"):
        for name in SPANS:
            if name == "128B_32B_atom" and major == "K":
                continue
            operand, fault = _match(columns, elem_bits, major, name)
            if operand is not None:
                return operand
            assert fault is not None
            faults.append(f"{major}/{name}: {fault[1]}")
            nearest = max(nearest, fault, key=lambda f: f[0]) if major == kind else nearest
    reason = nearest[1] if nearest[0] else "unsupported swizzle"
    raise LayoutError(
        f"Not a canonical GMMA_{kind} Layout: {reason}, got {buffer} ({'; '.join(faults)})"
    )


def _match(
    columns: list[list[int]], elem_bits: int, major: str, name: str
) -> tuple[SmemOperand | None, tuple[int, str] | None]:
    """(operand, None) or (None, (how far it went, what does not fit))."""
    swizzle = BYTE_SWIZZLES[name].recast(8, 1)
    mn, k = ([swizzle(v) for v in column] for column in columns)
    if any(v & (v - 1) for v in (*mn, *k)):
        return None, (0, "unsupported swizzle")
    fast, slow = (k, mn) if major == "K" else (mn, k)
    per_unit = log2(_UNIT * 8 // elem_bits)
    span = SPANS[name] * 8
    inside = [elem_bits << bit for bit in range(log2(span // elem_bits))]
    inside = inside[: len(fast)] if name != "none" else inside[:per_unit]
    if fast[: len(inside)] != inside:
        return None, (1, f"No flat offset mode along {major}")
    group = 2 if name == "128B_32B_atom" else 3  # log2 of the rows of a core matrix
    if len(fast) < per_unit or len(slow) < group:
        other = "MN" if major == "K" else "K"
        return None, (2, f"Expected {other}-size multiple of {1 << group}, in rows of 16 bytes")
    if slow[:group] != [span << bit for bit in range(group)]:
        return None, (3, f"Expected stride failure: rows are not {SPANS[name]} bytes apart")
    rows = _common_step(slow[group:], span << group)
    columns_apart = _common_step(fast[len(inside) :], _UNIT * 8)
    if rows is None or columns_apart is None:
        return None, (3, "Expected stride failure: steps are not uniform")
    leading, stride = _offsets(major, name, rows // 8, columns_apart // 8)
    return SmemOperand(name, major, leading, stride, tuple(mn), tuple(k)), None


def _common_step(values: list[int], absent: int) -> int | None:
    """The stride of which `values` are 1, 2, 4, ... times; `absent` if there are none."""
    if not values:
        return absent
    uniform = all(v == values[0] << bit for bit, v in enumerate(values))
    return values[0] if uniform else None


def _offsets(major: str, name: str, rows: int, columns_apart: int) -> tuple[int, int]:
    """(leading, stride) byte offsets from the distance of 8-row groups and of columns."""
    if major == "K":
        return (columns_apart if name == "none" else _UNIT), rows
    if name == "none":
        return rows, columns_apart
    return columns_apart, rows


def _field(value: int, what: str) -> int:
    """Encode an address or offset: bits 4..17."""
    if value % _UNIT or not 0 <= value < 1 << 18:
        raise LayoutError(f"{what} {value} is no multiple of 16 below 262144")
    return value >> 4


def base_offset(start: int, swizzle: str) -> int:
    """Where the swizzle pattern begins, in rows of 128 bytes, for a start inside the pattern."""
    repeat = {"128B": 1024, "64B": 512, "32B": 256}.get(swizzle, 1)
    return (start >> 7) & 7 if start % repeat else 0


def hopper_descriptor(start: int, operand: SmemOperand, pattern_start: int | None = None) -> int:
    """The 64-bit descriptor of wgmma for a sub-tile at byte address `start`.

    `pattern_start`, if given, is an address at which the swizzle pattern begins; it sets the base
    offset (0 where the pattern is aligned to its own size, the usual case). LayoutError for a
    swizzle that wgmma does not know.
    """
    if operand.swizzle not in _HOPPER_CODES:
        raise LayoutError(f"wgmma has no swizzle '{operand.swizzle}'")
    offset = 0 if pattern_start is None else base_offset(pattern_start, operand.swizzle)
    return (
        _field(start, "start address")
        | _field(operand.leading, "leading byte offset") << 16
        | _field(operand.stride, "stride byte offset") << 32
        | offset << 49
        | _HOPPER_CODES[operand.swizzle] << 62
    )


def blackwell_descriptor(start: int, operand: SmemOperand) -> int:
    """The 64-bit descriptor of tcgen05.mma and tcgen05.cp."""
    return (
        _field(start, "start address")
        | _field(operand.leading, "leading byte offset") << 16
        | _field(operand.stride, "stride byte offset") << 32
        | 0b001 << 46
        | _BLACKWELL_CODES[operand.swizzle] << 61
    )


_SHIFT_CODES = {0: 0, 8: 1, 16: 2, 32: 3}
_ACC_CODES = {"f16": 0, "f32": 1, "s32": 2}
_TYPE_CODES = {
    "f16": {"f16": 0, "bf16": 1},
    "tf32": {"tf32": 2},
    "f8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5},
    "i8": {"u8": 0, "s8": 1},
    "mxf8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5},
    "mxf4": {"e2m1": 1},
    "mxf4nvf4": {"e2m1": 1},
}


@dataclass(frozen=True)
class InstructionDescriptor:
    """The 32-bit instruction descriptor of tcgen05.mma for kinds without block scales."""

    kind: str
    a: str
    b: str
    acc: str
    m: int
    n: int
    a_major: str = "K"
    b_major: str = "K"
    negate_a: bool = False
    negate_b: bool = False
    saturate: bool = False
    sparse: bool = False
    sparsity_selector: int = 0
    max_shift: int = 0

    def encode(self) -> int:
        """The bits; LayoutError for a type, shape or order that the kind does not know."""
        a, b = _type_codes(self.kind, self.a, self.b)
        if self.acc not in _ACC_CODES:
            raise LayoutError(f"tcgen05.mma accumulates in {', '.join(_ACC_CODES)}, not {self.acc}")
        _check_shape(self.m, self.n)
        if self.max_shift not in _SHIFT_CODES:
            raise LayoutError(
                f"B is shifted by at most 0, 8, 16 or 32 columns, not {self.max_shift}"
            )
        return (
            _SHIFT_CODES[self.max_shift] << 30
            | self.sparsity_selector
            | self.sparse << 2
            | self.saturate << 3
            | _ACC_CODES[self.acc] << 4
            | a << 7
            | b << 10
            | self.negate_a << 13
            | self.negate_b << 14
            | (self.a_major == "MN") << 15
            | (self.b_major == "MN") << 16
            | (self.n >> 3) << 17
            | (self.m >> 4) << 24
        )


def _type_codes(kind: str, a: str, b: str) -> tuple[int, int]:
    codes = _TYPE_CODES.get(kind)
    if codes is None or a not in codes or b not in codes:
        raise LayoutError(f"tcgen05.mma kind::{kind} does not multiply {a} by {b}")
    return codes[a], codes[b]


def _check_shape(m: int, n: int) -> None:
    if m not in (32, 64, 128, 256) or n % 8 or not 8 <= n <= 256:
        raise LayoutError(f"tcgen05.mma has no shape M {m}, N {n}")


def scaled_instruction_descriptor(
    kind: str,
    a: str,
    b: str,
    m: int,
    n: int,
    scale: str,
    *,
    a_major: str = "K",
    b_major: str = "K",
    a_scale_id: int = 0,
    b_scale_id: int = 0,
    sparse: bool = False,
) -> int:
    """The 32-bit instruction descriptor of block-scaled tcgen05.mma.

    The scale ids say which bytes of a 32-bit column hold the factors.
    """
    if kind not in ("mxf8f6f4", "mxf4", "mxf4nvf4"):
        raise LayoutError(f"kind::{kind} has no block scales")
    if scale not in ("ue8m0", "ue4m3") or (scale == "ue4m3" and kind != "mxf4nvf4"):
        raise LayoutError(f"kind::{kind} has no scales of type {scale}")
    code_a, code_b = _type_codes(kind, a, b)
    _check_shape(m, n)
    return (
        sparse << 2
        | b_scale_id << 4
        | code_a << 7
        | code_b << 10
        | (a_major == "MN") << 15
        | (b_major == "MN") << 16
        | (n >> 3) << 17
        | (scale == "ue8m0") << 23
        | (m >> 4) << 24
        | a_scale_id << 29
    )


@dataclass(frozen=True)
class ZeroColumnMask:
    """The zero-column mask of weight-stationary MMAs: stretches of `use` columns of B and of
    `skip` zeros in turn, and a `shift` of the columns of B.

    The columns of D are cut into 128 / M parts, each with its own beginning: in `first_zero`
    whether with a stretch of zeros, in `start` how much of that stretch is already over.

    PTX ISA, "Zero-column mask descriptor"; its table and its examples disagree about which field
    counts what. This follows the examples, and CUTLASS.
    """

    use: int
    skip: int
    start: tuple[int, ...] = (0,)
    first_zero: tuple[bool, ...] = (False,)
    shift: int = 0

    def encode(self) -> int:
        """The bits; LayoutError for a number that its field cannot hold."""
        if not (1 <= self.use <= 256 and 1 <= self.skip <= 256 and 0 <= self.shift <= 32):
            raise LayoutError(f"{self}: stretches are of 1..256 columns, shifts of 0..32")
        if len(self.start) > 4 or len(self.start) != len(self.first_zero):
            raise LayoutError(f"{self}: 1 to 4 parts, with a beginning each")
        word = 1 << 39 | (self.skip - 1) << 40 | (self.use - 1) << 48 | self.shift << 56
        for part, (start, zero) in enumerate(zip(self.start, self.first_zero, strict=True)):
            first = self.skip if zero else self.use
            if not 0 <= start < first:
                raise LayoutError(f"{self}: part {part} starts {start} columns into one of {first}")
            word |= start << 8 * part | int(zero) << 32 + part
        return word


def swizzle_of(name: str) -> Swizzle:
    """The byte swizzle by its descriptor name."""
    return BYTE_SWIZZLES[name]


def elements_per_unit(element: str) -> int:
    """Elements in the 16 bytes that descriptors count in."""
    return _UNIT * 8 // BITS[element]

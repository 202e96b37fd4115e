"""Accesses of a distributed tile to shared memory by ldmatrix and stmatrix.

One instruction moves 1, 2 or 4 matrices of 8 rows of 16 bytes: lane 8j + r supplies the address of
row r of matrix j, and register j of lane t gets the 32-bit word t % 4 of row t / 4. Transposed
(16-bit elements), register j gets elements 2(t % 4) and + 1 of column t / 4. Matrices of bytes
that are transposed have 16 rows: lane 16j + r supplies the address, registers 2j and 2j + 1 get
elements 4(t % 4) to + 3 of columns t / 4 and t / 4 + 8. Whether a tile and a buffer fit that is a
question about a few bases; see PTX ISA, "ldmatrix" and "stmatrix".
"""

from dataclasses import dataclass

from tile_cute import gf2
from tile_cute.linear.banks import conflict_degree
from tile_cute.linear.layout import LinearLayout, log2
from tile_cute.linear.memory import offsets_in
from tile_cute.linear.plans import SharedAccess, SharedSide
from tile_cute.linear.shuffle import register_bits

ROW_BYTES_LOG2 = 4  # of a matrix row
_ROW_BYTES = 1 << ROW_BYTES_LOG2
LANES_LOG2 = 5
MOST_MATRICES_LOG2 = 2


@dataclass(frozen=True)
class MatrixSide:
    """The ldmatrix or stmatrix instructions of one warp.

    Lane L addresses element `lane_map(L) ^ warp_map(warp) ^ access.offset` of the buffer, a
    multiple of 16 bytes; lanes beyond `rows * matrices` repeat others. `access.registers` are the
    elements of its `words` 32-bit registers, in order. `wavefronts` counts one warp's.
    """

    matrices: int
    transposed: bool
    accesses: tuple[SharedAccess, ...]
    lane_map: tuple[int, ...]
    warp_map: tuple[int, ...]
    wavefronts: int
    ideal: int
    rows: int = 8

    @property
    def words(self) -> int:
        """32-bit registers of one instruction."""
        return self.matrices * self.rows // 8

    def address(self, lane: int, warp: int, access: SharedAccess) -> int:
        """Element offset of the row that a lane points to."""
        base = gf2.combine(self.lane_map, lane) ^ gf2.combine(self.warp_map, warp)
        return base ^ access.offset


def matrix_access(
    shared: LinearLayout, tile: LinearLayout, elem_bits: int, *, transposed: bool = False
) -> MatrixSide | None:
    """How ldmatrix (or stmatrix) moves `tile` from (to) a buffer `shared` (offset -> tile).

    None if it cannot: elements that are not 8, 16 or 32 bits (16 if transposed), fewer than 32
    lanes, lanes that do not lie as the instruction demands, rows that are not whole.
    """
    if tile.in_bits("lane") != LANES_LOG2:
        return None
    offsets = offsets_in(shared, tile)
    numbers = register_bits(tile)
    registers = {n: offsets["register"][n.bit_length() - 1] for n in numbers}
    return _side(registers, offsets["lane"], offsets["warp"], elem_bits, transposed)


def matrix_side(side: SharedSide, elem_bits: int, *, transposed: bool = False) -> MatrixSide | None:
    """How ldmatrix (or stmatrix) does what the vector accesses of `side` do, to the same places.

    None if it cannot, as for `matrix_access`, and for accesses in several passes.
    """
    if len(side.accesses) != 1 or side.is_guarded or len(side.lane_map) != LANES_LOG2:
        return None
    places = {
        register: access.offset ^ at
        for access in side.accesses[0]
        for at, register in enumerate(access.registers)
    }
    registers = {n: place for n, place in sorted(places.items()) if n.bit_count() == 1}
    return _side(registers, list(side.lane_map), list(side.warp_map), elem_bits, transposed)


def _side(
    register_places: dict[int, int],
    lanes: list[int],
    warps: list[int],
    elem_bits: int,
    transposed: bool,
) -> MatrixSide | None:
    """For registers, lanes and warps that lie at these offsets; registers by their bit."""
    if elem_bits not in ((16,) if transposed else (8, 16, 32)):
        return None
    numbers, registers = list(register_places), list(register_places.values())
    per_row = 128 // elem_bits
    split = _split(lanes, registers, 32 // elem_bits, transposed)
    if split is None:
        return None
    inner, rows, used = split
    rest = [i for i in range(len(registers)) if i not in used]
    others = [*rows, *warps, *(registers[i] for i in rest)]
    if inner != [1 << i for i in range(log2(per_row))] or any(v % per_row for v in others):
        return None
    count = min(MOST_MATRICES_LOG2, len(rest))
    chosen, repeated = rest[:count], rest[count:]
    low = [numbers[i] for i in (*used, *chosen)]
    accesses = tuple(
        SharedAccess(tuple(start ^ r for r in gf2.table(low)), place)
        for start, place in zip(
            gf2.table([numbers[i] for i in repeated]),
            gf2.table([registers[i] for i in repeated]),
            strict=True,
        )
    )
    lane_map = [*rows, *(registers[i] for i in chosen)]
    lane_map += [0] * (LANES_LOG2 - len(lane_map))
    ideal = len(accesses) << count
    degree = conflict_degree([*rows, 0, 0], ROW_BYTES_LOG2, log2(elem_bits // 8))
    return MatrixSide(
        1 << count,
        transposed,
        accesses,
        tuple(lane_map),
        tuple(warps),
        ideal * degree,
        ideal,
    )


def byte_matrix_access(shared: LinearLayout, tile: LinearLayout) -> MatrixSide | None:
    """How ldmatrix loads a tile of bytes from rows of `shared` (offset -> tile) along another
    axis than the one along which a register holds four of them; None if it cannot.
    """
    if tile.in_bits("lane") != LANES_LOG2:
        return None
    offsets = offsets_in(shared, tile)
    lanes, numbers = offsets["lane"], register_bits(tile)
    registers = [offsets["register"][n.bit_length() - 1] for n in numbers]
    half = _ROW_BYTES // 2  # what the second register of a matrix is ahead in its row
    if len(registers) < 2 or lanes[2:] != [1, 2, 4] or half not in registers[2:]:
        return None
    second = registers.index(half, 2)
    rows, rest = [*registers[:2], *lanes[:2]], [i for i in range(2, len(registers)) if i != second]
    if any(v % _ROW_BYTES for v in (*rows, *offsets["warp"], *(registers[i] for i in rest))):
        return None
    chosen, repeated = rest[:1], rest[1:]
    low = [numbers[i] for i in (0, 1, second, *chosen)]
    accesses = tuple(
        SharedAccess(tuple(start ^ r for r in gf2.table(low)), place)
        for start, place in zip(
            gf2.table([numbers[i] for i in repeated]),
            gf2.table([registers[i] for i in repeated]),
            strict=True,
        )
    )
    matrices = 1 << len(chosen)
    ideal = 2 * matrices * len(accesses)  # eight rows at a time
    lane_map = (*rows, registers[chosen[0]] if chosen else 0)
    degree = conflict_degree([*rows, 0], ROW_BYTES_LOG2, 0)
    warps = tuple(offsets["warp"])
    return MatrixSide(matrices, True, accesses, lane_map, warps, ideal * degree, ideal, rows=16)


def _split(
    lanes: list[int], registers: list[int], word: int, transposed: bool
) -> tuple[list[int], list[int], list[int]] | None:
    """(offsets inside a row, of the row number, register bits inside a 32-bit register).

    The bits of a matrix element: within the register `log2(word)`, then lane bits 0, 1 along the
    row and 2..4 over rows; transposed, the register's bit and lanes 0, 1 count rows.
    """
    width = log2(word)
    used = list(range(width))
    if len(registers) < width:
        return None
    if transposed:
        return lanes[2:], [registers[0], *lanes[:2]], used
    return [*(registers[i] for i in used), *lanes[:2]], lanes[2:], used

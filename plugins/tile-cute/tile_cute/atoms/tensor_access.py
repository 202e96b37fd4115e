"""Which tcgen05.ld or .st move a tile between registers and tensor memory.

An address in tensor memory is one word: the row in the upper 16 bits, the column in the lower ones
(PTX ISA, "Tensor memory addressing"). A warp reaches 32 rows, a quarter of them, by its number
modulo four.
"""

from dataclasses import dataclass

from tile_cute import gf2
from tile_cute.atoms.tensor_memory import load_fragment, load_repeats
from tile_cute.errors import LayoutError
from tile_cute.linear.layout import LinearLayout

#: Whole quarters first.
_SHAPES = ("32x32b", "16x256b", "16x128b", "16x64b")
#: Registers that one instruction moves at most: more would all have to be free at once.
_MOST_REGISTERS = 64
#: Addresses of the quarters of two warps' bits.
_QUARTERS = (32 << 16, 64 << 16)


@dataclass(frozen=True)
class TensorMove:
    """One instruction: the registers that it moves, in its order, and how far from the warp's own
    address it begins.
    """

    registers: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class TensorAccess:
    """All that a warp does for a tile.

    Attributes:
        shape: of the instruction, "32x32b".
        repeat: its `.num`.
        moves: in order.
        warps: what each bit of the warp's number adds to the address.
    """

    shape: str
    repeat: int
    moves: tuple[TensorMove, ...]
    warps: tuple[int, ...]


def tensor_access(
    tile: LinearLayout, buffer: LinearLayout, most: int = _MOST_REGISTERS
) -> TensorAccess:
    """How threads that hold `tile` (register, lane, warp) reach it in `buffer` (row, column), by
    instructions of at most so many registers (`most`), or of the fewest that there are.

    Where elements of less than a word have a place in it (`element`), registers are words, which
    hold neighbours as threads do. LayoutError if no instruction does.
    """
    words = _addresses(tile, buffer)
    for shape in _SHAPES:
        found = _by(shape, words, most)
        if found is not None:
            return found
    raise LayoutError(f"no tcgen05.ld reads {buffer} as {tile}")


def _addresses(tile: LinearLayout, buffer: LinearLayout) -> dict[str, list[int]]:
    """What each bit of registers, lanes and warps adds to the address of an element."""
    if tile.shape != buffer.shape:
        raise LayoutError(f"{tile} and {buffer} are of different tiles")
    packed = packing(buffer)
    if list(tile.flat("register"))[: len(packed)] != packed:
        raise LayoutError(f"threads that hold {tile} lack whole words of {buffer}")
    rows, columns = list(buffer.flat("row")), list(buffer.flat("column"))
    place = gf2.Span([*rows, *columns])

    def word(element: int) -> int:
        mask = place.solve(element)
        if mask is None:
            raise LayoutError(f"{buffer} lacks elements that {tile} has")
        return (mask & (1 << len(rows)) - 1) << 16 | mask >> len(rows)

    held = {space: list(tile.flat(space)) for space in ("register", "lane", "warp")}
    held["register"] = held["register"][len(packed) :]
    return {space: [word(v) for v in values] for space, values in held.items()}


def packing(buffer: LinearLayout) -> list[int]:
    """What each bit of an element's place in its word adds to the element."""
    return list(buffer.flat("element")) if "element" in buffer.spaces else []


def _word(place: tuple[int, ...]) -> int:
    return place[0] << 16 | place[1]


def _by(shape: str, words: dict[str, list[int]], most: int) -> TensorAccess | None:
    """The access by instructions of one shape; None if lanes or registers lie otherwise."""
    one = load_fragment(shape, 1)
    columns = one.shape[1]
    if words["lane"] != [_word(v) for v in one.bases["lane"]]:
        return None
    if tuple(words["warp"][:2]) != _QUARTERS:
        return None
    number = {word: 1 << bit for bit, word in enumerate(words["register"]) if word}
    if len(number) != len(words["register"]):
        return None
    taken = [_word(v) for v in one.bases["register"]]
    repeat = 1
    while 2 * repeat in load_repeats(shape) and columns * repeat in number:
        if 2 << len(taken) > most:
            break
        taken.append(columns * repeat)
        repeat *= 2
    if any(word not in number for word in taken):
        return None
    rest = [word for word in number if word not in taken]
    rows = sum(word >> 16 for word in taken) | sum(v[0] for v in one.bases["lane"])
    inside = repeat * columns - 1
    if any(word >> 16 & rows or word & 0xFFFF & inside for word in (*rest, *words["warp"][2:])):
        return None
    order = gf2.table([number[word] for word in taken])
    moves = [
        TensorMove(tuple(register ^ base for register in order), offset)
        for base, offset in zip(
            gf2.table([number[word] for word in rest]), gf2.table(rest), strict=True
        )
    ]
    return TensorAccess(shape, repeat, tuple(moves), tuple(words["warp"]))

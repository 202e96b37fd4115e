"""Which instruction multiplies two tiles, and how its operands lie in registers. No MLIR here.

A product is [B x] M x K by [B x] K x N. Warps stand along B first, then along M and N; what
remains is repeated in registers: one atom's fragment, then K, N, M and B. A warp has two atoms
next to each other along N before the next warp begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from tile_cute.atoms import MmaAtom, MmaRow, find_dense, find_mma
from tile_cute.atoms.tiled import warp_grid
from tile_cute.atoms.types import BITS
from tile_cute.linear import LinearLayout
from tile_cute.linear.layout import log2

#: The atom of a product without tensor cores: fused multiply-adds of each thread.
FMA = "fma"

_FAMILY = "mma.sync"
#: The family of those that take block scales with their operands.
SCALED_FAMILY = "mma.block_scale"
_DIMS = {"a": "mk", "b": "kn", "c": "mn"}

#: MLIR element type -> PTX type; integers go by signedness.
PTX_TYPES = {
    "f16": "f16",
    "bf16": "bf16",
    "tf32": "tf32",
    "f32": "f32",
    "f64": "f64",
    "f8E4M3FN": "e4m3",
    "f8E5M2": "e5m2",
    "i32": "s32",
}
#: The same of elements that are multiplied with block scales only.
SCALED_PTX_TYPES = PTX_TYPES | {"f4E2M1FN": "e2m1"}
#: MLIR element type of block scales -> PTX type. Those of f8E4M3FN are not negative (Tile IR
#: specification, "mmaf_scaled"); f8E5M3FNU has no instruction of warps.
SCALE_TYPES = {"f8E8M0FNU": "ue8m0", "f8E4M3FN": "ue4m3"}

Shape = tuple[int, ...]
Grid = tuple[int, int, int]  # warps along B, M, N


#: In front of the name of an MMA of elements of four bits that are there as bytes of two.
_OF_BYTES, _BYTE = "bytes of ", "u8"


def atom_named(name: str) -> MmaAtom:
    """The warp-level MMA called `name`, with scales or without; KeyError if there is none."""
    for family in (_FAMILY, SCALED_FAMILY):
        row = find_dense(name.removeprefix(_OF_BYTES), family)
        if row is not None:
            return _of_bytes(row) if name.startswith(_OF_BYTES) else _only_shape(row)
    raise KeyError(name)


@lru_cache(maxsize=64)
def _of_bytes(row: MmaRow) -> MmaAtom:
    """The instruction as one of bytes, of which K has half as many and a scale half as many, too:
    a register has the same eight elements either way (PTX ISA, "mma.m16n8k64").
    """
    assert row.scale is not None, "others that read two elements from a byte are integers'"
    k, scale = row.k // 2, replace(row.scale, vector=row.scale.vector // 2)
    template = row.template.replace("{k}", str(row.k))
    return _only_shape(replace(row, a=_BYTE, b=_BYTE, k=k, scale=scale, template=template))


def name_of_bytes(atom: MmaAtom) -> str | None:
    """The name of an MMA with A and B as bytes of two elements; None if it has them in no bytes."""
    packed = {BITS[atom.row.a], BITS[atom.row.b], atom.container_bits("a")} == {4}
    return f"{_OF_BYTES}{atom.row.name}" if packed and atom.row.scale is not None else None


def is_of_bytes(name: str) -> bool:
    """Whether a warp-level MMA of this name takes A and B as bytes of two elements."""
    return name.startswith(_OF_BYTES)


@lru_cache(maxsize=256)
def _only_shape(row: MmaRow) -> MmaAtom:
    """The instruction of a row of warps', whose shape is one."""
    return row.atoms()[0]


def has_atom(name: str, family: str = _FAMILY) -> bool:
    """Whether `name` is a warp-level MMA of `family`."""
    row = find_dense(name.removeprefix(_OF_BYTES), family)
    if row is None or not is_of_bytes(name):
        return row is not None
    return name_of_bytes(_only_shape(row)) is not None


def choose_atom(
    chip: str, ptx_types: tuple[str, str, str], shape: tuple[int, int, int]
) -> MmaAtom | None:
    """The largest MMA of `chip` for types (A, B, C) that divides M x N x K, or M x K alone where
    the columns are fewer; None without any.
    """
    a, b, acc = ptx_types
    rows = find_mma(chip, family=_FAMILY, a=a, b=b, acc=acc, kind="", sparse=False, scaled=False)
    return _largest(rows, shape)


def choose_scaled_atom(
    chip: str, ptx_types: tuple[str, str, str], scale: tuple[str, int], shape: tuple[int, int, int]
) -> MmaAtom | None:
    """As `choose_atom`, with a scale of PTX type `scale[0]` for `scale[1]` elements along K."""
    a, b, acc = ptx_types
    rows = find_mma(chip, family=SCALED_FAMILY, a=a, b=b, acc=acc, sparse=False)
    fit = [row for row in rows if row.scale and (row.scale.type, row.scale.vector) == scale]
    return _largest(fit, shape)


def _largest(rows: Iterable[MmaRow], shape: tuple[int, int, int]) -> MmaAtom | None:
    """The largest atom that divides M x N x K; the first of several. Columns may be fewer than an
    atom's, which then makes each several times.
    """
    m, n, k = shape
    atoms = [
        atom
        for row in rows
        for atom in row.atoms()
        if m % atom.m == 0 and k % atom.k == 0 and (n % atom.n == 0 or atom.n % n == 0)
    ]
    return max(atoms, key=lambda atom: (n % atom.n == 0, atom.k, atom.m), default=None)


def product_shape(a: Shape, b: Shape) -> tuple[int, int, int, int]:
    """(B, M, N, K) of a product of tiles of shapes `a` and `b`; B is 1 for rank 2. `b` may as well
    be the accumulator's, which has all columns where blocks share those of B.
    """
    return (a[0] if len(a) == 3 else 1, a[-2], b[-1], a[-1])


def preferred_grid(
    atom: MmaAtom, shape: tuple[int, int, int, int], num_warps: int, whole_rows: bool = False
) -> Grid:
    """Warps along B, M, N: batches first, then parts as square as possible.

    With `whole_rows` warps stand along M as far as it reaches, so that a row stays in one warp.
    """
    batch, m, n, _ = shape
    along_batch = min(batch, num_warps)
    rest = num_warps // along_batch
    if whole_rows:
        rows = min(rest, m // atom.m)
        return along_batch, rows, rest // rows
    return along_batch, *warp_grid((m, n), atom, rest)


@lru_cache(maxsize=1024)
def fragment(
    atom: MmaAtom, operand: str, shape: tuple[int, int, int, int], rank: int, grid: Grid
) -> LinearLayout:
    """The layout of "a", "b" or "c" of a product of `shape` = (B, M, N, K), of rank 2 or 3.

    Operands are replicated over the warps that share them, and a tile smaller than the warps over
    the surplus ones.
    """
    own = {"a": atom.a_layout, "b": atom.b_layout, "c": atom.c_layout}[operand]
    assert own is not None, "warp-level MMAs have their operands in registers"
    bases = {space: list(own.bases[space]) for space in ("register", "lane")}
    return _repeated(bases, _DIMS[operand], dict(zip("mnk", atom.shape, strict=True)), shape, rank,
                     grid)  # fmt: skip


@lru_cache(maxsize=1024)
def scale_fragment(
    atom: MmaAtom, operand: str, shape: tuple[int, int, int, int], rank: int, grid: Grid
) -> LinearLayout:
    """The layout of the block scales of "a" or "b": [B x] M x K/V or [B x] K/V x N.

    Of each four lanes of a warp the first two hold those of rows g and g + 8 of A, the first the
    one of column g of B; the others have the same (PTX ISA, "Scale-factors A and B": thread-id 0).
    """
    scale = atom.row.scale
    assert scale is not None, "an atom that takes scales"
    rows = {"a": [(8, 0), (0, 0)], "b": [(0, 0), (0, 0)]}[operand]
    groups = [(step, 0) if operand == "a" else (0, step) for step in (1, 2, 4)]
    extents = {"m": atom.m, "n": atom.n, "k": 1}
    batch, m, n, k = shape
    bases = {"register": [], "lane": [*rows, *groups]}
    return _repeated(bases, _DIMS[operand], extents, (batch, m, n, k // scale.vector), rank, grid)


def _repeated(
    own: dict[str, list[Shape]],
    dims: str,
    extents: dict[str, int],
    shape: tuple[int, int, int, int],
    rank: int,
    grid: Grid,
) -> LinearLayout:
    """What lanes hold of one atom, `extents` large, repeated over warps and registers.

    `own` has the atom's bases, of two axes; `dims` says which.
    """
    sizes = dict(zip("bmnk", shape, strict=True))
    dims = ("b" if rank == 3 else "") + dims
    bases = {
        space: [(0,) * (rank - 2) + _within(vector, dims[-2:], sizes) for vector in vectors]
        for space, vectors in own.items()
    }
    # Two atoms of a warp lie next to each other along N where there are two: 16 columns, as many
    # bytes as matrices have in a row that ldmatrix transposes.
    paired = sizes["n"] >= 2 * extents["n"] * grid[2]
    reached = {"b": 1, "m": extents["m"], "n": extents["n"] << paired, "k": extents["k"]}
    bases["warp"] = []
    for name, warps in zip("mnb", (*grid[1:], grid[0]), strict=True):
        for _ in range(log2(warps)):
            fits = reached[name] < sizes[name]
            bases["warp"].append(_step(dims, name, reached[name] if fits else 0))
            reached[name] *= 2 if fits else 1
    for name in "knmb":
        if name == "n" and paired and name in dims:
            bases["register"].append(_step(dims, name, extents["n"]))
        while name in dims and reached[name] < sizes[name]:
            bases["register"].append(_step(dims, name, reached[name]))
            reached[name] *= 2
    return LinearLayout(bases, [sizes[name] for name in dims])


@dataclass(frozen=True)
class Fragments:
    """The fragments of an operand: the whole tile's, and those that one step along K needs.

    `steps` are the bases of K beyond the atom, in coordinates of the tile: step k is at the XOR
    of those whose bit is set in k.
    """

    whole: LinearLayout
    step: LinearLayout
    steps: tuple[Shape, ...]

    @staticmethod
    @lru_cache(maxsize=1024)
    def of(
        atom: MmaAtom, operand: str, shape: tuple[int, int, int, int], rank: int, grid: Grid
    ) -> Fragments:
        """Those of "a" or "b" of a product of `shape` = (B, M, N, K); see `fragment`."""
        whole = fragment(atom, operand, shape, rank, grid)
        own = {"a": atom.a_layout, "b": atom.b_layout}[operand]
        assert own is not None, "warp-level MMAs have their operands in registers"
        first = own.in_bits("register")
        last = first + log2(shape[3] // atom.k)
        registers = whole.bases["register"]
        bases = {space: whole.bases[space] for space in ("lane", "warp")}
        bases["register"] = (*registers[:first], *registers[last:])
        return Fragments(whole, LinearLayout(bases, whole.shape), registers[first:last])


def _within(vector: Shape, dims: str, sizes: dict[str, int]) -> Shape:
    """A basis of an atom, which leads nowhere where it has more columns than the tile."""
    return tuple(
        value if value < sizes[dim] or dim != "n" else 0
        for value, dim in zip(vector, dims, strict=True)
    )


def _step(dims: str, name: str, value: int) -> Shape:
    return tuple(value if dim == name else 0 for dim in dims)


def _grids(atom: MmaAtom, shape: tuple[int, int, int, int], num_warps: int) -> Iterator[Grid]:
    """Every way to place the warps, the preferred ones first."""
    first = [preferred_grid(atom, shape, num_warps, rows) for rows in (False, True)]
    yield from first
    along_batch = 1
    while along_batch <= min(shape[0], num_warps):
        rows = 1
        while along_batch * rows <= num_warps:
            grid = along_batch, rows, num_warps // (along_batch * rows)
            if grid not in first:
                yield grid
            rows *= 2
        along_batch *= 2


@lru_cache(maxsize=1024)
def grid_of(
    atom: MmaAtom, shape: tuple[int, int, int, int], num_warps: int, accumulator: LinearLayout
) -> Grid | None:
    """How warps stand in an accumulator's layout; None if it is no tile of the atom."""
    for grid in _grids(atom, shape, num_warps):
        if fragment(atom, "c", shape, accumulator.rank, grid) == accumulator:
            return grid
    return None


# -- products without tensor cores -------------------------------------------------------------


def fma_step(shape: tuple[int, int, int, int], operand_bytes: int, limit: int) -> int:
    """How much of K fits into `limit` bytes of shared memory at once; 0 if nothing does."""
    batch, m, n, k = shape
    step = k
    while step and batch * (m + n) * step * operand_bytes > limit:
        step //= 2
    return step


def in_steps(layout: LinearLayout, axis: int, extent: int) -> LinearLayout:
    """`layout`, of a part along `axis`, repeated in registers up to `extent`."""
    shape = list(layout.shape)
    bases = {space: list(layout.bases[space]) for space in ("register", "lane", "warp")}
    while shape[axis] < extent:
        step = tuple(shape[axis] if dim == axis else 0 for dim in range(len(shape)))
        bases["register"].append(step)
        shape[axis] *= 2
    return LinearLayout(bases, shape)

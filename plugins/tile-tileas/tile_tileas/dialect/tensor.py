"""Tensor memory of nv_tileas: taken and given back, and products that accumulate in it.

A buffer in tensor memory is an `alloc_tensor` like any other until `tileas-allocate-tensor-memory`
gives it its columns: then the kernel takes what all of them need at once (`alloc_tmem`), each is a
`tmem_buffer` behind the address of that (`tmem_address`), and every way out gives it back
(`dealloc_tmem`). `copy` moves tiles between
such a buffer and registers, and has come to its end when it is over.
"""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from typing import Any

from tile_cute import gf2
from tile_cute.atoms.records import TENSOR
from tile_cute.atoms.tensor_memory import COLUMNS
from tile_cute.linear import LinearLayout

from tile_core.dialect import Operand, OperationSpec, Pure, ReadsAndWrites, Result, declare
from tile_core.mlir import ir
from tile_tileas.dialect.base import NvTileAS
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.effects import effects
from tile_tileas.dialect.staging import buffer_problem, is_index
from tile_tileas.mma.families import TENSOR as FAMILY
from tile_tileas.mma.tensor import ctas_of
from tile_tileas.mma.tiers import SCALED_TIERS, tier_of

#: Of a buffer in tensor memory: what its loop does to it, and to what lies over it, is in order by
#: what the loop waits for.
ORDERED = "ordered"
#: On a product: which of its instruction's steps along K are made, from one to before another.
STEPS = "steps"
#: Sides of a meeting of threads (PTX ISA, "tcgen05.fence").
SIDES = ("before", "after")
#: Columns are taken as a power of two, this at least (PTX ISA, "tcgen05.alloc").
LEAST_COLUMNS = 32
#: Attribute of what says that threads have read an accumulator, and of the fence before it.
GIVES_BACK = "gives_back"
#: Attribute of `dealloc_tmem`: all who have worked there have met before.
MET = "met"
#: Products that a thread begins.
UMMA = ("nv_tileas.umma", "nv_tileas.umma_scaled")


def tensor_columns(buffer: Buffer) -> int:
    """Columns of tensor memory that a buffer takes."""
    layout = buffer.layout
    assert layout is not None, "buffers in tensor memory are made with their layouts"
    return layout.in_size("column") * buffer.stages


def column_runs(buffer: Buffer) -> tuple[int, list[int]]:
    """(columns, places): so many columns side by side from each place on that hold elements of a
    part of a buffer; between them lies what is none of its own (`column_slice`).
    """
    layout = buffer.layout
    assert layout is not None, "buffers in tensor memory are made with their layouts"
    own = [1 << bit for bit, vector in enumerate(layout.bases["column"]) if any(vector)]
    each = 1
    while each in own:
        own.remove(each)
        each *= 2
    places = gf2.table(own)
    stage = layout.in_size("column")
    return each, [stage * number + at for number in range(buffer.stages) for at in places]


def _columns(op: ir.OpView) -> str | None:
    number = op.columns.value
    if LEAST_COLUMNS <= number <= COLUMNS and not number & (number - 1):
        return None
    return f"expects a power of two from {LEAST_COLUMNS} to {COLUMNS} columns, but got {number}"


def _word(op: ir.OpView) -> str | None:
    """One i32 in shared memory."""
    problem = buffer_problem(op.storage.type)
    if problem is not None:
        return problem
    buffer = Buffer.of(op.storage.type)
    assert buffer is not None
    element = buffer.tile.element_type
    one = isinstance(element, ir.IntegerType) and element.width == 32 and set(buffer.shape) == {1}
    if not one or buffer.space == TENSOR or buffer.stages != 1:
        return f"expects a buffer of one i32 in shared memory, but got {op.storage.type}"
    return None


def _address(value: ir.Value) -> str | None:
    return None if is_index(value) else f"expects an address of i32, but got {value.type}"


def _placed(op: ir.OpView) -> str | None:
    problem = _address(op.address) or buffer_problem(op.result.type)
    if problem is not None:
        return problem
    buffer, column = Buffer.of(op.result.type), op.column.value
    assert buffer is not None
    if buffer.space != TENSOR:
        return f"expects a buffer in tensor memory, but got {op.result.type}"
    if column < 0 or column + tensor_columns(buffer) > COLUMNS:
        return f"has no columns from {column} on for {op.result.type}"
    return None


def _viewed(op: ir.OpView) -> str | None:
    """A part of the columns, in which elements lie as they do in the source, or one stage."""
    problem = buffer_problem(op.source.type) or buffer_problem(op.result.type)
    if problem is None and not is_index(op.column):
        problem = f"expects a column of i32, but got {op.column.type}"
    if problem is not None:
        return problem
    source, result = Buffer.of(op.source.type), Buffer.of(op.result.type)
    assert source is not None
    assert result is not None
    if source.space != TENSOR or result.space != TENSOR or result.stages != 1:
        return f"expects one stage in tensor memory, but got {op.result.type}"
    assert source.layout is not None
    same = source.tile.element_type == result.tile.element_type
    if not same or result.layout != column_slice(source.layout, result.shape):
        return f"cannot view {op.source.type} as {op.result.type}"
    return None


def column_slice(layout: LinearLayout, shape: Sequence[int]) -> LinearLayout | None:
    """The layout of a tile of `shape` that begins at a multiple of that in tensor memory of
    `layout`: columns that choose the tile are none of its own. None if rows would choose it.
    """

    def inside(vector: Sequence[int]) -> bool:
        return all(x < extent for x, extent in zip(vector, shape, strict=True))

    if len(shape) != len(layout.shape) or not all(map(inside, layout.bases["row"])):
        return None
    if not all(
        inside(v) or all(x % extent == 0 for x, extent in zip(v, shape, strict=True))
        for v in layout.bases["column"]
    ):
        return None
    nothing = (0,) * len(shape)
    kept = [v if inside(v) else nothing for v in layout.bases["column"]]
    while kept and kept[-1] == nothing:
        kept.pop()
    bases = {space: layout.bases[space] for space in layout.spaces}
    return LinearLayout({**bases, "column": kept}, tuple(shape))


def column_of(layout: LinearLayout, origin: Sequence[int]) -> int:
    """The column in which the element at `origin` lies, which is in the first row."""
    column = gf2.Span(list(layout.flat("column"))).solve(layout.flatten(origin))
    assert column is not None, "a multiple of a slice's shape"
    return column


def _steps(op: ir.OpView) -> str | None:
    """Some of the steps along K, in order."""
    if STEPS not in op.attributes:
        return None
    given = op.attributes[STEPS]
    found = list(given) if isinstance(given, ir.DenseI32ArrayAttr) else []
    if len(found) == 2 and 0 <= found[0] < found[1]:
        return None
    return f"expects a first step and one behind the last, but got {given}"


def _same_columns(op: ir.OpView) -> str | None:
    problem = buffer_problem(op.source.type) or buffer_problem(op.result.type)
    if problem is not None:
        return problem
    source, result = Buffer.of(op.source.type), Buffer.of(op.result.type)
    assert source is not None
    assert result is not None
    if source.space != TENSOR or result.space != TENSOR:
        return f"expects buffers in tensor memory, but got {op.source.type} and {op.result.type}"
    if tensor_columns(result) > tensor_columns(source):
        return f"has fewer columns in {op.source.type} than {op.result.type} takes"
    return None


def _side(op: ir.OpView) -> str | None:
    side = op.side.value
    return None if side in SIDES else f"expects a side of {', '.join(SIDES)}, but got '{side}'"


def _scales(op: ir.OpView) -> str | None:
    """Each in shared memory, and as many columns for it as there are."""
    for given, place in ((op.scale_a, op.place_a), (op.scale_b, op.place_b)):
        for value in (given, place):
            problem = buffer_problem(value.type)
            if problem is not None:
                return problem
        source, target = Buffer.of(given.type), Buffer.of(place.type)
        assert source is not None
        assert target is not None
        same = source.shape == target.shape
        if source.space == TENSOR or target.space != TENSOR or not same:
            return f"expects scales in shared memory for all places of {place.type}"
    return None


def _product(op: ir.OpView) -> str | None:
    """A in either memory (with scales: in shared), B in shared, C in tensor memory; M x K by K x N
    into M x N.
    """
    for value in (op.a, op.b, op.accumulator):
        problem = buffer_problem(value.type)
        if problem is not None:
            return problem
    a, b, c = (Buffer.of(value.type) for value in (op.a, op.b, op.accumulator))
    assert a is not None
    assert b is not None
    assert c is not None
    scaled = hasattr(op, "scale_a")
    if b.space == TENSOR or (a.space == TENSOR and scaled) or c.space != TENSOR:
        where = "A and B in shared memory" if scaled else "B in shared memory"
        return f"expects {where} and the accumulator in tensor memory"
    ctas = ctas_of(ir.StringAttr(op.atom).value)
    if a.shape[1:] != b.shape[:1] or c.shape != [a.shape[0], b.shape[1] * ctas]:
        return f"cannot multiply {a.shape} by {b.shape} into {c.shape}"
    if not isinstance(op.accumulate.type, ir.IntegerType) or op.accumulate.type.width != 1:
        return f"expects an i1 that says whether to accumulate, but got {op.accumulate.type}"
    atom = ir.StringAttr(op.atom).value
    try:
        family = tier_of(atom).family
    except KeyError:
        family = ""
    if family != FAMILY:
        return f"expects an atom of {FAMILY}, but got '{atom}'"
    if SCALED_TIERS[FAMILY].has(atom) != scaled:
        return f"expects scales with an atom that takes them, and no other, but got '{atom}'"
    return None


def _teams(op: ir.OpView) -> str | None:
    number = op.team.value
    if number < 2:
        return f"expects several teams, but got {number}"
    return None if is_index(op.result) else f"expects a number of i32, but got {op.result.type}"


SPECS = (
    OperationSpec(
        "team",
        {"team": ir.IntegerAttr, "result": Result[Any]},
        "The number (i32) of this thread's team, of so many in its agent.",
        (Pure,),
        (_teams,),
    ),
    OperationSpec(
        "alloc_tmem",
        {"storage": Operand[Any], "columns": ir.IntegerAttr},
        "The agent's last warp takes columns of tensor memory for the block, waiting until other "
        "blocks give theirs back; no more are asked for. Their address goes to the storage. With "
        "`pair` it is for products of pairs of blocks, as all of the kernel then are.",
        (effects(writes=("storage",)),),
        (_columns, _word),
    ),
    OperationSpec(
        "tmem_address",
        {"storage": Operand[Any], "result": Result[Any]},
        "The address of the columns that were taken, which all threads have met since.",
        (effects(reads=("storage",)),),
        (_word, lambda op: _address(op.result)),
    ),
    OperationSpec(
        "dealloc_tmem",
        {"address": Operand[Any], "columns": ir.IntegerAttr},
        "All threads meet, with `pair` those of all blocks of the cluster, unless they have `met` "
        "since they worked there, and the block gives its columns back.",
        (ReadsAndWrites,),
        (_columns, lambda op: _address(op.address)),
    ),
    OperationSpec(
        "tmem_buffer",
        {"address": Operand[Any], "column": ir.IntegerAttr, "result": Result[Any]},
        "The buffer that begins so many columns behind an address.",
        (Pure,),
        (_placed,),
    ),
    OperationSpec(
        "tmem_view",
        {"source": Operand[Any], "column": Operand[Any], "result": Result[Any]},
        "The same memory from a column on: one of its stages, or the tile of the result's shape "
        "that begins there. No data moves.",
        (Pure,),
        (_viewed,),
    ),
    OperationSpec(
        "tmem_columns",
        {"source": Operand[Any], "result": Result[Any]},
        "The columns of a buffer in tensor memory, as many as are needed, as a buffer of tiles of "
        "another type. No data moves.",
        (Pure,),
        (_same_columns,),
    ),
    OperationSpec(
        "tmem_fence",
        {"side": ir.StringAttr},
        "Accesses to tensor memory stay on their side of a meeting of threads: 'before' it those "
        "that this thread did, 'after' it (or a wait for products) those that it will do. With "
        "`leader` the agent's first thread fences alone, as it alone has waited.",
        (ReadsAndWrites,),
        (_side,),
    ),
    OperationSpec(
        "umma",
        {
            "a": Operand[Any],
            "b": Operand[Any],
            "accumulator": Operand[Any],
            "accumulate": Operand[Any],
            "atom": ir.StringAttr,
        },
        "One thread of the agent begins accumulator = A B, + accumulator if `accumulate`; A is in "
        "shared or tensor memory. With `steps`, two numbers, it begins the instruction's steps "
        "along K from the first to before the second, and no others. It is done, and A, B free, "
        "when an arrival of kind 'tcgen05' behind it is. With an atom of a pair one thread of its "
        "first block begins it for both: each has its rows of A and of the accumulator, and half "
        "of the columns of B. With `team` the first thread of each team begins the instructions of "
        "its own rows: of as many along M as there are teams.",
        (effects(reads=("a", "b"), writes=("accumulator",)),),
        (_product, _steps),
    ),
    OperationSpec(
        "umma_scaled",
        {
            "a": Operand[Any],
            "b": Operand[Any],
            "accumulator": Operand[Any],
            "accumulate": Operand[Any],
            "scale_a": Operand[Any],
            "scale_b": Operand[Any],
            "place_a": Operand[Any],
            "place_b": Operand[Any],
            "atom": ir.StringAttr,
        },
        "As umma, with block scales: the thread copies them from shared to tensor memory before "
        "the product, which takes them from there.",
        (
            effects(
                reads=("a", "b", "scale_a", "scale_b"),
                writes=("accumulator", "place_a", "place_b"),
            ),
        ),
        (_product, _scales),
    ),
)

for _spec in SPECS:
    declare(NvTileAS, _spec, module=__name__)

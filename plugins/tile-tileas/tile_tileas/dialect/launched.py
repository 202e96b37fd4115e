"""Launch control: a block takes over tile blocks of the grid that have not been launched.

The specification has `cancel_next_program_id`, which gives a program id, and
`is_valid_program_id`; here the answer comes to a buffer, as the hardware has it (PTX ISA,
"clusterlaunchcontrol"), so that the question may be asked long before the answer is read.
"""

# pyright: reportGeneralTypeIssues=false

from typing import Any

from tile_cute.atoms.records import SHARED
from tile_tileaa.dialect.types import is_integer

from tile_core.dialect import Operand, OperationSpec, ReadsAndWrites, Result, declare
from tile_core.mlir import ir
from tile_tileas.dialect.barriers import CTAS, barrier_problem
from tile_tileas.dialect.base import NvTileAS
from tile_tileas.dialect.buffers import Barrier, Buffer
from tile_tileas.dialect.cluster import MOST_CTAS
from tile_tileas.dialect.effects import effects
from tile_tileas.dialect.staging import buffer_problem, is_index

CANCEL = "nv_tileas.async_cancel_next_program_id"
IS_VALID = "nv_tileas.is_valid_program_id"
TAKE = "nv_tileas.take_program_id"
#: Words of an answer, i32.
ANSWER_WORDS = 4
AXES = 3


def _answer(op: ir.OpView) -> str | None:
    type_ = op.answer.type
    problem = buffer_problem(type_)
    if problem is not None:
        return problem
    buffer = Buffer.of(type_)
    assert buffer is not None
    if _is_of_words(buffer) and buffer.stages == 1:
        return None
    return f"expects a buffer of {ANSWER_WORDS} i32 in shared memory, but got {type_}"


def _is_of_words(buffer: Buffer) -> bool:
    """Whether each stage is an answer."""
    element = buffer.tile.element_type
    words = is_integer(element) and element.width == 32 and list(buffer.shape) == [ANSWER_WORDS]
    return words and buffer.space == SHARED


def _at(op: ir.OpView) -> str | None:
    problem = barrier_problem(op.barrier.type)
    if problem is None and not is_index(op.stage):
        return f"expects stage to be i32, but got {op.stage.type}"
    return problem or _blocks(op)


def _blocks(op: ir.OpView) -> str | None:
    if CTAS not in op.attributes:
        return None
    ctas = ir.IntegerAttr(op.attributes[CTAS]).value
    return None if 2 <= ctas <= MOST_CTAS else f"expects 2 to {MOST_CTAS} blocks, but got {ctas}"


def _taken(op: ir.OpView) -> str | None:
    """As many stages of answers as of both barriers."""
    type_ = op.answers.type
    problem = buffer_problem(type_)
    for barrier in (op.asked, op.read):
        problem = problem or barrier_problem(barrier.type)
    if problem is not None:
        return problem
    buffer = Buffer.of(type_)
    assert buffer is not None
    if not _is_of_words(buffer):
        return f"expects a buffer of {ANSWER_WORDS} i32 in shared memory, but got {type_}"
    for barrier in (op.asked, op.read):
        known = Barrier.of(barrier.type)
        assert known is not None
        if known.stages != buffer.stages:
            return f"expects barriers of {buffer.stages} stages, but got {known.stages}"
    return _blocks(op) or _valid(op) or _ids(op)


def _valid(op: ir.OpView) -> str | None:
    type_ = op.result.type
    return None if is_integer(type_) and type_.width == 1 else f"expects an i1, but got {type_}"


def _id(op: ir.OpView) -> str | None:
    if not is_index(op.result):
        return f"expects an i32, but got {op.result.type}"
    axis = op.axis.value
    return None if 0 <= axis < AXES else f"expects an axis of 0 to {AXES - 1}, but got {axis}"


def _ids(op: ir.OpView) -> str | None:
    wrong = next((one for one in (op.x, op.y, op.z) if not is_index(one)), None)
    return None if wrong is None else f"expects an i32, but got {wrong.type}"


_READS = effects(reads=("answer",))

SPECS = (
    OperationSpec(
        "async_cancel_next_program_id",
        {"answer": Operand[Any], "barrier": Operand[Any], "stage": Operand[Any]},
        "One thread asks for a tile block that has not been launched, which then never is. The "
        "answer comes to a buffer of four i32, and completes 16 bytes of the barrier's phase. With "
        "`ctas` (i32) a thread of the first block of a cluster asks for all of its blocks: the "
        "answer comes to the same buffer of each, and completes bytes of its barrier.",
        (effects(writes=("answer",)),),
        (_answer, _at),
    ),
    OperationSpec(
        "is_valid_program_id",
        {"answer": Operand[Any], "result": Result[Any]},
        "i1: whether a tile block was taken over.",
        (_READS,),
        (_answer, _valid),
    ),
    OperationSpec(
        "take_program_id",
        {
            "answers": Operand[Any],
            "asked": Operand[Any],
            "read": Operand[Any],
            "result": Result[Any],
            "x": Result[Any],
            "y": Result[Any],
            "z": Result[Any],
        },
        "Whether a tile block was taken over, and its place in the grid, as the answer says whose "
        "turn it is: each agent waits for it at `asked`, and its warps arrive at `read` when they "
        "have read it; with `ctas` (i32) at that of each block of the cluster. Agents go round the "
        "stages each for itself, as `barrier_next` of `asked` does.",
        (ReadsAndWrites,),
        (_taken,),
    ),
    OperationSpec(
        "next_program_id",
        {"answer": Operand[Any], "result": Result[Any], "axis": ir.IntegerAttr},
        "The place in the grid, i32, of the tile block that was taken over; 0 if none was.",
        (_READS,),
        (_answer, _id),
    ),
)

for _spec in SPECS:
    declare(NvTileAS, _spec, module=__name__)

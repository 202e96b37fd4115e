"""Launch control: a block takes over tile blocks of the grid that have not been launched.

The specification has `cancel_next_program_id`, which gives a program id, and
`is_valid_program_id`; here the answer comes to a buffer, as the hardware has it (PTX ISA,
"clusterlaunchcontrol"), so that the question may be asked long before the answer is read.
"""

# pyright: reportGeneralTypeIssues=false

from typing import Any

from tile_cute.atoms.records import SHARED
from tile_tileaa.dialect.types import is_integer

from tile_core.dialect import Operand, OperationSpec, Result, declare
from tile_core.mlir import ir
from tile_tileas.dialect.barriers import barrier_problem
from tile_tileas.dialect.base import NvTileAS
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.effects import effects
from tile_tileas.dialect.staging import buffer_problem, is_index

CANCEL = "nv_tileas.async_cancel_next_program_id"
IS_VALID = "nv_tileas.is_valid_program_id"
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
    element = buffer.tile.element_type
    words = is_integer(element) and element.width == 32 and list(buffer.shape) == [ANSWER_WORDS]
    if words and buffer.space == SHARED and buffer.stages == 1:
        return None
    return f"expects a buffer of {ANSWER_WORDS} i32 in shared memory, but got {type_}"


def _at(op: ir.OpView) -> str | None:
    problem = barrier_problem(op.barrier.type)
    if problem is None and not is_index(op.stage):
        return f"expects stage to be i32, but got {op.stage.type}"
    return problem


def _valid(op: ir.OpView) -> str | None:
    type_ = op.result.type
    return None if is_integer(type_) and type_.width == 1 else f"expects an i1, but got {type_}"


def _id(op: ir.OpView) -> str | None:
    if not is_index(op.result):
        return f"expects an i32, but got {op.result.type}"
    axis = op.axis.value
    return None if 0 <= axis < AXES else f"expects an axis of 0 to {AXES - 1}, but got {axis}"


_READS = effects(reads=("answer",))

SPECS = (
    OperationSpec(
        "async_cancel_next_program_id",
        {"answer": Operand[Any], "barrier": Operand[Any], "stage": Operand[Any]},
        "One thread asks for a tile block that has not been launched, which then never is. The "
        "answer comes to a buffer of four i32, and completes 16 bytes of the barrier's phase.",
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
        "next_program_id",
        {"answer": Operand[Any], "result": Result[Any], "axis": ir.IntegerAttr},
        "The place in the grid, i32, of the tile block that was taken over; 0 if none was.",
        (_READS,),
        (_answer, _id),
    ),
)

for _spec in SPECS:
    declare(NvTileAS, _spec, module=__name__)

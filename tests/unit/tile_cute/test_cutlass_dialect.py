"""Every operation of cutlass: accepted as it is meant, refused otherwise, in the right words."""

from __future__ import annotations

import pytest
from support.cutlass_operations import (
    ADVANCE,
    ARMS,
    BAR,
    END,
    GLOBAL,
    GMEM,
    LAUNCHED,
    LEGAL,
    PIPE,
    RMEM,
    ROLES,
    SHARED,
    START,
    STATE,
    SWITCH,
    THROTTLE,
    TURN,
    exec_text,
    info,
    kernel,
    params,
    text_of,
)
from tile_cute.cutlass.dialect import load
from tile_cute.cutlass.dialect.kinds import read
from tile_cute.cutlass.dialect.ops import OPERATIONS, TABLE

from tile_core.mlir import ir

#: Those that need others around them, which have tests of their own below.
AROUND = {
    "pipeline_switch_by_executor", "async_exec", "tile_scheduler_advance_to_next_work",
    "tile_scheduler_mods_report_mainloop_start", "tile_scheduler_mods_report_mainloop_end",
    "tile_scheduler_mods_throttle",
}  # fmt: skip


def refusal(text: str) -> str:
    """What is said of a module; empty if it is valid."""
    with ir.Context() as context, ir.Location.unknown():
        load()
        context.allow_unregistered_dialects = True
        try:
            module = ir.Module.parse(text)
        except ir.MLIRError as error:
            return str(error)
        again = ir.Module.parse(str(module))
        assert str(again) == str(module), "does not come back from its text"
        return ""


def test_there_are_seventy() -> None:
    assert len(OPERATIONS) == 70
    assert set(LEGAL) | AROUND == set(OPERATIONS)


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str) -> None:
    assert refusal(text_of(name, *LEGAL[name])) == ""


def _places() -> list[tuple[str, int, int]]:
    """Each operand (0) and each result (1) of each operation."""
    return [
        (name, side, at)
        for name in LEGAL
        for side in (0, 1)
        for at in range(len(read(str(TABLE[name][side]))))
    ]


@pytest.mark.parametrize(("name", "side", "at"), _places())
def test_each_place_has_its_kind(name: str, side: int, at: int) -> None:
    types = [list(LEGAL[name][0]), list(LEGAL[name][1])]
    if at >= len(types[side]):  # one that may be missing
        types[side].append("")
    types[side][at] = "vector<3xi7>"
    said = refusal(text_of(name, types[0], types[1], LEGAL[name][2]))
    assert f"'cutlass.{name}' op expects" in said
    assert "but got vector<3xi7>" in said


def _init(attributes: str, operands: tuple[str, ...] = (PIPE,)) -> str:
    return refusal(text_of("pipeline_init", list(operands), [], attributes))


_LISTS = "participants = array<i32: 0>, consumers = array<i32: 1, 2>"
_ONE = "numStages = 3, numProducers = 1, numConsumers = 2"


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        (f"numStages = 0, {_LISTS}", "cutlass.pipeline.init: invalid numStages"),
        (f"numStages = 4, {_LISTS}", "cutlass.pipeline.init: invalid numStages"),
        (f"numStages = 3, numProducers = 2, numConsumers = 2, {_LISTS}",
         "cutlass.pipeline.init: participants length mismatch"),
        (f"numStages = 3, numProducers = 1, numConsumers = 1, {_LISTS}",
         "cutlass.pipeline.init: consumers length mismatch"),
        (f"{_ONE}, {_LISTS}, barrier_id_base = 16",
         "cutlass.pipeline.init: barrier_id_base 16 is no named barrier, 0 to 15"),
        (f"{_ONE}, {_LISTS}, producer_group_id = 1, consumer_group_id = 1",
         "cutlass.pipeline.init: producers and consumers are both group 1"),
        (f"{_ONE}, participants = array<i32: 0>, consumers = array<i32: 1, 1>",
         "cutlass.pipeline.init: expects different warps, 0 to 31"),
        (f"{_ONE}, {_LISTS}, executor = 'x'".replace("'", '"'),
         "expects 'executor' to be one of cooperative, warp_specialized"),
        (f'{_ONE}, {_LISTS}, executor = "warp_specialized"',
         "cutlass.pipeline.init: expects one producer and one consumer of 'warp_specialized'"),
        ("numStages = 3, numProducers = 2, numConsumers = 1, participants = array<i32: 0, 1>, "
         'consumers = array<i32: 2>, executor = "strided_udiv"',
         "cutlass.pipeline.init: expects stages in equal parts, but got 3 for 2 producers"),
        (f"{_ONE}, {_LISTS}, arrive_counts = array<i32: 1, 3>",
         "cutlass.pipeline.init: expects arrive_counts [1, 2], but got [1, 3]"),
        (_ONE, "expects 'participants' to be an array of integers"),
    ],
)  # fmt: skip
def test_init(attributes: str, words: str) -> None:
    assert words in _init(attributes)


def test_participants_come_as_a_value_too() -> None:
    assert _init(_ONE, (PIPE, ROLES)) == ""
    other = "numStages = 3, numProducers = 2, numConsumers = 2"
    assert "participants length mismatch" in _init(other, (PIPE, ROLES))


@pytest.mark.parametrize(
    ("name", "operands", "results", "attributes", "words"),
    [
        ("pipeline_make_participants", [], [ROLES],
         "producers = array<i32: 1>, consumers = array<i32: 1, 2>",
         "expects participants ((1,), (1, 2)), but its type lists ((0,), (1, 2))"),
        ("pipeline_consumer_wait", [PIPE, "!cutlass.pipeline_state<4>"], [], "",
         "expects a cursor of 3 stages, but got one of 4"),
        ("pipeline_state_increment", [STATE], ["!cutlass.pipeline_state<2>"], "",
         "expects a cursor of 3 stages, but got one of 2"),
        ("pipeline_consumer_wait", ["!cutlass.pipeline<0>", "!cutlass.pipeline_state<0>"], [], "",
         "expects at least one stage, but got 0"),
        ("pipeline_producer_commit", [PIPE, STATE], [], "transaction_bytes = 1048576",
         "expects 0 to 1048575 transaction_bytes, but got 1048576"),
        ("seq_bar_create", [], ["!cutlass.seq_bar<0, 2>"], "",
         "expects a depth and a length, but got 0 and 2"),
        ("seq_bar_init", [BAR], [], "warps = 0", "expects groups of 1 to 32 warps, but got 0"),
        ("seq_bar_wait", [BAR, "!cutlass.seq_bar_state<3>", "i32"], [], "",
         "expects a cursor of depth 2, but got one of depth 3"),
        ("seq_bar_arrive", [BAR, TURN, "i32"], ["!cutlass.seq_bar_state<3>"], "",
         "expects a cursor of depth 2, but got one of depth 3"),
        ("named_barrier_arrive", [], [], "barrier_id = 0, threads = 64",
         "expects a named barrier, 1 to 15 (0 is the block's), but got 0"),
        ("named_barrier_arrive_and_wait", [], [], "barrier_id = 2, threads = 48",
         "expects threads of whole warps, a multiple of 32, but got 48"),
        ("named_barrier_arrive", [], [], "barrier_id = 2", "expects the integer attribute"),
        ("generic_barrier_wait_eq", [GLOBAL, "i32"], [], "barrier_id = 16",
         "expects a named barrier, 0 to 15, but got 16"),
        ("generic_barrier_wait_eq", [GLOBAL, "i32"], [], "barrier_id = 3",
         "expects the integer attribute 'threads'"),
        ("block_striped_load", [RMEM, GMEM, "i32"], [], "threads = 0",
         "expects a positive number of threads, but got 0"),
        ("block_striped_load", [RMEM, GMEM, "i32"], [], "threads = 64",
         "expects 4 elements for each of 64 threads, but got 128"),
        ("block_striped_load_add", [RMEM, GMEM.replace("f32", "f16"), "i32"], [], "threads = 32",
         "expects elements of f32 in memory, but got f16"),
        ("block_striped_store", [RMEM.replace("f32", "i8"), GMEM.replace("f32", "i8"), "i32"], [],
         "threads = 32", "expects elements of at least 16 bits, but got i8"),
        ("block_striped_store", [RMEM, '!cute.memref<f32, "gmem", "?:1">', "i32"], [],
         "threads = 32", "expects a static shape, but got ?:1"),
        ("block_striped_reduce", [RMEM.replace("f32", "f64"), GMEM.replace("f32", "f64"), "i32"],
         [], 'threads = 32, reduction = "max"', "cannot reduce f64 by max"),
        ("block_striped_reduce", [RMEM.replace("f32", "bf16"), GMEM.replace("f32", "bf16"), "i32"],
         [], 'threads = 32, reduction = "max"', "cannot reduce bf16 by max"),
        ("block_striped_reduce", [RMEM, GMEM, "i32"], [], 'threads = 32, reduction = "xor"',
         "expects 'reduction' to be one of add, max, but got 'xor'"),
        ("tile_scheduler_make_dp_params", [GLOBAL], [params("streamk")], "",
         "expects parameters of kind dp, but got streamk"),
        ("tile_scheduler_make_dp_params", [GLOBAL], [params("dp")],
         "cluster_shape = array<i32: 1, 0, 1>",
         "expects a cluster_shape of three extents, but got [1, 0, 1]"),
        ("tile_scheduler_create_dp_work_tile_info", [params("streamk"), "i32"], [info("streamk")],
         "", "expects parameters of kind dp, but got streamk"),
        ("tile_scheduler_static_fetch_next_work", [params("dp"), info("streamk")],
         [info("streamk")], "", "expects values of kind dp, but got streamk, streamk"),
        ("tile_scheduler_static_fetch_next_work", [params("dp"), info("dp")], [info("dp")],
         "swizzle = 3", "expects a swizzle of 1, 2, 4 or 8, but got 3"),
        ("tile_scheduler_create_sm100_scheduler", [params("streamk"), SHARED], [LAUNCHED], "",
         "expects parameters of kind dp, whose grid is launched, but got streamk"),
        ("tile_scheduler_fetch_next_work", [LAUNCHED, PIPE, STATE, info("dp")], [info("dp")], "",
         "expects work of kind sm100, but got dp"),
        ("tile_scheduler_work_tile_info_get_value", [info("dp")], ["i32"], 'field = "q"',
         "expects 'field' to be one of m, n, l"),
        ("tile_scheduler_params_get_value", [params("dp")], ["i32"], 'field = "workspace_ptr"',
         "expects 'workspace_ptr' as i64, but got i32"),
        ("tile_scheduler_initialize_workspace", [params("dp")], [], "",
         "expects parameters of kind streamk, but got dp"),
        ("tile_scheduler_get_workspace_sizes", [params("dp")], ["i64"] * 3,
         "accumulator_bytes = 0", "expects a positive number of accumulator_bytes, but got 0"),
        ("tile_scheduler_fixup", [params("streamk"), info("streamk"), "vector<4xf32>", "i32"],
         ["vector<8xf32>"], "threads = 32", "expects a sum of vector<4xf32>"),
        ("tile_scheduler_fixup_wait", [params("dp"), info("dp")], [],
         "threads = 32, accumulator_bytes = 64",
         "expects parameters of kind streamk, but got dp"),
        ("tile_scheduler_work_tile_info_to_cta_coord", [info("dp")], ["i32"] * 3,
         "cluster_shape = array<i32: 1>", "expects a cluster_shape of three extents"),
    ],
)  # fmt: skip
def test_refused(
    name: str, operands: list[str], results: list[str], attributes: str, words: str
) -> None:
    said = refusal(text_of(name, operands, results, attributes))
    assert f"'cutlass.{name}' op " in said
    assert words in said


def switch(**changed: str) -> str:
    return kernel(SWITCH.format(**{**ARMS, **changed}))


def test_switch() -> None:
    assert refusal(switch()) == ""


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"two": "mask = 15 : i32"}, "participants 0x1 are in two arms"),
        ({"two": "mask = 12 : i32"}, "expects arms for all warps 0xf, but got 0xd"),
        ({"one": "mask = 5 : i32", "two": "mask = 10 : i32"}, "a mask of neighbouring warps"),
        ({"one": ""}, "expects a mask of warps, but got 0x0"),
        ({"one": "mask = 1 : i32, numProducers = 2 : i32"},
         "expects the same (producers, consumers) in all arms, but got [(0, 0), (2, 0)]"),
    ],
)  # fmt: skip
def test_switch_refused(changed: dict[str, str], words: str) -> None:
    said = refusal(switch(**changed))
    assert words in said


def test_switch_holds_arms() -> None:
    text = '"cutlass.pipeline_switch_by_executor"() ({ "test.x"() : () -> () }) : () -> ()'
    assert "expects a region of 'cutlass.async_exec'" in refusal(kernel(text))


def test_exec_has_warps_of_those_around() -> None:
    inner = '"cutlass.async_exec"() ({ }) {mask = 2 : i32} : () -> ()'
    assert refusal(kernel(inner)) == ""
    said = refusal(switch(first=inner))
    assert "cutlass.async.exec: mask 0x2 has warps outside of 0x1" in said


def test_advance_stands_in_async_exec() -> None:
    assert refusal(kernel(exec_text(ADVANCE))) == ""
    assert "expects to stand in 'cutlass.async_exec'" in refusal(kernel(ADVANCE))
    none = ADVANCE.replace("(%sched, %work)", "(%sched, %work) {tiles_per_pipeline_round = 0}")
    assert "expects at least one tile of a round, but got 0" in refusal(kernel(exec_text(none)))


def test_barriers_are_for_whole_warps() -> None:
    text = """
  %l = nvvm.elect.sync -> i1
  scf.if %l {
    "cutlass.named_barrier_arrive_and_wait"() {barrier_id = 1, threads = 64} : () -> ()
  }
"""
    said = refusal(kernel(text))
    assert "is warp-cooperative, but stands where one lane of a warp comes" in said


def mods(text: str) -> str:
    return refusal(kernel(exec_text(text.replace("{pair}", "{}"))))


def test_mods_pairs() -> None:
    assert mods(START + THROTTLE + END) == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (START, "expects one mods_report_mainloop_end behind it, in the same region"),
        (START + START.replace("%t0", "%t2") + END, "expects one mods_report_mainloop_end"),
        (END.replace("%t0", "%since"), "expects one mods_report_mainloop_start before it"),
        (START.replace("{pair}", "{is_2cta_mma = true}") + END, "the same is_2cta_mma"),
        (START + END.replace("%all", "%n"), "expects the end of its pair to have the same part"),
        (START.replace("{pair}", "{is_2cta_mma}") + END.replace("{pair}", "{is_2cta_mma}"),
         "expects at most 2 participants, but got mask 0xf"),
        (START + END + THROTTLE, "expects to stand between a start and an end"),
        (THROTTLE, "expects to stand between a start and an end"),
        (THROTTLE.replace("2 : i32", "3 : i32"), "expects a profile of 0, 1 or 2, but got 3"),
    ],
)  # fmt: skip
def test_mods_refused(text: str, words: str) -> None:
    assert words in mods(text)


def test_mods_stand_in_async_exec() -> None:
    assert "expects to stand in 'cutlass.async_exec'" in refusal(
        kernel((START + END).replace("{pair}", "{}"))
    )

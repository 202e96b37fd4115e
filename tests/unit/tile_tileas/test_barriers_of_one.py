"""Where one thread waits for all others, and all for what it begins then: who needs no `sync`."""

from __future__ import annotations

from itertools import pairwise

import pytest
from support.tiles import registry
from tile_tileas.analysis.heard import Unheard

from tile_core.opt import OptJob, Selection, optimize

HEAD = """
#a = #nv_tileas.layout<"offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,0],[4,8],[8,0],[16,0],[32,0]] : 64x16">
#b = #nv_tileas.layout<"offset=[[1,0],[2,0],[4,0],[8,0],[0,1],[0,2],[8,4]] : 16x8">
#r = #nv_tileas.layout<"register=[[0,1],[0,2],[0,4]] lane=[[0,8],[1,0],[2,0],[4,0],[8,0]] warp=[[16,0],[32,0]] : 64x16">
#t = #nv_tileas.layout<"row=[[1,0],[2,0],[4,0],[8,0],[0,0],[16,0],[32,0]] column=[[0,1],[0,2],[0,4]] : 64x8">
#w = #nv_tileas.layout<": 1">
!a = !nv_tileas.buffer<tensor<64x16xf16, #a>, "shared", 1 : i32>
!b = !nv_tileas.buffer<tensor<16x8xf16, #b>, "shared", 1 : i32>
!c = !nv_tileas.buffer<tensor<64x8xf32, #t>, "tensor", 1 : i32>
!words = !nv_tileas.buffer<tensor<1xi64, #w>, "shared", 1 : i32>
!one = !nv_tileas.barrier<1 : i32, 1 : i32>
!all = !nv_tileas.barrier<128 : i32, 1 : i32>
func.func @f(%x: tensor<64x16xf16, #r>, %n: i32, %on: i1) attributes {nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
  %zero = arith.constant 0 : i32
  %a = "nv_tileas.alloc_tensor"() {alignment = 8 : i32, shared_offset = 0 : i32} : () -> !a
  %b = "nv_tileas.alloc_tensor"() {alignment = 8 : i32, shared_offset = 2048 : i32} : () -> !b
  %w0 = "nv_tileas.alloc_tensor"() {alignment = 8 : i32, shared_offset = 4096 : i32} : () -> !words
  %w1 = "nv_tileas.alloc_tensor"() {alignment = 8 : i32, shared_offset = 4104 : i32} : () -> !words
  %here = "nv_tileas.barrier_init"(%w0) : (!words) -> !all
  %done = "nv_tileas.barrier_init"(%w1) : (!words) -> !one
  "nv_tileas.sync"() : () -> ()
  %c = "nv_tileas.tmem_buffer"(%zero) {column = 0 : i32} : (i32) -> !c
"""  # noqa: E501
_COUNT = iter(range(1000))


def store(mark: str) -> str:
    """Threads write what the product has on its left."""
    return (
        f'"nv_tileas.copy"(%x, %a) {{mark = "{mark}", operandSegmentSizes = array<i32: 1, 1>, '
        "resultSegmentSizes = array<i32: 0>} : (tensor<64x16xf16, #r>, !a) -> ()"
    )


def product(mark: str) -> str:
    return (
        f'"nv_tileas.umma"(%a, %b, %c, %on) {{mark = "{mark}", '
        'atom = "tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.f16.f16"} : (!a, !b, !c, i1) -> ()'
    )


def wait(barrier: str, how: str = "") -> str:
    turn, kind = f"%turn{next(_COUNT)}", {"here": "!all", "done": "!one"}[barrier]
    return (
        f'{turn} = "nv_tileas.barrier_turn"(%{barrier}) : ({kind}) -> i32\n'
        f'"nv_tileas.barrier_wait"(%{barrier}, %zero, {turn}) {how} : ({kind}, i32, i32) -> ()'
    )


ARRIVE = (
    '"nv_tileas.barrier_arrive"(%here, %zero) {by = "thread", kind = "generic"} : (!all, i32) -> ()'
)
ONE_ARRIVES = ARRIVE.replace("thread", "agent").replace("here", "done").replace("!all", "!one")
COMMIT = ONE_ARRIVES.replace("generic", "tcgen05")
FIRST, ALL = wait("here", "{leader}"), wait("done")


def inserted(*lines: str) -> tuple[set[str], str]:
    """Marks of operations that get a `sync`, and the function as it is then."""
    body = "\n".join(lines)
    job = OptJob(registry(), Selection(passes="tileas-insert-barriers"))
    text = optimize(f"{HEAD}{body}\nreturn\n}}", 0, job).text
    found = text.splitlines()
    marks = {
        after.split('mark = "')[1].split('"')[0]
        for line, after in pairwise(found)
        if '"nv_tileas.sync"' in line and "mark" in after
    }
    return marks, text


@pytest.mark.parametrize(
    ("lines", "marks"),
    [
        ([store("s"), product("p")], {"p"}),
        ([store("s"), ARRIVE, FIRST, product("p")], set()),
        ([store("s"), ARRIVE, product("p"), FIRST], {"p"}),  # nobody has waited
        ([ARRIVE, store("s"), FIRST, product("p")], {"p"}),  # after it was said
        ([store("s"), FIRST, product("p")], {"p"}),  # nobody has arrived
        # Others have not heard of what they wrote; once they know of the product's end, they have.
        ([store("s"), ARRIVE, FIRST, product("p"), store("t")], {"t"}),
        ([store("s"), ARRIVE, FIRST, product("p"), COMMIT, store("t")], {"t"}),
        ([store("s"), ARRIVE, FIRST, product("p"), COMMIT, ALL, store("t")], set()),
        # That the one thread begins something says nothing of what it has not heard of.
        ([store("s"), COMMIT, ALL, store("t")], {"t"}),
        ([ARRIVE, FIRST, store("s"), COMMIT, ALL, store("t")], {"t"}),
        ([ARRIVE, FIRST, COMMIT, store("s"), ALL, store("t")], {"t"}),
    ],
)
def test_what_one_thread_hears_of(lines: list[str], marks: set[str]) -> None:
    assert inserted(*lines)[0] == marks


def test_a_loop_of_products() -> None:
    step = [store("s"), ARRIVE, FIRST, product("p"), COMMIT]
    loop = "scf.for %i = %n to %n step %n : i32 {{\n{0}\n}}".format
    marks, text = inserted(COMMIT, loop("\n".join([ALL, *step])))
    assert marks == set()
    # Writers fence, as the asynchronous proxy reads, and only before they arrive.
    assert text.count('"nv_tileas.fence"') == 1
    before = text.split('"nv_tileas.fence"')[1].splitlines()[1]
    assert '"nv_tileas.barrier_arrive"' in before
    assert 'kind = "generic"' in before
    # Without the wait for the product of the step before.
    assert inserted(COMMIT, loop("\n".join(step)))[0] == {"s"}


def test_a_branch_in_which_nobody_arrives() -> None:
    def branch(inside: str) -> str:
        return f"scf.if %on {{\n{inside}\n}}"

    assert inserted(store("s"), branch(f"{ARRIVE}\n{FIRST}"), product("p"))[0] == {"p"}


def test_what_is_known_in_one_branch_only_is_not_known() -> None:
    left, right = Unheard(), Unheard()
    for one in (left, right):
        one.add(writes=[(0, 8, None)])
    left.all_arrive((64, 72, None))
    assert left.copy().join(right)
    left.join(right)
    left.wait((64, 72, None), first_alone=True)
    assert left.first_thread.writes == {(0, 8, None)}
    right.all_arrive((64, 72, None))
    right.wait((64, 72, None), first_alone=True)
    assert not right.first_thread.writes
    assert right.any_thread.writes

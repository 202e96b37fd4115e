"""Where barriers are needed and where not: straight lines, branches, loops, tokens around loops."""

from __future__ import annotations

from itertools import pairwise

import pytest
from support.tiles import registry

from tile_core.opt import OptJob, Selection, optimize

HEAD = """
#a = #nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] warp=[[128],[256]] : 512">
#b = #nv_tileas.layout<"register=[[1],[2]] warp=[[4],[8]] lane=[[16],[32],[64],[128],[256]] : 512">
!a = tensor<512xf32, #a>
!b = tensor<512xf32, #b>
!ptrs = tensor<512x!nv_tileaa.ptr<f32, 1 : i32>, #a>
!tok = !nv_tileaa.mem_token
#m = #nv_tileas.layout<"offset=[[1],[2],[4],[8],[16],[32],[64],[128],[256]] : 512">
!m = !nv_tileas.buffer<tensor<512xf32, #m>, "shared", 1 : i32>
!mem = !nv_tileaa.memref<f32, array<i64: 4096>, array<i64: 1>>
!view = !nv_tileaa.tiled_view<!mem, array<i32: 512>, array<i32: 0>, "zero">
!twice = !nv_tileaa.memref<f32, array<i64: 8, 4096>, array<i64: 0, 1>>
!twices = !nv_tileaa.tiled_view<!twice, array<i32: 2, 512>, array<i32: 0, 1>, "zero">
"""
ARGUMENTS = "%p: !ptrs, %x: !a, %t: !tok, %n: i32, %c: i1, %base: !nv_tileaa.ptr<f32, 1 : i32>"


def scratch(name: str, at: int = 0) -> str:
    """A conversion through 2048 bytes of shared memory from `at` on."""
    alloc = f"alignment = 128 : i32, shared_offset = {at} : i32"
    copy = (
        f'"nv_tileas.convert_in_parts"(%x, %m{name[1:]}) {{mark = "{name[1:]}"}} : (!a, !m) -> !b'
    )
    return f'%m{name[1:]} = "nv_tileas.alloc_tensor"() {{{alloc}}} : () -> !m\n{name} = {copy}'


def load(name: str, token: str = "", semantic: str = "weak") -> str:
    scope = "" if semantic == "weak" else ', mem_scope = "gpu"'
    tokens, types = (f", {token}", ", !tok") if token else ("", "")
    return (
        f'{name}:2 = "nv_tileas.load"(%p{tokens}) {{mark = "{name[1:]}", mem_semantic = '
        f'"{semantic}"{scope}, operandSegmentSizes = array<i32: 1, 0, 0, {bool(token):d}>}} : '
        f"(!ptrs{types}) -> (!a, !tok)"
    )


def store(name: str, token: str = "") -> str:
    tokens, types = (f", {token}", ", !tok") if token else ("", "")
    return (
        f'{name} = "nv_tileas.store"(%p, %x{tokens}) {{mark = "{name[1:]}", mem_semantic = "weak", '
        f"operandSegmentSizes = array<i32: 1, 1, 0, {bool(token):d}>}} : (!ptrs, !a{types}) -> !tok"
    )


VIEW = """
%m = "nv_tileaa.make_memref"(%base) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!nv_tileaa.ptr<f32, 1 : i32>) -> !mem
%v = "nv_tileaa.block_tile"(%m) : (!mem) -> !view
"""  # noqa: E501


def tiled_load(name: str, token: str, kind: str = "!a") -> str:
    return (
        f'{name}:2 = "nv_tileas.tiled_load"(%v, %n, {token}) {{mark = "{name[1:]}", mem_semantic = '
        f'"weak", operandSegmentSizes = array<i32: 1, 1, 1>}} : (!view, i32, !tok) -> '
        f"({kind}, !tok)"
    )


def tiled_store(name: str, token: str) -> str:
    return (
        f'{name} = "nv_tileas.tiled_store"(%v, %x, %n, {token}) {{mark = "{name[1:]}", '
        'mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 1, 1>} : '
        "(!view, !a, i32, !tok) -> !tok"
    )


def marked(*lines: str) -> set[str]:
    """The marks of the operations that get a barrier."""
    body = "\n".join(lines)
    text = f"{HEAD}func.func @f({ARGUMENTS}) {{\n{body}\nreturn\n}}"
    job = OptJob(registry(), Selection(passes="tileas-insert-barriers"))
    found = optimize(text, 0, job).text.splitlines()
    return {
        after.split('mark = "')[1].split('"')[0]
        for line, after in pairwise(found)
        if '"nv_tileas.sync"' in line
    }


@pytest.mark.parametrize(
    ("lines", "barriers"),
    [
        ([scratch("%0")], set()),
        ([scratch("%0"), scratch("%1")], {"1"}),
        ([scratch("%0"), scratch("%1", 2048)], set()),
        # The second conversion's own barrier also ends the first one's reads.
        ([scratch("%0"), scratch("%1", 2048), scratch("%2")], set()),
        ([scratch("%0"), scratch("%1", 1024)], {"1"}),
    ],
)
def test_scratch(lines: list[str], barriers: set[str]) -> None:
    assert marked(*lines) == barriers


@pytest.mark.parametrize(
    ("lines", "barriers"),
    [
        ([store("%0"), load("%1", "%0")], {"1"}),
        ([store("%0"), load("%1")], set()),  # nothing orders them
        ([load("%0"), store("%1", "%0#1")], {"1"}),
        ([load("%0"), load("%1", "%0#1")], set()),  # weak loads do not disturb each other
        ([load("%0"), load("%1", "%0#1", "acquire")], {"1"}),
        ([store("%0"), store("%1", "%0")], {"1"}),
        # Through another access, and through a join of tokens.
        ([store("%0"), load("%1", "%0"), load("%2", "%1#1")], {"1"}),
        (
            [
                store("%0"),
                '%j = "nv_tileaa.join_mem_token"(%t, %0) : (!tok, !tok) -> !tok',
                load("%1", "%j"),
            ],
            {"1"},
        ),
        ([store("%0"), load("%1", "%t")], set()),
        # A conversion through shared memory has a barrier that serves the load as well.
        ([store("%0"), scratch("%1"), load("%2", "%0")], set()),
        ([store("%0"), load("%1", "%0"), store("%2", "%0")], {"1"}),
    ],
)
def test_tokens(lines: list[str], barriers: set[str]) -> None:
    assert marked(*lines) == barriers


def test_one_tile_of_a_view_stays_with_its_threads() -> None:
    assert marked(VIEW, tiled_load("%0", "%t"), tiled_store("%1", "%0#1")) == set()
    assert marked(VIEW, tiled_store("%0", "%t"), tiled_load("%1", "%0")) == set()
    assert marked(VIEW, tiled_store("%0", "%t"), tiled_load("%1", "%0", "!b")) == {"1"}


def test_tiles_whose_elements_share_addresses() -> None:
    """A view with a step of zero: two threads may write one address."""
    text = f"""{HEAD}
    #r = #nv_tileas.layout<"register=[[1,0],[0,1]] lane=[[0,2],[0,4],[0,8],[0,16],[0,32]] warp=[[0,64],[0,128],[0,256]] : 2x512">
    func.func @f({ARGUMENTS}, %y: tensor<2x512xf32, #r>) {{
      %m = "nv_tileaa.make_memref"(%base) {{operandSegmentSizes = array<i32: 1, 0, 0>}} : (!nv_tileaa.ptr<f32, 1 : i32>) -> !twice
      %v = "nv_tileaa.block_tile"(%m) : (!twice) -> !twices
      %0 = "nv_tileas.tiled_store"(%v, %y, %n, %n) {{mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, 2, 0>}} : (!twices, tensor<2x512xf32, #r>, i32, i32) -> !tok
      %1:2 = "nv_tileas.tiled_load"(%v, %n, %n, %0) {{mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 1>}} : (!twices, i32, i32, !tok) -> (tensor<2x512xf32, #r>, !tok)
      return
    }}"""  # noqa: E501
    job = OptJob(registry(), Selection(passes="tileas-insert-barriers"))
    assert optimize(text, 0, job).text.count('"nv_tileas.sync"') == 1


JOINED = '%j = "nv_tileaa.join_mem_token"(%0, %1) : (!tok, !tok) -> !tok'


def for_loop(*body: str, carry: str = "") -> str:
    """`carry` is the token that goes round; it comes in as %k and leaves as %l."""
    inner = "\n".join(body)
    if not carry:
        return f"scf.for %i = %n to %n step %n : i32 {{\n{inner}\n}}"
    return (
        f"%l = scf.for %i = %n to %n step %n iter_args(%k = %t) -> (!tok) : i32 {{\n{inner}\n"
        f"scf.yield {carry} : !tok\n}}"
    )


@pytest.mark.parametrize(
    ("lines", "barriers"),
    [
        ([for_loop(scratch("%0"))], {"0"}),  # the next turn writes what this one reads
        ([for_loop(scratch("%0"), scratch("%1", 2048))], set()),  # each ends the other's reads
        ([for_loop(store("%0"), load("%1", "%0"))], {"1"}),
        ([for_loop(load("%0", "%k"), store("%1", "%t"), carry="%1")], {"0"}),
        ([for_loop(load("%0", "%k"), carry="%0#1")], set()),
        ([for_loop(store("%0", "%k"), carry="%0")], {"0"}),
        ([for_loop(store("%0", "%t"), carry="%0"), load("%1", "%l")], {"1"}),
        # Stores that come behind those of the turn before all, and not behind one another.
        ([for_loop(store("%0", "%k"), store("%1", "%k"), JOINED, carry="%j")], {"0"}),
        ([for_loop(store("%0", "%k"), store("%1", "%0"), carry="%1")], {"0", "1"}),
        # A loop between: what was stored before it comes before what its token leads to.
        ([store("%0", "%t"), for_loop("", carry="%0"), load("%1", "%l")], {"1"}),
        (
            [
                for_loop(
                    store("%0", "%k"), for_loop(load("%1", "%0")).replace("%i", "%o"), carry="%0"
                )
            ],
            {"0", "1"},
        ),
        ([for_loop(store("%0", "%t"), carry="%k"), load("%1", "%l")], set()),
        # No turn at all: what came before the loop still waits behind it.
        ([store("%0"), for_loop(scratch("%1")), load("%2", "%0")], {"1", "2"}),
    ],
)
def test_loops(lines: list[str], barriers: set[str]) -> None:
    assert marked(*lines) == barriers


def branch(then: list[str], other: list[str]) -> str:
    lines = ["scf.if %c {", *then, "} else {", *other, "}"]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("lines", "barriers"),
    [
        ([branch([scratch("%0")], [scratch("%1")])], set()),
        ([branch([scratch("%0")], []), scratch("%1")], {"1"}),
        ([scratch("%0"), branch([scratch("%1", 2048)], []), scratch("%2")], {"2"}),
        (
            [scratch("%0"), branch([scratch("%1", 2048)], [scratch("%2", 4096)]), scratch("%3")],
            set(),
        ),
        ([store("%0"), branch([load("%1", "%0")], []), load("%2", "%0")], {"1", "2"}),
        (
            [
                f"%l = scf.if %c -> (!tok) {{\n{store('%0')}\nscf.yield %0 : !tok\n}} else {{\n"
                "scf.yield %t : !tok\n}",
                load("%1", "%l"),
            ],
            {"1"},
        ),
    ],
)
def test_branches(lines: list[str], barriers: set[str]) -> None:
    assert marked(*lines) == barriers


def while_loop(before: list[str], after: list[str], passed: str = "%k", back: str = "%q") -> str:
    """Carries one token: %k in the first region, %q in the second, %l behind the loop."""
    first, second = "\n".join(before), "\n".join(after)
    return (
        f"%l = scf.while (%k = %t) : (!tok) -> !tok {{\n{first}\n"
        f"scf.condition(%c) {passed} : !tok\n}} do {{\n^bb0(%q: !tok):\n{second}\n"
        f"scf.yield {back} : !tok\n}}"
    )


@pytest.mark.parametrize(
    ("lines", "barriers"),
    [
        ([while_loop([], [scratch("%0")])], {"0"}),
        ([while_loop([store("%0")], [load("%1", "%q")], passed="%0")], {"1"}),
        ([while_loop([load("%0", "%k")], [store("%1")], back="%1")], {"0"}),
        ([while_loop([store("%0")], [], passed="%0"), load("%1", "%l")], {"1"}),
        # The loop ends behind its first region: the second one's barrier does not help then.
        ([while_loop([store("%0")], [scratch("%1")], passed="%0"), load("%2", "%l")], {"1", "2"}),
        ([while_loop([load("%0", "%k")], []), load("%1", "%l")], set()),
    ],
)
def test_while_loops(lines: list[str], barriers: set[str]) -> None:
    assert marked(*lines) == barriers


MOVED = VIEW.replace(
    "%m = ",
    '%moved = "nv_tileaa.addptr"(%base, %i) : (!nv_tileaa.ptr<f32, 1 : i32>, i32) -> '
    "!nv_tileaa.ptr<f32, 1 : i32>\n%m = ",
).replace('make_memref"(%base)', 'make_memref"(%moved)')


def test_views_made_in_a_loop_may_differ() -> None:
    """The same operation, but another view each time round if its address moves."""
    accesses = tiled_load("%0", "%k"), tiled_store("%1", "%0#1")
    assert marked(for_loop(MOVED, *accesses, carry="%1")) == {"0", "1"}
    assert marked(for_loop(VIEW, *accesses, carry="%1")) == set()
    assert marked(VIEW, for_loop(*accesses, carry="%1")) == set()


ALLOCATION = """
%own, %at = "nv_tileaa.alloca"() {size = 4096 : i64, alignment = 16 : i64} : () -> (!nv_tileaa.ptr<f32, 1 : i32>, !tok)
%spread = "nv_tileaa.splat"(%own) : (!nv_tileaa.ptr<f32, 1 : i32>) -> !ptrs
"""  # noqa: E501


def test_memory_of_its_own_is_nobody_elses() -> None:
    """Accesses that cannot meet need no barrier, unless others may wait for one of them."""
    given = '%q = "nv_tileaa.splat"(%base) : (!nv_tileaa.ptr<f32, 1 : i32>) -> !ptrs'
    first, second = store("%0"), load("%1", "%0")
    apart = [first.replace("%p", "%spread"), second.replace("%p", "%q")]
    assert marked(ALLOCATION, given, *apart) == set()
    assert marked(ALLOCATION, given, first.replace("%p", "%q"), second.replace("%p", "%q")) == {"1"}
    waits = load("%1", "%0", "acquire").replace("%p", "%q")
    assert marked(ALLOCATION, given, apart[0], waits) == {"1"}
    # %p is an argument of unknown origin, which may not point to what was allocated here either.
    assert marked(ALLOCATION, apart[0], second) == set()

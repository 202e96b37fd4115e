"""Loops in a row that become one: which do, and that they compute what they did."""

from __future__ import annotations

import random

import pytest
from tile_cudatile import parse_text, print_text, verify
from tile_cudatile.transforms import canonicalize, join_loops, split_loops
from tile_cudatile.tree import Module
from unit.tile_cudatile.same_runs import check_same

from tile_core import compile as compile_program

#: Where the first loop ends and the second one begins, as front ends and `split_loops` write it.
RANGES = {
    "of cuTile": "%a = mini %u, %m signed : tile<i32>\n%b = maxi %l, %m signed : tile<i32>\n",
    "turned": "%a = mini %m, %u signed : tile<i32>\n%b = maxi %m, %l signed : tile<i32>\n",
    "of a split": "%a = mini %m, %u signed : tile<i32>\n%b = maxi %a, %l signed : tile<i32>\n",
}
ENDS = (("%l", "%a"), ("%b", "%u"))
PRINT = '%k{0} = print_tko "%d ", %{0} : tile<i32> -> token\n'


def body(changed: str = "", seen: str = "%x", made: str = "muli %v, %c") -> str:
    """x is made, changed, printed, and goes into what is carried."""
    return (
        f"%x = {made} : tile<i32>\n{changed}{PRINT.format(seen[1:])}"
        f"%y = addi {seen}, %i : tile<i32>\n%z = xori %y, %c : tile<i32>\ncontinue %z : tile<i32>\n"
    )


PLAIN = body()
CHANGED = body("%h = xori %x, %i : tile<i32>\n%g = subi %h, %m : tile<i32>\n", "%g")
OTHERWISE = body("%w = constant <i32: 11> : tile<i32>\n%g = muli %w, %x : tile<i32>\n", "%g")
HEAVY = body(
    "%w = constant <f32: 1.0> : tile<1x1xf32>\n"
    "%d = mmaf %w, %w, %w : tile<1x1xf32>, tile<1x1xf32>, tile<1x1xf32>\n"
    "%n = ftoi %d signed : tile<1x1xf32> -> tile<1x1xi32>\n"
    "%g = reshape %n : tile<1x1xi32> -> tile<i32>\n",
    "%g",
)


def program(
    *bodies: str, ranges: str = RANGES["of cuTile"], ends: tuple[tuple[str, str], ...] = ENDS,
    step: int = 1, kinds: tuple[str, ...] = ("", "", ""), between: str = "", stored: int = 0,
) -> Module:  # fmt: skip
    """Loops that run one after the other, each from and to one of `ends`."""
    loops = "".join(
        f"%r{at + 1} = for {kinds[at]}%i in ({ends[at][0]} to {ends[at][1]}, step %s) : tile<i32> "
        f"iter_values(%v = %r{at}) -> (tile<i32>) {{\n{inner}}}\n{'' if at else between}"
        for at, inner in enumerate(bodies)
    )
    module = parse_text(
        "entry @k(%p: tile<ptr<i32>>, %l: tile<i32>, %m: tile<i32>, %u: tile<i32>) {\n"
        f"%c = constant <i32: 3> : tile<i32>\n%r0 = constant <i32: 5> : tile<i32>\n"
        f"%s = constant <i32: {step}> : tile<i32>\n{ranges}{loops}"
        f"%t = store_ptr_tko weak %p, %r{len(bodies) + stored} : tile<ptr<i32>>, tile<i32> "
        "-> token\nreturn\n}\n"
    )
    verify(module)
    return module


def join(module: Module, most: int = 2) -> list[str | None]:
    """Why loops did not become one; None for those that did."""
    found = [one.why_not for one in join_loops(module, most, lambda loop: True)]
    verify(module)
    return found


def names(module: Module) -> list[str]:
    return [op.name for op in module.entries[0].body.walk()]


NEAR = [(low, turn, up) for low in (-1, 0, 2) for turn in range(-2, 5) for up in (-1, 0, 1, 3)]
FAR = [(0, 2**31 - 1, 3), (0, -(2**31), 3), (-(2**31), -(2**31) + 2, -(2**31) + 3),
       (2**31 - 4, 2**31 - 2, 2**31 - 1)]  # fmt: skip
HALVES = [(PLAIN, CHANGED), (CHANGED, PLAIN), (CHANGED, OTHERWISE), (PLAIN, PLAIN)]


@pytest.mark.parametrize("ranges", RANGES.values(), ids=RANGES)
@pytest.mark.parametrize("halves", HALVES)
def test_one_loop_computes_what_two_did(ranges: str, halves: tuple[str, str]) -> None:
    before, after = program(*halves, ranges=ranges), program(*halves, ranges=ranges)
    assert join(after) == [None]
    assert names(after).count("for") == 1
    for bounds in NEAR + FAR:
        check_same(before, after, bounds)


@pytest.mark.parametrize("halves", HALVES)
def test_bounds_that_nothing_keeps_in_order(halves: tuple[str, str]) -> None:
    """The first loop runs to where the second one begins, wherever that is."""
    given = {"ranges": "", "ends": (("%l", "%m"), ("%m", "%u"))}
    before, after = program(*halves, **given), program(*halves, **given)
    assert join(after) == [None]
    for bounds in [*NEAR, (2**31 - 3, 2**31 - 1, 0), (0, -(2**31), -(2**31) + 2)]:
        check_same(before, after, bounds)


@pytest.mark.parametrize("signs", ["signed", "unsigned"])
def test_three_loops_become_one(signs: str) -> None:
    """As a loop that was split twice: at %c, and what is before that at %m."""
    limits = ("%e = mini %u, %c", "%f = maxi %l, %c", "%a = mini %e, %m", "%b = maxi %l, %m")
    given = {
        "ranges": "".join(f"{limit} {signs} : tile<i32>\n" for limit in limits),
        "ends": (("%l", "%a"), ("%b", "%e"), ("%f", "%u")),
        "kinds": ("unsigned " if signs == "unsigned" else "",) * 3,
    }
    before, after = (program(PLAIN, CHANGED, OTHERWISE, **given) for _ in range(2))
    assert join(after) == [None, None]
    assert names(after).count("for") == 1
    for bounds in [(0, 1, 2), (2, 1, 0), (1, 5, 2), (0, 7, 7), (3, 0, 1), (1, 2, 9), (0, 1, 6)]:
        check_same(before, after, bounds)


def test_a_branch_gives_what_differs_and_nothing_else() -> None:
    module = program(PLAIN, CHANGED)
    join(module)
    found = names(module)
    assert found.count("if") == found.count("cmpi") == 1
    assert found.index("if") < found.index("subi") < found.index("print_tko")
    same = program(PLAIN, PLAIN)
    join(same)
    assert not {"if", "cmpi"} & set(names(same))


@pytest.mark.parametrize(
    ("halves", "given", "reason"),
    [
        ((PLAIN, CHANGED), {"step": 2}, "its steps"),
        (
            (PLAIN, CHANGED),
            {"ranges": RANGES["turned"].replace("signed", "unsigned")},
            "its steps",
        ),
        ((PLAIN, CHANGED), {"ends": (("%l", "%u"), ("%b", "%u"))}, "its steps"),
        ((PLAIN, CHANGED), {"ends": (("%m", "%a"), ("%b", "%u"))}, "its steps"),
        ((PLAIN, CHANGED), {"kinds": ("unsigned ", "")}, "in other ways"),
        ((PLAIN, CHANGED), {"between": PRINT.format("u")}, "between them"),
        ((PLAIN, CHANGED), {"stored": -1}, "something else uses"),
        ((PLAIN, body(PRINT.format("m"))), {}, "only one of them has 'print_tko'"),
        ((body(PRINT.format("m")), PLAIN), {}, "only one of them has 'print_tko'"),
        ((PLAIN, HEAVY), {}, "only one of them has 'print_tko'"),
    ],
)
def test_what_stays(halves: tuple[str, str], given: dict, reason: str) -> None:
    module = program(*halves, **given)
    (found,) = join(module)
    assert reason in str(found)
    assert print_text(module) == print_text(program(*halves, **given))


def test_bodies_may_differ_in_few_values() -> None:
    assert join(program(PLAIN, CHANGED), 1) == [None]
    assert join(program(PLAIN, CHANGED), 0) == ["their bodies differ in 1 values"]
    assert join(program(PLAIN, PLAIN), 0) == [None]


def test_loops_of_products_alone_are_joined() -> None:
    module = program(PLAIN, CHANGED)
    assert join_loops(module) == []
    assert names(module).count("for") == 2


@pytest.mark.parametrize("cleaned", [False, True])
def test_a_split_is_undone(cleaned: bool) -> None:
    text = (
        "%d = cmpi less_than %i, %m, signed : tile<i32> -> tile<i1>\n"
        "%g = if %d -> (tile<i32>) {\n%h = xori %x, %i : tile<i32>\nyield %h : tile<i32>\n"
        "} else {\n%n = negi %x : tile<i32>\nyield %n : tile<i32>\n}\n"
    )
    before, after = (program(body(text, "%g"), ends=(("%l", "%u"),)) for _ in range(2))
    assert split_loops(after) == 1
    if cleaned:
        canonicalize(after)
    assert names(after).count("for") == 2
    assert join(after) == [None]
    assert names(after).count("for") == 1
    for bounds in NEAR + FAR:
        check_same(before, after, bounds)


def random_halves(rng: random.Random) -> tuple[str, str]:
    """The same operations twice, with some of one half alone, whose results others then use."""
    halves: list[list[str]] = [[], []]
    known: list[list[str]] = [["v", "i", "c", "m"] for _ in halves]

    def operation(half: int, name: str, kind: str, places: tuple[int, int]) -> None:
        left, right = (known[half][place] for place in places)
        halves[half].append(f"%{name} = {kind} %{left}, %{right} : tile<i32>\n")

    for at in range(rng.randrange(2, 9)):
        kind, count = rng.choice(("addi", "muli", "xori", "subi")), len(known[0])
        places = (rng.randrange(count), rng.randrange(count))
        for half in (0, 1):
            for extra in range(rng.choice((0, 0, 0, 1, 2))):
                name = f"e{at}{half}{extra}"
                operation(half, name, rng.choice(("addi", "xori")), (places[0], rng.randrange(4)))
                if rng.random() < 0.5:
                    known[half][places[1]] = name
            operation(half, f"n{at}", kind, places)
            if at % 3 == 0:
                halves[half].append(PRINT.format(f"n{at}"))
        for half in (0, 1):
            known[half].append(f"n{at}")
    for half in (0, 1):
        halves[half].append(f"continue %{known[half][-1]} : tile<i32>\n")
    return "".join(halves[0]), "".join(halves[1])


def check_random(seeds: range) -> int:
    joined = 0
    for seed in seeds:
        rng = random.Random(seed)
        halves = random_halves(rng)
        ranges = rng.choice(list(RANGES.values()))
        before, after = program(*halves, ranges=ranges), program(*halves, ranges=ranges)
        if join(after, 4) == [None]:
            joined += 1
            for bounds in ((0, 2, 5), (1, 1, 3), (0, 9, 3)):
                check_same(before, after, bounds)
    return joined


def test_random_bodies() -> None:
    assert check_random(range(60)) > 20


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_many_random_bodies(part: int) -> None:
    assert check_random(range(1000 * part + 1000, 1000 * part + 2000)) > 300


def test_the_pass_remarks_what_it_did() -> None:
    product = (
        "%w = constant <f32: 1.0> : tile<16x16xf32>\n%q = mmaf %w, %w, %w : tile<16x16xf32>, "
        "tile<16x16xf32>, tile<16x16xf32>\n"
    )
    first, second = product + PLAIN, product + CHANGED
    most = "cuda-tile-loop-join.differences"
    for given, level, options, said in (
        ({}, 2, {}, ["LoopsJoined"]),
        ({"step": 2}, 2, {}, ["LoopsNotJoined"]),
        ({}, 2, {most: 0}, ["LoopsNotJoined"]),
        ({}, 2, {most: -1}, []),
        ({}, 1, {}, []),
    ):
        made = compile_program(
            print_text(program(first, second, **given)).encode(), "sm_80", opt_level=level,
            pass_options=options, stop_after="convert-cudatile-to-tileaa",
        )  # fmt: skip
        assert [r.name for r in made.remarks] == said

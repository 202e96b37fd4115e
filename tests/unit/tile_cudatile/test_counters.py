"""What loops count up beside their index: which numbers become functions of it, and the same."""

from __future__ import annotations

import random

import pytest
from tile_cudatile import parse_text, print_text, verify
from tile_cudatile.transforms import canonicalize, join_loops
from tile_cudatile.transforms.counters import derive_counters
from tile_cudatile.tree import Module, Op
from unit.tile_cudatile.same_runs import check_same

PRINT = '%k{0} = print_tko "%d ", %{0} : tile<i32> -> token\n'
#: What is counted begins here, and `%a` is where the loop does.
STARTS = {
    "anywhere": "%n = addi %x, %c : tile<i32>\n",
    "none": "%n = constant <i32: 0> : tile<i32>\n",
    "as the index": "%n = addi %a, %zero : tile<i32>\n",
    "its part": "%n = divi %a, %s signed rounding<negative_inf> : tile<i32>\n",
    "its part, in another rounding": "%n = divi %a, %s signed : tile<i32>\n",
}
#: Where a loop begins: wherever, or at a multiple of 64.
LOWER = {
    "anywhere": "%a = addi %l, %zero : tile<i32>\n",
    "a multiple": "%a = muli %l, %many : tile<i32>\n",
    "0": "%a = constant <i32: 0> : tile<i32>\n",
}


def program(
    start: str, lower: str, step: int = 32, unit: int = 1, *, kind: str = "", stored: int = 0,
    body: str = "", turned: bool = False,
) -> Module:  # fmt: skip
    """A loop that carries a sum and counts; it prints and adds up what it has counted."""
    added = "%u, %v" if turned else "%v, %u"
    module = parse_text(
        "entry @k(%p: tile<ptr<i32>>, %l: tile<i32>, %e: tile<i32>, %x: tile<i32>) {\n"
        "%c = constant <i32: 3> : tile<i32>\n%zero = constant <i32: 0> : tile<i32>\n"
        f"%many = constant <i32: 64> : tile<i32>\n%s = constant <i32: {step}> : tile<i32>\n"
        f"{lower}%b = addi %a, %e : tile<i32>\n{start}"
        f"%r0, %r1 = for {kind}%i in (%a to %b, step %s) : tile<i32> "
        "iter_values(%t = %c, %v = %n) -> (tile<i32>, tile<i32>) {\n"
        f"{PRINT.format('v')}{body}%w = muli %v, %c : tile<i32>\n%q = addi %t, %w : tile<i32>\n"
        f"%u = constant <i32: {unit}> : tile<i32>\n%z = addi {added} : tile<i32>\n"
        "continue %q, %z : tile<i32>, tile<i32>\n}\n"
        f"%o = store_ptr_tko weak %p, %r{stored} : tile<ptr<i32>>, tile<i32> -> token\n"
        "return\n}\n"
    )
    verify(module)
    return module


def loop_of(module: Module) -> Op:
    return next(op for op in module.entries[0].body.walk() if op.name == "for")


def carried(module: Module) -> int:
    return len(loop_of(module).results)


def names(module: Module) -> list[str]:
    return [op.name for op in loop_of(module).regions[0].walk()]


BOUNDS = [
    (low, width, x) for low in (-3, 0, 1, 5) for width in (-1, 0, 1, 33, 200) for x in (0, -9)
]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("lower", LOWER)
@pytest.mark.parametrize(("step", "unit"), [(32, 1), (1, 1), (7, 7), (8, 2), (3, 12), (6, 4)])
def test_it_counts_as_it_did(start: str, lower: str, step: int, unit: int) -> None:
    given = (STARTS[start], LOWER[lower], step, unit)
    before, after = program(*given), program(*given)
    assert derive_counters(after) == 1
    verify(after)
    assert carried(after) == 1
    for bounds in [*BOUNDS, (2**31 - 40, 39, 5), (-(2**31), 70, 1)]:
        if not (lower == "a multiple" and abs(bounds[0]) > 9):
            check_same(before, after, bounds)


@pytest.mark.parametrize("kind", ["", "unsigned "])
def test_numbers_that_wrap_around(kind: str) -> None:
    for start in ("anywhere", "none"):
        before, after = (program(STARTS[start], LOWER["anywhere"], kind=kind) for _ in range(2))
        assert derive_counters(after) == 1
        for bounds in [(-70, 60, 2**31 - 4), (-(2**31), 100, -1), (2**31 - 90, 80, 7)]:
            check_same(before, after, bounds)


def test_a_part_of_the_index_is_one() -> None:
    """As front ends write a loop over tiles: the index by their width, and nothing else."""
    for start in ("its part", "its part, in another rounding"):
        module = program(STARTS[start], LOWER["a multiple"])
        assert derive_counters(module) == 1
        assert names(module).count("divi") == 1
        assert not {"subi", "addi"} & set(names(module)[: names(module).index("print_tko")])
    module = program(STARTS["its part"], LOWER["anywhere"])  # which may not be whole
    derive_counters(module)
    assert "subi" in names(module)


def test_the_index_itself() -> None:
    module = program("%n = addi %l, %zero : tile<i32>\n", LOWER["anywhere"], 4, 4)
    assert derive_counters(module) == 1
    found = names(module)
    assert not {"subi", "divi"} & set(found)
    assert found.count("addi") == 1


def test_what_is_used_behind_the_loop_is_carried_on() -> None:
    before, after = (program(STARTS["none"], LOWER["0"], stored=1) for _ in range(2))
    assert derive_counters(after) == 1
    assert carried(after) == 1  # the number; nobody looks at the sum
    for bounds in BOUNDS:
        check_same(before, after, bounds)


@pytest.mark.parametrize("turned", [False, True])
def test_sums_either_way(turned: bool) -> None:
    assert derive_counters(program(STARTS["none"], LOWER["0"], turned=turned)) == 1


def test_what_stays() -> None:
    skipped = (
        "%d = cmpi less_than %t, %x, signed : tile<i32> -> tile<i1>\n"
        "if %d {\ncontinue %t, %v : tile<i32>, tile<i32>\n}\n"
    )
    for given in (
        {"body": skipped},  # not every iteration adds
        {"unit": 0},
        {"unit": -1},
    ):
        module = program(STARTS["none"], LOWER["0"], **given)
        text = print_text(module)
        assert derive_counters(module) == 0
        assert print_text(module) == text


def two_loops(first_step: int = 32, width: int = 64) -> Module:
    """Tiles below the diagonal, then those on it, each counted anew."""
    body = (
        f"{PRINT.format('v')}%w = muli %v, %i : tile<i32>\n"
        "%q = addi %t, %w : tile<i32>\n%z = addi %v, %one : tile<i32>\n"
        "continue %q, %z : tile<i32>, tile<i32>\n"
    )
    loop = "for %i in ({} to {}, step %{}) : tile<i32> iter_values(%t = {}, %v = {})"
    loop += " -> (tile<i32>, tile<i32>) {{\n" + body.replace("{", "{{").replace("}", "}}") + "}}\n"
    module = parse_text(
        "entry @k(%p: tile<ptr<i32>>, %l: tile<i32>, %e: tile<i32>, %x: tile<i32>) {\n"
        f"%one = constant <i32: 1> : tile<i32>\n%wide = constant <i32: {width}> : tile<i32>\n"
        f"%zero = constant <i32: 0> : tile<i32>\n%s = constant <i32: {first_step}> : tile<i32>\n"
        "%s2 = constant <i32: 32> : tile<i32>\n"
        "%m = muli %l, %wide : tile<i32>\n%m2 = muli %l, %wide : tile<i32>\n"
        "%b = addi %m2, %wide : tile<i32>\n"
        "%n = divi %m2, %s2 signed rounding<negative_inf> : tile<i32>\n"
        f"%r0, %r1 = {loop.format('%zero', '%m', 's', '%x', '%zero')}"
        f"%r2, %r3 = {loop.format('%m2', '%b', 's2', '%r0', '%n')}"
        "%o = store_ptr_tko weak %p, %r2 : tile<ptr<i32>>, tile<i32> -> token\nreturn\n}\n"
    )
    verify(module)
    return module


def test_loops_that_count_anew_become_one() -> None:
    before, after = two_loops(), two_loops()
    assert derive_counters(after) == 2
    assert [one.why_not for one in join_loops(after, 2, lambda loop: True)] == [None]
    verify(after)
    assert [op.name for op in after.entries[0].body.walk()].count("for") == 1
    for lower in (-2, 0, 1, 4):
        check_same(before, after, (lower, 0, 5))


@pytest.mark.parametrize(("first_step", "width"), [(16, 64), (32, 48)])
def test_loops_of_other_steps_stay_two(first_step: int, width: int) -> None:
    """In other steps, or where the second one may begin between two numbers of the first."""
    module = two_loops(first_step, width)
    derive_counters(module)
    (found,) = join_loops(module, 2, lambda loop: True)
    assert "in its steps" in str(found.why_not)


def test_random_loops() -> None:
    """Nested, and with several numbers: what they compute stays."""
    for seed in range(150):
        rng = random.Random(seed)
        text = _random(rng)
        before, after = parse_text(text), parse_text(text)
        count = derive_counters(after)
        verify(after)
        assert count or "%d0" not in text
        again = parse_text(text)
        canonicalize(again)
        derive_counters(again)
        for bounds in ((0, 40, 1), (-17, 65, 2**31 - 2), (9, 9, -4)):
            check_same(before, after, bounds)
            check_same(before, again, bounds)


def _random(rng: random.Random) -> str:
    count = rng.randrange(1, 4)
    units = [rng.choice((1, 2, 4, 5, 8)) for _ in range(count)]
    values = ", ".join(f"%d{n} = %{rng.choice(('l', 'x', 'c', 'zero'))}" for n in range(count))
    types = ", ".join(["tile<i32>"] * (count + 1))
    kind = rng.choice(("", "unsigned "))
    inner = "".join(
        f"%f{n} = constant <i32: {unit}> : tile<i32>\n%g{n} = addi %d{n}, %f{n} : tile<i32>\n"
        for n, unit in enumerate(units)
    )
    used = rng.randrange(count)
    nested = (
        f"%h = for %j in (%zero to %c, step %one) : tile<i32> iter_values(%o = %d{used}) "
        "-> (tile<i32>) {\n"
        f"{PRINT.format('o')}%y = addi %o, %c : tile<i32>\ncontinue %y : tile<i32>\n}}\n"
    )
    return (
        "entry @k(%p: tile<ptr<i32>>, %l: tile<i32>, %e: tile<i32>, %x: tile<i32>) {\n"
        "%c = constant <i32: 3> : tile<i32>\n%zero = constant <i32: 0> : tile<i32>\n"
        f"%one = constant <i32: 1> : tile<i32>\n%s = constant <i32: {rng.choice((1, 4, 6, 8))}> "
        ": tile<i32>\n%b = addi %l, %e : tile<i32>\n"
        f"%r{', %r'.join(map(str, range(count + 1)))} = for {kind}%i in (%l to %b, step %s) : "
        f"tile<i32> iter_values(%t = %c, {values}) -> ({types}) {{\n"
        f"{nested}%q = xori %t, %h : tile<i32>\n{PRINT.format(f'd{used}')}{inner}"
        f"continue %q, {', '.join(f'%g{n}' for n in range(count))} : {types}\n}}\n"
        f"%w = addi %r0, %r{rng.choice((0, count))} : tile<i32>\n"
        "%z = store_ptr_tko weak %p, %w : tile<ptr<i32>>, tile<i32> -> token\nreturn\n}\n"
    )

"""Folds and patterns, each where it applies and where it must not."""

from __future__ import annotations

from collections import Counter

import pytest
from tile_cudatile import parse_text, print_text, verify
from tile_cudatile.transforms import canonicalize, fuse_fma
from tile_cudatile.transforms.canonical import PATTERNS

HEAD = (
    "entry @k(%c: tile<i1>, %d: tile<i1>, %x: tile<i32>, %y: tile<i32>, %p: tile<ptr<i32>>, "
    "%f: tile<f32>, %g: tile<f32>, %q: tile<ptr<f32>>) {\n"
)
TRUE = "%t = constant <i1: true> : tile<i1>\n"
FALSE = "%n = constant <i1: false> : tile<i1>\n"


def put(value: str, to: str = "%p") -> str:
    """Uses a number, so that it stays."""
    kind = "f32" if to == "%q" else "i32"
    return (
        f"%s{value[1:]} = store_ptr_tko weak {to}, {value} : tile<ptr<{kind}>>, tile<{kind}> "
        "-> token\n"
    )


def after(body: str, transform=canonicalize) -> str:
    module = parse_text(f"{HEAD}{body}return\n}}\n")
    verify(module)
    transform(module)
    verify(module)
    return print_text(module)


def same(body: str, expected: str, transform=canonicalize) -> None:
    assert after(body, transform) == after(expected, lambda _: 0)


def changed(body: str, transform=canonicalize) -> bool:
    return after(body, transform) != after(body, lambda _: 0)


SELECT = "select {}, {}, {} : tile<i1>, tile<i32>\n"


def select(a: str, b: str, c: str, name: str = "%r") -> str:
    return f"{name} = select {a}, {b}, {c} : tile<i1>, tile<i32>\n"


NOT_C = TRUE + "%m = xori %c, %t : tile<i1>\n"
ONE = "%one = constant <i32: 1> : tile<i32>\n"
ZERO = "%zero = constant <i32: 0> : tile<i32>\n"


def compare(predicate: str) -> str:
    return f"%e = cmpi {predicate} %x, %y, signed : tile<i32> -> tile<i1>\n"


def branch(condition: str, then: str, other: str | None = "", results: str = "") -> str:
    arrow = f" -> ({results})" if results else ""
    name = "%r = " if results else ""
    rest = f" else {{\n{other}}}" if other is not None else ""
    return f"{name}if {condition}{arrow} {{\n{then}}}{rest}\n"


def give(value: str, kind: str = "i32") -> str:
    return f"yield {value} : tile<{kind}>\n"


REWRITES = [
        pytest.param(select("%c", "%x", "%x") + put("%r"), put("%x"), id="equal arms"),
        pytest.param(TRUE + select("%t", "%x", "%y") + put("%r"), put("%x"), id="true"),
        pytest.param(FALSE + select("%n", "%x", "%y") + put("%r"), put("%y"), id="false"),
        pytest.param(
            compare("equal") + select("%e", "%x", "%y") + put("%r"), put("%y"), id="if equal"
        ),
        pytest.param(
            compare("equal") + select("%e", "%y", "%x") + put("%r"), put("%x"), id="turned"
        ),
        pytest.param(
            compare("not_equal") + select("%e", "%x", "%y") + put("%r"), put("%x"), id="if unequal"
        ),
        pytest.param(
            NOT_C + select("%m", "%x", "%y") + put("%r"),
            select("%c", "%y", "%x") + put("%r"),
            id="negated",
        ),
        pytest.param(
            select("%c", "%x", "%y", "%i") + select("%c", "%i", "%x") + put("%r"),
            put("%x"),
            id="decided before",
        ),
        pytest.param(
            select("%c", "%x", "%y", "%i") + select("%c", "%x", "%i") + put("%r"),
            select("%c", "%x", "%y") + put("%r"),
            id="decided before, other",
        ),
        pytest.param(
            ONE + ZERO + select("%c", "%one", "%zero") + put("%r"),
            "%r = exti %c unsigned : tile<i1> -> tile<i32>\n" + put("%r"),
            id="1 and 0",
        ),
        pytest.param(
            ONE + ZERO + select("%c", "%zero", "%one") + put("%r"),
            NOT_C + "%r = exti %m unsigned : tile<i1> -> tile<i32>\n" + put("%r"),
            id="0 and 1",
        ),
        pytest.param(
            TRUE + FALSE + "%r = select %c, %t, %n : tile<i1>, tile<i1>\n"
            "if %r {\n" + put("%x") + "}\n",
            "if %c {\n" + put("%x") + "}\n",
            id="true and false",
        ),
        pytest.param(
            "%a = assume div_by<4>, %x : tile<i32>\n%b = assume div_by<4>, %a : tile<i32>\n"
            + put("%b"),
            "%b = assume div_by<4>, %x : tile<i32>\n" + put("%b"),
            id="assume twice",
        ),
        pytest.param(
            "%a = mulf %f, %g : tile<f32>\n%b = addf %f, %a : tile<f32>\n" + put("%b", "%q"),
            "%a = mulf %f, %g : tile<f32>\n%b = addf %a, %f : tile<f32>\n" + put("%b", "%q"),
            id="product first",
        ),
        pytest.param(
            NOT_C + branch("%m", put("%x"), put("%y")),
            branch("%c", put("%y"), put("%x")),
            id="if not",
        ),
        pytest.param(
            branch("%c", put("%x") + give("%x"), give("%y"), "tile<i32>"),
            branch("%c", put("%x"), None),
            id="unused result",
        ),
        pytest.param(
            branch("%c", put("%x") + give("%y"), give("%y"), "tile<i32>") + put("%r"),
            branch("%c", put("%x"), None) + put("%y"),
            id="same result",
        ),
        pytest.param(
            branch("%c", give("%x"), give("%y"), "tile<i32>") + put("%r"),
            select("%c", "%x", "%y") + put("%r"),
            id="select",
        ),
        pytest.param(
            TRUE + FALSE + branch("%c", put("%x") + give("%n", "i1"), give("%t", "i1"), "tile<i1>")
            + "%w = exti %r unsigned : tile<i1> -> tile<i32>\n" + put("%w"),
            NOT_C + branch("%c", put("%x"), None)
            + "%w = exti %m unsigned : tile<i1> -> tile<i32>\n" + put("%w"),
            id="negation as result",
        ),
        pytest.param(TRUE + branch("%t", put("%x"), put("%y")), put("%x"), id="static"),
        pytest.param(FALSE + branch("%n", put("%x"), None), "", id="static, absent"),
        pytest.param(
            TRUE + branch("%t", put("%x") + "return\n", None) + put("%y"), put("%x"), id="leaves"
        ),
        pytest.param(
            branch("%c", put("%x")), branch("%c", put("%x"), None), id="empty else"
        ),
        pytest.param(
            branch("%c", put("%x"), None) + branch("%c", put("%y"), put("%x")),
            branch("%c", put("%x") + put("%y"), put("%x")),
            id="neighbours",
        ),
        pytest.param(
            NOT_C + branch("%c", put("%x"), None) + branch("%m", put("%y"), None),
            branch("%c", put("%x"), put("%y")),
            id="opposite neighbours",
        ),
        pytest.param(
            branch("%c", put("%x") + "return\n", None) + branch("%c", put("%y"), put("%x")),
            branch("%c", put("%x") + "return\n", put("%x")),
            id="neighbour of one that leaves",
        ),
        pytest.param(
            branch("%c", branch("%d", put("%x"), None), None),
            "%b = andi %c, %d : tile<i1>\n" + branch("%b", put("%x"), None),
            id="nested",
        ),
        pytest.param(
            branch("%c", branch("%d", "return\n", None), None) + put("%x"),
            "%b = andi %c, %d : tile<i1>\n" + branch("%b", "return\n", None) + put("%x"),
            id="nested, leaves",
        ),
        pytest.param(
            branch("%c", put("%x") + "return\n", put("%y") + "return\n"),
            branch("%c", put("%x") + "return\n", None) + put("%y"),
            id="both leave",
        ),
        pytest.param(
            branch("%c", "return\n", give("%x"), "tile<i32>") + put("%r"),
            branch("%c", "return\n", None) + put("%x"),
            id="one leaves",
        ),
]  # fmt: skip


@pytest.mark.parametrize(("before", "expected"), REWRITES)
def test_rewrites(before: str, expected: str) -> None:
    same(before, expected)


UNCHANGED = [
        pytest.param(select("%c", "%x", "%y") + put("%r"), id="select"),
        pytest.param(compare("less_than") + select("%e", "%x", "%y") + put("%r"), id="less"),
        pytest.param(
            "%e = cmpi equal %x, %x, signed : tile<i32> -> tile<i1>\n"
            + select("%e", "%x", "%y") + put("%r"),
            id="others compared",
        ),
        pytest.param(
            "%a = assume div_by<4>, %x : tile<i32>\n%b = assume div_by<8>, %a : tile<i32>\n"
            + put("%b"),
            id="two assumptions",
        ),
        pytest.param(
            "%a = mulf %f, %g : tile<f32>\n%b = addf %a, %a : tile<f32>\n" + put("%b", "%q"),
            id="sum of products",
        ),
        pytest.param(branch("%c", put("%x"), None) + put("%y"), id="if"),
        pytest.param(branch("%c", put("%x"), None) + branch("%d", put("%y"), None), id="others"),
        pytest.param(
            ONE + branch("%c", put("%x"), None) + put("%one") + branch("%c", put("%y"), None),
            id="no neighbours",
        ),
        pytest.param(
            branch("%c", branch("%d", put("%x"), put("%y")), None), id="inner else"
        ),
        pytest.param(
            branch("%c", branch("%d", put("%x"), None) + put("%y"), None), id="more in the branch"
        ),
        pytest.param(branch("%c", "return\n", None) + put("%x"), id="one leaves"),
        pytest.param(
            "%r, %o = load_ptr_tko relaxed device %p : tile<ptr<i32>> -> tile<i32>, token\n",
            id="ordered load",
        ),
        pytest.param("%l = loop : tile<i32> {\nbreak %x : tile<i32>\n}\n", id="loop"),
]  # fmt: skip


@pytest.mark.parametrize("body", UNCHANGED)
def test_nothing_to_rewrite(body: str) -> None:
    assert not changed(body)


def fired_by(text: str) -> Counter[str]:
    module = parse_text(text)
    fired: Counter[str] = Counter()
    canonicalize(module, fired)
    return fired


def test_every_pattern_has_a_case_and_meets_one_it_leaves_alone() -> None:
    known = {p.__name__: name for name, patterns in PATTERNS.items() for p in patterns}
    fired: set[str] = set()
    for case in REWRITES:
        fired |= set(fired_by(f"{HEAD}{case.values[0]}return\n}}\n"))
    assert fired == set(known)
    met: set[str] = set()
    for case in UNCHANGED:
        module = parse_text(f"{HEAD}{case.values[0]}return\n}}\n")
        met |= {op.name for entry in module.entries for op in entry.body.walk()}
    assert set(known.values()) <= met


def test_nested_branches_keep_what_the_inner_else_gives() -> None:
    then = "%w = addi %x, %y : tile<i32>\n" + give("%w")
    inner = "%i = if %d -> (tile<i32>) {\n" + then + "} else {\n" + give("%y") + "}\n"
    outer = branch("%c", inner + give("%i"), give("%x"), "tile<i32>") + put("%r")
    text = after(outer)
    assert "andi" not in text  # the inner else gives %y, the outer %x
    same_else = branch("%c", inner + give("%i"), give("%y"), "tile<i32>") + put("%r")
    assert "andi" in after(same_else)


def test_dead_operations_go() -> None:
    dead = (
        "%a = addi %x, %y : tile<i32>\n%b = divi %a, %y signed : tile<i32>\n"
        "%r, %o = load_ptr_tko weak %p : tile<ptr<i32>> -> tile<i32>, token\n"
        "%z = for %i in (%x to %y, step %x) : tile<i32> iter_values(%v = %a) -> (tile<i32>) {\n"
        "%w = addi %v, %i : tile<i32>\ncontinue %w : tile<i32>\n}\n"
    )
    same(dead, "")


PRODUCT = "%a = mulf %f, %g : tile<f32>\n"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (
            PRODUCT + "%b = addf %a, %g : tile<f32>\n" + put("%b", "%q"),
            "%b = fma %f, %g, %g : tile<f32>\n" + put("%b", "%q"),
        ),
        (
            PRODUCT + "%b = addf %g, %a : tile<f32>\n" + put("%b", "%q"),
            "%b = fma %f, %g, %g : tile<f32>\n" + put("%b", "%q"),
        ),
        (
            PRODUCT + "%b = subf %a, %g : tile<f32>\n" + put("%b", "%q"),
            "%z = negf %g : tile<f32>\n%b = fma %f, %g, %z : tile<f32>\n" + put("%b", "%q"),
        ),
    ],
)
def test_fma(before: str, expected: str) -> None:
    same(before, expected, fuse_fma)


@pytest.mark.parametrize(
    "body",
    [
        PRODUCT + "%b = addf %a, %g : tile<f32>\n" + put("%b", "%q") + put("%a", "%q"),
        PRODUCT + "%b = addf %a, %g rounding<zero> : tile<f32>\n" + put("%b", "%q"),
        PRODUCT + "%b = addf %a, %g flush_to_zero : tile<f32>\n" + put("%b", "%q"),
        PRODUCT + "%b = subf %g, %a : tile<f32>\n" + put("%b", "%q"),
    ],
    ids=["two uses", "rounding", "denormals", "subtracted"],
)
def test_no_fma(body: str) -> None:
    assert not changed(body, fuse_fma)

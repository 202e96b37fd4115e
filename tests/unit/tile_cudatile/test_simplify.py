"""The simplifier: each rule where it applies and where it must not, and on random expressions."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from tile_cudatile import evaluate, parse_text, print_text, verify
from tile_cudatile.evaluator import EvaluationError
from tile_cudatile.transforms.simplify import RULES, simplify, simplify_counted
from unit.tile_cudatile.integer_terms import (
    PREDICATES,
    PROMISES,
    VARIABLES,
    Random,
    Term,
    Undefined,
    edges,
    kernel,
    meaning,
    number,
    printed,
    signed,
)
from unit.tile_cudatile.simplify_cases import CASES

#: Rules about tiles, which terms are not.
MOVES = {"moved_constant", "unmoved", "moved_twice", "compared_motion"}
ALL = [(name, before, after) for name, cases in CASES.items() for before, after in cases]


def agrees(before: Term, after: Term, inputs: dict[str, int]) -> bool:
    """Whether a term may be replaced by the other: whatever had a meaning keeps it."""
    try:
        expected = meaning(before, inputs)
    except Undefined:
        return True
    try:
        found = meaning(after, inputs)
    except Undefined:
        return False
    return expected is None or found == expected


def simplified(term: Term) -> tuple[Term, Counter[str]]:
    module = kernel(term)
    verify(module)
    done = simplify_counted(module)
    verify(module)
    (after,) = printed(module)
    return after, done.fired


def test_every_rule_has_cases() -> None:
    names = {rule.__name__ for rules in RULES.values() for rule in rules}
    assert names == set(CASES) | MOVES
    for name, cases in CASES.items():
        assert any(after is None for _, after in cases), f"{name}: no case without change"
        assert any(after is not None for _, after in cases), f"{name}: never applies"


@pytest.mark.parametrize(
    ("name", "before", "after"), ALL, ids=[f"{name}-{before}" for name, before, _ in ALL]
)
def test_rules(name: str, before: Term, after: Term | None) -> None:
    found, fired = simplified(before)
    if after is None:
        assert str(found) == str(before)
        assert not fired
    else:
        assert found == after
        assert fired[name]
    rng = random.Random(1)
    for _ in range(200):
        inputs = {v: rng.choice(edges(e)) for v, e in VARIABLES.items()}
        assert agrees(before, found, inputs), inputs


_CHOICES = {
    "overflow": PROMISES,
    "signedness": ("signed", "unsigned"),
    "comparison_predicate": PREDICATES,
    "rounding": ("zero", "positive_inf"),
}


def varied(term: Term, rng: random.Random, terms: Random) -> Term:
    """A term like the given one, with other numbers, promises, orders and parts."""
    if not term.operands:
        if term.name in VARIABLES:
            return term if rng.random() < 0.9 else terms.term(term.element, 1)
        return term if rng.random() < 0.4 else number(rng.choice(edges(term.element)), term.element)
    attrs = {
        key: rng.choice(_CHOICES[key]) if rng.random() < 0.3 and term.name != "negi" else value
        for key, value in term.attrs
    }
    if attrs.get("rounding") == "negative_inf" and attrs["signedness"] == "unsigned":
        attrs["rounding"] = "zero"
    operands = tuple(varied(o, rng, terms) for o in term.operands)
    return Term(term.name, term.element, operands, tuple(attrs.items()))


def random_terms(seeds: range) -> Iterator[tuple[Term, Random]]:
    """Some grown at random, more of them varied from the cases."""
    for seed in seeds:
        terms, rng = Random(seed), random.Random(seed)
        name = rng.choice(list(CASES))
        for before, _ in CASES[name]:
            yield varied(before, rng, terms), terms
        yield terms.term(rng.choice(list(VARIABLES.values())), rng.randrange(1, 5)), terms


def check(seeds: range) -> Counter[str]:
    fired: Counter[str] = Counter()
    for term, source in random_terms(seeds):
        after, done = simplified(term)
        fired += done
        for inputs in source.inputs(12):
            assert agrees(term, after, inputs), f"{term}\n=> {after}\n{inputs}"
    return fired


def test_random_terms_keep_their_meaning() -> None:
    fired = check(range(300))
    assert set(CASES) == set(fired), set(CASES) - set(fired)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_many_random_terms_keep_their_meaning(part: int) -> None:
    check(range(10_000 * (part + 1), 10_000 * (part + 1) + 4000))


def test_random_terms_evaluate_alike() -> None:
    """The reference evaluator, where it finds nothing undefined, agrees with exact integers."""
    compared = 0
    for seed in range(300):
        source = Random(seed)
        term = source.term(random.Random(seed).choice(list(VARIABLES.values())), 3)
        module, again = kernel(term), kernel(term)
        simplify(again)
        for inputs in source.inputs(4):
            try:
                expected = meaning(term, inputs)
            except Undefined:
                continue
            if expected is None or "shli" in str(term) or "shri" in str(term):
                continue
            values = [signed(inputs[v], max(e.width, 2)) for v, e in VARIABLES.items()]
            values = [-v if n[0] == "b" else v for n, v in zip(VARIABLES, values, strict=True)]
            try:
                first = evaluate(module, "k", (1,), values).printed
            except EvaluationError:
                continue  # a promise that does not hold in an arm that is not taken
            assert first == evaluate(again, "k", (1,), values).printed == [f"{expected}\n"], term
            compared += 1
    assert compared > 400


# What terms cannot say.

HEAD = "entry @k(%x: tile<i32>, %p: tile<ptr<i32>>, %c: tile<i1>) {\n"


def after(body: str, transform=simplify) -> str:
    module = parse_text(f"{HEAD}{body}return\n}}\n")
    verify(module)
    transform(module)
    verify(module)
    return print_text(module)


def same(body: str, expected: str) -> None:
    assert after(body) == after(expected, lambda _: 0)


def show(value: str, type_: str) -> str:
    return f'print_tko "%d", {value} : {type_} -> token\n'


def test_moves() -> None:
    row, square = "tile<1x4xi32>", "tile<4x4xf32>"
    same(
        "%a = constant <f32: 1.5> : tile<f32>\n%b = reshape %a : tile<f32> -> tile<1x1xf32>\n"
        f"%e = broadcast %b : tile<1x1xf32> -> {square}\n"
        f"%t = permute %e [1, 0] : {square} -> {square}\n" + show("%t", square),
        f"%t = constant <f32: 1.5> : {square}\n" + show("%t", square),
    )
    same(
        "%a = iota : tile<4xi32>\n%b = reshape %a : tile<4xi32> -> tile<4x1xi32>\n"
        f"%e = reshape %b : tile<4x1xi32> -> {row}\n" + show("%e", row),
        f"%a = iota : tile<4xi32>\n%e = reshape %a : tile<4xi32> -> {row}\n" + show("%e", row),
    )
    same(
        "%a = iota : tile<8xi32>\n%b = reshape %a : tile<8xi32> -> tile<2x2x2xi32>\n"
        "%d = permute %b [1, 2, 0] : tile<2x2x2xi32> -> tile<2x2x2xi32>\n"
        "%e = permute %d [2, 0, 1] : tile<2x2x2xi32> -> tile<2x2x2xi32>\n"
        + show("%e", "tile<2x2x2xi32>"),
        "%a = iota : tile<8xi32>\n%b = reshape %a : tile<8xi32> -> tile<2x2x2xi32>\n"
        + show("%b", "tile<2x2x2xi32>"),
    )
    kept = "%a = iota : tile<4xi32>\n%b = reshape %a : tile<4xi32> -> tile<2x2xi32>\n" \
        "%d = permute %b [1, 0] : tile<2x2xi32> -> tile<2x2xi32>\n"  # fmt: skip
    same(kept + show("%d", "tile<2x2xi32>"), kept + show("%d", "tile<2x2xi32>"))


@pytest.mark.parametrize("sign", ["signed", "unsigned"])
@pytest.mark.parametrize("other", ["signed", "unsigned"])
def test_comparisons_behind_moves_are_those_of_what_was_extended(sign: str, other: str) -> None:
    """As of the indices of a gather with the size of its array, if both are extended alike."""
    narrow, wide, shown = "tile<4x1xi32>", "tile<4x1xi64>", show("%k", "tile<4x8xi1>")
    made = (
        f"%a = iota : tile<4xi32>\n%r = reshape %a : tile<4xi32> -> {narrow}\n"
        "%n = constant <i32: 3> : tile<4xi32>\n%d = addi %a, %n : tile<4xi32>\n"
    )
    long = (
        f"%b = exti %r {sign} : {narrow} -> {wide}\n%e = broadcast %b : {wide} -> tile<4x8xi64>\n"
        f"%f = exti %d {other} : tile<4xi32> -> tile<4xi64>\n"
        f"%g = reshape %f : tile<4xi64> -> {wide}\n%h = broadcast %g : {wide} -> tile<4x8xi64>\n"
        f"%k = cmpi less_than %e, %h, unsigned : tile<4x8xi64> -> tile<4x8xi1>\n"
    )
    short = (
        f"%e = broadcast %r : {narrow} -> tile<4x8xi32>\n"
        f"%g = reshape %d : tile<4xi32> -> {narrow}\n"
        f"%h = broadcast %g : {narrow} -> tile<4x8xi32>\n"
        f"%k = cmpi less_than %e, %h, unsigned : tile<4x8xi32> -> tile<4x8xi1>\n"
    )
    same(made + long + shown, made + (short if sign == other else long) + shown)


def test_constants_that_are_not_alike_stay() -> None:
    tile = "tile<4xi32>"
    body = (
        f"%a = constant <i32: [1, 2, 3, 4]> : {tile}\n%z = constant <i32: 0> : {tile}\n"
        f"%b = addi %a, %a : {tile}\n"
    )
    same(body + show("%b", tile), body + show("%b", tile))
    same(
        body + f"%d = muli %b, %z : {tile}\n" + show("%d", tile),
        f"%d = constant <i32: 0> : {tile}\n" + show("%d", tile),
    )


def test_what_is_computed_already_is_used_again() -> None:
    one = "%o = constant <i32: 1> : tile<i32>\n"
    first = "%a = addi %x, %o : tile<i32>\n"
    inside = "%b = addi %o, %x : tile<i32>\n"
    same(one + first + inside + show("%b", "tile<i32>"), one + first + show("%a", "tile<i32>"))
    same(
        f"{one}{first}{show('%a', 'tile<i32>')}if %c {{\n{inside}{show('%b', 'tile<i32>')}}}\n",
        f"{one}{first}{show('%a', 'tile<i32>')}if %c {{\n{show('%a', 'tile<i32>')}}}\n",
    )
    apart = f"{one}if %c {{\n{first}{show('%a', 'tile<i32>')}}}\n{inside}{show('%b', 'tile<i32>')}"
    same(apart, apart)  # the branch may not be taken


def test_promises_are_not_inherited() -> None:
    plain = "%a = addi %x, %x : tile<i32>\n"
    promising = "%b = addi %x, %x overflow<no_signed_wrap> : tile<i32>\n"
    shown = show("%a", "tile<i32>") + show("%b", "tile<i32>")
    same(plain + promising + shown, plain + 2 * show("%a", "tile<i32>"))
    same(promising + plain + shown, promising + plain + shown)


def test_bodies_of_reductions_use_nothing_from_outside() -> None:
    body = (
        "%t = iota : tile<4xi32>\n%k = constant <i32: 3> : tile<i32>\n"
        + show("%k", "tile<i32>")
        + "%r = reduce %t dim=0 identities=[0 : i32] : tile<4xi32> -> tile<i32>\n"
        "(%e: tile<i32>, %s: tile<i32>) {\n%j = constant <i32: 3> : tile<i32>\n"
        "{}"
        "yield %m : tile<i32>\n}\n" + show("%r", "tile<i32>")
    )
    nested = "%l = minI %e, %j\n%m = minI %l, %s\n"
    nested = nested.replace("minI", "addi").replace("\n", " : tile<i32>\n")
    same(body.replace("{}", nested), body.replace("{}", nested))
    useless = "%o = muli %s, %j : tile<i32>\n%l = addi %e, %o : tile<i32>\n" \
        "%m = subi %l, %o : tile<i32>\n"  # fmt: skip
    simple = after(body.replace("{}", useless))
    assert "addi" not in simple
    assert simple.count("constant") == 1


def test_long_chains_take_linear_time() -> None:
    body = "%v0 = addi %x, %x : tile<i32>\n%o = constant <i32: 1> : tile<i32>\n"
    body += "".join(f"%v{i + 1} = addi %v{i}, %o : tile<i32>\n" for i in range(3000))
    body += show("%v3000", "tile<i32>")
    same(
        body,
        "%v = addi %x, %x : tile<i32>\n%o = constant <i32: 3000> : tile<i32>\n"
        "%w = addi %v, %o : tile<i32>\n" + show("%w", "tile<i32>"),
    )

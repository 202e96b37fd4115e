"""Options, conditions, references and overrides."""

from __future__ import annotations

import pytest

from tile_core.diagnostics import ConfigurationError
from tile_core.options import Spelled

TEXT = """\
[pipeline]
name = "t"
[options.depth]
type = "int"
default = 3
min = 1
max = 8
[options.fast]
type = "bool"
default = false
[options.mode]
type = "str"
default = "plain"
choices = ["plain", "fancy"]
[options.scheduler]
type = "str"
default = "absent"
names = "scheduler"
[[segment]]
name = "one"
passes = [
  { pass = "p", n = "$depth", flag = "$(depth > 2 and not fast)", cash = "$$depth" },
  { pass = "q", when = "sm >= 90" },
  { pass = "q", id = "again", when = "fast" },
]
[[segment]]
name = "two"
when = "mode == 'fancy'"
passes = ["r"]
[emit]
chain = ["e"]
[emit.options.e]
level = "$depth"
"""


def names(found) -> list[str]:
    return [call.id for call in found.passes()]


def test_references_and_conditions(resolved) -> None:
    found = resolved(TEXT)
    assert names(found) == ["p", "q"]
    assert found.passes()[0].options == {"n": 3, "flag": True, "cash": "$depth"}
    assert found.emitters[0].options == {"level": 3}
    assert found.options["scheduler"] == "absent"


def test_the_target_and_options_decide(resolved) -> None:
    assert names(resolved(TEXT, target="sm_80")) == ["p"]
    found = resolved(TEXT, options={"mode": "fancy", "fast": True, "depth": "5"})
    assert names(found) == ["p", "q", "again", "r"]
    assert found.passes()[0].options["flag"] is False
    assert found.options["depth"] == 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dept": 1}, ["no option 'dept'", "did you mean 'depth'?"]),
        ({"depth": "many"}, ["'depth' expects an integer, but got 'many'"]),
        ({"depth": True}, ["'depth' expects an integer, but got 'true'"]),
        ({"depth": 0}, ["must be at least 1"]),
        ({"depth": 9}, ["must be at most 8"]),
        ({"fast": "maybe"}, ["'fast' expects true or false"]),
        ({"mode": "fency"}, ["must be one of plain, fancy", "did you mean 'fancy'?"]),
        ({"scheduler": "toy-backward"}, ["names no scheduler", "did you mean 'toy-backwards'?"]),
    ],
)
def test_wrong_options(resolved, options, words) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolved(TEXT, options=options)
    for word in words:
        assert word in str(caught.value)


def test_reserved_options_are_refused_rather_than_ignored(resolved) -> None:
    text = TEXT.replace("default = 3", "default = 3\nreserved = true")
    assert resolved(text, options={"depth": 3}).options["depth"] == 3
    with pytest.raises(ConfigurationError, match="option 'depth' has no effect"):
        resolved(text, options={"depth": 4})


def test_options_that_do_not_go_together_are_refused(resolved) -> None:
    text = TEXT.replace("default = 3", 'default = 3\nneeds = "sm < 10"')
    assert resolved(text, options={"depth": 3}).options["depth"] == 3
    with pytest.raises(ConfigurationError, match="option 'depth' cannot be '4' here"):
        resolved(text, options={"depth": 4})
    said = text.replace("needs =", "refusal = 'no such luck'\nneeds =")
    with pytest.raises(ConfigurationError, match="no such luck"):
        resolved(said, options={"depth": 4})
    with pytest.raises(ConfigurationError, match="'sn'"):
        resolved(text.replace("sm <", "sn <"))


def test_names_of_strategies_are_looked_up(resolved) -> None:
    assert resolved(TEXT, options={"scheduler": "toy-backwards"}).options["scheduler"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("sm >= 90", "smm >= 90", ['"p.toml":23', "unknown name 'smm'", "did you mean 'sm'?"]),
        ("sm >= 90", "sm >=", ['"p.toml":23', "expected a value"]),
        ('"$depth", flag', '"$dept", flag', ['"p.toml":22', "$dept", "did you mean '$depth'?"]),
        ("default = 3", "default = 30", ['"p.toml":5', "must be at most 8"]),
        ("[emit.options.e]", "[emit.options.f]", ["emitter 'f' is not in the chain"]),
    ],
)
def test_mistakes_in_the_file(resolved, old: str, new: str, words) -> None:
    assert old in TEXT
    with pytest.raises(ConfigurationError) as caught:
        resolved(TEXT.replace(old, new, 1))
    for word in words:
        assert word in str(caught.value)


def test_overriding_options_of_passes(resolved) -> None:
    found = resolved(TEXT, pass_options={"p.n": Spelled("7"), "e.level": 1, "again.x": 2},
                     options={"fast": True})  # fmt: skip
    assert found.passes()[0].options["n"] == "7"
    assert [dict(call.options) for call in found.passes()[1:]] == [{}, {"x": 2}]
    assert found.emitters[0].options == {"level": 1}


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("pp.n", ["no pass or emitter 'pp'", "did you mean 'p'?"]),
        ("r.n", ["pass 'r' does not run with these options"]),
        ("n", ["names no option of a pass", "write -D PASS.OPTION=VALUE"]),
        ("fast", ["names no option of a pass", "write --set fast=VALUE"]),
    ],
)
def test_wrong_overrides(resolved, key: str, words) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolved(TEXT, pass_options={key: 1})
    for word in words:
        assert word in str(caught.value)


def test_cutting(resolved) -> None:
    found = resolved(TEXT, options={"mode": "fancy", "fast": True})
    assert names(found.upto("one")) == ["p", "q", "again"]
    assert names(found.upto("one/q")) == ["p", "q"]
    assert names(found.since("again")) == ["again", "r"]
    assert names(found.since("two")) == ["r"]
    with pytest.raises(ConfigurationError, match="runs 'q' 2 times") as caught:
        found.upto("q")
    assert "one/q, one/again" in str(caught.value)
    with pytest.raises(ConfigurationError, match="no segment or pass 'agian'") as caught:
        found.upto("agian")
    assert "did you mean 'again'?" in str(caught.value)

"""Reading pipeline files: the format, lines in errors, `extends`."""

from __future__ import annotations

import pytest
import tomli

from tile_core.diagnostics import ConfigurationError, SourceLocation
from tile_core.pipeline.json_schema import pipeline_schema, rejected_by_schema
from tile_core.pipeline.merge import Merged, merge
from tile_core.pipeline.tables import Source, find_line, read_file

GOOD = """\
# a comment with = and [brackets]
[pipeline]
name = "good"

[options.depth]
type = "int"
default = 3

[[segment]]
name = "first"
nest = ["gpu.module", "func.func"]
passes = [
  "a",   # "not this"
  { pass = "b", when = "depth > 1", size = 4 },
  "a",
]

[[segment]]
name = "second"
passes = ["c"]

[emit]
chain = ["x", "y"]
[emit.options.y]
level = "$depth"
"""


def bad(line: int, old: str, new: str, *words: str):
    return pytest.param(line, old, new, words, id=new[:30])


BROKEN = [
    bad(3, 'name = "good"', 'nam = "good"', "unknown key 'nam'", "did you mean 'name'?"),
    bad(3, '"good"', "7", "expected a string, but got 7"),
    bad(6, '"int"', '"integer"', "'integer' is not one of", "did you mean 'int'?"),
    bad(12, 'passes = [\n  "a",', "passes = [\n  3,", "expected a string or a table, but got 3"),
    bad(11, 'nest = ["gpu.module", "func.func"]', 'nest = "gpu"', "expected a list"),
    bad(18, 'name = "second"', 'nome = "second"', "unknown key 'nome'"),
    bad(22, 'chain = ["x", "y"]', 'chain = ["x", 1]', "expected a string, but got 1"),
    bad(21, "[emit]", "[emitt]", "unknown key 'emitt'", "did you mean 'emit'?"),
    bad(3, 'name = "good"', 'name = "good', "not valid TOML"),
]


@pytest.mark.parametrize(("line", "old", "new", "words"), BROKEN)
def test_mistakes_have_a_line_and_the_nearest_name(
    line: int, old: str, new: str, words: tuple[str, ...]
) -> None:
    assert old in GOOD
    with pytest.raises(ConfigurationError) as caught:
        read_file(Source("p.toml", GOOD.replace(old, new, 1)))
    text = str(caught.value)
    assert isinstance(caught.value.where, SourceLocation)
    found = caught.value.where.line
    # A wrong element of a list is found on its own line, which comes after that of the key.
    assert found in (line, line + 1), text
    for word in words:
        assert word in text


@pytest.mark.parametrize(("line", "old", "new", "words"), BROKEN[:-1])
def test_the_json_schema_agrees(line: int, old: str, new: str, words: tuple[str, ...]) -> None:
    assert rejected_by_schema(tomli.loads(GOOD)) is None
    assert rejected_by_schema(tomli.loads(GOOD.replace(old, new, 1))) is not None


def test_the_json_schema_describes_every_table() -> None:
    schema = pipeline_schema()
    assert set(schema["properties"]) == {
        "pipeline", "options", "set", "segment", "insert", "replace", "emit",
    }  # fmt: skip
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("pipeline", "name"), 3),
        (("options", "depth", "default"), 7),
        (("segment", 0, "passes", 0), 13),
        (("segment", 0, "passes", 1), 14),
        (("segment", 0, "passes", 1, "when"), 14),
        (("segment", 0, "passes", 2), 15),
        (("segment", 0, "nest", 1), 11),
        (("segment", 1, "passes", 0), 20),
        (("emit", "chain", 1), 23),
        (("emit", "options", "y", "level"), 25),
        (("nowhere",), 1),
    ],
)
def test_lines(path: tuple[str | int, ...], line: int) -> None:
    assert find_line(GOOD, path) == line


FILES = {
    "base": GOOD.replace('"good"', '"base"'),
    "derived": """\
[pipeline]
name = "derived"
extends = "base"
[set]
depth = 5
[[insert]]
segment = "first"
after = "b"
passes = ["new"]
[[insert]]
segment = "second"
passes = ["last"]
[[replace]]
segment = "second"
old = "c"
passes = ["c1", "c2"]
[[segment]]
name = "between"
after = "first"
passes = ["m"]
""",
}


def read(name: str) -> Source:
    if name not in FILES:
        raise ConfigurationError(f"there is no pipeline '{name}'", hint="did you mean 'base'?")
    return Source(f"{name}.toml", FILES[name])


def merged(text: str, level: str | None = None) -> Merged:
    return merge(Source("top.toml", text), read, level)


def shape(found: Merged) -> dict[str, list[str]]:
    return {s.name: [e.id for e in s.entries] for s in found.segments}


def test_extending() -> None:
    found = merged(FILES["derived"])
    assert shape(found) == {
        "first": ["a", "b", "new", "a"],
        "between": ["m"],
        "second": ["c1", "c2", "last"],
    }
    assert found.values["depth"][0] == 5
    assert found.emit.chain == ["x", "y"]
    assert [s.origin for s in found.sources] == ["base.toml", "top.toml"]


def test_extending_twice_and_the_level() -> None:
    text = '[pipeline]\nname = "t"\nextends = "-O"\n[[replace]]\nsegment = "between"\nold = "m"\n'
    assert shape(merged(text, "derived"))["between"] == []
    with pytest.raises(ConfigurationError, match="needs an optimisation level"):
        merged(text)


@pytest.mark.parametrize(
    ("addition", "words"),
    [
        ('[set]\ndeep = 1', ["unknown option 'deep'", "did you mean 'depth'?", '"top.toml":5']),
        ('[[insert]]\nsegment = "frist"\npasses = []', ["no segment 'frist'", "'first'", ":5:"]),
        ('[[insert]]\nsegment = "first"\nafter = "bb"\npasses = []', ["no pass 'bb'", ":6:"]),
        ('[[insert]]\nsegment = "first"\nafter = "a"\npasses = []', ["has 'a' 2 times", "an id"]),
        ('[[segment]]\nname = "first"', ["segment 'first' is already there"]),
        ('[[segment]]\nname = "n"\nbefore = "zzz"', ["no segment 'zzz'", ":6:"]),
        ('[options.depth]\ntype = "int"\ndefault = 1', ["option 'depth' is already declared"]),
        ('[[insert]]\nsegment = "first"\npasses = [{ passs = "x" }]', ["needs the pass's name"]),
        (
            '[[insert]]\nsegment = "first"\npasses = [{ pass = "x", n = [1] }]',
            ["option 'n' of pass 'x' must be a plain value"],
        ),
    ],
)  # fmt: skip
def test_mistakes_in_derived_files(addition: str, words: list[str]) -> None:
    text = f'[pipeline]\nname = "t"\nextends = "base"\n{addition}\n'
    with pytest.raises(ConfigurationError) as caught:
        merged(text)
    for word in words:
        assert word in str(caught.value)


def test_extending_what_is_not_there() -> None:
    with pytest.raises(ConfigurationError) as caught:
        merged('[pipeline]\nname = "t"\nextends = "bsae"\n')
    assert '"top.toml":3' in str(caught.value)
    assert "did you mean 'base'?" in str(caught.value)


def test_extending_in_a_circle() -> None:
    with pytest.raises(ConfigurationError, match="extends itself: derived -> base -> derived"):
        merge(
            Source("derived.toml", FILES["derived"]),
            lambda name: Source(
                "base.toml",
                FILES[name].replace('name = "base"', 'name = "base"\nextends = "derived"'),
            ),
        )

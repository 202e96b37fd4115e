"""Passes over textual MLIR: pipelines as text, splitting, expected diagnostics."""

from __future__ import annotations

import pytest

from tile_core.diagnostics import ConfigurationError, InputError, SourceLocation
from tile_core.nesting import check_nesting
from tile_core.opt import OptJob, Selection, optimize, split_input, verify_diagnostics_of
from tile_core.pipeline.text import as_text, parse_list, parse_text
from tile_core.registry import Registry
from tile_core.session import session_of

ROUND_TRIPS = [
    "builtin.module(toy-module)",
    "builtin.module(toy-module,gpu.module(func.func(toy-mark{value=3 key=sign},mlir:cse)))",
    "builtin.module(gpu.module(mlir:canonicalize{top-down=false}),toy-module)",
    "builtin.module(*(func.func(toy-mark)))",
    "builtin.module()",
]


@pytest.mark.parametrize("text", ROUND_TRIPS)
def test_text_round_trips(registry, text: str) -> None:
    assert as_text(parse_text(text, registry)) == text


def test_order_is_kept_across_anchors(registry) -> None:
    text = "builtin.module(gpu.module(func.func(toy-mark),mlir:cse,func.func(toy-look)))"
    segments = parse_text(text, registry)
    assert [(s.nest, [str(c) for c in s.passes]) for s in segments] == [
        (("gpu.module", "func.func"), ["toy-mark"]),
        (("gpu.module",), ["mlir:cse"]),
        (("gpu.module", "func.func"), ["toy-look"]),
    ]


def test_values_with_braces_and_quotes(registry) -> None:
    (segment,) = parse_list('toy-mark{key="si gn"}', registry)
    assert segment.passes[0].options == {"key": "si gn"}
    assert segment.nest == ("*", "func.func")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("func.func(toy-mark)", ["starts with 'builtin.module('"]),
        ("builtin.module(toy-mark", ["expected ','", "<here>"]),
        ("builtin.module(toy-mark{value=1)", ["invalid option block for pass 'toy-mark'"]),
        (
            "builtin.module(func.func(toy-mrk))",
            ["unknown pass 'toy-mrk' at the level of 'func.func'"],
        ),
        ("builtin.module(toy-module) x", ["unexpected text"]),
        ("builtin.module(,)", ["expected a pass or an operation name"]),
        (
            "builtin.module(toy-mrk)",
            ["unknown pass 'toy-mrk' at the level of 'builtin.module'", "did you mean 'toy-mark'?"],
        ),
        ("builtin.module(cse)", ["unknown pass 'cse'", "mlir:cse"]),
    ],
)
def test_wrong_text(registry, text: str, words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_text(text, registry)
    for word in words:
        assert word in str(caught.value)


def test_lists_name_the_pass_that_is_unknown(registry) -> None:
    with pytest.raises(ConfigurationError, match="unknown pass 'toy-mrk' at the level of its own"):
        parse_list("toy-mark,toy-mrk", registry)


def test_lists_need_commas(registry) -> None:
    with pytest.raises(ConfigurationError, match="expected ','"):
        parse_list("toy-mark toy-look", registry)


def run(registry, text: str, **selection) -> str:
    return optimize(text, 0, OptJob(registry, Selection(**selection))).text


def test_passes_find_their_anchors(registry, module_text: str) -> None:
    assert run(registry, module_text, passes="toy-mark{value=0x10}").count("mark = 16") == 2
    nested = "builtin.module(gpu.module(func.func(toy-mark)))"
    assert run(registry, module_text, pass_pipeline=nested).count("mark = 1 ") == 2
    assert "arith.addi" not in run(registry, module_text, passes="mlir:canonicalize")


def test_nothing_to_run_prints_the_input(registry) -> None:
    assert run(registry, "module {}") == "module {\n}\n\n"


def test_options_of_the_level_reach_the_passes(registry) -> None:
    with pytest.raises(ConfigurationError, match="no option 'num-wraps'"):
        run(registry, "module {}", options={"num-wraps": 1})


def test_splitting() -> None:
    assert split_input("a\n// -----\nb\nc\n// ----- \n") == [("a\n", 0), ("b\nc\n", 2), ("", 5)]


def test_places_count_from_the_start_of_the_file(registry) -> None:
    parts = split_input("module {}\n// -----\n\nfunc.func @f( {\n")
    with pytest.raises(InputError) as caught:
        optimize(*parts[1], OptJob(registry, name="x.mlir"))
    assert str(caught.value.where) == "x.mlir:4:14"


EXPECTED = """\
// expected-error@below {{cannot be done}}
func.func @f() { return }
"""


@pytest.mark.parametrize(
    ("text", "passes", "problems"),
    [
        (EXPECTED, "toy-fail", []),
        (EXPECTED.replace("@below", "@+1"), "toy-fail", []),
        (EXPECTED.replace("@below", "@unknown"), "toy-fail", []),
        ("func.func @f() { return } // expected-error {{done}}\n", "toy-fail", []),
        ("func.func @f() { return }\n// expected-error@above {{done}}\n", "toy-fail", []),
        (EXPECTED, "toy-look", ['2: error: expected error "cannot be done" was not produced']),
        (
            EXPECTED.replace("cannot", "can not"),
            "toy-fail",
            ['expected error "can not be done"', "unexpected error: 'func.func' op cannot be done"],
        ),
        (EXPECTED.replace("@below", "@+2"), "toy-fail", ["was not produced", "2: error: unexpec"]),
        ("func.func @f() { return }\n", "toy-fail", ["1: error: unexpected error"]),
        ("// expected-remark@below {{once}}\nfunc.func @f() { return }\n", "toy-mark", []),
        ("func.func @f( {\n// expected-error@above {{expected}}\n", "toy-mark", []),
    ],
)
def test_expected_diagnostics(registry, text: str, passes: str, problems: list[str]) -> None:
    job = OptJob(registry, Selection(passes=passes), name="f.mlir")
    found = verify_diagnostics_of(text, 0, job)
    assert len(found) == len(problems), found
    for problem, words in zip(found, problems, strict=True):
        assert words in problem


DEPTH = 20_000
DEEP = {
    "regions": "module {" * DEPTH + "}" * DEPTH,
    "types": "func.func private @f(" + "tuple<" * DEPTH + "i32" + ">" * DEPTH + ")",
    "attributes": "module attributes {x.a = " + "[" * DEPTH + "]" * DEPTH + "} {}",
    "locations": "module {} loc(" + "fused[" * DEPTH + '"a"' + "]" * DEPTH + ")",
    "signs": "module attributes {x.a = affine_map<(d0) -> (" + "-" * DEPTH + "d0)>} {}",
    "signs apart": "module attributes {x.a = affine_map<(d0) -> (" + "- " * DEPTH + "d0)>} {}",
    "never closed": "(" * DEPTH,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_text_that_is_nested_too_deep_is_refused(text: str) -> None:
    """MLIR's parser recurses: it would end the process."""
    with pytest.raises(InputError, match="nested deeper than 256 levels") as caught:
        check_nesting(text)
    assert isinstance(caught.value.where, SourceLocation)
    assert caught.value.where.line == 1


def test_the_parser_takes_what_the_guard_lets_through(registry: Registry) -> None:
    deep = 250
    text = "module {" * deep + "}" * deep
    with session_of(registry) as session:
        assert session.parse(text) is not None
        with pytest.raises(InputError, match="nested deeper"):
            session.parse(DEEP["regions"])


def test_a_pipeline_that_is_nested_too_deep_is_refused(registry: Registry) -> None:
    text = "builtin.module(" * DEPTH + "mlir:cse" + ")" * DEPTH
    with pytest.raises(ConfigurationError, match="nested deeper than 256 levels"):
        parse_text(text, registry)


def test_brackets_in_strings_and_comments_are_none() -> None:
    check_nesting('module attributes {x.a = "' + "(" * DEPTH + '"} {}')
    check_nesting("// " + "(" * DEPTH + "\nmodule {}")
    check_nesting("func.func @f() -> i32 " * DEPTH)
    check_nesting("(i32) -> i32\n" * DEPTH)

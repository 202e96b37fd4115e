"""Plans: what is checked before any IR is seen."""

from __future__ import annotations

import pytest

from tile_core.diagnostics import ConfigurationError
from tile_core.options import Spelled


def text(passes: str, nest: str = '"gpu.module", "func.func"') -> str:
    return (
        f'[pipeline]\nname = "t"\n[[segment]]\nname = "s"\nnest = [{nest}]\n'
        f"passes = [\n{passes}\n]\n"
    )


@pytest.mark.parametrize(
    ("passes", "nest", "words"),
    [
        ('"toy-mrk"', None, ["there is no pass 'toy-mrk'", "'toy-mark'", '"p.toml":7']),
        (
            '"toy-mark"',
            '"gpu.module"',
            ["pass 'toy-mark' anchored on 'func.func' added to pipeline anchored on 'gpu.module'"],
        ),
        ('"toy-mark"', "", ["added to pipeline anchored on 'builtin.module'"]),
        ('"toy-module"', None, ["'toy-module' anchored on 'builtin.module' added"]),
        (
            '{ pass = "toy-mark", valu = 1 }',
            None,
            ["has no option 'valu'", "did you mean 'value'?", '"p.toml":7'],
        ),
        ('{ pass = "toy-mark", value = "x" }', None, ["expects an integer, but got 'x'"]),
        ('{ pass = "toy-mark", value = true }', None, ["expects an integer, but got True"]),
        ('{ pass = "toy-mark", key = "singn" }', None, ["one of mark, sign", "'sign'"]),
    ],
)
def test_mistakes(planned, passes: str, nest: str | None, words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        planned(text(passes) if nest is None else text(passes, nest))
    for word in words:
        assert word in str(caught.value)


def test_spelled_options_take_the_type_of_the_option(planned) -> None:
    plan = planned(text('"toy-mark"'), pass_options={"toy-mark.value": Spelled("0x10")})
    assert plan.steps()[0].work.value == 16


def test_a_wrong_value_of_the_command_line_is_not_blamed_on_the_file(planned) -> None:
    with pytest.raises(ConfigurationError, match="got 'x'") as caught:
        planned(text('"toy-mark"'), pass_options={"toy-mark.value": Spelled("x")})
    assert caught.value.where is None
    wrong_file = text('{ pass = "toy-mark", valu = 1 }')
    with pytest.raises(ConfigurationError, match="no option 'valu'") as caught:
        planned(wrong_file, pass_options={"toy-mark.value": 1})
    assert caught.value.where is not None


def test_upstream_passes_keep_their_options(planned) -> None:
    plan = planned(
        text('{ pass = "mlir:canonicalize", top-down = false }, "mlir:inline{max-iterations=2}"')
    )
    assert [s.native for s in plan.steps()] == [
        "canonicalize{top-down=false}",
        "inline{max-iterations=2}",
    ]


def test_required_results_must_be_published(planned) -> None:
    with pytest.raises(ConfigurationError, match="requires Plan, which no pass before it"):
        planned(text('"toy-require"'))
    with pytest.raises(ConfigurationError) as caught:
        planned(text('"toy-publish", "mlir:cse", "toy-require"'))
    assert caught.value.message == (
        "cleanup pass invalidated Plan; rerun constraint generation or remove the pass"
    )
    assert caught.value.notes == (
        "pass 'mlir:cse' between 'toy-publish' and 'toy-require' does not preserve Plan",
    )


def test_accepted_results_need_not_be_published_but_survive(planned) -> None:
    planned(text('"toy-accept"'))
    planned(text('"toy-publish", "toy-accept"'))
    with pytest.raises(ConfigurationError, match="cleanup pass invalidated Plan"):
        planned(text('"toy-publish", "mlir:cse", "toy-accept"'))


def test_preserving_passes_may_lie_between(planned) -> None:
    between = '{ pass = "mlir:cse", preserve = ["Plan"] }, "toy-look"'
    planned(text(f'"toy-publish", {between}, "toy-require"'))

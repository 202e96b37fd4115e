"""Operations give the same on constants, which passes compute, as on data, at run time."""

from __future__ import annotations

import pytest
from support.constants import Applied
from support.tiles import registry
from tile_fuzz.generator.forms import Form, forms
from tile_fuzz.oracle import LEVELS, TARGETS, Reference, Setting, examine

#: Operations of one program.
_TOGETHER = 8
#: The parts that all operations are dealt to, one of which every run tries.
_PARTS = 6


def check(chosen: list[Form], tuples: int, settings: list[Setting]) -> None:
    for first in range(0, len(chosen), _TOGETHER):
        program = Applied(first)
        for form in chosen[first : first + _TOGETHER]:
            program.add(form, tuples)
        case = program.case()
        failure = examine(case, settings, registry(), Reference(case))
        where = dict(enumerate(program.names))
        assert failure is None, f"{failure}; arguments: {where}"


def test_some_operations_on_special_numbers() -> None:
    check(forms()[:: 3 * _PARTS], 8, [Setting("sm_90", 2)])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(_PARTS))
def test_all_operations_on_special_numbers(part: int) -> None:
    """Each level, each on another generation."""
    settings = [Setting(TARGETS[(part + level) % len(TARGETS)], level) for level in LEVELS]
    check(forms()[part::_PARTS], 24, settings)


def test_all_operations_have_forms() -> None:
    names = {form.operation.name for form in forms()}
    assert {"fma", "maxf", "divi", "shri", "ftoi", "itof", "bitcast", "atan2", "select"} <= names
    flushed = [form for form in forms() if form.operation.attrs.get("flush_to_zero")]
    assert {"maxf", "sqrt", "divf", "exp2"} <= {form.operation.name for form in flushed}

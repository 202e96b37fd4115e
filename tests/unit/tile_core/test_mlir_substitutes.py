"""What stands in for gaps of some versions of MLIR's bindings."""

from __future__ import annotations

import pytest
from support.functions import function

from tile_core.diagnostics import InputError, SourceLocation
from tile_core.mlir_substitutes import is_isolated, readable


@pytest.mark.parametrize(
    ("printed", "meant"),
    [
        ("  nvvm.barrier loc(#loc3)",
         '"nvvm.barrier"() <{operandSegmentSizes = array<i32: 0, 0, 0>}> : () -> ()'),
        ("  nvvm.barrier",
         '"nvvm.barrier"() <{operandSegmentSizes = array<i32: 0, 0, 0>}> : () -> ()'),
        ("nvvm.barrier id = %0 number_of_threads = %1",
         '"nvvm.barrier"(%0, %1) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i32, i32) -> ()'),
    ],
)  # fmt: skip
def test_barriers_are_written_in_the_form_that_all_versions_read(printed: str, meant: str) -> None:
    assert meant in readable(printed)
    assert readable(printed).count("loc(#loc3)") == printed.count("loc(#loc3)")


@pytest.mark.parametrize("text", ["nvvm.barrier.arrive id = %0", "nvvm.barrier0", "func.return"])
def test_what_all_versions_read_stays(text: str) -> None:
    assert readable(text) == text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '%b = "nv_tileaa.histogram"(%t) : (tensor<8xf32>) -> tensor<4xi32>',
            "'nv_tileaa.histogram' op expects a tile to count of integers, but got tensor<8xf32>",
        ),
        ("%b = arith.addf %i, %i : i32", "must be floating-point-like, but got 'i32'"),
    ],
)
def test_what_is_wrong_beside_a_barrier_is_said(line: str, message: str) -> None:
    """Not what is wrong with the form of the barrier that other versions read."""
    source = f"func.func @f(%t: tensor<8xf32>, %i: i32) {{\n  nvvm.barrier\n  {line}\n  return\n}}"
    with pytest.raises(InputError) as caught, function(source):
        pass
    assert message in caught.value.message
    assert isinstance(caught.value.where, SourceLocation)
    assert caught.value.where.line >= 3


class _Operation:
    """As bindings have it whose trait is a substitute: they number a class when it is attached, and
    cannot ask for one that has not been."""

    def __init__(self, name: str, traits: tuple[object, ...] = ()) -> None:
        self.name, self.traits = name, traits

    def has_trait(self, trait: object) -> bool:
        assert trait._trait_typeid  # type: ignore[attr-defined]  # raises as they do
        return trait in self.traits


@pytest.mark.parametrize("is_attached", [False, True])
def test_isolation_before_any_operation_has_the_substitute(is_attached: bool) -> None:
    trait = type("Trait", (), {"substitute": True} | ({"_trait_typeid": 1} if is_attached else {}))
    assert is_isolated(_Operation("func.func"), trait)
    assert not is_isolated(_Operation("affine.for"), trait)
    assert is_isolated(_Operation("nv_tileaa.own", (trait,)), trait) == is_attached

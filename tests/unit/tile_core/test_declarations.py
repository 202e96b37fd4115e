"""What the body of a class declares: fields, their constraints, and how an operation is made."""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import pytest

from tile_core.dialect import (
    Attribute,
    Dialect,
    Mixed,
    Operand,
    Operation,
    Pure,
    Region,
    Result,
    Type,
)
from tile_core.mlir import ir

T = TypeVar("T", bound=Any)


class Own(Dialect, name="own"):
    """A dialect of these tests."""


class BoxType(Type, dialect=Own, name="box"):
    inner: Any


class NoteAttr(Attribute, dialect=Own, name="note"):
    text: ir.StringAttr


class SameOp(Operation, dialect=Own, name="same", traits=[Pure]):
    left: Operand[T]
    right: Operand[T]
    result: Result[T]


class PickOp(Operation, dialect=Own, name="pick"):
    box: Operand[BoxType]
    mask: Operand[ir.IntegerType] | None
    rest: Sequence[Operand[BoxType | ir.F32Type]]
    note: NoteAttr
    count: ir.IntegerAttr
    first: Result[ir.IntegerType[32]]  # pyright: ignore
    more: Sequence[Result[Any]]
    body: Region


class MaybeOp(Operation, dialect=Own, name="maybe"):
    value: Operand[Any] | None = None
    result: Result[Any]


class ManyOp(Operation, dialect=Own, name="many"):
    first: Operand[Any]
    values: Mixed(Operand[Any], 3)  # pyright: ignore
    last: Operand[Any] | None
    made: Mixed(Result[Any], 2)  # pyright: ignore


@pytest.fixture
def loaded() -> Iterator[None]:
    with ir.Context(), ir.Location.unknown():
        Own.load()
        Own.load()  # does nothing
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            yield


def value(type_: ir.Type) -> ir.Value:
    return ir.Operation.create("builtin.unrealized_conversion_cast", results=[type_]).result


def picked(mask: ir.Value | None, *rest: ir.Value, first: ir.Type | None = None) -> Any:
    i32 = ir.IntegerType.get_signless(32)
    note = NoteAttr.get(ir.StringAttr.get("why"))
    box = value(BoxType.get(i32))
    count = ir.IntegerAttr.get(i32, 7)
    return PickOp(box, mask, list(rest), note, count, first=first or i32, more=[i32, i32])


def test_fields_of_every_kind(loaded: None) -> None:
    i1, f32 = ir.IntegerType.get_signless(1), ir.F32Type.get()
    op = picked(value(i1), value(f32), value(f32))
    assert op.operation.verify()
    assert op.box.type == BoxType.get(ir.IntegerType.get_signless(32))
    assert isinstance(op.box.type, BoxType)
    assert ir.TypeAttr(op.box.type.inner).value == ir.IntegerType.get_signless(32)
    assert op.mask.type == i1
    assert [v.type for v in op.rest] == [f32, f32]
    assert isinstance(op.note, NoteAttr)
    assert ir.StringAttr(op.note.text).value == "why"
    assert op.count.value == 7
    assert str(op.first.type) == "i32"
    assert len(op.more) == 2
    assert op.body == op.operation.regions[0]
    assert isinstance(op.operation.opview, PickOp)


def test_what_is_optional_may_be_absent(loaded: None) -> None:
    op = picked(None)
    assert op.operation.verify()
    assert op.mask is None
    assert len(op.rest) == 0
    assert MaybeOp(result=ir.F32Type.get()).value is None
    assert MaybeOp(ir.F32Type.get(), value=value(ir.F32Type.get())).value is not None


def test_values_of_several_types(loaded: None) -> None:
    """They are spread over the slots in runs of one type, and come back in order."""
    i1, f32 = ir.IntegerType.get_signless(1), ir.F32Type.get()
    given = [value(f32), value(f32), value(i1), value(f32)]
    op = ManyOp(value(i1), given, value(i1), [f32, i1])
    assert op.operation.verify()
    sizes = ir.DenseI32ArrayAttr
    assert list(sizes(op.attributes["operandSegmentSizes"])) == [1, 2, 1, 1, 1]
    assert list(sizes(op.attributes["resultSegmentSizes"])) == [1, 1]
    assert list(op.values) == given
    assert [v.type for v in op.made] == [f32, i1]
    assert op.last is not None
    assert op.last.type == i1
    with pytest.raises(ValueError, match="'values' of ManyOp holds 3 types"):
        ManyOp(value(i1), [*given, value(i1)], None, [])


@pytest.mark.parametrize("wrong", ["mask", "rest", "first", "same"])
def test_constraints_are_asked(wrong: str, loaded: None) -> None:
    i1, f32, f64 = ir.IntegerType.get_signless(1), ir.F32Type.get(), ir.F64Type.get()
    if wrong == "same":
        assert SameOp(value(f32), value(f32), f32).operation.verify()
        op = SameOp(value(f32), value(f64), f32)
    else:
        op = picked(
            value(f32 if wrong == "mask" else i1),
            value(f64 if wrong == "rest" else f32),
            first=f32 if wrong == "first" else None,
        )
    with pytest.raises(ir.MLIRError):
        op.operation.verify()


@pytest.mark.parametrize(
    ("arguments", "named", "said"),
    [
        ((1, 2, 3, 4), {}, "takes 3 arguments, and got 4"),
        ((1,), {}, "lacks the argument 'right'"),
        ((1, 2), {"result": 3, "other": 4}, "unexpected argument 'other'"),
        ((1, 2), {"left": 3}, "unexpected argument 'left'"),
    ],
)
def test_wrong_arguments(
    arguments: tuple[Any, ...], named: dict[str, Any], said: str, loaded: None
) -> None:
    with pytest.raises(TypeError, match=said):
        SameOp(*arguments, **named)


@pytest.mark.parametrize(
    ("annotation", "default", "said"),
    [
        ("Operand[Any]", None, "is a text"),
        (Operand[Any], None, "only an optional operand"),
        (Operand[Any] | None, 3, "no default but None"),
        (Sequence[Region], ..., "only operands and results can be optional or many"),
    ],
)
def test_wrong_bodies(annotation: Any, default: Any, said: str) -> None:
    class Other(Dialect, name="other"):
        """Of this test."""

    body: dict[str, Any] = {"__annotations__": {"field": annotation}}
    if default is not ...:
        body["field"] = default
    with pytest.raises(TypeError, match=said):
        type("WrongOp", (Operation,), body, dialect=Other, name="wrong")


def test_what_is_no_constraint_is_refused() -> None:
    class Third(Dialect, name="third"):
        """Of this test."""

    type("WrongOp", (Operation,), {"__annotations__": {"a": int}}, dialect=Third, name="wrong")
    with ir.Context(), pytest.raises(TypeError, match="is no constraint"):
        Third.load()

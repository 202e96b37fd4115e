"""What the operations of nv_tileaa refuse, in their words."""

from __future__ import annotations

import pytest
from support.functions import function
from support.tiles import registry

from tile_core.diagnostics import InputError
from tile_core.session import session_of

ORDERED = {
    "load": ("(%p)", "array<i32: 1, 0, 0, 0>", "(!p) -> (f32, !tok)", ("relaxed", "acquire")),
    "store": ("(%p, %f)", "array<i32: 1, 1, 0, 0>", "(!p, f32) -> !tok", ("relaxed", "release")),
    "tiled_load": (
        "(%v, %i)", "array<i32: 1, 1, 0>", "(!v, i32) -> (tensor<32xf32>, !tok)",
        ("relaxed", "acquire"),
    ),
    "tiled_store": (
        "(%v, %t, %i)", "array<i32: 1, 1, 1, 0>", "(!v, tensor<32xf32>, i32) -> !tok",
        ("relaxed", "release"),
    ),
}  # fmt: skip
HEAD = """
!p = !nv_tileaa.ptr<f32, 1 : i32>
!tok = !nv_tileaa.mem_token
!m = !nv_tileaa.memref<f32, array<i64: 64>, array<i64: 1>>
!v = !nv_tileaa.tiled_view<!m, array<i32: 32>, array<i32: 0>, "zero">
"""


def in_function(line: str) -> str:
    arguments = "%p: !p, %f: f32, %v: !v, %t: tensor<32xf32>, %u: tensor<4x8xf32>, %i: i32"
    return f"{HEAD}func.func @f({arguments}) {{\n{line}\nreturn\n}}"


def accepts(line: str) -> None:
    with function(in_function(line)) as func:
        assert len(func.regions[0].blocks[0].operations) == 2


def refusal(line: str) -> str:
    """The message, whose place is the operation."""
    with pytest.raises(InputError) as caught, function(in_function(line)):
        pass
    assert caught.value.where is not None
    return caught.value.message


def access(name: str, attributes: str) -> str:
    operands, sizes, types, _ = ORDERED[name]
    head = "" if name.endswith("store") else "%x:2 = "
    attributes = f"{{{attributes}, operandSegmentSizes = {sizes}}}"
    return f'{head}"nv_tileaa.{name}"{operands} {attributes} : {types}'


@pytest.mark.parametrize("name", ORDERED)
def test_memory_ordering(name: str) -> None:
    accepts(access(name, 'mem_semantic = "weak"'))
    for semantic in ORDERED[name][3]:
        accepts(access(name, f'mem_semantic = "{semantic}", mem_scope = "gpu"'))
        assert refusal(access(name, f'mem_semantic = "{semantic}"')) == (
            f"'nv_tileaa.{name}' op non-weak memory ordering requires explicit scope"
        )
    assert refusal(access(name, 'mem_semantic = "weak", mem_scope = "sys"')) == (
        f"'nv_tileaa.{name}' op weak memory ordering must not carry a scope"
    )
    wrong = "release" if name.endswith("load") else "acquire"
    assert refusal(access(name, f'mem_semantic = "{wrong}", mem_scope = "gpu"')) == (
        f"'nv_tileaa.{name}' op unsupported mem_semantic: {wrong}"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '%0 = "nv_tileaa.broadcast"(%u) : (tensor<4x8xf32>) -> tensor<4x16xf32>',
            "'nv_tileaa.broadcast' op cannot broadcast [4, 8] to [4, 16]",
        ),
        (
            '%0 = "nv_tileaa.broadcast"(%t) : (tensor<32xf32>) -> tensor<4x32xf32>',
            "'nv_tileaa.broadcast' op cannot broadcast [32] to [4, 32]",
        ),
        (
            '%0 = "nv_tileaa.view"(%u) : (tensor<4x8xf32>) -> tensor<16xf32>',
            "'nv_tileaa.view' op cannot view [4, 8] as [16]",
        ),
        (
            '%0 = "nv_tileaa.addf"(%f, %f) {rounding_mode = "up"} : (f32, f32) -> f32',
            "'nv_tileaa.addf' op expects a rounding mode of nearest_even, zero, negative_inf, "
            "positive_inf, nearest_away, approx, full, but got 'up'",
        ),
        (
            '%0 = "nv_tileaa.fp_to_fp"(%f) {rounding_mode = "odd"} : (f32) -> f16',
            "'nv_tileaa.fp_to_fp' op expects a rounding mode of nearest_even, zero, negative_inf, "
            "positive_inf, nearest_away, approx, full, but got 'odd'",
        ),
    ],
)
def test_refusals(line: str, message: str) -> None:
    assert refusal(line) == message


@pytest.mark.parametrize(
    "line",
    [
        '%0 = "nv_tileaa.view"(%u) : (tensor<4x8xf32>) -> tensor<2x16xf32>',
        '%0 = "nv_tileaa.mulf"(%f, %f) {rounding_mode = "zero", ftz} : (f32, f32) -> f32',
        '%0 = "nv_tileaa.splat"(%f) : (f32) -> tensor<4x8xf32>',
    ],
)
def test_accepted(line: str) -> None:
    accepts(line)


def test_operands_of_one_type() -> None:
    """`addf` adds tiles of one type; the dialect's declaration says so, not a verifier."""
    message = refusal('%0 = "nv_tileaa.addf"(%t, %f) : (tensor<32xf32>, f32) -> f32')
    assert message == "expected 'tensor<32xf32>' but got 'f32'"


def test_unknown_operations_are_refused() -> None:
    message = refusal('"nv_tileaa.frobnicate"() : () -> ()')
    assert message.startswith("unregistered operation 'nv_tileaa.frobnicate' found in dialect")


def test_insertions() -> None:
    def line(indices: str, types: str, result: str) -> str:
        return f'%x = "nv_tileaa.insert_slice"(%t, %u{indices}) : ({types}) -> {result}'

    source, target = "tensor<32xf32>", "tensor<4x8xf32>"
    assert refusal(line(", %i", f"{source}, {target}, i32", target)) == (
        "'nv_tileaa.insert_slice' op expects 2 indices, but got 1"
    )
    assert refusal(line(", %i, %i", f"{source}, {target}, i32, i32", target)) == (
        "'nv_tileaa.insert_slice' op cannot cut [4, 8] into tiles of [32]"
    )


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("size = -1 : i64, alignment = 4 : i64", "expects a size of at least 0 bytes, but got -1"),
        (
            "size = 4 : i64, alignment = 3 : i64",
            "expects an alignment that is a power of two, but got 3",
        ),
    ],
)
def test_allocations(attributes: str, message: str) -> None:
    def line(inside: str) -> str:
        return f'%x:2 = "nv_tileaa.alloca"() {{{inside}}} : () -> (!p, !p)'

    accepts(line("size = 8 : i64, alignment = 16 : i64"))
    assert refusal(line(attributes)) == f"'nv_tileaa.alloca' op {message}"


@pytest.mark.parametrize(
    ("action", "reduction", "value", "message"),
    [
        ("add", "add", True, "expects an action of load_reduce, reduce, store, but got 'add'"),
        (
            "store", "mul", True,
            "expects a reduction of add, min, max, and, or, xor, umin, umax, but got 'mul'",
        ),
        (
            "store", "add", False,
            "expects a value with every action but load_reduce, not 'store'",
        ),
    ],
)  # fmt: skip
def test_multicast(action: str, reduction: str, value: bool, message: str) -> None:
    def line(action: str, reduction: str, value: bool) -> str:
        operands, types = ("%p, %f, %b", "!p, f32, i1") if value else ("%p, %b", "!p, i1")
        return (
            "%b = arith.constant true\n"
            f'%x:2 = "nv_tileaa.multimem"({operands}) {{action = "{action}", '
            f'reduction = "{reduction}", mem_semantic = "weak", operandSegmentSizes = '
            f"array<i32: 1, {int(value)}, 1, 0>}} : ({types}) -> (f32, !tok)"
        )

    with function(in_function(line("store", "add", True))):
        pass
    assert refusal(line(action, reduction, value)) == f"'nv_tileaa.multimem' op {message}"


def test_verifiers_need_no_current_context() -> None:
    """Printing verifies, and a module may be printed where its context is not the current one."""
    load = (
        '%x:2 = "nv_tileaa.load"(%p, %b) {mem_semantic = "weak", operandSegmentSizes = '
        "array<i32: 1, 1, 0, 0>} : (!p, i1) -> (f32, !tok)"
    )
    with session_of(registry()) as session:
        module = session.parse(in_function(f"%b = arith.constant true\n{load}"))
    assert '"nv_tileaa.load"(' in str(module)

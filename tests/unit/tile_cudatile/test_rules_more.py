"""Rules that need unusual programs, with their exact texts, which the released reader repeats."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from tile_cudatile import VerifyError, verify, write_bytecode
from tile_cudatile import types as t
from tile_cudatile.attrs import Dense, Float
from tile_cudatile.locations import CallSite, CompileUnit, DebugLoc, File, LexicalBlock, Subprogram
from tile_cudatile.rules.types import type_problem
from tile_cudatile.rules.words import long
from tile_cudatile.tree import Block, Entry, Global, Module, Op, Region, Value
from unit.tile_cudatile import test_rules_arith, test_rules_memory
from unit.tile_cudatile.apply import operation, program
from unit.tile_cudatile.peer import DISASSEMBLER, disassemble, needs_disassembler
from unit.tile_cudatile.rule_support import RN, SCALAR, TRUTH, F4x4, H4x4, I4x4, complaint

F32x32, SCALES = t.Tile((32, 32), t.F32), t.Tile((32, 1), t.F8E8M0FNU)
CUBE = t.TensorView(t.F32, (16, 16, 16), (256, 16, 1))
MULTICAST = {k: t.TensorView(k, (16,), (1,), "multicast") for k in (t.F32, t.F16, t.I32, t.I16)}
MULTI = {k: t.PartitionView((4,), v, (0,)) for k, v in MULTICAST.items()}
MULTI[t.F8E5M2] = t.PartitionView((4,), t.TensorView(t.F8E5M2, (16,), (1,), "multicast"), (0,))
ROWS = t.Tile((4,), t.I32)
LONG = t.Tile((), t.I64)
SYS = {"memory_ordering_semantics": "relaxed", "memory_scope": "sys"}
WEAK = {"memory_ordering_semantics": "weak"}
GATHER = t.GatherScatterView((4, 4, 4), CUBE, 0)
NIBBLES = t.PartitionView((4, 4), t.TensorView(t.F4E2M1FN, (16, 16), (16, 2)), (0, 1))
CUBIC = t.Tile((4, 4, 4), t.F32)


def scaled(element: t.Scalar, scale: t.Scalar, k: int, factors: int) -> tuple[list, list]:
    lhs, rhs = t.Tile((32, k), element), t.Tile((k, 32), element)
    scales = [t.Tile((32, factors), scale), t.Tile((factors, 32), scale)]
    return [lhs, rhs, F32x32, *scales], [F32x32]


def multicast(element: t.Scalar, strides: tuple[int | None, ...]) -> t.PartitionView:
    tensor = t.TensorView(element, (16,) * len(strides), strides, "multicast")
    return t.PartitionView((4,) * len(strides), tensor, tuple(range(len(strides))))


def reduced(
    element: t.Scalar, kind: str, strides: tuple[int | None, ...] = (1,)
) -> tuple[list[Any], list[t.Type], dict[str, str]]:
    view = multicast(element, strides)
    tile = t.Tile(view.tile_shape, element)
    index = (SCALAR,) * len(strides)
    return [view, index], [tile, t.TOKEN], {**SYS, "reduction": kind}


CASES: list[tuple[str, list[Any], list[t.Type], dict[str, Any], str]] = [
    ("mmaf_scaled", *scaled(t.F8E5M2, t.F8E4M3FN, 32, 1), {},
     "unsupported combination of element types. Scale type 'f8E4M3FN' expects lhs and rhs element "
     "types to be 'f4E2M1FN', but got 'f8E5M2'"),
    ("mmaf_scaled", *scaled(t.F8E5M2, t.F8E8M0FNU, 32, 2), {},
     "shape error: f8 element type requires block scale factor of lhs_scale and rhs_scale to be "
     "32, but got 16"),
    ("mmaf_scaled", *scaled(t.F4E2M1FN, t.F8E4M3FN, 32, 1), {},
     "shape error: f4E2M1FN element type with f8E4M3FN scales requires block scale factor of "
     "lhs_scale and rhs_scale to be 16, but got 32"),
    ("mmaf_scaled", *scaled(t.F4E2M1FN, t.F8E8M0FNU, 64, 1), {},
     "shape error: f4E2M1FN element type with f8E8M0FNU scales requires block scale factor of "
     "lhs_scale and rhs_scale to be 16 or 32, but got 64"),
    ("mmaf_scaled", *scaled(t.F8E5M2, t.F8E8M0FNU, 16, 32), {},
     "shape error: dim 1 of lhs_scale (32) must be a divisor of dim 1 of lhs (16), but got "
     "lhs_scale shape (32, 32) and lhs shape (32, 16)"),
    ("ftof", [F4x4], [t.Tile((4, 4), t.TF32)], {"rounding_mode": "positive_inf"},
     "invalid rounding mode specified for conversion from f32 to tf32. Only 'nearest_even', "
     "'zero', and 'nearest_away' are supported"),
    ("ftof", [t.Tile((4, 4), t.F64)], [F4x4], {"rounding_mode": "nearest_away"},
     "invalid rounding mode specified for conversion from f64 to f32. Only 'nearest_even', "
     "'zero', 'negative_inf', and 'positive_inf' are supported"),
    ("ftof", [H4x4], [F4x4], {"rounding_mode": "full"},
     "invalid rounding mode specified for widening conversion. Only IEEE float rounding modes are "
     "supported: 'nearest_even', 'zero', 'negative_inf', 'positive_inf', 'nearest_away'"),
    ("addf", [F4x4, F4x4], [I4x4], RN,
     "result #0 must be tile of f16 or bf16 or f32 or f64 values, but got "
     "'!cuda_tile.tile<4x4xi32>'"),
    ("insert", [t.Tile((2,), t.F32), F4x4, (SCALAR, SCALAR)], [F4x4], {},
     "source and result must have the same rank"),
    ("insert", [t.Tile((8, 2), t.F32), F4x4, (SCALAR, SCALAR)], [F4x4], {},
     "result dimension 0 size (4) must be evenly divisible by source dimension 0 size (8)"),
    ("pack", [t.Tile((4,), t.I1)], [t.Tile((1,), t.I8)], {},
     "expects source tile to be byte-aligned"),
    ("unpack", [t.Tile((1,), t.I8)], [t.Tile((4,), t.I1)], {},
     "expects result tile to be byte-aligned"),
    ("make_tensor_view", [t.Tile((), t.Pointer(t.F32, "multicast")), (), ()],
     [t.TensorView(t.F32, (16,), (1,))], {},
     "tensor_view must preserve ptr_attr from base pointer (#cuda_tile.ptr_attr<multicast>)"),
    ("make_tensor_view", [t.Tile((), t.Pointer(t.F32)), (), ()], [MULTICAST[t.F32]], {},
     "pointer base without ptr_attr cannot produce tensor_view with ptr_attr"),
    ("multimem_load_reduce_view_tko",
     [t.PartitionView((4,), t.TensorView(t.F32, (16,), (1,)), (0,)), (SCALAR,)],
     [t.Tile((4,), t.F32), t.TOKEN], {**SYS, "reduction": "add"},
     "expected a multicast pointer, but got none"),
    ("multimem_load_reduce_view_tko", *reduced(t.F8E5M2, "add"),
     "multimem supports only f16, bf16, f32, and f64 floating-point element types"),
    ("multimem_load_reduce_view_tko", *reduced(t.I16, "add"),
     "multimem requires 32- or 64-bit integer/index element types; got 16 bits"),
    ("multimem_load_reduce_view_tko", *reduced(t.F16, "and"),
     "and/or/xor/umin/umax reductions require integer element types"),
    ("multimem_load_reduce_view_tko", *reduced(t.F32, "min"),
     "min/max supports f16 and bf16 float types only; got 'f32'"),
    ("multimem_reduce_view_tko", [MULTI[t.F16], t.Tile((4,), t.F16), (SCALAR,)], [t.TOKEN],
     {**SYS, "reduction": "max"}, "supports only add for floating-point element types"),
    ("multimem_reduce_view_tko", [MULTI[t.I32], ROWS, (SCALAR,)], [t.TOKEN],
     {**SYS, "memory_ordering_semantics": "acquire", "reduction": "max"},
     "memory ordering semantics must be one of: relaxed, release"),
    ("multimem_load_reduce_view_tko", *reduced(t.F16, "add", (2,)),
     "f16/bf16 multimem views must have exactly one element stride statically known to equal 1; "
     "got 0"),
    ("multimem_load_reduce_view_tko", *reduced(t.BF16, "max", (None,)),
     "f16/bf16 multimem views must have exactly one element stride statically known to equal 1; "
     "got 0"),
    ("multimem_load_reduce_view_tko", *reduced(t.F16, "add", (1, 1)),
     "f16/bf16 multimem views must have exactly one element stride statically known to equal 1; "
     "got 2"),
    ("multimem_store_view_tko", [multicast(t.BF16, (2,)), t.Tile((4,), t.BF16), (SCALAR,)],
     [t.TOKEN], SYS,
     "f16/bf16 multimem views must have exactly one element stride statically known to equal 1; "
     "got 0"),
    ("multimem_reduce_view_tko",
     [t.StridedView((4,), (2,), MULTICAST[t.I32], (0,)), ROWS, (SCALAR,)], [t.TOKEN],
     {**SYS, "reduction": "max"}, "multimem view operations support only partition_view; got "
     "'!cuda_tile.strided_view<tile=(4), traversal_strides=[2], tensor_view<16xi32, strides=[1], "
     "#cuda_tile.ptr_attr<multicast>>>'"),
    ("multimem_store_view_tko",
     [t.GatherScatterView((4,), MULTICAST[t.I32], 0), ROWS, (ROWS,)], [t.TOKEN], SYS,
     "multimem view operations support only partition_view; got "
     "'!cuda_tile.gather_scatter_view<tile=(4), tensor_view<16xi32, strides=[1], "
     "#cuda_tile.ptr_attr<multicast>>, sparse_dim=0>'"),
    ("atomic_red_view_tko",
     [t.PartitionView((4,), t.TensorView(t.I32, (16,), (1,)), (0,)), (ROWS,), ROWS], [t.TOKEN],
     {"memory_ordering_semantics": "relaxed", "memory_scope": "device", "mode": "add"},
     "index operand 0 must be a scalar tile (rank 0), got shape 4"),
    ("alloca", [], [t.Tile((), t.Pointer(t.F32))], {"num_elem": -1, "alignment": 4},
     "attribute 'num_elem' failed to satisfy constraint: 64-bit signless integer attribute whose "
     "minimum value is 0"),
    ("load_view_tko", [NIBBLES, (SCALAR, SCALAR)], [t.Tile((4, 4), t.F4E2M1FN), t.TOKEN], WEAK,
     "an f4 view access requires exactly one statically encoded unit stride to identify the "
     "packing dimension; got 0 in '!cuda_tile.tensor_view<16x16xf4E2M1FN, strides=[16,2]>'"),
    ("load_view_tko", [GATHER, (ROWS, SCALAR, LONG)], [CUBIC, t.TOKEN], WEAK,
     "expected scalar index 2 to have the same type as other scalar indices "
     "('!cuda_tile.tile<i32>'), got '!cuda_tile.tile<i64>'"),
    ("load_view_tko", [t.GatherScatterView((4, 4, 4), CUBE, 2), (ROWS, SCALAR, SCALAR)],
     [CUBIC, t.TOKEN], WEAK,
     "expected index at sparse_dim position 2 to be a 1D tensor for GatherScatterView, got rank 0"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "results", "attrs", "text"), CASES)
def test_rules(
    name: str, operands: list[Any], results: list[t.Type], attrs: dict[str, Any], text: str
) -> None:
    assert complaint(name, operands, results, **attrs) == text


def _flat(operands: list[Any]) -> list[t.Type]:
    return [o for group in operands for o in (group if isinstance(group, tuple) else (group,))]


def _value(type_: t.Type, ops: list[Op]) -> Value:
    if isinstance(type_, t.TensorView):
        base = _value(t.Tile((), t.Pointer(type_.element, type_.kind)), ops)
        extents = [
            (_value(LONG, ops),) * sum(e is None for e in group)
            for group in (type_.shape, type_.strides)
        ]
        ops.append(operation("make_tensor_view", [base, *extents], [type_]))
    elif isinstance(type_, (t.PartitionView, t.GatherScatterView, t.StridedView)):
        tensor = _value(type_.tensor_view, ops)
        kind = {t.PartitionView: "partition", t.StridedView: "strided"}.get(
            type(type_), "gather_scatter"
        )
        ops.append(operation(f"make_{kind}_view", [tensor], [type_]))
    else:
        ops.append(operation("loop", [()], [type_]))
        ops[-1].regions = (Region([Block((), [operation("continue", [()], [])])]),)
    return ops[-1].result


#: Cases that a file cannot say, as the program around them would be wrong first.
ELSEWHERE = ("yield",)
JUDGED = [
    case
    for case in [*CASES, *test_rules_arith.CASES, *test_rules_memory.CASES]
    if case[0] not in ELSEWHERE
]


@needs_disassembler
@pytest.mark.parametrize(("name", "operands", "results", "attrs", "text"), JUDGED)
def test_the_released_reader_says_the_same(
    name: str, operands: list[Any], results: list[t.Type], attrs: dict[str, Any], text: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    """The operands are results of loops that do not end, or views of such results."""

    def build(ops: list[Op]) -> None:
        made = {type_: _value(type_, ops) for type_ in _flat(operands)}
        groups = [tuple(made[o] for o in g) if isinstance(g, tuple) else made[g] for g in operands]
        ops.append(operation(name, groups, results, **attrs))

    module = program(build, [])
    module.globals.append(Global("g", Dense(t.Tile((2,), t.F32), bytes(4))))
    said = disassemble(write_bytecode(module), tmp_path)
    if not text:
        assert said.returncode == 0, said.stderr
    else:
        assert f"'cuda_tile.{name}' op {text}\n" in said.stderr


# Whole programs.


def problem(module: Module, *, said: bool = True) -> list[str]:
    """What is wrong with a program; if `said`, in the released reader's words."""
    with pytest.raises(VerifyError) as caught:
        verify(module)
    lines = list(caught.value.lines)
    if said and DISASSEMBLER is not None:
        with tempfile.TemporaryDirectory() as folder:
            assert (
                f"error: {lines[0]}\n" in disassemble(write_bytecode(module), Path(folder)).stderr
            )
    return lines


def kernel(*ops: Op, results: tuple[t.Type, ...] = (), end: Op | None = None) -> Module:
    last = operation("return", [()], []) if end is None else end
    block = Block((), [*ops, last])
    return Module(entries=[Entry("k", t.Function((), results), Region([block]))])


def constant(tile: t.Tile) -> Op:
    zero = Dense(tile, bytes(1 if tile == TRUTH else 4))
    return operation("constant", [], [tile], value=zero)


def test_programs() -> None:
    assert problem(kernel(results=(SCALAR,))) == [
        "'cuda_tile.entry' op entry op must not return values",
        "verification failed for deserialized cuda_tile::ModuleOp",
    ]
    empty = Module(entries=[Entry("k", t.Function((), ()), Region([Block((), [])]))])
    assert problem(empty)[0] == "'cuda_tile.entry' op expects a non-empty block"
    token = Entry("k", t.Function((t.TOKEN,), ()), kernel().entries[0].body)
    token.body.block.args = (Value(t.TOKEN),)
    assert problem(Module(entries=[token]))[1] == (
        "deserialized module does not conform to bytecode format invariants"
    )
    value = constant(SCALAR)
    given = operation("return", [(value.result,)], [])
    assert problem(kernel(value, end=given))[0] == (
        "'cuda_tile.return' op has 1 operands, but enclosing function (@k) returns 0"
    )
    stop = operation("yield", [()], [])
    assert problem(kernel(end=stop))[0].startswith("'cuda_tile.yield' op expects parent op")
    extra = constant(SCALAR)
    extra.results = (Value(SCALAR, extra), Value(SCALAR, extra, 1))
    # A file has no place for the second one.
    assert (
        problem(kernel(extra), said=False)[0]
        == "'cuda_tile.constant' op expected 1 results, but found 2"
    )


def branch(then: Region, other: Region | None = None) -> tuple[Op, Op]:
    condition = constant(TRUTH)
    made = operation("if", [condition.result], [])
    made.regions = (then, other or Region([]))
    return condition, made


def region(*ops: Op, args: tuple[Value, ...] = ()) -> Region:
    return Region([Block(args, list(ops))])


def test_regions() -> None:
    end = lambda: operation("yield", [()], [])  # noqa: E731
    two = Region([Block((), [end()]), Block((), [end()])])
    assert problem(kernel(*branch(region(end()), two)))[0] == (
        "'cuda_tile.if' op expects region #1 to have 0 or 1 blocks"
    )
    assert problem(kernel(*branch(Region([]))))[0] == (
        "'cuda_tile.if' op region #0 ('thenRegion') failed to verify constraint: "
        "region with 1 blocks"
    )
    argued = region(end(), args=(Value(SCALAR),))
    assert problem(kernel(*branch(argued)))[0] == (
        "'cuda_tile.if' op region #0 should have no arguments"
    )
    inside = branch(region(operation("return", [()], [])))
    loop = operation("loop", [()], [])
    loop.regions = (region(*inside, operation("continue", [()], [])),)
    verify(kernel(loop))
    zero, one = constant(SCALAR), constant(SCALAR)
    for_ = operation("for", [zero.result, zero.result, one.result, ()], [])
    inside = branch(region(operation("return", [()], [])))
    end_ = operation("continue", [()], [])
    for_.regions = (region(*inside, end_, args=(Value(SCALAR),)),)
    assert problem(kernel(zero, one, for_))[0] == (
        "'cuda_tile.return' op must be used within a cuda_tile.entry, cuda_tile.if, or "
        "cuda_tile.loop operation"
    )
    for_.regions = (region(operation("return", [()], []), args=(Value(SCALAR),)),)
    assert problem(kernel(zero, one, for_))[0] == (
        "'cuda_tile.return' op expects parent op to be one of 'cuda_tile.entry, "
        "cuda_tile.preview$func, cuda_tile.if, cuda_tile.loop'"
    )
    leaves = branch(region(end()))
    # The released reader prints the operation.
    assert problem(kernel(*leaves[:1], end=leaves[1]), said=False)[0] == (
        "'cuda_tile.entry' op expects regions to end with 'cuda_tile.return', found 'cuda_tile.if'"
    )


def reduction(
    count: int = 1, dim: int = 0, result: t.Type | None = None, inner: str = ""
) -> Module:
    tile, scalar = t.Tile((4,), t.F32), t.Tile((), t.F32)
    source = operation("iota", [], [t.Tile((4,), t.I32)])
    floats = operation(
        "itof", [source.result], [tile], signedness="signed", rounding_mode="nearest_even"
    )
    args = (Value(scalar), Value(scalar))
    pointer = t.Tile((), t.Pointer(t.F32))
    ops = [operation(inner, [], [pointer], num_elem=4, alignment=4)] if inner else []
    identities = (Float(t.F32, 0),) * count
    made = operation("reduce", [(floats.result,) * count], [result or scalar] * count, dim=dim,
                     identities=identities)  # fmt: skip
    made.regions = (region(*ops, operation("yield", [(args[0],)], []), args=args),)
    return kernel(source, floats, made)


def test_reductions() -> None:
    assert problem(reduction(count=0))[0] == (
        "'cuda_tile.reduce' op expected 1 or more operands, but found 0"
    )
    assert problem(reduction(dim=-1))[0] == (
        "'cuda_tile.reduce' op attribute 'dim' failed to satisfy constraint: 32-bit signless "
        "integer attribute whose value is non-negative"
    )
    assert problem(reduction(result=t.Tile((2,), t.F32)))[0] == (
        "'cuda_tile.reduce' op inferred type(s) '!cuda_tile.tile<f32>' are incompatible with "
        "return type(s) of operation '!cuda_tile.tile<2xf32>'"
    )
    assert problem(reduction(inner="alloca"))[0] == (
        "'cuda_tile.alloca' op only memory-effect-free operations are allowed inside "
        "'cuda_tile.reduce'"
    )


def test_types() -> None:
    assert type_problem(t.Pointer(t.I4)) == (
        "failed to verify 'pointeeType': i1 or i8 or i16 or i32 or i64 or f16 or bf16 or f32 or "
        "f64 or tf32 or f8E4M3FN or f8E5M2 or f8E8M0FNU or f4E2M1FN or fnv8E5M3FNU"
    )
    assert type_problem(t.TensorView(t.I4, (), ())) == (
        "failed to verify 'elementType': i1 or i8 or i16 or i32 or i64 or f16 or bf16 or f32 or "
        "f64 or tf32 or f8E4M3FN or f8E5M2 or f8E8M0FNU or f4E2M1FN or fnv8E5M3FNU"
    )
    assert long(t.Function((SCALAR, t.TOKEN), ())) == (
        "(!cuda_tile.tile<i32>, !cuda_tile.token) -> ()"
    )


# Debug information, in full.

FILE = File("a.py", "/a")
SUB = '#cuda_tile.di_subprogram<file = <"a.py" in "/a">, line = {0}, name = "{1}", linkageName = ' \
    '"{1}", compileUnit = <file = <"a.py" in "/a">>, scopeLine = {0}>'  # fmt: skip
MINE = Subprogram(FILE, 1, "k", "k", CompileUnit(FILE), 1)
OTHER = Subprogram(FILE, 2, "h", "h", CompileUnit(FILE), 2)


def placed(where: Any, inside: Any = None) -> str:
    module = kernel()
    if where is not None:
        module.entries[0].loc = where
    if inside is not None:
        module.entries[0].body.block.ops[0].loc = inside
    return problem(module)[0]


def test_debug_information() -> None:
    at, other = (DebugLoc(s, "a.py", 1, 2) for s in (MINE, OTHER))
    block = LexicalBlock(MINE, FILE, 1, 1)
    call = CallSite(at, at)
    assert placed(call) == (
        "'cuda_tile.entry' op invalid function debug info location: loc(callsite("
        f'#cuda_tile.di_loc<loc("a.py":1:2) in {SUB.format(1, "k")}> at '
        f'#cuda_tile.di_loc<loc("a.py":1:2) in {SUB.format(1, "k")}>)). Function location '
        "must not be a CallSiteLoc."
    )
    assert placed(DebugLoc(block, "a.py", 1, 1)) == (
        "'cuda_tile.entry' op invalid function debug info scope: #cuda_tile.di_lexical_block<scope "
        f'= {SUB.format(1, "k")}, file = <"a.py" in "/a">, line = 1, column = 1>. '
        "Function location must have cuda_tile.di_subprogram debug info scope."
    )
    assert placed(other) == (
        f"'cuda_tile.entry' op invalid function debug info scope: {SUB.format(2, 'h')}. "
        'Function name "k" does not match subprogram scope linkage name "h".'
    )
    assert placed(None, at) == (
        f"'cuda_tile.return' op invalid operation debug info scope: {SUB.format(1, 'k')}. "
        "Operation has debug info scope, but function debug info scope is undefined."
    )
    assert placed(at, other) == (
        f"invalid operation debug info scope: {SUB.format(2, 'h')}. "
        "Operation debug info scope does not match function debug info scope: "
        f"{SUB.format(1, 'k')}."
    )

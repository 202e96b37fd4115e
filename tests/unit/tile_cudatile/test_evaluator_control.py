"""What the sample kernels do not use: queries, allocations, globals, fences, several GPUs."""

from __future__ import annotations

import numpy as np
import pytest
from tile_cudatile import evaluate, parse_text, verify
from tile_cudatile import types as t
from tile_cudatile.evaluator import EvaluationError
from tile_cudatile.tree import Module
from unit.tile_cudatile.apply import operation, program

STORE = ": tile<ptr<i32>>, tile<i32> -> token\n"


def parsed(text: str) -> Module:
    module = parse_text(text)
    verify(module)
    return module


def put(value: str, index: int) -> str:
    """Writes a number to an element of %p."""
    return (
        f"%i{index} = constant <i32: {index}> : tile<i32>\n"
        f"%q{index} = offset %p, %i{index} : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>\n"
        f"%t{index} = store_ptr_tko weak %q{index}, {value} {STORE}"
    )


def run(
    body: str, *args: int, grid: tuple[int, ...] = (1,), count: int = 8, head: str = ""
) -> list:
    names = "".join(f", %a{i}: tile<i32>" for i in range(len(args)))
    out = np.zeros(count, np.int32)
    module = parsed(f"{head}entry @k(%p: tile<ptr<i32>>{names}) {{\n{body}return\n}}\n")
    evaluate(module, "k", grid, [out, *args])
    return list(out)


def test_the_grid() -> None:
    sizes = "%x, %y, %z = get_num_tile_blocks : tile<i32>\n"
    body = sizes + put("%x", 0) + put("%y", 1) + put("%z", 2)
    assert run(body, grid=(3, 5), count=3) == [3, 5, 1]


def test_shapes() -> None:
    tensor = "tensor_view<?x4xi32, strides=[?,1]>"
    view = f"partition_view<tile=(4x2), {tensor}>"
    body = (
        f"%v = make_tensor_view %p, shape = [%a0, 4], strides = [%a1, 1] : tile<i32> -> {tensor}\n"
        f"%s:2 = get_tensor_shape %v : {tensor} -> tile<i64>\n"
        f"%w = make_partition_view %v : {view}\n"
        f"%n:2 = get_index_space_shape %w : {view} -> tile<i32>\n"
        "%m = trunci %s#0 : tile<i64> -> tile<i32>\n" + put("%m", 0)
        + "%k = trunci %s#1 : tile<i64> -> tile<i32>\n" + put("%k", 1)
        + put("%n#0", 2) + put("%n#1", 3)
    )  # fmt: skip
    assert run(body, 9, 4, count=4) == [9, 4, 3, 2]


def test_shapes_that_do_not_fit_are_reported() -> None:
    tensor = "tensor_view<300xi32, strides=[1]>"
    body = (
        f"%v = make_tensor_view %p, shape = [300], strides = [1] : tile<ptr<i32>> -> {tensor}\n"
        f"%s = get_tensor_shape %v : {tensor} -> tile<i8>\n"
    )
    with pytest.raises(EvaluationError, match="300 does not fit in i8"):
        run(body)


def test_own_memory() -> None:
    """Fresh for every block, zero to begin with."""
    body = (
        "%m = alloca num_elem = 4, alignment = 16 : tile<ptr<i32>>\n"
        "%old, %u = load_ptr_tko weak %m : tile<ptr<i32>> -> tile<i32>, token\n"
        "%x, %y, %z = get_tile_block_id : tile<i32>\n"
        f"%s = store_ptr_tko weak %m, %a0 {STORE}"
        "%q = offset %p, %x : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>\n"
        f"%e = store_ptr_tko weak %q, %old {STORE}"
    )
    assert run(body, 7, grid=(3,), count=3) == [0, 0, 0]


def test_globals_are_shared() -> None:
    head = "global @g <i32: [5, 6]> : tile<2xi32>\n"
    body = (
        "%m = get_global @g : tile<ptr<i32>>\n"
        "%old, %u = atomic_rmw_tko relaxed device %m, add, %a0 : tile<ptr<i32>>, tile<i32> -> "
        "tile<i32>, token\n"
        "%x, %y, %z = get_tile_block_id : tile<i32>\n"
        "%q = offset %p, %x : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>\n"
        f"%e = store_ptr_tko weak %q, %old {STORE}"
    )
    assert run(body, 7, grid=(3,), count=3, head=head) == [5, 12, 19]


def test_order_changes_nothing() -> None:
    body = (
        "%a = make_token : token\n%b = gdc_wait_tko token = %a -> token\n"
        "%c = gdc_launch_dependents_tko token = %b -> token\n%d = memory_fence_alias_tko %c\n"
        "%j = join_tokens %b, %d : token\n" + put("%a0", 0)
    )
    assert run(body, 3, count=1) == [3]


@pytest.mark.parametrize(
    "name",
    ["multimem_load_reduce_view_tko", "multimem_reduce_view_tko", "multimem_store_view_tko"],
)
def test_several_gpus_are_refused(name: str) -> None:
    pointer = t.Tile((), t.Pointer(t.I32, "multicast"))
    tensor = t.TensorView(t.I32, (4,), (1,), "multicast")
    view, tile, scalar = t.PartitionView((4,), tensor, (0,)), t.Tile((4,), t.I32), t.Tile((), t.I32)

    def build(ops, base, index) -> None:
        ops.append(operation("make_tensor_view", [base, (), ()], [tensor]))
        ops.append(operation("make_partition_view", [ops[-1].result], [view]))
        made = ops[-1].result
        ops.append(operation("iota", [], [tile]))
        value = ops[-1].result
        reduction = {} if "store" in name else {"reduction": "add"}
        operands = [made, (index,)] if "load" in name else [made, value, (index,)]
        results: list[t.Type] = [tile, t.TOKEN] if "load" in name else [t.TOKEN]
        order = {"memory_ordering_semantics": "relaxed", "memory_scope": "sys"}
        ops.append(operation(name, operands, results, **order, **reduction))

    module = program(build, [pointer, scalar])
    verify(module)
    with pytest.raises(EvaluationError, match=f"{name}' op needs several GPUs"):
        evaluate(module, "k", (1,), [np.zeros(4, np.int32), 0])

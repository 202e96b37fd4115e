"""cute: pointers, views, memory, and the tiled copies and MMAs over them."""

import re
from collections.abc import Sequence

from tile_core.mlir import ir
from tile_cute import int_tuple as it
from tile_cute.dialect.base import Cute, operand_of
from tile_cute.dialect.define import define
from tile_cute.dialect.kinds import TMA, family_of, rank_of
from tile_cute.dialect.mma_calls import check_mma_call
from tile_cute.dialect.view_signatures import CHECKS
from tile_cute.errors import LayoutError
from tile_cute.swizzle import ComposedLayout
from tile_cute.values import Value, View

_POINTER = re.compile(r"!cute\.ptr<")
_ATOM = re.compile(r'!cute_nvgpu\.atom<"(.*)">')


def view_of(type_: ir.Type, what: str) -> View:
    """The view a type describes; LayoutError for a type that is none."""
    operand = operand_of(type_)
    if not isinstance(operand, View):
        raise LayoutError(f"expects {what} to be a cute.memref, but got {type_}")
    return operand


def _types(op: ir.OpView) -> list[ir.Type]:
    return [operand.type for operand in op.operation.operands]


def _check_make_view(op: ir.OpView) -> None:
    if op.operation.name == "cute.make_tensor" and not _POINTER.match(str(_types(op)[0])):
        raise LayoutError(f"expects iter to be a cute.ptr, but got {_types(op)[0]}")
    view = view_of(op.operation.results[0].type, "the result")
    layout = operand_of(_types(op)[1])
    if not isinstance(layout, Value) or layout.value != view.layout:
        raise LayoutError(f"expects the layout of the result to be {view.layout}, but got {layout}")


def _check_access(op: ir.OpView) -> None:
    """Loads and stores of one element at run-time coordinates, one index per mode."""
    types = _types(op)
    is_store = op.operation.name.endswith("store")
    view = view_of(types[1] if is_store else types[0], "the accessed tensor")
    indices = types[2:] if is_store else types[1:]
    value = types[0] if is_store else op.operation.results[0].type
    if view.element != str(value):
        raise LayoutError(f"accesses elements of type {view.element}, but the value is {value}")
    layout = view.layout.outer if isinstance(view.layout, ComposedLayout) else view.layout
    if len(indices) != len(layout):
        raise LayoutError(f"expects {len(layout)} coordinates for {layout}, but got {len(indices)}")
    _check_space(view)


def _check_space(view: View) -> None:
    if view.space == "tmem":
        raise LayoutError("cannot access tensor memory element by element")
    if view.element == "i1" and view.space != "rmem":
        raise LayoutError(f"i1 elements are supported in rmem only, but the space is {view.space}")


def _check_vector_access(op: ir.OpView) -> None:
    types = _types(op)
    is_store = "store" in op.operation.name
    view = view_of(types[1] if is_store else types[0], "the accessed tensor")
    value = types[0] if is_store else op.operation.results[0].type
    size = view.layout.size
    if not isinstance(value, ir.VectorType) or str(value.element_type) != view.element:
        raise LayoutError(f"expects a vector of {view.element}, but got {value}")
    if value.shape != [size]:
        raise LayoutError(f"expects a vector of {size} elements for {view}, but got {value}")
    _check_space(view)


def _check_copy(op: ir.OpView) -> None:
    """Rank pairs, sizes and the predicate, in the order of the published gates."""
    types = _types(op)
    if family_of(types[0]) in TMA:
        _check_box_copy(types)
        return
    source, target = view_of(types[1], "the source"), view_of(types[2], "the target")
    ranks = len(_outer(source)), len(_outer(target))
    if ranks[0] != ranks[1]:
        raise LayoutError(
            f"expects same size in rank {ranks[0]} but got srcShape: {_outer(source).shape}, "
            f"dstShape: {_outer(target).shape}"
        )
    if len(types) > 3:
        _check_predicate(types[3])
    if source.layout.size != target.layout.size:
        raise LayoutError(f"expects equal sizes, but got {source} and {target}")


def _check_box_copy(types: Sequence[ir.Type]) -> None:
    """By a tensor map: between shared memory and the coordinate where the box begins."""
    loads = family_of(types[0]) == TMA[0]
    far, near = (types[1], types[2]) if loads else (types[2], types[1])
    where, view = operand_of(far), view_of(near, "the tensor in shared memory")
    if view.space != "smem":
        raise LayoutError(f"expects a tensor in smem, but got {view}")
    if not isinstance(where, Value) or where.kind != "coord":
        raise LayoutError(f"expects a cute.coord in the tensor map, but got {far}")
    leaves = it.flatten(where.value)
    if not all(isinstance(leaf, int | it.Dynamic) for leaf in leaves):
        raise LayoutError(f"expects numbers, but got {where}")
    rank = rank_of(types[0])
    if len(leaves) != rank:
        raise LayoutError(f"expects {rank} coordinates, but got {len(leaves)}")


def _outer(view: View):  # type: ignore[no-untyped-def]
    return view.layout.outer if isinstance(view.layout, ComposedLayout) else view.layout


def _check_predicate(type_: ir.Type) -> None:
    predicate = operand_of(type_)
    if not isinstance(predicate, View):
        raise LayoutError("pred must be a CuteMemRefType")
    if predicate.space not in ("rmem", "smem", "gmem", "generic"):
        raise LayoutError("pred memory space invalid")
    if isinstance(predicate.layout, ComposedLayout) and not predicate.layout.inner.is_identity:
        raise LayoutError("pred must not be swizzled")


def _check_gemm(op: ir.OpView) -> None:
    """(atom, D, A, B, C): the shapes form a product."""
    views = [view_of(t, name) for t, name in zip(_types(op)[1:], "DABC", strict=True)]
    d, a, b, c = (_outer(view) for view in views)
    if any(isinstance(view.layout, ComposedLayout) for view in (views[0], views[3])):
        raise LayoutError(
            f"doesn't support composed layout for A/B/D, but got: A: {views[1]}, B: {views[2]}, "
            f"D:{views[0]}"
        )
    if len(a) != len(b):
        raise LayoutError(f"expects A, B to have the same rank, but got A: {a}, B: {b}")
    if len(c) != len(d):
        raise LayoutError(f"expects C, D to have the same rank, but got C: {c}, D: {d}")
    if len(a) not in (2, 3):
        raise LayoutError(f"expects A, B to have rank 2 or 3, but got A: {a}, B: {b}")
    if len(c) != len(a):
        raise LayoutError(f"expects C to have rank {len(a)}, but got C: {c}, A: {a}")
    m, n, k = (layout[mode].size for layout, mode in ((a, -2), (b, -2), (a, -1)))
    if b[-1].size != k or (d[-2].size, d[-1].size) != (m, n) or c.shape != d.shape:
        raise LayoutError(
            f"layoutA, layoutB and layoutD fail to form a gemm. A: {a}, B: {b}, D: {d}"
        )


def _check_mma_call(op: ir.OpView) -> None:
    """The atom's element types first, then where its operands are and how they are laid out, then
    the product."""
    types = _types(op)
    named = _ATOM.fullmatch(str(types[0]))
    if named is None:
        raise LayoutError(f"expects Mma atom layout of an instruction, but got {types[0]}")
    check_mma_call(named[1], dict(zip("DABC", types[1:], strict=True)))
    _check_gemm(op)


def _check_alloc(op: ir.OpView) -> None:
    view = view_of(op.operation.results[0].type, "the result")
    wanted = "smem" if "smem" in op.operation.name else "rmem"
    if view.space != wanted:
        raise LayoutError(f"allocates {wanted}, but the result is in {view.space}")


# name: (operands, results, check, pure, what it does)
_TABLE = {
    "make_view": (("iter", "layout"), ("view",), _check_make_view, True, "a tensor"),
    "make_tensor": (("iter", "layout"), ("view",), _check_make_view, True, "a tensor"),
    "get_iter": (("view",), ("iter",), None, True, "where a tensor begins"),
    "add_offset": (("iter", "offset"), ("result",), None, True, "advance a pointer by elements"),
    "recast_iter": (("iter",), ("result",), None, True, "the pointer with another element type"),
    "inttoptr": (("address",), ("result",), None, True, "an address as pointer"),
    "ptrtoint": (("iter",), ("result",), None, True, "a pointer as address"),
    "make_tuple": (("items*",), ("result",), None, True, "several values as one"),
    "unpack_tuple": (("source",), ("items*",), None, True, "the values of a tuple"),
    "memref_alloca": ((), ("view",), _check_alloc, False, "registers for a tensor"),
    "memref_alloc_smem": ((), ("view",), _check_alloc, False, "shared memory for a tensor"),
    "memref_load": (("view", "coords*"), ("value",), _check_access, False, "one element"),
    "memref_store": (("value", "view", "coords*"), (), _check_access, False, "write an element"),
    "memref_load_vec": (("view",), ("value",), _check_vector_access, False, "all of a fragment"),
    "memref_store_vec": (("value", "view"), (), _check_vector_access, False, "all of a fragment"),
    "ptr_store": (("value", "iter"), (), None, False, "write through a pointer"),
    "make_atom": (("operands*",), ("atom",), None, True, "an instruction"),
    "make_tiled_mma": (("atom",), ("result",), None, True, "an MMA repeated over warps"),
    "make_tiled_copy": (("atom", "layout"), ("result",), None, True, "a copy over threads"),
    "tiled_mma_partition": (("mma", "view", "thread"), ("result",), None, True, "a thread's part"),
    "tiled_mma_partition_shape": (("mma", "shape"), ("result",), None, True, "its shape"),
    "tiled_copy_partition_s": (("copy", "view", "thread"), ("result",), None, True, "read part"),
    "tiled_copy_partition_d": (("copy", "view", "thread"), ("result",), None, True, "write part"),
    "tiled_copy_retile": (("copy", "view"), ("result",), None, True, "a fragment, as copied"),
    "copy": (("atom", "source", "target", "pred?"), (), _check_copy, False, "move a tensor"),
    "copy_atom_call": (("atom", "source", "target"), (), _check_copy, False, "one instruction"),
    "gemm": (("atom", "d", "a", "b", "c"), (), _check_gemm, False, "D = A B + C"),
    "mma_atom_call": (("atom", "d", "a", "b", "c"), (), _check_mma_call, False, "one instruction"),
    "prefetch": (("atom", "source"), (), None, False, "announce a copy"),
    "prefetch_atom_call": (("atom", "source"), (), None, False, "announce one instruction"),
    "fast_divmod_create_divisor": (("divisor",), ("result",), None, True, "magic numbers"),
    "fast_divmod_make_divisor": (("divisor",), ("result",), None, True, "magic numbers"),
    "fast_divmod_get_divisor": (("divisor",), ("result",), None, True, "the divisor itself"),
    "fast_divmod_divide": (("value", "divisor"), ("result",), None, True, "the quotient"),
    "make_desc_iter": (("view",), ("result",), None, True, "the descriptor of an MMA operand"),
    "deref_desc_iter": (("iter",), ("result",), None, True, "the descriptor of a part of it"),
    "print": (("values*",), (), None, False, "print at run time"),
}


OPERATIONS = {
    name: define(
        Cute, name, operands, results, doc=doc, pure=pure,
        check=CHECKS.checked(name, operands, results, check),
    )
    for name, (operands, results, check, pure, doc) in _TABLE.items()
}  # fmt: skip

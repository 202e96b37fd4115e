"""Kernels with every memory operation."""

from __future__ import annotations

from collections.abc import Iterator

from tile_cudatile import types as t
from tile_cudatile.attrs import Hints, Integer
from tile_cudatile.ops.enums import RMW_MODE
from tile_cudatile.tree import Value
from tile_cudatile.versions import V13_2, V13_4
from unit.tile_cudatile.maker import SCALAR, Maker


def views(m: Maker, base: Value, size: Value) -> Iterator[tuple[Value, list[Value]]]:
    """Views of an f32 tensor, with indices."""
    static = t.TensorView(t.F32, (64, 16), (16, 1))
    dynamic = t.TensorView(t.F32, (None, 16), (None, 1))
    m.emit("make_tensor_view", [base, (), ()], t.TensorView(t.F32, (), ()))
    views = [
        (m.emit("make_tensor_view", [base, (), ()], static), static),
        (m.emit("make_tensor_view", [base, (size,), (size,)], dynamic), dynamic),
    ]
    index = m.constant(SCALAR, 0)
    for tensor, type_ in views:
        m.emit("get_tensor_shape", [tensor], SCALAR, SCALAR)
        for dim_map, padding in (
            ((0, 1), None),
            ((1, 0), "zero"),
            ((0, 1), "nan"),
            ((0, 1), "neg_zero"),
            ((0, 1), "pos_inf"),
            ((0, 1), "neg_inf"),
        ):
            view = t.PartitionView((4, 8), type_, dim_map, padding)
            made = m.emit("make_partition_view", [tensor], view)
            m.emit("get_index_space_shape", [made], SCALAR, SCALAR)
            yield made, [index, index]
        if m.has("make_strided_view"):
            strided = t.StridedView((4, 8), (2, 3), type_, (0, 1), None)
            yield m.emit("make_strided_view", [tensor], strided), [index, index]
            rows = m.emit("iota", [], t.Tile((4,), t.I32))
            gather = t.GatherScatterView((4, 8), type_, 0, "zero")
            yield m.emit("make_gather_scatter_view", [tensor], gather), [rows, index]


_HINTS = Hints(
    {
        "sm_90": {"allow_tma": False, "latency": Integer(t.I32, 3)},
        "sm_100": {"latency": Integer(t.I32, 5)},
    }
)


def accesses(m: Maker, base: Value, size: Value) -> None:
    tile = t.Tile((4, 8), t.F32)
    token = m.emit("make_token", [], t.TOKEN)
    for view, index in views(m, base, size):
        places = tuple(index)
        loaded = m.emit(
            "load_view_tko", [view, places], tile, t.TOKEN, memory_ordering_semantics="weak"
        )
        for order, scope in (("relaxed", "tl_blk"), ("acquire", "sys")):
            m.emit(
                "load_view_tko",
                [view, places, token],
                tile,
                t.TOKEN,
                optimization_hints=_HINTS,
                memory_ordering_semantics=order,
                memory_scope=scope,
            )
        m.emit(
            "store_view_tko",
            [loaded, view, places],
            t.TOKEN,
            memory_ordering_semantics="weak",
            optimization_hints=_HINTS,
        )
        token = m.emit(
            "store_view_tko",
            [loaded, view, places, token],
            t.TOKEN,
            memory_ordering_semantics="release",
            memory_scope="device",
        )
        if m.version >= V13_4:
            m.emit(
                "load_view_tko",
                [view, places, token],
                tile,
                t.TOKEN,
                inbounds=(True, False),
                memory_ordering_semantics="weak",
                optimization_hints=_HINTS,
            )
            m.emit(
                "store_view_tko",
                [loaded, view, places],
                t.TOKEN,
                inbounds=(True, True),
                memory_ordering_semantics="weak",
            )
        plain = isinstance(view.type, t.PartitionView) and view.type.padding is None
        if m.has("atomic_red_view_tko") and plain:
            for scope in ("tl_blk", "device"):
                m.emit(
                    "atomic_red_view_tko",
                    [view, places, loaded, token],
                    t.TOKEN,
                    memory_ordering_semantics="relaxed",
                    memory_scope=scope,
                    mode="addf",
                )
    m.emit("join_tokens", [(token, token)], t.TOKEN)


def multimem(m: Maker, base: Value) -> None:
    if not m.has("multimem_store_view_tko"):
        return
    tile, index = t.Tile((4, 8), t.F16), m.constant(SCALAR, 0)
    pointer = m.emit("ptr_to_ptr", [base], t.Tile((), t.Pointer(t.F16, "multicast")))
    tensor = t.TensorView(t.F16, (64, 16), (16, 1), "multicast")
    view = t.PartitionView((4, 8), tensor, (0, 1))
    made = m.emit(
        "make_partition_view", [m.emit("make_tensor_view", [pointer, (), ()], tensor)], view
    )
    token = m.emit("make_token", [], t.TOKEN)
    places = (index, index)
    order = {"memory_ordering_semantics": "relaxed", "memory_scope": "sys"}
    for inbounds in ((False, False), (True, False)):
        for extra in ([], [token]):
            flags = {**order, "inbounds": inbounds}
            for kind in ("add", "min", "max"):
                value = m.emit(
                    "multimem_load_reduce_view_tko",
                    [made, places, *extra],
                    tile,
                    t.TOKEN,
                    reduction=kind,
                    **flags,
                )
            m.emit(
                "multimem_reduce_view_tko",
                [made, value, places, *extra],
                t.TOKEN,
                reduction="add",
                **flags,
            )
            m.emit("multimem_store_view_tko", [made, value, places, *extra], t.TOKEN, **flags)


def pointers(m: Maker, base: Value) -> None:
    token = m.emit("make_token", [], t.TOKEN)
    lanes = t.Tile((8,), t.Pointer(t.F32))
    one = m.emit("reshape", [base], t.Tile((1,), t.Pointer(t.F32)))
    pointers = m.emit(
        "offset",
        [m.emit("broadcast", [one], lanes), m.emit("iota", [], t.Tile((8,), t.I32))],
        lanes,
    )
    tile = t.Tile((8,), t.F32)
    mask, x = m.constant(t.Tile((8,), t.I1)), m.constant(tile)
    for operands in (
        [pointers],
        [pointers, mask],
        [pointers, mask, x],
        [pointers, None, None, token],
        [pointers, mask, x, token],
    ):
        m.emit("load_ptr_tko", operands, tile, t.TOKEN, memory_ordering_semantics="weak")
    m.emit(
        "load_ptr_tko",
        [pointers, mask],
        tile,
        t.TOKEN,
        memory_ordering_semantics="acquire",
        memory_scope="device",
        optimization_hints=_HINTS_PTR,
    )
    for operands in ([pointers, x], [pointers, x, mask], [pointers, x, mask, token]):
        m.emit(
            "store_ptr_tko",
            operands,
            t.TOKEN,
            memory_ordering_semantics="weak",
            optimization_hints=_HINTS_PTR,
        )
    ints = m.emit("ptr_to_ptr", [pointers], t.Tile((8,), t.Pointer(t.I32)))
    numbers = t.Tile((8,), t.I32)
    value = m.constant(numbers, 3)
    for mode in RMW_MODE:
        where, arg, type_ = (pointers, x, tile) if mode == "addf" else (ints, value, numbers)
        for extra in ([], [mask], [None, token], [mask, token]):
            m.emit(
                "atomic_rmw_tko",
                [where, arg, *extra],
                type_,
                t.TOKEN,
                mode=mode,
                memory_ordering_semantics="acq_rel",
                memory_scope="device",
            )
    for extra in ([], [mask], [None, token]):
        m.emit(
            "atomic_cas_tko",
            [ints, value, value, *extra],
            numbers,
            t.TOKEN,
            memory_ordering_semantics="relaxed",
            memory_scope="sys",
        )
    if m.has("alloca"):
        for flag in ({}, {"global": True}):
            m.emit("alloca", [], t.Tile((), t.Pointer(t.F32)), num_elem=16, alignment=16, **flag)
    if m.has("gdc_wait_tko"):
        for name in ("gdc_wait_tko", "gdc_launch_dependents_tko"):
            token = m.emit(name, [token], t.TOKEN)
            m.emit(name, [], t.TOKEN)
        m.emit("memory_fence_alias_tko", [token], t.TOKEN)
    m.emit("assert", [mask], message='no "quotes"\n\\ \xe9')
    m.emit("print_tko", [()], t.TOKEN, str="plain %%\n")
    m.emit("print_tko", [(x, value)], t.TOKEN, str="%f and %d")
    if m.version >= V13_2:
        m.emit("print_tko", [(x,), token], t.TOKEN, str="%5.2f")


_HINTS_PTR = Hints({"sm_90": {"latency": Integer(t.I32, 3)}})

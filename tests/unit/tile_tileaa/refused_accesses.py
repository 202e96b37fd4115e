"""What accesses of nv_tileaa refuse, and the values that all such operations are tried on."""

from __future__ import annotations

WEAK = 'mem_semantic = "weak"'
HEAD = """
!p = !nv_tileaa.ptr<f32, 1 : i32>
!h = !nv_tileaa.ptr<f16, 1 : i32>
!n = !nv_tileaa.ptr<i32, 1 : i32>
!pp = tensor<8x!nv_tileaa.ptr<f32, 1 : i32>>
!tok = !nv_tileaa.mem_token
!m = !nv_tileaa.memref<f32, array<i64: 64, 64>, array<i64: 64, 1>>
!d = !nv_tileaa.memref<f32, array<i64: -9223372036854775808>, array<i64: 1>>
!v = !nv_tileaa.tiled_view<!m, array<i32: 4, 8>, array<i32: 0, 1>, "zero">
!v0 = !nv_tileaa.tiled_view<!m, array<i32: 0, 8>, array<i32: 0, 1>, "zero">
!v3 = !nv_tileaa.tiled_view<!m, array<i32: 3, 8>, array<i32: 0, 1>, "zero">
!vx = !nv_tileaa.tiled_view<!m, array<i32: 8192, 4096>, array<i32: 0, 1>, "zero">
!m8 = !nv_tileaa.memref<i8, array<i64: 64>, array<i64: 1>>
!v8 = !nv_tileaa.tiled_view<!m8, array<i32: 8>, array<i32: 0>, "zero">
!m16 = !nv_tileaa.memref<i16, array<i64: 64>, array<i64: 1>>
!v16 = !nv_tileaa.tiled_view<!m16, array<i32: 8>, array<i32: 0>, "zero">
!mh = !nv_tileaa.memref<f16, array<i64: 64>, array<i64: 1>>
!vh = !nv_tileaa.tiled_view<!mh, array<i32: 8>, array<i32: 0>, "zero">
!mi = !nv_tileaa.memref<i32, array<i64: 64>, array<i64: 1>>
!vi = !nv_tileaa.tiled_view<!mi, array<i32: 8>, array<i32: 0>, "zero">
!t = tensor<8xf32>
!k = tensor<8xi32>
!b = tensor<8xi1>
"""
ARGUMENTS = (
    "%p: !p, %h: !h, %n: !n, %pp: !pp, %tok: !tok, %m: !m, %d: !d, %v: !v, %v0: !v0, %v3: !v3, "
    "%vx: !vx, %v8: !v8, %v16: !v16, %vh: !vh, %vi: !vi, %t: !t, %k: !k, %b: !b, %f: f32, "
    "%i: i32, %l: i64, %c: i1, %u: tensor<4x8xf32>, %u0: tensor<0x8xf32>, %u3: tensor<3x8xf32>, "
    "%k8: tensor<8xi8>, %k16: tensor<8xi16>, %th: tensor<8xf16>, %ux: tensor<8192x4096xf32>, "
    "%a8: tensor<16x16xi8>, %c32: tensor<16x16xi32>, %ah: tensor<16x16xf16>, %mi: !mi, "
    "%af: tensor<16x16xf32>, %a16: tensor<16x16xi16>, %a4: tensor<4x16x16xf16>, "
    "%a1: tensor<16xf16>, %ab: tensor<16x16xbf16>, %th2: tensor<8x16xf16>"
)


def sizes(*groups: int) -> str:
    return f"operandSegmentSizes = array<i32: {', '.join(map(str, groups))}>"


def _load(operands: str, types: str, groups: tuple[int, ...], more: str = WEAK,
          result: str = "!t") -> str:  # fmt: skip
    return (
        f'%r:2 = "nv_tileaa.load"({operands}) {{{more}, {sizes(*groups)}}} : ({types}) -> '
        f"({result}, !tok)"
    )


def _tiled(view: str, value: str | None, coords: str, kinds: str, more: str = WEAK,
           name: str = "") -> str:  # fmt: skip
    """An access of a view; `value` is the type read, or the value stored."""
    count = coords.count("%")
    name = name or ("tiled_store" if value and value.startswith("%") else "tiled_load")
    if name == "tiled_load":
        return (
            f'%r:2 = "nv_tileaa.tiled_load"({view}, {coords}) {{{more}, {sizes(1, count, 0)}}} : '
            f"(!{view[1:]}, {kinds}) -> ({value}, !tok)"
        )
    assert value is not None
    value, type_ = value.split(": ")
    results = "!tok" if name == "tiled_store" else f"({type_}, !tok)"
    head = "%r" if name == "tiled_store" else "%r:2"
    return (
        f'{head} = "nv_tileaa.{name}"({view}, {value}, {coords}) {{{more}, '
        f"{sizes(1, 1, count, 0)}}} : (!{view[1:]}, {type_}, {kinds}) -> {results}"
    )


RELAXED = 'mem_semantic = "relaxed", mem_scope = "gpu"'


def _rmw(view: str, value: str, mode: str | None) -> str:
    more = RELAXED if mode is None else f'{RELAXED}, rmw_mode = "{mode}"'
    return _tiled(view, value, "%i", "i32", more, "tiled_atomic_rmw")


def cast(name: str, source: str, from_: str, to: str, more: str = "") -> str:
    return f'%r = "nv_tileaa.{name}"({source}) {more} : ({from_}) -> {to}'


def same(name: str, source: str, type_: str, count: int, more: str = "") -> str:
    values, types = ", ".join([source] * count), ", ".join([type_] * count)
    return f'%r = "nv_tileaa.{name}"({values}) {more} : ({types}) -> {type_}'


ACCESSES = [
    (_load("%pp, %k", "!pp, !k", (1, 0, 0, 1)), "expects a memory token, but got tensor<8xi32>"),
    (_load("%pp", "!pp", (1, 0, 0, 0), result="f32"), "expects a result of shape [8], but got []"),
    (_load("%pp", "!pp", (1, 0, 0, 0), result="!k"), "expects a result of f32, but got i32"),
    (
        _load("%pp, %c", "!pp, i1", (1, 1, 0, 0)),
        "expects a mask of shape [8], but got []",
    ),
    (_load("%pp, %k", "!pp, !k", (1, 1, 0, 0)), "expects a mask of i1, but got i32"),
    (_load("%t", "!t", (1, 0, 0, 0)), "expects pointers, but got tensor<8xf32>"),
    (
        _load("%pp", "!pp", (1, 0, 0, 0), 'mem_semantic = "relaxed", mem_scope = "block"'),
        'expects a mem_scope of tl_blk, cluster, gpu, sys, but got "block"',
    ),
    (
        _load("%pp", "!pp", (1, 0, 0, 0), f'{WEAK}, cache_modifier = "xx"'),
        'expects a cache_modifier of none, ca, cg, cs, lu, cv, but got "xx"',
    ),
    (
        _load("%pp", "!pp", (1, 0, 0, 0), f'{WEAK}, eviction_policy = "xx"'),
        'expects a eviction_policy of none, first, last, normal, but got "xx"',
    ),
    (
        _load("%pp", "!pp", (1, 0, 0, 0), f"{WEAK}, hints = 3"),
        'expects hints to be a dictionary, but got 3 : i64',
    ),
    (
        _load("%pp", "!pp", (1, 0, 0, 0), f"{WEAK}, hints = {{latency = 11 : i32}}"),
        'hint latency = 11 : i32: expects a number from 1 to 10',
    ),
    (
        _load("%pp", "!pp", (1, 0, 0, 0), f"{WEAK}, hints = {{allow_tma = 1 : i32}}"),
        'hint allow_tma = 1 : i32: expects true or false',
    ),
    (
        _load("%pp", "!pp", (1, 0, 0, 0), f"{WEAK}, hints = {{speed = 1 : i32}}"),
        'hint speed = 1 : i32: loads and stores have no such hint',
    ),
    (
        '%r:2 = "nv_tileaa.atomic_rmw"(%n, %i) {mem_semantic = "relaxed", mem_scope = "gpu", '
        f'rmw_mode = "nand", {sizes(1, 1, 0, 0)}}} : (!n, i32) -> (i32, !tok)',
        "expects an rmw_mode of add, addf, and, or, xor, xchg, min, max, umin, umax, but got "
        "'nand'",
    ),
    (
        f'%r:2 = "nv_tileaa.tiled_load"(%m, %i) {{{WEAK}, {sizes(1, 1, 0)}}} : (!m, i32) -> '
        "(!t, !tok)",
        'expects a tiled view, but got !nv_tileaa.memref<f32, array<i64: 64, 64>, '
        "array<i64: 64, 1>>",
    ),
    (_tiled("%v", "tensor<4x8xf32>", "%i", "i32"), "expects 2 coordinates, but got 1"),
    (
        _tiled("%v", "tensor<4x8xf32>", "%f, %f", "f32, f32"),
        "expects CoordType is same as memref index type, but got f32",
    ),
    (
        _tiled("%v", "tensor<8x4xf32>", "%i, %i", "i32, i32"),
        "requires the same shape for tileSize and tensor value",
    ),
    (
        _tiled("%v", "tensor<4x8xf16>", "%i, %i", "i32, i32"),
        "view elementType not equal with tensor element type: f32 != f16",
    ),
    (
        _tiled("%v0", "%u0: tensor<0x8xf32>", "%i, %i", "i32, i32"),
        "all dimensions must be positive constants, got [0, 8]",
    ),
    (
        _tiled("%v3", "%u3: tensor<3x8xf32>", "%i, %i", "i32, i32"),
        "all dimensions must be powers of two, got [3, 8]",
    ),
    (
        _tiled("%vx", "%ux: tensor<8192x4096xf32>", "%i, %i", "i32, i32"),
        "tile would exceed the maximum of 16777216 elements, got [8192, 4096]",
    ),
    (
        _tiled("%v", "tensor<4x8xf32>", "%i, %i", "i32, i32", f"{WEAK}, in_bounds = 1 : i32"),
        "expects in_bounds to be an array of i1, but got 1 : i32",
    ),
    (
        _tiled("%v", "tensor<4x8xf32>", "%i, %i", "i32, i32",
               f"{WEAK}, in_bounds = array<i1: true>"),
        "incorrect number of in_bounds elements: expected 2, but found 1",
    ),
    (_rmw("%vi", "%k: !k", None), "requires attribute 'rmw_mode'"),
    (_rmw("%v8", "%k8: tensor<8xi8>", "add"), "tiled_atomic_rmw not supported for 8-bit types"),
    (
        _rmw("%v16", "%k16: tensor<8xi16>", "add"),
        "tiled_atomic_rmw not supported for 16-bit integer",
    ),
    (
        _rmw("%vh", "%th: tensor<8xf16>", "xchg"),
        "tiled_atomic_rmw for 16-bit float only supports add, max, min operations",
    ),
    (
        _rmw("%vh", "%th: tensor<8xf16>", "addf"),
        "tiled_atomic_rmw op cannot use fadd operation, please use add instead for both int and "
        "float types",
    ),
    (_rmw("%vi", "%k: !k", "xchg"), "tiled_atomic_rmw op cannot use xchg operation"),
    (
        _rmw("%vi", "%k: !k", "nand"),
        "expects an rmw_mode of add, addf, and, or, xor, xchg, min, max, umin, umax, but got "
        "'nand'",
    ),
]  # fmt: skip

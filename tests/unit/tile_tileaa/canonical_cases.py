"""One entry per rule of `tileaa-canonicalize`: what it changes, what it leaves alone."""

from __future__ import annotations

from dataclasses import dataclass

WEAK = 'mem_semantic = "weak"'
RELAXED = 'mem_semantic = "relaxed", mem_scope = "gpu"'
HEAD = """
!p = !nv_tileaa.ptr<f32, 1 : i32>
!n = !nv_tileaa.ptr<i32, 1 : i32>
!pp = tensor<8x!nv_tileaa.ptr<f32, 1 : i32>>
!tok = !nv_tileaa.mem_token
!t = tensor<8xf32>
!k = tensor<8xi32>
!w = tensor<8xi64>
!m = tensor<8xi1>
!a = tensor<4x4xi8>
!c = tensor<4x4xi32>
!f = tensor<4x4xf32>
"""
ARGUMENTS = (
    "%x: f32, %y: f32, %i: i32, %j: i32, %l: i64, %h: i64, %b: i1, %t: !t, %o: tensor<1xf32>, "
    "%oo: tensor<1xf32>, %p: !p, %q: !pp, %k: !k, %w: !w, %m: !m, %tok: !tok, %n: !n, %a: !a, "
    "%c: !c, %g: !f, %s: tensor<4x2xf32>, %nf: !nv_tileaa.ptr<f32, 1 : i32>"
)


def sizes(*groups: int) -> str:
    return f"operandSegmentSizes = array<i32: {', '.join(str(int(g)) for g in groups)}>"


@dataclass(frozen=True)
class Case:
    """Bodies of functions: `before` becomes what `after` (regular expressions) all find."""

    before: str
    after: tuple[str, ...]
    unchanged: tuple[str, ...]
    gone: tuple[str, ...] = ()


def _signs(a: str = "signed", b: str = "signed") -> str:
    return f'signedness_a = "{a}", signedness_b = "{b}"'


def _dot(a: str, b: str, c: str, element: str = "i", attributes: str = "") -> str:
    types = "(!a, !a, !c) -> !c" if element == "i" else "(!f, !f, !f) -> !f"
    attributes = f"{attributes}, " if attributes else ""
    return f'%r = "nv_tileaa.dot"({a}, {b}, {c}) {{{attributes}{sizes(1, 1, 1, 0, 0)}}} : {types}'


def _load(mask: str, *, more: str = WEAK, other: str = "", token: bool = True) -> str:
    operands = ["%q", mask, *([other] if other else []), *(["%tok"] if token else [])]
    types = ["!pp", "!m", *(["!t"] if other else []), *(["!tok"] if token else [])]
    return (
        f'%r:2 = "nv_tileaa.load"({", ".join(operands)}) {{{more}, '
        f"{sizes(1, 1, bool(other), token)}}} : ({', '.join(types)}) -> (!t, !tok)\n"
        f'%u = "nv_tileaa.store"(%p, %x, %r#1) {{{WEAK}, {sizes(1, 1, 0, 1)}}} : '
        "(!p, f32, !tok) -> !tok\n"
        '%v = "nv_tileaa.addf"(%r#0, %r#0) : (!t, !t) -> !t'
    )


def _store(mask: str, more: str = WEAK) -> str:
    return (
        f'%r = "nv_tileaa.store"(%q, %t, {mask}, %tok) {{{more}, {sizes(1, 1, 1, 1)}}} : '
        "(!pp, !t, !m, !tok) -> !tok\n"
        f'%v = "nv_tileaa.store"(%p, %x, %r) {{{WEAK}, {sizes(1, 1, 0, 1)}}} : '
        "(!p, f32, !tok) -> !tok"
    )


def _rmw(mode: str, value: str, more: str = RELAXED, element: str = "i32") -> str:
    pointer = "%n" if element == "i32" else "%nf"
    return (
        f'%r:2 = "nv_tileaa.atomic_rmw"({pointer}, {value}, %tok) {{{more}, rmw_mode = "{mode}", '
        f"{sizes(1, 1, 0, 1)}}} : (!nv_tileaa.ptr<{element}, 1 : i32>, {element}, !tok) -> "
        f"({element}, !tok)"
    )


def _cas(cmp: str, value: str, more: str = RELAXED, element: str = "i32") -> str:
    pointer = "%n" if element == "i32" else "%nf"
    types = f"!nv_tileaa.ptr<{element}, 1 : i32>, {element}, {element}, !tok"
    return (
        f'%r:2 = "nv_tileaa.atomic_cas"({pointer}, {cmp}, {value}, %tok) {{{more}, '
        f"{sizes(1, 1, 1, 0, 1)}}} : ({types}) -> ({element}, !tok)"
    )


ALL = "%true = arith.constant dense<true> : !m\n"
NONE = "%false = arith.constant dense<false> : !m\n"
ZERO = "%zero = arith.constant 0 : i32\n"
SPLAT = '%s0 = "nv_tileaa.splat"(%x) : (f32) -> !t\n'

CASES: dict[str, Case] = {
    "reshape-to-itself": Case(
        '%r = "nv_tileaa.view"(%t) : (!t) -> !t\n%v = math.absf %r : !t',
        (r"math.absf %arg7",),
        (
            '%r = "nv_tileaa.permute"(%g) {permutation = array<i32: 1, 0>} : (!f) -> !f',
            '%r = "nv_tileaa.view"(%t) : (!t) -> tensor<2x4xf32>',
        ),
    ),
    "view-of-view": Case(
        '%0 = "nv_tileaa.view"(%t) : (!t) -> tensor<2x4xf32>\n'
        '%r = "nv_tileaa.view"(%0) : (tensor<2x4xf32>) -> tensor<4x2xf32>',
        (r'"nv_tileaa.view"\(%arg7\) : \(tensor<8xf32>\) -> tensor<4x2xf32>',),
        (
            '%0 = "nv_tileaa.permute"(%s) {permutation = array<i32: 1, 0>} : (tensor<4x2xf32>) -> '
            'tensor<2x4xf32>\n%r = "nv_tileaa.view"(%0) : (tensor<2x4xf32>) -> !t',
        ),
    ),
    "reshape-of-splat": Case(
        '%0 = "nv_tileaa.splat"(%x) : (f32) -> tensor<1x8xf32>\n'
        '%r = "nv_tileaa.broadcast"(%0) : (tensor<1x8xf32>) -> tensor<4x8xf32>\n'
        "%d = arith.constant dense<2.5> : !t\n"
        '%e = "nv_tileaa.expand_dims"(%d) {axis = 1 : i32} : (!t) -> tensor<8x1xf32>',
        (
            r'"nv_tileaa.splat"\(%arg0\) : \(f32\) -> tensor<4x8xf32>',
            r"arith.constant dense<2.5\S*> : tensor<8x1xf32>",
        ),
        (
            '%r = "nv_tileaa.view"(%t) : (!t) -> tensor<1x8xf32>',
            "%d = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>\n"
            '%r = "nv_tileaa.view"(%d) : (tensor<2xf32>) -> tensor<1x2xf32>',
        ),
        gone=("broadcast", "expand_dims"),
    ),
    "assume-of-splat": Case(
        '%0 = "nv_tileaa.splat"(%i) : (i32) -> !k\n'
        '%r = "nv_tileaa.assume"(%0) {predicate = {kind = "bounded", lb = 0 : i64}} : (!k) -> !k',
        (r'"nv_tileaa.assume"\(%arg2\).*kind = "bounded".*\(i32\) -> i32', r'splat"\(%\d+\)'),
        (
            '%0 = "nv_tileaa.splat"(%i) : (i32) -> !k\n%r = "nv_tileaa.assume"(%0) {predicate = '
            '{kind = "same_elements", values = array<i64: 8>}} : (!k) -> !k',
            '%0 = "nv_tileaa.splat"(%i) : (i32) -> !k\n%r = "nv_tileaa.assume"(%0) {predicate = '
            '{kind = "div_by", divisor = 4 : i64, every = 1 : i64, along = 0 : i64}} : (!k) -> !k',
            '%r = "nv_tileaa.assume"(%k) {predicate = {kind = "div_by", divisor = 4 : i64}} : '
            "(!k) -> !k",
        ),
    ),
    "select-of-splats": Case(
        SPLAT + '%s1 = "nv_tileaa.splat"(%y) : (f32) -> !t\n'
        '%s2 = "nv_tileaa.splat"(%b) : (i1) -> !m\n'
        "%r = arith.select %s2, %s0, %s1 : !m, !t",
        (r"arith.select %arg6, %arg0, %arg1 : f32", r'splat"\(%\d+\) : \(f32\)'),
        (
            SPLAT + "%r = arith.select %b, %s0, %t : !t",
            SPLAT + "%d = arith.constant dense<1.0> : !t\n%r = arith.select %m, %s0, %d : !m, !t",
            "%r = arith.select %b, %x, %y : f32",
        ),
    ),
    "comparison-of-extended": Case(
        "%0 = arith.extsi %k : !k to !w\n%1 = arith.extsi %i : i32 to i64\n"
        '%2 = "nv_tileaa.splat"(%1) : (i64) -> !w\n%r = arith.cmpi ult, %0, %2 : !w\n'
        "%3 = arith.extui %i : i32 to i64\n%4 = arith.extui %j : i32 to i64\n"
        "%s1 = arith.cmpi sge, %3, %4 : i64",
        (r'splat"\(%arg2\) : \(i32\)', r"cmpi ult, %arg12, %\d+ : .*i32",
         r"cmpi uge, %arg2, %arg3 : i32"),
        (
            "%0 = arith.extsi %i : i32 to i64\n%1 = arith.extui %j : i32 to i64\n"
            "%r = arith.cmpi slt, %0, %1 : i64",
            "%0 = arith.extsi %i : i32 to i64\n%1 = arith.extsi %b : i1 to i64\n"
            "%r = arith.cmpi slt, %0, %1 : i64",
            "%0 = arith.extsi %i : i32 to i64\n%r = arith.cmpi ult, %0, %l : i64",
        ),
    ),
    "power-without-subnormals": Case(
        '%0 = "nv_tileaa.exp2"(%t) : (!t) -> !t\n'
        '%r = "nv_tileaa.fp_to_fp"(%0) : (!t) -> tensor<8xf8E4M3FN>\n'
        "%d = arith.constant dense<-1.0> : !t\n"
        '%s1 = "nv_tileaa.subf"(%d, %0) : (!t, !t) -> !t',
        (r'"nv_tileaa.exp2"\(%arg\d+\) (<)?{ftz}',),
        (
            '%0 = "nv_tileaa.exp2"(%t) : (!t) -> !t\n'
            '%r = "nv_tileaa.fp_to_fp"(%0) : (!t) -> tensor<8xbf16>',
            '%0 = "nv_tileaa.exp2"(%t) : (!t) -> !t\n'
            '%r = "nv_tileaa.fp_to_fp"(%0) {rounding_mode = "positive_inf"} : (!t) -> '
            "tensor<8xf16>",
            '%0 = "nv_tileaa.exp2"(%t) : (!t) -> !t\n%d = arith.constant dense<1.0e-35> : !t\n'
            '%r = "nv_tileaa.addf"(%0, %d) : (!t, !t) -> !t',
            '%0 = "nv_tileaa.exp2"(%t) : (!t) -> !t\n'
            '%r = "nv_tileaa.addf"(%0, %t) : (!t, !t) -> !t',
            '%0 = "nv_tileaa.exp2"(%t) : (!t) -> !t\n'
            '%r = "nv_tileaa.fp_to_fp"(%0) : (!t) -> tensor<8xf16>\n'
            '%s1 = "nv_tileaa.mulf"(%0, %t) : (!t, !t) -> !t',
        ),
    ),
    "extract-of-splat": Case(
        '%0 = "nv_tileaa.splat"(%x) : (f32) -> tensor<1x1xf32>\n'
        '%1 = "nv_tileaa.extract"(%0) : (tensor<1x1xf32>) -> f32\n'
        "%d = arith.constant dense<2.5> : tensor<1xf32>\n"
        '%e = "nv_tileaa.extract"(%d) : (tensor<1xf32>) -> f32\n%r = arith.addf %1, %e : f32',
        (r"arith.addf %arg0, %cst", r"arith.constant 2.5\S* : f32"),
        ('%r = "nv_tileaa.extract"(%o) : (tensor<1xf32>) -> f32',),
    ),
    "extract-of-reshape": Case(
        '%0 = "nv_tileaa.expand_dims"(%o) {axis = 0 : i32} : (tensor<1xf32>) -> tensor<1x1xf32>\n'
        '%1 = "nv_tileaa.permute"(%0) {permutation = array<i32: 1, 0>} : (tensor<1x1xf32>) -> '
        'tensor<1x1xf32>\n%r = "nv_tileaa.extract"(%1) : (tensor<1x1xf32>) -> f32',
        (r'"nv_tileaa.extract"\(%arg8\)',),
        (
            '%0 = "nv_tileaa.extract_slice"(%t, %i) : (!t, i32) -> tensor<1xf32>\n'
            '%r = "nv_tileaa.extract"(%0) : (tensor<1xf32>) -> f32',
        ),
    ),
    "extract-of-elementwise": Case(
        '%0 = "nv_tileaa.subf"(%o, %oo) {ftz} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>\n'
        '%r = "nv_tileaa.extract"(%0) : (tensor<1xf32>) -> f32',
        (r'"nv_tileaa.subf"\(%\d+, %\d+\) \{ftz\} : \(f32, f32\) -> f32', r'extract"\(%arg9\)'),
        (
            # Used twice: the tile is needed anyway.
            '%0 = "nv_tileaa.subf"(%o, %oo) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>\n'
            '%1 = "nv_tileaa.extract"(%0) : (tensor<1xf32>) -> f32\n'
            "%r = math.absf %0 : tensor<1xf32>",
            # Not elementwise.
            '%0 = "nv_tileaa.reduce"(%s) ({\n^bb0(%e: f32, %z: f32):\n'
            '%1 = arith.addf %e, %z : f32\n"nv_tileaa.yield"(%1) : (f32) -> ()\n'
            "}) {axis = 0 : i32, identities = [0.0 : f32]} : (tensor<4x2xf32>) -> tensor<2xf32>\n"
            '%2 = "nv_tileaa.extract_slice"(%0, %i) : (tensor<2xf32>, i32) -> tensor<1xf32>\n'
            '%r = "nv_tileaa.extract"(%2) : (tensor<1xf32>) -> f32',
        ),
    ),
    "no-offset": Case(
        ZERO + '%r = "nv_tileaa.addptr"(%p, %zero) : (!p, i32) -> !p\n'
        '%v = "nv_tileaa.ptr_to_int"(%r) : (!p) -> i64',
        (r'"nv_tileaa.ptr_to_int"\(%arg10\)',),
        ('%r = "nv_tileaa.addptr"(%p, %i) : (!p, i32) -> !p',),
        gone=("addptr",),
    ),
    "addptr-of-addptr": Case(
        '%0 = "nv_tileaa.addptr"(%p, %l) : (!p, i64) -> !p\n'
        '%r = "nv_tileaa.addptr"(%0, %h) : (!p, i64) -> !p\n'
        "%c1 = arith.constant 3 : i32\n%c2 = arith.constant -7 : i32\n"
        '%1 = "nv_tileaa.addptr"(%p, %c1) : (!p, i32) -> !p\n'
        '%2 = "nv_tileaa.addptr"(%1, %c2) : (!p, i32) -> !p',
        (
            r"arith.addi %arg4, %arg5 : i64",
            r'"nv_tileaa.addptr"\(%arg10, %\d+\).*i64',
            r"arith.constant -4 : i32",
        ),
        (
            # i32 offsets: their sum may wrap where the addresses do not.
            '%0 = "nv_tileaa.addptr"(%p, %i) : (!p, i32) -> !p\n'
            '%r = "nv_tileaa.addptr"(%0, %j) : (!p, i32) -> !p',
            "%c1 = arith.constant 2000000000 : i32\n"
            '%0 = "nv_tileaa.addptr"(%p, %c1) : (!p, i32) -> !p\n'
            '%r = "nv_tileaa.addptr"(%0, %c1) : (!p, i32) -> !p',
            # Elements of another size.
            '%0 = "nv_tileaa.addptr"(%p, %l) : (!p, i64) -> !p\n%1 = "nv_tileaa.bitcast"(%0) : '
            "(!p) -> !nv_tileaa.ptr<f16, 1 : i32>\n"
            '%r = "nv_tileaa.addptr"(%1, %h) : (!nv_tileaa.ptr<f16, 1 : i32>, i64) -> '
            "!nv_tileaa.ptr<f16, 1 : i32>",
            # Offsets of different types.
            '%0 = "nv_tileaa.addptr"(%p, %i) : (!p, i32) -> !p\n'
            '%r = "nv_tileaa.addptr"(%0, %l) : (!p, i64) -> !p',
            # Computed once, outside of where it is used.
            '%0 = "nv_tileaa.addptr"(%p, %l) : (!p, i64) -> !p\nscf.if %b {\n'
            '%r = "nv_tileaa.addptr"(%0, %h) : (!p, i64) -> !p\n}',
        ),
    ),
    "load-of-all": Case(
        ALL + _load("%true", other="%t"),
        (r'"nv_tileaa.load"\(%arg11, %arg15\).*array<i32: 1, 0, 0, 1>',),
        (_load("%m", other="%t"), _load("%m")),
    ),
    "load-of-nothing": Case(
        NONE + _load("%false", other="%t"),
        (r"addf\"\(%arg7, %arg7\)", r'"nv_tileaa.store"\(%arg10, %arg0, %arg15\)'),
        (_load("%m"), NONE + _load("%false", more=f"{WEAK}, volatile")),
        gone=("nv_tileaa.load",),
    ),
    "store-of-all": Case(
        ALL + _store("%true"),
        (r'"nv_tileaa.store"\(%arg11, %arg7, %arg15\).*array<i32: 1, 1, 0, 1>',),
        (_store("%m"),),
    ),
    "store-of-nothing": Case(
        NONE + _store("%false"),
        (r'"nv_tileaa.store"\(%arg10, %arg0, %arg15\)',),
        (_store("%m"), NONE + _store("%false", f"{WEAK}, volatile")),
        gone=(r"store\"\(%arg11",),
    ),
    "rmw-of-nothing": Case(
        ZERO + _rmw("add", "%zero"),
        (r'"nv_tileaa.load"\(%arg16, %arg15\).*scope = "gpu", mem_semantic = "relaxed"',),
        (
            ZERO + _rmw("and", "%zero"),
            ZERO + _rmw("umax", "%zero"),
            ZERO + _rmw("xchg", "%zero"),
            _rmw("add", "%i"),
            # It would not be released to anyone.
            ZERO + _rmw("add", "%zero", 'mem_semantic = "release", mem_scope = "gpu"'),
            ZERO + _rmw("add", "%zero", 'mem_semantic = "acq_rel", mem_scope = "gpu"'),
            # -0.0 + 0.0 is 0.0.
            "%fz = arith.constant 0.0 : f32\n" + _rmw("addf", "%fz", element="f32"),
        ),
        gone=("atomic_rmw",),
    ),
    "cas-of-itself": Case(
        _cas("%i", "%i", 'mem_semantic = "acquire", mem_scope = "sys"'),
        (r'"nv_tileaa.load"\(%arg16, %arg15\).*scope = "sys", mem_semantic = "acquire"',),
        (
            _cas("%i", "%j"),
            _cas("%i", "%i", 'mem_semantic = "acq_rel", mem_scope = "gpu"'),
            _cas("%x", "%x", element="f32"),
        ),
        gone=("atomic_cas",),
    ),
    "unused-results-of-pragma": Case(
        '%r:3 = "nv_tileaa.pragma"() ({\n%0 = arith.addf %x, %y : f32\n'
        '"nv_tileaa.yield"(%0, %x, %y) : (f32, f32, f32) -> ()\n}) {ocg = "u"} : () -> '
        "(f32, f32, f32)\n%v = math.absf %r#0 : f32\n%z = arith.subf %r#2, %x : f32",
        (
            r"\}\) \{ocg = \"u\".*: \(\) -> \(f32, f32\)",
            r'"nv_tileaa.yield"\(%\d+, %arg1\)',
            r"arith.subf %\d+#1, %arg0",
        ),
        (
            '%r = "nv_tileaa.pragma"() ({\n"nv_tileaa.yield"(%x) : (f32) -> ()\n}) : () -> f32\n'
            "%v = math.absf %r : f32",
        ),
    ),
    "product-with-zero": Case(
        "%z = arith.constant dense<0> : !a\n" + _dot("%a", "%z", "%c", attributes=_signs())
        + "\n%v = math.absi %r : !c",
        (r"math.absi %arg18",),
        (
            "%z = arith.constant dense<0.0> : !f\n" + _dot("%z", "%g", "%g", "f"),
            "%z = arith.constant dense<1> : !a\n" + _dot("%a", "%z", "%c", attributes=_signs()),
        ),
        gone=("nv_tileaa.dot",),
    ),
    "product-of-constants": Case(
        "%d = arith.constant dense<-1> : !a\n%e = arith.constant dense<2> : !a\n"
        "%z = arith.constant dense<5> : !c\n"
        + _dot("%d", "%e", "%z", attributes=_signs("unsigned")),
        (r"arith.constant dense<2045> : tensor<4x4xi32>",),
        (
            "%d = arith.constant dense<1> : !a\n" + _dot("%d", "%d", "%c", attributes=_signs()),
            "%d = arith.constant dense<1.0> : !f\n" + _dot("%d", "%d", "%d", "f"),
        ),
        gone=("nv_tileaa.dot",),
    ),
}  # fmt: skip

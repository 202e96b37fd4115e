"""What programs name themselves, functions, intrinsics, assembly: compiled and run, or refused."""

from __future__ import annotations

import re
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from support.tiles import DTYPES, Kernel, registry, tile
from tile_nvptx.emit import toolchain
from tile_nvptx.passes.tileas.rules import called

import tile_core
from tile_core.diagnostics import CompileError

SHAPE = (16, 32)
COUNT = 512


def applied(
    op: str, sources: list[str], results: list[str], shape: tuple[int, ...] = SHAPE
) -> Kernel:
    """Stores the results %y of `op`, of the tiles %x0, %x1, .. that are loaded."""
    kernel = Kernel()
    for at, source in enumerate(sources):
        kernel.load(f"%x{at}", shape, source)
    names = [f"%y#{at}" for at in range(len(results))] if len(results) > 1 else ["%y"]
    left = f"%y:{len(results)}" if len(results) > 1 else "%y"
    kernel.op(f"{left} = {op}")
    for name, result in zip(names, results, strict=True):
        kernel.store(name, shape, result)
    return kernel


def signature(sources: list[str], results: list[str], shape: tuple[int, ...] = SHAPE) -> str:
    given, found = ([tile(shape, kind) for kind in kinds] for kinds in (sources, results))
    return f"({', '.join(given)}) -> ({', '.join(found)})"


def segments(*groups: int) -> str:
    """Sizes of the runs of equal types of a `_mixed` operation."""
    return f"array<i32: {', '.join(map(str, [*groups, *[0] * (16 - len(groups))]))}>"


def numbers(kind: str, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind.startswith("i"):
        info = np.iinfo(DTYPES[kind])
        return rng.integers(info.min, info.max, COUNT, DTYPES[kind], endpoint=True)
    return rng.standard_normal(COUNT).astype(DTYPES[kind])


def outcome(
    kernel: Kernel, given: list[np.ndarray], results: list[str], **settings: Any
) -> list[np.ndarray]:
    out = [np.zeros(COUNT, DTYPES[kind]) for kind in results]
    kernel.run(*given, *out, **settings)
    return out


def extern(name: str, sources: list[str], result: str, *, sizes: str = "") -> Kernel:
    op = "extern_elementwise_mixed" if sizes else "extern_elementwise"
    more = f", operandSegmentSizes = {sizes}" if sizes else ""
    return applied(
        f'"nv_tileaa.{op}"({names(len(sources))}) {{symbol = @{name}, '
        f"pure{more}}} : {signature(sources, [result])}",
        sources,
        [result],
    )


def names(count: int) -> str:
    return ", ".join(f"%x{at}" for at in range(count))


def intrinsic(name: str, sources: list[str], result: str) -> Kernel:
    return applied(
        f'"nv_tileaa.call_elementwise_intrinsic"({names(len(sources))}) {{intrinsic = "{name}", '
        f"pure}} : {signature(sources, [result])}",
        sources,
        [result],
    )


def assembly(
    text: str, constraints: str, sources: list[str], results: list[str], more: str = "",
    shape: tuple[int, ...] = SHAPE,
) -> Kernel:  # fmt: skip
    mixed = len(set(sources)) > 1 or len(set(results)) > 1
    if mixed:
        more += (
            f", operandSegmentSizes = {segments(*[1] * len(sources))}"
            f", resultSegmentSizes = {segments(*[1] * len(results))}"
        )
    op = "elementwise_inline_asm_mixed" if mixed else "elementwise_inline_asm"
    return applied(
        f'"nv_tileaa.{op}"({names(len(sources))}) '
        f'{{asm = "{text}", constraints = "{constraints}"{more}}} : '
        f"{signature(sources, results, shape)}",
        sources,
        results,
        shape,
    )


@pytest.mark.parametrize(("target", "level"), [("sm_80", 0), ("sm_90", 2), ("sm_100", 3)])
def test_function_of_libdevice(target: str, level: int) -> None:
    x, y = numbers("f32"), numbers("f32", 1)
    kernel = extern("__nv_hypotf", ["f32", "f32"], "f32")
    (found,) = outcome(kernel, [x, y], ["f32"], target=target, opt_level=level)
    np.testing.assert_allclose(found, np.hypot(x, y), rtol=3e-7)


def test_function_of_several_types() -> None:
    x, n = numbers("f32"), numbers("i32", 1) % 20
    kernel = extern("__nv_ldexpf", ["f32", "i32"], "f32", sizes=segments(1, 1))
    np.testing.assert_array_equal(outcome(kernel, [x, n], ["f32"])[0], np.ldexp(x, n))


def test_function_of_the_module() -> None:
    x = numbers("f64")
    text = extern("cubed", ["f64"], "f64").text()
    own = (
        "llvm.func internal @cubed(%x: f64) -> f64 {\n%y = llvm.fmul %x, %x : f64\n"
        "%z = llvm.fmul %y, %x : f64\nllvm.return %z : f64\n}\n"
    )

    class Own(Kernel):
        def text(self) -> str:
            return text.replace("  func.func", f"{own}  func.func", 1)

    np.testing.assert_array_equal(outcome(Own(), [x], ["f64"])[0], x * x * x)


@pytest.mark.parametrize("target", ["sm_80", "sm_100"])
def test_intrinsics(target: str) -> None:
    x, n = numbers("f32"), numbers("i32")
    for name, kind, given, wanted in (
        ("llvm.copysign.f32", "f32", [x, x[::-1].copy()], np.copysign(x, x[::-1])),
        ("llvm.ctpop.i32", "i32", [n], np.bitwise_count(n.view(np.uint32)).astype(np.int32)),
    ):
        kernel = intrinsic(name, [kind] * len(given), kind)
        np.testing.assert_array_equal(outcome(kernel, given, [kind], target=target)[0], wanted)


def test_intrinsic_with_a_literal() -> None:
    """`llvm.ctlz` takes its flag as a literal alone."""
    n, type_ = numbers("i32"), tile(SHAPE, "i32")
    kernel = Kernel()
    kernel.load("%x0", SHAPE, "i32")
    kernel.op(f"%no = arith.constant dense<false> : {tile(SHAPE, 'i1')}")
    kernel.op(
        '%y = "nv_tileaa.call_elementwise_intrinsic_mixed"(%x0, %no) {intrinsic = "llvm.ctlz.i32", '
        f"operandSegmentSizes = {segments(1, 1)}}} : ({type_}, {tile(SHAPE, 'i1')}) -> {type_}"
    )
    kernel.store("%y", SHAPE, "i32")
    wanted = [32 - int(value).bit_length() for value in n.view(np.uint32)]
    np.testing.assert_array_equal(outcome(kernel, [n], ["i32"])[0], wanted)


@pytest.mark.parametrize(("target", "level"), [("sm_80", 0), ("sm_90", 2), ("sm_100", 3)])
def test_packed_halves(target: str, level: int) -> None:
    a, b = numbers("f16"), numbers("f16", 1)
    more = ", packed_element = 2 : i32, pure"
    kernel = assembly("add.f16x2 $0, $1, $2;", "=r,r,r", ["f16", "f16"], ["f16"], more)
    np.testing.assert_array_equal(
        outcome(kernel, [a, b], ["f16"], target=target, opt_level=level)[0], a + b
    )


def test_packed_bytes() -> None:
    """Four bytes share a register: bytes 0 and 2 of the first operand, 1 and 3 of the second."""
    a, b = numbers("i8"), numbers("i8", 1)
    more = ", packed_element = 4 : i32, pure"
    kernel = assembly("prmt.b32 $0, $1, $2, 0x7250;", "=r,r,r", ["i8", "i8"], ["i8"], more)
    (found,) = outcome(kernel, [a, b], ["i8"])
    assert set(np.unique(np.where(found == a, 0, np.where(found == b, 1, 2)))) <= {0, 1}
    assert 0 < np.count_nonzero(found == a) < COUNT


def test_several_results_of_several_types() -> None:
    x, n = numbers("f32"), numbers("i64", 1)
    kernel = assembly(
        "{ neg.f32 $0, $2; add.s64 $1, $3, 5; }", "=f,=l,f,l", ["f32", "i64"], ["f32", "i64"]
    )
    found = outcome(kernel, [x, n], ["f32", "i64"])
    np.testing.assert_array_equal(found[0], -x)
    np.testing.assert_array_equal(found[1], n + 5)


def test_bytes_in_wider_registers() -> None:
    """They come with zeros above, and what stands above in results is dropped."""
    x = numbers("i8")
    kernel = assembly("mad.lo.u32 $0, $1, 257, 256;", "=r,r", ["i8"], ["i8"])
    np.testing.assert_array_equal(outcome(kernel, [x], ["i8"])[0], x)


def test_tied_register() -> None:
    x, y = numbers("i32") // 2, numbers("i32", 1) // 2
    kernel = assembly("add.s32 $0, $0, $2;", "=r,0,r", ["i32", "i32"], ["i32"])
    np.testing.assert_array_equal(outcome(kernel, [x, y], ["i32"])[0], x + y)


def test_fewer_elements_than_are_packed() -> None:
    """What is missing in a register is filled up, and what comes of it is dropped."""
    kernel = assembly(
        "add.f16x2 $0, $1, $2;", "=r,r,r", ["f16", "f16"], ["f16"], ", packed_element = 2 : i32",
        (64,),
    )  # fmt: skip
    a, out = numbers("f16")[:64].copy(), np.zeros(64, np.float16)
    kernel.run(a, a, out)
    np.testing.assert_array_equal(out, a + a)


def test_effects_stay() -> None:
    """Assembly whose result nobody uses is there, unless it is pure."""
    for more, wanted in (("", True), (", pure", False)):
        kernel = assembly("add.s32 $0, $1, 77;", "=r,r", ["i32"], ["i32"], more)
        kernel.lines = [line for line in kernel.lines if "tiled_store" not in line]
        assert (", 77;" in kernel.ptx()) == wanted


@pytest.mark.parametrize("kind", ["i1", "i8", "f16", "bf16", "i32", "f64"])
def test_optimization_barrier(kind: str) -> None:
    """Nobody knows any more that two values are one."""
    kernel = Kernel()
    kernel.load("%x", SHAPE, kind)
    type_ = tile(SHAPE, kind)
    types = f"({type_}, {type_})"
    kernel.op(f'%y:2 = "nv_tileaa.optimization_barrier"(%x, %x) : {types} -> {types}')
    op = "arith.xori" if kind.startswith("i") else "arith.subf"
    kernel.op(f"%z = {op} %y#0, %y#1 : {type_}")
    kernel.store("%z", SHAPE, kind)
    given = numbers(kind) if kind != "i1" else numbers("i8") > 0
    assert not np.any(outcome(kernel, [given], [kind])[0])
    assert re.search("sub|xor|add|fma", kernel.ptx())


def test_pragma() -> None:
    """Its directives stand around what its region does."""
    kernel = Kernel()
    kernel.load("%x", SHAPE, "f32")
    type_ = tile(SHAPE, "f32")
    kernel.op('%y = "nv_tileaa.pragma"(%x) ({')
    kernel.op(f"^bb0(%inside: {type_}):")
    kernel.op(
        '%twice = "nv_tileaa.elementwise_inline_asm"(%inside) {asm = "add.f32 $0, $1, $1;", '
        f'constraints = "=f,f"}} : ({type_}) -> {type_}'
    )
    kernel.op(f'"nv_tileaa.yield"(%twice) : ({type_}) -> ()')
    kernel.op(
        '}) {ocgEnterDirectives = ["nounroll"], ocgLeaveDirectives = ["knob A=$1"]} : '
        f"({type_}) -> {type_}"
    )
    kernel.store("%y", SHAPE, "f32")
    x = numbers("f32")
    np.testing.assert_array_equal(outcome(kernel, [x], ["f32"])[0], x + x)
    ptx = kernel.ptx()
    places = [
        ptx.index(word) for word in ('.pragma "nounroll";', "add.f32", '.pragma "knob A=$1";')
    ]
    assert places == sorted(places)


REFUSED = {
    "no such function": (
        extern("__nv_sinff", ["f32"], "f32"),
        "calls '@__nv_sinff', which is neither an llvm.func with a body in its module nor a "
        "function of numbers in libdevice",
    ),
    "a function of other types": (
        extern("__nv_sin", ["f32"], "f32"),
        "calls '@__nv_sin' as f32 (f32), but it is f64 (f64)",
    ),
    "a function of no numbers": (
        extern("__nv_sinf", ["f8E4M3FN"], "f32"),
        "is for numbers that LLVM computes with, but got f8E4M3FN",
    ),
    "no such intrinsic": (
        intrinsic("llvm.nonsense.f32", ["f32"], "f32"),
        "calls 'llvm.nonsense.f32', which LLVM cannot compile for sm_90a: unknown intrinsic",
    ),
    "an intrinsic of other types": (
        intrinsic("llvm.nvvm.rsqrt.approx.f", ["i32"], "i32"),
        "which LLVM cannot compile for sm_90a: invalid intrinsic signature",
    ),
    "an intrinsic of another machine": (
        intrinsic("llvm.x86.sse.sqrt.ss", ["f32"], "f32"),
        "which LLVM cannot compile for sm_90a: LLVM broke its own rule",
    ),
    "no name of an intrinsic": (
        intrinsic("sqrt", ["f32"], "f32"),
        "calls 'sqrt', which is no name of an intrinsic of LLVM",
    ),
    "an intrinsic of a later target": (
        intrinsic("llvm.nvvm.redux.sync.fmin", ["f32"], "f32"),
        "calls 'llvm.nvvm.redux.sync.fmin', which needs sm_100a or sm_103a, but the target is",
    ),
    "a register too small": (
        assembly("mov.b32 $0, $1;", "=f,h", ["f32"], ["f32"]),
        "has the constraint 'h', of 16 bits, for a register that holds 1 x f32, 32 bits",
    ),
    "too few registers": (
        assembly("mov.b32 $0, $1;", "=r", ["f32"], ["f32"]),
        "has constraints of 0 operands, but its operands take 1 registers",
    ),
    "too many registers": (
        assembly("mov.b32 $0, $2;", "=r,=r,r", ["f32"], ["f32"]),
        "has constraints of 2 results, but its results take 1 registers",
    ),
    "an output behind an input": (
        assembly("mov.b32 $0, $1;", "r,=r", ["f32"], ["f32"]),
        "has the constraint '=r', which is none of h, r, l, f, d",
    ),
    "no such register": (
        assembly("mov.b32 $0, $2;", "=r,r", ["f32"], ["f32"]),
        "has '$2;' in its text, which names none of its 2 registers",
    ),
    "assembly of a later target": (
        assembly("tcgen05.wait::ld.sync.aligned; mov.b32 $0, $1;", "=r,r", ["f32"], ["f32"]),
        "needs sm_100a, sm_103a or sm_110a, but the target is sm_90a",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    kernel, message = REFUSED[name]
    with pytest.raises(CompileError) as caught:
        kernel.ptx()
    assert message in str(caught.value)
    assert caught.value.where is not None


def test_reserved_names() -> None:
    text = extern("__nv_sinf", ["f32"], "f32").text()
    declared = text.replace("  func.func", "llvm.func @__nv_sinf(f32) -> f32\n  func.func", 1)

    class Declared(Kernel):
        def text(self) -> str:
            return declared

    with pytest.raises(CompileError, match="has the name '__nv_sinf', which is reserved"):
        Declared().ptx()


def test_pragma_of_several_types() -> None:
    """Scalars and tiles, those that the region takes and those that it gives."""
    kernel = Kernel()
    kernel.load("%x", SHAPE, "f32")
    two, type_ = segments(1, 1), tile(SHAPE, "f32")
    kernel.op("%n = arith.constant 3.0 : f32")
    kernel.op('%y:2 = "nv_tileaa.pragma_mixed"(%x, %n) ({')
    kernel.op(f"^bb0(%a: {type_}, %b: f32):")
    kernel.op(f'%c = "nv_tileaa.splat"(%b) : (f32) -> {type_}')
    kernel.op(f"%d = arith.mulf %a, %c : {type_}")
    kernel.op(
        f'"nv_tileaa.yield_mixed"(%b, %d) {{operandSegmentSizes = {two}}} : (f32, {type_}) -> ()'
    )
    kernel.op(
        f"}}) {{operandSegmentSizes = {two}, resultSegmentSizes = {two}}} : ({type_}, f32) -> "
        f"(f32, {type_})"
    )
    kernel.op(f'%s = "nv_tileaa.splat"(%y#0) : (f32) -> {type_}')
    kernel.op(f"%z = arith.addf %y#1, %s : {type_}")
    kernel.store("%z", SHAPE, "f32")
    x = numbers("f32")
    np.testing.assert_array_equal(outcome(kernel, [x], ["f32"])[0], x * np.float32(3) + 3)


def test_message() -> None:
    """A remark for whoever compiles, with the types of its values."""
    kernel = Kernel()
    kernel.load("%x", SHAPE, "f32")
    type_ = tile(SHAPE, "f32")
    kernel.op(f'"nv_tileaa.message"(%x, %x) {{text = "look at"}} : ({type_}, {type_}) -> ()')
    kernel.store("%x", SHAPE, "f32")
    artifact = tile_core.compile(
        kernel.text(), "sm_90", start_at="convert-tileaa-to-tileas", emit="ptx",
        registry=registry(),
    )  # fmt: skip
    told = [remark for remark in artifact.remarks if "look at" in remark.message]
    assert [remark.message for remark in told] == [f"look at ({type_}, {type_})"]


def test_functions_of_libdevice_are_those_of_the_table() -> None:
    bitcode = toolchain.require("libdevice").path.read_bytes()
    with llvm.create_context() as context, llvm.parse_bitcode(bitcode, context) as library:
        types = {
            function.name: str(function.global_value_type)
            for function in library.functions
            if function.name.startswith("__nv_") and not function.is_declaration
        }
    wanted = {
        name: type_.replace("float", "f32").replace("double", "f64")
        for name, type_ in types.items()
        if "ptr" not in type_
    }
    assert called.libdevice_functions() == wanted

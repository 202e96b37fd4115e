"""Device functions over the elements of vectors, as MLIR text (see `helpers`)."""

from __future__ import annotations

from collections.abc import Mapping

from tile_nvptx.passes.tileas.device.helpers import quoted


def pack_fp8(kind: str, count: int) -> tuple[str, str]:
    """Name and text of `vector<count x f32> -> vector<count x i8>`: to nearest, saturating.

    Pairs are converted together (PTX ISA, "cvt"); `kind` is e4m3 or e5m2.
    """
    name, source, result = (
        f"__tile_pack_{kind}_v{count}",
        f"vector<{count}xf32>",
        f"vector<{count}xi8>",
    )
    asm = f"cvt.rn.satfinite.{kind}x2.f32 $0, $2, $1;"
    lines = [
        f"llvm.func internal @{name}(%x: {source}) -> {result} attributes {{always_inline}} {{",
        f"  %v0 = llvm.mlir.poison : {result}",
        "  %eight = llvm.mlir.constant(8 : i16) : i16",
    ]
    for i in range(count):
        lines.append(f"  %i{i} = llvm.mlir.constant({i} : i32) : i32")
        lines.append(f"  %e{i} = llvm.extractelement %x[%i{i} : i32] : {source}")
    for i in range(0, count, 2):
        other = min(i + 1, count - 1)
        lines.append(
            f"  %p{i} = llvm.inline_asm asm_dialect = att {quoted(asm)}, "
            f'"=h,f,f" %e{i}, %e{other} : (f32, f32) -> i16'
        )
        lines.append(f"  %t{i} = llvm.trunc %p{i} : i16 to i8")
        lines.append(f"  %v{i + 1} = llvm.insertelement %t{i}, %v{i}[%i{i} : i32] : {result}")
        if other > i:
            lines.append(f"  %s{i} = llvm.lshr %p{i}, %eight : i16")
            lines.append(f"  %t{other} = llvm.trunc %s{i} : i16 to i8")
            lines.append(
                f"  %v{other + 1} = llvm.insertelement %t{other}, %v{other}[%i{other} : i32] "
                f": {result}"
            )
    lines += [f"  llvm.return %v{count} : {result}", "}"]
    return name, "\n".join(lines)


def shuffle_words(count: int, mode: str) -> tuple[str, str]:
    """Name and text of `(vector<count x i32>, i32 lane) -> vector`: one warp shuffle per word.

    `mode` "bfly" exchanges with lane ^ operand, "idx" reads from lane `operand`.
    """
    return each_word(
        f"__tile_shuffle_{mode}_v{count}",
        count,
        f"nvvm.shfl.sync {mode} %all, %a, %lane, %clamp",
        arguments=", %lane: i32",
        constants={"all": -1, "clamp": 31},
    )


def each_word(
    name: str, count: int, instruction: str, *, arguments: str = "", constants: Mapping[str, int]
) -> tuple[str, str]:
    """Name and text of `vector<count x i32> -> vector`: `instruction` of each word, called %a.

    It may also use further `arguments` and the i32 `constants`.
    """
    vector = f"vector<{count}xi32>"
    lines = [
        f"llvm.func internal @{name}(%x: {vector}{arguments}) -> {vector} "
        "attributes {always_inline} {",
        *(
            f"  %{key} = llvm.mlir.constant({value} : i32) : i32"
            for key, value in constants.items()
        ),
        f"  %v0 = llvm.mlir.poison : {vector}",
    ]
    for i in range(count):
        lines += [
            f"  %i{i} = llvm.mlir.constant({i} : i32) : i32",
            f"  %a{i} = llvm.extractelement %x[%i{i} : i32] : {vector}",
            f"  %b{i} = {instruction.replace('%a,', f'%a{i},')} : i32 -> i32",
            f"  %v{i + 1} = llvm.insertelement %b{i}, %v{i}[%i{i} : i32] : {vector}",
        ]
    lines += [f"  llvm.return %v{count} : {vector}", "}"]
    return name, "\n".join(lines)


def map_scalar(
    callee: str,
    element: str,
    count: int,
    arity: int,
    via: str | None = None,
    intrinsic: bool = False,
) -> tuple[str, str]:
    """Name and text of a function that applies scalar `callee` to each element of vectors.

    With `via`, elements are widened to that float type for the call and rounded back.
    """
    kind = via or element
    name = f"__tile_map_{callee.replace('.', '_')}_{element}_v{count}"
    vector = f"vector<{count}x{element}>"
    arguments = [f"%x{k}: {vector}" for k in range(arity)]
    lines = [] if intrinsic else [f"llvm.func @{callee}({', '.join([kind] * arity)}) -> {kind}"]
    lines += [
        f"llvm.func internal @{name}({', '.join(arguments)}) -> {vector} "
        "attributes {always_inline} {",
        f"  %v0 = llvm.mlir.poison : {vector}",
    ]
    for i in range(count):
        lines.append(f"  %i{i} = llvm.mlir.constant({i} : i32) : i32")
        values = []
        for k in range(arity):
            lines.append(f"  %e{i}_{k} = llvm.extractelement %x{k}[%i{i} : i32] : {vector}")
            value = f"%e{i}_{k}"
            if via:
                lines.append(f"  %f{i}_{k} = llvm.fpext {value} : {element} to {kind}")
                value = f"%f{i}_{k}"
            values.append(value)
        types = ", ".join([kind] * arity)
        operands = ", ".join(values)
        if intrinsic:
            lines.append(
                f'  %r{i} = llvm.call_intrinsic "{callee}"({operands}) : ({types}) -> {kind}'
            )
        else:
            lines.append(f"  %r{i} = llvm.call @{callee}({operands}) : ({types}) -> {kind}")
        result = f"%r{i}"
        if via:
            lines.append(f"  %t{i} = llvm.fptrunc {result} : {kind} to {element}")
            result = f"%t{i}"
        lines.append(f"  %v{i + 1} = llvm.insertelement {result}, %v{i}[%i{i} : i32] : {vector}")
    lines += [f"  llvm.return %v{count} : {vector}", "}"]
    return name, "\n".join(lines)


_ASM_CONSTRAINT = {"f16": "h", "f32": "f", "f64": "d"}


def map_asm(name: str, asm: str, source: str, result: str, count: int) -> tuple[str, str]:
    """Name and text of `vector<count x source> -> vector<count x result>`: `asm` per element.

    The instruction reads $1 and writes $0; f16 is given to it as 16 bits.
    """
    name, taken, given = (
        f"__tile_map_{name}_v{count}",
        f"vector<{count}x{source}>",
        f"vector<{count}x{result}>",
    )
    constraints = f"={_ASM_CONSTRAINT[result]},{_ASM_CONSTRAINT[source]}"
    written = "i16" if result == "f16" else result
    lines = [
        f"llvm.func internal @{name}(%x: {taken}) -> {given} attributes {{always_inline}} {{",
        f"  %v0 = llvm.mlir.poison : {given}",
    ]
    for i in range(count):
        lines += [
            f"  %i{i} = llvm.mlir.constant({i} : i32) : i32",
            f"  %e{i} = llvm.extractelement %x[%i{i} : i32] : {taken}",
            f"  %a{i} = llvm.inline_asm asm_dialect = att {quoted(asm)}, "
            f'"{constraints}" %e{i} : ({source}) -> {written}',
            f"  %r{i} = llvm.bitcast %a{i} : {written} to {result}",
            f"  %v{i + 1} = llvm.insertelement %r{i}, %v{i}[%i{i} : i32] : {given}",
        ]
    lines += [f"  llvm.return %v{count} : {given}", "}"]
    return name, "\n".join(lines)

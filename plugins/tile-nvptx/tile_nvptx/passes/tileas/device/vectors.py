"""Device functions over the elements of vectors, as MLIR text (see `helpers`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tile_nvptx.passes.tileas.device.helpers import joined, quoted


def pack_fp8(kind: str, count: int) -> tuple[str, str]:
    """Name and text of `vector<count x f32> -> vector<count x i8>`: to nearest, saturating.

    Pairs are converted together (PTX ISA, "cvt"), and stay together: two of them are a word without
    another instruction. `kind` is e4m3 or e5m2.
    """
    name, source = f"__tile_pack_{kind}_v{count}", f"vector<{count}xf32>"
    result, pairs = f"vector<{count}xi8>", (count + 1) // 2
    both, every = f"vector<{pairs}xi16>", f"vector<{2 * pairs}xi8>"
    asm = f"cvt.rn.satfinite.{kind}x2.f32 $0, $2, $1;"
    lines = [
        f"llvm.func internal @{name}(%x: {source}) -> {result} attributes {{always_inline}} {{",
    ]
    for i in range(count):
        lines.append(f"  %i{i} = llvm.mlir.constant({i} : i32) : i32")
        lines.append(f"  %e{i} = llvm.extractelement %x[%i{i} : i32] : {source}")
    for pair in range(pairs):
        first, second = 2 * pair, min(2 * pair + 1, count - 1)
        lines += [
            f"  %p{pair} = llvm.inline_asm asm_dialect = att {quoted(asm)}, "
            f'"=h,f,f" %e{first}, %e{second} : (f32, f32) -> i16',
        ]
    lines += joined("%both", [f"%p{pair}" for pair in range(pairs)], "i16")
    lines.append(f"  %all = llvm.bitcast %both : {both} to {every}")
    if count % 2:
        kept = ", ".join(map(str, range(count)))
        lines.append(f"  %some = llvm.shufflevector %all, %all [{kept}] : {every}")
    lines += [f"  llvm.return %{'some' if count % 2 else 'all'} : {result}", "}"]
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
    ]
    for i in range(count):
        lines += [
            f"  %i{i} = llvm.mlir.constant({i} : i32) : i32",
            f"  %a{i} = llvm.extractelement %x[%i{i} : i32] : {vector}",
            f"  %b{i} = {instruction.replace('%a,', f'%a{i},')} : i32 -> i32",
        ]
    lines += joined("%out", [f"%b{i}" for i in range(count)], "i32")
    lines += [f"  llvm.return %out : {vector}", "}"]
    return name, "\n".join(lines)


def map_scalar(
    callee: str,
    sources: Sequence[str],
    result: str,
    count: int,
    *,
    via: str | None = None,
    intrinsic: bool = False,
    literals: Mapping[int, int] | None = None,
) -> tuple[str, str]:
    """Name and text of a function that applies scalar `callee` to each element of vectors.

    Args:
        sources: element types of the operands, all vectors of `count`.
        via: elements are widened to this float type for the call and rounded back.
        literals: place of an operand -> the integer that it is, which is no argument; at least 0.
    """
    numbers = literals or {}
    name = _mapped_name(callee, sources, result, count, numbers)
    vector = f"vector<{count}x{result}>"
    kinds, kind = [via or source for source in sources], via or result
    vectors = [f"vector<{count}x{source}>" for source in sources]
    taken = ", ".join(f"%x{k}: {vectors[k]}" for k in range(len(sources)) if k not in numbers)
    types = ", ".join(kinds)
    call = f'llvm.call_intrinsic "{callee}"' if intrinsic else f"llvm.call @{callee}"
    lines = [] if intrinsic else [f"llvm.func @{callee}({types}) -> {kind}"]
    lines += [
        f"llvm.func internal @{name}({taken}) -> {vector} attributes {{always_inline}} {{",
        *(
            f"  %n{k} = llvm.mlir.constant({value} : {kinds[k]}) : {kinds[k]}"
            for k, value in numbers.items()
        ),
    ]
    for i in range(count):
        lines.append(f"  %i{i} = llvm.mlir.constant({i} : i32) : i32")
        values = []
        for k, source in enumerate(sources):
            value = f"%n{k}" if k in numbers else f"%e{i}_{k}"
            if k not in numbers:
                lines.append(f"  {value} = llvm.extractelement %x{k}[%i{i} : i32] : {vectors[k]}")
            if via:
                lines.append(f"  %f{i}_{k} = llvm.fpext {value} : {source} to {via}")
                value = f"%f{i}_{k}"
            values.append(value)
        lines.append(f"  %r{i} = {call}({', '.join(values)}) : ({types}) -> {kind}")
        if via:
            lines.append(f"  %t{i} = llvm.fptrunc %r{i} : {via} to {result}")
    lines += joined("%out", [f"%{'t' if via else 'r'}{i}" for i in range(count)], result)
    lines += [f"  llvm.return %out : {vector}", "}"]
    return name, "\n".join(lines)


def _mapped_name(
    callee: str, sources: Sequence[str], result: str, count: int, numbers: Mapping[int, int]
) -> str:
    parts = [
        f"__tile_map_{callee.replace('.', '_')}",
        *(sources if any(source != result for source in sources) else ()),
        *(f"{at}is{value}" for at, value in numbers.items()),
        f"{result}_v{count}",
    ]
    return "_".join(parts)


_ASM_CONSTRAINT = {"f16": "h", "f32": "f", "f64": "d", "i32": "r"}


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
    ]
    for i in range(count):
        lines += [
            f"  %i{i} = llvm.mlir.constant({i} : i32) : i32",
            f"  %e{i} = llvm.extractelement %x[%i{i} : i32] : {taken}",
            f"  %a{i} = llvm.inline_asm asm_dialect = att {quoted(asm)}, "
            f'"{constraints}" %e{i} : ({source}) -> {written}',
            f"  %r{i} = llvm.bitcast %a{i} : {written} to {result}",
        ]
    lines += joined("%out", [f"%r{i}" for i in range(count)], result)
    lines += [f"  llvm.return %out : {given}", "}"]
    return name, "\n".join(lines)

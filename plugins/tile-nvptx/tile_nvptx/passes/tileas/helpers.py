"""Device functions that generated code calls, written as MLIR text and added when first needed.

They are internal and always inlined; keeping them out of line until LLVM keeps the number of
operations that Python touches small.
"""

from __future__ import annotations

from tile_core.convert import Conversion
from tile_core.mlir import ir, passmanager
from tile_core.walk import children

_WORD_CONSTRAINT = {1: "h", 2: "h", 4: "r"}


class Helpers:
    """The helper functions of one gpu.module."""

    def __init__(self, module: ir.Operation) -> None:
        self._block = module.regions[0].blocks[0]
        self._known: dict[str, ir.Attribute] = {}
        self._tables: dict[ir.Attribute, str] = {}

    def call(
        self, cx: Conversion, name: str, text: str, operands: list[ir.Value], result: ir.Type | None
    ) -> ir.Operation:
        """Call helper `name`, whose definition is `text`."""
        if name not in self._known:
            self._add(text)
        return _call(cx, self._known[name], operands, result)

    def _add(self, text: str) -> None:
        """Insert the functions that `text` defines or declares, each once."""
        parsed = ir.Module.parse(text)
        # Lines of our own text would show up as the user's line numbers.
        passmanager.PassManager.parse("builtin.module(strip-debuginfo)").run(parsed.operation)
        for helper in children(parsed.operation):
            symbol = ir.StringAttr(helper.attributes["sym_name"]).value
            if symbol not in self._known:
                self._known[symbol] = ir.FlatSymbolRefAttr.get(symbol)
                helper.detach_from_parent()
                ir.InsertionPoint(self._block).insert(helper)

    def text(self, cx: Conversion, text: str) -> ir.Value:
        """The generic address of a constant string, zero-terminated."""
        data = ir.StringAttr.get(text.encode() + bytes(1))
        name = self._tables.get(data)
        if name is None:
            name = self._tables[data] = f"__tile_text_{len(self._tables)}"
            array = f"!llvm.array<{len(text.encode()) + 1} x i8>"
            ir.Operation.create(
                "llvm.mlir.global",
                attributes={
                    "sym_name": ir.StringAttr.get(name),
                    "value": data,
                    "global_type": ir.TypeAttr.get(ir.Type.parse(array)),
                    "linkage": ir.Attribute.parse("#llvm.linkage<internal>"),
                    "constant": ir.UnitAttr.get(),
                    "addr_space": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1),
                },
                regions=1,
                loc=ir.Location.unknown(),
                ip=ir.InsertionPoint.at_block_begin(self._block),
            )
        symbol = {"global_name": ir.FlatSymbolRefAttr.get(name)}
        pointer = ir.Type.parse("!llvm.ptr<1>")
        place = cx.create("llvm.mlir.addressof", [], [pointer], symbol).result
        return cx.create("llvm.addrspacecast", [place], [ir.Type.parse("!llvm.ptr")]).result

    def table(self, cx: Conversion, values: list[ir.Attribute], element: ir.Type) -> ir.Value:
        """The address of a constant array in global memory that holds `values`."""
        type_ = ir.RankedTensorType.get([len(values)], element)
        data = ir.DenseElementsAttr.get(values, type_)
        name = self._tables.get(data)
        if name is None:
            name = self._tables[data] = f"__tile_table_{len(self._tables)}"
            array = f"!llvm.array<{len(values)} x {element}>"
            ir.InsertionPoint(self._block).insert(
                ir.Operation.parse(
                    f"llvm.mlir.global internal constant @{name}({data}) "
                    f"{{addr_space = 1 : i32, alignment = 16 : i64}} : {array}"
                )
            )
        pointer = ir.Type.parse("!llvm.ptr<1>")
        symbol = {"global_name": ir.FlatSymbolRefAttr.get(name)}
        return cx.create("llvm.mlir.addressof", [], [pointer], symbol).result


def _call(
    cx: Conversion, callee: ir.Attribute, operands: list[ir.Value], result: ir.Type | None
) -> ir.Operation:
    return cx.create(
        "llvm.call",
        operands,
        [] if result is None else [result],
        {
            "callee": callee,
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    )


def load_matrices(count: int, *, transposed: bool, rows: int = 8) -> tuple[str, str]:
    """Name and text of `(ptr<3>) -> words`: ldmatrix of `count` matrices of rows of 16 bytes.

    Matrices of 16 rows are of bytes, and transposed.
    """
    words = count * rows // 8
    shape, element = ("m = 16, n = 16", "b8") if rows == 16 else ("m = 8, n = 8", "b16")
    name = f"__tile_ldmatrix_{element}_x{count}{'_trans' if transposed else ''}"
    vector = f"vector<{words}xi32>"
    struct = "i32" if words == 1 else f"!llvm.struct<({', '.join(['i32'] * words)})>"
    kind = "col" if transposed else "row"
    lines = [
        f"llvm.func internal @{name}(%p: !llvm.ptr<3>) -> {vector} attributes {{always_inline}} {{",
        f"  %m = nvvm.ldmatrix %p {{num = {count} : i32, layout = #nvvm.mma_layout<{kind}>, "
        f"shape = #nvvm.ld_st_matrix_shape<{shape}>, "
        f"eltType = #nvvm.ld_st_matrix_elt_type<{element}>}} : (!llvm.ptr<3>) -> {struct}",
        f"  %v0 = llvm.mlir.poison : {vector}",
    ]
    for i in range(words):
        part = "%m" if words == 1 else f"%m{i}"
        if words > 1:
            lines.append(f"  {part} = llvm.extractvalue %m[{i}] : {struct}")
        lines.append(f"  %i{i} = llvm.mlir.constant({i} : i32) : i32")
        lines.append(f"  %v{i + 1} = llvm.insertelement {part}, %v{i}[%i{i} : i32] : {vector}")
    return name, "\n".join([*lines, f"  llvm.return %v{words} : {vector}", "}"])


def store_matrices(count: int, *, transposed: bool) -> tuple[str, str]:
    """Name and text of `(ptr<3>, words)`: stmatrix of `count` matrices of 8 rows of 16 bytes."""
    name = f"__tile_stmatrix_x{count}{'_trans' if transposed else ''}"
    words = f"vector<{count}xi32>"
    kind = "col" if transposed else "row"
    head = f"llvm.func internal @{name}(%p: !llvm.ptr<3>, %x: {words}) attributes {{always_inline}}"
    lines = [f"{head} {{"]
    for i in range(count):
        lines.append(f"  %i{i} = llvm.mlir.constant({i} : i32) : i32")
        lines.append(f"  %w{i} = llvm.extractelement %x[%i{i} : i32] : {words}")
    parts = ", ".join(f"%w{i}" for i in range(count))
    lines.append(
        f"  nvvm.stmatrix %p, {parts} {{layout = #nvvm.mma_layout<{kind}>, "
        "shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, "
        f"eltType = #nvvm.ld_st_matrix_elt_type<b16>}} : !llvm.ptr<3>{', i32' * count}"
    )
    return name, "\n".join([*lines, "  llvm.return", "}"])


def words_of(size: int) -> tuple[int, int]:
    """(bytes of a word, number of words) of a memory access of `size` bytes."""
    return (size, 1) if size < 4 else (4, size // 4)


def word_vector(size: int) -> str:
    """The MLIR type in which an access of `size` bytes travels."""
    word, count = words_of(size)
    return f"vector<{count}xi32>" if word == 4 else f"i{8 * word}"


def _asm_register(word: int) -> str:
    return "i32" if word == 4 else "i16"


def predicated_load(size: int, qualifiers: str) -> tuple[str, str]:
    """Name and text of `(ptr<1>, i1) -> words`: reads `size` bytes if the flag is set, else 0.

    `qualifiers` are those of PTX `ld`, such as ".acquire.gpu" (PTX ISA, "ld").
    """
    word, count = words_of(size)
    name = f"__tile_load{qualifiers.replace('.', '_')}_b{8 * size}"
    register, constraint = _asm_register(word), _WORD_CONSTRAINT[word]
    outputs = [f"${i}" for i in range(count)]
    kind = f"b{8 * word}"
    vector = "" if count == 1 else f".v{count}"
    target = outputs[0] if count == 1 else "{" + ", ".join(outputs) + "}"
    zero = " ".join(f"mov.b{max(16, 8 * word)} {out}, 0;" for out in outputs)
    asm = f"{zero} @${count + 1} ld{qualifiers}.global{vector}.{kind} {target}, [${count}];"
    constraints = ",".join([f"=&{constraint}"] * count + ["l", "b"])
    result = register if count == 1 else f"!llvm.struct<({', '.join([register] * count)})>"
    body = [
        f"  %r = llvm.inline_asm has_side_effects asm_dialect = att {_quoted(asm)}, "
        f'"{constraints}" %p, %c : (!llvm.ptr<1>, i1) -> {result}'
    ]
    body += _pack_words(word, count)
    lines = [
        f"llvm.func internal @{name}(%p: !llvm.ptr<1>, %c: i1) -> {word_vector(size)} "
        "attributes {always_inline} {",
        *body,
        f"  llvm.return %out : {word_vector(size)}",
        "}",
    ]
    return name, "\n".join(lines)


def _pack_words(word: int, count: int) -> list[str]:
    if word == 1:
        return ["  %out = llvm.trunc %r : i16 to i8"]
    if word == 2:
        return ["  %zero = llvm.mlir.constant(0 : i16) : i16", "  %out = llvm.or %r, %zero : i16"]
    lines = [f"  %v0 = llvm.mlir.poison : vector<{count}xi32>"]
    struct = f"!llvm.struct<({', '.join(['i32'] * count)})>"
    for i in range(count):
        source = "%r" if count == 1 else f"%w{i}"
        if count > 1:
            lines.append(f"  %w{i} = llvm.extractvalue %r[{i}] : {struct}")
        last = "%out" if i == count - 1 else f"%v{i + 1}"
        lines.append(f"  %i{i} = llvm.mlir.constant({i} : i32) : i32")
        lines.append(
            f"  {last} = llvm.insertelement {source}, %v{i}[%i{i} : i32] : vector<{count}xi32>"
        )
    return lines


def predicated_store(size: int, qualifiers: str) -> tuple[str, str]:
    """Name and text of `(ptr<1>, words, i1)`: writes `size` bytes if the flag is set."""
    word, count = words_of(size)
    name = f"__tile_store{qualifiers.replace('.', '_')}_b{8 * size}"
    register, constraint = _asm_register(word), _WORD_CONSTRAINT[word]
    inputs = [f"${i + 1}" for i in range(count)]
    vector = "" if count == 1 else f".v{count}"
    source = inputs[0] if count == 1 else "{" + ", ".join(inputs) + "}"
    asm = f"@${count + 1} st{qualifiers}.global{vector}.b{8 * word} [$0], {source};"
    constraints = ",".join(["l"] + [constraint] * count + ["b"])
    words = [f"%w{i}" for i in range(count)]
    types = ", ".join(["!llvm.ptr<1>", *[register] * count, "i1"])
    lines = [
        f"llvm.func internal @{name}(%p: !llvm.ptr<1>, %x: {word_vector(size)}, %c: i1) "
        "attributes {always_inline} {",
        *_unpack_words(word, count),
        f"  llvm.inline_asm has_side_effects asm_dialect = att {_quoted(asm)}, "
        f'"{constraints}" %p, {", ".join(words)}, %c : ({types}) -> ()',
        "  llvm.return",
        "}",
    ]
    return name, "\n".join(lines)


def _unpack_words(word: int, count: int) -> list[str]:
    if word == 1:
        return ["  %w0 = llvm.zext %x : i8 to i16"]
    if word == 2:
        return ["  %zero = llvm.mlir.constant(0 : i16) : i16", "  %w0 = llvm.or %x, %zero : i16"]
    lines = []
    for i in range(count):
        lines.append(f"  %i{i} = llvm.mlir.constant({i} : i32) : i32")
        lines.append(f"  %w{i} = llvm.extractelement %x[%i{i} : i32] : vector<{count}xi32>")
    return lines


def atomic_text(instruction: str, qualifiers: str, bits: int, arity: int) -> tuple[str, str]:
    """Name and text of `(ptr<1>, values.., i1) -> old`: acts if the flag is set.

    `instruction` is `add.f32`, `cas.b64`, ...; `qualifiers` are those of PTX `atom`. Values and
    result are integers of `bits`. Without the flag, the result is the first value.
    """
    name = f"__tile_atom{qualifiers}.{instruction}".replace(".", "_")
    constraint = {16: "h", 32: "r", 64: "l"}[bits]
    values = ", ".join(f"${2 + at}" for at in range(arity))
    asm = (
        f"mov.b{bits} $0, $2; "
        f"@${2 + arity} atom{qualifiers}.global.{instruction} $0, [$1], {values};"
    )
    constraints = ",".join([f"=&{constraint}", "l", *[constraint] * arity, "b", "~{memory}"])
    names = [f"%x{at}" for at in range(arity)]
    arguments = ", ".join(["%p: !llvm.ptr<1>", *(f"{n}: i{bits}" for n in names), "%c: i1"])
    types = ", ".join(["!llvm.ptr<1>", *[f"i{bits}"] * arity, "i1"])
    lines = [
        f"llvm.func internal @{name}({arguments}) -> i{bits} attributes {{always_inline}} {{",
        f"  %r = llvm.inline_asm has_side_effects asm_dialect = att {_quoted(asm)}, "
        f'"{constraints}" %p, {", ".join(names)}, %c : ({types}) -> i{bits}',
        f"  llvm.return %r : i{bits}",
        "}",
    ]
    return name, "\n".join(lines)


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
            f"  %p{i} = llvm.inline_asm asm_dialect = att {_quoted(asm)}, "
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


def print_values(kinds: tuple[str, ...]) -> tuple[str, str]:
    """Name and text of `(format, values..)`: one call of vprintf, its arguments in a struct.

    `kinds` are i32, i64 and f64, as C passes variable arguments.
    """
    name = "__tile_print" + "".join(f"_{kind}" for kind in kinds)
    arguments = ", ".join(["%f: !llvm.ptr", *(f"%a{i}: {kind}" for i, kind in enumerate(kinds))])
    lines = [
        "llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32",
        f"llvm.func internal @{name}({arguments}) {{",
    ]
    if kinds:
        struct = f"!llvm.struct<({', '.join(kinds)})>"
        lines += [
            "  %one = llvm.mlir.constant(1 : i32) : i32",
            f"  %b = llvm.alloca %one x {struct} {{alignment = 8 : i64}} : (i32) -> !llvm.ptr",
        ]
        for i, kind in enumerate(kinds):
            lines.append(
                f"  %p{i} = llvm.getelementptr %b[0, {i}] : (!llvm.ptr) -> !llvm.ptr, {struct}"
            )
            lines.append(f"  llvm.store %a{i}, %p{i} : {kind}, !llvm.ptr")
    else:
        lines.append("  %b = llvm.mlir.zero : !llvm.ptr")
    lines += [
        "  %r = llvm.call @vprintf(%f, %b) : (!llvm.ptr, !llvm.ptr) -> i32",
        "  llvm.return",
        "}",
    ]
    return name, "\n".join(lines)


def _quoted(asm: str) -> str:
    return '"' + asm.replace("\\", "\\\\").replace('"', '\\"') + '"'


def shuffle_words(count: int, mode: str) -> tuple[str, str]:
    """Name and text of `(vector<count x i32>, i32 lane) -> vector`: one warp shuffle per word.

    `mode` "bfly" exchanges with lane ^ operand, "idx" reads from lane `operand`.
    """
    name = f"__tile_shuffle_{mode}_v{count}"
    vector = f"vector<{count}xi32>"
    lines = [
        f"llvm.func internal @{name}(%x: {vector}, %lane: i32) -> {vector} "
        "attributes {always_inline} {",
        "  %all = llvm.mlir.constant(-1 : i32) : i32",
        "  %clamp = llvm.mlir.constant(31 : i32) : i32",
        f"  %v0 = llvm.mlir.poison : {vector}",
    ]
    for i in range(count):
        lines += [
            f"  %i{i} = llvm.mlir.constant({i} : i32) : i32",
            f"  %a{i} = llvm.extractelement %x[%i{i} : i32] : {vector}",
            f"  %b{i} = nvvm.shfl.sync {mode} %all, %a{i}, %lane, %clamp : i32 -> i32",
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
            f"  %a{i} = llvm.inline_asm asm_dialect = att {_quoted(asm)}, "
            f'"{constraints}" %e{i} : ({source}) -> {written}',
            f"  %r{i} = llvm.bitcast %a{i} : {written} to {result}",
            f"  %v{i + 1} = llvm.insertelement %r{i}, %v{i}[%i{i} : i32] : {given}",
        ]
    lines += [f"  llvm.return %v{count} : {given}", "}"]
    return name, "\n".join(lines)

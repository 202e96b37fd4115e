"""Device functions that access memory, as MLIR text (see `helpers`)."""

from __future__ import annotations

from typing import NamedTuple

from tile_nvptx.passes.tileas.device.helpers import quoted
from tile_nvptx.passes.tileas.device.policies import hint_text

_WORD_CONSTRAINT = {1: "h", 2: "h", 4: "r"}


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


#: Bytes of a register, which inline assembly takes as it is.
_WHOLE = 4


def words_of(size: int) -> tuple[int, int]:
    """(bytes of a word, number of words) of a memory access of `size` bytes."""
    return (size, 1) if size < 4 else (4, size // 4)


def word_vector(size: int) -> str:
    """The MLIR type in which an access of `size` bytes travels; a single word is no vector, whose
    element LLVM would load where it is stored, with that place's location."""
    word, count = words_of(size)
    return f"vector<{count}xi32>" if count > 1 else f"i{8 * word}"


def _asm_register(word: int) -> str:
    return "i32" if word == 4 else "i16"


class Manner(NamedTuple):
    """How memory is accessed, in PTX: order and scope such as ".acquire.gpu", a cache operator such
    as ".cs", a priority of L2 such as "evict_first". All may be empty.
    """

    order: str = ""
    cache: str = ""
    priority: str = ""

    @property
    def name(self) -> str:
        """For names of functions."""
        parts = f"{self.order}{self.cache}{self.priority and '.' + self.priority}"
        return parts.replace(".", "_")

    def text(self, instruction: str, kind: str, operands: str) -> str:
        """`instruction` of global memory in this manner, of the words `kind`."""
        _, suffix, policy = hint_text(self.priority)
        return f"{instruction}{self.order}.global{self.cache}{suffix}{kind} {operands}{policy};"


def predicated_load(
    size: int, manner: Manner, behind: int = 0, other: bytes = b""
) -> tuple[str, str]:
    """Name and text of `(ptr<1>, i1) -> words`: reads `size` bytes, so many `behind` the pointer,
    if the flag is set, else what an element is then, over and over, or 0.

    Registers have that before the load, so that nothing reads the flag behind it: of seven
    predicates a flag of each of sixteen loads would leave no two loads under way at once.
    """
    word, count = words_of(size)
    whole = other * (size // len(other)) if other else bytes(size)
    fill = [int.from_bytes(whole[at : at + word], "little") for at in range(0, size, word)]
    name = f"__tile_load{manner.name}_b{8 * size}{_suffix(behind)}"
    name += f"_or_{other.hex()}" if other else ""
    register, constraint = _asm_register(word), _WORD_CONSTRAINT[word]
    outputs = [f"${i}" for i in range(count)]
    vector = "" if count == 1 else f".v{count}"
    target = outputs[0] if count == 1 else "{" + ", ".join(outputs) + "}"
    before = " ".join(
        f"mov.b{max(16, 8 * word)} {out}, {value};"
        for out, value in zip(outputs, fill, strict=True)
    )
    place = f"[${count}{f'+{behind}' if behind else ''}]"
    access = manner.text("ld", f"{vector}.b{8 * word}", f"{target}, {place}")
    asm = _guarded(manner, f"{before} ", f"@${count + 1}", access)
    constraints = ",".join([f"=&{constraint}"] * count + ["l", "b"])
    result = register if count == 1 else f"!llvm.struct<({', '.join([register] * count)})>"
    found = "%out" if size == _WHOLE else "%r"
    body = [
        f"  {found} = llvm.inline_asm has_side_effects asm_dialect = att {quoted(asm)}, "
        f'"{constraints}" %p, %c : (!llvm.ptr<1>, i1) -> {result}'
    ]
    if size != _WHOLE:
        body += _pack_words(word, count)
    lines = [
        f"llvm.func internal @{name}(%p: !llvm.ptr<1>, %c: i1) -> {word_vector(size)} "
        "attributes {always_inline} {",
        *body,
        f"  llvm.return %out : {word_vector(size)}",
        "}",
    ]
    return name, "\n".join(lines)


def _suffix(behind: int) -> str:
    return f"_at{behind}" if behind else ""


def _pack_words(word: int, count: int) -> list[str]:
    if word == 1:
        return ["  %out = llvm.trunc %r : i16 to i8"]
    if word == 2:
        return ["  %zero = llvm.mlir.constant(0 : i16) : i16", "  %out = llvm.or %r, %zero : i16"]
    lines = [f"  %v0 = llvm.mlir.poison : vector<{count}xi32>"]
    struct = f"!llvm.struct<({', '.join(['i32'] * count)})>"
    for i in range(count):
        lines.append(f"  %w{i} = llvm.extractvalue %r[{i}] : {struct}")
        last = "%out" if i == count - 1 else f"%v{i + 1}"
        lines.append(f"  %i{i} = llvm.mlir.constant({i} : i32) : i32")
        lines.append(
            f"  {last} = llvm.insertelement %w{i}, %v{i}[%i{i} : i32] : vector<{count}xi32>"
        )
    return lines


def _guarded(manner: Manner, before: str, flag: str, access: str) -> str:
    """`before` and, if the flag is set, the access, whose policy is made in a scope of its own."""
    if not manner.priority:
        return f"{before}{flag} {access}"
    make = hint_text(manner.priority).make
    return f"{before}{{ {make}{flag} {access} }}"


def predicated_store(size: int, manner: Manner, behind: int = 0) -> tuple[str, str]:
    """Name and text of `(ptr<1>, words, i1)`: writes `size` bytes, so many `behind` the pointer, if
    the flag is set.
    """
    word, count = words_of(size)
    name = f"__tile_store{manner.name}_b{8 * size}{_suffix(behind)}"
    register, constraint = _asm_register(word), _WORD_CONSTRAINT[word]
    inputs = [f"${i + 1}" for i in range(count)]
    vector = "" if count == 1 else f".v{count}"
    source = inputs[0] if count == 1 else "{" + ", ".join(inputs) + "}"
    place = f"[$0{f'+{behind}' if behind else ''}]"
    access = manner.text("st", f"{vector}.b{8 * word}", f"{place}, {source}")
    asm = _guarded(manner, "", f"@${count + 1}", access)
    constraints = ",".join(["l"] + [constraint] * count + ["b"])
    words = ["%x"] if size == _WHOLE else [f"%w{i}" for i in range(count)]
    types = ", ".join(["!llvm.ptr<1>", *[register] * count, "i1"])
    lines = [
        f"llvm.func internal @{name}(%p: !llvm.ptr<1>, %x: {word_vector(size)}, %c: i1) "
        "attributes {always_inline} {",
        *([] if size == _WHOLE else _unpack_words(word, count)),
        f"  llvm.inline_asm has_side_effects asm_dialect = att {quoted(asm)}, "
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


def count_text() -> tuple[str, str]:
    """Name and text of `(ptr<3>, i1)`: adds one to a word of the block's if the flag is set."""
    name = "__tile_count"
    asm = "@$1 red.relaxed.cta.shared.add.u32 [$0], 1;"
    return name, (
        f"llvm.func internal @{name}(%p: !llvm.ptr<3>, %c: i1) attributes {{always_inline}} {{\n"
        f"  llvm.inline_asm has_side_effects asm_dialect = att {quoted(asm)}, "
        '"l,b,~{memory}" %p, %c : (!llvm.ptr<3>, i1) -> ()\n  llvm.return\n}'
    )


def add_text(element: str, width: int, order: str) -> tuple[str, str]:
    """Name and text of `(ptr<1>, vector<width x iN>, i1)`: adds to `width` floats if the flag is
    set, each atomically ("red" with `.v2` to `.v8`, PTX ISA); `order` is of PTX.
    """
    name = f"__tile_add{order}_{element}_v{width}".replace(".", "_")
    bits, suffix = (32, "") if element == "f32" else (16, ".noftz")
    vector, words = f"vector<{width}xi{bits}>", [f"%w{at}" for at in range(width)]
    places = ", ".join(f"${at + 1}" for at in range(width))
    asm = f"@${width + 1} red{order}.global.add{suffix}.v{width}.{element} [$0], {{{places}}};"
    constraints = ",".join(["l", *["r" if bits == 32 else "h"] * width, "b", "~{memory}"])
    lines = [
        f"llvm.func internal @{name}(%p: !llvm.ptr<1>, %x: {vector}, %c: i1) "
        "attributes {always_inline} {",
    ]
    for at in range(width):
        lines.append(f"  %i{at} = llvm.mlir.constant({at} : i32) : i32")
        lines.append(f"  %w{at} = llvm.extractelement %x[%i{at} : i32] : {vector}")
    types = ", ".join(["!llvm.ptr<1>", *[f"i{bits}"] * width, "i1"])
    lines += [
        f"  llvm.inline_asm has_side_effects asm_dialect = att {quoted(asm)}, "
        f'"{constraints}" %p, {", ".join(words)}, %c : ({types}) -> ()',
        "  llvm.return",
        "}",
    ]
    return name, "\n".join(lines)


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
        f"  %r = llvm.inline_asm has_side_effects asm_dialect = att {quoted(asm)}, "
        f'"{constraints}" %p, {", ".join(names)}, %c : ({types}) -> i{bits}',
        f"  llvm.return %r : i{bits}",
        "}",
    ]
    return name, "\n".join(lines)

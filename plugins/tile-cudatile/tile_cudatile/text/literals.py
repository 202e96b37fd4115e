"""Types, numbers and attributes of assembly text."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from tile_core.deferred_numpy import np
from tile_cudatile.attrs import (
    Attr,
    Bounded,
    Dense,
    DivBy,
    Float,
    Hints,
    Integer,
    MultimemReduction,
    SameElements,
    TypeRef,
    element_count,
)
from tile_cudatile.ops.enums import REDUCTION
from tile_cudatile.rules.types import type_problem
from tile_cudatile.text.numbers import LAYOUTS
from tile_cudatile.text.scanner import Scanner
from tile_cudatile.types import (
    F64,
    I1,
    I32,
    I64,
    PADDING_VALUES,
    POINTER_KINDS,
    SCALARS,
    TOKEN,
    GatherScatterView,
    PartitionView,
    Pointer,
    Scalar,
    StridedView,
    TensorView,
    Tile,
    Type,
)

_DIM = re.compile(r"(\d+|\?)x")
_NUMBER = re.compile(r"-?(?:0[xX][0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)")
_HEX_STRING = re.compile(r'"0x([0-9A-Fa-f]*)"')
_EXTENT = re.compile(r"\d+")


def parse_type(scanner: Scanner) -> Type:
    """A type, with or without the dialect's prefix."""
    start = scanner.position
    if not scanner.accept("!cuda_tile."):
        scanner.accept("!")
    if scanner.text.startswith("cuda_tile.", scanner.position):
        scanner.position += len("cuda_tile.")
    name = scanner.word("a type")
    if name in SCALARS:
        return SCALARS[name]
    if name == "token":
        return TOKEN
    reader = _TYPES.get(name)
    if reader is None:
        raise scanner.error(f"unknown type: {name}", start)
    scanner.expect("<")
    found = reader(scanner)
    scanner.expect(">")
    problem = type_problem(found)
    if problem is not None:
        raise scanner.error(problem, start)
    return found


def _element(scanner: Scanner) -> Scalar | Pointer:
    start = scanner.position
    found = parse_type(scanner)
    if not isinstance(found, (Scalar, Pointer)):
        raise scanner.error("expected a number or pointer type", start)
    return found


def _number_type(scanner: Scanner) -> Scalar:
    start = scanner.position
    found = parse_type(scanner)
    if not isinstance(found, Scalar):
        raise scanner.error("expected a number type", start)
    return found


def _pointer(scanner: Scanner) -> Pointer:
    pointee = _number_type(scanner)
    kind = None
    if scanner.accept(","):
        scanner.accept("#cuda_tile.ptr_attr")
        scanner.expect("<")
        kind = _one_of(scanner, "pointer kind", POINTER_KINDS)
        scanner.expect(">")
    return Pointer(pointee, kind)


def _dims(scanner: Scanner) -> tuple[int | None, ...]:
    found: list[int | None] = []
    while (match := _DIM.match(scanner.text, scanner.position)) is not None:
        found.append(None if match[1] == "?" else int(match[1]))
        scanner.position = match.end()
    return tuple(found)


def _tile(scanner: Scanner) -> Tile:
    start = scanner.position
    shape = _dims(scanner)
    if None in shape:
        raise scanner.error("a tile has no dynamic dimensions", start)
    return Tile(tuple(d for d in shape if d is not None), _element(scanner))


def _tensor_view(scanner: Scanner) -> TensorView:
    shape = _dims(scanner)
    element = _number_type(scanner)
    strides: tuple[int | None, ...] = ()
    kind = None
    if shape:
        if not scanner.accept(","):
            raise scanner.error("expected 'strides'")
        scanner.expect("strides")
        scanner.expect("=")
        strides = _list(scanner, _stride)
    if scanner.accept(","):
        if scanner.starts("strides"):
            raise scanner.error("strides must not be provided for 0-d tiles")
        scanner.expect("#cuda_tile.ptr_attr")
        scanner.expect("<")
        kind = _one_of(scanner, "pointer kind", POINTER_KINDS)
        scanner.expect(">")
    return TensorView(element, shape, strides, kind)


def _stride(scanner: Scanner) -> int | None:
    start = scanner.position
    if scanner.accept("?"):
        return None
    value = scanner.integer("either 64-bit integer or question mark")
    if value <= 0:
        raise scanner.error(f"expected strictly positive integer, got {value}", start)
    return value


def _list(scanner: Scanner, item: Callable[[Scanner], object]) -> tuple:
    """`[item, ..]`."""
    scanner.expect("[")
    found: list[object] = []
    if not scanner.accept("]"):
        found.append(item(scanner))
        while scanner.accept(","):
            found.append(item(scanner))
        scanner.expect("]")
    return tuple(found)


def _one_of(scanner: Scanner, what: str, values: tuple[str, ...]) -> str:
    start = scanner.position
    found = scanner.word(what)
    if found not in values:
        listed = ", ".join(values)
        raise scanner.error(
            f'invalid {what} attribute specification. Got "{found}" but expect one of: {listed}',
            start,
        )
    return found


class _ViewFields:
    """The parameters of a view, in the order in which they come."""

    def __init__(self, scanner: Scanner) -> None:
        scanner.expect("tile")
        scanner.expect("=")
        scanner.expect("(")
        self.tile = self._tile_shape(scanner)
        scanner.expect(")")
        self.padding: str | None = None
        self.steps: tuple[int, ...] = ()
        self.dim_map: tuple[int, ...] = tuple(range(len(self.tile)))
        self.sparse_dim = 0
        self.view: TensorView | None = None
        while scanner.accept(","):
            self._field(scanner)
        if self.view is None:
            raise scanner.error("expected a tensor_view")

    def _tile_shape(self, scanner: Scanner) -> tuple[int, ...]:
        start = scanner.position
        found = [int(scanner.take(_EXTENT, "a tile dimension"))]
        while scanner.text.startswith("x", scanner.position):
            scanner.position += 1
            found.append(int(scanner.take(_EXTENT, "a tile dimension")))
        for i, extent in enumerate(found):
            if not 0 < extent <= 0x7FFFFFFF:
                raise scanner.error(
                    f"tile dimension {i} exceeds i32 limitations (got {extent}, expected strictly "
                    "positive and less than or equal to 2147483647)",
                    start,
                )
        return tuple(found)

    def _field(self, scanner: Scanner) -> None:
        integers = lambda s: s.integer()  # noqa: E731
        if scanner.accept("padding_value"):
            scanner.expect("=")
            self.padding = _one_of(scanner, "padding_value", PADDING_VALUES)
        elif scanner.accept("traversal_strides"):
            scanner.expect("=")
            self.steps = _list(scanner, integers)
        elif scanner.accept("dim_map"):
            scanner.expect("=")
            self.dim_map = _list(scanner, integers)
        elif scanner.accept("sparse_dim"):
            scanner.expect("=")
            self.sparse_dim = scanner.integer()
        else:
            start = scanner.position
            view = parse_type(scanner)
            if not isinstance(view, TensorView):
                raise scanner.error(f"expected 'tensor_view' type, but got {view}", start)
            self.view = view


def _partition_view(scanner: Scanner) -> PartitionView:
    f = _ViewFields(scanner)
    assert f.view is not None
    return PartitionView(f.tile, f.view, f.dim_map, f.padding)


def _strided_view(scanner: Scanner) -> StridedView:
    f = _ViewFields(scanner)
    assert f.view is not None
    return StridedView(f.tile, f.steps, f.view, f.dim_map, f.padding)


def _gather_scatter_view(scanner: Scanner) -> GatherScatterView:
    f = _ViewFields(scanner)
    assert f.view is not None
    return GatherScatterView(f.tile, f.view, f.sparse_dim, f.padding)


_TYPES: dict[str, Callable[[Scanner], Type]] = {
    "ptr": _pointer,
    "tile": _tile,
    "tensor_view": _tensor_view,
    "partition_view": _partition_view,
    "strided_view": _strided_view,
    "gather_scatter_view": _gather_scatter_view,
}


# Numbers.


def number_bits(text: str, element: Scalar) -> int | None:
    """The pattern of a literal; None if the element type cannot hold it."""
    mask = (1 << element.width) - 1
    if not element.is_float:
        if element == I1 and text in ("true", "false"):
            return int(text == "true")
        try:
            value = int(text, 0)
        except ValueError:
            return None
        low = -1 if element == I1 else -(1 << (element.width - 1))
        high = 1 if element == I1 else mask
        return value & mask if low <= value <= high else None
    if text.lower().startswith("0x"):
        value = int(text, 16)
        return value if value <= mask else None
    layout = LAYOUTS[element.name]
    negative = text.startswith("-")
    bits = layout.nearest(abs(Fraction(text)))
    if bits is None or (negative and not layout.signed):
        return None
    return bits | (1 << (layout.exponent + layout.mantissa)) if negative else bits


def parse_number(scanner: Scanner, element: Scalar) -> int:
    """The pattern of the literal that comes next."""
    start = scanner.position
    text = scanner.maybe(_NUMBER)
    if text is None:
        text = scanner.word("a number")
    bits = number_bits(text, element)
    if bits is None:
        raise scanner.error("integer constant out of range for type", start)
    return bits


def parse_dense(scanner: Scanner, element: Scalar) -> tuple[list[int], tuple[int, ...] | None]:
    """Patterns of elements, and the shape of their lists; None for a splat."""
    if not scanner.accept("["):
        return [parse_number(scanner, element)], None
    parts = [parse_dense(scanner, element)]
    while scanner.accept(","):
        parts.append(parse_dense(scanner, element))
    scanner.expect("]")
    inner = parts[0][1]
    if any(shape != inner for _, shape in parts):
        raise scanner.error("tensor literal is invalid; ranks are not consistent between elements")
    patterns = [bits for found, _ in parts for bits in found]
    return patterns, (len(parts), *(inner or ()))


def parse_constant(scanner: Scanner) -> Dense:
    """`<f32: ..> : tile<..>`."""
    scanner.expect("<")
    element = _number_type(scanner)
    scanner.expect(":")
    start = scanner.position
    raw = scanner.maybe(_HEX_STRING)
    patterns, shape = ([], None) if raw else parse_dense(scanner, element)
    scanner.expect(">")
    scanner.expect(":")
    where = scanner.position
    tile = parse_type(scanner)
    if not isinstance(tile, Tile) or tile.element != element:
        raise scanner.error(f"expected a tile of {element}", where)
    if raw:
        return Dense(tile, _raw_data(scanner, bytes.fromhex(raw[3:-1]), tile, start))
    if shape is not None and shape != tile.shape:
        raise scanner.error(
            f"inferred shape of elements literal ({list(shape)}) does not match type "
            f"({list(tile.shape)})",
            start,
        )
    return Dense(tile, pack_elements(patterns, element, splat=shape is None))


def _raw_data(scanner: Scanner, data: bytes, tile: Tile, start: int) -> bytes:
    count = element_count(tile.shape)
    if tile.element == I1:  # written with a byte each
        if len(data) == count:
            packed = np.packbits(np.frombuffer(data, np.uint8), bitorder="little")
            return packed.tobytes()
    elif isinstance(tile.element, Scalar) and len(data) == count * ((tile.element.width + 7) // 8):
        return data
    raise scanner.error("elements hex data size is invalid for provided type", start)


def pack_elements(patterns: list[int], element: Scalar, splat: bool) -> bytes:
    """The raw form of a constant."""
    if element == I1:
        if splat:
            return b"\xff" if patterns[0] else b"\x00"
        return np.packbits(np.array(patterns, np.uint8), bitorder="little").tobytes()
    size = (element.width + 7) // 8
    return b"".join(bits.to_bytes(size, "little") for bits in patterns)


# Attributes.


def _parse_element(scanner: Scanner) -> Attr:
    """An attribute in an array, where numbers without a type have 64 bits."""
    return parse_attribute(scanner, None)


def parse_attribute(scanner: Scanner, default: Scalar | None = I32) -> Attr:
    """A number with its type (or `default`; None: i64 or f64), a boolean, a string, an array, a
    dictionary, a type, or an attribute of the dialect with its prefix."""
    for text, value in (("true", True), ("false", False)):
        if scanner.accept(text):
            return value
    if scanner.starts('"'):
        return scanner.string()
    if scanner.starts("["):
        return _list(scanner, _parse_element)
    if scanner.starts("{"):
        return parse_dictionary(scanner)
    if scanner.starts("#"):
        return _special(scanner)
    if scanner.starts("!") or scanner.text[scanner.position].isalpha():
        return TypeRef(parse_type(scanner))
    start = scanner.position
    text = scanner.take(_NUMBER, "an attribute")
    if default is None:
        default = F64 if "." in text else I64
    element = _number_type(scanner) if scanner.accept(":") else default
    bits = number_bits(text, element)
    if bits is None:
        raise scanner.error("integer constant out of range for type", start)
    return Float(element, bits) if element.is_float else Integer(element, bits)


def parse_dictionary(scanner: Scanner) -> dict[str, Attr]:
    """`{name = value, ..}`."""
    found: dict[str, Attr] = {}
    scanner.expect("{")
    while not scanner.accept("}"):
        if found:
            scanner.expect(",")
        name = scanner.string() if scanner.starts('"') else scanner.word("a name")
        scanner.expect("=")
        found[name] = parse_attribute(scanner)
    return found


def parse_hints(scanner: Scanner) -> Hints:
    """`<target = {..}, ..>`."""
    targets: dict[str, Attr] = {}
    scanner.expect("<")
    while not scanner.accept(">"):
        if targets:
            scanner.expect(",")
        name = scanner.word("a target")
        scanner.expect("=")
        targets[name] = parse_dictionary(scanner)
    return Hints(targets)


def _special(scanner: Scanner) -> Attr:
    """`#cuda_tile.div_by<..>` and its like."""
    start = scanner.position
    for prefix, read in (
        ("#cuda_tile.optimization_hints", parse_hints),
        ("#cuda_tile.multimem_reduction_kind", _multimem_reduction),
    ):
        if scanner.text.startswith(prefix, start):
            scanner.position = start + len(prefix)
            scanner.skip()
            return read(scanner)
    return parse_predicate(scanner)


def _multimem_reduction(scanner: Scanner) -> MultimemReduction:
    scanner.expect("<")
    start = scanner.position
    kind = scanner.word("a kind of reduction")
    if kind not in REDUCTION:
        raise scanner.error(f"expected one of {', '.join(REDUCTION)}", start)
    scanner.expect(">")
    return MultimemReduction(kind)


def parse_predicate(scanner: Scanner) -> DivBy | SameElements | Bounded:
    """The predicate of an assumption."""
    start = scanner.position
    if scanner.text.startswith("#cuda_tile.", scanner.position):
        scanner.position += len("#cuda_tile.")
    name = scanner.word("attribute name")
    readers: dict[str, Callable[[Scanner], DivBy | SameElements | Bounded]] = {
        "div_by": _div_by,
        "same_elements": _same_elements,
        "bounded": _bounded,
    }
    if name not in readers:
        raise scanner.error(
            f"unknown assume predicate attribute: {name} (expected 'div_by', 'same_elements', or "
            "'bounded')",
            start,
        )
    scanner.expect("<")
    found = readers[name](scanner)
    scanner.expect(">")
    return found


def _div_by(scanner: Scanner) -> DivBy:
    divisor = scanner.integer()
    if not scanner.accept(","):
        return DivBy(divisor)
    scanner.expect("every")
    every = scanner.integer()
    scanner.expect("along")
    return DivBy(divisor, every, scanner.integer())


def _same_elements(scanner: Scanner) -> SameElements:
    return SameElements(_list(scanner, lambda s: s.integer()))


def _bounded(scanner: Scanner) -> Bounded:
    lower = None if scanner.accept("?") else scanner.integer()
    scanner.expect(",")
    return Bounded(lower, None if scanner.accept("?") else scanner.integer())

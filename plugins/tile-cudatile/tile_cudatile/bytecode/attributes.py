"""Attribute payloads: inline ones, whose kind the operation fixes, and self-contained ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

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
    dense_is_valid,
    element_count,
)
from tile_cudatile.bytecode.tables import Strings
from tile_cudatile.bytecode.typetable import Types
from tile_cudatile.bytecode.wire import UINT32_LIMIT, Cursor
from tile_cudatile.errors import BytecodeError
from tile_cudatile.ops.enums import REDUCTION
from tile_cudatile.rules.words import quote
from tile_cudatile.types import I1, Scalar, Tile, Type
from tile_cudatile.versions import V13_5, version_text

if TYPE_CHECKING:
    from tile_cudatile.ops.spec import AttrSpec

_MAX_DEPTH = 32  # of arrays and dictionaries inside each other
(
    INTEGER,
    FLOAT,
    BOOL,
    TYPE,
    STRING,
    ARRAY,
    DENSE,
    DIV_BY,
    SAME_ELEMENTS,
    DICTIONARY,
    HINTS,
    BOUNDED,
    MULTIMEM_REDUCTION,
) = range(1, 14)
_LONGEST = 9  # bytes, of a varint that is certainly no longer than it has to be
_LIMITS = {4: 0x7FFFFFFF, 8: 0x7FFFFFFFFFFFFFFF}


class Attributes:
    """Decodes attributes with the tables they refer to."""

    def __init__(self, strings: Strings, types: Types, constants: list[bytes]) -> None:
        self.strings = strings
        self.types = types
        self._constants = constants
        self._dense: dict[tuple[int, int], Dense] = {}
        self._depth = 0
        #: Numbers that the writer would write in other bytes.
        self.spellings: list[tuple[Float, bytes]] = []

    def inline(self, spec: AttrSpec, cursor: Cursor, result: Type | None) -> Attr:
        """The payload of attribute `spec`; `result` is the first result type, if any."""
        if spec.kind == "enum":
            return read_enum(cursor, spec.values)
        return _INLINE[spec.kind](self, cursor, result)

    def tagged(self, cursor: Cursor) -> Attr:
        """A self-contained attribute."""
        try:
            tag = cursor.varint()
        except BytecodeError:
            raise cursor.error(
                "failed to read AttributeTag for self-contained attribute."
            ) from None
        decoder = _TAGGED.get(tag & 0xFF)  # as in the reference reader
        if decoder is None or self._depth >= _MAX_DEPTH:
            raise cursor.error(f"unsupported AttributeTag {tag} for self-contained attribute")
        self._depth += 1
        try:
            return decoder(self, cursor)
        finally:
            self._depth -= 1

    def constant(self, index: int, tile: Type, cursor: Cursor) -> Dense:
        """Constant number `index` as elements of type `tile`."""
        key = (index, id(tile))
        found = self._dense.get(key)
        if found is None:
            found = self._dense[key] = self._decode_constant(index, tile)
        return found

    def constant_index(self) -> tuple[tuple[Dense, int], ...]:
        """The constants decoded so far and their numbers."""
        return tuple((dense, index) for (index, _), dense in self._dense.items())

    def _decode_constant(self, index: int, tile: Type) -> Dense:
        entry = Cursor(self._constants[index])
        if not isinstance(tile, Tile) or not isinstance(tile.element, Scalar):
            shown = quote(tile) if isinstance(tile, Tile) else "'<<NULL TYPE>>'"
            raise entry.error(f"expect Cuda Tile integer or float type but got: {shown}")
        try:
            size = entry.varint()
        except BytecodeError:
            raise entry.error("failed to read the size of the data buffer") from None
        try:
            data = entry.take(size)
        except BytecodeError:
            raise entry.error("failed to read the raw byte data") from None
        if tile.element == I1 and not dense_is_valid(tile, data):
            raise entry.error(
                f"i1 dense attribute payload size {len(data)} is not a recognized encoding for "
                f"{element_count(tile.shape)} elements"
            )
        if not dense_is_valid(tile, data):
            raise entry.error("failed to validate buffer size and format")
        return Dense(tile, data)

    def _string(self, cursor: Cursor, _: Type | None = None) -> str:
        try:
            return self.strings[cursor.varint()]
        except BytecodeError as error:
            raise error.within(cursor.at("failed to read StringAttr.")) from None

    def _symbol(self, cursor: Cursor, _: Type | None = None) -> str:
        try:
            name = self.strings[cursor.varint()]
        except BytecodeError as error:
            raise error.within(cursor.at("failed to read string for FlatSymbolRefAttr.")) from None
        if not name:
            raise cursor.error("empty symbol reference is invalid")
        return name

    def _dense_inline(self, cursor: Cursor, tile: Type | None) -> Dense:
        try:
            index = cursor.varint()
        except BytecodeError:
            raise cursor.error("failed to read constant index") from None
        if index >= len(self._constants):
            raise cursor.error(f"constant index {index} out of bounds")
        assert tile is not None
        return self.constant(index, tile, cursor)

    def _dense_tagged(self, cursor: Cursor) -> Dense:
        tile = self._type(cursor)
        if not isinstance(tile, Tile):
            raise cursor.error(
                "failed to read valid MLIR Type for self-contained DenseElementsAttr"
            )
        # The format has a number for these, and no release reads one.
        raise cursor.error("unknown DenseElementsAttr based Attr")

    def _type(self, cursor: Cursor) -> Type | None:
        try:
            return self.types.read(cursor)
        except BytecodeError as error:
            if error.lines:
                raise
            return None

    def _type_ref(self, cursor: Cursor, _: Type | None = None) -> TypeRef:
        found = self._type(cursor)
        if found is None:
            raise cursor.error("failed to get referenced type for TypeAttr")
        return TypeRef(found)

    def _integer(self, cursor: Cursor) -> Integer:
        kind = self._type(cursor)
        if not isinstance(kind, Scalar) or kind.is_float:
            raise cursor.error("failed to read valid IntegerType for IntegerAttr")
        return Integer(kind, int(_bool(cursor)) if kind == I1 else _unsigned(cursor, kind.width))

    def _float(self, cursor: Cursor) -> Float:
        kind = self._type(cursor)
        if not isinstance(kind, Scalar) or not kind.is_float:
            raise cursor.error("failed to read valid FloatType for FloatAttr")
        start = cursor.pos
        if kind.width > 8:
            try:
                bits = cursor.svarint() & 0xFFFFFFFFFFFFFFFF
            except BytecodeError:
                raise cursor.error("failed to read signed varint for APInt (<= 64 bits).") from None
        else:
            try:
                bits = cursor.byte()
            except BytecodeError:
                raise cursor.error("failed to read byte for APInt (<= 8 bits).") from None
        if bits >> kind.width:
            raise cursor.error(f"value {bits} does not fit in {kind.width} bits")
        found = Float(kind, bits)
        written = cursor.data[start : cursor.pos]
        if len(written) > _LONGEST:  # cuTile doubles patterns of 64 bits without looking
            self.spellings.append((found, written))
        return found

    def _array(self, cursor: Cursor, _: Type | None = None) -> tuple[Attr, ...]:
        try:
            count = cursor.varint(UINT32_LIMIT)
        except BytecodeError as error:
            raise error.within(cursor.at("failed to read size for ArrayAttr.")) from None
        items: list[Attr] = []
        for index in range(count):
            try:
                items.append(self.tagged(cursor))
            except BytecodeError as error:
                raise error.within(
                    cursor.at(f"failed to parse ArrayAttr element {index}")
                ) from None
        return tuple(items)

    def _dictionary(self, cursor: Cursor, _: Type | None = None) -> dict[str, Attr]:
        try:
            count = cursor.varint(UINT32_LIMIT)
        except BytecodeError as error:
            raise error.within(cursor.at("failed to read size for DictionaryAttr")) from None
        items: dict[str, Attr] = {}
        duplicate: str | None = None
        for index in range(count):
            try:
                key = self.strings[cursor.varint()]
            except BytecodeError as error:
                raise error.within(
                    cursor.at(f"failed to read key for DictionaryAttr element {index}")
                ) from None
            if not key:
                raise cursor.error(
                    f"invalid empty attribute name for DictionaryAttr element {index}"
                )
            if key in items:
                duplicate = key
            try:
                items[key] = self.tagged(cursor)
            except BytecodeError as error:
                raise error.within(
                    cursor.at(f"failed to parse DictionaryAttr value for key {key}")
                ) from None
        if duplicate is not None:
            raise cursor.error(
                f'failed to parse DictionaryAttr, duplicate key found: "{duplicate}"'
            )
        return items

    def hints(self, cursor: Cursor, _: Type | None = None) -> Hints:
        """Optimization hints without a tag."""
        targets = self._dictionary(cursor)
        for key, value in targets.items():
            if not isinstance(value, dict):
                raise cursor.error(
                    f"expected dictionary attribute for optimization_hints entry `{key}` "
                    f"got value={value}"
                ).within(cursor.at("failed to parse OptimizationHintsAttr"))
        return Hints(targets)

    def _predicate(self, cursor: Cursor, _: Type | None = None) -> Attr:
        try:
            found = self.tagged(cursor)
        except BytecodeError as error:
            raise error.within(
                cursor.at(
                    "failed to parse self-contained attribute for AssumePredicateAttrInterface"
                )
            ) from None
        if not isinstance(found, (DivBy, SameElements, Bounded)):
            raise cursor.error("failed to cast parsed attribute to AssumePredicateAttrInterface")
        return found


def read_enum(cursor: Cursor, values: tuple[str, ...]) -> str:
    """The mnemonic of an enum value."""
    try:
        value = cursor.varint() & 0xFFFFFFFF
    except BytecodeError:
        raise cursor.error("failed to read VarInt for enum attribute.") from None
    if value >= len(values):
        raise cursor.error(f"invalid integer value for enum type: {value}")
    return values[value]


def _bool(cursor: Cursor, _: Type | None = None) -> bool:
    try:
        return cursor.byte() != 0
    except BytecodeError:
        raise cursor.error("failed to read byte for inline bool (i1)") from None


def _unsigned(cursor: Cursor, width: int) -> int:
    try:
        value = cursor.varint()
    except BytecodeError:
        raise cursor.error(f"failed to read VarInt for inline integer (width={width})") from None
    if value >> width:
        raise cursor.error(f"value {value} does not fit in {width} bits")
    return value


def _signed(width: int) -> Callable[[Attributes, Cursor, Type | None], int]:
    def read(_: Attributes, cursor: Cursor, __: Type | None) -> int:
        value = _unsigned(cursor, width)
        return value - (1 << width) if value >> (width - 1) else value

    return read


def _ints(cursor: Cursor, width: int) -> tuple[int, ...]:
    try:
        values = cursor.int_list(width)
    except BytecodeError as error:
        raise error.within(
            cursor.at(f"failed to read DenseI{width * 8}ArrayAttr values.")
        ) from None
    limits = {_LIMITS[width], ~_LIMITS[width]}
    if not limits.isdisjoint(values):
        value = next(v for v in values if v in limits)
        raise cursor.error(f"array contains unsupported value {value}")
    return values


def _bools(_: Attributes, cursor: Cursor, __: Type | None) -> tuple[bool, ...]:
    try:
        return tuple(v != 0 for v in cursor.int_list(1))
    except BytecodeError as error:
        raise error.within(cursor.at("failed to read DenseBoolArrayAttr values.")) from None


def _div_by(_: Attributes, cursor: Cursor) -> DivBy:
    divisor = _field(cursor.varint, cursor, "failed to read divisor for DivByAttr")
    flags = _presence(cursor, "DivByAttr")
    text = "failed to read value for '{}' in DivByAttr"
    every = _field(cursor.svarint, cursor, text.format("every")) if flags & 1 else None
    along = _field(cursor.svarint, cursor, text.format("along")) if flags & 2 else None
    return DivBy(divisor, every, along)


def _bounded(_: Attributes, cursor: Cursor) -> Bounded:
    flags = _presence(cursor, "BoundedAttr")
    text = "failed to read {} bound for BoundedAttr"
    lower = _field(cursor.svarint, cursor, text.format("lower")) if flags & 1 else None
    upper = _field(cursor.svarint, cursor, text.format("upper")) if flags & 2 else None
    return Bounded(lower, upper)


def _presence(cursor: Cursor, kind: str) -> int:
    flags = _field(cursor.byte, cursor, f"failed to read flags byte for {kind}")
    if flags > 3:
        raise cursor.error("unused bits set in optional parameter flags")
    return flags


def _same_elements(_: Attributes, cursor: Cursor) -> SameElements:
    try:
        return SameElements(_ints(cursor, 8))
    except BytecodeError as error:
        raise error.within(
            cursor.at("failed to read DenseI64ArrayAttr for SameElementsAttr")
        ) from None


def _multimem_reduction(attributes: Attributes, cursor: Cursor) -> MultimemReduction:
    version = attributes.types.version
    if version < V13_5:
        raise BytecodeError(
            "attribute 'MultimemReductionKindAttr' requires bytecode version 13.5+, targeting "
            f"{version_text(version)}"
        )
    value = _field(cursor.varint, cursor, "failed to read VarInt for enum attribute.")
    value &= 0xFFFFFFFF
    if value >= len(REDUCTION):
        raise cursor.error(f"invalid enum value for value: {value}")
    return MultimemReduction(REDUCTION[value])


def _field(read: Callable[[], int], cursor: Cursor, message: str) -> int:
    try:
        return read()
    except BytecodeError:
        raise cursor.error(message) from None


_INLINE: dict[str, Callable[[Attributes, Cursor, Type | None], Attr]] = {
    "i32": _signed(32),
    "i64": _signed(64),
    "bool": lambda _, cursor, __: _bool(cursor),
    "str": Attributes._string,
    "symbol": Attributes._symbol,
    "dense": Attributes._dense_inline,
    "i32_array": lambda _, cursor, __: _ints(cursor, 4),
    "bool_array": _bools,
    "array": Attributes._array,
    "hints": Attributes.hints,
    "predicate": Attributes._predicate,
    "type": Attributes._type_ref,
}

_TAGGED: dict[int, Callable[[Attributes, Cursor], Attr]] = {
    INTEGER: Attributes._integer,
    FLOAT: Attributes._float,
    BOOL: lambda _, cursor: _bool(cursor),
    TYPE: Attributes._type_ref,
    STRING: Attributes._string,
    ARRAY: Attributes._array,
    DENSE: Attributes._dense_tagged,
    DIV_BY: _div_by,
    SAME_ELEMENTS: _same_elements,
    DICTIONARY: Attributes._dictionary,
    HINTS: Attributes.hints,
    BOUNDED: _bounded,
    MULTIMEM_REDUCTION: _multimem_reduction,
}

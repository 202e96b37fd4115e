"""Types: a table of records that refer to each other by index, decoded when asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tile_cudatile.bytecode.tables import read_offsets
from tile_cudatile.bytecode.wire import UINT32_LIMIT, Cursor
from tile_cudatile.errors import BytecodeError
from tile_cudatile.types import (
    BF16,
    F4E2M1FN,
    F8E4M3FN,
    F8E5M2,
    F8E5M3FNU,
    F8E8M0FNU,
    F16,
    F32,
    F64,
    I1,
    I4,
    I8,
    I16,
    I32,
    I64,
    PADDING_VALUES,
    POINTER_KINDS,
    TF32,
    TOKEN,
    Function,
    GatherScatterView,
    PartitionView,
    Pointer,
    Scalar,
    StridedView,
    TensorView,
    Tile,
    Type,
)
from tile_cudatile.versions import V13_3, V13_4, Version, version_text

T = TypeVar("T", bound=Type)
DYNAMIC = -(1 << 63)

SCALAR_TAGS: dict[int, Scalar] = {
    0: I1,
    1: I8,
    2: I16,
    3: I32,
    4: I64,
    5: F16,
    6: BF16,
    7: F32,
    8: TF32,
    9: F64,
    10: F8E4M3FN,
    11: F8E5M2,
    18: F8E8M0FNU,
    19: F4E2M1FN,
    22: I4,
    130: F8E5M3FNU,
}
POINTER, TILE, TENSOR_VIEW, PARTITION_VIEW, FUNCTION, TOKEN_TAG = 12, 13, 14, 15, 16, 17
GATHER_SCATTER_VIEW, STRIDED_VIEW = 20, 21

#: First version of the composite types that came later.
_SINCE = {GATHER_SCATTER_VIEW: V13_3, STRIDED_VIEW: V13_3}
_NAMES = {GATHER_SCATTER_VIEW: "GatherScatterView", STRIDED_VIEW: "StridedView"}
_MAX_DEPTH = 64  # real types nest four deep


class Types:
    """The type table. `check` is called with every decoded type and may raise."""

    def __init__(
        self, payload: Cursor | None, version: Version, check: Callable[[Type], None]
    ) -> None:
        self.version = version
        self._check = check
        self._offsets: Sequence[int] = ()
        self._records: Cursor | None = None
        self._busy: set[int] = set()
        if payload is not None:
            count = payload.varint()
            if count:
                self._offsets = read_offsets(payload, count, 4, "types")
                self._records = payload
        self._cache: list[Type | None] = [None] * len(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)

    def __getitem__(self, index: int) -> Type:
        """Type number `index`; raises `BytecodeError`, without a line if there is no such type."""
        if index >= len(self._cache):
            raise BytecodeError()
        found = self._cache[index]
        if found is None:
            found = self._cache[index] = self._decode(index)
        return found

    def decodable(self) -> tuple[Type, ...]:
        """The types up to the first that is broken (a broken one may go unnoticed if unused)."""
        found: list[Type] = []
        for index in range(len(self)):
            try:
                found.append(self[index])
            except BytecodeError:
                break
        return tuple(found)

    def read(self, cursor: Cursor) -> Type:
        """The type whose index comes next in `cursor`."""
        return self[cursor.varint()]

    def _decode(self, index: int) -> Type:
        if index in self._busy or len(self._busy) > _MAX_DEPTH or self._records is None:
            raise BytecodeError()
        records = self._records
        size = records.end - records.pos
        start = self._offsets[index]
        end = self._offsets[index + 1] if index + 1 < len(self._offsets) else size
        if end < start or end > size:
            raise BytecodeError()
        self._busy.add(index)
        try:
            cursor = Cursor(records.data, records.pos + start, records.pos + end)
            tag = cursor.varint() & 0xFF
            # Offsets in messages count from behind the tag.
            body = Cursor(records.data, cursor.pos, cursor.end)
            decoded = self._body(tag, body)
            self._check(decoded)
            return decoded
        finally:
            self._busy.discard(index)

    def _body(self, tag: int, cursor: Cursor) -> Type:
        scalar = SCALAR_TAGS.get(tag)
        if scalar is not None:
            self._require(scalar.name, scalar.since)
            return scalar
        if tag == TOKEN_TAG:
            return TOKEN
        decoder = _DECODERS.get(tag)
        if decoder is None:
            raise BytecodeError(f"unknown type tag: {tag}")
        if tag in _SINCE:
            self._require(_NAMES[tag], _SINCE[tag])
        return decoder(self, cursor)

    def _require(self, name: str, since: Version) -> None:
        if self.version < since:
            raise BytecodeError(
                f"type '{name}' requires bytecode version {version_text(since)}+, "
                f"file version is {version_text(self.version)}"
            )

    def _flags(self, cursor: Cursor, since: Version = V13_3) -> int | None:
        """The bits of optional parameters; None in files older than `since`."""
        if self.version < since:
            return None
        try:
            flags = cursor.varint()
        except BytecodeError:
            raise cursor.error("failed to read optional parameter flags") from None
        if flags > 1:
            raise cursor.error("unused bits set in optional parameter flags")
        return flags

    def _type(self, cursor: Cursor, name: str, kind: type[T] | tuple[type[T], ...]) -> T:
        try:
            found = self.read(cursor)
        except BytecodeError as error:
            raise error.within(cursor.at(f"failed to get {name} type")) from None
        if not isinstance(found, kind):
            raise cursor.error(f"unexpected {name} type {found}")
        return found

    def _ints(self, cursor: Cursor, name: str, width: int) -> tuple[int, ...]:
        try:
            return cursor.int_list(width)
        except BytecodeError as error:
            raise error.within(cursor.at(f"failed to read {name} data")) from None

    def _enum(self, cursor: Cursor, name: str, values: tuple[str, ...]) -> str:
        try:
            value = cursor.varint() & 0xFFFFFFFF
        except BytecodeError:
            raise cursor.error("failed to read VarInt for enum attribute.") from None
        if value >= len(values):
            raise cursor.error(f"invalid integer value for enum type: {value}")
        return values[value]

    def _padding(self, cursor: Cursor, flags: int | None) -> str | None:
        """The padding value of a view, whose presence old files give right before it."""
        if flags is None:
            flags = int(cursor.byte() != 0)
        return self._enum(cursor, "padding_value", PADDING_VALUES) if flags & 1 else None

    def pointer(self, cursor: Cursor) -> Pointer:
        flags = self._flags(cursor, V13_4)
        pointee = self._type(cursor, "pointeeType", Scalar)
        kind = self._enum(cursor, "ptrAttr", POINTER_KINDS) if flags and flags & 1 else None
        return Pointer(pointee, kind)

    def tile(self, cursor: Cursor) -> Tile:
        element = self._type(cursor, "elementType", (Scalar, Pointer))
        return Tile(self._ints(cursor, "shape", 8), element)

    def tensor_view(self, cursor: Cursor) -> TensorView:
        flags = self._flags(cursor, V13_4)
        element = self._type(cursor, "elementType", Scalar)
        shape = _dynamic(self._ints(cursor, "shape", 8))
        strides = _dynamic(self._ints(cursor, "strides", 8))
        kind = self._enum(cursor, "ptrAttr", POINTER_KINDS) if flags and flags & 1 else None
        return TensorView(element, shape, strides, kind)

    def partition_view(self, cursor: Cursor) -> PartitionView:
        flags = self._flags(cursor)
        tile = self._ints(cursor, "tile_shape", 4)
        view = self._type(cursor, "tensor_view", TensorView)
        dim_map = self._ints(cursor, "dim_map", 4)
        return PartitionView(tile, view, dim_map, self._padding(cursor, flags))

    def strided_view(self, cursor: Cursor) -> StridedView:
        flags = self._flags(cursor)
        tile = self._ints(cursor, "tile_shape", 4)
        steps = self._ints(cursor, "traversal_strides", 4)
        view = self._type(cursor, "tensor_view", TensorView)
        dim_map = self._ints(cursor, "dim_map", 4)
        return StridedView(tile, steps, view, dim_map, self._padding(cursor, flags))

    def gather_scatter_view(self, cursor: Cursor) -> GatherScatterView:
        flags = self._flags(cursor)
        tile = self._ints(cursor, "tile_shape", 4)
        view = self._type(cursor, "tensor_view", TensorView)
        try:
            sparse = cursor.varint()
        except BytecodeError:
            raise cursor.error("failed to read sparse_dim") from None
        if sparse > 0xFFFFFFFF:
            raise cursor.error(f"sparse_dim value {sparse} exceeds uint32_t range")
        return GatherScatterView(tile, view, sparse, self._padding(cursor, flags))

    def function(self, cursor: Cursor) -> Function:
        inputs = self._list(cursor, "parameters", "parameter")
        return Function(inputs, self._list(cursor, "results", "result"))

    def _list(self, cursor: Cursor, plural: str, singular: str) -> tuple[Type, ...]:
        try:
            count = cursor.varint(UINT32_LIMIT)
        except BytecodeError as error:
            raise error.within(cursor.at(f"failed to read number of {plural}")) from None
        found: list[Type] = []
        for _ in range(count):
            try:
                found.append(self.read(cursor))
            except BytecodeError as error:
                raise error.within(cursor.at(f"failed to get {singular} type")) from None
        return tuple(found)


_DECODERS: dict[int, Callable[[Types, Cursor], Type]] = {
    POINTER: Types.pointer,
    TILE: Types.tile,
    TENSOR_VIEW: Types.tensor_view,
    PARTITION_VIEW: Types.partition_view,
    FUNCTION: Types.function,
    GATHER_SCATTER_VIEW: Types.gather_scatter_view,
    STRIDED_VIEW: Types.strided_view,
}


def _dynamic(extents: tuple[int, ...]) -> tuple[int | None, ...]:
    return tuple(None if e == DYNAMIC else e for e in extents)

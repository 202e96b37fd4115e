"""Writing types, attributes and operation records."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from tile_core.diagnostics import InputError
from tile_cudatile import attrs as a
from tile_cudatile import locations as loc
from tile_cudatile import types as t
from tile_cudatile.bytecode import attributes as tags
from tile_cudatile.bytecode import typetable as type_tags
from tile_cudatile.bytecode.tables import Layout
from tile_cudatile.bytecode.wire import encode_int_list, encode_svarint, encode_varint
from tile_cudatile.ops.enums import REDUCTION
from tile_cudatile.ops.spec import AttrSpec
from tile_cudatile.versions import V13_3, V13_4, V13_5, Version, version_text

K = TypeVar("K")
_SCALAR_TAGS = {scalar: tag for tag, scalar in type_tags.SCALAR_TAGS.items()}


class Table(Generic[K]):
    """Numbers things in the order of their first use, after those that are given."""

    def __init__(self, given: Iterable[K] = ()) -> None:
        self.items: list[K] = list(given)
        self._index: dict[K, int] = {}
        for index, item in enumerate(self.items):
            self._index.setdefault(item, index)

    def __getitem__(self, item: K) -> int:
        found = self._index.get(item)
        if found is None:
            found = self._index[item] = len(self.items)
            self.items.append(item)
        return found


def too_old(what: str, since: Version, version: Version) -> InputError:
    """The error that `version` cannot hold something."""
    return InputError(
        f"{what} requires bytecode version {version_text(since)}+, "
        f"but targeting {version_text(version)}"
    )


class TypeTable:
    """The type section under construction."""

    def __init__(self, version: Version, given: Iterable[t.Type]) -> None:
        self._version = version
        self.table: Table[t.Type] = Table(given)
        self._known: dict[int, tuple[t.Type, int]] = {}

    def __getitem__(self, type_: t.Type) -> int:
        known = self._known.get(id(type_))
        if known is None:
            for part in _parts(type_):
                self[part]  # parts come first
            known = self._known[id(type_)] = (type_, self.table[type_])
        return known[1]

    def records(self) -> list[bytes]:
        """The encoded types."""
        return [self._encode(type_) for type_ in self.table.items]

    def _encode(self, type_: t.Type) -> bytes:
        if isinstance(type_, t.Scalar):
            self.require(f"type '{type_.name}'", type_.since)
            return encode_varint(_SCALAR_TAGS[type_])
        return _TYPE_ENCODERS[type(type_)](self, type_)

    def require(self, what: str, since: Version) -> None:
        if self._version < since:
            raise too_old(what, since, self._version)

    def _index(self, type_: t.Type) -> bytes:
        return encode_varint(self[type_])

    def _kind(self, kind: str | None) -> tuple[bytes, bytes]:
        """Flags before and the kind behind the other parameters."""
        if self._version < V13_4:
            if kind is not None:
                self.require("parameter 'ptrAttr'", V13_4)
            return b"", b""
        if kind is None:
            return b"\0", b""
        return b"\1", encode_varint(t.POINTER_KINDS.index(kind))

    def _padding(self, padding: str | None) -> tuple[bytes, bytes]:
        number = b"" if padding is None else encode_varint(t.PADDING_VALUES.index(padding))
        present = encode_varint(int(padding is not None))
        return (b"", present + number) if self._version < V13_3 else (present, number)

    def _pointer(self, type_: t.Pointer) -> bytes:
        flags, kind = self._kind(type_.kind)
        return encode_varint(type_tags.POINTER) + flags + self._index(type_.pointee) + kind

    def _tile(self, type_: t.Tile) -> bytes:
        head = encode_varint(type_tags.TILE) + self._index(type_.element)
        return head + encode_int_list(type_.shape, 8)

    def _tensor_view(self, type_: t.TensorView) -> bytes:
        flags, kind = self._kind(type_.kind)
        head = encode_varint(type_tags.TENSOR_VIEW) + flags + self._index(type_.element)
        return head + _extents(type_.shape) + _extents(type_.strides) + kind

    def _partition_view(self, type_: t.PartitionView) -> bytes:
        flags, padding = self._padding(type_.padding)
        head = encode_varint(type_tags.PARTITION_VIEW) + flags
        view = self._index(type_.tensor_view)
        tile, dims = (encode_int_list(v, 4) for v in (type_.tile_shape, type_.dim_map))
        return head + tile + view + dims + padding

    def _strided_view(self, type_: t.StridedView) -> bytes:
        self.require("type 'StridedView'", V13_3)
        flags, padding = self._padding(type_.padding)
        head = encode_varint(type_tags.STRIDED_VIEW) + flags
        tile, steps, dims = (
            encode_int_list(v, 4)
            for v in (type_.tile_shape, type_.traversal_strides, type_.dim_map)
        )
        return head + tile + steps + self._index(type_.tensor_view) + dims + padding

    def _gather_scatter_view(self, type_: t.GatherScatterView) -> bytes:
        self.require("type 'GatherScatterView'", V13_3)
        flags, padding = self._padding(type_.padding)
        head = encode_varint(type_tags.GATHER_SCATTER_VIEW) + flags
        tile, view = encode_int_list(type_.tile_shape, 4), self._index(type_.tensor_view)
        return head + tile + view + encode_varint(type_.sparse_dim) + padding

    def _function(self, type_: t.Function) -> bytes:
        encoded = encode_varint(type_tags.FUNCTION)
        for types in (type_.inputs, type_.results):
            encoded += encode_varint(len(types)) + b"".join(map(self._index, types))
        return encoded


_TYPE_ENCODERS: dict[type, Callable[[TypeTable, Any], bytes]] = {
    t.Pointer: TypeTable._pointer,
    t.Tile: TypeTable._tile,
    t.TensorView: TypeTable._tensor_view,
    t.PartitionView: TypeTable._partition_view,
    t.StridedView: TypeTable._strided_view,
    t.GatherScatterView: TypeTable._gather_scatter_view,
    t.Function: TypeTable._function,
    t.Token: lambda _, __: encode_varint(type_tags.TOKEN_TAG),
}


def _parts(type_: t.Type) -> tuple[t.Type, ...]:
    """The types that a type's record refers to, in record order."""
    if isinstance(type_, t.Pointer):
        return (type_.pointee,)
    if isinstance(type_, (t.Tile, t.TensorView)):
        return (type_.element,)
    if isinstance(type_, (t.PartitionView, t.StridedView, t.GatherScatterView)):
        return (type_.tensor_view,)
    if isinstance(type_, t.Function):
        return (*type_.inputs, *type_.results)
    return ()


def _extents(values: tuple[int | None, ...]) -> bytes:
    return encode_int_list(tuple(type_tags.DYNAMIC if v is None else v for v in values), 8)


class DebugTable:
    """The records of the debug section under construction."""

    def __init__(
        self, version: Version, strings: Table[bytes], given: Iterable[loc.DebugRecord | None]
    ) -> None:
        self._version = version
        self._strings = strings
        # A broken record keeps its place, as one that stands for nothing.
        self.table: Table[loc.DebugRecord] = Table(
            loc.UNKNOWN if record is None else record for record in given
        )
        self._known: dict[int, tuple[loc.DebugRecord, int]] = {}

    def __getitem__(self, record: loc.DebugRecord) -> int:
        """The record's number from 1; 0 for the unknown location."""
        if isinstance(record, loc.Unknown):
            return 0
        known = self._known.get(id(record))
        if known is None:
            for part in _debug_parts(record):
                self[part]  # parts come first
            known = self._known[id(record)] = (record, self.table[record] + 1)
        return known[1]

    def records(self) -> list[bytes]:
        """The encoded records."""
        return [_DEBUG_ENCODERS[type(record)](self, record) for record in self.table.items]

    def _encode(self, tag: int, *fields: loc.DebugRecord | str | int) -> bytes:
        encoded = [encode_varint(tag)]
        for field in fields:
            if isinstance(field, str):
                number = self._strings[field.encode("utf-8", "surrogateescape")]
            elif isinstance(field, int):
                number = field
            else:
                number = self[field]
            encoded.append(encode_varint(number))
        return b"".join(encoded)

    def _subprogram(self, r: loc.Subprogram) -> bytes:
        fields = (r.file, r.line, r.name, r.linkage_name, r.compile_unit, r.scope_line)
        return self._encode(5, *fields, *((r.flags,) if self._version >= V13_5 else ()))

    def _plain(self, record: loc.FileLine) -> bytes:
        raise InputError("a location without debug scope has no place in bytecode")


_DEBUG_ENCODERS: dict[type, Callable[[DebugTable, Any], bytes]] = {
    loc.Unknown: lambda table, r: table._encode(0),
    loc.CompileUnit: lambda table, r: table._encode(1, r.file),
    loc.File: lambda table, r: table._encode(2, r.name, r.directory),
    loc.LexicalBlock: lambda table, r: table._encode(3, r.scope, r.file, r.line, r.column),
    loc.DebugLoc: lambda table, r: table._encode(4, r.scope, r.filename, r.line, r.column),
    loc.Subprogram: DebugTable._subprogram,
    loc.CallSite: lambda table, r: table._encode(6, r.callee, r.caller),
    loc.FileLine: DebugTable._plain,
}


def _debug_parts(record: loc.DebugRecord) -> tuple[loc.DebugRecord, ...]:
    if isinstance(record, loc.CompileUnit):
        return (record.file,)
    if isinstance(record, loc.LexicalBlock):
        return (record.scope, record.file)
    if isinstance(record, loc.DebugLoc):
        return (record.scope,)
    if isinstance(record, loc.Subprogram):
        return (record.file, record.compile_unit)
    return (record.callee, record.caller) if isinstance(record, loc.CallSite) else ()


class AttributeWriter:
    """Encodes attributes; fills the tables that they refer to."""

    def __init__(
        self,
        strings: Table[bytes],
        types: TypeTable,
        constants: Table[bytes],
        layout: Layout,
    ) -> None:
        self._strings = strings
        self._types = types
        self._constants = constants
        # By identity: a file may hold equal constants, or spell equal numbers, in several ways.
        self._constant_objects = {id(dense): index for dense, index in layout.constant_index}
        self._spellings = {id(number): code for number, code in layout.spellings}
        self._constant_index: dict[a.Dense, int] = {}

    def inline(self, spec: AttrSpec, value: Any) -> bytes:
        """The payload of an operation's own attribute."""
        kind = spec.kind
        if kind == "enum":
            return encode_varint(spec.values.index(value))
        if kind in ("i32", "i64"):
            return encode_varint(value & ((1 << (32 if kind == "i32" else 64)) - 1))
        if kind == "bool":
            return bytes((bool(value),))
        if kind in ("str", "symbol"):
            return self.string(value)
        if kind == "dense":
            return self.constant(value)
        if kind == "i32_array":
            return encode_int_list(value, 4)
        if kind == "bool_array":
            return encode_int_list(tuple(map(int, value)), 1)
        encoded = self.tagged(value)
        # Without the tag, except for predicates, whose class the operation does not fix.
        return encoded if kind == "predicate" else encoded[1:]

    def string(self, value: str) -> bytes:
        """The number of a string."""
        return encode_varint(self._strings[value.encode("utf-8", "surrogateescape")])

    def constant(self, value: a.Dense) -> bytes:
        """The number of a constant."""
        index = self._constant_objects.get(id(value))
        if index is None:
            index = self._constant_index.get(value)
        if index is None:
            index = self._constants[encode_varint(len(value.data)) + value.data]
            self._constant_index[value] = index
        return encode_varint(index)

    def tagged(self, value: a.Attr) -> bytes:
        """A self-contained attribute."""
        tag, encode = _ATTRIBUTES[type(value)]
        return encode_varint(tag) + encode(self, value)

    def _integer(self, value: a.Integer) -> bytes:
        head = encode_varint(self._types[value.type])
        return head + (bytes((value.bits,)) if value.type == t.I1 else encode_varint(value.bits))

    def _float(self, value: a.Float) -> bytes:
        head = encode_varint(self._types[value.type])
        if id(value) in self._spellings:
            return head + self._spellings[id(value)]
        if value.type.width <= 8:
            return head + bytes((value.bits,))
        signed = struct.unpack("<q", struct.pack("<Q", value.bits))[0]
        return head + encode_svarint(signed)

    def _array(self, values: tuple[a.Attr, ...]) -> bytes:
        return encode_varint(len(values)) + b"".join(map(self.tagged, values))

    def _dictionary(self, values: dict[str, a.Attr]) -> bytes:
        items = (self.string(key) + self.tagged(value) for key, value in values.items())
        return encode_varint(len(values)) + b"".join(items)

    def _multimem_reduction(self, value: a.MultimemReduction) -> bytes:
        self._types.require("attribute 'MultimemReductionKindAttr'", V13_5)
        return encode_varint(REDUCTION.index(value.kind))

    def _dense(self, value: a.Dense) -> bytes:
        return encode_varint(self._types[value.type]) + self.constant(value)


def _optional(*values: int | None) -> bytes:
    flags = sum(1 << i for i, value in enumerate(values) if value is not None)
    return bytes((flags,)) + b"".join(encode_svarint(v) for v in values if v is not None)


_ATTRIBUTES: dict[type, tuple[int, Callable[[AttributeWriter, Any], bytes]]] = {
    a.Integer: (tags.INTEGER, AttributeWriter._integer),
    a.Float: (tags.FLOAT, AttributeWriter._float),
    bool: (tags.BOOL, lambda w, v: bytes((v,))),
    a.TypeRef: (tags.TYPE, lambda w, v: encode_varint(w._types[v.type])),
    str: (tags.STRING, AttributeWriter.string),
    tuple: (tags.ARRAY, AttributeWriter._array),
    a.Dense: (tags.DENSE, AttributeWriter._dense),
    a.DivBy: (tags.DIV_BY, lambda w, v: encode_varint(v.divisor) + _optional(v.every, v.along)),
    a.SameElements: (tags.SAME_ELEMENTS, lambda w, v: encode_int_list(v.values, 8)),
    dict: (tags.DICTIONARY, AttributeWriter._dictionary),
    a.Hints: (tags.HINTS, lambda w, v: w._dictionary(v.targets)),
    a.Bounded: (tags.BOUNDED, lambda w, v: _optional(v.lb, v.ub)),
    a.MultimemReduction: (tags.MULTIMEM_REDUCTION, AttributeWriter._multimem_reduction),
}

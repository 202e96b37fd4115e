"""The quick way through operation records whose beginnings were seen before in the same file.

The head of a record is everything before its operands: opcode, result types, flags, attributes.
It says itself where it ends, so equal bytes are equal heads, and need to be decoded only once.
What follows is decoded here without regard to errors: whoever calls decodes anything odd again,
in the careful way, which has the words for what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tile_cudatile.attrs import Attr
from tile_cudatile.ops.spec import OpSpec
from tile_cudatile.tree import Group, Op, Value
from tile_cudatile.types import Type
from tile_cudatile.versions import Version

_MAX_SIZE = 64  # bytes of a head that is remembered
_MAX_SIZES = 4  # of heads with one first byte, so that no file makes looking them up expensive

#: The types of all operands, by identity, in groups: what the rules of an operation look at, its
#: head being known.
Key: TypeAlias = tuple[object, ...]
#: From the bytes, a position in them and the values so far: operands, their key, the end.
Operands: TypeAlias = Callable[[bytes, int, list[Value]], tuple[tuple[Group, ...], Key, int]]


class Head:
    """A decoded head, and with operands of which types it has occurred."""

    __slots__ = ("attrs", "inbounds", "keys", "newer", "operands", "spec", "types")

    def __init__(
        self, op: Op, types: Sequence[Type], operands: Operands, inbounds: int | None
    ) -> None:
        self.spec = op.spec
        self.types = tuple(types)
        self.newer = len(op.results) - len(types)  # tokens that the file does not have yet
        self.attrs = op.attrs.copy()
        self.operands = operands
        self.inbounds = inbounds  # the group whose size an attribute newer than the file has
        self.keys: set[Key] = set()

    def attributes(self, operands: tuple[Group, ...]) -> dict[str, Attr]:
        """The attributes of a record with these operands."""
        attrs = self.attrs.copy()
        if self.inbounds is not None:
            group = operands[self.inbounds]
            assert isinstance(group, tuple)
            attrs["inbounds"] = (False,) * len(group)
        return attrs


class Heads:
    """The heads of a file by their bytes."""

    def __init__(self) -> None:
        self._known: dict[bytes, Head] = {}
        self._sizes: dict[int, list[int]] = {}  # first byte -> sizes of the heads known

    def find(self, data: bytes, pos: int) -> tuple[Head | None, int]:
        """The head at `pos`, if it is known, and where it ends."""
        for size in self._sizes.get(data[pos], ()):
            head = self._known.get(data[pos : pos + size])
            if head is not None:
                return head, pos + size
        return None, pos

    def add(self, code: bytes, head: Head) -> None:
        """Remembers a head, if it is not unusual."""
        sizes = self._sizes.setdefault(code[0], [])
        if len(code) not in sizes:
            if len(code) > _MAX_SIZE or len(sizes) == _MAX_SIZES:
                return
            sizes.append(len(code))
        self._known[code] = head


def _index(data: bytes, pos: int) -> tuple[int, int]:
    """A varint of any length, and where it ends."""
    value = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, pos
        shift += 7
        if shift > 63:
            raise IndexError


def _count(data: bytes, pos: int) -> tuple[int, int]:
    """A number of operands, of which each takes a byte or more."""
    count, pos = _index(data, pos)
    if count > len(data) - pos:
        raise IndexError
    return count, pos


def _one(data: bytes, pos: int, values: list[Value]) -> tuple[tuple[Group, ...], Key, int]:
    first = data[pos]
    pos += 1
    if first > 127:
        first, pos = _index(data, pos - 1)
    value = values[first]
    return (value,), (id(value.type),), pos


def _two(data: bytes, pos: int, values: list[Value]) -> tuple[tuple[Group, ...], Key, int]:
    first = data[pos]
    pos += 1
    if first > 127:
        first, pos = _index(data, pos - 1)
    second = data[pos]
    pos += 1
    if second > 127:
        second, pos = _index(data, pos - 1)
    left, right = values[first], values[second]
    return (left, right), (id(left.type), id(right.type)), pos


def _some(data: bytes, pos: int, values: list[Value], count: int) -> tuple[list[Value], int]:
    found: list[Value] = []
    for _ in range(count):
        index = data[pos]
        pos += 1
        if index > 127:
            index, pos = _index(data, pos - 1)
        found.append(values[index])
    return found, pos


def _fixed(count: int) -> Operands:
    def read(data: bytes, pos: int, values: list[Value]) -> tuple[tuple[Group, ...], Key, int]:
        found, pos = _some(data, pos, values, count)
        return tuple(found), tuple([id(v.type) for v in found]), pos

    return {1: _one, 2: _two}.get(count, read)


def _counted(spec: OpSpec) -> Operands:
    """One count of all operands, of which the last group takes what the others leave."""
    leading = len(spec.operands) - 1

    def read(data: bytes, pos: int, values: list[Value]) -> tuple[tuple[Group, ...], Key, int]:
        count, pos = _count(data, pos)
        if count < leading:
            raise IndexError
        found, pos = _some(data, pos, values, count)
        return (
            (*found[:leading], tuple(found[leading:])),
            tuple([id(v.type) for v in found]),
            pos,
        )

    return read


def _segmented(op: Op) -> Operands:
    """Groups one by one; the flags, a part of the head, tell which optional ones there are."""
    layout = [
        None if group is None else -1 if isinstance(group, tuple) else 1 for group in op.operands
    ]

    def read(data: bytes, pos: int, values: list[Value]) -> tuple[tuple[Group, ...], Key, int]:
        groups: list[Group] = []
        key: list[object] = []
        for size in layout:
            if size is None:
                groups.append(None)
                continue
            count = 1
            if size < 0:
                count, pos = _count(data, pos)
                key.append(-count)  # no address
            found, pos = _some(data, pos, values, count)
            groups.append(found[0] if size > 0 else tuple(found))
            key += [id(v.type) for v in found]
        return tuple(groups), tuple(key), pos

    return read


def head_of(op: Op, version: Version, types: Sequence[Type]) -> Head | None:
    """The head of an operation that was read, if records like it can be read the quick way.

    `types` are the result types in the record.
    """
    spec = op.spec
    if spec.regions:
        return None
    lacks = any(a.name == "inbounds" and (a.since or spec.since) > version for a in spec.attrs)
    inbounds = spec.operand_index["index"] if lacks else None
    if spec.segmented:
        return Head(op, types, _segmented(op), inbounds)
    if not spec.variable:
        return Head(op, types, _fixed(len(spec.operands)), inbounds)
    if spec.operands[-1].arity == "variadic":
        return Head(op, types, _counted(spec), inbounds)
    return None

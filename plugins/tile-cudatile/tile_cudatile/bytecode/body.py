"""Operation records, decoded by plans that are made from the operation tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from tile_cudatile.attrs import Attr
from tile_cudatile.bytecode.attributes import Attributes
from tile_cudatile.bytecode.debug import Locations
from tile_cudatile.bytecode.heads import Heads, head_of
from tile_cudatile.bytecode.wire import UINT32_LIMIT, Cursor
from tile_cudatile.errors import BytecodeError
from tile_cudatile.locations import Location
from tile_cudatile.ops import BODY_OPS
from tile_cudatile.ops.spec import AttrSpec, OpSpec
from tile_cudatile.tree import Block, Group, Op, Region, Value
from tile_cudatile.types import TOKEN, Type
from tile_cudatile.versions import Version, version_text

#: Reads a record behind its opcode: the operation, the result types in the file, and where the
#: operands start.
Plan: TypeAlias = Callable[["BodyReader", Location], tuple[Op, list[Type], int]]
_MAX_DEPTH = 100  # regions inside regions
_LAST_OPCODE = max(BODY_OPS.by_opcode)


class BodyReader:
    """Decodes the operations of one kernel."""

    def __init__(
        self,
        cursor: Cursor,
        version: Version,
        attributes: Attributes,
        locations: Locations,
        heads: Heads | None = None,
    ) -> None:
        self.cursor = cursor
        self.version = version
        self.attributes = attributes
        self.types = attributes.types
        self.values: list[Value] = []
        self._locations = locations
        self._plans = plans(version)
        self._depth = 0
        self._heads = Heads() if heads is None else heads
        #: The operations that are not like another one before: of other attributes, or types.
        self.novel: set[Op] = set()

    def body(self, arguments: tuple[Type, ...]) -> Block:
        """Operations up to the end of the bytes, in a block with `arguments`."""
        block = Block(tuple(Value(t) for t in arguments))
        self.values.extend(block.args)
        while self.cursor.pos < self.cursor.end:
            self._more(block.ops, self.cursor.remaining)
        return block

    def op(self) -> Op:
        """The next operation."""
        ops: list[Op] = []
        self._more(ops, 1)
        return ops[0]

    def _more(self, ops: list[Op], count: int) -> None:
        """Appends at least one operation, and at most `count`."""
        before = len(ops)
        self._familiar(ops, count)
        if len(ops) == before:
            ops.append(self._careful())

    def _familiar(self, ops: list[Op], count: int) -> None:
        """Appends the next operations up to one with a new head, or with anything odd about it."""
        cursor, values = self.cursor, self.values
        data, pos, end = cursor.data, cursor.pos, cursor.end
        find, locate = self._heads.find, self._locations.next
        for _ in range(count):
            if pos >= end:
                break
            head, start = find(data, pos)
            if head is None:
                break
            try:
                operands, key, after = head.operands(data, start, values)
            except IndexError:
                break
            if after > end:
                break
            loc = locate()
            if loc is None:
                cursor.pos = pos
                cursor.varint()  # the opcode
                raise cursor.error("failed to read operation location.")
            pos = after
            results = tuple([Value(t) for t in head.types])
            values += results
            if head.newer:
                results += tuple([Value(TOKEN) for _ in range(head.newer)])
            op = Op(head.spec, operands, results, head.attributes(operands), (), loc)
            if key not in head.keys:
                head.keys.add(key)
                self.novel.add(op)
            ops.append(op)
        cursor.pos = pos

    def _careful(self) -> Op:
        """The next operation, or what is wrong with it."""
        cursor = self.cursor
        start = cursor.pos
        try:
            opcode = cursor.varint() & 0xFFFFFFFF
        except BytecodeError:
            raise cursor.error("failed to read operation opcode.") from None
        plan = self._plans.get(opcode)
        if plan is None and (opcode in BODY_OPS.by_opcode or opcode > _LAST_OPCODE):
            raise cursor.error(
                f"unsupported opcode {opcode} for bytecode version {version_text(self.version)}"
            )
        loc = self._locations.next()
        if loc is None:
            raise cursor.error("failed to read operation location.")
        if plan is None:
            raise cursor.error(f"unknown or unimplemented opcode: {opcode}")
        op, types, end = plan(self, loc)
        head = head_of(op, self.version, types)
        if head is not None:
            self._heads.add(cursor.data[start:end], head)
        self.novel.add(op)
        return op

    def regions(self, spec: OpSpec) -> tuple[Region, ...]:
        """The regions of an operation."""
        cursor = self.cursor
        try:
            count = cursor.varint(UINT32_LIMIT)
        except BytecodeError as error:
            raise error.within(cursor.at("failed to read number of regions to parse.")) from None
        if count != len(spec.regions):
            raise cursor.error(
                f"cuda_tile.{spec.name} op expected {len(spec.regions)} regions, got {count}"
            )
        if self._depth >= _MAX_DEPTH:
            raise cursor.error(f"regions are nested more than {_MAX_DEPTH} deep")
        self._depth += 1
        found: list[Region] = []
        for index in range(count):
            try:
                found.append(self._region())
            except BytecodeError as error:
                raise error.within(cursor.at(f"failed to parse region {index}")) from None
        self._depth -= 1
        return tuple(found)

    def _region(self) -> Region:
        cursor = self.cursor
        try:
            count = cursor.varint()
        except BytecodeError:
            raise cursor.error("failed to read region block count") from None
        region = Region()
        for index in range(count):
            try:
                region.blocks.append(self._block())
            except BytecodeError as error:
                raise error.within(cursor.at(f"failed to parse block {index} in region.")) from None
        return region

    def _block(self) -> Block:
        cursor = self.cursor
        outer = len(self.values)
        args: list[Value] = []
        for index in range(self._count("failed to read block argument count.")):
            try:
                args.append(Value(self.types.read(cursor)))
            except BytecodeError as error:
                raise error.within(
                    cursor.at(f"failed to read block argument type: {index}")
                ) from None
        block = Block(tuple(args))
        self.values.extend(block.args)
        count = self._count("failed to read block operation count.")
        while len(block.ops) < count:
            try:
                self._more(block.ops, count - len(block.ops))
            except BytecodeError as error:
                raise error.within(
                    cursor.at(f"failed to parse operation {len(block.ops)} in block.")
                ) from None
        self._check_terminator(block)
        del self.values[outer:]
        return block

    def _count(self, message: str) -> int:
        try:
            return self.cursor.varint()
        except BytecodeError:
            raise self.cursor.error(message) from None

    def _check_terminator(self, block: Block) -> None:
        rule = "invalid block structure: block is expected to have a terminator operation, but "
        if not block.ops:
            raise self.cursor.error(f"{rule}it is empty")
        if not block.ops[-1].spec.terminator:
            raise self.cursor.error(
                f"{rule}the last operation 'cuda_tile.{block.ops[-1].name}' is not a terminator."
            )

    def result_types(self, spec: OpSpec, count: int) -> list[Type]:
        """As many result types."""
        types, cursor = self.types, self.cursor
        found: list[Type] = []
        for index in range(count):
            try:
                found.append(types[cursor.varint()])
            except BytecodeError as error:
                raise error.within(
                    cursor.at(f"failed to get result type {index} for {spec.class_name}")
                ) from None
        return found

    def value(self, position: int, segment: str = "") -> Value:
        """The operand whose index comes next."""
        cursor = self.cursor
        try:
            index = cursor.varint()
        except BytecodeError:
            where = f"for {segment} segment, element {position}" if segment else f"{position}"
            raise cursor.error(f"failed to read operand index {where}") from None
        if index >= len(self.values):
            where = f"{segment} segment, element {position}" if segment else f"operand {position}"
            raise cursor.error(
                f"operand index {index} out of bounds (size={len(self.values)}) for {where}"
            )
        return self.values[index]


@cache
def plans(version: Version) -> dict[int, Plan]:
    """Opcode -> decoder of its records, for the operations that `version` has."""
    return {
        opcode: _plan(spec, version)
        for opcode, spec in BODY_OPS.by_opcode.items()
        if spec.since <= version
    }


def _plan(spec: OpSpec, version: Version) -> Plan:
    read_results = _results_plan(spec, version)
    has_flags = spec.flags_since is not None and spec.flags_since <= version
    read_attrs = _attrs_plan(spec, version)
    read_operands = _operands_plan(spec, version)
    # Results newer than the file exist, but the file does not count them among its values.
    newer = [r for r in spec.results if r.since is not None and r.since > version]
    index_group = spec.operand_index.get("index", 0)
    lacks_inbounds = any(
        a.name == "inbounds" and (a.since or spec.since) > version for a in spec.attrs
    )

    def read(reader: BodyReader, loc: Location) -> tuple[Op, list[Type], int]:
        types = read_results(reader)
        flags = _flags(reader.cursor) if has_flags else 0
        attrs = read_attrs(reader, flags, types)
        end_of_head = reader.cursor.pos
        operands = read_operands(reader, flags)
        if lacks_inbounds:
            attrs["inbounds"] = (False,) * len(operands[index_group])  # type: ignore[arg-type]
        regions = reader.regions(spec) if spec.regions else ()
        results = [Value(t) for t in types]
        reader.values.extend(results)
        results.extend(Value(TOKEN) for _ in newer)
        op = Op(spec, operands, tuple(results), attrs, regions, loc)
        return op, types, end_of_head

    return read


def _flags(cursor: Cursor) -> int:
    try:
        return cursor.varint()
    except BytecodeError:
        raise cursor.error("failed to read flags field") from None


def _results_plan(spec: OpSpec, version: Version) -> Callable[[BodyReader], list[Type]]:
    """Reads the result types that the record holds."""
    present = [r for r in spec.results if (r.since or spec.since) <= version]
    fixed = len(present)
    if not spec.counted:
        return lambda reader: reader.result_types(spec, fixed)
    versioned = any(r.since is not None for r in spec.results)

    def read(reader: BodyReader) -> list[Type]:
        cursor = reader.cursor
        try:
            count = cursor.varint(UINT32_LIMIT)
        except BytecodeError as error:
            raise error.within(
                cursor.at(f"failed to read number of result types for {spec.class_name}")
            ) from None
        found = reader.result_types(spec, count if not versioned else min(count, fixed))
        if versioned and count != fixed:
            raise cursor.error(
                f"result count mismatch for {spec.class_name}: expected {fixed} compatible "
                f"results but got {count}"
            )
        return found

    return read


def _attrs_plan(
    spec: OpSpec, version: Version
) -> Callable[[BodyReader, int, list[Type]], dict[str, Attr]]:
    """Reads the attributes; those newer than the file take their defaults."""
    present = [a for a in spec.attrs if (a.since or spec.since) <= version]
    defaults = {a.name: a.default for a in spec.attrs if a not in present and a.default is not None}
    units = [(1 << spec.flag_bits[a.name], a.name) for a in present if a.kind == "unit"]
    inline: list[tuple[int, AttrSpec]] = [
        (1 << spec.flag_bits[a.name] if a.optional else 0, a) for a in present if a.kind != "unit"
    ]
    if not spec.attrs:
        return lambda reader, flags, types: {}

    def read(reader: BodyReader, flags: int, types: list[Type]) -> dict[str, Attr]:
        attrs = dict(defaults)
        for bit, attr in inline:
            if bit and not flags & bit:
                continue
            try:
                attrs[attr.name] = reader.attributes.inline(
                    attr, reader.cursor, types[0] if types else None
                )
            except BytecodeError as error:
                kind = "optional attribute" if bit else "attribute"
                raise error.within(
                    reader.cursor.at(f"failed to parse {kind} '{attr.name}'")
                ) from None
        for bit, name in units:
            if flags & bit:
                attrs[name] = True
        return attrs

    return read


def _operands_plan(
    spec: OpSpec, version: Version
) -> Callable[[BodyReader, int], tuple[Group, ...]]:
    """Reads the operand groups."""
    if spec.segmented:
        return _segments_plan(spec, version)
    if spec.variable:
        return _counted_plan(spec)
    if len(spec.operands) == 1:
        return lambda reader, flags: (reader.value(0),)
    if len(spec.operands) == 2:
        return lambda reader, flags: (reader.value(0), reader.value(1))
    positions = range(len(spec.operands))
    return lambda reader, flags: tuple([reader.value(i) for i in positions])


def _counted_plan(spec: OpSpec) -> Callable[[BodyReader, int], tuple[Group, ...]]:
    """One count of all operands; the last group takes what the others leave."""
    leading = len(spec.operands) - 1
    optional = spec.operands[-1].arity == "optional"

    def read(reader: BodyReader, flags: int) -> tuple[Group, ...]:
        cursor = reader.cursor
        try:
            count = cursor.varint(UINT32_LIMIT)
        except BytecodeError as error:
            raise error.within(cursor.at("failed to read operand count")) from None
        found = [reader.value(i) for i in range(count)]
        if count < leading or (optional and count > leading + 1):
            limit = f"{leading} or {leading + 1}" if optional else f"{leading} or more"
            raise BytecodeError(
                f"'cuda_tile.{spec.name}' op expected {limit} operands, but found {count}"
            )
        if optional:
            return (*found[:leading], found[leading] if count > leading else None)
        return (*found[:leading], tuple(found[leading:]))

    return read


def _segments_plan(
    spec: OpSpec, version: Version
) -> Callable[[BodyReader, int], tuple[Group, ...]]:
    """Groups one by one: optional ones by flag bit, variadic ones with a count."""
    groups: list[tuple[str, str, int]] = []
    for operand in spec.operands:
        bit = 1 << spec.flag_bits[operand.name] if operand.arity == "optional" else 0
        newer = operand.since is not None and operand.since > version
        groups.append((operand.name, "newer" if newer else operand.arity, bit))

    def read(reader: BodyReader, flags: int) -> tuple[Group, ...]:
        found: list[Group] = []
        for name, arity, bit in groups:
            if arity == "one":
                found.append(reader.value(0, name))
            elif arity == "variadic":
                count = _segment_size(reader.cursor, name, spec.name)
                found.append(tuple([reader.value(i, name) for i in range(count)]))
            else:
                found.append(reader.value(0, name) if flags & bit else None)
        return tuple(found)

    return read


def _segment_size(cursor: Cursor, name: str, operation: str) -> int:
    try:
        count = cursor.varint() & 0xFFFFFFFF
    except BytecodeError:
        raise cursor.error(
            f"failed to read actual size for variadic ODS segment '{name}' of op "
            f"'cuda_tile.{operation}'"
        ) from None
    return 0 if count >> 31 else count

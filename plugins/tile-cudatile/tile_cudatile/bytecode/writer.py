"""From a module to bytes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from tile_core.diagnostics import InputError
from tile_cudatile.bytecode.records import AttributeWriter, DebugTable, Table, TypeTable, too_old
from tile_cudatile.bytecode.sections import MAGIC, REQUIRED_ALIGNMENT, Section
from tile_cudatile.bytecode.tables import Layout
from tile_cudatile.bytecode.wire import encode_varint
from tile_cudatile.locations import Location
from tile_cudatile.ops.enums import VISIBILITY
from tile_cudatile.ops.spec import OpSpec
from tile_cudatile.tree import Entry, Module, Op, Region, Value
from tile_cudatile.versions import SUPPORTED, V13_3, V13_5, Version, version_text

PAD = b"\xcb"
_ENTRY_FLAG, _HINTS_FLAG = 2, 4

#: The order of sections in a new file.
_ORDER = (
    Section.GLOBAL,
    Section.FUNC,
    Section.CONSTANT,
    Section.DEBUG,
    Section.TYPE,
    Section.PRODUCER,
    Section.STRING,
)


def write_bytecode(module: Module, version: Version | None = None) -> bytes:
    """The bytes of `module`, in its own version unless another is given.

    A module that was read and not changed gives the same bytes again.

    Raises:
        InputError: `version` is unknown or has no place for something in the module.
    """
    return Writer(module, version or module.version).file()


class Writer:
    """Writes one file."""

    def __init__(self, module: Module, version: Version) -> None:
        if version not in SUPPORTED:
            raise InputError(f"unsupported bytecode version {version_text(version)}")
        self._module = module
        self._version = version
        self._layout = module.layout or Layout()
        self._strings: Table[bytes] = Table(self._layout.strings)
        self._types = TypeTable(version, self._layout.types)
        self._constants: Table[bytes] = Table(self._layout.constants)
        self._debug = DebugTable(version, self._strings, self._layout.debug)
        self._attributes = AttributeWriter(
            self._strings, self._types, self._constants, self._layout
        )
        self._lists: dict[int, list[int]] = {}  # debug operation -> locations

    def file(self) -> bytes:
        """The whole file."""
        payloads = {
            Section.GLOBAL: self._globals(),
            Section.FUNC: self._functions(),
            Section.CONSTANT: _offsets_table(self._constants.items, 8),
        }
        payloads[Section.DEBUG] = self._debug_section()
        payloads[Section.TYPE] = _offsets_table(self._types.records(), 4)
        if self._module.producer is not None:
            if self._version < V13_3:
                raise too_old("the producer section", V13_3, self._version)
            payloads[Section.PRODUCER] = self._attributes.string(self._module.producer)
        payloads[Section.STRING] = _offsets_table(self._strings.items, 4)
        major, minor = self._version
        out = bytearray(MAGIC)
        out += bytes((major, minor)) + self._module.tag.to_bytes(2, "little")
        for section, alignment in self._sections(payloads):
            _append_section(out, section, alignment, payloads[section])
        out.append(Section.END)
        return bytes(out)

    def _sections(self, payloads: dict[Section, bytes]) -> Iterator[tuple[Section, int]]:
        given = dict(self._layout.sections)
        for section, alignment in given.items():
            if section in payloads:
                yield section, alignment
        for section in _ORDER:
            needed = {
                Section.GLOBAL: bool(self._module.globals),
                Section.PRODUCER: self._module.producer is not None,
                Section.DEBUG: not given or any(map(any, self._lists.values())),
                Section.CONSTANT: not given or bool(self._constants.items),
            }.get(section, True)
            if section not in given and needed:
                yield section, REQUIRED_ALIGNMENT.get(section, 0)

    def _globals(self) -> bytes:
        out = bytearray(encode_varint(len(self._module.globals)))
        for item in self._module.globals:
            out += self._attributes.string(item.name)
            out += encode_varint(self._types[item.value.type])
            out += self._attributes.constant(item.value)
            out += encode_varint(item.alignment)
            if self._version >= V13_3:
                out += encode_varint(VISIBILITY.index(item.visibility))
                out += encode_varint(int(item.constant))
            elif item.constant or item.visibility != "public":
                raise too_old(f"the qualifiers of global @{item.name}", V13_3, self._version)
        return bytes(out)

    def _functions(self) -> bytes:
        out = bytearray(encode_varint(len(self._module.entries)))
        for number, entry in enumerate(self._module.entries, 1):
            self._function(out, entry, number)
        if self._module.layout is not None:
            return bytes(out + self._layout.func_tail)
        return bytes(out + PAD * (-len(out) % 8))

    def _function(self, out: bytearray, entry: Entry, number: int) -> None:
        flags = self._layout.entry_flags.get(entry.name, _ENTRY_FLAG)
        newest = self._version >= V13_5
        had_hints = flags & _HINTS_FLAG and self._module.version == self._version
        with_hints = newest or had_hints or bool(entry.hints.targets)
        flags &= ~_HINTS_FLAG
        if with_hints and not newest:
            flags |= _HINTS_FLAG
        if any(entry.arg_attrs) and not newest:
            raise too_old(f"the argument attributes of @{entry.name}", V13_5, self._version)
        debug = self._layout.entry_debug.get(entry.name, number)
        body = BodyWriter(self._version, self._attributes, self._types, self._debug)
        out += self._attributes.string(entry.name)
        out += encode_varint(self._types[entry.type])
        out.append(flags)
        out += encode_varint(debug)
        if with_hints:
            out += self._attributes.tagged(entry.hints)
        if newest:
            out += self._attributes.tagged(entry.arg_attrs)
        code = body.entry(entry)
        out += encode_varint(len(code)) + code
        if debug:
            self._lists[debug] = body.locations

    def _debug_section(self) -> bytes:
        lists = [self._lists.get(n, []) for n in range(1, max(self._lists, default=0) + 1)]
        out = bytearray(encode_varint(len(lists)))
        _pad(out, 4)
        for start in accumulate([0, *map(len, lists[:-1])]) if lists else ():
            out += start.to_bytes(4, "little")
        out += encode_varint(sum(map(len, lists)))
        _pad(out, 8)
        for index in (i for entries in lists for i in entries):
            out += index.to_bytes(8, "little")
        # The reference reader wants at least one record.
        return bytes(_append_table(out, self._debug.records() or [b"\0"], 4))


class BodyWriter:
    """Encodes the operations of one kernel."""

    def __init__(
        self, version: Version, attributes: AttributeWriter, types: TypeTable, debug: DebugTable
    ) -> None:
        self._version = version
        self._attributes = attributes
        self._types = types
        self._debug = debug
        self._numbers: dict[Value, int] = {}
        self._count = 0
        self.locations: list[int] = []

    def entry(self, entry: Entry) -> bytes:
        """The body of a kernel."""
        self._locate(entry.loc)
        block = entry.body.block
        self._number(block.args)
        out = bytearray()
        for op in block.ops:
            self._op(out, op)
        return bytes(out)

    def _locate(self, where: Location) -> None:
        self.locations.append(self._debug[where])

    def _number(self, values: tuple[Value, ...]) -> None:
        for value in values:
            self._numbers[value] = self._count
            self._count += 1

    def _op(self, out: bytearray, op: Op) -> None:
        spec = op.spec
        if spec.since > self._version:
            raise self._too_old(op, "", spec.since)
        self._locate(op.loc)
        out += encode_varint(spec.opcode)
        results = self._results(op)
        if spec.counted:
            out += encode_varint(len(results))
        for result in results:
            out += encode_varint(self._types[result.type])
        if spec.flags_since is not None and spec.flags_since <= self._version:
            out += encode_varint(self._flags(op))
        self._attrs(out, op)
        self._operands(out, op)
        if spec.regions:
            out += encode_varint(len(op.regions))
            for region in op.regions:
                self._region(out, region)
        self._number(results)

    def _too_old(self, op: Op, what: str, since: Version) -> InputError:
        return too_old(f"'cuda_tile.{op.name}' op{what}", since, self._version)

    def _results(self, op: Op) -> tuple[Value, ...]:
        """The results that the version has."""
        fixed = len(op.spec.results)
        newer = [i for i, r in enumerate(op.spec.results) if r.since and r.since > self._version]
        if not newer or len(op.results) != fixed:
            return op.results
        # Without a number, a use of such a result is found when it is written.
        return tuple(r for i, r in enumerate(op.results) if i not in newer)

    def _flags(self, op: Op) -> int:
        flags = 0
        for name, bit in op.spec.flag_bits.items():
            index = op.spec.operand_index.get(name)
            present = op.attrs.get(name) if index is None else op.operands[index]
            if present is not None and present is not False:
                flags |= 1 << bit
        return flags

    def _attrs(self, out: bytearray, op: Op) -> None:
        for attr in op.spec.attrs:
            value = op.attrs.get(attr.name, attr.default)
            if attr.since is not None and attr.since > self._version:
                plain = value is None or value == attr.default
                if not plain and not (attr.kind == "bool_array" and not any(value)):  # type: ignore
                    raise self._too_old(op, f" attribute '{attr.name}'", attr.since)
                continue
            if attr.kind == "unit" or (attr.optional and value is None):
                continue
            if value is None:
                raise InputError(f"'cuda_tile.{op.name}' op has no attribute '{attr.name}'")
            if attr.kind == "bool_array" and not value:
                value = (False,) * len(op.group("index"))  # type: ignore[arg-type]
            out += self._attributes.inline(attr, value)

    def _operands(self, out: bytearray, op: Op) -> None:
        spec: OpSpec = op.spec
        if spec.variable and not spec.segmented:
            flat = op.values()
            out += encode_varint(len(flat))
            for value in flat:
                self._use(out, op, value)
            return
        for group, operand in zip(op.operands, spec.operands, strict=True):
            if isinstance(group, tuple):
                out += encode_varint(len(group))
                for value in group:
                    self._use(out, op, value)
            elif group is not None:
                if operand.since is not None and operand.since > self._version:
                    raise self._too_old(op, f" operand '{operand.name}'", operand.since)
                self._use(out, op, group)

    def _use(self, out: bytearray, op: Op, value: Value) -> None:
        number = self._numbers.get(value)
        if number is None:
            raise InputError(
                f"'cuda_tile.{op.name}' op uses a value that version "
                f"{version_text(self._version)} does not have, or that is not in scope"
            )
        out += encode_varint(number)

    def _region(self, out: bytearray, region: Region) -> None:
        out += encode_varint(len(region.blocks))
        for block in region.blocks:
            outer = self._count
            out += encode_varint(len(block.args))
            for arg in block.args:
                out += encode_varint(self._types[arg.type])
            self._number(block.args)
            out += encode_varint(len(block.ops))
            inner = list(block.args)
            for op in block.ops:
                self._op(out, op)
                inner.extend(op.results)
            for value in inner:
                self._numbers.pop(value, None)
            self._count = outer


def _pad(out: bytearray, alignment: int) -> None:
    out += PAD * (-len(out) % alignment)


def _append_table(out: bytearray, items: list[bytes], width: int) -> bytearray:
    out += encode_varint(len(items))
    _pad(out, width)
    for start in accumulate([0, *map(len, items[:-1])]) if items else ():
        out += start.to_bytes(width, "little")
    for item in items:
        out += item
    return out


def _offsets_table(items: list[bytes], width: int) -> bytes:
    return bytes(_append_table(bytearray(), items, width))


def _append_section(out: bytearray, section: Section, alignment: int, payload: bytes) -> None:
    out.append(section | (0x80 if alignment else 0))
    out += encode_varint(len(payload))
    if alignment:
        out += encode_varint(alignment)
        _pad(out, alignment)
    out += payload

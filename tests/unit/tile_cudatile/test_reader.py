"""Reading bytecode: what samples contain, and what is said about broken files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tile_cudatile import BytecodeError, read_bytecode
from tile_cudatile.attrs import Bounded, DivBy
from tile_cudatile.bytecode.attributes import Attributes
from tile_cudatile.bytecode.attributes import _ints as read_ints
from tile_cudatile.bytecode.body import BodyReader
from tile_cudatile.bytecode.debug import DebugInfo
from tile_cudatile.bytecode.tables import Strings
from tile_cudatile.bytecode.typetable import Types
from tile_cudatile.bytecode.wire import Cursor, encode_svarint, encode_varint
from tile_cudatile.disassembler import main as disassemble
from tile_cudatile.locations import DebugLoc, Subprogram
from tile_cudatile.ops import ALL_OPS, BODY_OPS
from tile_cudatile.types import I1, I32, Scalar, Tile
from unit.tile_cudatile import samples


@pytest.mark.parametrize("name", samples.NAMES)
def test_reads_every_sample(name: str) -> None:
    module = read_bytecode(samples.sample(name))
    kernel, major, minor = name.split(".")
    assert module.version == (int(major), int(minor))
    (entry,) = module.entries
    assert entry.name == kernel
    assert entry.body.block.ops[-1].name == "return"
    assert [a.type for a in entry.args] == list(entry.type.inputs)


def test_matmul_has_its_operations() -> None:
    entry = read_bytecode(samples.sample("matmul.13.5")).entry("matmul")
    (loop,) = (op for op in entry.body.block.ops if op.name == "for")
    body = loop.regions[0].block
    assert [op.name for op in body.ops] == [
        "load_view_tko",
        "load_view_tko",
        "mmaf",
        "continue",
    ]
    mma = body.ops[2]
    assert mma.group("lhs") is body.ops[0].results[0]
    assert mma.group("acc") is body.args[1]
    assert str(mma.result.type) == "tile<64x64xf32>"
    assert body.ops[0].attrs["inbounds"] == (False, False)
    assert body.ops[0].group("token") is entry.body.block.ops[0].result


def test_assumptions_and_locations() -> None:
    entry = read_bytecode(samples.sample("vector_add.13.1")).entry("vector_add")
    assume = next(op for op in entry.body.block.ops if op.name == "assume")
    assert assume.attrs["predicate"] == DivBy(16)
    assert isinstance(assume.loc, DebugLoc)
    assert isinstance(assume.loc.scope, Subprogram)
    assert assume.loc.scope.linkage_name == "vector_add"
    assert assume.loc.filename.endswith("export_kernels.py")


def test_reading_loads_no_mlir() -> None:
    path = samples.DATA / "softmax.13.3.tileirbc"
    script = (
        "import sys, tile_cudatile\n"
        f"tile_cudatile.read_bytecode(open({str(path)!r}, 'rb').read())\n"
        "sys.exit(any(m.startswith(('torch_mlir', 'mlir')) for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


# Tables of a file made by hand.


def _types(records: list[bytes], version: tuple[int, int]) -> Types:
    payload = encode_varint(len(records))
    payload += b"\xcb" * (-len(payload) % 4)
    offset = 0
    for record in records:
        payload += offset.to_bytes(4, "little")
        offset += len(record)
    return Types(Cursor(payload + b"".join(records)), version, lambda _: None)


I32_TILE = b"\x0d\x00\x00"  # tile of type 0, no dimensions


def _body(code: str, version: tuple[int, int] = (13, 1), values: int = 2) -> BodyReader:
    """A reader of operation bytes `code` with type 0 = i32, type 1 = tile<i32>."""
    types = _types([b"\x03", I32_TILE], version)
    attributes = Attributes(Strings(None), types, [])
    locations = DebugInfo(None, Strings(None), version).locations(0)
    reader = BodyReader(Cursor(bytes.fromhex(code)), version, attributes, locations)
    block = BodyReader.body(
        BodyReader(Cursor(b""), version, attributes, locations), (types[1],) * values
    )
    reader.values.extend(block.args)
    return reader


def test_record_of_an_addition() -> None:
    reader = _body("03 01 00 04 05", values=6)
    op = reader.op()
    assert op.name == "addi"
    assert op.result.type == Tile((), I32)
    assert op.operands == (reader.values[4], reader.values[5])
    assert op.attrs == {"overflow": "none"}
    assert reader.values[-1] is op.result


def test_fields_newer_than_the_file_have_defaults() -> None:
    old = _body("50 01 00").op()  # negi
    assert old.attrs == {"overflow": "none"}
    new = _body("50 01 01 00", (13, 2)).op()
    assert new.attrs == {"overflow": "no_signed_wrap"}


def test_tags_of_attributes_are_bytes() -> None:
    op = _body("06 01 8c 10 00 00").op()  # assume, tag 12 + 8 * 256
    assert op.attrs == {"predicate": Bounded()}


@pytest.mark.parametrize(
    ("code", "version", "line"),
    [
        ("6e 01 00 00", (13, 1), "unsupported opcode 110 for bytecode version 13.1"),
        ("7b", (13, 4), "unsupported opcode 123 for bytecode version 13.4"),
        ("20 00", (13, 5), "unknown or unimplemented opcode: 32"),
        ("80", (13, 1), "failed to read operation opcode."),
        ("03 02", (13, 1), "failed to get result type 0 for AddIOp"),
        ("03 01 04 00 01", (13, 1), "invalid integer value for enum type: 4"),
        ("03 01 00 00 02", (13, 1), "operand index 2 out of bounds (size=2) for operand 1"),
        ("03 01 00 00", (13, 1), "failed to read operand index 1"),
        ("10 01 00", (13, 1), "constant index 0 out of bounds"),
        ("05 00 00", (13, 1), "string index 0 out of bounds"),
        ("32 00 00 01", (13, 1), "cuda_tile.if op expected 2 regions, got 1"),
        (
            "32 00 00 02 01 00 00",
            (13, 1),
            "invalid block structure: block is expected to have a terminator operation, but it is "
            "empty",
        ),
        (
            "55 01 01",
            (13, 1),
            "result count mismatch for PrintTkoOp: expected 0 compatible results but got 1",
        ),
        ("06 01 0e", (13, 1), "unsupported AttributeTag 14 for self-contained attribute"),
        (
            "06 01 0d 00",
            (13, 4),
            "attribute 'MultimemReductionKindAttr' requires bytecode version 13.5+, targeting 13.4",
        ),
    ],
)
def test_what_is_said_about_a_broken_record(code: str, version: tuple[int, int], line: str) -> None:
    with pytest.raises(BytecodeError) as caught:
        _body(code, version).op()
    assert caught.value.lines[0].split(": ", 1)[-1] == line or caught.value.lines[0] == line


def _file(version: bytes = b"\x0d\x01\x00\x00", rest: bytes = b"\x00") -> bytes:
    return b"\x7fTileIR\x00" + version + rest


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", "error at offset 0: invalid magic number at position 0, got 0 expected 127"),
        (
            b"\x7fTileIS\x00",
            "error at offset 7: invalid magic number at position 6, got 83 expected 82",
        ),
        (
            _file(b"\x0d\x06\x00\x00"),
            "error at offset 12: unsupported Tile version 13.6.0, this "
            "reader supports versions [13.1 - 13.5]",
        ),
        (
            _file(rest=b""),
            "error at offset 12: unexpected end of data while reading section header",
        ),
        (_file(), "error at offset 13: string section is mandatory"),
        (_file(rest=b"\x00\x00"), "error at offset 13: end section is not the last section"),
        (_file(rest=b"\x80"), "error at offset 13: end section should not have alignment flag set"),
        (_file(rest=b"\x09"), "error at offset 13: unknown section ID: 9"),
        (
            _file(rest=b"\x01\x05"),
            "error at offset 14: section length 5 exceeds remaining data size 0",
        ),
        (_file(rest=b"\x01\x80"), "error at offset 14: failed to read section length"),
        (_file(rest=b"\x81\x01\x03\x00"), "error at offset 15: invalid alignment value: 3"),
        (
            _file(rest=b"\x01\x00"),
            "error at offset 14: section 1 must have alignment that is a "
            "multiple of 4 bytes, but has no alignment flag set",
        ),
        (
            _file(rest=b"\x81\x01\x02\xcb\x00"),
            "error at offset 16: section 1 must have alignment "
            "that is a multiple of 4 bytes, but has alignment of 2",
        ),
        (
            _file(rest=b"\x81\x01\x04\xcb\x00\x00"),
            "error at offset 18: function section is mandatory",
        ),
    ],
)
def test_what_is_said_about_a_broken_container(data: bytes, line: str) -> None:
    with pytest.raises(BytecodeError) as caught:
        read_bytecode(data)
    assert caught.value.lines[0] == line
    assert caught.value.exit_code == 3


def _without_locations(code: str) -> BodyReader:
    """A reader of operations whose list of locations has ended."""
    reader = _body(code)
    none = SimpleNamespace(next=lambda: None)
    return BodyReader(reader.cursor, reader.version, reader.attributes, none)  # type: ignore[arg-type]


def test_an_operation_without_location_is_refused() -> None:
    with pytest.raises(BytecodeError, match=r"failed to read operation location\."):
        _without_locations("03 01 00 00 01").op()


def test_numbers_that_a_list_cannot_hold_are_refused() -> None:
    words = b"\x01" + (0x7FFFFFFF).to_bytes(4, "little")
    with pytest.raises(BytecodeError, match="array contains unsupported value 2147483647"):
        read_ints(Cursor(words), 4)
    assert read_ints(Cursor(b"\x01\x05\x00\x00\x00"), 4) == (5,)


@pytest.mark.parametrize(
    ("place", "byte", "line"),
    [
        (9, 3, "failed to parse function body for function 'vector_add'"),  # another version
        (19, 4, "un-expected non-entry function 'vector_add'"),  # its flags
    ],
)
def test_what_is_said_about_a_broken_function(place: int, byte: int, line: str) -> None:
    data = bytearray(samples.sample("vector_add.13.1"))
    data[place] = byte
    with pytest.raises(BytecodeError) as caught:
        read_bytecode(bytes(data))
    assert any(line in said for said in caught.value.lines)


def test_the_disassembler_says_that_it_could_not_read(tmp_path: Path, capsys) -> None:
    path = tmp_path / "k.tileirbc"
    path.write_bytes(samples.sample("vector_add.13.1")[:-9])
    assert disassemble([str(path)]) == 3
    assert capsys.readouterr().err.splitlines()[-1] == (
        "error: failed to read provided Tile IR bytecode"
    )


def test_empty_module() -> None:
    rest = b"\x82\x01\x08\xcb\x00" + b"\x81\x01\x04" + b"\x00\x00"
    module = read_bytecode(_file(rest=rest))
    assert module.entries == []
    assert module.globals == []


@pytest.mark.parametrize("name", ["matmul.13.1", "transpose.13.5"])
def test_truncated_files_are_refused(name: str) -> None:
    data = samples.sample(name)
    for size in range(len(data)):
        with pytest.raises(BytecodeError):
            read_bytecode(data[:size])


def test_newer_types_are_refused_in_older_files() -> None:
    with pytest.raises(
        BytecodeError,
        match=r"type 'f8E8M0FNU' requires bytecode version 13\.2\+, file version is 13\.1",
    ):
        _types([b"\x12"], (13, 1))[0]
    assert _types([b"\x12"], (13, 2))[0] == Scalar("f8E8M0FNU", 8, True, (13, 2))
    with pytest.raises(BytecodeError, match=r"requires bytecode version 13\.3"):
        _types([b"\x15"], (13, 2))[0]


def test_a_type_inside_itself_is_refused() -> None:
    with pytest.raises(BytecodeError):
        _types([b"\x0d\x00\x00"], (13, 1))[0]


def test_padding_before_and_since_13_3() -> None:
    extent, stride = ((value).to_bytes(8, "little") for value in (16, 1))
    tensor = b"\x0e\x00\x01" + extent + b"\x01" + stride
    tile = b"\x01" + (4).to_bytes(4, "little")
    dims = b"\x01" + (0).to_bytes(4, "little")
    old = _types([b"\x07", tensor, b"\x0f" + tile + b"\x01" + dims + b"\x01\x02"], (13, 1))[2]
    new = _types([b"\x07", tensor, b"\x0f\x01" + tile + b"\x01" + dims + b"\x02"], (13, 3))[2]
    text = "partition_view<tile=(4), padding_value = nan, tensor_view<16xf32, strides=[1]>>"
    assert str(old) == str(new) == text


def test_varints() -> None:
    assert Cursor(b"\x80\x01").varint() == 128
    assert Cursor(b"\x80\x80\x00").varint() == 0  # overlong
    assert Cursor(encode_svarint(-(1 << 63))).svarint() == -(1 << 63)
    for bad in (b"", b"\x80", b"\x80" * 10 + b"\x01"):
        with pytest.raises(BytecodeError):
            Cursor(bad).varint()


def test_tables_are_complete() -> None:
    holes = {*range(0x19, 0x25), *range(0x34, 0x3A)}
    assert set(ALL_OPS.by_opcode) == set(range(0x7E)) - holes
    count = {v: sum(s.since <= v for s in ALL_OPS) for v in ((13, 1), (13, 2), (13, 3))}
    assert count == {(13, 1): 92, (13, 2): 93, (13, 3): 100}
    assert {s.name for s in ALL_OPS} - {s.name for s in BODY_OPS} == {"module", "entry", "global"}
    assert I1.width == 1

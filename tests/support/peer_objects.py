"""Small ELF files like those of cubins: kernels' PTX inside, host code with callbacks."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_CUDA, X86_64 = 190, 62
_PROGBITS, _SYMTAB, _STRTAB, _RELA = 1, 2, 3, 4

#: Kernel `copy_map`: thread t of a warp stores word t of the hidden parameter.
PTX = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry copy_map(.param .u64 out, .param .u32 n, .hidden .param .align 64 .b8 map[128])
.reqntid 32
{
.reg .b64 %o, %a; .reg .b32 %t, %v, %b;
ld.param.u64 %o, [out];
mov.u32 %t, %tid.x;
shl.b32 %b, %t, 2;
cvt.u64.u32 %a, %b;
add.u64 %o, %o, %a;
mov.b64 %a, map;
.reg .b64 %p;
cvt.u64.u32 %p, %b;
add.u64 %a, %a, %p;
ld.param.b32 %v, [%a];
st.global.b32 [%o], %v;
ret;
}
"""


@dataclass
class Section:
    name: str
    data: bytes
    type: int = _PROGBITS
    link: int = 0
    info: int = 0


@dataclass
class File:
    """An ELF file in the making; `section` numbers begin at 1."""

    machine: int
    sections: list[Section] = field(default_factory=list)

    def bytes(self) -> bytes:
        names = b"\0" + b"".join(s.name.encode() + b"\0" for s in self.sections) + b".names\0"
        parts = [*self.sections, Section(".names", names, _STRTAB)]
        body, rows, at, name = b"", [bytes(_SECTION.size)], _HEADER.size, 1
        for s in parts:
            rows.append(_SECTION.pack(name, s.type, 0, 0, at, len(s.data), s.link, s.info, 1, 0))
            body += s.data
            at, name = at + len(s.data), name + len(s.name) + 1
        ident = b"\x7fELF\2\1\1".ljust(16, b"\0")
        head = _HEADER.pack(
            ident, 1, self.machine, 1, 0, 0, at, 0, 64, 0, 0, _SECTION.size, len(rows),
            len(rows) - 1,
        )  # fmt: skip
        return head + body + b"".join(rows)


def host_object(code: bytes, kernel: str = "copy_map", machine: int = X86_64) -> bytes:
    """An object whose callback for `kernel` is `code`."""
    strings = b"\0__CUDA_TILEIR_CALLBACKS\0"
    table, entry = bytearray(72), bytes(64)
    table[0x20:0x28], table[0x30:0x38] = struct.pack("<Q", 64), struct.pack("<Q", 1)
    symbol = struct.Struct("<IBBHQQ")
    symbols = symbol.pack(0, 0, 0, 0, 0, 0)
    symbols += symbol.pack(1, 0x11, 0, 3, 64, 72)  # the table, behind the entries
    symbols += b"".join(symbol.pack(0, 3, 0, section, 0, 0) for section in (1, 2, 3))
    relocation = struct.Struct("<QQq")
    absolute = lambda at, section: relocation.pack(at, (1 + section) << 32 | 1, 0)  # noqa: E731
    fixes = absolute(0, 2) + absolute(40, 1) + absolute(64 + 0x28, 3)
    made = File(machine)
    made.sections = [
        Section(".ltext", code),
        Section(".lrodata", kernel.encode() + b"\0"),
        Section(".data.rel.ro", entry + bytes(table)),
        Section(".rela.data.rel.ro", fixes, _RELA, 5, 3),
        Section(".symtab", symbols, _SYMTAB, 6),
        Section(".strtab", strings, _STRTAB),
    ]
    return made.bytes()


def cubin(
    ptx: str | None = PTX, host: bytes | None = None, *, base: int | None = 0x210,
    kernel: str = "copy_map", machine: int = _CUDA,
) -> bytes:  # fmt: skip
    """A cubin with these parts; `base` is where the kernel's parameters begin."""
    made = File(machine)
    if ptx is not None:
        made.sections.append(Section(".nv_debug_ptx_txt", ptx.replace("\n", "\0").encode()))
    if host is not None:
        made.sections.append(Section(".nv.host", host))
    if base is not None:
        info = struct.pack("<BBHIHH", 4, 0x0A, 8, 0, base, 0)
        made.sections.append(Section(f".nv.info.{kernel}", info))
    return made.bytes()


def fills(offset: int, value: int, status: int = 0) -> bytes:
    """Code that writes 8 bytes at an offset of the parameters (rcx) and returns `status`."""
    store = b"\x48\xb8" + struct.pack("<Q", value)  # mov rax, value
    store += b"\x48\x89\x81" + struct.pack("<i", offset)  # mov [rcx + offset], rax
    return store + b"\xb8" + struct.pack("<i", status) + b"\xc3"  # mov eax, status; ret


CRASHES = b"\x0f\x0b"  # ud2
LOOPS = b"\xeb\xfe"  # jmp to itself

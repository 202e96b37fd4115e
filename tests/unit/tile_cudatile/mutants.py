"""Broken programs, and what our reader says about them."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tile_cudatile import BytecodeError, read_bytecode, write_bytecode
from tile_cudatile.bytecode.sections import Section, SectionRecord, read_header, read_sections
from tile_cudatile.bytecode.wire import Cursor, encode_varint
from tile_cudatile.versions import SUPPORTED, Version
from unit.tile_cudatile import samples
from unit.tile_cudatile.everything import everything

HEADER = 12
#: Longest time in seconds that any input may take.
LIMIT = 2.0
Mutation = Callable[[bytearray, random.Random, Sequence[bytes]], None]


def programs() -> list[bytes]:
    """What is mutated: real kernels, and all operations of every version."""
    made = [write_bytecode(everything(version)) for version in SUPPORTED]
    return [samples.sample(name) for name in samples.NAMES] + made


def flip(data: bytearray, rng: random.Random, _: Sequence[bytes]) -> None:
    """Other bits, or small numbers, in one to three bytes."""
    for _i in range(rng.choice((1, 1, 1, 2, 3))):
        place = rng.randrange(HEADER, len(data))
        old = data[place]
        choices = (old ^ 1 << rng.randrange(8), rng.randrange(256), rng.randrange(24), old + 1)
        data[place] = rng.choice(choices) & 255


def delete(data: bytearray, rng: random.Random, _: Sequence[bytes]) -> None:
    """A few bytes less."""
    place = rng.randrange(HEADER, len(data))
    del data[place : place + rng.randrange(1, 4)]


def insert(data: bytearray, rng: random.Random, _: Sequence[bytes]) -> None:
    """A few bytes more."""
    place = rng.randrange(HEADER, len(data))
    data[place:place] = bytes(rng.randrange(20) for _ in range(rng.randrange(1, 4)))


def truncate(data: bytearray, rng: random.Random, _: Sequence[bytes]) -> None:
    """Only the beginning."""
    del data[rng.randrange(len(data)) :]


def copy(data: bytearray, rng: random.Random, _: Sequence[bytes]) -> None:
    """Some bytes in place of others."""
    size = rng.randrange(1, 9)
    source, target = (rng.randrange(HEADER, max(len(data) - size, HEADER + 1)) for _ in range(2))
    data[target : target + size] = data[source : source + size]


def version(data: bytearray, rng: random.Random, _: Sequence[bytes]) -> None:
    """Another version."""
    data[9] = rng.randrange(7)


def splice_end(data: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    """The end of another file."""
    other = rng.choice(others)
    cut = rng.randrange(HEADER, len(data))
    data[cut:] = other[rng.randrange(HEADER, len(other)) :]


def splice_section(data: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    """One section is that of another file, or is missing, or is there twice."""
    own, other = list(_sections(data)), dict(_sections(rng.choice(others)))
    place = rng.randrange(len(own))
    section, payload = own[place]
    match rng.randrange(8):
        case 0:
            del own[place]
        case 1:
            own.insert(rng.randrange(len(own)), (section, payload))
        case _:
            own[place] = section, other.get(section, payload)
    data[HEADER:] = _assembled(own)


def swap_types(data: bytearray, rng: random.Random, _: Sequence[bytes]) -> None:
    """Two types change places."""
    sections = list(_sections(data))
    place = next((i for i, (s, _) in enumerate(sections) if s.id == Section.TYPE), None)
    if place is None:
        return
    section, payload = sections[place]
    cursor = Cursor(payload)
    count = cursor.varint()
    cursor.align(4)
    offsets = list(struct.unpack(f"<{count}I", cursor.take(4 * count)))
    ends = [*offsets[1:], cursor.remaining]
    records = [payload[cursor.pos + a : cursor.pos + b] for a, b in zip(offsets, ends, strict=True)]
    first, second = rng.randrange(count), rng.randrange(count)
    records[first], records[second] = records[second], records[first]
    for index, size in enumerate(map(len, records[:-1]), 1):
        offsets[index] = (offsets[index - 1] + size) & 0xFFFFFFFF
    head = payload[: cursor.pos - 4 * count]
    sections[place] = section, head + struct.pack(f"<{count}I", *offsets) + b"".join(records)
    data[HEADER:] = _assembled(sections)


def swap_operands(data: bytearray, rng: random.Random, _: Sequence[bytes]) -> None:
    """Two neighbouring bytes of code change places."""
    spans = [(s.start, s.length) for s, _ in _sections(data) if s.id == Section.FUNC]
    start, length = spans[-1]
    if length > 2:
        place = start + rng.randrange(length - 1)
        data[place], data[place + 1] = data[place + 1], data[place]


def _sections(data: bytes | bytearray) -> Iterator[tuple[SectionRecord, bytes]]:
    cursor = Cursor(bytes(data))
    read_header(cursor)
    for record in read_sections(cursor):
        yield record, bytes(data[record.start : record.start + record.length])


def _assembled(sections: Sequence[tuple[SectionRecord, bytes]]) -> bytes:
    """Sections behind a header, with the end marker."""
    out = bytearray(HEADER)
    for record, payload in sections:
        out.append(record.id | (0x80 if record.alignment else 0))
        out += encode_varint(len(payload))
        if record.alignment:
            out += encode_varint(record.alignment)
            out += b"\xcb" * (-len(out) % record.alignment)
        out += payload
    out.append(0)
    return bytes(out[HEADER:])


#: How often each is drawn.
MUTATIONS: dict[Mutation, int] = {
    flip: 10,
    swap_operands: 3,
    swap_types: 2,
    splice_section: 2,
    splice_end: 1,
    copy: 1,
    delete: 1,
    insert: 1,
    truncate: 1,
    version: 1,
}


@dataclass(frozen=True)
class Mutant:
    """A broken program (or one that is still valid) and what was done to it."""

    kind: str
    data: bytes


def mutants_of(given: Sequence[bytes], seed: int, count: int) -> Iterator[Mutant]:
    """`count` mutants of the given programs, the same for the same seed."""
    rng = random.Random(seed)
    kinds, weights = list(MUTATIONS), list(MUTATIONS.values())
    for _ in range(count):
        data = bytearray(rng.choice(given))
        (mutation,) = rng.choices(kinds, weights)
        mutation(data, rng, given)
        yield Mutant(mutation.__name__, bytes(data))


def mutants(seed: int, count: int) -> Iterator[bytes]:
    """Mutants of `programs()`."""
    return (mutant.data for mutant in mutants_of(programs(), seed, count))


@dataclass(frozen=True)
class Verdict:
    """The first complaint, or "" for a valid program, and the processor time it took in seconds."""

    complaint: str
    seconds: float


def ours(data: bytes) -> Verdict:
    """Our reader's verdict. Any exception but `BytecodeError` comes through."""
    start = time.process_time()
    try:
        read_bytecode(data)
        complaint = ""
    except BytecodeError as error:
        complaint = error.lines[0]
    return Verdict(complaint, time.process_time() - start)


def version_of(data: bytes) -> Version:
    """What the header says; (0, 0) if there is none."""
    return (data[8], data[9]) if len(data) >= HEADER else (0, 0)

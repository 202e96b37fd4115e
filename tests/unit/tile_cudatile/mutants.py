"""Broken programs, and what the released reader says about them."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tile_cudatile import BytecodeError, read_bytecode, write_bytecode
from tile_cudatile.versions import SUPPORTED
from unit.tile_cudatile import samples
from unit.tile_cudatile.everything import everything
from unit.tile_cudatile.peer import disassemble

HEADER = 12
#: Longest time that any input may take.
LIMIT = 2.0


def programs() -> list[bytes]:
    """What is mutated: real kernels, and all operations of every version."""
    made = [write_bytecode(everything(version)) for version in SUPPORTED]
    return [samples.sample(name) for name in samples.NAMES] + made


def _flip(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        place = rng.randrange(HEADER, len(data))
        old = data[place]
        choices = (old ^ 1 << rng.randrange(8), rng.randrange(256), rng.randrange(24), old + 1)
        data[place] = rng.choice(choices) & 255


def _delete(data: bytearray, rng: random.Random) -> None:
    place = rng.randrange(HEADER, len(data))
    del data[place : place + rng.randrange(1, 4)]


def _insert(data: bytearray, rng: random.Random) -> None:
    place = rng.randrange(HEADER, len(data))
    data[place:place] = bytes(rng.randrange(20) for _ in range(rng.randrange(1, 4)))


def _truncate(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def _copy(data: bytearray, rng: random.Random) -> None:
    size = rng.randrange(1, 9)
    source, target = (rng.randrange(HEADER, max(len(data) - size, HEADER + 1)) for _ in range(2))
    data[target : target + size] = data[source : source + size]


def _version(data: bytearray, rng: random.Random) -> None:
    data[9] = rng.randrange(7)


MUTATIONS = (_flip,) * 8 + (_delete, _insert, _truncate, _copy, _version)


def mutants(seed: int, count: int) -> Iterator[bytes]:
    """`count` broken programs, the same for the same seed."""
    rng = random.Random(seed)
    given = programs()
    for _ in range(count):
        data = bytearray(rng.choice(given))
        if rng.random() < 0.05:  # the end of another file
            other = rng.choice(given)
            cut = rng.randrange(HEADER, len(data))
            data[cut:] = other[rng.randrange(HEADER, len(other)) :]
        else:
            rng.choice(MUTATIONS)(data, rng)
        yield bytes(data)


@dataclass(frozen=True)
class Verdict:
    """The first complaint, or "" for a valid program, and the time it took."""

    complaint: str
    seconds: float


def ours(data: bytes) -> Verdict:
    """Our reader's verdict. Any exception but `BytecodeError` comes through."""
    start = time.perf_counter()
    try:
        read_bytecode(data)
        complaint = ""
    except BytecodeError as error:
        complaint = error.lines[0]
    return Verdict(complaint, time.perf_counter() - start)


def disagreements(seed: int, count: int, workers: int = 8) -> list[str]:
    """Mutants about which our reader and the released one disagree."""
    with TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:

        def released(item: tuple[int, bytes]) -> tuple[bytes, str]:
            index, data = item
            place = Path(folder) / str(index)
            place.mkdir()
            result = disassemble(data, place)
            return data, "" if result.returncode == 0 else result.stderr or "rejected"

        found: list[str] = []
        for data, theirs in pool.map(released, enumerate(mutants(seed, count))):
            verdict = ours(data)
            if bool(theirs) != bool(verdict.complaint):
                found.append(f"ours: {verdict.complaint!r}, released: {theirs!r}, {data.hex()}")
        return found

"""What a process compiles and launches, noted; also in programs that tests start."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tile_cudatile.bytecode.empty import is_empty

from tile_sim.cutile.compiler import Compilation, Image, bytes_of
from tile_sim.suite.features import features_of

#: Environment: a folder for compiled programs, and a file for the notes of other processes.
BYTECODE, NOTES = "TILE_SIM_BYTECODE", "TILE_SIM_NOTES"
LAUNCH = "launch"
Note = Callable[[Any], None]


def follow(session: Any, note: Note) -> None:
    """Call `note` with [hash, arch, level, good, features] for each compilation, and for each
    launch with [LAUNCH, ...]: [hash, arch, level] of every program that the code which runs was
    made of. Not for programs in which nothing is: cuTile compiles one, in whichever test of a
    process is the first that asks for a compiler, to learn which versions that takes."""
    made: dict[bytes, list[list[Any]]] = {}

    def compiled(done: Compilation) -> None:
        if is_empty(done.bytecode):
            return
        name = hashlib.sha256(done.bytecode).hexdigest()[:24]
        _keep(name, done.bytecode)
        program = [name, done.arch, done.level]
        if done.image is not None:
            programs = made.setdefault(_digest(done.image), [])
            programs += [program] if program not in programs else []
        good = done.image is not None
        note([*program, good, features_of(done.ptx) if good else []])

    session.compiler.watch = compiled
    session.watch = lambda image: note([LAUNCH, *made.get(_digest(image), ())])


def _digest(image: Image) -> bytes:
    return hashlib.sha256(bytes_of(image)).digest()


def _keep(name: str, bytecode: bytes) -> None:
    folder = os.environ.get(BYTECODE)
    if folder is not None:
        file = Path(folder) / f"{name}.tileirbc"
        if not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(bytecode)


def to_file(note: Any) -> None:
    """For another process: a line in the file that the tests' process reads."""
    path = os.environ.get(NOTES)
    if path is not None:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")


class FromFile:
    """The notes of other processes since the last call."""

    def __init__(self) -> None:
        path = os.environ.get(NOTES)
        self.path = None if path is None else Path(path)
        self.read = self.path.stat().st_size if self.path and self.path.is_file() else 0

    def __call__(self) -> list[Any]:
        if self.path is None or not self.path.is_file():
            return []
        with self.path.open("rb") as file:
            file.seek(self.read)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self.read += len(whole)
        return [json.loads(line) for line in whole.splitlines()]

"""A coverage-guided fuzzer of bytecode: read, verify, print, parse, write. Needs `atheris`.

    python tests/unit/tile_cudatile/fuzz_bytecode.py [--compile] [libFuzzer options] [folder]

Inputs start from the kernels that the tests read, and change by libFuzzer's mutations and by those
of `mutants`, which know sections and types. With `--compile`, what is valid is compiled at -O0,
too. A crash is any exception but the compiler's own, a text or program that does not come back the
same, or more than two seconds of computing; libFuzzer stores the input.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["tile_cudatile"]):  # pyright: ignore[reportAttributeAccessIssue]
    from tile_cudatile import parse_text, print_text, read_bytecode, verify, write_bytecode
    from tile_cudatile.attrs import Hints
    from tile_cudatile.tree import Module

from unit.tile_cudatile.corpus import archive
from unit.tile_cudatile.mutants import LIMIT, MUTATIONS, programs

from tile_core.api import compile as compile_program
from tile_core.diagnostics import TileError

COMPILE = "--compile"
SMALL = 1700  # bytes
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MUTATIONS = list(MUTATIONS)


def check(data: bytes, compiling: bool = False) -> bool:
    """Whether `data` is a valid program, having looked at all that can be made of it."""
    start = time.process_time()
    try:
        module = read_bytecode(data)
    except TileError:
        return False
    finally:
        took = time.process_time() - start
        assert took < LIMIT, f"reading took {took:.1f} s"
    verify(module)
    text = print_text(module)
    assert print_text(read_bytecode(write_bytecode(module))) == text
    print_text(module, locations=True)
    if _parses(module):
        assert print_text(parse_text(text, version=module.version)) == text
    if compiling:
        with suppress(TileError):
            compile_program(data, "sm_100", opt_level=0, emit="ptx", keep_stages=False)
    return True


def _parses(module: Module) -> bool:
    """Whether all names can be read back: those of hints are printed without quotes."""
    hints = [entry.hints for entry in module.entries]
    for entry in module.entries:
        hints += [v for op in entry.body.walk() for v in op.attrs.values() if isinstance(v, Hints)]
    return all(_NAME.fullmatch(name) for hint in hints for name in _names(hint.targets))


def _names(attribute: object) -> Iterator[str]:
    if isinstance(attribute, dict):
        yield from attribute
        for value in attribute.values():
            yield from _names(value)
    elif isinstance(attribute, tuple):
        for value in attribute:
            yield from _names(value)


def mutate(data: bytes, max_size: int, seed: int) -> bytes:
    """One of libFuzzer's mutations, or one of ours."""
    rng = random.Random(seed)
    if rng.random() < 0.5 or len(data) < 16:
        return atheris.Mutate(data, max_size)
    changed = bytearray(data)
    try:
        rng.choice(_MUTATIONS)(changed, rng, _given())
    except (TileError, IndexError, ValueError):  # too broken for mutations that look inside
        return atheris.Mutate(data, max_size)
    return bytes(changed[:max_size])


_GIVEN: list[bytes] = []


def _given() -> list[bytes]:
    if not _GIVEN:
        known = [*programs(), *archive.files().values()]
        _GIVEN.extend([data for data in known if len(data) < SMALL][::10])
    return _GIVEN


def main() -> None:
    """Runs until libFuzzer ends the process."""
    compiling = COMPILE in sys.argv
    arguments = [argument for argument in sys.argv if argument != COMPILE]
    seeds = Path(mkdtemp(prefix="bytecode-seeds-"))
    for index, data in enumerate(_given()):
        (seeds / str(index)).write_bytes(data)

    def target(data: bytes) -> None:
        check(data, compiling)

    # The first folder is where libFuzzer keeps what it finds.
    folders = [argument for argument in arguments[1:] if not argument.startswith("-")]
    if not folders:
        arguments.append(mkdtemp(prefix="bytecode-corpus-"))
    atheris.Setup([*arguments, str(seeds)], target, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

"""Compares the tensor maps that our host code writes with those that tileiras' host code writes.

    python tools/map_words.py --gpu-name sm_90 sm_120                    # the examples
    python tools/map_words.py --corpus --gpu-name sm_90          # those of the test corpus
    python tools/map_words.py build/dumped/*.tileirbc --gpu-name sm_100

Both compile each program, and both callbacks get the same made-up arguments: addresses and numbers
that are multiples of 64. Maps of one address and the same axes are compared word by word. Which
tensors get a map, and in which boxes, is each compiler's own choice: these are counted, and so are
maps of f32 that round to tf32, which ours never do. Exits with 1 if anything else differs.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tile_cute.tensor_map import FIELDS
from tile_nvptx.emit.ptx_parameters import Parameter, parameters_of
from tile_sim.peer import tileiras
from tile_sim.peer.cubin import Cubin

import tile_core
from tile_core.diagnostics import TileError

ROOT = Path(__file__).resolve().parents[1]
#: Of the 1024 bits of a map, the lower half is written.
_BYTES = 64
_CHOICES = ("box_dim", "swizzle_mode", "swizzle_atomicity", "swizzle_96B")
_ROUNDS = ("tf32",)
_DRAWS = 4


@dataclass(frozen=True)
class Side:
    """What one compiler made of a program."""

    ptx: str
    cubin: Cubin

    def maps(self, kernel: str, seed: int) -> list[int]:
        """The maps of a launch with arguments drawn by `seed`."""
        base = self.cubin.parameter_base(kernel)
        placed = parameters_of(self.ptx, base)[kernel]
        hidden = [one for one in placed if one.hidden and one.size == 2 * _BYTES]
        if not hidden or self.cubin.host is None:
            return []
        filled = self.cubin.host.call(kernel, _packed(placed, seed))
        return [int.from_bytes(filled[p.offset : p.offset + _BYTES], "little") for p in hidden]


def main(argv: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(argv)
    theirs = tileiras.find(given.tileiras)
    wrong = 0
    for arch in given.gpu_name:
        counts: Counter[str] = Counter()
        for name, bytecode in _programs(given):
            try:
                counts += _compared(theirs, name, bytecode, arch)
            except TileError as error:
                counts["programs that one of both refuses"] += 1
                print(f"{name} {arch}: {error.message}", file=sys.stderr)
        print(f"{arch}: " + ", ".join(f"{n} {word}" for word, n in sorted(counts.items())))
        wrong += counts["maps that DIFFER"]
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("files", nargs="*", type=Path, help="bytecode, in place of the examples")
    parser.add_argument("--corpus", action="store_true", help="the kernels of the test corpus")
    parser.add_argument("--gpu-name", nargs="+", default=["sm_90", "sm_100", "sm_120"])
    parser.add_argument("--tileiras", help="which tileiras, if not the installed one")
    return parser


def _programs(given: argparse.Namespace) -> Iterator[tuple[str, bytes]]:
    if given.corpus:
        sys.path.insert(0, str(ROOT / "tests" / "unit" / "tile_cudatile"))
        from corpus import archive  # pyright: ignore[reportMissingImports]

        newest = archive.VERSIONS[-1]
        yield from (item for item in archive.files().items() if item[0].endswith(newest))
        return
    for path in given.files or sorted((ROOT / "examples" / "bytecode").glob("*.tileirbc")):
        yield path.stem, path.read_bytes()


def _compared(theirs: tileiras.Tileiras, name: str, bytecode: bytes, arch: str) -> Counter[str]:
    made = tile_core.compile(bytecode, arch, opt_level=3)
    assert made.cubin is not None
    ours = Side(str(made.stage("ptx")), Cubin(made.cubin))
    cubin = theirs.compile(bytecode, arch)
    peer = Side(cubin.ptx, cubin)
    counts: Counter[str] = Counter()
    for kernel in parameters_of(ours.ptx, 0):
        for seed in range(_DRAWS):
            for word, difference in _matched(ours.maps(kernel, seed), peer.maps(kernel, seed)):
                counts[word] += 1
                if difference:
                    print(f"{name} {kernel} {arch}: {difference}")
    return counts


def _matched(ours: list[int], theirs: list[int]) -> Iterator[tuple[str, str]]:
    """What became of each map of ours: how it compares, and the fields that should not differ."""
    for one in ours:
        same = [two for two in theirs if not _differing(one, two, ("global_address",))]
        if not same:
            yield "maps of tensors that tileiras copies otherwise", ""
            continue
        nearest = min(same, key=lambda two: len(_differing(one, two, FIELDS)))
        fields = _differing(one, nearest, FIELDS)
        if not fields and one == nearest:
            yield "maps equal in every bit", ""
        elif not set(fields) - {*_CHOICES}:
            yield "maps equal but for the box", ""
        elif not set(fields) - {*_CHOICES, *_ROUNDS}:
            yield "maps equal but for the box and rounding to tf32", ""
        else:
            said = [f"{f} {_value(one, f)}, not {_value(nearest, f)}" for f in fields]
            yield "maps that DIFFER", "; ".join(said)


def _value(bits: int, name: str) -> list[int]:
    return [FIELDS[name].load(bits, at) for at in range(FIELDS[name].count)]


def _differing(one: int, two: int, names: Iterable[str]) -> list[str]:
    return [name for name in names if (one ^ two) & FIELDS[name].all_bits and name != "pixels"]


def _packed(placed: Sequence[Parameter], seed: int) -> bytes:
    """Arguments of a launch: distinct addresses, and numbers for extents and strides."""
    draw = random.Random(seed)
    end = max(one.offset + one.size for one in placed)
    buffer = bytearray(end)
    for at, one in enumerate(placed):
        if one.hidden:
            continue
        value = (
            (at + 1) << 36 | draw.randrange(1 << 20) << 8
            if one.size == 8
            else (64 * draw.randint(1, 64))
        )
        buffer[one.offset : one.offset + one.size] = value.to_bytes(8, "little")[: one.size]
    return bytes(buffer)


if __name__ == "__main__":
    sys.exit(main())

"""Compares the tensor maps that our host code writes with those that tileiras' host code writes.

    python tools/map_words.py --gpu-name sm_90 sm_120            # the examples
    python tools/map_words.py --corpus --gpu-name sm_90          # the kernels of the test corpus
    python tools/map_words.py build/bytecode --gpu-name sm_90    # files, and folders of them

Both compile each program, and both callbacks get the same made-up arguments: addresses and numbers
that are multiples of 64. Each map of tileiras' is decoded by the simulator's `TensorMap` and has to
be the same when it is encoded again, also with `large` taken from its extents; `--keep` writes one
map of each kind to a file. Maps of both with one address and the same axes are compared word by
word. Which tensors get a map, in which boxes, and whether f32 is rounded to tf32 on the way, is
each compiler's own choice: these are counted. Exits with 1 if anything else differs.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tile_cute.tensor_map import FIELDS, SIZE
from tile_nvptx.emit.ptx_parameters import Parameter, parameters_of
from tile_sim import SimError
from tile_sim.machine.tensormap import decode
from tile_sim.peer import tileiras
from tile_sim.peer.cubin import Cubin

import tile_core
from tile_core.diagnostics import TileError

ROOT = Path(__file__).resolve().parents[1]
#: Of the 1024 bits of a map, the lower half is written.
_BYTES = SIZE // 2
_CHOICES = ("box_dim", "swizzle_mode", "swizzle_atomicity", "swizzle_96B")
_ROUNDS = ("tf32",)
#: What depends on the arguments of a launch; maps that agree otherwise are of one kind.
_DRAWN = ("global_address", "global_dim", "stride_low", "stride_high")
_DRAWS = 4
#: Programs between two lines on the screen.
_SAY_EACH = 100
_EQUAL = "maps equal in every bit"
_DIFFER, _NOT_AGAIN = "maps that DIFFER", "maps that are NOT the same encoded again"
_WRONG = (_DIFFER, _NOT_AGAIN)


@dataclass(frozen=True)
class Side:
    """What one compiler made of a program."""

    ptx: str
    cubin: Cubin

    @property
    def makes_maps(self) -> bool:
        return any(map(_is_map, (p for ps in parameters_of(self.ptx, 0).values() for p in ps)))

    def maps(self, kernel: str, seed: int) -> list[int]:
        """The maps of a launch with arguments drawn by `seed`."""
        base = self.cubin.parameter_base(kernel)
        placed = parameters_of(self.ptx, base).get(kernel, [])
        hidden = [one for one in placed if _is_map(one)]
        if not hidden or self.cubin.host is None:
            return []
        filled = self.cubin.host.call(kernel, _packed(placed, seed))
        return [int.from_bytes(filled[p.offset : p.offset + _BYTES], "little") for p in hidden]


@dataclass
class Found:
    """What was found for one target."""

    counts: Counter[str] = field(default_factory=Counter)
    #: Different maps of tileiras'.
    theirs: set[int] = field(default_factory=set)

    def text(self) -> str:
        words = [f"{n} {word}" for word, n in sorted(self.counts.items())]
        return ", ".join([*words, f"{len(self.theirs)} different maps of tileiras"])


def main(argv: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(argv)
    theirs = tileiras.find(given.tileiras)
    wrong = 0
    kinds: dict[int, int] = {}
    for arch in given.gpu_name:
        found = Found()
        for number, (name, bytecode) in enumerate(_programs(given), 1):
            _one(found, theirs, name, bytecode, arch)
            if number % _SAY_EACH == 0:
                print(f"{arch}, {number} programs: {found.text()}", file=sys.stderr, flush=True)
        print(f"{arch}: {found.text()}", flush=True)
        wrong += sum(found.counts[word] for word in _WRONG)
        kinds |= {_kind(bits): bits for bits in sorted(found.theirs, reverse=True)}
        if given.keep is not None:
            maps = [bits.to_bytes(_BYTES, "little").hex() for bits in sorted(kinds.values())]
            given.keep.write_text(json.dumps(maps, indent=0) + "\n")
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "files", nargs="*", type=Path, help="bytecode, or folders of it, in place of the examples"
    )
    parser.add_argument("--corpus", action="store_true", help="the kernels of the test corpus")
    parser.add_argument("--gpu-name", nargs="+", default=["sm_90", "sm_100", "sm_120"])
    parser.add_argument("--tileiras", help="which tileiras, if not the installed one")
    parser.add_argument("--keep", type=Path, help="JSON file for one map of each kind of tileiras'")
    return parser


def _programs(given: argparse.Namespace) -> Iterator[tuple[str, bytes]]:
    if given.corpus:
        sys.path.insert(0, str(ROOT / "tests" / "unit" / "tile_cudatile"))
        from corpus import archive  # pyright: ignore[reportMissingImports]

        newest = archive.VERSIONS[-1]
        yield from (item for item in archive.files().items() if item[0].endswith(newest))
        return
    for path in given.files or [ROOT / "examples" / "bytecode"]:
        for file in sorted(path.rglob("*.tileirbc")) if path.is_dir() else [path]:
            yield file.stem, file.read_bytes()


def _one(found: Found, theirs: tileiras.Tileiras, name: str, bytecode: bytes, arch: str) -> None:
    """Adds one program. Ours is compiled only where tileiras' code has maps."""
    counts = found.counts
    try:
        cubin = theirs.compile(bytecode, arch)
        peer = Side(cubin.ptx if cubin.has_ptx else "", cubin)
        if not peer.makes_maps:
            counts["programs without maps of tileiras"] += 1
            return
        counts["programs with maps of tileiras"] += 1
        _round_trip(found, peer, f"{name} {arch}")
        made = tile_core.compile(bytecode, arch, opt_level=3)
        assert made.cubin is not None
        words = _compared(Side(str(made.stage("ptx")), Cubin(made.cubin)), peer, f"{name} {arch}")
    except TileError as error:
        counts["programs that one of both refuses"] += 1
        print(f"{name} {arch}: {error.message}", file=sys.stderr)
        return
    counts += words
    if not words:
        counts["programs without maps of ours"] += 1
    if words[_EQUAL] and words[_EQUAL] == words.total():
        counts["programs whose maps are all equal"] += 1


def _round_trip(found: Found, side: Side, where: str) -> None:
    """Decodes and encodes each map of a program."""
    for kernel in parameters_of(side.ptx, 0):
        for bits in (bits for seed in range(_DRAWS) for bits in side.maps(kernel, seed)):
            if bits in found.theirs:
                continue
            found.theirs.add(bits)
            if fault := differing_again(bits):
                found.counts[_NOT_AGAIN] += 1
                print(f"{where} {kernel}: {bits:#x} {fault}")


def differing_again(bits: int) -> str:
    """What is wrong with a map that is decoded and encoded again, "" if nothing is."""
    try:
        address, tensor = decode(bits.to_bytes(SIZE, "little"))
        again = [tensor.encode(address), replace(tensor, large=None).encode(address)]
    except SimError as error:
        return f"is refused: {error.message}"
    for raw in again:
        if (back := int.from_bytes(raw, "little")) != bits:
            fields = _differing(back, bits, FIELDS) or ["a bit of no field"]
            return f"becomes {back:#x}: {', '.join(fields)}"
    return ""


def _kind(bits: int) -> int:
    for name in _DRAWN:
        bits &= ~FIELDS[name].all_bits
    return bits


def _compared(ours: Side, peer: Side, where: str) -> Counter[str]:
    """How many maps of ours compare how."""
    counts: Counter[str] = Counter()
    for kernel in parameters_of(ours.ptx, 0):
        for seed in range(_DRAWS):
            for word, difference in _matched(ours.maps(kernel, seed), peer.maps(kernel, seed)):
                counts[word] += 1
                if difference:
                    print(f"{where} {kernel}: {difference}")
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
            yield _EQUAL, ""
        elif not set(fields) - {*_CHOICES, *_ROUNDS}:
            what = ["the box"] if "box_dim" in fields else []
            what += ["the swizzle"] if set(fields) & {*_CHOICES} - {"box_dim"} else []
            what += ["rounding to tf32"] if set(fields) & {*_ROUNDS} else []
            yield f"maps equal but for {' and '.join(what)}", ""
        else:
            said = [f"{f} {_value(one, f)}, not {_value(nearest, f)}" for f in fields]
            yield _DIFFER, "; ".join(said)


def _value(bits: int, name: str) -> list[int]:
    return [FIELDS[name].load(bits, at) for at in range(FIELDS[name].count)]


def _differing(one: int, two: int, names: Iterable[str]) -> list[str]:
    return [name for name in names if (one ^ two) & FIELDS[name].all_bits and name != "pixels"]


def _is_map(parameter: Parameter) -> bool:
    return parameter.hidden and parameter.size == SIZE


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

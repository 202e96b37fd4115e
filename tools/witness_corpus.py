"""Runs the corpus of cuTile kernels through this compiler, tileiras and the reference evaluator.

    python tools/witness_corpus.py --gpu-name sm_90 sm_100 --seconds 600
    python tools/witness_corpus.py --only matmul gather --variants 3

Each kernel of `tests/unit/tile_cudatile/corpus` in its newest bytecode, in the first of its
variants (`--variants` for more), on small whole numbers: both compilers' codes run in check mode,
and their arrays are compared with what the evaluator says. Programs that the evaluator calls
undefined on these inputs, or that tileiras does not compile, are counted and left out. Exits with
1 if anything differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

from tile_cudatile import read_bytecode
from tile_cudatile.tree import Entry, Module, Value
from tile_cudatile.types import F4E2M1FN, I4, I32, I64, Pointer, Scalar, Tile
from tile_fuzz.case import Argument, Case, Launch
from tile_fuzz.oracle import REFUSED, Failure, Setting, certain, examine

from tile_core.registry import default_registry

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from unit.tile_cudatile.corpus import archive  # noqa: E402  # pyright: ignore

#: Extents of an array by its rank: multiples of 16, which the kernels assume.
_SHAPES = ((), (1040,), (48, 80), (16, 16, 16), (16, 16, 16, 16))
_ELEMENTS = 4096  # of an array, where its extents do not need more
_GRID = (1, 1, 1)  # many of the kernels write one tile, whichever block runs them
#: Kernels whose difference is tileiras' own, with what it does (docs/conformance.md).
_KNOWN = dict.fromkeys(
    ("astype_float8_e8m0fnu_positive_inf", "astype_float8_e8m0fnu_zero"),
    "tileiras drops the sign of what becomes f8E8M0FNU",
)
#: Kernels whose results the language leaves open on these inputs, and why.
_OPEN = {
    "reduce": "combines by a function that is not commutative",
    "scan": "its identity is not neutral below 0",
    "scan_pairs": "its identity is not neutral above 1",
}
#: Outcomes that say nothing about the code.
_LEFT_OUT = (REFUSED, "undefined", "known")


# --- programs -------------------------------------------------------------------------------------


def newest() -> Iterator[tuple[str, Module]]:
    """Each kernel in the newest version of bytecode that it was exported in."""
    found: dict[str, tuple[tuple[int, int], bytes]] = {}
    for file, data in archive.files().items():
        name, version = file.split(".", 1)[0], (data[8], data[9])
        if name not in found or found[name][0] < version:
            found[name] = version, data
    for name, (_, data) in sorted(found.items()):
        yield name, read_bytecode(data)


def cases(module: Module, variants: int) -> Iterator[tuple[str, Case]]:
    """The kernel's first variants, each as a program of its own with a launch."""
    for entry in [e for e in module.entries if not _halves(e)][:variants]:
        alone = replace(module, entries=[entry], layout=None)
        yield entry.name, Case(alone, [Launch(entry.name, _GRID, tuple(arguments(entry)))])


def _halves(entry: Entry) -> bool:
    """Whether elements share bytes in an array, which no launch here knows."""
    kinds = [argument.type.element for argument in entry.args if isinstance(argument.type, Tile)]
    return any(isinstance(k, Pointer) and k.pointee in (F4E2M1FN, I4) for k in kinds)


def arguments(entry: Entry) -> Iterator[Argument]:
    """Arrays as cuTile passes them: address, extents, strides; other numbers are 16."""
    numbers = _extents(entry)
    for position, argument in enumerate(entry.args):
        assert isinstance(argument.type, Tile)
        element = argument.type.element
        if isinstance(element, Pointer):
            count = max(_ELEMENTS, prod(_SHAPES[_rank(entry, argument, len(_SHAPES) - 1)]))
            fill = "arange" if element.pointee in (I32, I64) else "small"  # distinct, as indices
            seed = 0 if fill == "arange" else position
            yield Argument(element.pointee.name, count, fill, seed, exact=False)
        else:
            assert isinstance(element, Scalar)
            yield Argument(element.name, value=numbers.get(position, 16))


def _extents(entry: Entry) -> dict[int, int]:
    """Position of an argument -> extent or stride: the integers behind each address."""
    kinds = [argument.type.element for argument in entry.args if isinstance(argument.type, Tile)]
    found: dict[int, int] = {}
    for position, kind in enumerate(kinds):
        if not isinstance(kind, Pointer):
            continue
        behind = position + 1
        while behind < len(kinds) and not isinstance(kinds[behind], Pointer):
            behind += 1
        rank = _rank(
            entry, entry.args[position], min((behind - position - 1) // 2, len(_SHAPES) - 1)
        )
        shape = _SHAPES[rank]
        strides = [1] * rank
        for axis in range(rank - 2, -1, -1):
            strides[axis] = strides[axis + 1] * shape[axis + 1]
        found |= dict(enumerate((*shape, *strides), position + 1))
    return found


def _rank(entry: Entry, base: Value, most: int) -> int:
    """The rank of the view that the kernel makes of an address; without one, what fits."""
    same = {base}
    for op in entry.body.walk():
        if op.name == "assume" and op.operands[0] in same:
            same.add(op.results[0])
        elif op.name == "make_tensor_view" and op.operands[0] in same:
            return min(len(op.results[0].type.shape), most)  # pyright: ignore
    return min(most, len(_SHAPES) - 1)


# --- runs -----------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(argv)
    registry, started = default_registry(), time.monotonic()
    outcomes: Counter[str] = Counter()
    wrong = 0
    for name, module in newest():
        if given.only and name not in given.only:
            continue
        for variant, case in cases(module, given.variants):
            if time.monotonic() - started > given.seconds:
                outcomes["not reached in time"] += 1
                continue
            for arch in given.gpu_name:
                settings = (Setting(arch, 3), Setting(arch, witness="tileiras"))
                failure = examine(case, settings, registry)
                if failure is not None and failure.kind == "result" and not certain(case):
                    failure = Failure("undefined", "the order is open", "")
                if name in _KNOWN and failure is not None and failure.setting == settings[1]:
                    failure = Failure("known", _KNOWN[name], "")
                if name in _OPEN and failure is not None:
                    failure = Failure("undefined", _OPEN[name], "")
                outcomes[_outcome(failure)] += 1
                if failure is not None and failure.kind not in _LEFT_OUT:
                    wrong += 1
                    print(f"{name} {variant}: {failure}", flush=True)
    for outcome, count in outcomes.most_common():
        print(f"{count:6} {outcome}")
    return 1 if wrong else 0


def _outcome(failure: Failure | None) -> str:
    if failure is None:
        return "all three agree"
    return failure.kind if failure.kind == REFUSED else f"{failure.kind}: {failure.what}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--gpu-name", nargs="+", default=["sm_90", "sm_100"])
    parser.add_argument("--only", nargs="+", help="these kernels")
    parser.add_argument("--variants", type=int, default=1, help="of each kernel")
    parser.add_argument("--seconds", type=float, default=3600.0, help="begin nothing after that")
    return parser


if __name__ == "__main__":
    sys.exit(main())

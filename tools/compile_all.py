"""Compiles every bytecode file of a folder, spread over all targets and levels.

    python tools/compile_all.py build/bytecode                 # each file once
    python tools/compile_all.py build/bytecode --turns 0 1 2   # and twice more, elsewhere
    python tools/compile_all.py build/bytecode --gpu-name sm_80 -O 0 --jobs 2

`tools/conformance.py --bytecode build/bytecode` makes such a folder of cuTile's test suite. File i
of the sorted names goes to pair i + turn of (target, level), so that every pair gets an equal part.
Prints how many compiled at each pair and every refusal; the exit code is 1 where there was one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from tile_core.target import builtin_targets

LEVELS = (0, 1, 2, 3)
Pair = tuple[str, int]
_PROGRESS = 100  # files between two signs of life


@dataclass(frozen=True)
class Outcome:
    """What became of one file at one target and level; `error` is empty where it compiled."""

    file: str
    target: str
    level: int
    milliseconds: float
    error: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(argv)
    paths = sorted(given.folder.glob("*.tileirbc"))[:: given.every]
    if not paths:
        sys.exit(f"{given.folder}: no .tileirbc files")
    pairs = list(itertools.product(given.gpu_name, given.O))
    work = [task for turn in given.turns for task in spread(paths, pairs, turn)]
    start = time.monotonic()
    outcomes = _run(work, given.jobs)
    table = render(outcomes, given.gpu_name, given.O)
    print(f"{table}\n{len(paths)} files, {len(outcomes)} compilations in "
          f"{time.monotonic() - start:.0f} s")  # fmt: skip
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(o) for o in outcomes], indent=1) + "\n")
    return 1 if any(outcome.error for outcome in outcomes) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="of .tileirbc files")
    parser.add_argument("--gpu-name", nargs="+", default=list(builtin_targets()), metavar="SM")
    parser.add_argument("-O", nargs="+", type=int, choices=LEVELS, default=LEVELS, metavar="N")
    parser.add_argument("--turns", nargs="+", type=int, default=[0], help="shifts of the pairs")
    parser.add_argument("--every", type=int, default=1, help="only each n-th file")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write every outcome there")
    return parser


def spread(paths: Sequence[Path], pairs: Sequence[Pair], turn: int) -> list[tuple[Path, str, int]]:
    """Every path with its pair of target and level: path i takes pair i + turn, in a circle."""
    circle = len(pairs)
    return [(path, *pairs[(i + turn) % circle]) for i, path in enumerate(paths)]


def compile_everywhere(
    paths: Sequence[Path], targets: Sequence[str], levels: Sequence[int], jobs: int = 1
) -> list[Outcome]:
    """Every file for every target at every level."""
    pairs = itertools.product(targets, levels)
    return _run([(path, *pair) for pair in pairs for path in paths], jobs)


def _run(work: Sequence[tuple[Path, str, int]], jobs: int) -> list[Outcome]:
    """All outcomes, in the order of the work. Every job is one warm process."""
    if jobs == 1:
        return _compile_all(work)
    shares = [work[first::jobs] for first in range(jobs)]
    made: dict[tuple[str, str, int], Outcome] = {}
    with ProcessPoolExecutor(jobs) as pool:
        for done in as_completed(pool.submit(_compile_all, share) for share in shares):
            made.update({(o.file, o.target, o.level): o for o in done.result()})
    return [made[path.stem, target, level] for path, target, level in work]


def _compile_all(work: Iterable[tuple[Path, str, int]]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for path, target, level in work:
        outcomes.append(_compile(path, target, level))
        if outcomes[-1].error:
            _say(f"{path.stem} {target} -O{level}: {outcomes[-1].error}")
        elif len(outcomes) % _PROGRESS == 0:
            _say(f"{len(outcomes)} compiled")
    return outcomes


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _compile(path: Path, target: str, level: int) -> Outcome:
    import tile_core

    begin, error = time.perf_counter(), ""
    try:
        tile_core.compile(path.read_bytes(), target, opt_level=level, keep_stages=False)
    except tile_core.diagnostics.TileError as refusal:
        error = str(refusal).splitlines()[0]
    except Exception as crash:  # a mistake of the compiler must not hide those in other files
        error = f"crash: {type(crash).__name__}: {crash}"
    return Outcome(path.stem, target, level, (time.perf_counter() - begin) * 1e3, error)


def render(outcomes: Sequence[Outcome], targets: Sequence[str], levels: Sequence[int]) -> str:
    """Compiled of tried at each pair as a Markdown table, then every error with its count."""
    tried: Counter[Pair] = Counter((o.target, o.level) for o in outcomes)
    good: Counter[Pair] = Counter((o.target, o.level) for o in outcomes if not o.error)
    rows = ["| target | " + " | ".join(f"-O{level}" for level in levels) + " |"]
    rows.append("|---" * (len(levels) + 1) + "|")
    for target in targets:
        cells = [f"{good[target, level]} of {tried[target, level]}" for level in levels]
        rows.append(f"| {target} | " + " | ".join(cells) + " |")
    errors: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.error:
            errors[outcome.error].append(outcome)
    for text, found in sorted(errors.items(), key=lambda item: -len(item[1])):
        first = found[0]
        rows.append(f"{len(found)} x {text}, as {first.file} {first.target} -O{first.level}")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())

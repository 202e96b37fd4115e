"""Our reader against those of the releases, on mutants.

    python tests/unit/tile_cudatile/differential.py [--count 1000] [--seed 1] [--write]

`--count` mutants for every installed release (`make releases`), of files of its own version.
Prints figures and the disagreements about acceptance, and exits with 1 if one of them is not
among `KNOWN`. Results are kept in `build/differential`; `--report` only prints them again. With
`--write`, `docs/bytecode-differences.md` gets them.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypedDict

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests"))

from tile_cudatile import write_bytecode  # noqa: E402
from tile_cudatile.tree import Module  # noqa: E402
from unit.tile_cudatile import samples  # noqa: E402
from unit.tile_cudatile.corpus import archive  # noqa: E402
from unit.tile_cudatile.everything import everything  # noqa: E402
from unit.tile_cudatile.mutants import (  # noqa: E402
    LIMIT,
    Mutant,
    mutants_of,
    ours,
    version_of,
)
from unit.tile_cudatile.releases import Release, Verdict, releases  # noqa: E402

#: Files of the corpus that are mutated besides `programs()`.
_KERNELS = ("float4", "reduce_pairs", "while", "raw_memory_atomics", "advanced_indexing", "if")
REPORT = ROOT / "docs" / "bytecode-differences.md"
RESULTS = ROOT / "build" / "differential"


@dataclass(frozen=True)
class Known:
    """A disagreement about acceptance that stays, by the complaint of the one that rejects."""

    who: str  # "ours" or "released": who rejects
    complaint: str  # regular expression
    reason: str
    releases: str = ""  # regular expression, of the whole name


# Of every one of these but the argument attributes, release 13.5 says what this project says.
KNOWN = (
    Known(
        "ours",
        "unused bits set in optional parameter flags",
        "checked since 13.5 in types and, since 13.4, in attributes, in files of every version",
        r"13\.[1-4]\..*",
    ),
    Known(
        "ours",
        "header has unrecognized version tag bits|public-preview bytecode",
        "checked since 13.5",
        r"13\.[1-4]\..*",
    ),
    Known(
        "ours",
        "unsupported type in bytecode for entry argument",
        "checked since 13.5; before, only tiles had to be scalars",
        r"13\.[1-4]\..*",
    ),
    Known(
        "ours",
        "entry op must have public symbol visibility",
        "checked since 13.5; before, the flag of private functions was ignored",
        r"13\.[1-4]\..*",
    ),
    Known(
        "ours",
        "f4 (view access|gather/scatter view)",
        "checked since 13.5: a view of f4 needs one static unit stride, not along the sparse one",
        r"13\.[34]\..*",
    ),
    Known(
        "ours",
        "invalid argument attributes",
        "the release takes whatever stands there for a list: it crashes on some, and reads others",
    ),
    Known("ours", "symbol name at|function name at", "checked since 13.2", r"13\.1\..*"),
    Known(
        "released",
        r"un(allowed key|known param)|value (in the range .* )?(is )?expected for|is not allowed "
        "for current Operation",
        "hints that a release does not know were errors before 13.3, and are ignored since",
        r"13\.[12]\..*",
    ),
    Known(
        "released",
        "unknown section ID: 7",
        "files before 13.3 may have a producer section since release 13.3",
        r"13\.[12]\..*",
    ),
    Known(
        "released",
        "'cuda_tile.ftof' op invalid rounding mode specified",
        "conversions to f8E8M0FNU take other rounding modes since 13.3, in files of 13.2, too",
        r"13\.2\..*",
    ),
)


class Disagreement(TypedDict):
    """About one mutant."""

    who: str  # rejects: "ours" or "released"
    complaint: str
    kind: str
    data: str  # in hexadecimal


@dataclass
class Figures:
    """What came out for one release."""

    mutants: int = 0
    accepted: int = 0  # by both
    rejected: int = 0  # by both
    same_words: int = 0  # of those
    crashed: int = 0  # the release did
    slowest: float = 0.0  # seconds, of our reader
    disagreements: list[Disagreement] = field(default_factory=list)
    words: dict[str, int] = field(default_factory=dict)  # "ours\nreleased" -> how often

    def known(self, release: str) -> dict[Known | None, list[Disagreement]]:
        """The disagreements by what is known about them."""
        found: dict[Known | None, list[Disagreement]] = {}
        for item in self.disagreements:
            found.setdefault(_known(release, item), []).append(item)
        return found

    def recheck(self) -> None:
        """Leaves out the disagreements that our reader as it is now settles."""
        for item in list(self.disagreements):
            rejected = bool(ours(bytes.fromhex(item["data"])).complaint)
            if rejected != (item["who"] == "ours"):
                self.disagreements.remove(item)
                self.rejected += rejected
                self.accepted += not rejected


def _known(release: str, item: Disagreement) -> Known | None:
    for known in KNOWN:
        if (
            known.who == item["who"]
            and re.search(known.complaint, item["complaint"])
            and re.fullmatch(known.releases or ".*", release)
        ):
            return known
    return None


def base(release: Release) -> list[bytes]:
    """Valid files of the release's version, in which one rule that changed cannot hide others."""
    major, minor = release.version
    whole = everything(release.version)
    given = [samples.sample(name) for name in samples.NAMES if name.endswith(f".{major}.{minor}")]
    given += [
        write_bytecode(Module(whole.version, whole.globals, [entry], whole.producer))
        for entry in whole.entries
    ]
    names = [f"{name}.{major}.{minor}" for name in _KERNELS]
    given += [archive.files()[name] for name in names if name in archive.files()]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "program.tileirbc"
        return [data for data in given if path.write_bytes(data) and release.verdict(path).accepted]


def compare(release: Release, seed: int, count: int) -> Figures:
    """`count` mutants before one release; those of a newer version are left out."""
    figures = Figures()
    with TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:

        def ask(item: tuple[int, Mutant]) -> tuple[Mutant, Verdict]:
            index, mutant = item
            path = Path(folder) / f"{index % 64}.tileirbc"
            path.write_bytes(mutant.data)
            try:
                return mutant, release.verdict(path)
            except subprocess.TimeoutExpired:
                return mutant, Verdict(False, complaint="takes for ever")

        made = enumerate(mutants_of(base(release), seed, count))
        wanted = (item for item in made if version_of(item[1].data) <= release.version)
        for mutant, theirs in pool.map(ask, wanted):
            _count(figures, mutant, theirs)
    return figures


def _count(figures: Figures, mutant: Mutant, theirs: Verdict) -> None:
    figures.mutants += 1
    verdict = ours(mutant.data)
    figures.slowest = max(figures.slowest, verdict.seconds)
    own, released = verdict.complaint, plain(theirs.complaint)
    if theirs.crashed:
        figures.crashed += 1
    elif theirs.accepted and not own:
        figures.accepted += 1
    elif theirs.accepted or not own:
        who, complaint = ("ours", own) if own else ("released", released)
        item = Disagreement(who=who, complaint=complaint, kind=mutant.kind, data=mutant.data.hex())
        figures.disagreements.append(item)
    else:
        figures.rejected += 1
        words = _pattern(own), _pattern(released)
        figures.same_words += words[0] == words[1]
        if words[0] != words[1]:
            key = "\n".join(words)
            figures.words[key] = figures.words.get(key, 0) + 1


def plain(complaint: str) -> str:
    """A complaint of a release without where it was found."""
    if complaint.startswith("error: "):
        return complaint.removeprefix("error: ")
    return complaint.split(": error: ", 1)[-1]


_REPLACED = (
    (re.compile(r"^error at offset \d+: "), ""),
    (re.compile(r"'[^']*<[^']*>'"), "'T'"),
    (re.compile(r"-?\d+"), "N"),
    (re.compile(r"(N, )+N"), "N.."),
)


def _pattern(complaint: str) -> str:
    """A complaint without numbers and types."""
    for pattern, by in _REPLACED:
        complaint = pattern.sub(by, complaint)
    return complaint


def report(results: dict[str, Figures], seed: int, count: int) -> Iterator[str]:
    """The page."""
    yield from (
        "# What the releases say about broken files",
        "",
        "Written by `python tests/unit/tile_cudatile/differential.py --write "
        f"--count {count} --seed {seed}`:",
        "mutants of real kernels and of files with every operation, read by this project",
        "and by each release of the compiler. Releases before 13.4 have no disassembler; their",
        "compiler tells valid programs (it compiles them, or tries to) from others.",
        "",
        "| release | mutants | both accept | both reject | in the same words | release crashes | "
        "known disagreements | others |",
        "|---|---|---|---|---|---|---|---|",
    )
    for name, f in results.items():
        known = f.known(name)
        others = len(known.get(None, ()))
        yield (
            f"| {name} | {f.mutants} | {f.accepted} | {f.rejected} | {f.same_words} | {f.crashed} "
            f"| {len(f.disagreements) - others} | {others} |"
        )
    total = sum(f.mutants for f in results.values())
    slowest = max((f.slowest for f in results.values()), default=0.0)
    yield ""
    yield f"{total} mutants; the slowest took our reader {slowest:.2f} s (limit {LIMIT:.0f} s)."
    yield from _disagreements(results)
    yield from _words(results)


def _disagreements(results: dict[str, Figures]) -> Iterator[str]:
    yield "\n## Accepted by one only\n"
    yield "| rejected by | complaint | releases | mutants | why it stays |"
    yield "|---|---|---|---|---|"
    for known in KNOWN:
        found = {n: len(items) for n, f in results.items() if (items := f.known(n).get(known))}
        names = ", ".join(found)
        pattern = known.complaint.replace("|", "\\|")
        who = "this project" if known.who == "ours" else "the release"
        yield (f"| {who} | `{pattern}` | {names} | {sum(found.values())} | {known.reason} |")


def _words(results: dict[str, Figures]) -> Iterator[str]:
    words: Counter[str] = Counter()
    for figures in results.values():
        words.update(figures.words)
    yield "\n## Rejected by both in other words\n"
    yield "Several things are wrong with most of these files, and the readers look at them in"
    yield "different orders. Numbers are `N`, types `T`; those that occurred ten times or more:\n"
    yield "| mutants | this project | the release |"
    yield "|---|---|---|"
    for pair, number in sorted(words.items(), key=lambda item: (-item[1], item[0])):
        if number >= 10:
            own, released = (text[:160].replace("|", "\\|") for text in pair.split("\n"))
            yield f"| {number} | {own} | {released} |"
    yield f"\n{words.total()} mutants in {len(words)} pairs of complaints in all."


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--release", action="append", help="only these")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    results: dict[str, Figures] = {}
    for release in releases():
        if given.release and release.name not in given.release:
            continue
        place = RESULTS / f"{release.name}-{given.seed}-{given.count}.json"
        if not given.report:
            place.write_text(json.dumps(vars(compare(release, given.seed, given.count))))
        if place.is_file():
            results[release.name] = Figures(**json.loads(place.read_text()))
            results[release.name].recheck()
    text = "\n".join(report(results, given.seed, given.count)) + "\n"
    print(text)
    if given.write:
        REPORT.write_text(text)
    unknown = [(n, d) for n, f in results.items() for d in f.known(n).get(None, ())]
    for name, item in unknown:
        print(f"{name} {item['kind']}: {item['who']}: {item['complaint']} {item['data']}")
    return int(bool(unknown))


if __name__ == "__main__":
    sys.exit(main())

"""Asks the released tools about the corpus, or about a folder of bytecode.

    python tests/unit/tile_cudatile/corpus/judge.py           # stores the verdicts in the index
    python tests/unit/tile_cudatile/corpus/judge.py FOLDER    # prints figures, stores nothing

For every file: our reader and verifier accept it, the disassembly is that of every release that
has a disassembler and reads the version, the text parses back and prints the same, and what is
written has the very bytes of the file. Compilers of the releases without a disassembler are asked
whether they accept the file. Exits with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

from tile_cudatile import (  # noqa: E402
    parse_text,
    print_text,
    read_bytecode,
    verify,
    write_bytecode,
)
from unit.tile_cudatile.corpus import archive  # noqa: E402
from unit.tile_cudatile.releases import Release, releases  # noqa: E402

from tile_core.diagnostics import TileError  # noqa: E402


def digest(text: str) -> str:
    """What the index stores of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def round_trip(data: bytes) -> str:
    """The text of a file, having checked everything that needs no other tool.

    Raises AssertionError or TileError, with what is wrong.
    """
    module = read_bytecode(data)
    verify(module)
    text = print_text(module)
    parsed = parse_text(text, version=module.version)
    assert print_text(parsed) == text, "prints otherwise after parsing"
    again = read_bytecode(write_bytecode(parsed))
    assert print_text(again) == text, "prints otherwise after parsing and writing"
    assert write_bytecode(module) == data, "writes other bytes"
    return text


def verdicts(
    path: Path, data: bytes, asked: Sequence[Release]
) -> Iterator[tuple[Release, str | None]]:
    """What each release that knows the version makes of a file: its text, or "" if it accepts the
    file and prints nothing, None if it rejects it. Releases that crash say nothing."""
    version = (data[8], data[9])
    for release in asked:
        if release.version == version or (release.version > version and release.disassembler):
            verdict = release.verdict(path)
            if not verdict.crashed:
                yield release, verdict.text if verdict.accepted else None


def judge(
    contents: dict[str, bytes],
    entries: dict[str, archive.Entry],
    asked: Sequence[Release],
    figures: Counter[str],
) -> Iterator[str]:
    """Fills in the verdicts; gives a line for each difference."""
    with TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:

        def ask(name: str) -> tuple[str, list[tuple[Release, str | None]]]:
            path = Path(folder) / name
            path.write_bytes(contents[name])
            return name, list(verdicts(path, contents[name], asked))

        for name, found in pool.map(ask, sorted(contents)):
            try:
                ours = round_trip(contents[name])
            except (AssertionError, TileError) as error:
                yield f"{name}: {error}"
                continue
            figures["read, verified, printed, parsed, written"] += 1
            for release, text in found:
                figures[f"asked {release.name}"] += 1
                if text is None or (release.disassembler and text != ours):
                    yield f"{name}: {release.name} {'rejects it' if text is None else 'differs'}"
                elif release.disassembler:
                    entries[name]["text"][release.name] = digest(text)
                    figures[f"same text as {release.name}"] += 1
                else:
                    accepted = {*entries[name]["accepted"], release.name}
                    entries[name]["accepted"] = sorted(accepted)
                    figures[f"accepted by {release.name}"] += 1


def _nothing() -> archive.Entry:
    return {"variants": [], "text": {}, "accepted": []}


def judge_all(contents: dict[str, bytes]) -> list[str]:
    """The differences, all installed releases being asked."""
    entries = {name: _nothing() for name in contents}
    return list(judge(contents, entries, releases(), Counter()))


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="of .tileirbc files")
    parser.add_argument("--release", action="append", help="ask only these")
    given = parser.parse_args()
    asked = [r for r in releases() if not given.release or r.name in given.release]
    if given.folder is None:
        contents, entries = archive.files(), archive.index()
    else:
        contents = {path.name: path.read_bytes() for path in given.folder.rglob("*.tileirbc")}
        entries = {name: _nothing() for name in contents}
    figures: Counter[str] = Counter()
    differences = list(judge(contents, entries, asked, figures))
    if given.folder is None:
        archive.write_index(entries)
    versions = Counter(f"{data[8]}.{data[9]}" for data in contents.values())
    print("files:", ", ".join(f"{n} of {v}" for v, n in sorted(versions.items())))
    for line in (*(f"{count:6} {what}" for what, count in sorted(figures.items())), *differences):
        print(line)
    print(f"{len(differences)} differences")
    return int(bool(differences))


if __name__ == "__main__":
    sys.exit(main())

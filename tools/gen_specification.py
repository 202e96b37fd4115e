"""Writes docs/specification.md from the roster, docs/roster/*.toml (see `roster.py`).

`python tools/gen_specification.py` writes the page; with `--check` it exits with 1 if the page is
not up to date or the roster is wrong, and says what.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import roster
from roster import KINDS, STATES, Area, Group, Row

from tile_core.registry import Registry

PAGE = roster.ROOT / "docs" / "specification.md"

INTRODUCTION = """\
# The specification, name by name

<!-- Written by tools/gen_specification.py from docs/roster; do not edit. -->

What the specification of Tile IR's compiler names, and what becomes of it here. A name is

* **tested**: it works under this name (a diagnostic: in these words, `{}` for a value), and the
  test at its side fails if it does not;
* **renamed**: it works under a name of this project, or is said in its words;
* **verified**: its types and rules are checked, and the test at its side fails if they are not, but
  nothing makes code of it;
* **declared**: it can be written, parsed and printed, but no test covers it, for the reason given;
* **refused**: it is met with an error that names it;
* **absent**: it is not there, for the reason given (a diagnostic: nobody says these words).

A test checks that each row has its test or its reason, that the test exists and mentions the name,
and that no registered operation, pass or option is left out
(`python tools/gen_specification.py --check` does the same). The data are in `docs/roster`.
"""


def page(found: list[Area]) -> str:
    """The whole of docs/specification.md."""
    lines = [INTRODUCTION, *_counts(found)]
    for area in found:
        lines += ["", f"## {area.title}"]
        for group in area.groups:
            lines += ["", f"### {group.title}", "", *_table(group)]
    return "\n".join(lines) + "\n"


def _counts(found: list[Area]) -> Iterator[str]:
    theirs = [g for area in found for g in area.groups if not g.own]
    yield "## In numbers"
    yield ""
    yield f"| | {' | '.join(STATES)} | all |"
    yield f"|---|{'---:|' * (len(STATES) + 1)}"
    for kind in KINDS:
        yield _line(
            "passes" if kind == "pass" else f"{kind}s",
            (row for g in theirs if g.kind == kind for row in g.rows),
        )
    for area in found:
        rows = [row for g in area.groups if not g.own for row in g.rows]
        if rows:
            yield _line(area.title, rows)
    yield _line("**all**", (row for g in theirs for row in g.rows))
    own = sum(len(g.rows) for area in found for g in area.groups if g.own)
    yield ""
    yield f"Besides, there are {own} names that only this project has."


def _line(title: str, rows: Iterable[Row]) -> str:
    counts = Counter(row.state for row in rows)
    numbers = [counts[state] for state in STATES]
    return f"| {title} | {' | '.join(map(str, [*numbers, sum(numbers)]))} |"


def _table(group: Group) -> Iterator[str]:
    yield "| name | state | test or reason |"
    yield "|---|---|---|"
    for row in group.rows:
        yield f"| {_code(row.name)} | {row.state} | {_about(row)} |"


def _about(row: Row) -> str:
    test = f"`{row.test}`" if row.test else ""
    as_ours = f"as {_code(row.ours)}" if row.state == "renamed" else ""
    return "; ".join(filter(None, (as_ours, _cell(row.why), test)))


def _code(text: str) -> str:
    """Code in a cell of a table; it may hold backquotes and bars."""
    ticks = "``" if "`" in text else "`"
    space = " " if text.startswith("`") or text.endswith("`") or text != text.strip() else ""
    return f"{ticks}{space}{_cell(text)}{space}{ticks}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "\\n")


def main(arguments: list[str]) -> int:
    """Write or check; the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python tools/gen_specification.py [--check]", file=sys.stderr)
        return 2
    found = roster.areas()
    wrong = list(roster.problems(found, Registry.discover()))
    text = page(found)
    if not arguments:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
        wrong.append("docs/specification.md is not up to date: run tools/gen_specification.py")
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""docs/features.md, from docs/features.toml: each row with a command, which this runs.

python tools/features.py             # write the page
python tools/features.py --run       # run every command, and say which do not do what they say
python tools/features.py --run --only remarks C7
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "features.toml"
PAGE = ROOT / "docs" / "features.md"
SECONDS = 600
_FILES = {"kernel": "vector_add_f32", "product": "matmul_f16", "loop": "saxpy_loop_f16"}


@dataclass(frozen=True)
class Row:
    """One promise, and the command that keeps it."""

    kind: str  # "feature", "pain", "finding", "flag"
    name: str
    run: str
    text: str = ""
    code: int = 0
    shows: str = ""
    needs: str = ""


def rows() -> list[Row]:
    """All rows, in the order of the file."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    values = table["arguments"]
    found: list[Row] = []
    for kind in ("feature", "pain", "finding", "flag"):
        for record in table.get(kind, ()):
            run = re.sub(r"\{([A-Z]+)\}", lambda match: values[match[1]], record["run"])
            found.append(Row(kind, **(record | {"run": run})))
    return found


# --- running --------------------------------------------------------------------------------------


def prepared(folder: Path) -> dict[str, str]:
    """Put the files that commands name into `folder`; the environment to run them in."""
    for name, example in _FILES.items():
        source = ROOT / "examples" / "bytecode" / f"{example}.tileirbc"
        shutil.copy(source, folder / f"{name}.tileirbc")
    (folder / "examples").symlink_to(ROOT / "examples")
    tools = str(Path(sys.executable).parent)
    return {
        **os.environ, "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', '')}",
        "TILEC_CACHE_DIR": str(folder / "cache"), "TILEC_CACHE": "on", "TILEC_SERVER": "off",
        "NO_COLOR": "1", "COLUMNS": "150",
    }  # fmt: skip


def problem_of(row: Row, folder: Path, environment: dict[str, str]) -> str:
    """Run a row's command; what is wrong with what it did, empty if nothing."""
    done = subprocess.run(
        ["bash", "-c", row.run], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, errors="replace", timeout=SECONDS,
    )  # fmt: skip
    said = done.stdout + done.stderr
    if done.returncode != row.code:
        return f"exit code {done.returncode}, not {row.code}: {said[-600:]}"
    if "Traceback (most recent call last)" in said:
        return f"an exception: {said[-600:]}"
    if not re.search(row.shows, said):
        return f"no {row.shows!r} in: {said[-600:]}"
    return ""


def _run(only: list[str]) -> int:
    wrong = 0
    for row in rows():
        if only and not any(word.lower() in f"{row.kind} {row.name}".lower() for word in only):
            continue
        if row.needs and find_spec(row.needs) is None:
            print(f"not run, {row.needs} is not installed: {row.name}", flush=True)
            continue
        with tempfile.TemporaryDirectory() as name:
            problem = problem_of(row, Path(name), prepared(Path(name)))
        wrong += bool(problem)
        print(f"{'WRONG' if problem else 'ok':6}{row.kind}: {row.name} {problem}", flush=True)
    return int(wrong > 0)


# --- the page -------------------------------------------------------------------------------------


def page() -> str:
    """The text of docs/features.md."""
    parts = [_HEAD]
    for kind, title, columns in _SECTIONS:
        parts.append(f"\n## {title}\n\n| {columns} | |\n|---|---|\n")
        parts += [_line(row) for row in rows() if row.kind == kind]
    return "".join(parts)


def _line(row: Row) -> str:
    said = [row.text] if row.text else []
    command = row.run.replace("|", "\\|")
    return f"| {row.name} | {'; '.join([*said, f'`{command}`'])} |\n"


_HEAD = """\
# What it does, feature by feature

Lists of what people who work with tile compilers ask for, each with a command that shows it here.
`python tools/features.py --run` runs every one of them, and looks at its exit code and at what it
prints; the page is made of `docs/features.toml`.
"""
_SECTIONS = (
    ("feature", "Features", "feature"),
    ("pain", "Pains", "what hurts"),
    ("finding", "What new users found", "finding"),
    ("flag", "Options of `tileiras` 13.5", "option"),
)


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or run the commands."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--run", action="store_true", help="run the commands")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="rows with a word")
    options = parser.parse_args(arguments)
    if options.run:
        return _run(options.only)
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Ask the released tool about every command line, and write down what it says.

python tests/unit/tile_dropin/record.py path/to/nvidia/cu13/bin/tileiras
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.command_lines import command_lines, write_inputs

RECORDED = Path(__file__).with_name("recorded.json")


def ask(tool: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    """What `tool` does with `arguments`, in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        before = {path.name for path in folder.iterdir()}
        done = subprocess.run([tool, *arguments], cwd=folder, capture_output=True, timeout=60)
        made = sorted({path.name for path in folder.iterdir()} - before)
    return {
        "arguments": list(arguments),
        "code": done.returncode,
        "out": _text(done.stdout, tool),
        "err": _text(done.stderr, tool),
        "made": made,
    }


def _text(data: bytes, tool: str) -> str:
    if data.startswith(b"\x7fELF"):
        return "ELF"
    text = data.decode("utf-8", errors="replace")
    # The tool repeats how it was called.
    return text.replace(tool, "tileiras")


def main() -> None:
    """Record all command lines."""
    tool = str(Path(sys.argv[1]).resolve())
    version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
    answers = [ask(tool, line) for line in command_lines()]
    texts = sorted({text for answer in answers for text in (answer["out"], answer["err"])})
    for answer in answers:
        answer |= {key: texts.index(answer[key]) for key in ("out", "err")}
    lines = ",\n".join(json.dumps(answer) for answer in answers)
    head = f'{{"version": {json.dumps(version)},\n"texts": {json.dumps(texts, indent=0)},\n'
    RECORDED.write_text(f'{head}"answers": [\n{lines}\n]}}\n')
    print(f"{len(answers)} command lines")


if __name__ == "__main__":
    main()

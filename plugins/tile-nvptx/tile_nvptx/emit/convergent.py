"""Inline assembly that the threads of a warp have to reach together, told to LLVM.

MLIR has no word for it, and without one LLVM may copy such a statement into both arms of a branch
that only some threads of a warp take: half a warp then waits for the other half, which waits at the
other copy. A wait for an mbarrier is no such statement, but what waits in one arm may go first, in
front of what ends its wait in the other.
"""

from __future__ import annotations

import re

#: Of the warp (`tcgen05.ld.sync.aligned`, `mma.sync`, `shfl.sync`) or of the block (`bar.sync`);
#: waits for an mbarrier.
_COLLECTIVE = re.compile(
    r"\.(?:sync|aligned)\b|\b(?:bar|barrier)\.|\bmbarrier\.(?:try|test)_wait\b"
)
_ASSEMBLY = re.compile(r'^ +(?:%[^ ]+ = )?(?:tail )?call [^"\n]*\basm [^"\n]*"([^"]*)".*$', re.M)
_HEAD = re.compile(r'^define [^@\n]*@("[^"]*"|[^\s(]+)\(', re.M)
_TAIL = re.compile(r"(?:,? ![^()\n]*| #\d+)*$")


def marked(text: str) -> str:
    """LLVM IR whose statements of that kind are `convergent`, and so are functions with one."""
    between, functions = _parts(text)
    bodies = {
        name: _ASSEMBLY.sub(_call, body) if " asm " in body else body for name, body in functions
    }
    more = {name for name, body in functions if bodies[name] != body}
    known = set[str]()
    while more:
        known |= more
        called = [f"@{name}(" for name in more]
        more = {
            name
            for name, body in bodies.items()
            if name not in known and any(call in body for call in called)
        }
    done = [_function(body) if name in known else body for name, body in bodies.items()]
    return "".join(part for pair in zip(between, (*done, ""), strict=True) for part in pair)


def _parts(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """What stands between functions, and the functions, by name: one more of the former."""
    between: list[str] = []
    functions: list[tuple[str, str]] = []
    done = 0
    while head := _HEAD.search(text, done):
        end = text.find("\n}\n", head.end())
        end = len(text) if end < 0 else end + len("\n}")
        between.append(text[done : head.start()])
        functions.append((head[1], text[head.start() : end]))
        done = end
    return [*between, text[done:]], functions


def _call(found: re.Match[str]) -> str:
    line = found[0]
    if not _COLLECTIVE.search(found[1]):
        return line
    end = _TAIL.search(line)
    assert end is not None, "may be empty"
    return f"{line[: end.start()]} convergent{line[end.start() :]}"


def _function(text: str) -> str:
    """Attributes stand behind the parameters, before those of a group, of debug data, the body."""
    head, line, rest = text.partition("\n")
    opened = re.sub(r"((?: #\d+)?(?: !\w+ !\d+)*) \{$", r" convergent\1 {", head)
    return f"{opened}{line}{rest}"

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
_FUNCTION = re.compile(r'^define [^@\n]*@("[^"]*"|[^\s(]+)\(.*?^}$', re.M | re.S)
_CALLED = re.compile(r'\bcall [^@"\n]*@("[^"]*"|[^\s(]+)\(')
_TAIL = re.compile(r"(?:,? ![^()\n]*| #\d+)*$")


def marked(text: str) -> str:
    """LLVM IR whose statements of that kind are `convergent`, and so are functions with one."""
    text = _ASSEMBLY.sub(_call, text)
    known = {found[1] for found in _FUNCTION.finditer(text) if _has_marked(found[0])}
    if not known:
        return text
    callers = {found[1]: set(_CALLED.findall(found[0])) for found in _FUNCTION.finditer(text)}
    while more := {name for name, of in callers.items() if of & known} - known:
        known |= more
    return _FUNCTION.sub(lambda found: _function(found, known), text)


def _call(found: re.Match[str]) -> str:
    line = found[0]
    if not _COLLECTIVE.search(found[1]):
        return line
    end = _TAIL.search(line)
    assert end is not None, "may be empty"
    return f"{line[: end.start()]} convergent{line[end.start() :]}"


def _has_marked(function: str) -> bool:
    return " convergent" in function and any(
        _COLLECTIVE.search(found[1]) for found in _ASSEMBLY.finditer(function)
    )


def _function(found: re.Match[str], known: set[str]) -> str:
    """Attributes stand behind the parameters, before those of a group, of debug data, the body."""
    if found[1] not in known:
        return found[0]
    head, line, rest = found[0].partition("\n")
    opened = re.sub(r"((?: #\d+)?(?: !\w+ !\d+)*) \{$", r" convergent\1 {", head)
    return f"{opened}{line}{rest}"

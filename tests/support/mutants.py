"""Kernels with one synchronisation removed or changed, each of which has to be caught."""

from __future__ import annotations

import re
from collections.abc import Iterator

_REMOVED = (
    "barrier_wait", "barrier_arrive", "barrier_expect", "sync", "fence", "async_wait",
    "barrier_init",
)  # fmt: skip
_OP = re.compile(
    r'^(?P<head>\s*)(?:(?P<result>%\w+) = )?"nv_tileas\.(?P<name>\w+)"\((?P<operands>[^)]*)\)'
)


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """(what was done, the module) for every single change to a module of barriers.

    Waits, arrivals, expected bytes, meetings, fences and waits for groups are left out; commits of
    groups are, too; byte counts and arrivals are one too high and one too low; phases are turned
    and constant.
    """
    lines = text.split("\n")
    seen: dict[str, int] = {}
    for at, line in enumerate(lines):
        match = _OP.match(line)
        if match is None:
            continue
        name = match["name"]
        seen[name] = seen.get(name, 0) + 1
        for done, instead in _changes(line, match):
            yield (
                f"{name} {seen[name]} {done}",
                "\n".join([*lines[:at], *instead, *lines[at + 1 :]]),
            )


def _changes(line: str, match: re.Match[str]) -> Iterator[tuple[str, list[str]]]:
    name, head = match["name"], match["head"]
    if name in _REMOVED and match["result"] is None:
        yield "removed", []
    if name == "async_commit_group":
        yield (
            "removed",
            [f'{head}{match["result"]} = "nv_tileas.create_none"() : () -> !nv_tileas.async_token'],
        )
    if name == "barrier_expect":
        size = int(re.search(r"bytes = (\d+)", line)[1])  # type: ignore[index]
        for other in (size - 16, size + 16):
            yield f"of {other} bytes", [line.replace(f"bytes = {size}", f"bytes = {other}")]
    if name == "async_wait" and "pending = 0" in line:
        yield "that leaves one", [line.replace("pending = 0", "pending = 1")]
    if name == "barrier_arrive" and 'kind = "cp.async"' in line:
        yield "at once", [line.replace('kind = "cp.async"', 'kind = "generic"')]
    if name == "barrier_wait":
        yield from _phases(line, match)


def _phases(line: str, match: re.Match[str]) -> Iterator[tuple[str, list[str]]]:
    head, phase = match["head"], match["operands"].split(", ")[2]
    wrong = line.replace(f", {phase})", ", %mutant)", 1)
    yield "of a constant phase", [f"{head}%mutant = arith.constant 0 : i32", wrong]
    yield (
        "of the other phase",
        [
            f"{head}%unit = arith.constant 1 : i32",
            f"{head}%mutant = arith.xori {phase}, %unit : i32",
            wrong,
        ],
    )

"""PTX with one instruction less, which has to be caught; for modules see `mutants.py`."""

import re
from collections.abc import Callable, Iterator

from tile_sim import SimError

#: Orders in which the simulator lets threads and copies go on.
SCHEDULES = ("late", "early", "random")


def is_caught(attempt: Callable[[str], object]) -> bool:
    """Whether `attempt` fails under some schedule: it launches a program and compares results."""
    for schedule in SCHEDULES:
        try:
            attempt(schedule)
        except (AssertionError, SimError):
            return True
    return False


def without(text: str, instruction: str) -> list[str]:
    """The program as often as it has the instruction, each time without one of them."""
    places = [match.span() for match in re.finditer(instruction, text)]
    return [text[:start] + text[end:] for start, end in places]


def without_meetings(text: str) -> list[str]:
    """The program as often as the blocks of its cluster meet, each time without one meeting: what
    waits there, and what arrives before, which may stand further up, or in several agents.
    """
    meetings: list[list[tuple[int, int]]] = [[]]
    for half in re.finditer(r"barrier\.cluster\.(arrive|wait)[^;]*;", text):
        meetings[-1].append(half.span())
        if half[1] == "wait":
            meetings.append([])
    assert not meetings.pop(), "somebody waits for all who arrive"
    broken: list[str] = []
    for places in meetings:
        kept, at = [], 0
        for start, end in places:
            kept.append(text[at:start])
            at = end
        broken.append("".join([*kept, text[at:]]))
    return broken


def wrong_waits(text: str) -> Iterator[str]:
    """The program with each wait for a phase of an mbarrier dropped, and for the other phase.

    Those of fresh barriers are left out: before the first product there is nothing to wait for.
    """
    pattern = r"mbarrier\.try_wait\.parity\.shared\.b64 (%\w+), (\[[^\]]*\]), (%\w+);"
    found = list(re.finditer(pattern, text))
    assert found
    for one in found:
        if re.search(rf"mov\.b32 \t{one[3]}, 1;", text):
            continue
        dropped = f"setp.eq.u32 {one[1]}, 0, 0;"
        other = (
            f"{{ .reg .b32 wrong; xor.b32 wrong, {one[3]}, 1; "
            f"mbarrier.try_wait.parity.shared.b64 {one[1]}, {one[2]}, wrong; }}"
        )
        for instead in (dropped, other):
            yield text[: one.start()] + instead + text[one.end() :]

"""PTX with one instruction less, which has to be caught; for modules see `mutants.py`."""

import re


def without(text: str, instruction: str) -> list[str]:
    """The program as often as it has the instruction, each time without one of them."""
    places = [match.span() for match in re.finditer(instruction, text)]
    return [text[:start] + text[end:] for start, end in places]

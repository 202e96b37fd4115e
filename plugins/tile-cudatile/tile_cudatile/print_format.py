"""The formats of `print_tko`."""

import re

#: A conversion as the language defines it: up to the first of these letters, which is group 2;
#: group 1 is what stands before it.
CONVERSION = re.compile(r"%([^diuoxXeEfFgGaAcsSpn%]*)([diuoxXeEfFgGaAcsSpn%])")


def shows_value(match: re.Match[str]) -> bool:
    """Whether a conversion takes an operand: `%%` does not."""
    return match[2] != "%"

"""What `--help` and its three sisters print."""

from __future__ import annotations

from tile_dropin.options import ASSEMBLER, GENERIC, OPTIONS, REMARKS, Option

OVERVIEW = "tileiras: tilec's assembler of CUDA Tile IR"


def help_text(*, hidden: bool, categories: bool) -> str:
    """The options in columns: as one list, or under the headings of their categories."""
    # LLVM's one list does not mention itself.
    left_out = () if categories or hidden else ("help-list",)
    shown = sorted(
        (o for o in OPTIONS.values() if hidden or not (o.hidden or o.name in left_out)),
        key=lambda o: o.name,
    )
    width = max(len(_left(option)) for option in shown)
    head = f"OVERVIEW: {OVERVIEW}\n\nUSAGE: tileiras [options] <tile bytecode file>\n\nOPTIONS:\n"
    if not categories:
        return head + "".join(_lines(option, width) for option in shown)
    parts = [head]
    for category in (GENERIC, ASSEMBLER, REMARKS):
        about = "Filter remarks by category.\n" if category == REMARKS else ""
        parts.append(f"\n{category}:\n{about}\n")
        parts += [_lines(option, width) for option in shown if option.category == category]
    return "".join(parts)


def _left(option: Option) -> str:
    dashes = "-" if len(option.name) == 1 else "--"
    value = f"<{option.value}>" if option.value else ""
    between = " " if value and len(option.name) == 1 else "=" if value else ""
    return f"{dashes}{option.name}{between}{value}"


def _lines(option: Option, width: int) -> str:
    lines = [f"  {_left(option):{width}} - {option.help}\n"]
    if option.alias is None:
        lines += [f"    {'=' + name:{width - 2}} -   {about}\n" for name, about in option.choices]
    return "".join(lines)

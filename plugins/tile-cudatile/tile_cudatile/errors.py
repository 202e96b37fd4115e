"""What can be wrong with a program that is read."""

from __future__ import annotations

from tile_core.diagnostics import InputError


class BytecodeError(InputError):
    """Bytes that are not a valid Tile IR program.

    `lines` holds the messages from the innermost level of the format outwards, in the order in
    which the reference reader reports them. The first is the cause.
    """

    def __init__(self, *lines: str) -> None:
        super().__init__(lines[0] if lines else "failed to read Tile IR bytecode")
        self.lines = list(lines)

    def within(self, line: str) -> BytecodeError:
        """Adds the message of an enclosing level; returns self."""
        self.lines.append(line)
        self.message = self.lines[0]
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), tuple(self.lines))

    def render(self) -> str:
        """One `error:` line per level."""
        return "\n".join(f"error: {line}" for line in self.lines or [self.message])


class VerifyError(BytecodeError):
    """A program that breaks a rule of the language."""

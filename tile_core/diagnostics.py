"""Errors that reach a user, and the exit codes they carry.

The codes are those of the `tileiras` command line, so that a drop-in can pass them on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Self


class ExitCode(IntEnum):
    """Process exit codes, as `tileiras` 13.5 uses them."""

    OK = 0
    USAGE = 1  # options, unreadable input file
    CONFIGURATION = 2  # target, -O, -g with -O, unwritable output, pipeline files, plugins
    INPUT = 3  # not TileIR bytecode, or broken
    COMPILE = 5  # anything after a valid input was accepted


@dataclass(frozen=True)
class SourceLocation:
    """A place in a text file; `line` and `column` count from 1, 0 is unknown."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")


class TileError(Exception):
    """What was wrong, where, why, and what to do.

    `message` is one line in MLIR's wording (lower case, no full stop). `where` names the
    place: a source location, an operation, or both. `notes` explain, `hint` says what to do.
    `also` are errors of other places that were found in the same run.
    """

    exit_code: ExitCode = ExitCode.COMPILE

    def __init__(
        self,
        message: str,
        *,
        where: SourceLocation | str | None = None,
        notes: tuple[str, ...] = (),
        hint: str | None = None,
        exit_code: ExitCode | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.notes = notes
        self.hint = hint
        self.also: tuple[TileError, ...] = ()
        if exit_code is not None:
            self.exit_code = exit_code

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders (the code generation worker): keep every field.
        return (
            _rebuild,
            (
                type(self),
                self.message,
                self.where,
                self.notes,
                self.hint,
                self.exit_code,
                self.also,
            ),
        )

    def every(self) -> Iterator[TileError]:
        """This error and those that it carries."""
        yield self
        for error in self.also:
            yield from error.every()

    def noted(self, note: str) -> Self:
        """The same error with one more note."""
        self.notes = (*self.notes, note)
        return self

    def render(self) -> str:
        """The error as `loc(...): error: message`, then notes, the hint, and further errors."""
        place = ""
        if isinstance(self.where, SourceLocation):
            place = f'loc("{self.where.file}":{self.where.line}:{self.where.column}): '
        elif self.where:
            place = f"{self.where}: "
        lines = [f"{place}error: {self.message}"]
        lines += [f"{place}note: {note}" for note in self.notes]
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join([*lines, *(error.render() for error in self.also)])


def _rebuild(cls, message, where, notes, hint, exit_code, also=()) -> TileError:
    error = cls(message, where=where, notes=notes, hint=hint, exit_code=exit_code)
    error.also = also
    return error


class UsageError(TileError):
    """A command line that makes no sense, or a file that cannot be read."""

    exit_code = ExitCode.USAGE


class ConfigurationError(TileError):
    """A target, pipeline, plugin or output that cannot be used."""

    exit_code = ExitCode.CONFIGURATION


class InputError(TileError):
    """Bytes or text that are not a valid program."""

    exit_code = ExitCode.INPUT


class CompileError(TileError):
    """A valid program that could not be compiled."""

    exit_code = ExitCode.COMPILE


def nearest(name: str, known: list[str] | tuple[str, ...]) -> str | None:
    """The known name closest to `name`, for "did you mean"; None if nothing is close."""
    from difflib import get_close_matches

    found = get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return found[0] if found else None

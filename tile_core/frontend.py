"""What a reader of an input format is given, and how an input finds its reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tile_core.blame import internal_error
from tile_core.diagnostics import InputError, SourceLocation, TileError

if TYPE_CHECKING:
    from tile_core.mlir import ir
    from tile_core.registry import Entry, Registry
    from tile_core.session import Session
    from tile_core.target import Target

_MLIR_BYTECODE = b"ML\xefR"
_SPACES = dict.fromkeys(map(ord, "\t\r\n\f"))


@dataclass(frozen=True)
class FrontendContext:
    """What a front end knows besides the bytes. The MLIR context is current while it reads."""

    target: Target
    name: str = "-"  # of the input, for messages
    options: Mapping[str, Any] = field(default_factory=dict)
    #: What the reader left: name, operation, and the result that passes accept about it.
    left: list[tuple[str, ir.Operation, Any]] = field(default_factory=list)

    def leave(self, name: str, op: ir.Operation, value: Any) -> None:
        """Keep what the reader knows of `op` for a pass that accepts `name`, as passes publish what
        they know; a pass before that one drops it unless it preserves it.
        """
        self.left.append((name, op, value))


def read_input(data: bytes, cx: FrontendContext, session: Session) -> ir.Module:
    """The module of `data`: by a front end whose magic it starts with, else as textual MLIR.

    Raises:
        InputError: it is neither, or broken.
    """
    registry = session.registry
    entry = registry.frontend_for(data)
    if entry is not None:
        own = [e.lazy.name for e in registry.entries("dialect") if e.plugin == entry.plugin]
        session.load_dialects(own)
        with session.context:
            return _read_with(entry, data, cx, registry)
    text = _as_text(data)
    if text is None:
        raise _unknown_format(data, cx.name, registry)
    try:
        return session.parse(text)
    except InputError as error:
        if isinstance(error.where, SourceLocation) and error.where.file == "-":
            where = error.where
            error.where = SourceLocation(cx.name, where.line, where.column)
        raise error.noted(
            "the input does not start as TileIR bytecode, so it was read as textual MLIR"
        ) from None


def read_text(text: str, cx: FrontendContext, session: Session) -> ir.Module:
    """The module of a text: in the form that a front end reads, or MLIR.

    Raises:
        InputError: it is neither, or broken; lines of MLIR are those of a file "-".
    """
    data = text.encode()
    if session.registry.frontend_for(data) is not None:
        return read_input(data, cx, session)
    return session.parse(text)


def check_format(data: bytes, name: str, registry: Registry) -> None:
    """Look at how the input starts, before anything is loaded to read it.

    Raises:
        InputError: no front end reads it, and it is not text.
    """
    if registry.frontend_for(data) is None and _as_text(data) is None:
        raise _unknown_format(data, name, registry)


def _read_with(entry: Entry, data: bytes, cx: FrontendContext, registry: Registry) -> ir.Module:
    from tile_core.mlir import ir
    from tile_core.session import from_mlir

    read = registry.load("frontend", entry.lazy.name)
    try:
        return read(data, cx)
    except TileError:
        raise
    except ir.MLIRError as error:
        raise from_mlir(error, InputError, "the program is not valid") from None
    except Exception as error:
        what, hint = f"reader '{entry.lazy.name}'", ", or the input is broken"
        raise internal_error(
            what, error, registry, owner=entry.plugin, kind=InputError, hint=hint
        ) from error


def _as_text(data: bytes) -> str | None:
    """`data` as text, if it looks like some."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    plain = text.strip() and text.translate(_SPACES).isprintable()
    return text if plain else None


def _unknown_format(data: bytes, name: str, registry: Registry) -> InputError:
    message = "input does not correspond to Tile IR bytecode"
    if data.startswith(_MLIR_BYTECODE):
        message += " (it looks like MLIR bytecode instead)"
    readers = ", ".join(registry.names("frontend")) or "none; install tile-cudatile"
    notes = (f"the input is empty: '{name}'",) if not data else ()
    return InputError(message, notes=(*notes, f"installed readers: {readers}"))

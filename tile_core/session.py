"""An MLIR context with the dialects of a registry, kept between compilations of one thread."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tile_core import mlir_substitutes
from tile_core.blame import internal_error
from tile_core.diagnostics import ConfigurationError, InputError, TileError
from tile_core.locations import source_location
from tile_core.mlir import ir, passmanager
from tile_core.nesting import check_nesting

if TYPE_CHECKING:
    from tile_core.registry import Registry

#: A context keeps every type, attribute and location it ever saw. After this many programs it is
#: replaced, which costs 10 ms and bounds the memory of a long-lived process.
PROGRAMS_PER_CONTEXT = 256

_kept = threading.local()

#: Declaring dialects writes into their Python classes, which all contexts share.
_declaring = threading.Lock()


class Session:
    """A context, and what was loaded into it. Not to be shared between threads."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.context = ir.Context()
        # One thread works on a context at a time; without its lock, uniquing is faster.
        self.context.enable_multithreading(False)
        self.programs = 0
        self._dialects: set[str] = set()
        self._native: dict[str, Any] = {}

    def load_dialects(self, names: Iterable[str]) -> None:
        """Load registered dialects; names that no plugin has are MLIR's own, or an error.

        Raises:
            ConfigurationError: neither a plugin nor MLIR has the dialect.
        """
        for name in names:
            if name in self._dialects:
                continue
            if self.registry.has("dialect", name):
                with _declaring, self.context:
                    self.registry.load("dialect", name)()
            else:
                self._load_upstream(name)
            self._dialects.add(name)

    def _load_upstream(self, name: str) -> None:
        try:
            self.context.dialects[name]
        except (IndexError, KeyError, RuntimeError, ValueError) as error:
            self.registry.entry("dialect", name)
            raise AssertionError(name) from error

    def load_all_dialects(self) -> None:
        """Load every dialect that a plugin registers, as textual input may use any."""
        self.load_dialects(self.registry.names("dialect"))

    def native(self, anchor: str, text: str) -> Any:
        """A pass manager that runs upstream passes `text` on operations called `anchor`.

        Raises:
            ConfigurationError: MLIR has no such pass, or the pass no such option.
        """
        pipeline = f"{anchor}({text})"
        if pipeline not in self._native:
            with self.context:
                self._native[pipeline] = _parse_native(pipeline, text)
        return self._native[pipeline]

    def parse(self, text: str) -> ir.Module:
        """The module that MLIR `text` spells; its locations call the file "-".

        Raises:
            InputError: it spells none.
        """
        check_nesting(text)
        self.load_all_dialects()
        with self.context:
            try:
                module = _parsed(text)
            except ir.MLIRError as error:
                raise from_mlir(error, InputError, "cannot parse the module") from None
            except Exception as error:  # of a verifier, which is Python
                what, owner = "a verifier, on the text", "the plugin whose operation it is"
                raise internal_error(
                    what, error, self.registry, owner=owner, kind=InputError
                ) from error
            for entry in self.registry.entries("text-check"):
                self.registry.load("text-check", entry.lazy.name)(module)
        return module


def _parsed(text: str) -> ir.Module:
    """The module; where MLIR cannot read what it has written, with that in another form."""
    try:
        return ir.Module.parse(text)
    except ir.MLIRError as error:
        other = mlir_substitutes.readable(text)
        if other == text:
            raise
        try:
            return ir.Module.parse(other)
        except ir.MLIRError as second:
            # That form is not this version's, so the first error has another cause.
            raise error if mlir_substitutes.REWRITTEN in str(second) else second from None


def _parse_native(pipeline: str, text: str) -> Any:
    try:
        manager = passmanager.PassManager.parse(pipeline)
    except ValueError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = lines[0].partition("error: ")[2] or lines[0]
        raise ConfigurationError(f"MLIR does not accept the pass '{text}': {reason}") from error
    manager.enable_verifier(False)  # the runner verifies, where it is asked to
    return manager


@contextmanager
def session_of(registry: Registry) -> Iterator[Session]:
    """This thread's session for `registry`, renewed from time to time.

    A compilation that starts inside another one gets a session of its own.
    """
    store: dict[int, Session] = _kept.__dict__.setdefault("sessions", {})
    session = store.pop(id(registry), None)
    if (
        session is None
        or session.registry is not registry
        or session.programs >= PROGRAMS_PER_CONTEXT
    ):
        session = Session(registry)
    session.programs += 1
    try:
        yield session
    finally:
        store[id(registry)] = session


def from_mlir(error: ir.MLIRError, kind: type[TileError], fallback: str) -> TileError:
    """A `TileError` with MLIR's own words and place."""
    diagnostics = list(error.error_diagnostics)
    if not diagnostics:
        lines = str(error).splitlines()
        return kind(lines[0].rstrip(":") if lines else fallback)
    first = diagnostics[0]
    notes = [note.message for note in first.notes]
    notes += [diagnostic.message for diagnostic in diagnostics[1:]]
    return kind(first.message, where=source_location(first.location), notes=tuple(notes))

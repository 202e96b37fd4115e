"""Signs of life on a terminal: nothing where the output is no terminal, nothing for two seconds."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Any, Self

#: Seconds without a word; what ends before shows nothing.
PATIENCE = 2.0


class Progress:
    """`with Progress("reducing", 100) as bar: ... bar.advance()`; without a total, a spinner.

    Args:
        what: what is being done.
        total: steps, where they can be counted.
        patience: seconds before anything is shown.
    """

    def __init__(self, what: str, total: int | None = None, patience: float = PATIENCE) -> None:
        self._what, self._total, self._patience = what, total, patience
        self._bar: Any = None
        self._timer: threading.Timer | None = None
        self._done = 0
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._timer = threading.Timer(self._patience, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def advance(self, what: str | None = None) -> None:
        """One more is done; `what` is done now."""
        with self._lock:
            self._done += 1
            self._what = what or self._what
            if self._bar is not None:
                self._bar.update(self._task, advance=1, description=self._what)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar

        columns: list[Any] = [SpinnerColumn(), TextColumn("{task.description}")]
        if self._total is not None:
            columns += [BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
        with self._lock:
            if self._timer is None:
                return
            self._bar = Bar(*columns, TimeElapsedColumn(), console=Console(stderr=True),
                            transient=True)  # fmt: skip
            self._task = self._bar.add_task(self._what, total=self._total, completed=self._done)
            self._bar.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._bar is not None:
                self._bar.stop()
                self._bar = None

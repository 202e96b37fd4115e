"""What a compilation leaves behind: every stage, timings, remarks, statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tile_core.diagnostics import UsageError, nearest
from tile_core.target import Target

if TYPE_CHECKING:
    from tile_core.pipeline.timing import Span
    from tile_core.remarks import Remark

Stage = str | bytes


class Stages(Mapping[str, Stage]):
    """Stage name -> text, or bytes for "cubin"; MLIR is printed when first asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Stage] = {}
        self._lazy: dict[str, Callable[[], Stage]] = {}
        self._names: dict[str, None] = {}  # in order of the flow

    def add(self, name: str, stage: Stage | Callable[[], Stage]) -> None:
        """Record a stage, or how to render it."""
        self._names[name] = None
        if isinstance(stage, str | bytes):
            self._made[name] = stage
        else:
            self._lazy[name] = stage

    def __getitem__(self, name: str) -> Stage:
        if name not in self._made:
            if name not in self._lazy:
                raise KeyError(name)
            self._made[name] = self._lazy[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass
class Artifact:
    """The result of `tile_core.compile`."""

    target: Target
    options: Mapping[str, Any]
    emit: str  # the stage that was asked for
    stages: Stages
    timings: Span
    remarks: list[Remark] = field(default_factory=list)
    #: (pass, statistic) -> count
    statistics: dict[tuple[str, str], int] = field(default_factory=dict)
    #: emitter -> what it has to say besides its product
    metadata: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    #: whether it comes from the artifact cache, with nothing but the stage asked for and remarks
    from_cache: bool = False

    @property
    def output(self) -> Stage:
        """The stage that was asked for."""
        return self.stage(self.emit)

    @property
    def cubin(self) -> bytes:
        """The cubin.

        Raises:
            UsageError: the compilation ended before it.
        """
        found = self.stage("cubin")
        assert isinstance(found, bytes)
        return found

    def stage(self, name: str) -> Stage:
        """A stage by name.

        Raises:
            UsageError: there is no such stage in this compilation.
        """
        if name in self.stages:
            return self.stages[name]
        close = nearest(name, list(self.stages))
        raise UsageError(
            f"there is no stage '{name}'",
            notes=(f"stages: {', '.join(self.stages)}",),
            hint=f"did you mean '{close}'?" if close else None,
        )

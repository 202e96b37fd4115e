"""One program compiled with many settings, where what settings have in common is done once.

Settings that differ in a scheduler run the same passes before it, and the same ones behind it;
where two schedulers agree, those have the same to work on. A pipeline is cut between segments into
stretches that some settings share and others do not, and what a stretch makes of a text is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import tile_core
from tile_core.diagnostics import TileError
from tile_core.pipeline.merge import Merged
from tile_core.pipeline.resolve import Request, Resolved, load, resolve
from tile_core.registry import Registry

if TYPE_CHECKING:
    from tile_fuzz.oracle import Setting

_END = "ptx"


@dataclass(frozen=True)
class _Plan:
    """What a setting runs: for each segment its name and what it does, and what holds for all."""

    names: tuple[str, ...]
    calls: tuple[str, ...]
    whole: tuple[Any, ...]

    @classmethod
    def of(cls, merged: Merged, resolved: Resolved) -> _Plan:
        """An option that passes take shows in `calls`; others might matter to any of them."""
        taken = _taken(merged)
        others = {name: str(v) for name, v in resolved.options.items() if name not in taken}
        return cls(
            tuple(segment.name for segment in resolved.segments),
            tuple(", ".join(map(str, segment.passes)) for segment in resolved.segments),
            (resolved.target.name, *sorted(others.items()), *map(str, resolved.emitters)),
        )


class Together:
    """Makes PTX of one program with several settings."""

    def __init__(self, source: bytes, settings: Sequence[Setting], registry: Registry) -> None:
        """`source` is bytecode, or text that starts a pipeline."""
        self._source = source
        self._registry = registry
        self._made: dict[Any, str | TileError] = {}
        self._plans = {str(s): plan for s in settings if (plan := self._plan(s)) is not None}
        alike: dict[Any, list[_Plan]] = {}
        for plan in self._plans.values():
            alike.setdefault((plan.names, plan.whole), []).append(plan)
        self._cuts: Mapping[Any, list[int]] = {key: _cuts(of) for key, of in alike.items()}

    def ptx(self, setting: Setting) -> str:
        """The program's PTX with one of the settings.

        Raises:
            TileError: it does not compile.
        """
        plan = None if setting.without else self._plans.get(str(setting))
        if plan is None:
            return self._stretch(self._source, setting, None, None)
        text: bytes | str = self._source
        count = len(plan.names)
        for start, end in pairwise([0, *self._cuts[plan.names, plan.whole], count]):
            key = text, plan.whole, plan.calls[start:end], end == count
            if key not in self._made:
                first = plan.names[start] if start else None
                last = plan.names[end - 1] if end < count else None
                self._made[key] = self._tried(text, setting, first, last)
            made = self._made[key]
            if isinstance(made, TileError):
                raise made
            text = made
        assert isinstance(text, str)
        return text

    def _plan(self, setting: Setting) -> _Plan | None:
        """What runs; None where that is not told apart, or not to be had (compiling says why)."""
        if setting.without:
            return None
        request = Request(
            setting.target, setting.opt_level, setting.pipeline, setting.options,
            setting.pass_options,
        )  # fmt: skip
        try:
            merged = load(request, self._registry)
            return _Plan.of(merged, resolve(merged, request, self._registry))
        except TileError:
            return None

    def _tried(
        self, text: bytes | str, setting: Setting, first: str | None, last: str | None
    ) -> str | TileError:
        try:
            return self._stretch(text, setting, first, last)
        except TileError as error:
            return error

    def _stretch(
        self, text: bytes | str, setting: Setting, first: str | None, last: str | None
    ) -> str:
        """What the segments from `first` to `last` make of a text; None: from or to the ends."""
        artifact = tile_core.compile(
            text,
            setting.target,
            opt_level=setting.opt_level,
            pipeline=setting.pipeline,
            options=setting.options,
            pass_options=setting.pass_options,
            without=setting.without,
            start_at=None if first is None else f"segment:{first}",
            stop_after=None if last is None else f"segment:{last}",
            emit=_END,
            registry=self._registry,
            keep_stages=False,
        )
        return str(artifact.output)


def _taken(merged: Merged) -> set[str]:
    """Options that passes have in their own options."""
    values = [v for s in merged.segments for entry in s.entries for v in entry.options.values()]
    return {v[1:] for v in values if isinstance(v, str) and v.startswith("$")}


def _cuts(plans: Sequence[_Plan]) -> list[int]:
    """Segments that begin a stretch: those before them are shared by others than they are."""

    def sharing(at: int) -> tuple[int, ...]:
        texts = [plan.calls[at] for plan in plans]
        return tuple(texts.index(text) for text in texts)

    shared = [sharing(at) for at in range(len(plans[0].calls))]
    return [at for at in range(1, len(shared)) if shared[at] != shared[at - 1]]

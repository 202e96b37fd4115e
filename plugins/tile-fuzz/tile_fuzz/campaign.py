"""Many programs, in several processes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tile_fuzz.generator import Settings
from tile_fuzz.oracle import LEVELS, TARGETS, Failure, Setting
from tile_fuzz.workers import PATIENCE, Source, Tried, Worker, try_seed


@dataclass(frozen=True)
class Plan:
    """What a campaign tries.

    Each program is compiled as often as there are levels or targets, whichever are more, so that
    every level and every target occurs, in pairs that change from seed to seed; with `every`, for
    all pairs. `base` has what the settings share (a pipeline, options); with `each`, every pair is
    compiled once with each of these options over it, and code that comes out the same runs once.
    `witness` is another compiler, whose code for the same targets has to give the same results.
    """

    seeds: range
    targets: Sequence[str] = TARGETS
    levels: Sequence[int] = LEVELS
    base: Setting = field(default_factory=lambda: Setting(""))
    limits: Settings = field(default_factory=Settings)
    every: bool = False
    jobs: int = 1
    patience: float = PATIENCE
    witness: str | None = None
    each: Sequence[Mapping[str, Any]] = ({},)

    def settings(self, seed: int) -> tuple[Setting, ...]:
        """What the program of a seed is compiled for, and then by the witness, if there is one."""
        targets, levels = self.targets, self.levels
        # A pipeline of its own has no levels.
        degrees = (None,) if self.base.pipeline is not None else tuple(levels)
        if self.every:
            pairs = [(target, level) for level in degrees for target in targets]
        else:
            count = max(len(targets), len(degrees))
            turn = seed // count
            pairs = [
                (targets[(seed + i) % len(targets)], degrees[(turn + i) % len(degrees)])
                for i in range(count)
            ]
        own = [
            replace(self.base, target=target, opt_level=level)
            for target, level in dict.fromkeys(pairs)
        ]
        own = [replace(s, options={**s.options, **more}) for s in own for more in self.each]
        if self.witness is None:
            return tuple(own)
        plain = {s.target: Setting(s.target, witness=self.witness) for s in own}
        return (*own, *plain.values())


def campaign(plan: Plan, source: Source) -> Iterator[tuple[int, Tried]]:
    """Each seed with what became of it, as soon as that is known."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[int, Tried]] = queue.SimpleQueue()
    for seed in plan.seeds:
        waiting.put(seed)
    stopped = threading.Event()
    count = min(plan.jobs, max(len(plan.seeds), 1))
    threads = [
        threading.Thread(target=_work, args=(plan, source, waiting, done, stopped))
        for _ in range(count)
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in plan.seeds:
            yield done.get()
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def _work(
    plan: Plan,
    source: Source,
    waiting: queue.SimpleQueue[int],
    done: queue.SimpleQueue[tuple[int, Tried]],
    stopped: threading.Event,
) -> None:
    worker = Worker(source, plan.patience)
    try:
        while not stopped.is_set():
            try:
                seed = waiting.get_nowait()
            except queue.Empty:
                return
            found = worker.ask(try_seed, seed, plan.limits, plan.settings(seed))
            done.put((seed, Tried(found) if isinstance(found, Failure) else found))
    finally:
        worker.close()


def first_failing(worker: Worker, data: bytes, settings: Sequence[Setting]) -> Failure | None:
    """The failure of a case under the first setting that shows one, which it then names."""
    from tile_fuzz.workers import try_setting

    for setting in settings:
        failure: Failure | None = worker.ask(try_setting, data, setting)
        if failure is not None:
            return failure if failure.setting is not None else replace(failure, setting=setting)
    return None

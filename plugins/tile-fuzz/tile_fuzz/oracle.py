"""Compiled code against the reference evaluator: this compiler's, and that of a witness."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tile_cudatile import evaluate, write_bytecode
from tile_cudatile.evaluator import EvaluationError
from tile_sim import Module, SimError

import tile_core
from tile_core.diagnostics import CompileError, TileError
from tile_core.options import spelled
from tile_core.registry import Registry
from tile_fuzz.case import Case, Launch, data_of
from tile_fuzz.compare import differences
from tile_fuzz.together import Together
from tile_fuzz.witness import REFUSED

#: What -O levels and targets are tried on.
LEVELS = (0, 1, 2, 3)
TARGETS = ("sm_80", "sm_90", "sm_100", "sm_120")
#: Random orders in which a result has to be the same.
_ORDERS = 3
#: Instructions of one warp after which the simulator gives up.
_MOST_STEPS = 4_000_000
#: Threads that are resident at once.
_THREADS = 16384


@dataclass(frozen=True)
class Setting:
    """How a program is compiled; with a `witness`, by that compiler."""

    target: str
    opt_level: int | None = None
    pipeline: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    pass_options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    without: frozenset[str] = frozenset()
    witness: str | None = None

    @property
    def ftz(self) -> bool:
        """The option that changes what a program means (`evaluate`), as `options` has it."""
        value = self.options.get("ftz", False)
        return bool(spelled(value, bool) if isinstance(value, str) else value)

    def __str__(self) -> str:
        level = "" if self.opt_level is None else f" -O{self.opt_level}"
        pipeline = "" if self.pipeline is None else f" --pipeline {self.pipeline}"
        options = "".join(f" --set {k}={v}" for k, v in self.options.items())
        passes = "".join(f" -D {k}={v}" for k, v in self.pass_options.items())
        witness = "" if self.witness is None else f" --witness {self.witness}"
        return f"--gpu-name {self.target}{level}{pipeline}{options}{passes}{witness}"


@dataclass(frozen=True)
class Failure:
    """What went wrong.

    `kind`: "undefined" (the program itself, says the evaluator), "compile", "simulator" (an
    illegal access, a deadlock, ...), "finding" (a race, ...), "result", "refused" (by a witness,
    which says nothing about this compiler), and, by `campaign`, "crash" and "timeout". `what` is
    the same for failures of one cause, as far as can be told.
    """

    kind: str
    what: str
    detail: str
    setting: Setting | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The class of the failure, which shrinking keeps."""
        return self.kind, self.what

    def __str__(self) -> str:
        where = "" if self.setting is None else f" ({self.setting})"
        return f"{self.kind}: {self.detail}{where}"


@dataclass
class Tally:
    """Which code a program became: for each setting that was compiled, the number of its code.

    Codes are numbered as they first occur, and each runs once, however many settings give it.
    """

    codes: list[int] = field(default_factory=list)

    @property
    def ran(self) -> int:
        """Different codes."""
        return len(set(self.codes))


class Reference:
    """A case and what its arrays hold afterwards, by the evaluator (`ftz` is for `evaluate`)."""

    def __init__(self, case: Case, *, ftz: bool = False) -> None:
        """Raises `EvaluationError` if the program does what the language leaves undefined."""
        self.case = case
        self.after: list[list[Any]] = []
        for launch in case.launches:
            arguments = [data_of(argument) for argument in launch.arguments]
            outcome = evaluate(case.module, launch.entry, launch.grid, arguments, ftz=ftz)
            if outcome.failed:
                raise EvaluationError(f"assertion failed: {outcome.failed[0]}")
            self.after.append(arguments)


def certain(case: Case, *, ftz: bool = False) -> bool:
    """Whether a case depends neither on unspecified values nor on any order that is open."""
    plain = Reference(case, ftz=ftz)
    for seed in range(_ORDERS):
        for launch, after in zip(case.launches, plain.after, strict=True):
            arguments = [data_of(argument) for argument in launch.arguments]
            evaluate(
                case.module, launch.entry, launch.grid, arguments, seed=seed, noise=True, ftz=ftz
            )
            for found, wanted, argument in zip(arguments, after, launch.arguments, strict=True):
                if isinstance(found, np.ndarray) and len(differences(found, wanted, argument)):
                    return False
    return True


def examine(
    case: Case,
    settings: Sequence[Setting],
    registry: Registry,
    reference: Reference | None = None,
    tally: Tally | None = None,
) -> Failure | None:
    """The first failure of a case under any of the settings.

    `reference` is what is known of the case already, without options that change its meaning.
    `tally` is told what was compiled.
    """
    references = {False: reference} if reference else {}
    codes = _Codes(case, settings, registry, tally or Tally())
    refused = None
    for setting in settings:
        try:
            if setting.ftz not in references:
                references[setting.ftz] = Reference(case, ftz=setting.ftz)
        except EvaluationError as error:
            return Failure("undefined", _anonymous(error.message), error.message)
        failure = _compiled(case, setting, references[setting.ftz], codes)
        if failure is not None and failure.kind != REFUSED:
            return failure
        refused = refused or failure
    return refused


class _Codes:
    """The codes of a program. Results of the same code are the same, so that each runs once.

    Where options change what the program means (`ftz`), so do the results that are wanted.
    """

    def __init__(
        self, case: Case, settings: Sequence[Setting], registry: Registry, tally: Tally
    ) -> None:
        own = [setting for setting in settings if setting.witness is None]
        self._together = Together(write_bytecode(case.module), own, registry)
        self._tally = tally
        self._numbers: dict[tuple[str, bool], int] = {}

    def new(self, setting: Setting) -> str | None:
        """The PTX of a setting; None if it ran before, for another target, level or option.

        Raises:
            TileError: it does not compile.
        """
        ptx = self._together.ptx(setting)
        body = re.sub(r"^\.(target|version).*$", "", ptx, flags=re.MULTILINE)
        number = self._numbers.setdefault((body, setting.ftz), len(self._numbers))
        known = number in self._tally.codes
        self._tally.codes.append(number)
        return None if known else ptx


def _compiled(case: Case, setting: Setting, reference: Reference, codes: _Codes) -> Failure | None:
    if setting.witness is not None:
        return _witnessed(case, setting, reference)
    try:
        ptx = codes.new(setting)
    except TileError as error:
        return Failure("compile", _anonymous(error.message), error.render(), setting)
    return None if ptx is None else run(case, lambda: Module(ptx), reference, setting)


def _witnessed(case: Case, setting: Setting, reference: Reference) -> Failure | None:
    """What is wrong with the code of another compiler."""
    from tile_sim.peer import tileiras

    level = 3 if setting.opt_level is None else setting.opt_level
    try:
        cubin = tileiras.find().compile(write_bytecode(case.module), setting.target, level)
    except CompileError as error:
        return Failure(REFUSED, _anonymous(error.message), error.render(), setting)
    return run(case, lambda: cubin.load(setting.target), reference, setting)


def compile_ptx(case: Case, setting: Setting, registry: Registry) -> str:
    """The case's PTX.

    Raises:
        TileError: it does not compile.
    """
    artifact = tile_core.compile(
        write_bytecode(case.module),
        setting.target,
        opt_level=setting.opt_level,
        pipeline=setting.pipeline,
        options=setting.options,
        pass_options=setting.pass_options,
        without=setting.without,
        emit="ptx",
        registry=registry,
        keep_stages=False,
    )
    return str(artifact.stages["ptx"])


def run(
    case: Case, load: Callable[[], Module], reference: Reference, setting: Setting
) -> Failure | None:
    """What is wrong with compiled code when it is loaded and runs."""
    try:
        module = load()
        for launch, wanted in zip(case.launches, reference.after, strict=True):
            failure = _launch(module, launch, wanted, setting)
            if failure is not None:
                return failure
    except SimError as error:
        return Failure("simulator", error.kind, str(error), setting)
    return None


def _launch(module: Module, launch: Launch, wanted: list[Any], setting: Setting) -> Failure | None:
    arguments = [data_of(argument) for argument in launch.arguments]
    # Where blocks take over others, one cluster at a time has all others to take.
    threads = 1 if module.program(launch.entry).takes_over else _THREADS
    report = module.launch(
        launch.entry, launch.grid, None, arguments, check=True, wave_threads=threads,
        max_steps=_MOST_STEPS,
    )  # fmt: skip
    if report.findings:
        first = report.findings[0]
        return Failure("finding", first.kind, str(first), setting)
    for number, argument in enumerate(launch.arguments):
        found, expected = arguments[number], wanted[number]
        if not isinstance(found, np.ndarray):
            continue
        bad = differences(found, expected, argument)
        if len(bad):
            kind = "bits" if argument.exact else "tolerance"
            at = int(bad[0])
            text = (
                f"@{launch.entry} argument {number} ({argument.element}[{argument.count}]): "
                f"{len(bad)} elements differ, first [{at}]: {found[at]} instead of {expected[at]}"
            )
            return Failure("result", kind, text, setting)
    return None


def _anonymous(message: str) -> str:
    """A message without what differs between programs of one cause."""
    line = message.splitlines()[0] if message else ""
    line = re.sub(r"'[^']*<[^']*'", "T", line)
    return re.sub(r"\d+", "N", line)

"""Variables of the environment that the specification names for the tool (pages 008 and 169).

Each has a rule of its own for what counts as set, and each acts or is refused by its name: one that
is passed over in silence would let a comparison of two settings compare one with itself.
Variables that name a toolkit are read where tools are found (`tile_nvptx.emit.toolchain`).
"""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tile_core.diagnostics import ConfigurationError
from tile_core.pipeline.instrument import Instrumentation

if TYPE_CHECKING:
    from tile_core.pipeline.build import Step
    from tile_core.pipeline.run import Run

PREFER_TMA = "TILEIR_PREFER_TMA_FOR_LOAD_STORE"
DELAY_WAIT = "TILEIR_DELAY_TMA_STORE_WAIT"
SWIZZLE = "TILEIR_ALWAYS_SWIZZLE"
UNLIMITED = "TILE_AS_DEBUG_UNLIMITED_SMEM"
DUMP_PROGRAM, DUMP_LLVM = "TILEIR_DEBUG_DUMP_BC", "TILEIR_DEBUG_DUMP_LLVM"
VERBOSE = "TILE_AS_DEBUG_VERBOSE"
#: Both have to be there for a file of knobs to reach ptxas.
KNOBS_ALLOWED, KNOBS = "MLIR_ENABLE_EVO", "PTX_KNOBS_PATH"

#: What C's strtol takes at the start of a text.
_NUMBER = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_INT_RANGE = range(-(2**31), 2**31)


@dataclass(frozen=True)
class Wishes:
    """What the environment asks for."""

    ptxas_options: tuple[str, ...] = ()
    dump_program: bool = False
    dump_llvm: bool = False
    verbose: bool = False

    @property
    def watches(self) -> bool:
        """Whether something is to be seen of the compilation, so that no cache may answer."""
        return self.dump_program or self.dump_llvm or self.verbose

    def on_stage(self, kind: str, product: Any) -> None:
        """Print LLVM IR if that is asked for."""
        if self.dump_llvm and kind == "llvm":
            print(product, end="", file=sys.stderr)

    def instrumentations(self) -> tuple[Instrumentation, ...]:
        """What has to watch the passes."""
        return (Progress(),) if self.verbose else ()


class Progress(Instrumentation):
    """One line on standard error for each pass: its name and milliseconds."""

    name: ClassVar[str] = ""

    def before_step(self, step: Step, run: Run) -> None:
        self._start = time.perf_counter()

    def after_step(self, step: Step, run: Run) -> None:
        spent = (time.perf_counter() - self._start) * 1e3
        print(f"pass {step.name}: {spent:.1f} ms", file=sys.stderr)


def wishes_of(environment: Mapping[str, str]) -> Wishes:
    """What `environment` asks for.

    Raises:
        ConfigurationError: something that cannot be done, or a value that cannot be read.
    """
    _check_tma(environment)
    _check_delay(environment)
    if SWIZZLE in environment:
        raise ConfigurationError(
            f"{SWIZZLE} is set, and the layouts of shared memory cannot be forced to swizzle",
            notes=("any value counts, 0 included", "layouts are chosen for least bank conflicts"),
            hint=f"unset {SWIZZLE}",
        )
    if environment.get(UNLIMITED) == "1":
        raise ConfigurationError(
            f"{UNLIMITED}=1, and shared memory is always planned within what the target has",
            hint=f"unset {UNLIMITED}",
        )
    knobs = environment.get(KNOBS)
    given = KNOBS_ALLOWED in environment and knobs is not None
    return Wishes(
        ptxas_options=(f"--knobs-file={knobs}",) if given else (),
        dump_program=DUMP_PROGRAM in environment,
        dump_llvm=DUMP_LLVM in environment,
        verbose=environment.get(VERBOSE) == "1",
    )


def _check_tma(environment: Mapping[str, str]) -> None:
    value = environment.get(PREFER_TMA, "false")
    if value == "false":
        return
    if value != "true":
        raise ConfigurationError(f"{PREFER_TMA}={value} is neither true nor false")
    raise ConfigurationError(
        f"{PREFER_TMA}=true, and loads and stores cannot be told to prefer tensor maps",
        hint=f"unset {PREFER_TMA}",
    )


def _check_delay(environment: Mapping[str, str]) -> None:
    """A number as std::stoi reads it; the released tool aborts on what is none."""
    value = environment.get(DELAY_WAIT)
    if value is None:
        return
    number = _NUMBER.match(value)
    if number is None or int(number[1]) not in _INT_RANGE:
        raise ConfigurationError(f"{DELAY_WAIT}={value} is no number of 32 bits")
    if int(number[1]):
        raise ConfigurationError(
            f"{DELAY_WAIT}={value}, and the waits of stores through tensor maps cannot be delayed",
            hint=f"unset {DELAY_WAIT}",
        )


def joined(options: tuple[str, ...]) -> str:
    """Options as one text that a shell, and the emitter of cubins, takes apart again."""
    return shlex.join(options)

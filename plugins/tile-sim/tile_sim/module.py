"""Loading PTX and launching its kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tile_sim import isa
from tile_sim.errors import SimError
from tile_sim.machine.counters import Counters
from tile_sim.machine.launch import Launcher, LaunchReport
from tile_sim.machine.memory import Buffer, GlobalMemory
from tile_sim.machine.parameters import Argument, HiddenFilled, RawBuffer, RawParameters
from tile_sim.machine.recipes import recipes_of
from tile_sim.machine.trace import Trace
from tile_sim.machine.wave import Dim
from tile_sim.program.build import build_program
from tile_sim.program.layout import (
    FUNCTION_WINDOW,
    MODULE_WINDOW,
    SHARED_WINDOW,
    align_up,
    alignment_of,
    initial_bytes,
)
from tile_sim.program.names import Var
from tile_sim.program.program import Program
from tile_sim.program.types import TYPES
from tile_sim.ptx.lexer import Source
from tile_sim.ptx.parser import parse, required_text
from tile_sim.ptx.syntax import Module as Syntax
from tile_sim.ptx.syntax import Name, Variable

_MODULE_SPACES = ("global", "const")


@dataclass(frozen=True)
class _Decoded:
    """What a text says, which no launch changes: the places of its variables, its kernels."""

    syntax: Syntax
    source: Source
    variables: dict[str, Var]
    programs: tuple[Program, ...]


@lru_cache(maxsize=8)
def _decoded(ptx: str) -> _Decoded:
    """The same for the same text: schedules, say, and checks of one kernel are modules each."""
    isa.load_all()
    syntax, source = parse(ptx)
    variables = _addresses(syntax, source)
    programs = [
        build_program(syntax, source, function, variables)
        for function in syntax.functions.values()
        if function.entry and function.body is not None
    ]
    return _Decoded(syntax, source, variables, tuple(programs))


def _addresses(syntax: Syntax, source: Source) -> dict[str, Var]:
    """Where module variables lie."""
    found: dict[str, Var] = {}
    address = MODULE_WINDOW
    for variable in syntax.variables:
        if variable.space not in _MODULE_SPACES:
            continue
        if variable.linkage == "extern":
            message = f"extern variable {variable.name!r} is defined nowhere"
            raise SimError("syntax", message, source.where(variable.pos))
        size = len(initial_bytes(variable, lambda name: 0))
        address = align_up(address, max(alignment_of(variable), 256))
        type_ = TYPES[variable.type]
        found[variable.name] = Var(variable.name, variable.space, address, size, type_)
        address += size + 4096
    return found


class Module:
    """A PTX module, ready to launch.

    Parsing and decoding happen here, once: whatever the simulator does not know is an error now.
    Module variables (`.global`, `.const`) live as long as the module.
    """

    def __init__(self, ptx: str) -> None:
        """Raises SimError (`syntax`, `unknown-instruction`, `bad-instruction`, ...)."""
        self.text = ptx
        known = _decoded(required_text(ptx))
        self.syntax, self.source, self._globals = known.syntax, known.source, known.variables
        self.memory = GlobalMemory()
        #: What fills hidden parameters, if anything does; else callers pass them like the others.
        self.hidden: HiddenFilled | None = None
        self.strict = True
        self.programs = {program.entry.name: program.anew() for program in known.programs}
        self._place_variables()
        self._fill_variables()
        self.hidden = recipes_of(ptx, self.programs)

    # --- module variables -------------------------------------------------------------------

    def _place_variables(self) -> None:
        """Memory for module variables, whose bytes are filled once all have some."""
        for variable in self._globals.values():
            data, writable = np.zeros(variable.size, np.uint8), variable.space == "global"
            self.memory.insert(Buffer(variable.name, variable.offset, data, writable))

    def _fill_variables(self) -> None:
        for variable in self.syntax.variables:
            if variable.init is not None and variable.space in _MODULE_SPACES:
                buffer = self.memory.buffer_at(self._globals[variable.name].offset)
                assert buffer is not None
                data = initial_bytes(variable, self._resolver(variable))
                buffer.data[: len(data)] = data

    def _resolver(self, variable: Variable) -> Any:
        """The address that a name in an initialiser stands for."""

        def resolve(name: Name) -> int:
            if name.name in self._globals:
                return self._globals[name.name].offset + name.offset
            functions = list(self.syntax.functions)
            target = self.syntax.aliases.get(name.name, name.name)
            if target in functions:
                return FUNCTION_WINDOW + 16 * functions.index(target)
            for program in self.programs.values():
                entity = program.global_entity(name.name)
                if isinstance(entity, Var) and entity.space == "shared":
                    generic = SHARED_WINDOW if name.part == "generic" else 0
                    return generic + entity.offset + name.offset
            message = f"{name.name!r} in the initialiser of {variable.name!r} is not declared"
            raise SimError("undeclared", message, self.source.where(variable.pos))

        return resolve

    def variable(self, name: str, dtype: Any = np.uint8) -> np.ndarray:
        """The memory of a `.global` or `.const` variable; writing it changes the variable."""
        if name not in self._globals:
            raise SimError("launch", f"no module variable {name!r}")
        buffer = self.memory.buffer_at(self._globals[name].offset)
        assert buffer is not None
        return buffer.view(np.dtype(dtype))

    # --- launching --------------------------------------------------------------------------

    @property
    def entries(self) -> list[str]:
        return list(self.programs)

    def program(self, entry: str) -> Program:
        """The decoded kernel. Raises SimError (`launch`) for a name that is no kernel here."""
        found = self.programs.get(entry)
        if found is None:
            known = ", ".join(self.programs) or "none"
            raise SimError("launch", f"no kernel {entry!r}; this module has: {known}")
        return found

    def launch_raw(
        self,
        entry: str,
        grid: Dim,
        block: Dim | None,
        parameters: bytes,
        buffers: Sequence[RawBuffer | np.ndarray],
        **options: Any,
    ) -> LaunchReport:
        """Run a kernel on memory of this process, as the CUDA driver would launch it.

        `parameters` are the bytes of all parameters as the kernel declares them (each at its
        natural alignment); pointers in them are real addresses. Accesses are only allowed inside
        `buffers`: arrays (the bytes from their first to their last element) or `RawBuffer`.
        `options` are those of `launch`.
        """
        raw = RawParameters(parameters, tuple(buffers))
        return self.launch(entry, grid, block, raw, **options)

    def launch(
        self,
        entry: str,
        grid: Dim,
        block: Dim | None,
        args: Sequence[Argument] | RawParameters,
        *,
        shared_bytes: int = 0,
        cluster: Dim | None = None,
        schedule: str = "late",
        seed: int = 0,
        check: Any = None,
        stats: bool = False,
        wave_threads: int = 16384,
        check_uninitialised: bool = True,
        max_steps: int | None = None,
        strict: bool | None = None,
        trace: Trace | None = None,
        clusters: Sequence[int] | None = None,
        followers: Sequence[Sequence[int]] | None = None,
        skipped: frozenset[str] = frozenset(),
        names: Sequence[str] | None = None,
    ) -> LaunchReport:
        """Run a kernel over `grid` CTAs of `block` threads and wait for its end; over `grid`
        clusters, if it is `.blocksareclusters`.

        `args`: a NumPy array for a pointer (updated in place), an int for a pointer or integer,
        a float or NumPy scalar for the rest, bytes or a NumPy array of the exact size for a
        parameter passed by value. `block` None takes `.reqntid`; `cluster` None takes
        `.reqnctapercluster`. `shared_bytes` is the dynamic shared memory of a CTA.

        `schedule` says when asynchronous work completes: `late` (only when something has to
        wait for it), `early` (at once) or `random` (by `seed`). `check` True records findings
        (races, uninitialised reads, ...) in the report. `stats` True counts what the kernel did,
        as `cost` of the report.
        `wave_threads` bounds how many threads are resident at a time (at least one cluster is).
        `max_steps` ends a wave (SimError `timeout`) after so many executed blocks, against loops
        without end. `strict` False leaves out what the PTX ISA forbids and hardware does not
        depend on: registers of `tcgen05.ld` before the wait, threads that race to write the same
        value, `mbarrier.inval` of what is no mbarrier, `mbarrier.init` with a count of 0 where
        nobody uses that mbarrier, shared memory behind the last variable up to a multiple of 128
        bytes and memory of `malloc` up to one of 16, which is what hardware and heap give out.
        None is `Module.strict`. `check_uninitialised`
        False lets memory be read that nobody wrote; in check mode that is full of values that
        show, else of 0.
        `trace` is told what every warp does; `clusters` are the numbers of those clusters of
        CTAs to run, others are left out; of each of those `followers` has the clusters that it
        takes over, in order, if it asks for some. `skipped` may have "products" (of tensor cores),
        "copies" (data of tensor loads), "values" (arithmetic that reaches no branch and no
        address), "addresses" (all that reaches no branch) and "memory" (with "values": data that
        are stored and copied, but for those that loads which count read): the kernel runs on
        without them. With "memory" arrays are not written, and `unmade.Wanted` says that the launch
        is to be run again.
        `names` is what errors call the arguments.

        Raises SimError: `launch` for what does not fit the kernel, or what the kernel did wrong.
        """
        launcher = Launcher(self.memory, self.program(entry), schedule, seed, check)
        launcher.check_uninitialised = check_uninitialised
        launcher.max_steps = max_steps
        launcher.hidden = self.hidden
        launcher.strict = self.strict if strict is None else strict
        launcher.trace, launcher.clusters, launcher.skipped = trace, clusters, skipped
        launcher.names, launcher.followers = names, followers
        launcher.counters = Counters(launcher.program) if stats else None
        return launcher.run(grid, block, args, shared_bytes, cluster, wave_threads)

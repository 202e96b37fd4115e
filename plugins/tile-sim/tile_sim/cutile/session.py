"""Compiling and launching for cuTile: its compiler, its launch function, its driver."""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_sim.cutile.compiler import Compiler, Image
from tile_sim.cutile.driver import Driver
from tile_sim.cutile.exposed import Exposed, is_array
from tile_sim.cutile.mappings import mappings_of
from tile_sim.errors import SimError
from tile_sim.machine.parameters import RawBuffer, as_array, byte_extent
from tile_sim.module import Module
from tile_sim.packing import gathered_parameters
from tile_sim.peer.cubin import Cubin

if TYPE_CHECKING:
    from tile_sim.machine.launch import LaunchReport
    from tile_sim.watch import Watch

_LOADER = "cuda.tile._load_libcuda"
# Kernels that stay parsed: launching one again must not read its PTX again.
_KEPT_MODULES = 64


@dataclass
class Settings:
    """`arch` is fixed once cuTile has asked for it, which is when it first compiles.

    `opt_level` None takes each kernel's own; `pipeline`, a name or file, stands for the levels'
    (from TILE_SIM_PIPELINE unless set). `options` and `pass_options` go to the compiler,
    `launch` to `Module.launch` (`schedule`, `seed`, `check`, ...). `cache` is a folder that keeps
    what was compiled. `strict` launches in check mode and makes the first finding an error.
    `compiler` is "tilec", this one, or "tileiras", NVIDIA's, whose code then runs here; with
    "installed" the tileiras that cuTile itself finds has to compile each program, too, called as
    cuTile calls it, and what it refuses is refused. With "none" nothing is compiled and launches
    leave memory as it is: `Compiler.watch` still gets each program.
    """

    arch: str = field(default_factory=lambda: os.environ.get("TILE_SIM_ARCH", "sm_100"))
    opt_level: int | None = None
    pipeline: str | None = field(default_factory=lambda: os.environ.get("TILE_SIM_PIPELINE"))
    options: dict[str, Any] = field(default_factory=dict)
    pass_options: dict[str, Any] = field(default_factory=dict)
    cache: str | None = None
    strict: bool = False
    launch: dict[str, Any] = field(default_factory=dict)
    compiler: str = field(default_factory=lambda: os.environ.get("TILE_SIM_COMPILER", "tilec"))
    #: What watches compilations; None: nothing.
    watch: Watch | None = None
    #: Called instead of a launch: (kernel, name, grid, cluster, parameters, buffers).
    instead: Callable[..., None] | None = None
    #: Called the same way for each launch that a program's own tuner times; returns microseconds.
    #: None: the launch is made, and its instructions are counted.
    measure: Callable[..., float] | None = None

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability, (9, 0) for sm_90."""
        digits = self.arch.removeprefix("sm_").rstrip("af")
        if not digits.isdigit() or len(digits) < 2:
            raise SimError("launch", f"{self.arch!r} is no architecture such as sm_90")
        return int(digits[:-1]), int(digits[-1])


@dataclass
class Compiled:
    """A kernel for one specialisation; `symbol` is its mangled name."""

    symbol: str
    bytecode: bytes
    ptx: str
    module: Module


@dataclass
class Launch:
    """One finished launch."""

    kernel: Compiled
    grid: tuple[int, int, int]
    report: LaunchReport


class Session:
    """The simulator behind `cuda.tile` in this process."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.launches: list[Launch] = []
        self.compiler = Compiler(self.settings)
        self.compiled: dict[Image, Compiled] = {}  # the last one used last
        self.driver: Driver | None = None
        #: Called at the start of each launch, with the code that it runs.
        self.watch: Callable[[Image], None] | None = None
        self._tuning = False  # the launch at hand is one that a program's own tuner times
        self._us = 1.0  # how long that one took
        self._native: Any = None
        self._native_constraints: Any = None
        self._arrays: list[RawBuffer] | None = None
        self._graph: list[Callable[[], None]] | None = None
        # The simulator runs one launch at a time, whatever threads the program has.
        self._lock = threading.RLock()

    # --- the driver -------------------------------------------------------------------------

    def the_driver(self) -> Driver:
        """The driver, made when it is first asked for, which fixes the architecture."""
        if self.driver is None:
            self.driver = Driver(self.settings.capability, self.run)
        return self.driver

    # --- launching --------------------------------------------------------------------------

    def launch(self, stream: Any, grid: Any, kernel: Any, arguments: Any, /, **options: Any) -> Any:
        """Stands for `cuda.tile.launch`; raises what went wrong in the compiler or simulator."""
        with self._lock:
            self._arrays = list(_named_arrays(kernel, arguments))
            shown = _expose(arguments) if isinstance(arguments, tuple | list) else arguments
            if self.driver is not None:
                self.driver.failure = None
            try:
                made = self._native(0 if stream is None else stream, grid, kernel, shown, **options)
            except Exception:
                self._raise_failure()
                raise
            else:
                self._raise_failure()
                return made
            finally:
                self._arrays = None

    def _raise_failure(self) -> None:
        """The exception that a driver's entry point kept, if one did."""
        if self.driver is not None and self.driver.failure is not None:
            raise self.driver.failure from None

    def benchmark(
        self, stream: Any, grid: Any, kernel: Any, arguments: Any, flush_l2: bool = True, /
    ) -> float:
        """Stands for what times a launch, in microseconds: one for 1000 warp instructions, or
        what `Settings.measure` says.

        `flush_l2`, of cuTile 1.7, says nothing to a simulator without caches.
        """
        with self._lock:
            self._tuning, self._us = True, 1.0
            try:
                self.launch(stream, grid, kernel, arguments)
            finally:
                self._tuning = False
            return self._us

    def export_benchmark(
        self, stream: Any, grid: Any, kernel: Any, arguments: Any, flush_l2: bool = True, /
    ) -> None:
        """Stands for what times a launch in another process; None says that it cannot."""

    # --- graphs -----------------------------------------------------------------------------

    def begin_capture(self) -> None:
        """From now on launches are kept and not run."""
        self.the_driver().capturing, self._graph = True, []

    def end_capture(self) -> list[Callable[[], None]]:
        """The launches since `begin_capture`; calling them, in order, runs them."""
        self.the_driver().capturing = False
        graph, self._graph = self._graph, None
        return graph or []

    def run(
        self,
        image: Image,
        name: str,
        grid: tuple[int, int, int],
        cluster: tuple[int, int, int] | None,
        parameters: int,
    ) -> None:
        """What the driver's launch does."""
        assert self.driver is not None
        if self.watch is not None:
            self.watch(image)
        if self.settings.compiler == "none":
            return
        compiled = self._loaded(image, name)
        data = gathered_parameters(compiled.module, name, parameters)
        known = self._arrays if self._arrays is not None else mappings_of(data)
        buffers = [*known, *self.driver.allocations]

        options = dict(self.settings.launch)
        if self.settings.strict:
            options["check"] = True

        def execute() -> None:
            if self._tuning and self.settings.measure is not None:
                self._us = self.settings.measure(compiled, name, grid, cluster, data, buffers)
                return
            if self.settings.instead is not None:
                self.settings.instead(compiled, name, grid, cluster, data, buffers)
                return
            try:
                report = compiled.module.launch_raw(
                    name, grid, None, data, buffers, cluster=cluster, **options
                )
                if self.settings.strict and report.findings:
                    first = report.findings[0]
                    raise SimError(first.kind, first.message, first.where)
            except SimError as error:
                _print(error.printed)
                raise
            _print(report.text)
            self.launches.append(Launch(compiled, grid, report))
            self._us = max(report.warp_instructions, 1) / 1000

        if self._graph is not None:
            self._graph.append(execute)
        else:
            execute()

    def _loaded(self, image: Image, name: str) -> Compiled:
        found = self.compiled.pop(image, None)
        if found is None:
            made = self.compiler.made.get(image)
            module = Module(image) if isinstance(image, str) else Cubin(image).load()
            found = Compiled(name, b"" if made is None else made.bytecode, module.text, module)
        self.compiled[image] = found
        if len(self.compiled) > _KEPT_MODULES:
            del self.compiled[next(iter(self.compiled))]
        return found

    def constraints(self, kernel: Any, arguments: Any, *rest: Any) -> Any:
        """Stands for what derives a signature from arguments."""
        return self._native_constraints(kernel, _expose(arguments), *rest)


def install() -> Session:
    """Put the simulator behind `cuda.tile`.

    Raises ImportError where cuTile is not installed, RuntimeError where it already uses the
    driver of this machine.
    """
    if _LOADER in sys.modules:
        raise RuntimeError("import tile_sim.cutile before cuTile has used the CUDA driver")
    try:
        native = import_module("cuda.tile._cext")
        compiling = import_module("cuda.tile._compile")
    except ImportError as error:
        message = "tile_sim.cutile needs cuTile Python: pip install cuda-tile"
        raise ImportError(message) from error
    session = Session()
    session._native = native.launch
    session._native_constraints = native.get_parameter_constraints_from_pyargs
    sys.modules[_LOADER] = _Loader(session)
    _replace(native.launch, session.launch)
    _replace(native._benchmark, session.benchmark)
    _replace(native._export_ipc_benchmark_payload, session.export_benchmark)
    _replace(native.get_parameter_constraints_from_pyargs, session.constraints)
    session.compiler.installed = compiling._find_compiler_bin
    _replace(compiling._find_compiler_bin, lambda: session.compiler)
    # Its disk cache goes by the version of the compiler, which says too little of one at work.
    native.default_tile_context.config.cache_dir = None
    return session


def _replace(old: Any, new: Any) -> None:
    """Also where programs have imported `launch` by name already."""
    for module in list(sys.modules.values()):
        names = vars(module) if isinstance(module, ModuleType) else {}
        for name in [name for name, value in names.items() if value is old]:
            setattr(module, name, new)


class _Loader(ModuleType):
    """Stands for cuTile's module that loads the driver; the driver is made when it is asked for."""

    def __init__(self, session: Session) -> None:
        super().__init__(_LOADER)
        self._session = session

    @property
    def cuGetProcAddress_v2_ptrptr(self) -> int:  # noqa: N802 - cuTile's name
        return self._session.the_driver().address

    @property
    def _cuGetProcAddress_v2(self) -> Any:  # noqa: N802 - cuTile's name
        return self._session.the_driver().lookup


def _print(text: str) -> None:
    if text:
        sys.stdout.write(text)
        sys.stdout.flush()


def _items(value: Any) -> list[Any] | None:
    """What an aggregate argument consists of."""
    if isinstance(value, tuple | list):
        return list(value)
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, one.name) for one in fields(value)]
    return None


def _arrays(value: Any) -> Iterator[np.ndarray]:
    """The arrays in the arguments of a launch."""
    if is_array(value):
        yield as_array(value)
    for item in _items(value) or ():
        yield from _arrays(item)


def _named_arrays(kernel: Any, arguments: Any) -> Iterator[RawBuffer]:
    """The memory of a launch's arrays, each called what the kernel calls its argument."""
    try:
        names = list(inspect.signature(kernel._pyfunc).parameters)
    except (AttributeError, TypeError, ValueError):
        names = []
    for i, value in enumerate(_items(arguments) or ()):
        name = f"'{names[i]}'" if i < len(names) else f"argument {i}"
        for array in _arrays(value):
            about = f"{name} (shape {list(array.shape)})"
            yield RawBuffer(*byte_extent(array), about, array.flags.writeable)


def _expose(value: Any) -> Any:
    """The same arguments with their arrays shown as device arrays."""
    if is_array(value):
        return Exposed.of(value)
    if type(value) in (tuple, list):  # others are for cuTile to refuse
        return type(value)(_expose(item) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: _expose(getattr(value, f.name)) for f in fields(value)})
    return value

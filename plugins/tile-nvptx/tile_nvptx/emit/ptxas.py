"""One run of ptxas: PTX text in, cubin and what it tells about each kernel out."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tile_core.diagnostics import CompileError, ConfigurationError
from tile_core.target import Target
from tile_nvptx.emit.options import EmitOptions
from tile_nvptx.emit.process import Completed, run_tool


@dataclass(frozen=True)
class KernelResources:
    """What one kernel uses; bytes, except registers (32 bits each, per thread) and barriers."""

    name: str
    registers: int = 0
    barriers: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    static_shared: int = 0
    constants: int = 0
    compile_ms: float = 0.0

    @property
    def uses_local_memory(self) -> bool:
        """Whether any thread-private memory is touched: arrays, or registers spilt."""
        return bool(self.stack or self.spill_stores or self.spill_loads)

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.registers} registers, {self.static_shared} bytes shared, "
            f"{self.stack} bytes stack, {self.spill_stores}/{self.spill_loads} bytes spilt"
        )


@dataclass(frozen=True)
class Assembled:
    """A cubin, the resources of its kernels, and everything ptxas printed."""

    cubin: bytes
    kernels: tuple[KernelResources, ...]
    log: str


def assemble(
    ptx: str,
    ptxas: Path,
    arguments: Sequence[str],
    timeout: float,
    host_object: bytes | None = None,
) -> Assembled:
    """Run the `ptxas` executable over `ptx` for at most `timeout` seconds.

    Args:
        arguments: options, without files; see `ptxas_arguments`.
        host_object: goes into the cubin as it is (section `.nv.host`).

    Raises:
        CompileError: ptxas rejects the text, is killed, or does not finish in time.
        ConfigurationError: it cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="tilec-") as folder:
        source, output = Path(folder, "kernels.ptx"), Path(folder, "kernels.cubin")
        source.write_text(ptx)
        argv = [str(ptxas), *arguments, str(source), "-o", str(output)]
        if host_object is not None:
            host = Path(folder, "host.o")
            host.write_bytes(host_object)
            argv.append(f"--nv-host={host}")
        try:
            done = run_tool(argv, timeout)
        except OSError as error:
            raise ConfigurationError(
                f"cannot run {ptxas}: {error.strerror or error}", hint="say --ptxas=FILE"
            ) from error
        log = done.output.replace(f"{folder}/", "")
        if done.status != 0 or done.timed_out:
            raise _failed(done, log, arguments)
        if not output.is_file():
            raise CompileError("ptxas reported success but wrote no cubin", notes=_lines(log))
        return Assembled(output.read_bytes(), parse_log(log), log)


def ptxas_arguments(target: Target, options: EmitOptions) -> list[str]:
    """What the target and the pipeline's options mean for ptxas."""
    argv = ["-v", "-arch", target.chip, "--opt-level", str(options.opt_level)]
    if options.device_debug:
        argv += ["-g", "--dont-merge-basicblocks", "--return-at-end"]
    elif options.lineinfo:
        argv.append("-lineinfo")
    return argv


def _failed(done: Completed, log: str, arguments: Sequence[str]) -> CompileError:
    return CompileError(
        f"ptxas failed ({done.ending})",
        notes=_lines(log),
        hint=f"to see why, --emit=ptx and run: ptxas {shlex.join(arguments)} kernels.ptx",
    )


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line for line in text.splitlines() if line.strip())


_COMPILING = re.compile(r"Compiling entry function '([^']+)'")
_COUNTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("registers", re.compile(r"Used (\d+) registers")),
    ("barriers", re.compile(r"used (\d+) barriers")),
    ("stack", re.compile(r"(\d+) bytes stack frame")),
    ("spill_stores", re.compile(r"(\d+) bytes spill stores")),
    ("spill_loads", re.compile(r"(\d+) bytes spill loads")),
    ("static_shared", re.compile(r"(\d+) bytes smem")),
    ("constants", re.compile(r"(\d+) bytes cmem\[0\]")),
)
_TIME = re.compile(r"Compile time = ([\d.]+) ms")


def parse_log(log: str) -> tuple[KernelResources, ...]:
    """The records in what `ptxas -v` printed, in its order."""
    starts = [*_COMPILING.finditer(log)]
    ends = [*(start.start() for start in starts[1:]), len(log)][: len(starts)]  # maybe none
    return tuple(
        _record(start[1], log[start.end() : end]) for start, end in zip(starts, ends, strict=True)
    )


def _record(name: str, text: str) -> KernelResources:
    counts = {field: int(hit[1]) for field, rx in _COUNTS if (hit := rx.search(text))}
    time = _TIME.search(text)
    return KernelResources(name, **counts, compile_ms=float(time[1]) if time else 0.0)

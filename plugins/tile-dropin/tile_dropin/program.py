"""One compilation: the checks of the released tool in its order, with its codes and messages.

Reading the file, magic, version, GPU, level, debug information, controls, the program itself,
where remarks go, libraries, compilation, output. Nothing is written when one of them fails.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_cudatile.bytecode.sections import MAGIC
from tile_cudatile.versions import SUPPORTED

from tile_core.cli.output import Output
from tile_core.diagnostics import ConfigurationError, ExitCode, InputError, TileError
from tile_dropin.command_line import Given
from tile_dropin.environment import joined, wishes_of
from tile_dropin.remark_output import RemarkOutput

if TYPE_CHECKING:
    from tile_core.artifact import Artifact

_MLIR_MAGIC = b"ML\xefR"
#: Magic, then a byte each for the major and the minor version.
_VERSION_AT = len(MAGIC)
_LEVELS = range(4)
_NOT_BYTECODE = "error: input does not correspond to Tile IR bytecode"
#: What `--sanitize=memcheck` means to ptxas.
_SANITIZER = {"memcheck": "-sanitize=memcheck -g-tmem-access-check"}


class Refused(Exception):
    """The run ends with `code`, after `lines` on standard error."""

    def __init__(self, code: int, *lines: str) -> None:
        super().__init__(*lines)
        self.code = code
        self.lines = lines


def compile_file(given: Given) -> None:
    """Do what a command line without mistakes asks for.

    Raises:
        Refused: with the exit code and the messages.
    """
    data = _bytes_of(given.source)
    version = _checked_version(data)
    target = _checked_target(given, version)
    level = _checked_level(given)
    _check_before_reading(given)
    remarks = RemarkOutput.of(given)
    if given["l"] or remarks.file is not None:
        _check_program(data)
        _check_remark_file(remarks)
        _check_libraries(given)
    path = given["output-file"] if given["output-file"] is not None else "elf.o"
    with _failures(), ExitStack() as stack:
        output = _opened(path, data, stack)
        artifact = _compiled(given, data, target, level)
        remarks.write(artifact.remarks)
        output.commit(artifact.cubin)


def _opened(path: str, data: bytes, stack: ExitStack) -> Output:
    """The output file; where it cannot be written, a broken program is told first."""
    try:
        return stack.enter_context(Output(path))
    except ConfigurationError:
        _check_program(data)
        raise


#: Values of `--host-arch`, and what they mean to the emitter of cubins.
_HOSTS = {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}


def _compiled(given: Given, data: bytes, target: str, level: int) -> Artifact:
    from tile_core.cache import Cache
    from tile_core.cached import compile_cached
    from tile_core.options import Spelled

    options = {name: True for name in ("lineinfo", "device-debug") if given[name]}
    # -g says more than --lineinfo, and the pipelines take one of them.
    if given["device-debug"]:
        options.pop("lineinfo", None)
    passes: dict[str, Any] = {}
    wishes = wishes_of(os.environ)
    if wishes.dump_program:
        _print_program(data)
    if given["host-arch"]:
        passes["cubin.host-triple"] = _HOSTS[given["host-arch"]]
    ptxas = [_SANITIZER[given["sanitize"]]] if given["sanitize"] else []
    if wishes.ptxas_options:
        ptxas.append(joined(wishes.ptxas_options))
    if ptxas:
        passes["cubin.ptxas-options"] = Spelled(" ".join(ptxas))
    # A file of knobs is none of the things that the key of the cache covers.
    seen = wishes.watches or bool(wishes.ptxas_options)
    return compile_cached(
        data, target, None if seen else Cache.of_environment(), opt_level=level, options=options,
        pass_options=passes, name=given.source, keep_stages=False, on_stage=wishes.on_stage,
        instrumentations=wishes.instrumentations(),
    )  # fmt: skip


def _print_program(data: bytes) -> None:
    from tile_cudatile.bytecode.reader import read_bytecode
    from tile_cudatile.text.printer import print_text

    print(print_text(read_bytecode(data)), file=sys.stderr)


@contextmanager
def _failures() -> Iterator[None]:
    """Errors of the compiler, with the released tool's last line and code."""
    try:
        yield
    except InputError as error:
        raise Refused(ExitCode.INPUT, *error.render().splitlines(), _NOT_BYTECODE) from error
    except ConfigurationError as error:
        raise Refused(error.exit_code, *error.render().splitlines()) from error
    except TileError as error:
        last = "error: failed to compile Tile IR program"
        raise Refused(ExitCode.COMPILE, *error.render().splitlines(), last) from error


# --- checks, in order ----------------------------------------------------------------------------


def _bytes_of(source: str) -> bytes:
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise Refused(
            ExitCode.USAGE, f"error: unable to read input file '{source}': {error.strerror}"
        ) from error


def _checked_version(data: bytes) -> tuple[int, int]:
    if not data.startswith(MAGIC) or len(data) < _VERSION_AT + 2:
        looks = " (it looks like MLIR bytecode instead)" if data.startswith(_MLIR_MAGIC) else ""
        raise Refused(ExitCode.INPUT, _NOT_BYTECODE + looks)
    version = data[_VERSION_AT], data[_VERSION_AT + 1]
    if version not in SUPPORTED:
        raise Refused(
            ExitCode.INPUT,
            f"error: unsupported Tile IR bytecode version: {version[0]}.{version[1]}",
        )
    return version


def _checked_target(given: Given, version: tuple[int, int]) -> str:
    """The GPU; it has to be given, and the message for none is that of an unknown one."""
    from tile_core.registry import default_registry

    name = given["gpu-name"] or "sm_0"
    if name == "sm_0" or name not in default_registry().names("target"):
        raise Refused(
            ExitCode.CONFIGURATION,
            f"error: GPU architecture {name} is not supported by this version of tileiras. "
            "You may need a newer toolchain that supports this architecture "
            f"(bytecode in file is version {version[0]}.{version[1]}).",
        )
    return name


def _checked_level(given: Given) -> int:
    level = 3 if given["opt-level"] is None else given["opt-level"]
    if level not in _LEVELS:
        raise Refused(ExitCode.CONFIGURATION, f"error: invalid optimization level: {level}")
    if given["device-debug"] and level:
        raise Refused(
            ExitCode.CONFIGURATION,
            "error: optimized debugging is currently not supported, change the optimization level "
            "to 0 or disable full debug info",
        )
    return level


def _check_before_reading(given: Given) -> None:
    if given["apply-controls"]:
        raise Refused(
            ExitCode.CONFIGURATION, "error: --apply-controls is not supported on this platform"
        )

    if given["host-os"] == "windows":
        # The released tool takes it; a cubin with Linux code for a host that is not would not run.
        raise Refused(ExitCode.CONFIGURATION, "error: host code for windows cannot be made yet")


def _check_program(data: bytes) -> None:
    """What is wrong with the program, before what is wrong with what belongs to it."""
    from tile_cudatile.bytecode.reader import read_bytecode

    with _failures():
        read_bytecode(data)


def _check_remark_file(remarks: RemarkOutput) -> None:
    problem = remarks.problem()
    if problem:
        raise Refused(
            ExitCode.INPUT,
            f"Error opening remark output file '{remarks.file}': {problem}",
            "error: failed to enable optimization remarks",
        )


def _check_libraries(given: Given) -> None:
    if not given["l"]:
        return
    if "simt" not in (given["preview"] or ()):
        raise Refused(ExitCode.COMPILE, "error: libraries require the 'simt' preview feature")
    for path in given["l"]:
        try:
            os.close(os.open(path, os.O_RDONLY))
        except OSError as error:
            raise Refused(
                ExitCode.COMPILE, f"error: failed to open tile library: {error.strerror}"
            ) from error
    raise Refused(
        ExitCode.COMPILE,
        f"error: tile libraries cannot be linked yet: '{given['l'][0]}'",
        "error: failed to compile Tile IR program",
    )

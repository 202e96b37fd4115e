"""The tile compiler that cuTile finds: this one, in process, ending with PTX; or tileiras.

cuTile runs a binary on a file of bytecode and reads a cubin back. The stand-in does the same with
the same arguments; what it writes is what the simulator loads: PTX text of this compiler, a cubin
with PTX inside of NVIDIA's.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_core.diagnostics import SourceLocation, TileError

if TYPE_CHECKING:
    from tile_sim.cutile.session import Settings


Image = str | bytes
COMPILERS = ("tilec", "tileiras", "installed", "none")
#: What "none" makes of a program: text without kernels, of which no launch asks for any.
_NOTHING = "// not compiled"


@dataclass(frozen=True)
class Compilation:
    """One run of the compiler; `image` (PTX, or a cubin) is None where it failed with `error`."""

    bytecode: bytes
    arch: str
    level: int | None
    image: Image | None
    error: TileError | None = None

    @property
    def ptx(self) -> str:
        """The text of the kernels; empty where the compiler failed or there are none."""
        if isinstance(self.image, bytes):
            from tile_sim.peer.cubin import Cubin

            cubin = Cubin(self.image)
            return cubin.ptx if cubin.has_ptx else ""
        return self.image or ""


def _nothing_installed() -> Any:
    raise RuntimeError("cuTile has not been asked which tileiras is installed")


class Compiler:
    """Stands for cuTile's `_CompilerBinary`.

    `watch`, if there is one, is called with each finished `Compilation`. Programs that were
    compiled are remembered by their bytes, on disk where `Settings.cache` names a folder.
    """

    pass_cuda_home_var = False
    bin_path = ld_path = ""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.watch: Callable[[Compilation], None] | None = None
        self.made: dict[Image, Compilation] = {}
        #: cuTile's own search for the binary that this object stands for.
        self.installed: Callable[[], Any] = _nothing_installed
        # cuTile asks it for its version.
        beside = str(Path(sys.executable).parent)
        self.path = shutil.which("tilec", path=beside) or shutil.which("tilec") or "tilec"

    def run(
        self,
        args: Sequence[str],
        flags: Sequence[str],
        timeout_sec: float | None = None,
        **unknown: Any,
    ) -> None:
        """Compile `args` = (input, "-o", output). Raises cuTile's TileCompilerExecutionError."""
        if self.settings.compiler == "installed":
            # What it makes is looked at no further: the simulator needs PTX.
            self.installed().run(args, flags, timeout_sec, **unknown)
        given = _parser().parse_known_args([*args, *flags])[0]
        level = self.settings.opt_level
        if level is None and self.settings.pipeline is None:
            level = given.level
        done = self.compile(Path(given.input).read_bytes(), self._arch(given.gpu_name), level)
        if done.error is not None:
            raise _as_cutile(done.error, " ".join(flags)) from done.error
        assert done.image is not None
        Path(given.output).write_bytes(bytes_of(done.image))

    def _arch(self, wanted: str) -> str:
        """The set target where it is the wanted one with a suffix ("sm_90a")."""
        own = self.settings.arch
        return own if own.rstrip("af") == wanted else wanted

    def compile(self, bytecode: bytes, arch: str, level: int | None) -> Compilation:
        """Compile, or find what was made of the same bytes. Errors are part of the result."""
        image, error = self._remembered(bytecode, arch, level), None
        if image is None:
            try:
                image = self._compile(bytecode, arch, level)
            except TileError as failure:
                error = failure
        done = Compilation(bytecode, arch, level, image, error)
        if image is not None:
            self.made[image] = done
            self._remember(done)
        if self.watch is not None:
            self.watch(done)
        return done

    def _compile(self, bytecode: bytes, arch: str, level: int | None) -> Image:
        if self.settings.compiler == "none":
            return _NOTHING
        if self.settings.compiler == "tileiras":
            from tile_sim.peer import tileiras

            return tileiras.find().compile(bytecode, arch, 3 if level is None else level).data
        return self._compile_here(bytecode, arch, level)

    def _compile_here(self, bytecode: bytes, arch: str, level: int | None) -> str:
        from tile_core.api import compile as compile_program

        settings = self.settings
        watch = settings.watch.next(arch) if settings.watch is not None else None
        seen: dict[str, Any] = {}
        if watch is not None:
            seen = {
                "instrumentations": watch.observers.instrumentations,
                "verify": watch.observers.verify,
                "on_stage": watch.observers.on_stage,
            }
        made = compile_program(
            bytecode, arch, opt_level=level, pipeline=settings.pipeline,
            options=settings.options, pass_options=settings.pass_options, emit="ptx",
            keep_stages=watch is not None and watch.emit is not None, **seen,
        )  # fmt: skip
        if watch is not None:
            watch.report(made)
        output = made.output
        return output.decode() if isinstance(output, bytes) else str(output)

    # --- memory -----------------------------------------------------------------------------

    def _file(self, bytecode: bytes, arch: str, level: int | None) -> Path | None:
        settings = self.settings
        if settings.cache is None or settings.compiler == "none":
            return None
        pipeline = settings.pipeline
        if pipeline is not None and Path(pipeline).is_file():
            pipeline = Path(pipeline).read_text()
        rest = (arch, level, pipeline, settings.options, settings.pass_options)
        theirs = settings.compiler == "tileiras"
        version = tileiras_version() if theirs else sources_digest()
        key = hashlib.sha256(version + repr(rest).encode() + b"\0" + bytecode).hexdigest()
        return Path(settings.cache) / key[:2] / f"{key}.{'cubin' if theirs else 'ptx'}"

    def _remembered(self, bytecode: bytes, arch: str, level: int | None) -> Image | None:
        file = self._file(bytecode, arch, level)
        if file is None or not file.is_file():
            return None
        return file.read_text() if file.suffix == ".ptx" else file.read_bytes()

    def _remember(self, done: Compilation) -> None:
        file = self._file(done.bytecode, done.arch, done.level)
        if file is None or file.is_file() or done.image is None:
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        # Several processes may write the same file: each moves a whole one into place.
        part = file.with_suffix(f".{id(self)}.part")
        part.write_bytes(bytes_of(done.image))
        part.replace(file)


def bytes_of(image: Image) -> bytes:
    """What a file has of it."""
    return image.encode() if isinstance(image, str) else image


def tileiras_version() -> bytes:
    """Stands for the installed tileiras among what is remembered."""
    from tile_sim.peer import tileiras

    return tileiras.find().version.encode()


@cache
def sources_digest() -> bytes:
    """Stands for the version of the compiler: a hash of all its sources."""
    digest = hashlib.sha256()
    plugins = {entry.value.split(".")[0] for entry in entry_points(group="tile.plugins")}
    for package in sorted({"tile_core", "tile_pipelines", *plugins} - {"tile_sim"}):
        found = import_module(package).__file__
        assert found is not None
        for file in sorted(Path(found).parent.rglob("*")):
            if file.suffix in (".py", ".toml"):
                digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.digest()


@cache
def _parser() -> argparse.ArgumentParser:
    """Of what cuTile passes, the options that matter here."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("input")
    parser.add_argument("-o", dest="output", required=True)
    parser.add_argument("--gpu-name", required=True)
    parser.add_argument("-O", dest="level", type=int, default=3)
    return parser


def _as_cutile(error: TileError, flags: str) -> Exception:
    """The exception that cuTile would raise had a binary printed the error."""
    exceptions = import_module("cuda.tile._exception")
    place = exceptions.Loc.unknown()
    if isinstance(error.where, SourceLocation):
        place = exceptions.Loc(
            error.where.line or None, error.where.column or None, error.where.file
        )
    lines = [error.message, *error.notes, *([f"hint: {error.hint}"] if error.hint else [])]
    code = int(error.exit_code)
    return exceptions.TileCompilerExecutionError(code, "\n".join(lines), place, flags, None)

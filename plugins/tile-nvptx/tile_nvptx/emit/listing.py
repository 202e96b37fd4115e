"""From a cubin to the text of its SASS, by NVIDIA's nvdisasm or cuobjdump."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from tile_core.diagnostics import CompileError, ConfigurationError
from tile_core.emit import EmitContext
from tile_core.options import option
from tile_nvptx.emit import toolchain
from tile_nvptx.emit.options import EmitOptions
from tile_nvptx.emit.process import run_tool

#: The tools that can do it, best first, and how they are asked for code.
_ASKED = {"nvdisasm": ("-c",), "cuobjdump": ("-sass",)}
#: What nvdisasm is told so that source lines stand in the listing; cuobjdump has no such option.
_LINES = "-g"


@dataclass
class SassEmitter:
    """Cubin bytes => SASS text, as nvdisasm prints it, else cuobjdump.

    `metadata` holds, after `emit`, "tool": which one, where it is and how it was found.
    """

    name: ClassVar[str] = "sass"
    consumes: ClassVar[str] = "cubin"
    produces: ClassVar[str] = "sass"

    timeout: float = option(120.0, "seconds that the disassembler may take")
    metadata: dict[str, Any] = field(default_factory=dict, init=False)

    def emit(self, source: bytes, cx: EmitContext) -> str:
        """The listing of `source`.

        Raises:
            CompileError: the tool does not read the cubin.
            ConfigurationError: neither tool is there.
        """
        tool = disassembler()
        self.metadata = {"tool": tool}
        asked = [*_ASKED[tool.path.stem]]
        if tool.path.stem == "nvdisasm" and EmitOptions.of(cx.options).wants_lines:
            asked.append(_LINES)
        with tempfile.TemporaryDirectory(prefix="tilec-") as folder:
            path = Path(folder, "kernels.cubin")
            path.write_bytes(source)
            try:
                done = run_tool([str(tool.path), *asked, str(path)], self.timeout)
            except OSError as error:
                raise ConfigurationError(f"cannot run {tool.path}: {error.strerror}") from error
            text = done.output.replace(f"{folder}/", "")
        if done.status != 0 or done.timed_out:
            raise CompileError(
                f"{tool.path.stem} failed ({done.ending})", notes=tuple(text.splitlines()[:8])
            )
        return text


def disassembler() -> toolchain.Found:
    """nvdisasm, else cuobjdump.

    Raises:
        ConfigurationError: neither is there; with the places looked at.
    """
    for name in _ASKED:
        found = toolchain.find(name)
        if found is not None:
            return found
    return toolchain.require("nvdisasm")

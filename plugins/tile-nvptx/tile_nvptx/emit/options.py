"""Options of the emitters: names as pipelines spell them, defaults, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tile_core.diagnostics import ConfigurationError


@dataclass(frozen=True)
class EmitOptions:
    """What `EmitContext.options` may say to the emitters of this package.

    Options of passes come in the same mapping; those are none of ours.
    """

    opt_level: int = 3  # LLVM and ptxas, 0..3
    ftz: bool = False  # f32 subnormals become zero, in our code and in libdevice
    tile_launch: bool = True  # mark kernels as Tile IR, so that the driver takes a (1,1,1) block
    ptx_version: int = 0  # at least this `.version`, x10; 0: what the target needs
    ptxas_options: str = ""  # further ptxas arguments, as a shell would split them
    lineinfo: bool = False
    device_debug: bool = False
    codegen_timeout: float = 600.0  # seconds for LLVM on one module
    ptxas_timeout: float = 600.0  # seconds for ptxas on one module

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> EmitOptions:
        """The options among `options`.

        Raises:
            ConfigurationError: a value of the wrong type or out of range.
        """
        values: dict[str, Any] = {}
        for spec in fields(cls):
            name = spec.name.replace("_", "-")
            if name in options:
                values[spec.name] = _checked(name, options[name], spec.default)
        made = cls(**values)
        if not 0 <= made.opt_level <= 3:
            raise ConfigurationError(f"invalid optimization level: {made.opt_level}")
        return made


def _checked(name: str, value: Any, default: Any) -> Any:
    kind = type(default)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ConfigurationError(f"option '{name}' expects {kind.__name__}, but got {value!r}")
    return value

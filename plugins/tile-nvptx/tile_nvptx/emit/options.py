"""Pipeline options that the emitters share; their own options are fields of their classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tile_core.diagnostics import ConfigurationError


@dataclass(frozen=True)
class EmitOptions:
    """What `EmitContext.options` says to all emitters of this package."""

    opt_level: int = 3  # LLVM and ptxas, 0..3
    lineinfo: bool = False
    device_debug: bool = False
    approx: bool = False

    @property
    def wants_lines(self) -> bool:
        """Whether source lines have to reach the code."""
        return self.lineinfo or self.device_debug

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
    if type(value) is not type(default):  # a bool is an int in Python, not here
        wanted = type(default).__name__
        raise ConfigurationError(f"option '{name}' expects {wanted}, but got {value!r}")
    return value

"""GPU targets: one frozen record per run, facts from `targets.toml` and from plugins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tile_core.diagnostics import ConfigurationError, nearest
from tile_core.toml_text import package_text, parsed


@dataclass(frozen=True)
class Target:
    """A GPU architecture as the passes see it."""

    name: str  # "sm_90", the --gpu-name spelling
    chip: str  # "sm_90a", what LLVM and ptxas are told
    ptx: int  # lowest PTX ISA version that knows the chip, x10
    max_shared: int  # bytes of shared memory a block may use, opt-in maximum
    max_warps_per_sm: int
    max_registers: int = 255  # per thread
    registers: int = 65536  # of a multiprocessor, 32 bits each
    warp_size: int = 32
    static_shared: int = 48 * 1024  # bytes of static arrays that ptxas takes
    parameter_base: int = 0x380  # bytes before the parameters in constant bank 0
    max_vector_bits: int = 128  # widest global load or store of one thread
    clusters: bool = False
    multicast: bool = False  # copies to several blocks of a cluster at the rate of one
    tensor_memory: bool = False

    @property
    def sm(self) -> int:
        """The compute capability as major*10 + minor."""
        return int(self.name.removeprefix("sm_"))


def parse_targets(text: str, origin: str) -> dict[str, Target]:
    """Targets of a TOML text; keys are target names, fields those of `Target` with dashes."""
    found: dict[str, Target] = {}
    for name, facts in parsed(text).items():
        found[name] = _target(name, facts, origin)
    return found


def _target(name: str, facts: Mapping[str, Any], origin: str) -> Target:
    try:
        return Target(name=name, **{key.replace("-", "_"): value for key, value in facts.items()})
    except TypeError as error:
        raise ConfigurationError(
            f"target '{name}' is not described rightly: {error}", where=origin
        ) from error


@cache
def builtin_targets() -> Mapping[str, Target]:
    """The targets that the core ships."""
    text = package_text("tile_core", "targets.toml")
    return parse_targets(text, "tile_core/targets.toml")


def find_target(name: str, targets: Mapping[str, Target]) -> Target:
    """The target called `name`.

    Raises:
        ConfigurationError: no such target; the nearest name is suggested.
    """
    if name in targets:
        return targets[name]
    raise unknown_target(name, targets)


def unknown_target(name: str, known: Iterable[str]) -> ConfigurationError:
    """The error for a GPU that is none of `known`."""
    names = sorted(known, key=lambda n: (len(n), n))
    close = nearest(name, names)
    return ConfigurationError(
        f"GPU architecture {name} is not supported",
        notes=(f"known targets: {', '.join(names)}",),
        hint=f"did you mean {close}?" if close else None,
    )

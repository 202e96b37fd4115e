"""What `__nvvm_reflect` answers: how the functions of libdevice shall round and flush."""

from __future__ import annotations

import re

from tile_core.diagnostics import ConfigurationError
from tile_core.target import Target
from tile_nvptx.emit.options import EmitOptions

_OPTION = "nvvm-reflect-add"
_INT32 = range(-(2**31), 2**31)


def values(target: Target, options: EmitOptions, added: str = "") -> dict[str, int]:
    """Key -> answer (libdevice user's guide, reflection parameters); unknown keys get 0.

    Functions of libdevice never flush, unless `added` says so: told to, they give NaN for
    logarithms and powers of subnormals below zero, and flush only some results. The language has
    no flush_to_zero for them either.

    Args:
        added: "NAME=INT,..", which outranks the others (page 106).

    Raises:
        ConfigurationError: `added` is something else.
    """
    precise = int(not options.approx)
    return {
        "__CUDA_ARCH": target.sm * 10,
        "__CUDA_FTZ": 0,
        "__CUDA_PREC_DIV": precise,
        "__CUDA_PREC_SQRT": precise,
        **dict(_entry(entry) for entry in added.split(",") if added),
    }


def _entry(entry: str) -> tuple[str, int]:
    name, _, value = entry.partition("=")
    hint = f"say -D ptx.{_OPTION}=__CUDA_PREC_SQRT=0"
    if not name:
        raise ConfigurationError(f"Empty name in {_OPTION} option '{entry}'", hint=hint)
    if not value:
        raise ConfigurationError(f"Missing value in {_OPTION} option '{entry}'", hint=hint)
    if not re.fullmatch(r"-?\d+", value) or int(value) not in _INT32:
        raise ConfigurationError(f"integer value expected in {_OPTION} option '{entry}'", hint=hint)
    return name, int(value)

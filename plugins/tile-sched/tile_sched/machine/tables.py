"""Reading machine models from TOML, and asking them what an operation costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from math import ceil
from typing import Any

import tomli

from tile_core.diagnostics import ConfigurationError, nearest
from tile_core.sched import MachineModel, Use

#: Measures of an operation that rates refer to.
MEASURES = ("bytes", "elements", "products")


@dataclass(frozen=True)
class Cost:
    """What one operation holds and how long its result takes."""

    latency: int  # cycles
    uses: tuple[Use, ...]


@dataclass(frozen=True)
class _Time:
    """Cycles: `fixed`, and the work of an operation by `rate` per cycle."""

    fixed: float = 0
    rate: float = 0  # 0: no work counts
    measure: str = "elements"

    def cycles(self, work: Mapping[str, int], scale: float) -> int:
        return ceil(
            self.fixed + (work.get(self.measure, 0) * scale / self.rate if self.rate else 0)
        )


@dataclass(frozen=True)
class _Class:
    latency: _Time
    uses: tuple[tuple[str, _Time, int], ...]  # resource, cycles, amount


@dataclass(frozen=True)
class MachineTable:
    """A machine model's file: resources, and classes of operations."""

    name: str
    summary: str
    slots: Mapping[str, int]
    pools: Mapping[str, int]
    families: Mapping[str, str]
    banks: tuple[str, ...]
    ceiling: int
    classes: Mapping[str, _Class]

    def model(
        self, target: str, num_warps: int, *, registers: int = 0, shared: int = 0
    ) -> MachineModel:
        """The resources for a block of `num_warps` warps on `target`."""
        units = dict.fromkeys(self.slots, 1) | dict(self.pools)
        return MachineModel(
            target,
            tuple(sorted(units.items())),
            num_warps,
            tuple(sorted(self.slots.items(), key=lambda item: item[1])),
            tuple(sorted(self.families.items())),
            self.banks,
            registers,
            shared,
            self.ceiling,
        )

    def cost(self, name: str, work: Mapping[str, int], scale: float = 1) -> Cost:
        """What an operation of class `name` costs.

        Args:
            work: "bytes", "elements", "products" of the whole tile.
            scale: how much more work the operation is than its class says (slow instructions).

        Raises:
            ConfigurationError: the model has no such class.
        """
        found = self.classes.get(name)
        if found is None:
            close = nearest(name, list(self.classes))
            raise ConfigurationError(
                f"machine model '{self.name}' has no class '{name}'",
                hint=f"did you mean '{close}'?" if close else "add it to [classes]",
            )
        uses = tuple(
            Use(resource, cycles, amount)
            for resource, time, amount in found.uses
            if (cycles := time.cycles(work, scale)) > 0
        )
        busy = max((use.cycles for use in uses), default=0)
        return Cost(max(found.latency.cycles(work, scale), busy if found.latency.rate else 0), uses)


def load_machine(name: str) -> MachineTable:
    """The shipped model `name`, e.g. "spec".

    Raises:
        ConfigurationError: there is none.
    """
    file = resources.files("tile_sched.machine").joinpath(f"{name}.toml")
    if not file.is_file():
        raise ConfigurationError(f"there is no machine model '{name}'")
    return parse_machine(file.read_text(), f"tile_sched/machine/{name}.toml", _shipped)


def _shipped(name: str) -> str:
    return resources.files("tile_sched.machine").joinpath(f"{name}.toml").read_text()


def parse_machine(text: str, origin: str, base: Callable[[str], str] | None = None) -> MachineTable:
    """A model from its file; `extends` starts from another one, read by `base`.

    Raises:
        ConfigurationError: not TOML, an unknown key, or a resource or measure that is not there.
    """
    try:
        data = tomli.loads(text)
        if "extends" in data.get("model", {}):
            wanted = data["model"]["extends"]
            data = _merged(tomli.loads((base or _shipped)(wanted)), data)
        return _table(data)
    except (tomli.TOMLDecodeError, KeyError, TypeError, ValueError, OSError) as error:
        reason = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ConfigurationError(
            f"machine model is not described rightly: {reason}", where=origin
        ) from error


def _merged(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """`own` over `base`, table by table; a class is replaced as a whole."""
    found = dict(base)
    for key, value in own.items():
        found[key] = base.get(key, {}) | value if isinstance(value, dict) else value
    return found


_TABLES = ("model", "slots", "pools", "families", "budget", "classes")


def _table(data: Mapping[str, Any]) -> MachineTable:
    unknown = sorted(set(data) - set(_TABLES))
    if unknown:
        raise ValueError(f"unknown table '{unknown[0]}'; there are {', '.join(_TABLES)}")
    slots, pools = dict(data["slots"]), dict(data["pools"])
    for name, capacity in pools.items():
        if not isinstance(capacity, int) or capacity < 1:
            raise ValueError(f"pool '{name}' has a capacity of {capacity!r}")
        slots.pop(name, None)  # a pool has no row bit
    known = set(slots) | set(pools)
    budget = data.get("budget", {})
    classes = {name: _class(name, facts, known) for name, facts in data["classes"].items()}
    families = {
        resource: family for family, members in data.get("families", {}).items()
        for resource in members
    }  # fmt: skip
    model = data["model"]
    banks = tuple(budget.get("banks", ()))
    return MachineTable(model["name"], model.get("summary", ""), slots, pools, families, banks,
                        budget.get("ceiling", 0), classes)  # fmt: skip


def _class(name: str, facts: Mapping[str, Any], known: set[str]) -> _Class:
    uses = []
    for use in facts["uses"]:
        if use["resource"] not in known:
            raise ValueError(f"class '{name}' uses '{use['resource']}', which is no resource")
        uses.append((use["resource"], _time(name, use["cycles"]), int(use.get("amount", 1))))
    return _Class(_time(name, facts["latency"]), tuple(uses))


def _time(name: str, value: Any) -> _Time:
    if isinstance(value, (int, float)):
        return _Time(value)
    time = _Time(**value)
    if time.measure not in MEASURES:
        raise ValueError(f"class '{name}' counts '{time.measure}', not {', '.join(MEASURES)}")
    return time

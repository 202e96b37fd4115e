"""Reading machine models from TOML, and asking them what an operation costs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Any

from tile_core.diagnostics import ConfigurationError, nearest
from tile_core.machines import Machine
from tile_core.sched import MachineModel, Use
from tile_core.toml_text import package_text, parsed
from tile_sched.machine.expressions import parse, value


@dataclass(frozen=True)
class Cost:
    """What one operation holds and how long its result takes."""

    latency: int  # cycles
    uses: tuple[Use, ...]


@dataclass(frozen=True)
class _Class:
    """A class of operations, in expressions of their properties."""

    latency: ast.expr
    uses: tuple[tuple[str, ast.expr, int], ...]  # resource, cycles, amount


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
    issue: str  # resource that whatever holds anything also holds for a cycle; "": none
    classes: Mapping[str, _Class]

    def model(
        self,
        target: str,
        num_warps: int,
        *,
        registers: int = 0,
        shared: int = 0,
        register_file: int = 0,
        max_warps: int = 0,
        memory_rate: float = 0.0,
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
            register_file,
            max_warps,
            memory_rate,
            self.ceiling,
        )

    def cost(self, name: str, work: Mapping[str, float], machine: Machine | None = None) -> Cost:
        """What an operation of class `name` costs.

        Args:
            work: measures of the whole tile (`expressions.MEASURES`).
            machine: the GPU whose numbers the class names, if it names any.

        Raises:
            ConfigurationError: the model has no such class, or the machine lacks a number.
        """
        found = self.classes.get(name)
        if found is None:
            close = nearest(name, list(self.classes))
            raise ConfigurationError(
                f"machine model '{self.name}' has no class '{name}'",
                hint=f"did you mean '{close}'?" if close else "add it to [classes]",
            )
        try:
            uses = tuple(
                Use(resource, cycles, amount)
                for resource, time, amount in found.uses
                if (cycles := ceil(value(time, machine, work))) > 0
            )
            if uses and self.issue and all(use.resource != self.issue for use in uses):
                uses = (Use(self.issue, 1), *uses)
            return Cost(ceil(value(found.latency, machine, work)), uses)
        except ValueError as error:
            name_ = machine.name if machine is not None else "no machine"
            raise ConfigurationError(
                f"machine model '{self.name}', class '{name}', on {name_}: {error}"
            ) from error


def load_machine(name: str) -> MachineTable:
    """The shipped model `name`, e.g. "spec".

    Raises:
        ConfigurationError: there is none.
    """
    try:
        text = _shipped(name)
    except OSError as error:
        raise ConfigurationError(f"there is no machine model '{name}'") from error
    return parse_machine(text, f"tile_sched/machine/{name}.toml", _shipped)


def _shipped(name: str) -> str:
    return package_text("tile_sched.machine", f"{name}.toml")


@cache
def parse_machine(text: str, origin: str, base: Callable[[str], str] | None = None) -> MachineTable:
    """A model from its file; `extends` starts from another one, read by `base`.

    Raises:
        ConfigurationError: not TOML, an unknown key, or a resource or measure that is not there.
    """
    try:
        data = _with_base(parsed(text), base or _shipped, ())
        return _table(data)
    except (KeyError, TypeError, ValueError, OSError) as error:
        reason = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ConfigurationError(
            f"machine model is not described rightly: {reason}", where=origin
        ) from error


def _with_base(
    data: dict[str, Any], base: Callable[[str], str], above: tuple[str, ...]
) -> dict[str, Any]:
    """`data` over the model that it extends, which may extend another."""
    wanted = data.get("model", {}).get("extends")
    if wanted is None:
        return data
    if wanted in above:
        raise ValueError(f"'{wanted}' extends itself")
    return _merged(_with_base(parsed(base(wanted)), base, (*above, wanted)), data)


def _merged(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """`own` over `base`, table by table; a class is replaced as a whole."""
    found = dict(base)
    for key, mine in own.items():
        found[key] = base.get(key, {}) | mine if isinstance(mine, dict) else mine
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
    if budget.get("issue", "") not in {"", *known}:
        raise ValueError(f"issue is '{budget['issue']}', which is no resource")
    classes = {name: _class(name, facts, known) for name, facts in data["classes"].items()}
    families = {
        resource: family for family, members in data.get("families", {}).items()
        for resource in members
    }  # fmt: skip
    model = data["model"]
    banks = tuple(budget.get("banks", ()))
    return MachineTable(model["name"], model.get("summary", ""), slots, pools, families, banks,
                        budget.get("ceiling", 0), budget.get("issue", ""), classes)  # fmt: skip


def _class(name: str, facts: Mapping[str, Any], known: set[str]) -> _Class:
    uses = []
    for use in facts["uses"]:
        if use["resource"] not in known:
            raise ValueError(f"class '{name}' uses '{use['resource']}', which is no resource")
        uses.append((use["resource"], parse(use["cycles"]), int(use.get("amount", 1))))
    return _Class(parse(facts["latency"]), tuple(uses))

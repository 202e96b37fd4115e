"""Which targets have which instructions: the tables against ptxas, on both sides of each floor."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.ptx_families import FAMILIES, Family, module
from tile_nvptx.emit import toolchain
from tile_nvptx.emit.floors import INTRINSICS, OPERATIONS, missing, missing_in_ptx
from tile_nvptx.emit.process import run_tool

from tile_core.target import Target, builtin_targets

TARGETS = list(builtin_targets().values())
#: Both sides of the floors that most families have.
SAMPLE = [target for target in TARGETS if target.name in ("sm_89", "sm_90", "sm_100", "sm_110")]


def accepted(family: Family, target: Target, folder: Path) -> bool:
    """Whether ptxas takes the instruction for the target."""
    source = folder / f"{target.name}.ptx"
    source.write_text(module(family, target.chip))
    ptxas = str(toolchain.require("ptxas").path)
    argv = [ptxas, "-arch", target.chip, "-O0", str(source), "-o", str(folder / "out.cubin")]
    done = run_tool(argv, timeout=60)
    assert done.status == 0 or done.status > 0, done.ending
    return done.status == 0


def claims(family: Family, target: Target) -> dict[str, bool]:
    """What each table says of the family, by the name that it was asked for."""
    found = {f"PTX {family.body.split()[0]}": missing_in_ptx(family.body, target) is None}
    for name in family.intrinsics:
        found[f"llvm.nvvm.{name}"] = missing(name, INTRINSICS, target) is None
    for name in family.operations:
        found[f"nvvm.{name}"] = missing(name, OPERATIONS, target) is None
    return found


def check(family: Family, targets: list[Target], folder: Path) -> set[bool]:
    seen: set[bool] = set()
    for target in targets:
        real = accepted(family, target, folder)
        seen.add(real)
        assert set(claims(family, target).values()) == {real}, (target.name, real)
    return seen


@pytest.mark.parametrize("family", FAMILIES[::6], ids=lambda family: family.name)
def test_the_tables_agree_with_ptxas(family: Family, tmp_path: Path) -> None:
    check(family, SAMPLE, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_tables_agree_with_ptxas_for_every_target(family: Family, tmp_path: Path) -> None:
    assert True in check(family, TARGETS, tmp_path), "no target takes it: is the PTX right?"


FLOORS = {  # target that has the family -> the one before it, by what ptxas 13.5 said
    "mbarrier.try_wait": "sm_90",
    "cp.reduce.async.bulk": "sm_90",
    "fence.mbarrier_init": "sm_90",
    "tensormap.cp_fenceproxy": "sm_90",
    "ldmatrix.m16n16": "sm_100",
    "atom.cluster": "sm_90",
    "red.cluster": "sm_90",
    "ld.v8.f32": "sm_100",
    "add.f32x2": "sm_100",
}


@pytest.mark.parametrize(("name", "floor"), FLOORS.items(), ids=FLOORS)
def test_floors_that_were_missing(name: str, floor: str) -> None:
    family = next(family for family in FAMILIES if family.name == name)
    for target in TARGETS:
        assert set(claims(family, target).values()) == {target.sm >= int(floor[3:])}, target.name

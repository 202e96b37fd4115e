"""Random programs: valid, the same everywhere, defined, and of all operations."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import pytest
from tile_cudatile import print_text, read_bytecode, verify, write_bytecode
from tile_cudatile.ops import BODY_OPS
from tile_cudatile.tree import Op
from tile_cudatile.types import Tile
from tile_fuzz.case import Case, launches_of
from tile_fuzz.generator import Settings, generate
from tile_fuzz.generator.elementwise import signatures
from tile_fuzz.generator.guards import approximate
from tile_fuzz.oracle import certain

#: Operations that no random program has, and why.
NEVER = {
    "print_tko": "the order in which blocks print is open",
    "gdc_launch_dependents_tko": "needs a second kernel that runs at the same time",
    "gdc_wait_tko": "needs a second kernel that runs at the same time",
    "multimem_load_reduce_view_tko": "needs several GPUs",
    "multimem_reduce_view_tko": "needs several GPUs",
    "multimem_store_view_tko": "needs several GPUs",
}
LONG = Settings(operations=160, elements=64, blocks=2)


@cache
def some() -> tuple[Case, ...]:
    return tuple(generate(seed) for seed in range(12))


def operations(case: Case) -> list[Op]:
    return [op for entry in case.module.entries for op in entry.body.walk()]


def test_every_operation_is_drawn_or_listed() -> None:
    drawn: set[str] = set()
    for seed in range(60):
        drawn.update(op.name for op in operations(generate(seed, LONG)))
        if drawn | NEVER.keys() >= BODY_OPS.by_name.keys():
            break
    missing = BODY_OPS.by_name.keys() - drawn - NEVER.keys()
    assert not missing
    assert not drawn & NEVER.keys()


def test_elementwise_operations_come_from_the_tables() -> None:
    found = set(signatures())
    assert {"addf", "fma", "select", "cmpi", "fpowi", "ftof", "bitcast", "divi"} <= found
    # Shapes differ, pointers, or no result.
    assert not {"reshape", "mmaf", "offset", "int_to_ptr", "assert", "iota", "pack"} & found


def test_a_seed_is_one_program_in_every_process() -> None:
    script = (
        "from tile_cudatile import print_text; from tile_fuzz.generator import generate;"
        "case = generate(5); print(print_text(case.module), case.launches)"
    )
    here = generate(5)
    for salt in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": salt, "PYTHONPATH": ":".join(sys.path)},
        )  # fmt: skip
        assert done.stdout == f"{print_text(here.module)} {here.launches}\n"


def test_programs_are_valid_and_travel_with_their_recipe() -> None:
    for case in some():
        verify(case.module)
        again = read_bytecode(write_bytecode(case.packed()))
        assert launches_of(again) == case.launches
        assert print_text(again).split("\n", 1)[1:] == print_text(case.packed()).split("\n", 1)[1:]


def test_results_depend_on_nothing_that_is_left_open() -> None:
    """Not on unspecified values, the order of blocks, atomics, sums, or on how scans are cut."""
    assert all(map(certain, some()))


def test_approximations_reach_only_arrays_that_are_compared_with_a_tolerance() -> None:
    """They may be moved, and converted to be stored, but never computed with."""
    for case in some():
        for entry, launch in zip(case.module.entries, case.launches, strict=True):
            loose = {op.results[0] for op in entry.body.walk() if approximate(op)}
            roots = dict(zip(entry.args, launch.arguments, strict=True))
            for op in entry.body.walk():
                if not loose & {*op.values()}:
                    continue
                assert op.name in CARRIERS, op
                loose.update(r for r in op.results if isinstance(r.type, Tile))
                if op.name.startswith("store"):
                    assert not _array(op, roots).exact


CARRIERS = {
    "permute", "reshape", "broadcast", "cat", "extract", "store_view_tko", "store_ptr_tko",
}  # fmt: skip


def _array(op: Op, roots: dict) -> object:
    """The argument that a store writes to."""
    value = op.group("view" if op.name == "store_view_tko" else "destination")
    while value not in roots:
        value = value.owner.values()[0]  # type: ignore[union-attr]
    return roots[value]


def test_what_is_avoided_does_not_occur() -> None:
    names = {"insert", "f16", "mmaf", "alloca"}
    limits = Settings(avoid=frozenset(names), operations=60)
    for seed in range(6):
        case = generate(seed, limits)
        assert not names & {op.name for op in operations(case)}
        elements = {str(r.type) for op in operations(case) for r in op.results}
        assert not any("f16" in e.replace("bf16", "") for e in elements)


@pytest.mark.parametrize("claim", ["assume", "overflow", "inbounds", "assert"])
def test_claims_are_made(claim: str) -> None:
    found = 0
    for case in some():
        for op in operations(case):
            found += op.name == claim
            found += claim == "overflow" and op.attrs.get("overflow", "none") != "none"
            found += claim == "inbounds" and any(op.attrs.get("inbounds", ()))  # type: ignore[arg-type]
    assert found > 3

"""Random programs: valid, the same everywhere, defined, and of all operations."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from functools import cache
from typing import Any

import pytest
from tile_cudatile import print_text, read_bytecode, verify, write_bytecode
from tile_cudatile.ops import BODY_OPS
from tile_cudatile.tree import Op, Value
from tile_cudatile.types import Tile
from tile_fuzz.case import Case, launches_of
from tile_fuzz.coverage import NEVER, expected, features
from tile_fuzz.favoured import FAVOURED
from tile_fuzz.generator import Settings, generate
from tile_fuzz.generator.elementwise import signatures
from tile_fuzz.generator.guards import approximate
from tile_fuzz.oracle import certain

LONG = Settings(operations=160, elements=128, blocks=2)


@cache
def some() -> tuple[Case, ...]:
    return tuple(generate(seed) for seed in range(12))


def operations(case: Case) -> list[Op]:
    return [op for entry in case.module.entries for op in entry.body.walk()]


@cache
def drawn() -> Counter[str]:
    """What some long programs have."""
    found = Counter()
    for seed in range(60):
        found.update(features(generate(seed, LONG)))
    return found


def test_every_operation_is_drawn_or_listed() -> None:
    assert not BODY_OPS.by_name.keys() - drawn().keys() - NEVER.keys()
    assert not drawn().keys() & NEVER.keys()


def test_types_attributes_and_control_are_drawn() -> None:
    """`tilec fuzz --coverage` lists them; what is rarest takes more programs than these."""
    missing = expected() - drawn().keys()
    assert len(missing) < len(expected()) / 12, sorted(missing)
    assert sum(name.startswith("control") for name in missing) < 4, sorted(missing)


def test_what_is_favoured_is_drawn_more_often() -> None:
    """Loops over tiles of arrays, too, which carry products; and of many turns."""
    plain, favoured = Counter(), Counter()
    for seed in range(24):
        plain.update(features(generate(seed, Settings(operations=12))))
        limits = Settings(operations=12, favour=frozenset({"loops"}))
        favoured.update(features(generate(seed, limits)))
    assert favoured["for"] > 3 * plain["for"] > 0
    assert favoured["mmaf"] + favoured["mmai"] > plain["mmaf"] + plain["mmai"]
    for name, operation in (("products", "mmaf"), ("loads", "load_view_tko")):
        found = Counter()
        for seed in range(24):
            limits = Settings(operations=12, favour=frozenset({name}))
            found.update(features(generate(seed, limits)))
        assert found[operation] > plain[operation]


@pytest.mark.parametrize("seed", range(8))
def test_favoured_programs_are_valid_and_certain(seed: int) -> None:
    case = generate(seed, Settings(operations=8, elements=256, favour=frozenset(FAVOURED)))
    verify(case.module)
    assert certain(case)


def test_products_of_matrices_are_large_enough_for_their_instructions() -> None:
    """wgmma and tcgen05 begin at 64 rows, with 16 columns; other programs have hardly any."""
    limits = Settings(operations=4, favour=frozenset({"matrices"}))
    programs = [operations(generate(seed, limits)) for seed in range(6)]
    types = [op.results[0].type for ops in programs for op in ops if op.name[:3] == "mma"]
    shapes = [type_.shape for type_ in types if isinstance(type_, Tile)]
    large = [shape for shape in shapes if max(shape) >= 64 and min(shape) >= 16]
    assert 2 * len(large) > len(shapes) > len(programs)


def test_scaled_products_are_of_all_formats_and_large_enough_for_their_instructions() -> None:
    limits = Settings(operations=3, favour=frozenset({"scales"}))
    ops = [op for seed in range(40) for op in operations(generate(seed, limits))]
    products = [op for op in ops if op.name == "mmaf_scaled"]
    tiles = [(op.operands[0].type, op.operands[3].type, op.results[0].type) for op in products]
    assert sum(max(sum_.shape) >= 128 for *_, sum_ in tiles) > len(tiles) / 2
    kinds = {(lhs.element.name, scale.element.name) for lhs, scale, _ in tiles}
    assert len(kinds) == 5
    assert any(op.name == "unpack" for op in ops)
    assert any(op.name == "permute" and len(op.attrs["permutation"]) == 5 for op in ops)


def test_hints_are_drawn_where_they_are_favoured() -> None:
    limits = Settings(operations=3, favour=frozenset({"scales", "hints"}))
    cases = [generate(seed, limits) for seed in range(12)]
    kernels = [
        hints for case in cases for e in case.module.entries for hints in e.hints.targets.values()
    ]
    assert any("num_cta_in_cga" in hints for hints in kernels)
    loads = [op for case in cases for op in operations(case) if op.name == "load_view_tko"]
    assert any(op.attrs.get("optimization_hints") for op in loads)


def test_products_of_chains_read_what_others_gave() -> None:
    """In nine of ten programs; the rest drew other statements alone."""
    limits = Settings(operations=3, favour=frozenset({"chains"}))
    programs = [operations(generate(seed, limits)) for seed in range(12)]
    assert sum(map(_has_chain, programs)) >= 9


def _has_chain(ops: list[Op]) -> bool:
    """Whether what a product multiplies depends on what another one gave."""
    given: set[Value] = set()
    for op in ops:  # what is used comes before its uses
        used = set(op.values())
        if op.name == "mmaf" and op.operands[0] in given:
            return True
        if op.name == "mmaf" or used & given or any(given & set(o.values()) for o in op.walk()):
            given.update(op.results)
    return False


def test_leaving_a_turn_early_keeps_sums_exact() -> None:
    """A `continue` of this program had given the sum of a product any number."""
    limits = Settings(operations=8, favour=frozenset({"products", "loops"}))
    assert certain(generate(63797, limits))


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


def _array(op: Op, roots: dict) -> Any:
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

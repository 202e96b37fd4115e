"""No row of the MMA registry is left out: each is proved in the simulator, operand by operand.

A row that the simulator does not execute would have to stand in `EXCEPTIONS` with its reason, and
has to be refused there; none does.
"""

import pytest
import test_atoms_simulated
import test_sparse_simulated
import test_sparse_warpgroup_simulated
import test_tensor_products_simulated
import tile_sim
from ptx_mma import module, tensor_mma, warp_mma, warpgroup_mma
from tile_cute.atoms import MmaRow, find_mma

PROVED = [
    *(atom.row for atom in test_atoms_simulated.DENSE),
    *(atom.row for atom in test_atoms_simulated.SCALED),
    *(atom.row for atom in test_sparse_simulated.SPARSE),
    *(atom.row for atom in test_sparse_simulated.SCALED),
    *test_atoms_simulated.WARPGROUP,
    *test_sparse_warpgroup_simulated.ROWS,
    *test_tensor_products_simulated.ROWS,
]

# Family: why ptxas alone has seen its rows.
EXCEPTIONS: dict[str, str] = {}


def statement(row: MmaRow) -> tuple[str, str]:
    """(a chip, one use of the instruction)."""
    atom = row.atoms()[0]
    if row.family.startswith("tcgen05"):
        return "sm_100a", tensor_mma(atom)
    if row.family.startswith("wgmma"):
        return "sm_90a", warpgroup_mma(atom, False)
    return "sm_120a", warp_mma(atom)


def named(rows: set[MmaRow]) -> list[str]:
    return sorted(f"{row.name} {row.a}.{row.b}.{row.acc}" for row in rows)


def test_every_row_is_proved() -> None:
    everything, listed = set(find_mma()), {r for r in find_mma() if r.family in EXCEPTIONS}
    assert not named(everything - set(PROVED) - listed), "neither proved nor an exception"
    assert not named(set(PROVED) & listed), "proved, but still an exception"
    assert not set(EXCEPTIONS) - {row.family for row in listed}, "families that do not exist"
    assert len(PROVED) == len(set(PROVED))


@pytest.mark.parametrize("family", sorted({row.family for row in find_mma()}))
def test_the_simulator_takes_every_row(family: str) -> None:
    """In the spelling that ptxas takes (`test_atoms_ptxas`)."""
    for row in find_mma(family=family):
        chip, text = statement(row)
        tile_sim.Module(module(chip, [text]))

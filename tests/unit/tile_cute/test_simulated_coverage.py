"""No row of the MMA registry is left out: it is proved in the simulator or listed with a reason."""

import pytest
import test_atoms_simulated
import test_sparse_simulated
import test_tensor_memory_simulated
import tile_sim
from ptx_mma import module, tensor_mma, warp_mma, warpgroup_mma
from tile_cute.atoms import MmaRow, find_mma

PROVED = {
    *(atom.row for atom in test_atoms_simulated.DENSE),
    *(atom.row for atom in test_atoms_simulated.SCALED),
    *(atom.row for atom in test_sparse_simulated.SPARSE),
    *test_atoms_simulated.WARPGROUP,
    *test_tensor_memory_simulated.ROWS,
}

# Families whose instructions the simulator does not execute: ptxas alone has seen these rows.
NOT_SIMULATED = {
    "mma.sp.block_scale": "tile-sim has no block scales for sparse warp products",
    "wgmma.sp": "tile-sim has no sparse warp-group products",
    "tcgen05.sp": "tile-sim has no sparsity metadata in tensor memory",
    "tcgen05.sp.block_scale": "tile-sim has no sparsity metadata in tensor memory",
    "tcgen05.ws": "tile-sim has no weight-stationary products",
    "tcgen05.ws.sp": "tile-sim has neither weight-stationary nor sparse tensor products",
}

LISTED = [row for row in find_mma() if row.family in NOT_SIMULATED]


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


def test_every_row_is_proved_or_listed() -> None:
    everything, listed = set(find_mma()), set(LISTED)
    assert not named(everything - PROVED - listed), "neither simulated nor listed"
    assert not named(PROVED & listed), "simulated, but still listed"
    assert not set(NOT_SIMULATED) - {row.family for row in LISTED}, "families that do not exist"
    assert all(NOT_SIMULATED.values())


@pytest.mark.parametrize("family", NOT_SIMULATED)
def test_listed_rows_are_refused(family: str) -> None:
    """Once the simulator takes one of them, it has to be proved and leave the list."""
    for row in LISTED:
        if row.family == family:
            with pytest.raises(tile_sim.SimError, match=r"not supported|unknown instruction"):
                tile_sim.Module(module(*_kernel(row)))


def _kernel(row: MmaRow) -> tuple[str, list[str]]:
    chip, text = statement(row)
    return chip, [text]


@pytest.mark.parametrize("family", sorted({row.family for row in PROVED}))
def test_the_same_use_of_proved_rows_is_taken(family: str) -> None:
    """So that a refusal above is about the instruction, and not about the way it is written."""
    for row in sorted(PROVED, key=lambda row: row.name):
        if row.family == family:
            tile_sim.Module(module(*_kernel(row)))

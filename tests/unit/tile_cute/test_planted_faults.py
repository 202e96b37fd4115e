"""The simulated proofs notice a wrong bit: two bits of a layout exchanged make them fail.

(For mma.sync, mma.sp, wgmma.sp and tcgen05 the tests beside the proofs do the same.)
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
import test_atoms_simulated as registers
from tile_cute.atoms import MmaAtom, MmaRow, find_mma
from tile_cute.linear import LinearLayout

Bit = tuple[str, int]


def exchanges(layout: LinearLayout) -> Iterator[tuple[Bit, Bit]]:
    """Neighbours among the bits that mean something, in a ring."""
    bits = [(space, i) for space, b in layout.bases.items() for i, v in enumerate(b) if any(v)]
    yield from pairwise([*bits, bits[0]])


def plant(
    monkeypatch: pytest.MonkeyPatch, operand: str, layout: LinearLayout, prove: Callable[[], None]
) -> int:
    """Run the proof with each wrong layout in place of the operand's; the number of faults."""
    count = 0
    for first, second in exchanges(layout):
        wrong = registers.swapped(layout, first, second)
        with monkeypatch.context() as patch:
            patch.setattr(MmaAtom, operand, property(lambda _, wrong=wrong: wrong))
            with pytest.raises(AssertionError, match="not equal"):
                prove()
        count += 1
    return count


def row_of(family: str, **kind: str) -> MmaRow:
    return find_mma(family=family, **kind)[0]  # type: ignore[arg-type]


@pytest.mark.parametrize("operand", ["a_layout", "c_layout"])
def test_warpgroup_fragments(operand: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = row_of("wgmma", a="bf16")
    layout = getattr(row.atom(64, 64), operand)
    faults = plant(
        monkeypatch, operand, layout, lambda: registers.test_every_warpgroup_row(row, True)
    )
    assert faults == sum(len(bases) for bases in layout.bases.values())


@pytest.mark.parametrize("side", [0, 1])
def test_scales(side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(
        row for row in find_mma(family="mma.block_scale") if row.scale and row.scale.size == "4X"
    )
    atom = row.atoms()[0]
    layouts = atom.scale_layouts
    assert layouts is not None
    for first, second in exchanges(layouts[side]):
        wrong = list(layouts)
        wrong[side] = registers.swapped(layouts[side], first, second)
        with monkeypatch.context() as patch:
            patch.setattr(MmaAtom, "scale_layouts", property(lambda _, wrong=wrong: wrong))
            with pytest.raises(AssertionError, match="not equal"):
                registers.test_block_scaled_mma(atom)

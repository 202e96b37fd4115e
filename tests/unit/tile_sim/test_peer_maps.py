"""Maps that tileiras' host code writes for cuTile's suite and the examples, one of each kind.

`python tools/map_words.py FOLDER --keep FILE` made the file, and looks at every map of a suite.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tile_cute.tensor_map import FIELDS, MAX_RANK
from tile_sim import SimError
from tile_sim.machine.tensormap import SIZE, decode

MAPS = [
    bytes.fromhex(text) for text in json.loads(Path(__file__).with_name("maps.json").read_text())
]


def again(raw: bytes) -> bytes:
    address, tensor = decode(raw.ljust(SIZE, b"\0"))
    return tensor.encode(address)[: len(raw)]


def test_the_maps_are_many_kinds() -> None:
    found = [decode(raw.ljust(SIZE, b"\0"))[1] for raw in MAPS]
    assert len({(m.type, m.swizzle, m.atomicity, m.box) for m in found}) >= len(MAPS) // 2
    assert len({m.type for m in found}) >= 6
    assert {m.rank for m in found} >= {1, 2, 3}
    assert {m.swizzle for m in found} >= {"none", "64B", "128B"}


@pytest.mark.parametrize("raw", MAPS, ids=range(len(MAPS)))
def test_what_is_read_is_written_again(raw: bytes) -> None:
    assert again(raw) == raw
    address, tensor = decode(raw.ljust(SIZE, b"\0"))
    # Whether the tensor is large follows from its extents and strides.
    assert replace(tensor, large=None).encode(address)[: len(raw)] == raw


_IGNORED = FIELDS["kind"].all_bits | FIELDS["tf32"].all_bits


def unread(rank: int) -> int:
    """Bits of dimensions that a map of this rank has not, of `kind`, which has one value, and of
    `tf32`, which `tensormap.replace` leaves where a type follows that is not f32."""
    strides = ("stride_low", "stride_high")
    each = ("global_dim", "element_stride", "box_dim")
    places = [(name, at) for name in each for at in range(rank, MAX_RANK)]
    places += [(name, at) for name in strides for at in range(rank - 1, MAX_RANK - 1)]
    return sum(FIELDS[name].mask(at) for name, at in places) | _IGNORED


@pytest.mark.parametrize("raw", MAPS[:: max(1, len(MAPS) // 6)])
def test_no_bit_is_lost(raw: bytes) -> None:
    """Each bit that is turned is read and written again, or is refused."""
    number, kept, refused = int.from_bytes(raw, "little"), 0, 0
    for bit in range(8 * len(raw)):
        turned = number ^ 1 << bit
        try:
            back = int.from_bytes(again(turned.to_bytes(len(raw), "little")), "little")
        except SimError:
            refused += 1
            continue
        assert not (back ^ turned) & ~unread(FIELDS["rank"].load(turned)), bit
        kept += back == turned
    assert kept > 100
    assert refused > 20

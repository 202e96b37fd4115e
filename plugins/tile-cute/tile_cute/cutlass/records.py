"""What tile schedulers are told, as kernels get it: a record of 48 bytes, little endian."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tile_cute.errors import LayoutError

#: Field -> (offset in bytes, bits). `tiles_*` count tiles of clusters.
FIELDS: dict[str, tuple[int, int]] = {
    "num_tiles_m": (0x00, 32),
    "num_tiles_n": (0x04, 32),
    "num_tiles_k": (0x08, 32),
    "cluster_shape_x": (0x0C, 32),
    "cluster_shape_y": (0x10, 32),
    "cluster_shape_z": (0x14, 32),
    "num_ctas_per_cluster": (0x18, 32),
    "total_ctas": (0x1C, 32),
    "workspace_ptr": (0x20, 64),
    "k_split_count": (0x28, 32),
    # The specification leaves this word; batches need a place, and 0 is a problem without any.
    "more_batches": (0x2C, 32),
}
SIZE = 48

#: What is known of a work tile. m, n: coordinates in tiles of blocks; l: batch; k_tile_*: steps
#: along K; tile: number of the output tile; split of splits: which part of its K this is; tile_idx:
#: tiles since the last round of the pipe; unit_*: steps of a StreamK unit that are still to do.
WORK = (
    "m", "n", "l", "k_tile_start", "k_tile_count", "tile", "split", "splits", "valid",
    "linear_id", "tile_idx", "unit_begin", "unit_end",
)  # fmt: skip

KINDS = ("dp", "static_persistent", "streamk", "sm100")
RASTERS = ("along_m", "along_n")
SWIZZLES = (1, 2, 4, 8)


@dataclass(frozen=True)
class Problem:
    """What a host fills the record with.

    Attributes:
        tiles: along M, N and K and batches; M and N counted in tiles of a cluster.
        cluster: blocks along x, y and z.
        ctas: blocks of the grid, for kinds that keep them resident.
        workspace: address; 0 if there is none.
    """

    tiles: tuple[int, int, int, int]
    cluster: tuple[int, int, int] = (1, 1, 1)
    ctas: int = 1
    workspace: int = 0

    def fields(self) -> dict[str, int]:
        """Values by field, but for `k_split_count`, which `schedules.splits_at_most` knows.

        Raises:
            LayoutError: counts that no grid has.
        """
        m, n, k, batches = self.tiles
        x, y, z = self.cluster
        blocks = x * y * z
        if min(*self.tiles, *self.cluster, self.ctas) < 1 or self.ctas % blocks:
            raise LayoutError(f"expects positive counts, and whole clusters, but got {self}")
        values = (m, n, k, x, y, z, blocks, self.ctas, self.workspace, 0, batches - 1)
        return dict(zip(FIELDS, values, strict=True))


def pack(fields: dict[str, int]) -> bytes:
    """The record."""
    return struct.pack("<8IQ2I", *(fields[name] for name in FIELDS))

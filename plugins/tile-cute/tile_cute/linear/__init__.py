"""Linear layouts: GF(2)-linear maps from register, lane, warp, block, offset, ... bits to tiles.

Pure Python on ints; no MLIR, no numpy.
"""

from tile_cute.errors import LayoutError
from tile_cute.linear.access import threads_contiguous_along, vector_width
from tile_cute.linear.algebra import (
    compose,
    divide,
    invert,
    invert_and_compose,
    product,
    quotient,
    restrict,
    same_elements,
)
from tile_cute.linear.construct import blocked, default_blocked, replicated, strided
from tile_cute.linear.layout import LinearLayout
from tile_cute.linear.matrix import MatrixSide, byte_matrix_access, matrix_access, matrix_side
from tile_cute.linear.memory import (
    SharedChoice,
    best_shared_layout,
    count_wavefronts,
    memory_access,
    shared_layouts,
    swizzled_rows,
)
from tile_cute.linear.planner import plan_conversion, plan_registers
from tile_cute.linear.plans import (
    ConditionalXor,
    Plan,
    RegisterPermute,
    SharedAccess,
    SharedRoundTrip,
    SharedSide,
    ShuffleRound,
    WarpShuffle,
    execute,
)
from tile_cute.linear.transform import (
    broadcast_dims,
    broadcast_registers,
    expand_dim,
    join,
    permute_dims,
    project_dims,
    rename_spaces,
    reshape,
    slice_dim,
    slice_registers,
    subtile,
    subtile_registers,
)

__all__ = [
    "ConditionalXor",
    "LayoutError",
    "LinearLayout",
    "MatrixSide",
    "Plan",
    "RegisterPermute",
    "SharedAccess",
    "SharedChoice",
    "SharedRoundTrip",
    "SharedSide",
    "ShuffleRound",
    "WarpShuffle",
    "best_shared_layout",
    "blocked",
    "broadcast_dims",
    "broadcast_registers",
    "byte_matrix_access",
    "compose",
    "count_wavefronts",
    "default_blocked",
    "divide",
    "execute",
    "expand_dim",
    "invert",
    "invert_and_compose",
    "join",
    "matrix_access",
    "matrix_side",
    "memory_access",
    "permute_dims",
    "plan_conversion",
    "plan_registers",
    "product",
    "project_dims",
    "quotient",
    "rename_spaces",
    "replicated",
    "reshape",
    "restrict",
    "same_elements",
    "shared_layouts",
    "slice_dim",
    "slice_registers",
    "strided",
    "subtile",
    "subtile_registers",
    "swizzled_rows",
    "threads_contiguous_along",
    "vector_width",
]

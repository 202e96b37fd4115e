"""What an operand or result may be, with the words the verifier uses for it."""

from __future__ import annotations

from dataclasses import dataclass

from tile_cudatile.types import (
    BF16,
    F4E2M1FN,
    F8E4M3FN,
    F8E5M2,
    F8E5M3FNU,
    F8E8M0FNU,
    F16,
    F32,
    F64,
    I1,
    I4,
    I8,
    I16,
    I32,
    I64,
    TF32,
    GatherScatterView,
    PartitionView,
    Pointer,
    Scalar,
    StridedView,
    TensorView,
    Tile,
    Token,
    Type,
)

INTS = (I1, I8, I16, I32, I64)
BASE_FLOATS = (F16, BF16, F32, F64)
FLOATS = (*BASE_FLOATS, TF32, F8E4M3FN, F8E5M2, F8E8M0FNU, F4E2M1FN, F8E5M3FNU)
NUMBERS = (*INTS, *FLOATS)


@dataclass(frozen=True)
class Constraint:
    """A set of types. `summary` completes "operand #0 must be ..., but got ..."."""

    summary: str
    classes: tuple[type, ...]
    elements: frozenset[Scalar] | None = None  # of a tile; None: any element
    pointers: bool = True  # whether a tile may hold pointers
    scalar: bool = False  # rank 0 only

    def accepts(self, candidate: Type) -> bool:
        """Whether `candidate` is in the set."""
        if not isinstance(candidate, self.classes):
            return False
        if not isinstance(candidate, Tile):
            return True
        if self.scalar and candidate.shape:
            return False
        if isinstance(candidate.element, Pointer):
            return self.pointers
        return self.elements is None or candidate.element in self.elements


def tile_of(*elements: Scalar, kind: str = "tile", scalar: bool = False) -> Constraint:
    """Tiles of the given numbers."""
    names = " or ".join(e.name for e in elements)
    prefix = "0D " if scalar else ""
    summary = f"{prefix}{kind} of {names} values"
    return Constraint(summary, (Tile,), frozenset(elements), pointers=False, scalar=scalar)


def _pointer_tile(scalar: bool) -> Constraint:
    prefix = "0D " if scalar else ""
    return Constraint(f"{prefix}tile of Pointer type values", (Tile,), frozenset(), scalar=scalar)


INT_TILE = tile_of(*INTS)
SMALL_INT_TILE = tile_of(I1, I8, I16, I32)
INT_TILE_I4 = tile_of(*INTS, I4)
FLOAT_TILE = tile_of(*BASE_FLOATS)
ANY_FLOAT_TILE = tile_of(*FLOATS)
NUMBER_TILE = tile_of(*NUMBERS)
NUMBER_TILE_I4 = tile_of(*NUMBERS, I4)
I1_TILE, I8_TILE = tile_of(I1), tile_of(I8)
I32_TILE, I64_TILE = tile_of(I32), tile_of(I64)
POINTER_TILE, POINTER = _pointer_tile(scalar=False), _pointer_tile(scalar=True)
INT_SCALAR = tile_of(*INTS, scalar=True)
I1_SCALAR = tile_of(I1, scalar=True)
I32_SCALAR = tile_of(I32, scalar=True)

MMAF_OPERAND = tile_of(F16, BF16, F32, F64, TF32, F8E4M3FN, F8E5M2, kind="mmaf operand tile type")
MMAF_RESULT = tile_of(F16, F32, F64, kind="mmaf acc/result tile type")
MMAI_OPERAND = tile_of(I8, kind="mmai operand tile type")
MMAI_ACC = tile_of(I32, kind="mmai acc tile type")
MMAI_RESULT = tile_of(I32, kind="mmai result tile type")
SCALED_OPERAND = tile_of(F8E4M3FN, F8E5M2, F4E2M1FN, kind="mmaf_scaled operand tile type")
SCALED_SCALE = tile_of(F8E4M3FN, F8E8M0FNU, F8E5M3FNU, kind="mmaf_scaled scale tile type")
SCALED_RESULT = tile_of(F32, kind="mmaf_scaled result tile type")

TILE = Constraint("Tile type", (Tile,))
TOKEN_TYPE = Constraint("cuda tile token type", (Token,))
TENSOR_VIEW = Constraint("tensor view type", (TensorView,))
PARTITION_VIEW = Constraint("partition view type", (PartitionView,))
STRIDED_VIEW = Constraint("strided view type", (StridedView,))
GATHER_SCATTER_VIEW = Constraint("gather/scatter view type", (GatherScatterView,))
VIEW = Constraint("TileView instance", (PartitionView, StridedView, GatherScatterView))
ANY = Constraint("any type", (object,))

"""Registries of copy and MMA instructions: shapes, types, fragments, descriptors, gates."""

from tile_cute.atoms.records import CopyAtom, MmaAtom, MmaRow, Scale
from tile_cute.atoms.registry import (
    copy_atoms,
    find_copies,
    find_dense,
    find_mma,
    mma_rows,
    register_rows,
    require_supported,
    unregister_rows,
)

__all__ = [
    "CopyAtom",
    "MmaAtom",
    "MmaRow",
    "Scale",
    "copy_atoms",
    "find_copies",
    "find_dense",
    "find_mma",
    "mma_rows",
    "register_rows",
    "require_supported",
    "unregister_rows",
]

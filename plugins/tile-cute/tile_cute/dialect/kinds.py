"""Kinds of types, for tables of what operations take and give."""

import re
from collections.abc import Sequence
from functools import lru_cache

from tile_core.mlir import ir
from tile_cute.atoms import copy_atoms
from tile_cute.errors import LayoutError

ATOM = re.compile(r'!cute_nvgpu\.atom<"(.*)">')
#: Kind -> (what a type of it looks like, what messages call it).
_KINDS: dict[str, tuple[str, str]] = {
    "i1": (r"i1", "i1"),
    "i32": (r"i32", "i32"),
    "i64": (r"i64", "i64"),
    "integer": (r"i\d+|index", "an integer"),
    "number": (r"i1|i32|i64|f32|index", "a scalar of a register"),
    "any": (r".*", "a value"),
    "shared": (r'i32|!cute\.(?:ptr|memref)<.*"smem".*>', "an address of shared memory"),
    "tensor": (r'i32|!cute\.(?:ptr|memref)<.*"tmem".*>', "an address of tensor memory"),
    "global": (r'i64|!cute\.(?:ptr|memref)<.*"gmem".*>', "an address of global memory"),
    "registers": (r'!cute\.memref<.*"rmem".*>', "a cute.memref in rmem"),
    "shared view": (r'!cute\.memref<.*"smem".*>', "a cute.memref in smem"),
    "global view": (r'!cute\.memref<.*"gmem".*>', "a cute.memref in gmem"),
    "tensor view": (r'!cute\.memref<.*"tmem".*>', "a cute.memref in tmem"),
    "view": (r"!cute\.(?:memref|coord_tensor)<.*>", "a view"),
    "shared pointer": (r'!cute\.ptr<.*"smem".*>', "a cute.ptr into smem"),
    "pointer": (r"!cute\.ptr<.*>", "a cute.ptr"),
    "map": (r"!cute_nvgpu\.tma_descriptor_(?:tiled|im2col)<.*>", "a tensor map"),
    "tiled map": (r"!cute_nvgpu\.tma_descriptor_tiled<.*>", "a tiled tensor map"),
    "im2col map": (r"!cute_nvgpu\.tma_descriptor_im2col<.*>", "an im2col tensor map"),
    "descriptor": (r"i64|!cute_nvgpu\.smem_desc<.*>", "a descriptor of shared memory"),
    "descriptors": (r"!cute_nvgpu\.smem_desc_view<.*>", "a smem_desc_view"),
    "atom": (r"!cute_nvgpu\.atom<.*>", "an atom"),
    "tuple": (r"!cute\.tuple<.*>", "a cute.tuple"),
    "layout": (r"!cute\.(?:composed_)?layout<.*>", "a layout"),
    "shape": (r"!cute\.shape<.*>", "a cute.shape"),
    "offset": (r"i32|i64|index|!cute\.int_tuple<.*>", "an integer or cute.int_tuple"),
    "divisor": (r"!cute\.fast_divmod_divisor<.*>", "a fast_divmod_divisor"),
    "tiled mma": (r"!cute\.tiled_mma<.*>", "a tiled_mma"),
    "tiled copy": (r"!cute\.tiled_copy<.*>", "a tiled_copy"),
    "memref": (r"!cute\.memref<.*>", "a cute.memref"),
    "memref or place": (r"!cute\.(?:memref|coord)<.*>", "a cute.memref"),
}
#: Families of copies by tensor maps; those into shared memory come first.
TMA = ("tma load", "tma store", "tma reduce")
_RANK = re.compile(r"\.tensor\.(\d)d\.")


@lru_cache(maxsize=1)
def _families() -> dict[str, str]:
    return {atom.instruction: atom.family for atom in copy_atoms()}


def family_of(type_: ir.Type) -> str:
    """The family of the copy instruction that an atom's type names; empty for anything else."""
    match = ATOM.fullmatch(str(type_))
    return _families().get(match[1], "") if match else ""


def check_values(names: Sequence[str], kinds: Sequence[str], types: Sequence[ir.Type]) -> None:
    """LayoutError at the first type that is not of its kind; the last kind goes for the rest."""
    for at, type_ in enumerate(types):
        place = min(at, len(kinds) - 1)
        _check_kind(names[place].rstrip("?*"), kinds[place].rstrip("?*"), type_)


def _check_kind(name: str, kind: str, type_: ir.Type) -> None:
    if kind.startswith("["):
        families = kind[1:-1].split("|")
        if family_of(type_) not in families:
            raise LayoutError(
                f"expects {name} to be an atom of {' or '.join(families)}, but got {type_}"
            )
        return
    pattern, called = _KINDS[kind]
    if re.fullmatch(pattern, str(type_)) is None:
        raise LayoutError(f"expects {name} to be {called}, but got {type_}")


def rank_of(atom: ir.Type) -> int:
    """How many dimensions the tensor maps have that an atom copies by."""
    match = _RANK.search(str(atom))
    if match is None:
        raise LayoutError(f"expects an atom of copies by tensor maps, but got {atom}")
    return int(match[1])

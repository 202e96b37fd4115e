"""Device functions that make tensor maps in the kernel: places claimed in an arena, maps filled in
and handed to the copy engine.

Maps lie in global memory, as the copy engine reads no other (PTX ISA, "Tensor-map"). Kernels of
several streams run at once, with arguments of their own, so each block claims a place for its maps
and gives it back: words of free bits, chosen by SM, so that hardly anybody meets.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_cute.tensor_map import ATOMICITIES, ELEMENT_TYPES, SIZE, SWIZZLES, swizzle_fields

from tile_nvptx.passes.tileas.device.asynchronous import Routine, routine
from tile_nvptx.passes.tileas.device.helpers import quoted

#: Words of the arena, a power of two, and places of each: more blocks than are resident on any GPU.
WORDS, PLACES = 256, 8
#: Of the arena: maps are copied whole.
ALIGNMENT = SIZE
_CLAIM = (
    "{ .reg .b32 %word, %held, %free, %mask; .reg .b64 %at; .reg .pred %no; "
    "mov.u32 %word, %smid; "
    f"again: and.b32 %word, %word, {WORDS - 1}; mul.wide.u32 %at, %word, 4; add.s64 %at, %at, $1; "
    "ld.relaxed.gpu.global.b32 %held, [%at]; not.b32 %held, %held; brev.b32 %free, %held; "
    f"clz.b32 %free, %free; setp.ge.u32 %no, %free, {PLACES}; @%no add.u32 %word, %word, 1; "
    "@%no bra again; "
    "shl.b32 %mask, 1, %free; atom.acquire.gpu.global.or.b32 %held, [%at], %mask; "
    "and.b32 %held, %held, %mask; setp.ne.u32 %no, %held, 0; @%no bra again; "
    f"mad.lo.u32 $0, %word, {PLACES}, %free; }}"
)
_RELEASE = (
    "{ .reg .b32 %word, %bit, %mask; .reg .b64 %at; "
    f"div.u32 %word, $1, {PLACES}; and.b32 %bit, $1, {PLACES - 1}; mul.wide.u32 %at, %word, 4; "
    "add.s64 %at, %at, $0; shl.b32 %mask, 1, %bit; not.b32 %mask, %mask; "
    "red.release.gpu.global.and.b32 [%at], %mask; }"
)


#: The map in shared memory goes to global memory, released to copies that acquire it.
_PUBLISHED = (
    "bar.warp.sync -1; tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release"
    f".gpu.sync.aligned [$1], [$0], {SIZE}; }}"
)
#: Each lane brings one word of a map in memory; what lanes did with it before is seen.
_FETCHED = (
    "{ .reg .pred %leads; .reg .b32 %lane, %word; .reg .b64 %far, %from, %to; "
    "mov.u32 %lane, %laneid; setp.eq.u32 %leads, %lane, 0; mul.wide.u32 %far, %lane, 4; "
    "bar.warp.sync -1; add.s64 %from, %source, %far; ld.b32 %word, [%from]; "
    "add.s64 %to, $0, %far; st.shared.b32 [%to], %word; "
)


def arena_bytes(count: int) -> int:
    """Of an arena for `count` maps a block: the words, then the places."""
    return 4 * WORDS + WORDS * PLACES * count * SIZE


def place_offset(count: int) -> tuple[int, int]:
    """(bytes to the first place, bytes of a place)."""
    return 4 * WORDS, count * SIZE


def claim() -> Routine:
    """`(ptr<1> arena) -> i32`: the number of a place that no other block has."""
    name = "__tile_claim_maps"
    lines = [
        f"llvm.func internal @{name}(%arena: !llvm.ptr<1>) -> i32 attributes {{always_inline}} {{",
        f"  %place = llvm.inline_asm has_side_effects asm_dialect = att {quoted(_CLAIM)}, "
        '"=r,l,~{memory}" %arena : (!llvm.ptr<1>) -> i32',
        "  llvm.return %place : i32",
        "}",
    ]
    return name, "\n".join(lines)


def release() -> Routine:
    """`(ptr<1> arena, i32 place)`: give a place back."""
    return routine("release_maps", ["!llvm.ptr<1>", "i32"], _RELEASE)


def fill(element: str, swizzle: str, box: Sequence[int]) -> Routine:
    """`(ptr<3> scratch, ptr<1> map, ptr<1> address, i32 extents.., i64 strides..)`, innermost
    first, strides in bytes but for the innermost; `box` in elements.

    Run by the lanes of one warp together: one edits the map in shared memory, all copy it to global
    memory, where the copy engine sees it after an acquire. In one piece of assembly, as LLVM may
    move other pieces to where the lanes have parted.
    """
    rank, (mode, atomicity) = len(box), swizzle_fields(swizzle)
    kinds = {kind.name: number for number, kind in enumerate(ELEMENT_TYPES)}
    edits = [
        ("global_address", "b64", "$2"),
        ("rank", "b32", str(rank - 1)),
        *((f"box_dim|{at}", "b32", str(extent)) for at, extent in enumerate(box)),
        *((f"global_dim|{at}", "b32", f"${3 + at}") for at in range(rank)),
        *((f"global_stride|{at}", "b64", f"${3 + rank + at}") for at in range(rank - 1)),
        *((f"element_stride|{at}", "b32", "1") for at in range(rank)),
        ("elemtype", "b32", str(kinds[element])),
        ("interleave_layout", "b32", "0"),
        ("swizzle_mode", "b32", str(SWIZZLES.index(mode))),
        *_atomicity(atomicity),
        ("fill_mode", "b32", "0"),
    ]
    asm = (
        "{ .reg .pred %leads; .reg .b32 %lane; .reg .b64 %zero; mov.u32 %lane, %laneid; "
        "setp.eq.u32 %leads, %lane, 0; mov.b64 %zero, 0; "
        + "".join(
            f"@%leads st.shared.v2.b64 [$0+{at}], {{%zero, %zero}}; " for at in range(0, SIZE, 16)
        )
        + "".join(f"@%leads {_replace(*edit)} " for edit in edits)
        + _PUBLISHED
    )
    types = ["!llvm.ptr<3>", "!llvm.ptr<1>", "!llvm.ptr<1>", *["i32"] * rank, *["i64"] * (rank - 1)]
    return routine(f"fill_map_{element}_{swizzle}_{'x'.join(map(str, box))}", types, asm)


def copy() -> Routine:
    """`(ptr<3> scratch, ptr<1> map, ptr source)`: a map becomes what another one is. Run by the
    lanes of one warp together, as `fill`.
    """
    asm = _FETCHED.replace("%source", "$2") + _PUBLISHED
    return routine("copy_map", ["!llvm.ptr<3>", "!llvm.ptr<1>", "!llvm.ptr"], asm)


#: Field of a map -> what `tensormap.replace` calls it, and the type of its value. Strides are
#: counted from the second dimension on, in bytes.
_UPDATES = {
    "base": ("global_address", "b64"),
    "dim": ("global_dim", "b32"),
    "stride": ("global_stride", "b64"),
}


def update(field: str, axis: int) -> Routine:
    """`(ptr<3> scratch, ptr<1> map, value)`: change one field of a map, of a dimension counted from
    the innermost one. Run by the lanes of one warp together, as `fill`; the first one's value
    counts.
    """
    name, type_ = _UPDATES[field]
    if field != "base":
        name = f"{name}|{axis - (field == 'stride')}"
    asm = _FETCHED.replace("%source", "$1") + "bar.warp.sync -1; "
    asm += f"@%leads {_replace(name, type_, '$2')} " + _PUBLISHED
    types = ["!llvm.ptr<3>", "!llvm.ptr<1>", f"i{type_[1:]}"]
    return routine(f"update_map_{field}_{axis}", types, asm)


def _atomicity(name: str) -> list[tuple[str, str, str]]:
    """The edit of a map of zeros; the field came later than the others (PTX ISA 8.6)."""
    number = ATOMICITIES.index(name)
    return [("swizzle_atomicity", "b32", str(number))] if number else []


def _replace(field: str, type_: str, value: str) -> str:
    name, _, ordinal = field.partition("|")
    where = f"[$0], {ordinal}" if ordinal else "[$0]"
    return f"tensormap.replace.tile.{name}.shared::cta.b1024.{type_} {where}, {value};"

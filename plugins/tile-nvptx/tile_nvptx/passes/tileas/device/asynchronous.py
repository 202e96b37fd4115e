"""Device functions of mbarriers, fences, asynchronous copies: one PTX instruction each.

Each function here gives name and text of a helper (see `helpers`). Addresses of shared memory are
`!llvm.ptr<3>`, of tensor maps generic pointers.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_nvptx.passes.tileas.device.helpers import quoted
from tile_nvptx.passes.tileas.device.policies import hint_text

_CONSTRAINTS = {
    "!llvm.ptr": "l",
    "!llvm.ptr<1>": "l",
    "!llvm.ptr<3>": "l",
    "i64": "l",
    "i32": "r",
    "i16": "h",
}
_SHARED, _GLOBAL, _GENERIC = "!llvm.ptr<3>", "!llvm.ptr<1>", "!llvm.ptr"
Routine = tuple[str, str]


def routine(name: str, arguments: Sequence[str], asm: str) -> Routine:
    """A function of `arguments` (MLIR types) without result: one `asm` text that uses `$i`.

    Nothing that reads or writes memory moves across it.
    """
    name = "__tile_" + name.replace(".", "_").replace("::", "_")
    named = [f"%x{at}: {type_}" for at, type_ in enumerate(arguments)]
    constraints = ",".join([*(_CONSTRAINTS[type_] for type_ in arguments), "~{memory}"])
    values = ", ".join(f"%x{at}" for at in range(len(arguments)))
    lines = [
        f"llvm.func internal @{name}({', '.join(named)}) attributes {{always_inline}} {{",
        f"  llvm.inline_asm has_side_effects asm_dialect = att {quoted(asm)}, "
        f'"{constraints}" {values} : ({", ".join(arguments)}) -> ()',
        "  llvm.return",
        "}",
    ]
    return name, "\n".join(lines)


# --- mbarriers (PTX ISA, "mbarrier") -----------------------------------------------------------


def barrier_init(arrivals: int) -> Routine:
    """`(ptr<3>)`: a phase completes after so many arrivals."""
    asm = f"mbarrier.init.shared.b64 [$0], {arrivals};"
    return routine(f"mbarrier_init_{arrivals}", [_SHARED], asm)


def barrier_invalidate() -> Routine:
    """`(ptr<3>)`: the word may be used for something else."""
    return routine("mbarrier_inval", [_SHARED], "mbarrier.inval.shared.b64 [$0];")


def barrier_arrive() -> Routine:
    """`(ptr<3>)`: one arrival, with release semantics."""
    asm = "{ .reg .b64 %state; mbarrier.arrive.shared.b64 %state, [$0]; }"
    return routine("mbarrier_arrive", [_SHARED], asm)


def barrier_expect(size: int) -> Routine:
    """`(ptr<3>)`: one arrival; the phase also waits for `size` bytes."""
    asm = f"{{ .reg .b64 %state; mbarrier.arrive.expect_tx.shared.b64 %state, [$0], {size}; }}"
    return routine(f"mbarrier_expect_{size}", [_SHARED], asm)


def barrier_arrive_copies() -> Routine:
    """`(ptr<3>)`: one arrival as soon as the thread's copies so far are done."""
    asm = "cp.async.mbarrier.arrive.noinc.shared.b64 [$0];"
    return routine("mbarrier_arrive_copies", [_SHARED], asm)


def barrier_arrive_at() -> Routine:
    """`(ptr<3>, i32)`: one arrival at the barrier at the same place of another block of the
    cluster, by its number.

    It says that memory was read, which is done; nothing that was written is handed over. Release
    semantics for the cluster would make ptxas put MEMBAR.ALL.GPU before each, which took a quarter
    of the time of a product (model, 4096^3 in tiles of 256 x 256 x 64).
    """
    asm = (
        "{ .reg .b64 %there; mapa.shared::cluster.u64 %there, $0, $1; "
        "mbarrier.arrive.shared::cluster.b64 _, [%there]; }"
    )
    return routine("mbarrier_arrive_at", [_SHARED, "i32"], asm)


def barrier_wait(*, suspends: bool) -> Routine:
    """`(ptr<3>, i32)`: until the phase of that parity is complete, with acquire semantics.

    `suspends`: the target has try_wait, which lets others run meanwhile.
    """
    test = "try_wait" if suspends else "test_wait"
    asm = (
        "{ .reg .pred %done; %again: "
        f"mbarrier.{test}.parity.shared.b64 %done, [$0], $1; @!%done bra %again; }}"
    ).replace("%again", "again")
    return routine(f"mbarrier_{test}", [_SHARED, "i32"], asm)


def barrier_test() -> Routine:
    """`(ptr<3>, i32) -> i32`: whether the phase of that parity is complete; 1 acquires."""
    name = "__tile_mbarrier_test"
    asm = (
        "{ .reg .pred %done; mbarrier.test_wait.parity.shared.b64 %done, [$1], $2; "
        "selp.b32 $0, 1, 0, %done; }"
    )
    return name, "\n".join(
        [
            f"llvm.func internal @{name}(%x0: {_SHARED}, %x1: i32) -> i32 "
            "attributes {always_inline} {",
            f"  %0 = llvm.inline_asm has_side_effects asm_dialect = att {quoted(asm)}, "
            f'"=r,r,r,~{{memory}}" %x0, %x1 : ({_SHARED}, i32) -> i32',
            "  llvm.return %0 : i32",
            "}",
        ]
    )


# --- counters in global memory (PTX ISA, "red", "ld") ------------------------------------------


def count_up() -> Routine:
    """`(ptr<1>)`: one more, with release semantics for the GPU."""
    return routine("count_up", [_GLOBAL], "red.release.gpu.global.add.u32 [$0], 1;")


def count_reset() -> Routine:
    """`(ptr<1>)`: nothing has been counted."""
    return routine("count_reset", [_GLOBAL], "st.relaxed.gpu.global.u32 [$0], 0;")


def reduce_max_f32() -> Routine:
    """`(ptr<1>, i32)`: the larger one of a float and one given by its bits; a positive NaN wins.

    Floats without a sign are ordered like signed integers; with one they are in the other order,
    and behind all others among unsigned ones.
    """
    asm = (
        "{ .reg .pred %neg; setp.lt.s32 %neg, $1, 0; "
        "@!%neg red.relaxed.gpu.global.max.s32 [$0], $1; "
        "@%neg red.relaxed.gpu.global.min.u32 [$0], $1; }"
    )
    return routine("reduce_max_f32", [_GLOBAL, "i32"], asm)


def count_wait(*, least: bool) -> Routine:
    """`(ptr<1>, i32)`: until the counter is that number, or not less; with acquire semantics."""
    test = "hs" if least else "eq"
    asm = (
        "{ .reg .pred %done; .reg .b32 %found; again: "
        "ld.acquire.gpu.global.u32 %found, [$0]; "
        f"setp.{test}.u32 %done, %found, $1; @!%done bra again; }}"
    )
    return routine(f"count_wait_{test}", [_GLOBAL, "i32"], asm)


# --- fences ------------------------------------------------------------------------------------

FENCES = {
    "async": "fence.proxy.async.shared::cta;",
    "async.global": "fence.proxy.async.global;",
    "mbarrier_init": "fence.mbarrier_init.release.cluster;",
}


def fence(proxy: str) -> Routine:
    """`()`: what this thread did is seen by what the proxy does afterwards."""
    return routine(f"fence_{proxy}", [], FENCES[proxy])


# --- copies of threads (PTX ISA, "cp.async") ---------------------------------------------------


def copy_to_shared(
    size: int, *, partial: bool, flagged: bool = False, cache: str = "", hint: str = ""
) -> Routine:
    """`(ptr<3>, ptr<1>)`: begin to copy `size` bytes, 4, 8 or 16.

    `partial` takes an i32: so many bytes are read, the rest are zeros. `flagged` takes one more:
    nothing is done where it is 0. 16 bytes leave L1 alone, unless `cache` is "ca".
    """
    cache = cache or ("cg" if size == 16 else "ca")
    make, suffix, policy = hint_text(hint)
    tail = ", $2" if partial else ""
    asm = f"cp.async.{cache}.shared.global{suffix} [$0], [$1], {size}{tail}{policy};"
    if flagged:
        make += f".reg .pred %exists; setp.ne.b32 %exists, ${2 + partial}, 0; "
        asm = f"@%exists {asm}"
    arguments = [_SHARED, _GLOBAL, *["i32"] * (partial + flagged)]
    name = f"cp_async_{size}{'_partial' if partial else ''}{'_flagged' if flagged else ''}"
    if hint or cache != ("cg" if size == 16 else "ca"):
        name = f"{name}_{cache}{hint and '_' + hint}"
    return routine(name, arguments, f"{{ {make}{asm} }}" if make else asm)


_COMMITS = {"cp.async": "cp.async.commit_group;", "bulk": "cp.async.bulk.commit_group;"}
_WAITS = {
    "cp.async": "cp.async.wait_group",
    "bulk": "cp.async.bulk.wait_group",
    "bulk.read": "cp.async.bulk.wait_group.read",
    "wgmma": "wgmma.wait_group.sync.aligned",
}


def commit_group(group: str) -> Routine:
    """`()`: what the thread has begun is a group."""
    return routine(f"commit_{group}", [], _COMMITS[group])


def wait_group(group: str, pending: int) -> Routine:
    """`()`: until at most `pending` groups of the thread are left."""
    return routine(f"wait_{group}_{pending}", [], f"{_WAITS[group]} {pending};")


# --- bulk copies (PTX ISA, "cp.async.bulk") ----------------------------------------------------


def bulk_to_shared(size: int, hint: str = "") -> Routine:
    """`(ptr<3>, ptr<1>, ptr<3>)`: destination, source, mbarrier."""
    make, suffix, policy = hint_text(hint)
    words = f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{suffix}"
    asm = f"{words} [$0], [$1], {size}, [$2]{policy};"
    name = f"bulk_to_shared_{size}{hint and '_' + hint}"
    return routine(name, [_SHARED, _GLOBAL, _SHARED], f"{{ {make}{asm} }}" if hint else asm)


def bulk_to_global(size: int) -> Routine:
    """`(ptr<1>, ptr<3>)`: destination, source."""
    asm = f"cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], {size};"
    return routine(f"bulk_to_global_{size}", [_GLOBAL, _SHARED], asm)


def _coordinates(first: int, count: int) -> str:
    return "{" + ", ".join(f"${first + at}" for at in range(count)) + "}"


def tensor_load(
    rank: int, mode: str, count: int, hint: str, *, multicast: bool, pair: bool = False
) -> Routine:
    """`(ptr<3> destination, map, ptr<3> mbarrier, coordinates.., i16 mask)`, innermost first. For a
    `pair` instead of the mask i32, the number of its first block: the mbarrier is at that place
    there.
    """
    assert not (multicast and pair), "each block of a pair has its own part"
    make, suffix, policy = hint_text(hint)
    words = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}"
    words += ".mbarrier::complete_tx::bytes"
    barrier, mask, more = "$2", "", []
    if multicast:
        words, mask, more = f"{words}.multicast::cluster", f", ${3 + count}", ["i16"]
    if pair:
        words, barrier, more = f"{words}.cta_group::2", "%there", ["i32"]
        make += f".reg .b64 %there; mapa.shared::cluster.u64 %there, $2, ${3 + count}; "
    place = f"[$1, {_coordinates(3, count)}]"
    asm = f"{{ {make}{words}{suffix} [$0], {place}, [{barrier}]{mask}{policy}; }}"
    kind = "_multicast" if multicast else "_pair" if pair else ""
    name = f"tma_load_{rank}d_{mode}{kind}{hint and '_' + hint}"
    return routine(name, [_SHARED, _GENERIC, _SHARED, *["i32"] * count, *more], asm)


def tensor_store(rank: int, mode: str, count: int, hint: str, reduction: str = "") -> Routine:
    """`(ptr<3> source, map, coordinates..)`; with a reduction, elements are combined."""
    make, suffix, policy = hint_text(hint)
    head = "cp.reduce" if reduction else "cp"
    words = f"{head}.async.bulk.tensor.{rank}d.global.shared::cta"
    words += f".{reduction}.{mode}.bulk_group" if reduction else f".{mode}.bulk_group"
    asm = f"{{ {make}{words}{suffix} [$1, {_coordinates(2, count)}], [$0]{policy}; }}"
    name = f"tma_store_{rank}d_{mode}{reduction and '_' + reduction}{hint and '_' + hint}"
    return routine(name, [_SHARED, _GENERIC, *["i32"] * count], asm)


def prefetch_map() -> Routine:
    """`(map)`"""
    return routine("tma_prefetch", [_GENERIC], "prefetch.tensormap [$0];")


def acquire_map() -> Routine:
    """`(map)`: copies by it see what others wrote into it."""
    asm = "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;"
    return routine("tma_acquire", [_GENERIC], asm)


# --- registers ---------------------------------------------------------------------------------


def set_registers(number: int, *, more: bool) -> Routine:
    """`()`: every thread of a warpgroup gives registers back, or waits for more."""
    # The operation, as LLVM may move inline assembly to where a warp's threads have parted.
    way = "increase" if more else "decrease"
    name = f"__tile_setmaxnreg_{way}_{number}"
    head = f"llvm.func internal @{name}() attributes {{always_inline}} {{"
    return name, f"{head}\n  nvvm.setmaxregister {way} {number}\n  llvm.return\n}}"

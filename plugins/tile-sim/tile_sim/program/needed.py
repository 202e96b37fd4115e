"""Which instructions decide where a kernel goes and what it touches; the rest only makes values.

A record of a launch (`Module.launch(skipped={"values"})`) wants blocks, addresses and barriers.
What is made by arithmetic on registers and reaches no branch, no address and no barrier need not be
computed for it. The analysis goes by names of registers in the whole module, whatever the order,
so it may keep too much, never too little: where a needed register is loaded from memory that the
kernel itself writes, what it writes is needed. Who only counts blocks wants no addresses either
(`skipped={"addresses"}`): then accesses are left out as well, but for those that others wait for
and those that make what a branch goes by.

By spaces alone nearly all stays where one load of shared memory counts, such as that of an address
in tensor memory: whatever is stored in that space may be what it reads. `guided` therefore takes
which stores count, and the run tells where that was wrong (`skipped={"memory"}`,
`machine/unmade.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tile_sim.program.reach import operand_names, statements
from tile_sim.ptx.syntax import Address, Function, Group, Instr, Operand, Vector

#: Arithmetic on registers: nothing but its result comes of it. The first operand is the result.
_PURE = frozenset({
    "abs", "add", "and", "bfe", "bfi", "bfind", "brev", "clz", "cnot", "copysign", "cos", "cvt",
    "div", "dp2a", "dp4a", "ex2", "fma", "fns", "lg2", "lop3", "mad", "mad24", "max", "min", "mov",
    "mul", "mul24", "neg", "not", "or", "popc", "prmt", "rcp", "rem", "rsqrt", "sad", "selp", "set",
    "setp", "shf", "shl", "shr", "sin", "slct", "sqrt", "sub", "tanh", "testp", "xor",
})  # fmt: skip
#: Instructions whose values, those in braces, go to a product or to memory, or come from there.
_MOVERS = frozenset({"st", "red", "stmatrix", "mma", "wgmma", "tcgen05", "ld", "ldu", "ldmatrix"})
_LOADS = frozenset({"ld", "ldu", "ldmatrix", "atom"})
#: Others whose results are made of operands that `_decisive` leaves out.
_THROUGH = frozenset({"shfl", "mma", "wgmma", "tcgen05"})
_SPACES = ("shared", "global", "local", "param", "const")


#: Where accesses are left out: what moves data or multiplies, and orders nothing by itself.
_DATA = frozenset({
    "ld", "ldu", "st", "red", "ldmatrix", "stmatrix", "movmatrix", "mma", "prefetch", "prefetchu",
    "shfl",
})  # fmt: skip
_TENSOR_DATA = frozenset({"mma", "ld", "st", "cp", "shift"})


#: Whose effects on memory marks of words do not follow.
_UNFOLLOWED = frozenset({("st", "async"), ("red", "async"), ("cp", "reduce")})


@dataclass(frozen=True)
class Needed:
    """Ids of the instructions that stay, and of the loads among them whose results count."""

    kept: frozenset[int]
    loads: frozenset[int]


def followed(functions: Iterable[Function]) -> bool:
    """Whether marks of memory tell all that stores and copies of these functions do."""
    return not any(
        any((ins.op, mod) in _UNFOLLOWED for mod in ins.mods)
        or (ins.op == "cp" and {"bulk", "shared::cluster", "shared::cta"} <= set(ins.mods))
        for ins in _instructions(functions)
    )  # fmt: skip


def guided(functions: Iterable[Function], made: frozenset[int], accesses: bool) -> Needed:
    """What has to run where of all stores only `made` (ids) are read by loads that count.

    With `accesses` loads and stores run, whatever their data are, for who asks where they go;
    without, only those stay that decide a branch. Where tensor maps are made all of them run:
    copies by a map that is not all there would be errors.
    """
    every = _instructions(functions)
    maps = any(ins.op == "tensormap" for ins in every)
    may_go = _moves_data if accesses or maps else _left
    needed = {name for ins in every if not may_go(ins) for name in _decisive(ins)}
    needed |= {ins.guard.name for ins in every if ins.guard is not None and not may_go(ins)}
    while True:
        giving = [ins for ins in every if _makes(ins, needed)]
        writers = _writers(every, giving, made, maps)
        more = {name for ins in (*giving, *writers) for name in _inputs(ins, may_go)}
        if more <= needed:
            break
        needed |= more
    kept = {id(ins) for ins in every if not may_go(ins)}
    kept |= {id(ins) for ins in (*giving, *writers)}
    return Needed(frozenset(kept), frozenset(id(ins) for ins in giving if ins.op in _LOADS))


def _moves_data(ins: Instr) -> bool:
    """Whether an instruction may be left out where accesses of memory count, but not their data."""
    if "param" in ins.mods:
        return False
    if ins.op == "wgmma":
        return "mma_async" in ins.mods
    if ins.op == "tcgen05":
        return ins.mods[:1] in (("ld",), ("st",))
    return ins.op in ("shfl", "mma") or _pure(ins)


def _writers(
    every: list[Instr], giving: list[Instr], made: frozenset[int], maps: bool
) -> list[Instr]:
    """What writes memory that loads which count may read, or tensor maps are made in."""
    loads = maps or any(ins.op in _LOADS for ins in giving)
    tensor = any(ins.op == "tcgen05" for ins in giving)
    return [
        ins for ins in every
        if (loads and id(ins) in made)
        or (tensor and ins.op == "tcgen05" and ins.mods[:1] in (("st",), ("cp",), ("shift",)))
    ]  # fmt: skip


def _inputs(ins: Instr, may_go: Callable[[Instr], bool]) -> Iterator[str]:
    """What an instruction that counts reads, as far as `_decisive` does not say so."""
    if not may_go(ins) and ins.op not in (*_THROUGH, "st", "red", "stmatrix"):
        return
    first = 1 if _pure(ins) else 0
    for operand in ins.operands[first:]:
        yield from operand_names(operand)
    if ins.guard is not None:
        yield ins.guard.name
        yield from _results(ins)


def controlling_instructions(functions: Iterable[Function]) -> frozenset[int]:
    """Ids of the instructions without which other blocks would run, or others would wait."""
    every = _instructions(functions)
    maps_made = any(ins.op == "tensormap" for ins in every)
    needed = {name for ins in every if not _left(ins) for name in _decisive(ins)}
    needed |= {ins.guard.name for ins in every if ins.guard is not None and not _left(ins)}
    loaded: set[str] = {"generic"} if maps_made else set()
    while True:
        more = set(_sources(every, needed)) | set(_stored(every, loaded))
        for ins in every:
            taken = _left(ins) and not _pure(ins) and _makes(ins, needed)
            if taken or (_writes(ins) and loaded and _meet(_space(ins), loaded)):
                more |= {name for operand in ins.operands for name in operand_names(operand)}
                more |= {ins.guard.name} if ins.guard is not None else set()
            if taken:
                loaded |= _space(ins)
        if more <= needed:
            break
        needed |= more
    return frozenset(
        id(ins) for ins in every
        if not _left(ins) or _makes(ins, needed)
        or (_writes(ins) and loaded and _meet(_space(ins), loaded))
    )  # fmt: skip


def _left(ins: Instr) -> bool:
    """Whether an instruction may be left out where only the way counts."""
    if "param" in ins.mods:
        return False  # parameters of calls are registers by another name
    if ins.op == "wgmma":
        return "mma_async" in ins.mods
    if ins.op == "tcgen05":
        return bool(_TENSOR_DATA & set(ins.mods[:1]))
    if ins.op == "cp":  # copies of threads; those of engines tell mbarriers
        return "bulk" not in ins.mods and bool({"ca", "cg"} & set(ins.mods))
    return ins.op in _DATA or _pure(ins)


def _makes(ins: Instr, needed: set[str]) -> bool:
    """Whether an instruction writes one of the needed registers."""
    moves = ins.op in ("st", "red", "stmatrix", "cp", "prefetch", "prefetchu")
    if moves or (ins.op == "tcgen05" and ins.mods[:1] != ("ld",)):
        return False
    return not needed.isdisjoint(_results(ins))


def _writes(ins: Instr) -> bool:
    return ins.op in ("st", "red", "stmatrix")


def _instructions(functions: Iterable[Function]) -> list[Instr]:
    return [s for f in functions if f.body is not None for s in statements(f.body)
            if isinstance(s, Instr)]  # fmt: skip


def needed_instructions(functions: Iterable[Function]) -> frozenset[int]:
    """Ids of the instructions that have to run for the way of the kernel to be right."""
    every = _instructions(functions)
    needed = {name for ins in every if not _pure(ins) for name in _decisive(ins)}
    needed |= {ins.guard.name for ins in every if ins.guard is not None and not _pure(ins)}
    while True:
        more = set(_sources(every, needed))
        if more <= needed:
            break
        needed |= more
    return frozenset(
        id(ins) for ins in every if not _pure(ins) or not needed.isdisjoint(_results(ins))
    )


def _pure(ins: Instr) -> bool:
    """Carries go from one instruction to the next by no register that has a name."""
    return ins.op in _PURE and "cc" not in ins.mods


def _sources(every: list[Instr], needed: set[str]) -> Iterator[str]:
    """What the instructions that make needed registers read."""
    loaded: set[str] = set()
    for ins in every:
        if needed.isdisjoint(_results(ins)):
            continue
        if _pure(ins):
            for operand in ins.operands[1:]:
                yield from operand_names(operand)
            if ins.guard is not None:
                yield ins.guard.name
                yield from _results(ins)
        elif ins.op in _LOADS:
            loaded |= _space(ins)
        elif ins.op in _THROUGH:
            for operand in ins.operands:
                yield from operand_names(operand)
    yield from _stored(every, loaded)


def _stored(every: list[Instr], loaded: set[str]) -> Iterator[str]:
    """What is written to memory that needed registers are loaded from."""
    for ins in every:
        stores = ins.op in ("st", "red", "stmatrix", "atom")
        if loaded and stores and _meet(_space(ins), loaded):
            for operand in ins.operands:
                yield from operand_names(operand)


def _results(ins: Instr) -> set[str]:
    """Registers that an instruction may write: its first operand's, `p|q` both."""
    return set(operand_names(ins.operands[0])) if ins.operands else set()


def _space(ins: Instr) -> set[str]:
    """The memory that an instruction names; generic addresses may lie anywhere."""
    named = {mod.partition("::")[0] for mod in ins.mods} & set(_SPACES)
    return named - {"param", "const"} if named else {"generic"}


def _meet(one: set[str], other: set[str]) -> bool:
    return bool(one & other) or "generic" in one | other


def _decisive(ins: Instr) -> Iterator[str]:
    """Registers that an instruction which is no arithmetic depends on in what it does."""
    if ins.op == "shfl":
        return  # moves values between lanes, as a `mov` does within one
    for index, operand in enumerate(ins.operands):
        if ins.op in _MOVERS and _is_value(ins, index, operand):
            continue
        yield from operand_names(operand)


def _is_value(ins: Instr, index: int, operand: Operand) -> bool:
    """Whether an operand is data that only goes to memory or to a product, or comes from there."""
    if isinstance(operand, Address) or "param" in ins.mods:
        return False  # parameters of calls are registers by another name
    if isinstance(operand, Vector | Group):
        return True
    return (ins.op in ("st", "red") and index == 1) or (ins.op in ("ld", "ldu") and index == 0)

"""Looking up atoms, and adding rows of one's own.

find_mma("sm_90a", a="f16", acc="f32", family="wgmma")
find_copies("sm_100a", family="tcgen05.ld")
register_rows([MmaRow(...), CopyAtom(...)], owner="my-plugin")
"""

from collections.abc import Callable, Iterable
from functools import cache, lru_cache

from tile_cute.atoms import copies, mma_sync, tcgen05, wgmma
from tile_cute.atoms.arch import parse_chip
from tile_cute.atoms.records import CopyAtom, MmaAtom, MmaRow
from tile_cute.errors import LayoutError

_BUILTIN_MMA: tuple[Callable[[], Iterable[MmaRow]], ...] = (
    mma_sync.rows,
    wgmma.rows,
    tcgen05.rows,
)
_added: dict[str, tuple[MmaRow | CopyAtom, str]] = {}


@cache
def _builtin() -> tuple[tuple[MmaRow, ...], tuple[CopyAtom, ...]]:
    mma = tuple(row for source in _BUILTIN_MMA for row in source())
    return mma, tuple(copies.rows())


def register_rows(rows: Iterable[MmaRow | CopyAtom], owner: str) -> None:
    """Add rows; LayoutError, naming both owners, for one whose name is taken."""
    for row in rows:
        taken = _owner(row)
        if taken is not None:
            raise LayoutError(f"atom '{_key(row)}' of {owner} is already defined by {taken}")
        _added[_key(row)] = (row, owner)
    _forget()


def unregister_rows(owner: str) -> None:
    """Remove what an owner added."""
    for key in [key for key, (_, by) in _added.items() if by == owner]:
        del _added[key]
    _forget()


def _forget() -> None:
    """What was looked up before rows came or went says nothing any more."""
    for looked_up in (_found_mma, _dense_named, _mma_named, _copies_named):
        looked_up.cache_clear()


def _key(row: MmaRow | CopyAtom) -> str:
    if isinstance(row, MmaRow):
        return f"{row.name} {row.a} {row.b} {row.acc}"
    return " ".join((row.instruction, *row.modifiers[:1])) if row.family == "cp.async" else row.name


@cache
def _builtin_keys() -> frozenset[str]:
    mma, copy = _builtin()
    return frozenset(map(_key, (*mma, *copy)))


def _owner(row: MmaRow | CopyAtom) -> str | None:
    key = _key(row)
    if key in _added:
        return _added[key][1]
    return "tile-cute" if key in _builtin_keys() else None


def mma_rows() -> tuple[MmaRow, ...]:
    """All MMA rows, the project's own first."""
    return _builtin()[0] + tuple(r for r, _ in _added.values() if isinstance(r, MmaRow))


def copy_atoms() -> tuple[CopyAtom, ...]:
    """All copies, the project's own first."""
    return _builtin()[1] + tuple(r for r, _ in _added.values() if isinstance(r, CopyAtom))


def find_mma(
    chip: str | None = None,
    *,
    family: str | None = None,
    a: str | None = None,
    b: str | None = None,
    acc: str | None = None,
    k: int | None = None,
    kind: str | None = None,
    sparse: bool | None = None,
    scaled: bool | None = None,
) -> tuple[MmaRow, ...]:
    """The rows that have all the given properties, in table order; `b` defaults to `a`."""
    if chip is not None:
        parse_chip(chip)
    wanted = {"family": family, "a": a, "b": b or a, "acc": acc, "k": k, "kind": kind}
    given = tuple((name, value) for name, value in wanted.items() if value is not None)
    return _found_mma(chip, given, sparse, scaled)


@lru_cache(maxsize=1024)
def _found_mma(
    chip: str | None,
    given: tuple[tuple[str, str | int], ...],
    sparse: bool | None,
    scaled: bool | None,
) -> tuple[MmaRow, ...]:
    return tuple(
        row
        for row in mma_rows()
        if all(getattr(row, name) == value for name, value in given)
        and (sparse is None or row.sparse == sparse)
        and (scaled is None or (row.scale is not None) == scaled)
        and (chip is None or row.supported_on(chip))
    )


def find_dense(name: str, family: str) -> MmaRow | None:
    """The first dense row of `family` whose instruction is `name`; None if there is none."""
    return _dense_named(family).get(name)


@cache
def _dense_named(family: str) -> dict[str, MmaRow]:
    # The first of several rows of a name stays.
    return {row.name: row for row in reversed(find_mma(family=family, sparse=False))}


def find_copies(
    chip: str | None = None,
    *,
    family: str | None = None,
    source: str | None = None,
    target: str | None = None,
    bits: int | None = None,
) -> tuple[CopyAtom, ...]:
    """The copies that have all the given properties, in table order."""
    if chip is not None:
        parse_chip(chip)
    wanted = {"family": family, "source": source, "target": target, "bits": bits}
    given = [(name, value) for name, value in wanted.items() if value is not None]
    return tuple(
        atom
        for atom in copy_atoms()
        if all(getattr(atom, name) == value for name, value in given)
        and (chip is None or atom.supported_on(chip))
    )


def require_supported(row: MmaRow | CopyAtom, chip: str) -> None:
    """LayoutError, naming the instruction and its gates, if `chip` lacks it."""
    if not row.supported_on(chip):
        raise LayoutError(f"{row.name} needs one of {', '.join(row.gates)}; {chip} lacks it")


@cache
def _mma_named() -> dict[str, MmaAtom]:
    index: dict[str, MmaAtom] = {}
    for row in mma_rows():
        for atom in row.atoms():
            index.setdefault(atom.instruction, atom)
    return index


@cache
def _copies_named() -> dict[str, list[CopyAtom]]:
    index: dict[str, list[CopyAtom]] = {}
    for atom in copy_atoms():
        index.setdefault(atom.instruction, []).append(atom)
    return index


def mma_atom(instruction: str) -> MmaAtom:
    """The atom of a PTX instruction; LayoutError if there is none."""
    found = _mma_named().get(instruction)
    if found is None:
        raise LayoutError(f"'{instruction}' is no MMA instruction of the registry")
    return found


def copy_forms(instruction: str) -> list[CopyAtom]:
    """The copies of a PTX instruction, which differ in size; LayoutError if there is none."""
    found = _copies_named().get(instruction)
    if not found:
        raise LayoutError(f"'{instruction}' is no copy instruction of the registry")
    return found


def copy_atom(instruction: str) -> CopyAtom:
    """The copy of a PTX instruction, of several the last; LayoutError if there is none."""
    return copy_forms(instruction)[-1]

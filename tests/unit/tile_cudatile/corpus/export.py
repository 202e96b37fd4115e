"""Compiles the corpus with cuTile Python: `python tests/unit/tile_cudatile/corpus/export.py`.

Needs the `cuda-tile` package (no GPU), and writes `kernels.tar.xz` and an index without verdicts;
`judge.py` asks the released tools for those. With names of cases, the others stay as they are.
Prints what each case was refused for with `--refusals`.
"""

from __future__ import annotations

import io
import linecache
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

import cuda.tile as ct  # noqa: E402
from cuda.tile import _compile  # noqa: E402
from cuda.tile._bytecode.version import BytecodeVersion  # noqa: E402
from cuda.tile.compilation import (  # noqa: E402
    CallingConvention,
    KernelSignature,
    export_kernel,
)
from tile_cudatile import BytecodeError, read_bytecode  # noqa: E402
from unit.tile_cudatile.corpus import archive, cases  # noqa: E402

_BYTECODE_VERSIONS = {
    version: BytecodeVersion(130000 + 100 * minor)
    for minor, version in enumerate(archive.VERSIONS, 1)
}
# cuTile Python 1.7 can write 13.5, but does not offer it.
_compile.parse_bytecode_version = _BYTECODE_VERSIONS.__getitem__
_CONVENTION = CallingConvention.cutile_python_v1()
Variants = list[tuple[str, cases.Parameters]]


def load_family(name: str) -> ModuleType:
    """Runs a family's module under a path that is the same everywhere.

    Kernels are compiled from the source that `inspect` finds, and the path becomes debug
    information.
    """
    source = (HERE / f"{name}.py").read_text()
    path = f"/corpus/{name}.py"
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    module = ModuleType(name)
    module.__file__ = path
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    return module


def _target(version: str) -> str:
    """The GPU with the most number formats that compilers of this version know."""
    return "sm_107" if _BYTECODE_VERSIONS[version] >= BytecodeVersion.V_13_4 else "sm_100"


def bytecode(case: cases.Case, variants: Variants, version: str) -> bytes:
    """The kernels of these variants in one file."""
    signatures = [
        KernelSignature(parameters, _CONVENTION, symbol=f"{case.name}__{label}")  # type: ignore[arg-type]
        for label, parameters in variants
    ]
    out = io.BytesIO()
    export_kernel(
        case.kernel,  # type: ignore[arg-type]
        signatures,
        out,
        gpu_code=_target(version),
        output_format="tileir_bytecode",
        bytecode_version=version,
    )
    return out.getvalue()


def accepted(case: cases.Case, variants: Variants, version: str, refusals: Counter[str]):
    """The variants that cuTile compiles, tried one by one."""
    found: Variants = []
    for label, parameters in variants:
        try:
            data = bytecode(case, [(label, parameters)], version)
        except (ct.TileError, NotImplementedError) as error:
            refusals[f"{type(error).__name__}: {str(error).splitlines()[0]}"] += 1
        else:
            complaint = valid(data)
            refusals[f"verifier: {complaint}"] += bool(complaint)
            if not complaint:
                found.append((label, parameters))
    return found


def valid(data: bytes) -> str:
    """What the verifier says about a program; cuTile writes some that compilers refuse."""
    try:
        read_bytecode(data)
    except BytecodeError as error:
        return error.lines[0]
    return ""


def export(case: cases.Case, show: bool) -> dict[str, tuple[bytes, list[str]]]:
    """Version -> bytes and labels, newest first; what an older version refuses is left out."""
    found: dict[str, tuple[bytes, list[str]]] = {}
    left: Variants = list(case.variants)
    refusals: Counter[str] = Counter()
    for version in reversed(archive.VERSIONS):
        data = b""
        with suppress(ct.TileError, NotImplementedError):
            data = bytecode(case, left, version)
        if not data or valid(data):
            left = accepted(case, left, version, refusals)
            if not left:
                break
            data = bytecode(case, left, version)
        found[version] = data, [label for label, _ in left]
    if show or not found:
        for text, count in (+refusals).most_common():
            print(f"{case.name}: {count} x {text}")
    return found


def stored(names: list[str]) -> tuple[dict[str, bytes], dict[str, archive.Entry]]:
    """What the archive holds of cases other than these."""
    others = {name for name in cases.CASES if names and name not in names}
    files, index = (archive.files(), archive.index()) if others else ({}, {})
    return (
        {name: data for name, data in files.items() if archive.case_of(name) in others},
        {name: entry for name, entry in index.items() if archive.case_of(name) in others},
    )


def main() -> None:
    """Writes the archive."""
    for family in archive.FAMILIES:
        load_family(family)
    names = [argument for argument in sys.argv[1:] if argument != "--refusals"]
    contents, entries = stored(names)
    empty: list[str] = []
    for case in cases.CASES.values():
        if names and case.name not in names:
            continue
        exported = export(case, "--refusals" in sys.argv)
        if not exported:
            empty.append(case.name)
        for version, (data, labels) in exported.items():
            contents[f"{case.name}.{version}"] = data
            entries[f"{case.name}.{version}"] = {"variants": labels, "text": {}, "accepted": []}
    archive.write_files(contents)
    archive.write_index(entries)
    size = archive.KERNELS.stat().st_size
    print(f"{len(cases.CASES)} cases, {len(contents)} files, {size} bytes")
    if empty:
        raise SystemExit(f"nothing compiles of {', '.join(empty)}")


if __name__ == "__main__":
    main()

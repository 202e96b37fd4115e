"""The functions of libdevice that one module calls, specialised. Worker process only.

libdevice asks `__nvvm_reflect("KEY")` how it shall round and flush. LLVM's own pass knows but two
of the keys, so the answers are put into the text here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import llvmlite.binding as llvm

from tile_nvptx.emit import llvm_passes

_KEY = re.compile(r'^@([\w.$]+) = .*constant \[\d+ x i8\] c"([^"]*)\\00"', re.MULTILINE)
_REFLECT = re.compile(r"call i32 @__nvvm_reflect\(ptr (?:[^@()]* )?@([\w.$]+)\)(?: #\d+)?")


@lru_cache(maxsize=4)
def _bitcode(path: str) -> bytes:
    return Path(path).read_bytes()


#: Each library in a context of its own, which goes with it: modules do not free a context's types.
_parsed: dict[str, tuple[llvm.ContextRef, llvm.ModuleRef]] = {}


def preload(path: str) -> None:
    """Parse the library ahead of its first use: 30 ms, better spent while nobody waits."""
    with suppress(OSError, RuntimeError):  # whoever uses it says what is wrong
        _parsed[path] = _parse(path)


def _parse(path: str) -> tuple[llvm.ContextRef, llvm.ModuleRef]:
    context = llvm.create_context()
    return context, llvm.parse_bitcode(_bitcode(path), context)


_SPECIALIZED: dict[tuple[str, tuple[str, ...], tuple[tuple[str, int], ...]], str] = {}


def specialized(
    path: str, wanted: Sequence[str], reflect: Mapping[str, int], machine: llvm.TargetMachine
) -> str:
    """LLVM IR text of `wanted` and what they call, out of the bitcode at `path`.

    Parsing the library takes longer than most kernels, so results are kept.

    Raises:
        KeyError: the library does not define one of `wanted`.
        ValueError: the file is no LLVM bitcode.
    """
    key = (path, tuple(wanted), tuple(sorted(reflect.items())))
    if key not in _SPECIALIZED:
        _SPECIALIZED[key] = resolve_reflection(_pruned(path, wanted, machine), reflect)
    return _SPECIALIZED[key]


def _library(path: str) -> tuple[llvm.ContextRef, llvm.ModuleRef]:
    try:
        return _parsed.pop(path, None) or _parse(path)
    except (OSError, RuntimeError) as error:
        raise ValueError(str(error)) from error


def _pruned(path: str, wanted: Sequence[str], machine: llvm.TargetMachine) -> str:
    # Pruning uses the module up, and copying it would take as long as parsing.
    context, library = _library(path)
    tuning = llvm.create_pipeline_tuning_options()
    with context, library, llvm.create_pass_builder(machine, tuning) as builder:
        missing = set(wanted)
        for function in library.functions:
            if not function.is_declaration:
                missing.discard(function.name)
                if function.name not in wanted:
                    function.linkage = llvm.Linkage.internal
        if missing:
            raise KeyError(", ".join(sorted(missing)))
        # Dropping the other three hundred functions first keeps the text small.
        prune = llvm.create_new_module_pass_manager()
        prune.add_global_dead_code_eliminate_pass()
        llvm_passes.run(prune, library, builder)
        return str(library)


def resolve_reflection(text: str, reflect: Mapping[str, int]) -> str:
    """LLVM IR `text` with every `__nvvm_reflect` call replaced by its value; unknown keys are 0."""
    keys = dict(_KEY.findall(text))
    return _REFLECT.sub(lambda call: f"add i32 0, {reflect.get(keys.get(call[1], ''), 0)}", text)

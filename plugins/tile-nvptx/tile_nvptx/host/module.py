"""The host module of a cubin: its callbacks, and the tables by which a launch finds them.

Symbols and words are those of the host objects in cubins of `tileiras` 13.5. Words that are 0 in
all of them are 0 here; their meaning is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tile_cute.map_recipe import MapRecipe

from tile_nvptx.host.map_code import callback

#: Words of 8 bytes of the entry of one kernel: its name, and what runs when arguments change.
_ENTRY_WORDS, _NAME, _ON_ARGUMENTS = 8, 0, 5
#: Words of the table of tables: version, size of an entry, entries, their number, hook at load.
_TABLE_WORDS = 9

_ON_PRE_LOAD = """\
define i32 @__CUDA_TILEIR_ON_PRE_LOAD(ptr %driver, ptr %who, i32 %version, ptr %out) {
  %asked = alloca i32, align 4
  switch i32 %version, label %copy [
    i32 0, label %refuse
    i32 1, label %ask
  ]
refuse:
  ret i32 1
ask:
  %place = getelementptr [9 x ptr], ptr %driver, i64 0, i64 6
  %call = load ptr, ptr %place, align 8
  %ignored = call i32 %call(ptr %who, i32 16, ptr %asked)
  br label %copy
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 @__CUDA_TILEIR_CALLBACKS_ON_PRE_LOAD, ptr align 8 @__CUDA_TILEIR_CALLBACKS, i64 72, i1 false)
  %word = getelementptr [9 x ptr], ptr @__CUDA_TILEIR_CALLBACKS_ON_PRE_LOAD, i64 0, i64 2
  store ptr null, ptr %word, align 8
  store ptr @__CUDA_TILEIR_CALLBACKS_ON_PRE_LOAD, ptr %out, align 8
  ret i32 0
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""  # noqa: E501 - LLVM IR has no line breaks inside calls


def host_module(
    kernels: Mapping[str, Sequence[MapRecipe]], offsets: Mapping[str, Mapping[int, int]]
) -> str:
    """LLVM IR of the host object.

    Args:
        kernels: name -> recipes of the maps it takes; kernels without maps are left out.
        offsets: name -> parameter -> bytes behind the first one.
    """
    parts: list[str] = []
    entries: list[str] = []
    declared: set[str] = set()
    for index, (name, recipes) in enumerate(kernels.items()):
        function = f"__CUDA_TILEIR_FUNC_ON_ARGUMENTS_CHANGE_{index}"
        text, needs = callback(function, recipes, offsets[name])
        declared |= needs
        raw = name.encode()
        constant = f"@__CUDA_TILEIR_FUNC_NAME_{index}"
        escaped = "".join(f"\\{byte:02X}" for byte in raw)
        parts += [
            f'{constant} = internal constant [{len(raw) + 1} x i8] c"{escaped}\\00", align 1\n',
            text,
        ]
        entries.append(_words(_ENTRY_WORDS, {_NAME: constant, _ON_ARGUMENTS: f"@{function}"}))
    kind = f"[{len(entries)} x [{_ENTRY_WORDS} x ptr]]"
    table = _words(
        _TABLE_WORDS,
        {
            0: 2,
            4: 8 * _ENTRY_WORDS,
            5: "@__CUDA_TILEIR_FUNC_CALLBACKS",
            6: len(entries),
            7: 2,
            8: "@__CUDA_TILEIR_ON_PRE_LOAD",
        },
    )
    listed = ", ".join(f"[{_ENTRY_WORDS} x ptr] {entry}" for entry in entries)
    tables = (
        f"@__CUDA_TILEIR_FUNC_CALLBACKS = internal constant {kind} [{listed}], align 16\n"
        f"@__CUDA_TILEIR_CALLBACKS = constant [{_TABLE_WORDS} x ptr] {table}, align 16\n"
        f"@__CUDA_TILEIR_CALLBACKS_ON_PRE_LOAD = internal global [{_TABLE_WORDS} x ptr] "
        "zeroinitializer, align 16\n"
    )
    return "".join([*parts, tables, _ON_PRE_LOAD, *(f"{line}\n" for line in sorted(declared))])


def _words(count: int, values: Mapping[int, int | str]) -> str:
    """An initialiser of `count` pointers: addresses of symbols, numbers, and null."""

    def word(value: int | str) -> str:
        if isinstance(value, str):
            return f"ptr {value}"
        return f"ptr inttoptr (i64 {value} to ptr)" if value else "ptr null"

    return f"[{', '.join(word(values.get(index, 0)) for index in range(count))}]"

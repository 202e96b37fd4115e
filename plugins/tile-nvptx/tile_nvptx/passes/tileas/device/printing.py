"""The device function that prints, as MLIR text (see `helpers`)."""

from __future__ import annotations


def print_values(kinds: tuple[str, ...]) -> tuple[str, str]:
    """Name and text of `(format, values..)`: one call of vprintf, its arguments in a struct.

    `kinds` are i32, i64 and f64, as C passes variable arguments.
    """
    name = "__tile_print" + "".join(f"_{kind}" for kind in kinds)
    arguments = ", ".join(["%f: !llvm.ptr", *(f"%a{i}: {kind}" for i, kind in enumerate(kinds))])
    lines = [
        "llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32",
        f"llvm.func internal @{name}({arguments}) {{",
    ]
    if kinds:
        struct = f"!llvm.struct<({', '.join(kinds)})>"
        lines += [
            "  %one = llvm.mlir.constant(1 : i32) : i32",
            f"  %b = llvm.alloca %one x {struct} {{alignment = 8 : i64}} : (i32) -> !llvm.ptr",
        ]
        for i, kind in enumerate(kinds):
            lines.append(
                f"  %p{i} = llvm.getelementptr %b[0, {i}] : (!llvm.ptr) -> !llvm.ptr, {struct}"
            )
            lines.append(f"  llvm.store %a{i}, %p{i} : {kind}, !llvm.ptr")
    else:
        lines.append("  %b = llvm.mlir.zero : !llvm.ptr")
    lines += [
        "  %r = llvm.call @vprintf(%f, %b) : (!llvm.ptr, !llvm.ptr) -> i32",
        "  llvm.return",
        "}",
    ]
    return name, "\n".join(lines)

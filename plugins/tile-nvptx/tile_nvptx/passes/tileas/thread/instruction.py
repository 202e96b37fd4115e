"""Instructions of PTX that have no operands."""

from __future__ import annotations

from tile_nvptx.passes.tileas.thread.state import Kernel


def bare_instruction(cx: Kernel, text: str) -> None:
    """An instruction without operands that no access to memory passes."""
    name = "__tile_" + text.replace(".", "_")
    body = [
        f"llvm.func internal @{name}() attributes {{always_inline}} {{",
        f'  llvm.inline_asm has_side_effects asm_dialect = att "{text};", "~{{memory}}" : () -> ()',
        "  llvm.return",
        "}",
    ]
    cx.state.helpers.call(cx, name, "\n".join(body), [], None)

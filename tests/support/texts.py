"""The texts of verifiers, found in their source, so that tests can be complete."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

#: Texts are shown with what stands in for values in them.
ANYTHING = "\0"


def text_of(node: ast.expr) -> str | None:
    """A string expression, `ANYTHING` where something is filled in; None if it is no string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"(?<!{){\w*}", ANYTHING, node.value)
    if isinstance(node, ast.JoinedStr):
        parts = [text_of(v) if isinstance(v, ast.Constant) else ANYTHING for v in node.values]
        return "".join(p or "" for p in parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [text_of(node.left), text_of(node.right)]
        if any(p is not None for p in parts):
            return "".join(ANYTHING if p is None else p for p in parts)
    return None


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The strings of a module that are sentences, with their lines; not the docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings: set[ast.AST] = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    yield from _sentences([tree], docstrings)


def returned_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Those that functions return, or that stand in tuples of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside: list[ast.AST] = [node for node in ast.walk(tree) if isinstance(node, ast.Return)]
    inside += [n for n in tree.body if isinstance(n, ast.Assign) and isinstance(n.value, ast.Tuple)]
    inside = [
        node
        for node in inside
        if not any(isinstance(part, ast.Call) and _is_spec(part) for part in ast.walk(node))
    ]
    yield from _sentences(inside, set())


def _is_spec(call: ast.Call) -> bool:
    """Whether a call declares an operation, whose description is no verifier's text."""
    return isinstance(call.func, ast.Name) and call.func.id == "OperationSpec"


def _sentences(roots: list[ast.AST], skipped: set[ast.AST]) -> Iterator[tuple[int, str]]:
    seen = set(skipped)
    for root in roots:
        for node in ast.walk(root):
            if node in seen or not isinstance(node, ast.expr):
                continue
            text = text_of(node)
            if text is not None:
                seen |= set(ast.walk(node))
                if text.replace(ANYTHING, "").count(" ") >= 2:
                    yield node.lineno, text


def pattern(text: str) -> re.Pattern[str]:
    """What a text may look like with its values."""
    parts = [re.escape(part) for part in text.strip("!").strip().split(ANYTHING)]
    return re.compile("[^\n]*".join(parts))

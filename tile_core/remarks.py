"""What passes say about what they did and did not do, for people and for tools that read remarks.

A remark is of one kind ("passed", "missed", "failed", "analysis"), of one category (`CATEGORIES`),
and has a name that stays the same when its text changes. Besides its message it carries facts (what
was chosen: `Instruction`, `Shape`), the reasons why better forms were rejected, best form first,
and a hint: what would change it. Screen and YAML have the shape that NVIDIA's `tileiras` 13.5
prints, so that what reads its remarks reads these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from tile_core.diagnostics import SourceLocation

#: Category as options spell it -> as it is printed. `tileiras` knows the first two.
CATEGORIES = {
    "memory": "Memory",
    "tensorcore": "Tensor-core",
    "layout": "Layout",
    "schedule": "Schedule",
    "pipeline": "Pipeline",
    "occupancy": "Occupancy",
    "general": "General",
}
#: Kind -> the tag of its YAML document. Warnings are those of MLIR and of verifiers.
KINDS = {
    "passed": "Passed",
    "missed": "Missed",
    "failed": "Failure",
    "analysis": "Analysis",
    "warning": "Analysis",
}


class About(TypedDict, total=False):
    """What `PassContext.passed`, `missed`, `failed` and `observed` take besides the message."""

    category: str  # one of `CATEGORIES`
    name: str  # "LoadInstructionSelected"; printed as RemarkMemoryLoadInstructionSelected
    facts: Mapping[str, object]  # {"Instruction": "cp.async", "Shape": [64, 32]}
    reasons: Sequence[str]  # which rule rejected which better form, and why
    hint: str  # what would change it


@dataclass(frozen=True)
class Remark:
    """One remark; `kind` is one of `KINDS`."""

    kind: str
    pass_name: str
    op: str  # operation name
    function: str  # symbol of the anchor, "" for a module
    message: str
    where: SourceLocation | None = None
    category: str = "general"
    name: str = ""  # without its prefix; "" is made of the pass's name
    facts: tuple[tuple[str, str], ...] = ()
    reasons: tuple[str, ...] = ()
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        facts = "".join(f"; {key} = {value}" for key, value in self.facts)
        reasons = "".join(f"; {reason}" for reason in self.reasons)
        hint = f"; hint: {self.hint}" if self.hint else ""
        return f"{place}{self.kind}: {self.message}{facts}{reasons}{hint} [{self.pass_name}]"

    @property
    def full_name(self) -> str:
        """`RemarkMemoryLoadInstructionSelected`: what tools know the remark by."""
        title = CATEGORIES[self.category].replace("-core", "Core")
        name = self.name or self._own_name()
        return (
            f"Remark{'' if self.category == 'general' or name.startswith(title) else title}{name}"
        )

    def _own_name(self) -> str:
        words = self.pass_name.replace("_", "-").replace(":", "-").split("-")
        return "".join(word.capitalize() for word in words)

    def described(self, about: About) -> Remark:
        """The remark with what a pass said about it.

        Raises:
            TypeError: a category that does not exist; the pass is wrong.
        """
        category = about.get("category", "general")
        if category not in CATEGORIES:
            raise TypeError(f"there is no category '{category}': {', '.join(CATEGORIES)}")
        return replace(
            self,
            category=category,
            name=about.get("name", ""),
            facts=tuple((key, _plain(value)) for key, value in about.get("facts", {}).items()),
            # NVIDIA's tool repeats a reason for every element that it holds for.
            reasons=tuple(dict.fromkeys(about.get("reasons", ()))),
            hint=about.get("hint", ""),
        )


def chosen(remarks: Iterable[Remark], wanted: Sequence[str]) -> list[Remark]:
    """The remarks of the kinds and categories in `wanted`; all where none of either is named."""
    kinds = {name for name in wanted if name in KINDS}
    categories = set(wanted) - kinds
    return [
        remark
        for remark in remarks
        if (not kinds or remark.kind in kinds) and (not categories or remark.category in categories)
    ]


def _plain(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(str, value))}]"
    return str(value)


def as_yaml(remarks: Iterable[Remark]) -> str:
    """LLVM's optimization record format, one document per remark, numbered in order."""
    return "".join(_document(number, remark) for number, remark in enumerate(remarks, 1))


def _document(number: int, remark: Remark) -> str:
    lines = [
        f"--- !{KINDS[remark.kind]}",
        f"Pass:            {CATEGORIES[remark.category]}",
        f"Name:            {remark.full_name}",
    ]
    if remark.where is not None:
        where = remark.where
        lines.append(
            f"DebugLoc:        {{ File: {_quoted(where.file)}, "
            f"Line: {where.line}, Column: {where.column} }}"
        )
    rows = [("RemarkId", str(number)), ("Remark", _quoted(remark.message))]
    rows += [(key, _quoted(value)) for key, value in remark.facts]
    rows += [("Reason", _quoted(reason)) for reason in remark.reasons]
    rows += [("Hint", _quoted(remark.hint))] if remark.hint else []
    rows += [("By", _quoted(remark.pass_name))] if remark.pass_name else []
    lines += [f"Function:        {remark.function or _quoted('')}"]
    lines += ["Args:", *(f"  - {key + ':':12} {value}" for key, value in rows), "..."]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''").replace("\n", " ") + "'"


def as_listing(remarks: Sequence[Remark]) -> str:
    """Remarks as on the screen: grouped by function and category, in the order they were made."""
    return "".join(f"{line}\n" for line in _listing(remarks))


def _listing(remarks: Sequence[Remark]) -> Iterator[str]:
    for function in dict.fromkeys(remark.function for remark in remarks):
        yield from (f"in function: {function}:" if function else "in module:", "")
        own = [remark for remark in remarks if remark.function == function]
        for category in dict.fromkeys(remark.category for remark in own):
            yield f"  category: {CATEGORIES[category]}"
            for remark in own:
                if remark.category == category:
                    yield from _shown(remark)
            yield ""


def _shown(remark: Remark) -> Iterator[str]:
    kind = "analysis" if remark.kind == "warning" else remark.kind
    yield f"    remark[{kind}]: {remark.message}"
    if remark.where is not None:
        where = remark.where
        yield f'      --> "{where.file}":{where.line}:{where.column}'
    yield "       |"
    yield f"       = name: {remark.full_name}"
    for key, value in remark.facts:
        yield f"       = note: {key} = {value}"
    for reason in remark.reasons:
        yield f"       = reason: {reason}"
    if remark.hint:
        yield f"       = hint: {remark.hint}"
    yield ""


def as_json(remarks: Iterable[Remark]) -> list[dict[str, object]]:
    """Plain data, for `--json` and for viewers."""
    return [
        {
            "kind": remark.kind,
            "category": remark.category,
            "name": remark.full_name,
            "pass": remark.pass_name,
            "operation": remark.op,
            "function": remark.function,
            "message": remark.message,
            "where": None if remark.where is None else str(remark.where),
            "facts": dict(remark.facts),
            "reasons": list(remark.reasons),
            "hint": remark.hint or None,
        }
        for remark in remarks
    ]

"""The options of `tileiras` 13.5: a table that the parser, the help and the tests read."""

from __future__ import annotations

from dataclasses import dataclass

#: Feature names that `--preview` takes.
PREVIEW_FEATURES = ("simt",)

GENERIC = "Generic Options"
ASSEMBLER = "TileIR Assembler Options"
REMARKS = "TileIR Assembler Remark Options"


@dataclass(frozen=True)
class Option:
    """One option.

    `kind` says how its value is read: "flag" (a boolean, optional), "int", "enum" (one of
    `choices`), "text", "features" (names separated by commas), or "action" (takes no value).
    """

    name: str
    kind: str
    help: str
    value: str = ""  # what the help calls the value
    choices: tuple[tuple[str, str], ...] = ()
    category: str = ASSEMBLER
    alias: str | None = None
    hidden: bool = False  # only --help-hidden and --help-list-hidden show it
    prefix: bool = False  # the value is what follows the name, and nothing else: -O3
    many: bool = False  # each occurrence adds a value; otherwise the last one wins

    @property
    def takes_value(self) -> bool:
        """Whether a value is required, from the next argument if need be."""
        return self.kind in ("int", "enum", "text", "features")

    @property
    def groups(self) -> bool:
        """Whether it may stand in a group of one-letter options, as in `-gO0`."""
        return len(self.name) == 1


def _category(name: str, kind: str) -> Option:
    what = f"{kind} remarks" if kind else "remarks of every kind"
    choices = (
        ("none", f"No {what}"),
        ("all", f"All {what}"),
        ("memory", f"{what} about memory accesses".capitalize()),
        ("tensorcore", f"{what} about tensor cores".capitalize()),
    )
    return Option(name, "enum", f"Which {what} to show", "value", choices, REMARKS)


_ARCHITECTURES = tuple(
    (f"sm_{n}", f"SM {n}") for n in (80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121)
)

_ALL = (
    Option("h", "action", "Alias for --help", category=GENERIC, alias="help", hidden=True),
    Option("help", "action", "Print the options (--help-hidden: all of them)", category=GENERIC),
    Option("help-hidden", "action", "Print all options", category=GENERIC, hidden=True),
    Option("help-list", "action", "Print the options as one list", category=GENERIC),
    Option(
        "help-list-hidden", "action", "Print all options as one list", category=GENERIC, hidden=True
    ),
    # The released tool takes these two and prints nothing.
    Option("print-all-options", "flag", "Taken, without effect", category=GENERIC, hidden=True),
    Option("print-options", "flag", "Taken, without effect", category=GENERIC, hidden=True),
    Option("version", "action", "Print the version", category=GENERIC),
    Option("O", "int", "Alias for --opt-level", alias="opt-level", prefix=True),
    Option("apply-controls", "text", "Refused: there is nothing here that it controls", "path"),
    Option("arch", "enum", "Alias for --gpu-name", choices=_ARCHITECTURES, alias="gpu-name"),
    Option("device-debug", "flag", "Full debug information; needs -O0"),
    Option("g", "flag", "Alias for --device-debug", alias="device-debug"),
    Option("gpu-name", "enum", "GPU architecture to compile for", "value", _ARCHITECTURES),
    Option(
        "host-arch", "enum", "Architecture of the host", "value",
        (("x86_64", "x86_64"), ("aarch64", "aarch64")),
    ),
    Option(
        "host-os", "enum", "Operating system of the host", "value",
        (("linux", "linux"), ("windows", "windows")),
    ),
    Option("l", "text", "A tile library; needs --preview=simt", "path", many=True),
    Option("lineinfo", "flag", "Line numbers in the code"),
    Option("list-versions", "flag", "Print the bytecode versions that can be read"),
    Option("o", "text", "Alias for --output-file", alias="output-file"),
    Option("opt-level", "int", "Optimization level, 0 to 3; 3 when it is not given", "N"),
    Option("output-file", "text", "Where the cubin goes; elf.o when it is not given", "file"),
    Option("preview", "features", "Enable preview features", "feature[,feature...]"),
    Option(
        "sanitize", "enum", "Instrument the code for a sanitizer", "value",
        (("memcheck", "Check memory accesses"),),
    ),
    Option(
        "remark-format", "enum", "Form of remarks", "value",
        (("command-line", "On standard output"), ("yaml", "A file of YAML documents")), REMARKS,
    ),
    _category("remarks", ""),
    _category("remarks-analysis", "analysis"),
    _category("remarks-failed", "failed"),
    _category("remarks-missed", "missed"),
    Option(
        "remarks-output-file", "text", "File of YAML remarks; tileir_remarks.yaml when not given",
        "string", category=REMARKS,
    ),
    _category("remarks-passed", "passed"),
)  # fmt: skip

OPTIONS: dict[str, Option] = {option.name: option for option in _ALL}

#: Of options equally near to an unknown one, the released tool suggests the first in this order,
#: which is that of its hash table. Found by asking it about 276 words made to lie between two
#: options each; the order of 17 pairs makes no difference to any word that was tried.
SUGGESTED_FIRST = (
    "help-list-hidden", "l", "remarks-failed", "gpu-name", "output-file", "arch", "print-options",
    "version", "host-os", "remarks-output-file", "device-debug", "remarks-missed", "remarks-passed",
    "h", "remark-format", "O", "help-hidden", "lineinfo", "print-all-options", "host-arch", "g",
    "opt-level", "help", "remarks", "remarks-analysis", "help-list", "sanitize", "list-versions",
    "o", "preview", "apply-controls",
)  # fmt: skip

"""Command lines, right and wrong, that are put to the released tool and to ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tile_cudatile.bytecode.writer import write_bytecode
from tile_cudatile.tree import Module
from tile_cudatile.versions import SUPPORTED, version_text

EXAMPLES = Path(__file__).parents[2] / "examples" / "bytecode"
MAGIC = b"\x7fTileIR\x00"

#: An input that compiles, and what makes it compile.
GPU = ("--gpu-name", "sm_90")
OK = ("empty.bc", *GPU)


def write_inputs(folder: Path) -> None:
    """Write every file that the command lines name."""
    whole = (EXAMPLES / "vector_add_f32.tileirbc").read_bytes()
    for version in SUPPORTED:
        empty = write_bytecode(Module(version=version))
        (folder / f"empty{version_text(version)}.bc").write_bytes(empty)
    files: dict[str, bytes] = {
        "empty.bc": (folder / "empty13.1.bc").read_bytes(),
        "add.bc": whole,
        "cut.bc": whole[:100],
        "none.bc": b"",
        "garbage.bc": b"garbage\n",
        "mlir.bc": b"ML\xefR....",
        "header.bc": MAGIC + b"\x0d\x01\0\0",
        "v13.6.bc": MAGIC + b"\x0d\x06\0\0" + whole[12:],
        "v13.0.bc": MAGIC + b"\x0d\x00\0\0" + whole[12:],
        "v12.1.bc": MAGIC + b"\x0c\x01\0\0" + whole[12:],
        "tag.bc": MAGIC + b"\x0d\x05\x02\0" + whole[12:],
        "library.bc": b"not a library",
        "level.rsp": b"-O1\n",
        "words.rsp": b'-O1 "--gpu-name" sm_90 emp\\ty.bc',
        "quotes.rsp": b"'-O1' --gpu-name 'sm_'90 \"empty.bc",
        "nested.rsp": b"@words.rsp",
        "wrong.rsp": b"--bogus @level.rsp",
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)


def command_lines() -> list[tuple[str, ...]]:
    """All of them, each once."""
    return list(dict.fromkeys((*_actions(), *_spellings(), *_inputs(), *_orders(), *_remarks())))


_MISSPELT = (
    "--bogus", "--gpuname", "--gpu_name=sm_90", "--gpu", "-gpu", "--archs", "--lineinf", "--line",
    "--no-lineinfo", "--debug", "--device", "--opt", "--optlevel=2", "--O4x", "--output", "--out=x",
    "--outputfile=x", "--prev", "--previews=simt", "--sanitizer=memcheck", "--sanitise=memcheck",
    "--list", "--list-version", "--versions", "--vers", "--remark=all", "--remark",
    "--remarks-pass",
    "--remarks-fail=all", "--remarks-analyse=all", "--remarks-format=yaml", "--remarks-file=x",
    "--remarks-output=x", "--host", "--host-cpu=x86_64", "--hosts-os=linux", "--help-all", "--hel",
    "--help-lis", "--print", "--print-all", "--apply", "--apply-control=x", "--verbose", "-v", "-x",
    "-c", "-S", "-d", "-q", "--compute-capability=sm_90", "--pass-pipeline=x", "--mlir-timing",
    "--emit=ptx", "--fmad=false", "--ftz=true", "--ptxas-options=-v", "--debuginfo-level=full",
    "---lineinfo", "--=x", "-=", "-=x", "--gpu-name ", "-lfoo", "-ofoo", "-Wall", "-fPIC", "-I.",
    "--help-lists=1", "--versio=3", "-opt-level2", "--a", "--zz", "--zzzzzzzzzzzzzzzzzzzzzzzzzzzz",
)  # fmt: skip


_BOOLEANS = ("", "true", "TRUE", "True", "tRue", "1", "false", "False", "0", "yes", "no", "2")


def _actions() -> Iterator[tuple[str, ...]]:
    yield ()
    yield ("",)
    actions = ("help", "help-hidden", "help-list", "help-list-hidden", "version", "list-versions")
    for action in actions:
        yield (f"--{action}",)
        yield (f"-{action}",)
        yield (f"--{action}=x",)
        yield (f"--{action}=", "empty.bc")
        yield (f"--{action}=false", *OK)
        yield (f"--{action}", "--bogus")
        yield ("--bogus", f"--{action}")
        yield ("missing.bc", f"--{action}")
        yield ("a", "b", f"--{action}")
        yield ("--gpu-name=sm_1", f"--{action}")
    for first in actions:
        for second in actions:
            yield (f"--{first}", f"--{second}")
    yield from (("-h",), ("-h", "--bogus"), ("-hg",), ("-gh",), ("-h=1",), ("--h",), ("--", "-h"))
    yield from (("--gpu-name", "--help"), ("-o", "--version"), ("--opt-level", "--version"))
    for option in _MISSPELT:
        yield (option,)
        yield (option, "--version")
    yield ("--bogus", "--gpu-name=sm_1", "-O", *OK, "more.bc")


def _spellings() -> Iterator[tuple[str, ...]]:
    for gpu in ("80", "86", "87", "88", "89", "90", "100", "103", "107", "110", "120", "121"):
        yield ("empty.bc", "--gpu-name", f"sm_{gpu}")
    for gpu in (
        "",
        "sm_0",
        "sm_9",
        "sm_70",
        "sm_75",
        "sm_90a",
        "sm_100f",
        "SM_90",
        "90",
        "compute_90",
    ):
        yield ("empty.bc", f"--gpu-name={gpu}")
        yield ("empty.bc", "--arch", gpu)
    yield ("empty.bc", "-gpu-name=sm_90")
    yield ("empty.bc", "-arch", "sm_90")
    yield ("empty.bc", "--arch=sm_90", "--gpu-name=sm_1")
    yield ("empty.bc", "--gpu-name=sm_1", "--arch=sm_90")
    yield ("empty.bc", "--gpu-name")
    yield ("empty.bc", "--arch")
    yield ("empty.bc", "--gpu-name=sm_80", "--arch=sm_100")
    levels = (
        "0", "1", "2", "3", "4", "-1", "10", "00", "01", "03", "08", "0x2", "0X3", "0b1", "0B1",
        "0o2", "+1", " 1", "1 ", "x", "2x", "", "1.0", "1e1", "2147483647", "2147483648", "0x",
        "-2147483648", "-2147483649", "99999999999999999999", "0b2", "--1", "-0", "-0x1",
    )  # fmt: skip
    for level in levels:
        yield (*OK, f"-O{level}")
        yield (*OK, f"--opt-level={level}")
        yield (*OK, "--opt-level", level)
    yield from ((*OK, *rest) for rest in (
        ("-O",), ("-O", "2"), ("-O=2",), ("--O2",), ("--O",), ("--O=2",), ("-O2", "-O1"),
        ("-O4", "-O1"), ("-O1", "-O4"), ("--opt-level",), ("-opt-level", "1"), ("-O0g",), ("-gO0",),
        ("-gO3",), ("-gO",), ("-go", "made"), ("-gg", "-O0"), ("-gl", "x"), ("-ggO0",), ("-gx",),
        ("-gbogus",), ("-lO0",), ("-oO0",), ("-go=made", "-O0"), ("-gO0o", "made"), ("--gO0",),
    ))  # fmt: skip
    for flag in ("-g", "--device-debug", "--lineinfo", "--g", "-lineinfo", "--print-options"):
        yield (*OK, "-O0", flag)
        yield (*OK, flag)
        for value in (
            "",
            "true",
            "TRUE",
            "True",
            "tRue",
            "1",
            "false",
            "False",
            "0",
            "yes",
            "no",
            "2",
        ):
            yield (*OK, "-O0", f"{flag}={value}")
        yield (*OK, flag, "false")
    yield (*OK, "-g", "-g=false")
    yield (*OK, "-g=false", "-g")
    yield (*OK, "-O0", "-g", "--lineinfo")
    for option, values in {
        "host-arch": ("x86_64", "aarch64", "arm64ec", "X86_64", ""),
        "host-os": ("linux", "windows", "macos", ""),
        "sanitize": ("memcheck", "racecheck", "", "all"),
        "preview": ("simt", "simt,simt", "", ",", "foo", "simt,foo", "foo,bar", "SIMT", " simt"),
        "remarks": ("all", "foo", ""),
        "remark-format": ("yaml", "command-line", "json", ""),
        "apply-controls": ("x", "a b", ""),
    }.items():
        yield (*OK, f"--{option}")
        for value in values:
            yield (*OK, f"--{option}={value}")
            yield (*OK, f"-{option}", value)
    yield (*OK, "--preview=foo", "--preview=bar")
    yield (*OK, "--host-os=linux", "--host-os=windows")
    yield (*OK, "--sanitize=memcheck", "-O0", "-g")


def _inputs() -> Iterator[tuple[str, ...]]:
    names = (
        "cut",
        "none",
        "garbage",
        "mlir",
        "header",
        "v13.6",
        "v13.0",
        "v12.1",
        "tag",
        "missing",
    )
    for name in (*(f"{n}.bc" for n in names), ".", "/", "-", "no/file.bc", "add.bc/x"):
        yield (name,)
        yield (name, *GPU)
    for version in ("13.1", "13.2", "13.3", "13.4", "13.5"):
        yield (f"empty{version}.bc", "--gpu-name", "sm_120")
        yield (f"empty{version}.bc",)
    yield ("add.bc", *GPU)
    yield ("add.bc", "--gpu-name", "sm_120", "-O0", "--device-debug")
    yield ("add.bc", "-o", "made.cubin", "--gpu-name", "sm_80", "-O3", "--lineinfo")
    yield ("--gpu-name=sm_100", "--opt-level=2", "add.bc", "-o", "made.cubin")
    yield ("--", "empty.bc")
    yield (*GPU, "--", "empty.bc")
    yield (*GPU, "--", "-O2")
    yield (*OK, "--", "-O2")
    yield (*OK, "--")
    yield ("--", "--", *GPU)
    yield ("a.bc", "b.bc")
    yield (*OK, "add.bc")
    yield ("a", "b", "c", *GPU)
    for name in (
        "@level.rsp",
        "@missing.rsp",
        "@words.rsp",
        "@nested.rsp",
        "@quotes.rsp",
        "@wrong.rsp",
    ):
        yield (name,)
        yield (name, *OK)
    yield (*GPU, "@quotes.rsp")
    for path in ("made", "no/such", "/", ".", "", "-", "./made", "empty.bc/x"):
        yield (*OK, "-o", path)
        yield (*OK, f"--output-file={path}")
    yield (*OK, "-o=made")
    yield (*OK, "--o", "made")
    yield (*OK, "-o")
    yield (*OK, "-o", "one", "--output-file=two")
    yield (*OK, "-l", "library.bc")
    yield (*OK, "-l", "library.bc", "--preview=simt")
    yield (*OK, "-l=missing", "--preview=simt")
    yield (*OK, "-l")
    yield (*OK, "-l", "a", "-l", "b")


def _orders() -> Iterator[tuple[str, ...]]:
    """Two things wrong at once: which one is told."""
    wrong = (
        ("-O4",), ("-g",), ("--apply-controls=x",), ("-l", "missing"), ("-o", "no/such"),
        ("-l", "missing", "--preview=simt"), ("--preview=foo",), ("-O4", "-g"),
        ("--remark-format=yaml", "--remarks=all", "--remarks-output-file=no/such"),
    )  # fmt: skip
    for source in ("missing.bc", "garbage.bc", "v13.6.bc", "cut.bc", "empty.bc"):
        for options in wrong:
            yield (source, *options)
            yield (source, *GPU, *options)
    for first in wrong:
        for second in wrong:
            if first < second:
                yield (*OK, *first, *second)


def _remarks() -> Iterator[tuple[str, ...]]:
    yaml = ("--remark-format=yaml", "--remarks-output-file=made.yaml")
    for kind in ("", "-passed", "-missed", "-failed", "-analysis"):
        for category in ("none", "all", "memory", "tensorcore", "other"):
            yield (*OK, f"--remarks{kind}={category}")
            yield (*OK, f"--remarks{kind}={category}", *yaml)
    yield (*OK, *yaml)
    yield (*OK, "--remark-format=yaml")
    yield (*OK, "--remark-format=yaml", "--remarks=all")
    yield (*OK, "--remarks-output-file=made.yaml", "--remarks=all")
    yield (*OK, "--remarks=all", "--remarks-missed=none", *yaml)
    yield (*OK, "--remarks-missed=all", "--remarks=none", *yaml)
    yield (*OK, "--remarks=none", "--remarks-passed=memory", *yaml)
    yield (*OK, "--remarks-output-file")
    yield (*OK, "--remarks=all", "--remark-format=yaml", "--remarks-output-file=.")
    yield ("add.bc", *GPU, "--remarks=all", *yaml)

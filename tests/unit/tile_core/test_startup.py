"""What starting costs: nothing heavy is imported before it is needed."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch_mlir", "mlir", "llvmlite", "numpy", "pydantic", "ml_dtypes")
PROBE = """
import sys
from tile_core.cli.main import run
code = run(sys.argv[1:])
heavy = [name for name in {heavy!r} if name in sys.modules]
print("HEAVY", heavy, code)
"""


def probe(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(heavy=HEAVY), *arguments],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("--help",),
        ("compile", "--help"),
        ("plugins", "list"),
        ("pipeline", "list"),
        ("pipeline", "show", "O3"),
        ("pipeline", "diff", "O1", "O1"),
        ("compile", "no-such-file"),
        ("opt", "no-such-file"),
    ],
)
def test_nothing_heavy_is_imported(arguments: tuple[str, ...]) -> None:
    assert "HEAVY []" in probe(*arguments)


def test_the_version_names_everything_that_decides_the_output() -> None:
    text = probe("--version")
    assert text.startswith("tilec ")
    assert "tile-cudatile" in text
    (line,) = [line for line in text.splitlines() if line.startswith("fingerprint: ")]
    assert len(line.split()[1]) == 16
    assert line in probe("--version")


def test_importing_the_package_is_cheap() -> None:
    code = (
        "import sys, tile_core.plugins, tile_core.api; print([m for m in %r if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code % (HEAVY,)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_the_version_is_there_in_no_time() -> None:
    # Processor time, which a busy machine does not stretch as it does the clock.
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        probe("--version")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    assert min(spent) < 0.4, spent


DEFERRED = """
import sys, threading
from tile_core.mlir import ir
assert "numpy._core" not in sys.modules
found = []
def use():
    import numpy
    found.append(int(numpy.arange(4).sum()))
threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
import numpy.linalg
assert found == [6] * 8, found
with ir.Context():
    print(ir.DenseElementsAttr.get(numpy.array([1, 2])))
"""


def test_numpy_waits_until_it_is_used() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DEFERRED], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "dense<[1, 2]> : tensor<2xi64>\n", done.stderr


@pytest.mark.parametrize("first", ["linalg", "_core._multiarray_umath", "testing"])
def test_numpy_is_whole_whichever_part_comes_first(first: str) -> None:
    """C extensions import the inner parts."""
    code = (
        "import sys; from tile_core.mlir import ir; assert 'numpy' not in sys.modules; "
        f"import numpy.{first} as a; import numpy as n; n.testing.assert_equal(n.ones(2), 1); "
        f"assert sys.modules['numpy.{first}'] is a; print(n.linalg.norm([3, 4]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "5.0\n", done.stderr


def test_builders_of_the_bindings_that_use_numpy_work() -> None:
    code = (
        "from tile_core.mlir import ir\n"
        "with ir.Context(): print(ir.AttrBuilder.get('I32ElementsAttr')([1, 2], None))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "dense<[1, 2]> : tensor<2xi32>\n", done.stderr


COMPILED = """
import sys
from tile_core.cli.main import run
code = run(["compile", sys.argv[1], "--gpu-name", "sm_90", "-o", sys.argv[2], "--emit", "ptx"])
print("LOADED", [m for m in ("numpy._core", "email.parser", "pydantic") if m in sys.modules], code)
"""


@pytest.mark.parametrize("kernel", ["vector_add_f32", "softmax_f16"])
def test_a_compilation_loads_no_library_it_does_not_use(kernel: str, tmp_path: Path) -> None:
    source = Path(__file__).parents[3] / "examples" / "bytecode" / f"{kernel}.tileirbc"
    done = subprocess.run(
        [sys.executable, "-c", COMPILED, str(source), str(tmp_path / "out.ptx")],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == "LOADED [] 0\n", done.stderr


COLD = """
import dataclasses, importlib.util, sys
made, real = [], dataclasses.dataclass
def counted(cls=None, /, **options):
    if cls is None:
        return lambda cls: counted(cls, **options)
    made.append(cls)
    return real(cls, **options)
dataclasses.dataclass = counted
spec = importlib.util.spec_from_file_location("client", sys.argv[1])
client = importlib.util.module_from_spec(spec)
spec.loader.exec_module(client)
given = [sys.argv[2], "--gpu-name", "sm_90", "-o", sys.argv[3]]
code = client.here("tile_dropin.main:run", "tileiras", given)
ours = sum(name.startswith("tile_") for name in sys.modules)
unused = ("tomli", "importlib.resources", "zipfile", "pluggy", "tile_tileas.plugin")
print(code, ours, len(made), [name for name in unused if name in sys.modules])
"""


def test_a_cold_vector_add_makes_few_dataclasses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts, since times depend on the machine: 563 modules of ours. Of 329 dataclasses, when
    there were 509, `dataclasses` made all; now it makes what is left over for 28."""
    monkeypatch.setenv("TILEC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    root = Path(__file__).parents[3]
    source = root / "examples" / "bytecode" / "vector_add_f32.tileirbc"
    command = [
        sys.executable, "-S", "-E", "-c", COLD, str(root / "tile_core" / "server" / "client.py"),
        str(source), str(tmp_path / "made.cubin"),
    ]  # fmt: skip
    first, done = (
        subprocess.run(command, capture_output=True, text=True, timeout=120) for _ in range(2)
    )
    assert first.returncode == 0, first.stderr  # it fills the files of this user's own
    code, modules, made, unused = done.stdout.split(maxsplit=3)
    assert (code, unused.strip()) == ("0", "[]"), done.stderr
    assert int(modules) <= 565
    assert 0 < int(made) <= 35

"""Which package MLIR's bindings are taken from."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tile_core import doctor, mlir_providers
from tile_core.diagnostics import ConfigurationError
from tile_core.mlir_providers import REQUIRED, SUBSTITUTED, Lacks, Provider

REAL = Provider("torch_mlir", "torch-mlir")


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("TILEC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TILEC_MLIR", raising=False)
    mlir_providers.chosen.cache_clear()
    before = sys.modules.copy()
    yield
    for name in [n for n in sys.modules if n.startswith("numba_cuda_mlir") and n not in before]:
        del sys.modules[name]
    mlir_providers.chosen.cache_clear()


def package(folder: Path, without: str = "") -> None:
    """Bindings that have every name but one."""
    for module, names in REQUIRED.items():
        names = (*names, *SUBSTITUTED.get(module, ()))
        path = folder.joinpath(*module.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text("".join(f"{n} = None\n" for n in names if f"{module}.{n}" != without))


def test_the_bindings_in_use_lack_nothing_that_is_needed() -> None:
    assert mlir_providers.lacking(mlir_providers.chosen()).needed == ()


def test_a_real_mlir_package_comes_first(tmp_path: Path) -> None:
    package(tmp_path / "mlir")
    assert mlir_providers.chosen().package == "mlir"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ir.WalkOrder", "lacks ir.WalkOrder; not used"),
        ("ir.Speculatability", "is without ir.Speculatability: code is optimized less; not used"),
    ],
)
def test_one_that_lacks_something_is_passed_over(name: str, said: str, tmp_path: Path) -> None:
    package(tmp_path / "mlir", without=name)
    assert mlir_providers.chosen() == REAL
    findings = {f.detail.split(" ")[0]: f for f in doctor.check_core() if f.what == "mlir"}
    assert said in findings["mlir"].detail
    assert findings["torch-mlir"].ok


def test_a_stub_is_no_provider(tmp_path: Path) -> None:
    (tmp_path / "mlir").mkdir()
    (tmp_path / "mlir" / "__init__.py").touch()
    assert mlir_providers.installed() == [REAL]


def test_a_package_around_the_bindings_is_not_imported(tmp_path: Path) -> None:
    package(tmp_path / "numba_cuda_mlir" / "_mlir")
    (tmp_path / "numba_cuda_mlir" / "__init__.py").write_text("raise SystemExit('imported')")
    (_, nested) = mlir_providers.installed()
    assert mlir_providers.lacking(nested) == Lacks()
    with nested.importable():
        __import__("numba_cuda_mlir._mlir.ir")
    (tmp_path / "numba_cuda_mlir" / "__init__.py").write_text("answer = 42")
    import numba_cuda_mlir  # type: ignore[import-not-found]

    assert numba_cuda_mlir.answer == 42  # only now is its own code run
    with pytest.raises(AttributeError):
        _ = numba_cuda_mlir.another


def test_none_that_does_is_an_error_that_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path / "mlir", without="ir.WalkOrder")
    package(tmp_path / "numba_cuda_mlir" / "_mlir", without="passmanager.PassManager")
    monkeypatch.setattr(
        mlir_providers, "PROVIDERS", [p for p in mlir_providers.PROVIDERS if p != REAL]
    )
    with pytest.raises(ConfigurationError) as caught:
        mlir_providers.chosen()
    assert "mlir lacks ir.WalkOrder" in caught.value.notes
    monkeypatch.setattr(mlir_providers, "PROVIDERS", [])
    with pytest.raises(ConfigurationError, match="are not installed"):
        mlir_providers.chosen()


def test_a_provider_can_be_forced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path / "mlir")
    monkeypatch.setenv("TILEC_MLIR", "torch-mlir")
    assert mlir_providers.chosen() == REAL
    mlir_providers.chosen.cache_clear()
    monkeypatch.setenv("TILEC_MLIR", "other")
    with pytest.raises(ConfigurationError, match="TILEC_MLIR=other"):
        mlir_providers.chosen()


def test_choosing_imports_no_bindings() -> None:
    code = (
        "import sys; from tile_core.mlir_providers import chosen; chosen(); "
        "print([m for m in sys.modules if 'mlir' in m and 'tile_core' not in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n"

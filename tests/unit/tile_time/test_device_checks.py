"""`tilec doctor --gpu` on the simulated driver, and on drivers that refuse, fail and lie."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tile_core import defaults
from tile_core.api import plan_for
from tile_core.cli.main import run

#: A driver of its own, made of the simulated one, that does not say that it is simulated.
_DRIVER = """
from tile_sim.bindings import *
from tile_sim import bindings as _real
SIMULATED = False
{more}
"""
_NO_DEVICE = """
def cuInit(flags):
    return (100,)
def cuGetErrorName(status):
    return 0, b"CUDA_ERROR_NO_DEVICE"
def cuGetErrorString(status):
    return 0, b"no CUDA-capable device is detected"
"""
#: A driver that does not know of host code in cubins.
_NO_HOST = """
def cuLibraryLoadData(image, *rest):
    if b".nv.host" in bytes(image):
        return CUresult.CUDA_ERROR_INVALID_IMAGE, None
    return _real.cuLibraryLoadData(image, *rest)
"""
_LAUNCHES_NOTHING = """
def cuLaunchKernel(*args):
    return (0,)
"""
_DIES = """
import os
def cuLaunchKernel(*args):
    os._exit(7)
"""


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a module `a_driver`, for this process's children."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("TILEC_DEFAULTS", str(tmp_path / "config" / "defaults.toml"))
    return tmp_path / "a_driver.py"


def asked(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = run(["doctor", "--gpu", "--json", "--driver", "a_driver"])
    made = json.loads(capsys.readouterr().out)
    made["findings"] = {f["what"]: (f["ok"], f["detail"]) for f in made["findings"]}
    return code, made


def test_a_simulator_is_asked_and_not_believed(
    driver: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driver.write_text("from tile_sim.bindings import *\nSIMULATED = True\n")
    code, made = asked(capsys)
    found = made["findings"]
    assert code == 0
    assert found["kernel with a mark"] == found["maps of the host"]
    assert found["maps of the host"] == (True, "launched, all results right")
    assert (made["settled"], made["kept"]) == (False, None)
    where = defaults.path()
    assert where is not None
    assert not where.exists()


def test_what_works_instead_becomes_the_default(
    driver: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driver.write_text(_DRIVER.format(more=_NO_HOST))
    before = plan_for("sm_90").options["tma-descriptors"]
    code, made = asked(capsys)
    assert (code, before) == (0, "host")
    assert made["findings"]["kernel with a mark"][0]
    ok, detail = made["findings"]["maps of the host"]
    assert not ok
    assert "INVALID_IMAGE" in detail
    now = plan_for("sm_90").options["tma-descriptors"]
    assert made["instead"] == {"tma-descriptors": {"host": now}}
    assert now in ("device", "off")
    # What a command line asks for stands, and so does what a level does not have.
    asks = {"tma-descriptors": "host"}
    assert plan_for("sm_90", options=asks).options["tma-descriptors"] == "host"
    assert plan_for("sm_90", opt_level=0).options["tma-descriptors"] == "off"
    assert run(["doctor", "--forget"]) == 0
    assert plan_for("sm_90").options["tma-descriptors"] == "host"


@pytest.mark.parametrize(
    ("more", "said"),
    [(_LAUNCHES_NOTHING, "results are wrong"), (_DIES, "ended with 7")],
    ids=["nothing runs", "the process dies"],
)
def test_a_gpu_on_which_no_kernel_runs_is_a_failure(
    more: str, said: str, driver: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driver.write_text(_DRIVER.format(more=more))
    code, made = asked(capsys)
    ok, detail = made["findings"]["kernel with a mark"]
    assert (code, ok) == (2, False)
    assert said in detail
    assert made["kept"] is None


def test_without_a_gpu_it_says_so(driver: Path, capsys: pytest.CaptureFixture[str]) -> None:
    driver.write_text(_DRIVER.format(more=_NO_DEVICE))
    assert run(["doctor", "--gpu", "--driver", "a_driver"]) == 2
    out = capsys.readouterr().out
    assert "CUDA_ERROR_NO_DEVICE no CUDA-capable device is detected" in out
    assert "tilec run" in out
    assert run(["doctor", "--gpu", "--driver", "no_such_module"]) == 2
    assert "cannot import 'no_such_module'" in capsys.readouterr().out

"""The image of modules: the same modules with it and without, and never what has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROBE = """
import sys
from tile_core.module_image import keep_modules
image = keep_modules()
import pack.part
found = [type(sys.modules[name].__loader__).__name__ for name in ("pack", "pack.part")]
print(pack.part.VALUE, pack.part.__file__.rpartition("/")[2], pack.__path__ != [], *found)
image.save()
"""
KEPT, READ = "_Loader _Loader", "SourceFileLoader SourceFileLoader"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "code" / "pack"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "part.py").write_text("VALUE = 1\n")
    return folder


def run(package: Path, probe: str = PROBE) -> str:
    environment = {
        **os.environ, "TILEC_CACHE_DIR": str(package.parents[1] / "cache"),
        "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", probe], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def image_of(package: Path) -> Path:
    (path,) = (package.parents[1] / "cache" / "snapshots").glob("modules-*.marshal")
    return path


def warm(package: Path) -> None:
    """The first run compiles, and so changes the folder; the second one's image is whole."""
    run(package)
    run(package)
    assert run(package) == f"1 part.py True {KEPT}"


def test_modules_come_from_the_image(package: Path) -> None:
    assert run(package) == f"1 part.py True {READ}"
    warm(package)
    assert image_of(package).stat().st_mode & 0o777 == 0o600


def test_a_source_that_has_changed_is_read(package: Path) -> None:
    warm(package)
    (package / "part.py").write_text("VALUE = 22\n")
    assert run(package).startswith("22 part.py")
    run(package)
    assert run(package) == f"22 part.py True {KEPT}"


def test_a_module_in_another_form_is_found(package: Path) -> None:
    warm(package)
    (package / "part").mkdir()
    (package / "part" / "__init__.py").write_text("VALUE = 3\n")
    assert run(package).startswith("3 __init__.py")


@pytest.mark.parametrize("harm", ["cut", "garbage", "open to others", "empty"])
def test_an_image_that_cannot_be_trusted_is_made_anew(harm: str, package: Path) -> None:
    warm(package)
    path = image_of(package)
    data = path.read_bytes()
    if harm == "open to others":
        path.chmod(0o666)
    else:
        path.write_bytes({"cut": data[:40], "garbage": b"\x80" * 99, "empty": b""}[harm])
    assert run(package) == f"1 part.py True {READ}"
    assert run(package) == f"1 part.py True {KEPT}"


#: Loads `pack.part` past the image, as a finder in front of it does for some module.
PAST_IT = """
import importlib.machinery, sys
class Before:
    @staticmethod
    def find_spec(name, path, target=None):
        if name == "pack.part":
            return importlib.machinery.PathFinder.find_spec(name, path, target)
sys.meta_path.insert(0, Before)
import pack.part
"""


@pytest.mark.parametrize("probe", [PROBE, PROBE.replace("import pack.part\n", PAST_IT)])
def test_an_image_that_is_whole_is_not_written_again(probe: str, package: Path) -> None:
    warm(package)
    before = image_of(package).stat()
    assert run(package, probe).startswith("1 part.py True _Loader")
    after = image_of(package).stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


#: A process imports `pack.part` before its search path is complete, as `site` does.
EARLY = """
import sys
home = sys.path.pop(1 if sys.path[0] == "" else 0)
assert home.endswith("code"), home
from tile_core.module_image import keep_modules
image = keep_modules(complete=False)
import graphlib
sys.path.insert(0, home)
image.complete()
import pack.part
print(*(type(sys.modules[name].__loader__).__name__ for name in ("graphlib", "pack.part")))
image.save()
"""


def test_the_standard_library_is_there_before_the_search_path_is_complete(package: Path) -> None:
    run(package, EARLY)
    run(package, EARLY)
    assert run(package, EARLY) == KEPT
    (package.parent / "more.py").touch()  # another folder of modules, for all that anybody knows
    assert run(package, EARLY) == "_Loader SourceFileLoader"


#: A fork imports what its parent does not.
FORK = PROBE.replace(
    "image.save()",
    """
import os
child = os.fork()
if child == 0:
    import pack.other
    print(type(pack.other.__loader__).__name__, flush=True)
    image.report()
    os._exit(0)
os.waitpid(child, 0)
image.save()
""",
)


def test_what_a_fork_imports_comes_into_the_image(package: Path) -> None:
    (package / "other.py").write_text("VALUE = 2\n")
    for _ in range(2):
        run(package, FORK)
    assert sorted(run(package, FORK).split()) == sorted(f"1 part.py True {KEPT} _Loader".split())
    assert [path.name for path in image_of(package).parent.iterdir()] == [image_of(package).name]


#: Modules that others import for what is not used: eight threads use one at once.
ON_USE = """
import sys, threading
from tile_core.module_image import keep_modules
image = keep_modules()
import pack.part, inspect, lzma
import inspect as again
kinds = [type(sys.modules[name]).__name__ for name in ("inspect", "lzma")]
found = []
def use():
    found.append(inspect.isclass(int))
threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
from lzma import compress
kinds += [type(sys.modules[name]).__name__ for name in ("inspect", "lzma")]
print(*kinds, found == [True] * 8, again is inspect, len(compress(b"x" * 999)) < 99)
image.save()
"""


def test_some_modules_run_when_they_are_first_used(package: Path) -> None:
    run(package, ON_USE)  # what this interpreter has not compiled before comes a run later
    run(package, ON_USE)
    assert run(package, ON_USE) == "_NotLoaded _NotLoaded module module True True True"

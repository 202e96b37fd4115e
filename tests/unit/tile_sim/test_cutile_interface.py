"""What the simulator puts in the place of parts of cuTile takes the calls that cuTile makes.

The names and signatures of the supported releases are written down here; of the installed one they
are read as well, so that a new release that calls in another way fails here, by name, and not in
some user's program.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

SPEC = importlib.util.find_spec("cuda.tile") if importlib.util.find_spec("cuda") else None
needs_cutile = pytest.mark.skipif(SPEC is None, reason="cuda-tile is not installed")

#: Calls as `_cext.pyi` of each supported release declares them.
CALLS: dict[str, dict[str, str]] = {
    "1.6": {
        "launch": "(stream, grid, kernel, kernel_args, /, *, programmatic_dependent_launch=False)",
        "_benchmark": "(stream, grid, kernel, pyargs_tuples, /)",
        "_export_ipc_benchmark_payload": "(stream, grid, kernel, pyargs_tuples, /)",
        "get_parameter_constraints_from_pyargs": "(dispatcher, pyargs, calling_convention, /)",
    },
    "1.7": {
        "launch": "(stream, grid, kernel, kernel_args, /, *, programmatic_dependent_launch=False)",
        "_benchmark": "(stream, grid, kernel, pyargs_tuples, flush_l2=True, /)",
        "_export_ipc_benchmark_payload": "(stream, grid, kernel, pyargs_tuples, flush_l2=True, /)",
        "get_parameter_constraints_from_pyargs": "(dispatcher, pyargs, calling_convention, /)",
    },
}
#: What stands for them, told by a process of its own, since the simulator is put in there for good.
OURS = """
import inspect, json
import tile_sim.cutile as sim

def text(function):
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(bare))

session = sim._SESSION
print(json.dumps({
    "launch": text(session.launch),
    "_benchmark": text(session.benchmark),
    "_export_ipc_benchmark_payload": text(session.export_benchmark),
    "get_parameter_constraints_from_pyargs": text(session.constraints),
    "run": text(session.compiler.run),
    "attributes": [name for name in dir(session.compiler)],
}))
"""


@pytest.fixture(scope="module")
def ours() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", OURS], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def calls(signature: inspect.Signature) -> Iterator[tuple[list[str], dict[str, str]]]:
    """The shortest call that a signature allows, and the longest."""
    for every in (False, True):
        given: list[str] = []
        named: dict[str, str] = {}
        for parameter in signature.parameters.values():
            if parameter.default is not parameter.empty and not every:
                continue
            if parameter.kind is parameter.KEYWORD_ONLY:
                named[parameter.name] = parameter.name
            else:
                given.append(parameter.name)
        yield given, named


def takes(ours: str, theirs: inspect.Signature) -> None:
    for given, named in calls(theirs):
        parsed(ours).bind(*given, **named)


def parsed(text: str) -> inspect.Signature:
    scope: dict[str, Any] = {}
    exec(f"def call{text}: ...", scope)
    return inspect.signature(scope["call"])


def installed() -> Path:
    assert SPEC is not None
    assert SPEC.submodule_search_locations is not None
    return Path(SPEC.submodule_search_locations[0])


@needs_cutile
@pytest.mark.parametrize(
    ("release", "name"), [(release, name) for release in CALLS for name in CALLS[release]]
)
def test_calls_of_the_supported_releases(ours: dict[str, Any], release: str, name: str) -> None:
    takes(ours[name], parsed(CALLS[release][name]))


@needs_cutile
@pytest.mark.parametrize("name", CALLS["1.7"])
def test_calls_of_the_installed_release(ours: dict[str, Any], name: str) -> None:
    tree = ast.parse((installed() / "_cext.pyi").read_text())
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    assert len(found) == 1, f"cuTile {version('cuda-tile')} has no {name}"
    arguments = found[0].args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        argument.annotation = None
    takes(ours[name], parsed(f"({ast.unparse(arguments)})"))


@needs_cutile
def test_the_stand_in_for_the_compiler_has_what_cutile_asks_of_one(ours: dict[str, Any]) -> None:
    tree = ast.parse((installed() / "_compile.py").read_text())
    (declared,) = (
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == "_CompilerBinary"
    )
    names = {"binary", "compiler"}  # what it calls the result of `_find_compiler_bin`
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in names
    }
    fields = {node.target.id for node in declared.body if isinstance(node, ast.AnnAssign)}  # type: ignore[union-attr]
    missing = [name for name in sorted(used | fields) if name not in ours["attributes"]]
    assert not missing, f"cuTile {version('cuda-tile')} asks a compiler for {missing}"
    (run,) = (node for node in declared.body if isinstance(node, ast.FunctionDef))
    arguments = run.args
    for argument in arguments.args:
        argument.annotation = None
    theirs = parsed(f"({ast.unparse(arguments)})")
    takes(ours["run"], theirs.replace(parameters=list(theirs.parameters.values())[1:]))


@needs_cutile
def test_the_names_that_are_replaced_are_there() -> None:
    text = (installed() / "_compile.py").read_text()
    assert "def _find_compiler_bin()" in text
    assert "cache_dir" in (installed() / "_context.py").read_text()
    assert (installed() / "_load_libcuda.py").is_file()

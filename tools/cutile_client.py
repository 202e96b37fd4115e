"""cuTile Python as it comes, with our `tileiras` in the place that it looks into.

    python tools/cutile_client.py --python ENVIRONMENT/bin/python      # `make cutile`

ENVIRONMENT has cuda-tile, with or without NVIDIA's wheels, and need not have this project, whose
`tilec activate` is run for it and undone. In it, cuTile exports the examples as cubins, for several
GPUs and levels, as it does for anybody: it finds the tool, probes its bytecode versions, asks for
remarks, keeps cubins by what `--version` prints, and makes Python errors of what the tool says.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tile_dropin import activation

ROOT = Path(__file__).resolve().parents[1]
GPUS = ("sm_80", "sm_90", "sm_100", "sm_120")

#: Runs in the environment: cuTile only. Prints what it saw as JSON.
_CLIENT = """
import io, json, os, sys, types
from pathlib import Path
root, gpus = Path(sys.argv[1]), sys.argv[2].split(",")
import cuda.tile as ct
from cuda.tile import _compile
from cuda.tile.compilation import export_kernel
calls = []
run = _compile._CompilerBinary.run
def counted(self, args, flags, *rest, **more):
    calls.append([self.path, *map(str, args), *flags])
    return run(self, args, flags, *rest, **more)
_compile._CompilerBinary.run = counted
os.chdir(root)
sys.path.insert(0, "examples")
def cubin(kernel, signature, gpu):
    stream = io.BytesIO()
    export_kernel(kernel, [signature], stream, gpu_code=gpu, output_format="cubin")
    return stream.getvalue()
seen = {"tool": _compile._find_compiler_bin().path, "version": ct.__version__, "cubins": {}}
config = ct._cext.default_tile_context.config
for turn in ("first", "second"):
    calls.clear()
    for path in sorted(Path("examples").glob("*.py")):
        module = types.ModuleType(path.stem)
        module.__file__ = str(path)
        source = path.read_text()
        if "VARIANTS" not in source:
            continue
        exec(compile(source, str(path), "exec"), module.__dict__)
        for variant in getattr(module, "VARIANTS", ()):
            for gpu in gpus:
                made = cubin(module.KERNEL, variant, gpu)
                assert made.startswith(b"\\x7fELF") and variant.symbol.encode() in made, variant
                seen["cubins"][f"{variant.symbol} {gpu}"] = len(made)
    # Probes of bytecode versions ask for no line numbers.
    seen[turn] = len([c for c in calls if "--lineinfo" in c])
seen["bytecode"] = str(_compile._get_max_supported_bytecode_version(config.temp_dir))
print(json.dumps(seen))
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Activate, run, deactivate; 0 when all is as it has to be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--python", nargs="+", required=True, help="interpreters of environments")
    parser.add_argument("--gpu-name", nargs="+", default=list(GPUS))
    given = parser.parse_args(argv)
    wrong = [text for python in given.python for text in _checked(python, given.gpu_name)]
    for text in wrong:
        print(f"wrong: {text}", file=sys.stderr)
    return 1 if wrong else 0


def _checked(python: str, gpus: Sequence[str]) -> list[str]:
    # Absolute: it is run in another folder; and not resolved, as that would leave the environment.
    environment = activation.Environment.of(os.path.abspath(python))
    activation.activate(environment)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return [f"{python}: {text}" for text in _run(environment, gpus, folder)]
    finally:
        activation.deactivate(environment)


def _run(environment: activation.Environment, gpus: Sequence[str], folder: str) -> list[str]:
    variables = {
        **os.environ, "CUDA_TILE_CACHE_DIR": f"{folder}/cutile",
        "TILEC_SERVER_DIR": f"{folder}/run", "TILEC_CACHE_DIR": f"{folder}/cache",
    }  # fmt: skip
    for name in ("PYTHONPATH", "TILEC_SERVER"):
        variables.pop(name, None)
    command = [environment.python, "-c", _CLIENT, str(ROOT), ",".join(gpus)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, cwd=folder)
    stop = [sys.executable, "-m", "tile_core", "serve", "--stop"]
    subprocess.run(stop, env=variables, capture_output=True)
    if done.returncode:
        return [done.stderr.strip()[-2000:]]
    seen = json.loads(done.stdout)
    print(
        f"cuTile {seen['version']} calls {seen['tool']} with bytecode {seen['bytecode']}: "
        f"{len(seen['cubins'])} cubins, {seen['first']} compilations, {seen['second']} again"
    )
    wrong = []
    if not activation.is_ours(Path(seen["tool"])):
        wrong.append(f"cuTile calls {seen['tool']}")
    if seen["first"] != len(seen["cubins"]) or seen["second"]:
        wrong.append(f"{seen['first']} compilations, then {seen['second']} with cuTile's cache")
    return wrong


if __name__ == "__main__":
    sys.exit(main())

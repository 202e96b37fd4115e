"""cuTile programs in the simulator. Each runs in a process of its own: the patch is for good."""

from __future__ import annotations

import ctypes as c
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tile_sim
from click.testing import CliRunner
from tile_sim.cli import run
from tile_sim.script import run_script

from tile_core.cli.main import Application
from tile_core.diagnostics import UsageError

HAVE_CUTILE = (
    importlib.util.find_spec("cuda") is not None
    and importlib.util.find_spec("cuda.tile") is not None
)
needs_cutile = pytest.mark.skipif(not HAVE_CUTILE, reason="cuda-tile is not installed")

EXAMPLES = Path(__file__).parents[3] / "examples" / "bytecode"
HEAD = """
import numpy as np
import cuda.tile as ct
from cuda.tile import launch as ct_launch
import tile_sim.cutile as sim

@ct.kernel
def scale(x, y, n: ct.Constant[int], s):
    i = ct.bid(0)
    t = ct.load(x, (i,), (n,))
    ct.store(y, (i,), (t * s).astype(y.dtype))
"""
SCALE = """
x, y = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
ct.launch(None, (8,), scale, (x, y, 128, 2.5))
assert np.array_equal(y, x * 2.5)
"""


TORCH = """
import torch
import cuda.tile as ct

def past(x, index, shape):
    at = ct.arange(shape[0], dtype=ct.int32) + index[0] * shape[0]
    return ct.gather(x, at, check_bounds=False)

@ct.kernel
def double(x, y):
    i = ct.bid(0)
    t = ct.load(x, (i,), (128,))
    ct.store(y, (i,), t * 2)

x = torch.arange(1024, dtype=torch.float32, device="cuda")
y = torch.zeros_like(x)
ct.launch(torch.cuda.current_stream(), (8,), double, (x, y))
print(torch.equal(y, x * 2))
"""


def _python(tmp_path: Path, text: str) -> str:
    script = tmp_path / "program.py"
    script.write_text(HEAD + text)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_cutile
def test_launch_updates_arrays_in_place(tmp_path: Path) -> None:
    _python(tmp_path, SCALE)


# A GPU array as other libraries show theirs, for the names that cuTile would give.
PEER = """
from cuda.tile.compilation import CallingConvention, KernelSignature

class Shown:
    def __init__(self, a):
        self.a = a
        strides = None if a.flags.c_contiguous else a.strides
        self.__cuda_array_interface__ = dict(shape=a.shape, typestr=a.dtype.str, version=3,
            data=(a.ctypes.data, False), strides=strides)

def compare(x, y):
    ct.launch(None, (1,), scale, (x, y, 128, 2.5))
    wanted = KernelSignature.from_kernel_args(
        scale, (Shown(x), Shown(y), 128, 2.5), CallingConvention.cutile_python_v1())
    last = sim.launches[-1].kernel.symbol
    assert last == wanted.symbol, (last, wanted.symbol)
    print(last)

def aligned(n, dtype):
    raw = np.zeros(n * 8 + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + n * np.dtype(dtype).itemsize].view(dtype)

compare(aligned(1024, np.float32), aligned(1000, np.float32))
compare(aligned(1024, np.float16)[1:], aligned(1024, np.float16))
compare(aligned(1024, np.int32)[::2], aligned(1024, np.int32)[::16])
compare(aligned(1024, np.float64)[::3], aligned(64, np.int8))
"""


@needs_cutile
def test_symbols_are_those_of_gpu_arrays(tmp_path: Path) -> None:
    names = _python(tmp_path, PEER).split()
    assert names[0] == "scale_Kt1_A1f32_1i16t1_p16_A1f32_1t1_p16_I128_Sf32"
    assert len(set(names)) == 4


@needs_cutile
def test_lists_matrices_and_narrow_types(tmp_path: Path) -> None:
    _python(
        tmp_path,
        """
import ml_dtypes

@ct.kernel
def pick(xs, y, n: ct.Constant[int]):
    ct.store(y, (ct.bid(0), 0), ct.load(xs[1], (ct.bid(0), 0), (1, n)))

a = np.arange(512, dtype=np.float32).astype(ml_dtypes.bfloat16).reshape(4, 128)
b, y = (a + a).astype(a.dtype), np.zeros_like(a)
ct_launch(0, (4,), pick, ([a, b], y, 128))
assert np.array_equal(y, b)
""",
    )


@needs_cutile
def test_tensors_with_the_attributes_of_torch(tmp_path: Path) -> None:
    _python(
        tmp_path,
        """
class Tensor:
    def __init__(self, a):
        self.a, self.shape, self.device, self.dtype = a, a.shape, "cpu", f"torch.{a.dtype.name}"
    def data_ptr(self): return self.a.ctypes.data
    def element_size(self): return self.a.itemsize
    def stride(self): return tuple(s // self.a.itemsize for s in self.a.strides)

x, y = np.arange(1000, dtype=np.float16), np.zeros(1000, np.float16)
ct.launch(None, (8,), scale, (Tensor(x), Tensor(y), 128, 2.0))
assert np.array_equal(y, x * 2)
""",
    )


@needs_cutile
def test_errors_of_a_script_are_its_own(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("def broken():\n    raise ValueError('mine')\nbroken()\n")
    done = subprocess.run(
        [sys.executable, "-m", "tile_core", "run", "--cutile", str(script)],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 5
    assert "program.py' raised ValueError: mine" in done.stderr
    assert done.stderr.startswith(f'loc("{script}":2:')
    assert "  2 |     raise ValueError('mine')\n" in done.stderr
    assert f"called from {script}:3:1" in done.stderr
    assert "internal error" not in done.stderr
    assert len(done.stderr.splitlines()) <= 10


@needs_cutile
def test_what_the_front_end_refuses_leads_with_the_kernels_line(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import cuda.tile as ct\nimport numpy as np\n"
        "@ct.kernel\ndef k(a):\n    ct.store(a, (0,), ct.zeros((3,), dtype=ct.float32))\n"
        "ct.launch(None, (1,), k, (np.zeros(8, np.float32),))\n"
    )
    command = [sys.executable, "-m", "tile_core", "run", "--cutile", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    lines = done.stderr.splitlines()
    assert done.returncode == 5
    assert lines[0].startswith(f'loc("{script}":5:')
    assert "not a power of two" in lines[0]
    assert lines[1] == "  5 |     ct.store(a, (0,), ct.zeros((3,), dtype=ct.float32))"
    assert lines[2].index("^") == lines[1].index("ct.zeros")
    assert f"launched from {script}:6:1" in lines[3]
    assert len(lines) <= 10
    command.insert(4, "--traceback")
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert "Traceback (most recent call last)" in done.stderr


@needs_cutile
@pytest.mark.parametrize(
    ("kernel", "line", "said"),
    [
        (
            "def k(a):\n    x = ct.load(a, 0, 8).astype(ct.float8_e4m3fn)\n"
            "    ct.store(a, 0, x.astype(ct.float32))\n",
            "6:19", "not supported",
        ),
        ("def k(a):\n    pass\n", "3:2", "num_ctas should be power of 2, got 3"),
    ],
)  # fmt: skip
def test_what_cutile_raises_in_its_own_files_leads_with_the_programs(
    kernel: str, line: str, said: str, tmp_path: Path
) -> None:
    """Also where the program lies in the folder that it is run from."""
    head = "import cuda.tile as ct\nimport numpy as np\n@ct.kernel"
    head += "(num_ctas=3)\n" if "pass" in kernel else "\n"
    launch = "ct.launch(None, (1,), k, (np.zeros(8, np.float32),))\n"
    (tmp_path / "program.py").write_text(head + kernel + launch)
    command = [sys.executable, "-m", "tile_core", "run", "program.py", "--gpu-name", "sm_80"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stderr.startswith(f'loc("program.py":{line}): error: ')
    assert said in done.stderr.splitlines()[0]
    assert "cuda/tile" not in done.stderr
    assert "<frozen" not in done.stderr
    assert len(done.stderr.splitlines()) <= 10


@needs_cutile
def test_an_access_out_of_bounds_names_array_and_tile_block(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import cuda.tile as ct\nimport numpy as np\n"
        "@ct.kernel\ndef k(first, b):\n    i = ct.bid(0)\n"
        "    at = ct.arange(128, dtype=ct.int32) + i * 128\n"
        "    t = ct.gather(first, at, check_bounds=False)\n"
        "    ct.store(b, (i,), t)\n"
        "ct.launch(None, (4,), k, (np.zeros(300, np.float32), np.zeros(512, np.float32)))\n"
    )
    command = [sys.executable, "-m", "tile_core", "run", "--cutile", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    first = done.stderr.splitlines()[0]
    assert not (tmp_path / "dump").exists()
    # Where the load is, and not the store behind it that LLVM moves it to.
    assert first.startswith(f'loc("{script}":7:8)')
    assert "4 bytes at offset 1200 of 'first' (shape [300]), which has 1200 bytes" in first
    assert "in tile block (2, 0, 0)" in first
    assert "0x" not in first
    assert len(done.stderr.splitlines()) <= 10
    # A name that ends in .py needs no --cutile, and kernels are watched as `compile` does.
    command = [*command[:4], str(script), "--dump-dir", str(tmp_path / "dump")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert "tile block (2, 0, 0)" in done.stderr
    assert len(list((tmp_path / "dump").glob("*/output.ptx"))) >= 1


@pytest.mark.torch
@needs_cutile
def test_programs_for_torch_and_a_gpu_run_as_they_are(tmp_path: Path) -> None:
    """`import tile_sim` nowhere; a finding names the line of the program."""
    script = tmp_path / "program.py"
    script.write_text(TORCH)
    command = [sys.executable, "-m", "tile_core", "run", "--cutile", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n"
    script.write_text(TORCH.replace("(8,)", "(9,)").replace("ct.load", "past"))
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert "out-of-bounds" in done.stderr
    assert "program.py:" in done.stderr


TUNED = """
from cuda.tile.tune import exhaustive_search

x, y = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
found = exhaustive_search(
    [128, 256, 512],
    0,
    lambda n: (1024 // n,),
    scale,
    lambda n: (x, y, n, 2.5),
    hints_fn=lambda n: {"occupancy": 1 + (n == 256)},
    single_run_timeout_sec=TIMEOUT,
)
assert not found.failures, found.failures
assert len(found.successes) == 3
assert np.array_equal(y, x * 2.5)
print("best", found.best.config)
"""


@needs_cutile
@pytest.mark.parametrize("timeout", ["None", "30.0"])
def test_programs_tune_themselves(tmp_path: Path, timeout: str) -> None:
    """The time of a launch is what the simulator counts, so that the choice is always the same."""
    said = _python(tmp_path, TUNED.replace("TIMEOUT", timeout))
    assert "best 512" in said


@needs_cutile
def test_each_specialisation_is_compiled_once(tmp_path: Path) -> None:
    _python(
        tmp_path,
        SCALE
        + SCALE
        + """
assert len(sim.launches) == 2
assert sim.launches[0].kernel is sim.launches[1].kernel
assert sim.launches[0].report.thread_instructions > 1000
""",
    )


@needs_cutile
def test_failures_reach_the_program(tmp_path: Path) -> None:
    _python(
        tmp_path,
        """
from tile_sim import SimError

@ct.kernel
def past(x, n: ct.Constant[int]):
    at = ct.arange(n, dtype=ct.int32)
    ct.store(ct.Array.slice(x, 0, 0, 1 << 20), (1000,), ct.full((n,), 1, x.dtype))

x = np.zeros(128, np.float32)
try:
    ct.launch(None, (1,), past, (x, 128))
except SimError as error:
    assert error.kind == "out-of-bounds", error
else:
    raise AssertionError("no error")
try:
    ct.launch(None, (1,), scale, (x, x.astype(complex), 128, 1.0))
except TypeError as error:
    assert "complex128" in str(error)
else:
    raise AssertionError("no error")
""",
    )


@needs_cutile
def test_run_and_check_a_script(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        HEAD.replace("import tile_sim.cutile as sim\n", "import sys\n")
        + SCALE
        + "assert sys.argv[1:] == ['one']\n"
    )
    for verb, said in (("run", "coalescing efficiency"), ("check", "no findings")):
        options = ["--stats"] if verb == "run" else []
        done = subprocess.run(
            [sys.executable, "-m", "tile_core", verb, "--cutile", str(script), *options,
             "--gpu-name", "sm_90", "--", "one"],
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert said in done.stdout


# --- without cuTile -----------------------------------------------------------------------------


def test_needs_cutile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "program.py"
    script.write_text("")
    monkeypatch.setitem(sys.modules, "cuda.tile._cext", None)  # as if it were not installed
    for module in ("tile_sim.cutile", "cuda.tile._load_libcuda"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.delattr(tile_sim, "cutile", raising=False)  # some test may have imported it
    with pytest.raises(UsageError, match="pip install cuda-tile"):
        run_script({"source": str(script)}, [])


@pytest.mark.parametrize(("option", "message"), [
    (["--grid", "4"], "--grid is for one kernel"),
    (["--expect", "0=x.npy"], "--expect compares one kernel"),
])  # fmt: skip
def test_options_of_one_kernel(tmp_path: Path, option: list[str], message: str) -> None:
    arguments = ["--cutile", str(tmp_path / "x.py"), *option]
    result = CliRunner().invoke(run, arguments, obj=Application(), standalone_mode=False)
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)


def _driver():
    driver_module = _load("driver")
    calls = []
    driver = driver_module.Driver((9, 0), lambda *args: calls.append(args))
    pointer = c.cast(driver.address, c.POINTER(c.c_void_p))[0]
    assert pointer is not None
    lookup = c.CFUNCTYPE(
        c.c_int, c.c_char_p, c.POINTER(c.c_void_p), c.c_int, c.c_uint64, c.c_void_p
    )(pointer)

    def call(name: str, *args):
        entry = c.c_void_p()
        assert lookup(name.encode(), c.byref(entry), 13000, 0, None) == 0
        assert entry.value is not None
        return c.CFUNCTYPE(c.c_int, *[c.c_void_p] * len(args))(entry.value)(*args)

    return driver, call, calls


def _load(name: str):
    """A module of `tile_sim.cutile`, whose package needs cuTile, by its file."""
    import tile_sim

    path = Path(tile_sim.__file__).parent / "cutile" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"cutile_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("error")  # what a callback cannot pass on is a warning
def test_kernels_are_unloaded_when_names_of_modules_are_gone() -> None:
    """As Python does at the end of a process, before it collects what is left."""
    module = _load("driver")
    driver = module.Driver((9, 0), print)
    unload = driver._entry("cuLibraryUnload")
    assert unload(1) == 0
    for name in [name for name in vars(module) if name != "__builtins__"]:
        setattr(module, name, None)
    assert unload(1) == 0
    assert driver.failure is None


def test_driver_memory_and_kernels() -> None:
    driver, call, calls = _driver()
    at, source = c.c_uint64(), np.arange(8, dtype=np.int32)
    assert call("cuMemAlloc", c.addressof(at), 32) == 0
    assert [b.size for b in driver.allocations] == [32]
    assert call("cuMemcpyHtoDAsync", at.value, source.ctypes.data, 32, 0) == 0
    assert list((c.c_int32 * 8).from_address(at.value)) == list(range(8))
    assert call("cuMemFree", at.value) == 0
    assert driver.allocations == []
    library, kernel, image = c.c_uint64(), c.c_uint64(), c.create_string_buffer(b"image")
    name = c.create_string_buffer(b"name")
    assert call("cuLibraryLoadData", c.addressof(library), c.addressof(image)) == 0
    assert call("cuLibraryGetKernel", c.addressof(kernel), library.value, c.addressof(name)) == 0
    config = (c.c_uint32 * 14)(4, 2, 1, 1, 1, 1)
    assert call("cuLaunchKernelEx", c.addressof(config), kernel.value, 0x1234, 0) == 0
    assert calls == [("image", "name", (4, 2, 1), None, 0x1234)]
    driver_kernel = [kernel.value, 3, 1, 1, 1, 1, 1, 0, 0, 0x5678, 0]
    assert call("cuLaunchKernel", *driver_kernel) == 0
    assert calls[-1] == ("image", "name", (3, 1, 1), None, 0x5678)


def test_driver_says_whether_a_stream_is_captured() -> None:
    driver, call, _ = _driver()
    answer = c.c_int(7)
    for driver.capturing in (False, True):
        assert call("cuStreamIsCapturing", 0, c.addressof(answer)) == 0
        assert answer.value == driver.capturing


def test_mappings_of_raw_parameters() -> None:
    array = np.zeros(1 << 20, np.uint8)
    address = array.ctypes.data
    [found] = _load("mappings").mappings_of(bytes(8) + address.to_bytes(8, "little") + b"\1\2")
    assert found.address <= address < address + array.nbytes <= found.address + found.size


def test_compiled_programs_are_kept(tmp_path: Path) -> None:
    from types import SimpleNamespace

    settings = SimpleNamespace(
        arch="sm_90a",
        opt_level=None,
        pipeline=None,
        options={},
        pass_options={},
        cache=None,
        compiler="tilec",
        watch=None,
    )
    compiler = _load("compiler").Compiler(settings)
    bytecode = (EXAMPLES / "vector_add_f32.tileirbc").read_bytes()
    first = compiler.compile(bytecode, "sm_90", 3)
    assert first.error is None
    assert ".entry" in first.image
    settings.cache = str(tmp_path)
    seen = []
    compiler.watch = seen.append
    compiler.compile(bytecode, "sm_90", 3)
    compiler._compile = None  # not called again
    assert compiler.compile(bytecode, "sm_90", 3).ptx == first.ptx
    assert len(seen) == 2
    del compiler._compile
    assert compiler.compile(b"no bytecode", "sm_90", 3).error is not None
    assert compiler.compile(bytecode, "sm_80", 3).ptx != first.ptx
    assert compiler._arch("sm_90") == "sm_90a"
    assert compiler._arch("sm_80") == "sm_80"


def test_driver_names_what_it_has_not() -> None:
    driver, call, _ = _driver()
    assert call("cuGraphCreate", 0, 0) == 801
    assert "cuGraphCreate" in str(driver.failure)
    value = c.c_int()
    assert call("cuDeviceGetAttribute", c.addressof(value), 75, 0) == 0
    assert value.value == 9
    assert call("cuDeviceGetAttribute", c.addressof(value), 9999, 0) == 801


def test_arrays_are_shown_with_their_layout() -> None:
    exposed = _load("exposed")
    array = np.zeros((6, 8), np.float16)[::2, 1:]
    shown = exposed.Exposed(array)
    assert shown.__dlpack_device__() == (2, 0)
    tensor = shown._managed.tensor
    assert (tensor.data, tensor.code, tensor.bits) == (array.ctypes.data, 2, 16)
    assert list(shown.shape) == [3, 7]
    assert list(shown.strides) == [16, 1]
    with pytest.raises(TypeError, match="no multiple of elements"):
        exposed.Exposed(np.zeros(8, np.dtype([("a", "i1"), ("b", "i2")]))["b"])
    with pytest.raises(TypeError, match="arrays of complex64"):
        exposed.Exposed(np.zeros(2, np.complex64))

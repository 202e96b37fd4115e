"""PTX to cubin with ptxas, and the toolchain around it."""

import io
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from support.emit_kernels import VECTOR_ADD, VECTOR_ADD_ARGUMENTS, context, module
from tile_cudatile.bytecode.writer import write_bytecode
from tile_cudatile.tree import Module
from tile_nvptx.emit import process, toolchain
from tile_nvptx.emit.checks import check_toolchain
from tile_nvptx.emit.cubin import CubinEmitter
from tile_nvptx.emit.llvm_ir import LlvmIrEmitter
from tile_nvptx.emit.process import run_tool
from tile_nvptx.emit.ptx import PtxEmitter
from tile_nvptx.emit.ptxas import parse_log

import tile_core
from tile_core.diagnostics import CompileError, ConfigurationError, ExitCode
from tile_core.emit import EmitContext
from tile_core.target import builtin_targets

CUDA_MACHINE = 190  # EM_CUDA


def vector_add(
    target: str, emitter: PtxEmitter | None = None, **options: object
) -> tuple[str, EmitContext]:
    cx = context(target, **options)
    source = module(VECTOR_ADD, arguments=VECTOR_ADD_ARGUMENTS)
    return (emitter or PtxEmitter()).emit(LlvmIrEmitter().emit(source, cx), cx), cx


@pytest.mark.parametrize("target", list(builtin_targets()))
def test_every_target_assembles_without_spills(target: str) -> None:
    ptx, cx = vector_add(target)
    emitter = CubinEmitter()
    cubin = emitter.emit(ptx, cx)
    assert cubin[:4] == b"\x7fELF"
    assert int.from_bytes(cubin[18:20], "little") == CUDA_MACHINE
    (kernel,) = emitter.metadata["kernels"]
    assert kernel.name == "k"
    assert 4 <= kernel.registers <= 32
    assert not kernel.uses_local_memory


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_every_level_assembles(opt_level: int) -> None:
    ptx, cx = vector_add("sm_80", opt_level=opt_level)
    assert CubinEmitter().emit(ptx, cx)[:4] == b"\x7fELF"


def test_two_runs_give_the_same_bytes() -> None:
    ptx, cx = vector_add("sm_90", lineinfo=True)
    assert CubinEmitter().emit(ptx, cx) == CubinEmitter().emit(ptx, cx)


def test_tile_kernels_say_so_in_the_cubin() -> None:
    marked, cx = vector_add("sm_90")
    plain, _ = vector_add("sm_90", PtxEmitter(tile_launch=False))
    assert language_of(CubinEmitter().emit(marked, cx)) == 7
    assert language_of(CubinEmitter().emit(plain, cx)) != 7


def language_of(cubin: bytes) -> int | None:
    """The value of the attribute EIATTR_LANGUAGE (0x66) in the `.nv.info` section of kernel k."""
    stream = io.BytesIO(section(cubin, ".nv.info.k"))
    while head := stream.read(4):
        value = int.from_bytes(head[2:4], "little")
        if head[0] == 4:  # EIFMT_SVAL: the value follows, and this was its size
            value = int.from_bytes(stream.read(value), "little")
        if head[1] == 0x66:
            return value
    return None


def section(cubin: bytes, wanted: str) -> bytes:
    def number(at: int, size: int) -> int:
        return int.from_bytes(cubin[at : at + size], "little")

    table, size, count, names = number(40, 8), number(58, 2), number(60, 2), number(62, 2)

    def contents(index: int) -> bytes:
        offset = number(table + index * size + 24, 8)
        return cubin[offset : offset + number(table + index * size + 32, 8)]

    for index in range(count):
        name = contents(names)[number(table + index * size, 4) :].split(b"\0", 1)[0].decode()
        if name == wanted:
            return contents(index)
    raise AssertionError(f"no section {wanted}")


def test_ptxas_options_reach_ptxas() -> None:
    ptx, cx = vector_add("sm_90")
    with pytest.raises(CompileError) as caught:
        CubinEmitter(ptxas_options="--no-such-option").emit(ptx, cx)
    assert "no-such-option" in "\n".join(caught.value.notes)


def test_what_ptxas_says_is_passed_on() -> None:
    bad = ".version 9.0\n.target sm_90a\n.address_size 64\n.entry k()\n{\n\tbogus.u32 %r1;\n}\n"
    with pytest.raises(CompileError, match=r"ptxas failed \(exit code 255\)") as caught:
        CubinEmitter().emit(bad, context())
    assert caught.value.exit_code is ExitCode.COMPILE
    said = "\n".join(caught.value.notes)
    assert "bogus" in said
    assert "kernels.ptx, line 6" in said
    assert "/tmp" not in said


def fake_ptxas(folder: Path, script: str) -> EmitContext:
    tool = folder / "ptxas"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    return EmitContext(builtin_targets()["sm_90"], {}, {"ptxas": tool})


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 3", "exit code 3"),
        ("kill -SEGV $$", "Segmentation fault"),
        ("sleep 30", "timed out"),
        ("exit 0", "wrote no cubin"),
    ],
)
def test_endings_of_ptxas(tmp_path: Path, script: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        CubinEmitter(timeout=2.0).emit("", fake_ptxas(tmp_path, script))


def test_a_file_that_cannot_run_is_a_configuration_error(tmp_path: Path) -> None:
    tool = tmp_path / "ptxas"
    tool.write_text("no program")
    cx = EmitContext(builtin_targets()["sm_90"], {}, {"ptxas": tool})
    with pytest.raises(ConfigurationError, match="cannot run"):
        CubinEmitter().emit("", cx)


def test_missing_ptxas_tells_how_to_install_it(tmp_path: Path) -> None:
    cx = EmitContext(builtin_targets()["sm_90"], {}, {"ptxas": tmp_path / "none"})
    with pytest.raises(ConfigurationError, match="ptxas not found") as caught:
        CubinEmitter().emit("", cx)
    assert "nvidia-cuda-nvcc" in str(caught.value.hint)
    assert any("--ptxas" in note for note in caught.value.notes)


def test_the_log_of_several_kernels_becomes_records() -> None:
    log = textwrap.dedent("""\
        ptxas info    : 0 bytes gmem
        ptxas info    : Compiling entry function 'a' for 'sm_90a'
        ptxas info    : Function properties for a
            16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
        ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, \
        2048 bytes smem, 400 bytes cmem[0]
        ptxas info    : Compile time = 2.500 ms
        ptxas info    : Compiling entry function 'b' for 'sm_90a'
        ptxas info    : Function properties for b
            0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
        ptxas info    : Used 8 registers, used 0 barriers
        """)
    a, b = parse_log(log)
    assert (a.name, a.registers, a.barriers, a.stack) == ("a", 40, 1, 16)
    assert (a.spill_stores, a.spill_loads, a.static_shared, a.constants) == (8, 12, 2048, 400)
    assert a.uses_local_memory
    assert (b.name, b.registers, b.static_shared) == ("b", 8, 0)
    assert not b.uses_local_memory


def toolkit(root: Path) -> Path:
    for place in ("bin/ptxas", "nvvm/libdevice/libdevice.10.bc"):
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text("")
        (root / place).chmod(0o755)
    return root


def test_places_are_tried_in_the_documented_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel, home, on_path = (toolkit(tmp_path / name) for name in ("wheel", "home", "path"))
    monkeypatch.setattr(toolchain, "_wheel_roots", lambda: [wheel])
    monkeypatch.delenv("CUDA_ROOT", raising=False)
    monkeypatch.setenv("CUDA_HOME", str(home))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "never"))
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    named = tmp_path / "mine"
    named.write_text("")
    for name, place in (("ptxas", "bin/ptxas"), ("libdevice", "nvvm/libdevice/libdevice.10.bc")):
        assert toolchain.require(name, {name: named}).origin == f"--{name}"
        assert toolchain.require(name).path == wheel / place
        (wheel / place).unlink()
        assert toolchain.require(name).path == home / place
    monkeypatch.delenv("CUDA_HOME")
    monkeypatch.delenv("CUDA_PATH")
    for name, place in (("ptxas", "bin/ptxas"), ("libdevice", "nvvm/libdevice/libdevice.10.bc")):
        assert toolchain.require(name).path == on_path / place


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No wheels, nothing in the environment; the working directory is an empty folder."""
    monkeypatch.setattr(toolchain, "_wheel_roots", list)
    monkeypatch.setattr(toolchain, "DEFAULT_ROOT", tmp_path / "usr" / "local" / "cuda")
    for variable in toolchain.ROOT_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    work = tmp_path / "my work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


@pytest.mark.parametrize("spelling", ["ptxas", "./ptxas", "../my work/ptxas", "link"])
def test_a_named_ptxas_is_that_file_however_it_is_spelt(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    """`./ptxas` is the one in this folder, even if another is on the PATH."""
    other = tmp_path / "other"
    other.mkdir()
    fake_ptxas(other, "echo 'the one on the PATH'; exit 9")
    monkeypatch.setenv("PATH", f"{other}:/usr/bin:/bin")
    fake_ptxas(bare, "echo 'the one that was named'; exit 3")
    (bare / "link").symlink_to("ptxas")
    cx = EmitContext(builtin_targets()["sm_90"], {}, {"ptxas": Path(spelling)})
    with pytest.raises(CompileError, match="exit code 3") as caught:
        CubinEmitter().emit("", cx)
    assert caught.value.notes == ("the one that was named",)


def test_an_empty_root_is_none_and_a_relative_one_is_a_folder(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolkit(bare)  # bin/ptxas in the working directory
    monkeypatch.setenv("CUDA_ROOT", "")
    assert toolchain.find("ptxas") is None
    monkeypatch.setenv("CUDA_HOME", "./")
    found = toolchain.require("ptxas")
    assert (found.path, found.origin) == (bare / "bin" / "ptxas", "CUDA_HOME")
    monkeypatch.setenv("CUDA_ROOT", ".")
    assert toolchain.require("libdevice").origin == "CUDA_ROOT"


def test_a_relative_path_variable_is_made_absolute(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolkit(bare)
    monkeypatch.setenv("PATH", "bin")
    assert toolchain.require("ptxas").path == bare / "bin" / "ptxas"


def test_a_wrong_root_is_an_error_where_it_would_be_used(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = toolkit(tmp_path / "path")
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert toolchain.require("ptxas").origin == "PATH"
    monkeypatch.setenv("CUDA_ROOT", str(bare / "none"))
    for name in toolchain.TOOLS:
        with pytest.raises(ConfigurationError, match=f"{name} not found") as caught:
            toolchain.require(name)
        assert any("(CUDA_ROOT)" in note for note in caught.value.notes)


def test_a_wrong_root_is_a_warning_where_a_wheel_comes_first(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = toolkit(tmp_path / "wheel")
    monkeypatch.setattr(toolchain, "_wheel_roots", lambda: [wheel])
    monkeypatch.setenv("CUDA_ROOT", str(bare / "none"))
    with pytest.warns(toolchain.ToolchainWarning, match="CUDA_ROOT=.* holds no ptxas; using"):
        assert toolchain.require("ptxas").origin == "wheel"


def test_a_tool_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="there is no tool 'ptxsa'"):
        tile_core.compile(write_bytecode(Module(), version=(13, 4)), "sm_90",
                          toolchain={"ptxsa": Path("x")})  # fmt: skip


def test_versions_of_ptxas(tmp_path: Path) -> None:
    found = toolchain.require("ptxas")
    assert toolchain.ptxas_version(found).highest_ptx >= 90
    for number, (release, highest) in enumerate((("12.8", 87), ("13.0", 90), ("13.5", 95))):
        (tmp_path / str(number)).mkdir()
        line = f"echo 'Cuda compilation tools, release {release}, V{release}.1'"
        tool = fake_ptxas(tmp_path / str(number), line).toolchain["ptxas"]
        assert toolchain.ptxas_version(toolchain.Found(tool, "PATH")).highest_ptx == highest


def test_a_wheel_is_not_asked_for_its_version(tmp_path: Path) -> None:
    tool = tmp_path / "nvidia" / "cu13" / "bin" / "ptxas"
    tool.parent.mkdir(parents=True)
    tool.write_text("cannot be run")
    (tmp_path / "nvidia_cuda_nvcc-13.2.78.dist-info").mkdir()
    version = toolchain.ptxas_version(toolchain.Found(tool, "wheel"))
    assert (version.full, version.highest_ptx) == ("13.2.78", 92)


EMPTY_KERNEL = 'define ptx_kernel void @k() "nvvm.reqntid"="32" { ret void }'


@pytest.mark.parametrize(("release", "taken"), [("12.8", False), ("13.1", False), ("13.2", True)])
def test_a_ptxas_that_cannot_mark_kernels_is_refused(
    tmp_path: Path, release: str, taken: bool
) -> None:
    """Unmarked, a kernel that is launched with a block of (1, 1, 1) runs one thread."""
    script = f"""
        case "$*" in
          *--version*) echo 'Cuda compilation tools, release {release}, V{release}.1';;
          *) while [ "$1" != -o ]; do shift; done; echo cubin > "$2";;
        esac
    """
    cx = fake_ptxas(tmp_path, script)
    ptx = PtxEmitter().emit(EMPTY_KERNEL, cx)
    assert ptx == PtxEmitter().emit(EMPTY_KERNEL, context())  # the same whatever is installed
    assert ".language 7" in ptx
    if taken:
        assert CubinEmitter().emit(ptx, cx) == b"cubin\n"
        return
    with pytest.raises(ConfigurationError, match="cannot mark kernels as Tile IR") as caught:
        CubinEmitter().emit(ptx, cx)
    assert "-D ptx.tile-launch=false" in str(caught.value.hint)
    plain = PtxEmitter(tile_launch=False).emit(EMPTY_KERNEL, cx)
    assert ".language" not in plain
    assert CubinEmitter().emit(plain, cx) == b"cubin\n"


def test_an_old_ptxas_gets_its_own_ptx_or_a_clear_error(tmp_path: Path) -> None:
    cx = fake_ptxas(tmp_path, "echo 'Cuda compilation tools, release 12.8, V12.8.1'")
    assert ".version 8.7\n" in PtxEmitter(tile_launch=False).emit(EMPTY_KERNEL, cx)
    newer = EmitContext(builtin_targets()["sm_110"], {}, cx.toolchain)
    with pytest.raises(ConfigurationError, match=r"needs PTX 9\.0, but ptxas reads only 8\.7"):
        PtxEmitter(tile_launch=False).emit(EMPTY_KERNEL, newer)


def test_the_doctor_names_the_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    llvm, ptxas, libdevice = check_toolchain()
    assert (llvm.what, llvm.ok) == ("llvm", True)
    assert ptxas.ok
    assert str(toolchain.require("ptxas").path) in ptxas.detail
    assert libdevice.ok
    monkeypatch.setattr(toolchain, "candidates", lambda tool, named: iter(()))
    missing = {finding.what: finding for finding in check_toolchain()}
    assert not missing["ptxas"].ok
    assert "nvidia-cuda-nvcc" in missing["ptxas"].hint
    assert not missing["libdevice"].ok
    assert "nvidia-nvvm" in missing["libdevice"].hint


@pytest.mark.parametrize("guard", ["setpriv", "none", "old"])
def test_a_tool_dies_with_its_caller(guard: str, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    old = tmp_path / "setpriv"
    old.write_text("#!/bin/sh\necho setpriv: unrecognized option >&2\nexit 1\n")
    old.chmod(0o755)
    guards = {"setpriv": "process._guard()", "none": "()", "old": repr((str(old), "--"))}
    script = f"""
        import sys
        from tile_nvptx.emit import process
        found = {guards[guard]}
        process._guard = lambda: found
        process.run_tool(["/bin/sh", "-c", "echo $$ > {note}; exec sleep 60"], timeout=60)
    """
    caller = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)])
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and not (note.exists() and note.read_text().strip()):
        time.sleep(0.02)
    tool = int(note.read_text())
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    while time.monotonic() < deadline and running(tool):
        time.sleep(0.02)
    assert not running(tool)


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_output_of_a_tool_is_kept() -> None:
    done = run_tool(["/bin/sh", "-c", "echo out; echo err >&2; exit 2"], timeout=10)
    assert (done.status, done.output, done.ending) == (2, "out\nerr\n", "exit code 2")


@pytest.mark.parametrize("guarded", [True, False])
def test_a_tool_that_cannot_be_started(guarded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not guarded:
        monkeypatch.setattr(process, "_guard", lambda: ())
    with pytest.raises(FileNotFoundError):
        run_tool(["/nowhere/ptxas", "--version"], timeout=10)


@pytest.mark.parametrize("opt_level", [0, 3])
def test_a_module_without_kernels(opt_level: int) -> None:
    """cuTile compiles one to find out which versions of the bytecode a compiler reads."""
    source = write_bytecode(Module(), version=(13, 4))
    artifact = tile_core.compile(source, "sm_120", opt_level=opt_level)
    assert artifact.cubin[:4] == b"\x7fELF"

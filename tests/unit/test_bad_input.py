"""Bad input from end to end: one clear error, the documented exit code, nothing half-written."""

import subprocess
import sys
from pathlib import Path

import pytest

import tile_core
from tile_core.diagnostics import ExitCode, TileError

BYTECODE = Path(__file__).parents[2] / "examples" / "bytecode" / "vector_add_f32.tileirbc"


def tilec(*args: object) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "tile_core", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def failed(done: subprocess.CompletedProcess[str], code: ExitCode, *words: str) -> None:
    """One error with these words, this exit code, and no traceback."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("error: ") == 1, done.stderr
    for word in words:
        assert word in done.stderr


def test_every_truncation_is_an_input_error():
    data = BYTECODE.read_bytes()
    for length in range(len(data)):
        with pytest.raises(TileError) as caught:
            tile_core.compile(data[:length], "sm_90", emit="tileir")
        assert caught.value.exit_code == ExitCode.INPUT, length
        assert caught.value.message


@pytest.mark.parametrize("place", range(12))
def test_a_broken_header_is_an_input_error(place):
    data = bytearray(BYTECODE.read_bytes())
    data[place] ^= 0xFF
    with pytest.raises(TileError) as caught:
        tile_core.compile(bytes(data), "sm_90")
    assert caught.value.exit_code == ExitCode.INPUT


def test_a_name_that_is_not_utf8_is_refused():
    data = BYTECODE.read_bytes().replace(b"vector_add_f32", b"vector\xffadd_f32")
    with pytest.raises(TileError, match="is not UTF-8") as caught:
        tile_core.compile(data, "sm_90")
    assert caught.value.exit_code == ExitCode.INPUT


def test_not_bytecode(tmp_path):
    (tmp_path / "in").write_bytes(b"MZ\0\0 nothing of ours")
    out = tmp_path / "out.cubin"
    failed(tilec("compile", tmp_path / "in", "--gpu-name", "sm_90", "-o", out), ExitCode.INPUT)
    assert not out.exists()


def test_missing_input(tmp_path):
    done = tilec("compile", tmp_path / "none", "--gpu-name", "sm_90", "-o", tmp_path / "out")
    failed(done, ExitCode.USAGE, "none")


def test_unknown_target(tmp_path):
    done = tilec("compile", BYTECODE, "--gpu-name", "sm_91", "-o", tmp_path / "out")
    failed(done, ExitCode.CONFIGURATION, "sm_91", "sm_90")


def test_unwritable_output(tmp_path):
    done = tilec("compile", BYTECODE, "--gpu-name", "sm_90", "-o", tmp_path / "no" / "out")
    failed(done, ExitCode.CONFIGURATION, "out")


def test_missing_ptxas(tmp_path):
    out = tmp_path / "out.cubin"
    missing = tmp_path / "ptxas"
    done = tilec("compile", BYTECODE, "--gpu-name", "sm_90", "-o", out, "--ptxas", missing)
    failed(done, ExitCode.CONFIGURATION, "ptxas")
    assert not out.exists()


def test_an_operation_that_nothing_converts_is_named(tmp_path):
    source = tmp_path / "in.mlir"
    source.write_text(
        "module { gpu.module @kernels attributes "
        "{tt.num_ctas = 1 : i32, tt.num_warps = 4 : i32} {\n"
        "func.func @k(%x: i32) attributes {nv_tileaa.kernel} {\n"
        '%0 = "nv_tileaa.create_mem_token"() : () -> !nv_tileaa.mem_token\n'
        '"nv_tileaa.yield"() : () -> ()\n} } }'
    )
    out = tmp_path / "out.cubin"
    done = tilec(
        "compile", source, "--gpu-name", "sm_90", "-o", out,
        "--start-at", "convert-tileaa-to-tileas",
    )  # fmt: skip
    assert done.returncode in (ExitCode.INPUT, ExitCode.COMPILE)
    assert "Traceback" not in done.stderr
    assert "error: " in done.stderr
    assert not out.exists()


def test_llvm_fatal_errors_do_not_end_the_process():
    """An intrinsic that NVPTX cannot select aborts LLVM; the caller gets an exception."""
    text = (
        'target triple = "nvptx64-nvidia-cuda"\n'
        "declare i32 @llvm.nvvm.no.such.thing(i32)\n"
        "define ptx_kernel void @k(ptr addrspace(1) %p, i32 %x) {\n"
        "  %y = call i32 @llvm.nvvm.no.such.thing(i32 %x)\n"
        "  store i32 %y, ptr addrspace(1) %p\n  ret void\n}\n"
    )
    with pytest.raises(TileError) as caught:
        tile_core.compile(text, "sm_90", start_at="ptx")
    assert caught.value.exit_code in (ExitCode.COMPILE, ExitCode.INPUT)
    # The next compilation works as if nothing had happened.
    assert tile_core.compile(BYTECODE.read_bytes(), "sm_90").stages["cubin"]

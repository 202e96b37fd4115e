"""LLVM IR to PTX through the worker process."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from support.emit_kernels import (
    DECLARE_EXP,
    LIBDEVICE_EXP,
    VECTOR_ADD,
    VECTOR_ADD_ARGUMENTS,
    context,
    module,
    unary,
)
from tile_nvptx.emit import pool, ptx_text
from tile_nvptx.emit.llvm_ir import LlvmIrEmitter
from tile_nvptx.emit.ptx import PtxEmitter

from tile_core.diagnostics import CompileError, ConfigurationError
from tile_core.emit import EmitContext
from tile_core.target import Target, builtin_targets

POINTER = "%p: !llvm.ptr<1>"


def compile_to_ptx(
    body: str,
    target: str = "sm_90",
    extra: str = "",
    emitter: PtxEmitter | None = None,
    **options: object,
) -> str:
    cx = context(target, **options)
    source = module(body, arguments=POINTER, extra=extra)
    return (emitter or PtxEmitter()).emit(LlvmIrEmitter().emit(source, cx), cx)


@pytest.mark.parametrize("target", list(builtin_targets()))
def test_every_target_gets_its_chip_and_wide_accesses(target: str) -> None:
    cx = context(target)
    text = LlvmIrEmitter().emit(module(VECTOR_ADD, arguments=VECTOR_ADD_ARGUMENTS), cx)
    ptx = PtxEmitter().emit(text, cx)
    assert f".target {builtin_targets()[target].chip}\n" in ptx
    assert ptx_text.entries_of(ptx) == ("k",)
    wide = r"\.global\.(v4\.b32|v2\.b64)"  # pairs, where the chip adds pairs of floats
    assert len(re.findall("ld" + wide, ptx)) == 2
    assert len(re.findall("st" + wide, ptx)) == 1


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_libdevice_is_linked_inlined_and_pruned_at_every_level(opt_level: int) -> None:
    ptx = compile_to_ptx(LIBDEVICE_EXP, extra=DECLARE_EXP, opt_level=opt_level)
    assert "__nv" not in ptx
    assert "ex2.approx" in ptx
    assert ".func" not in ptx


@pytest.mark.parametrize("opt_level", [0, 3])
def test_helpers_are_inlined_at_every_level(opt_level: int) -> None:
    helper = (
        "llvm.func internal @twice(%x: f32) -> f32 attributes {always_inline} {"
        " %y = llvm.fadd %x, %x : f32 llvm.return %y : f32 }"
    )
    body = unary("%y = llvm.call @twice(%x) : (f32) -> f32")
    ptx = compile_to_ptx(body, extra=helper, opt_level=opt_level)
    assert "call" not in ptx
    assert "twice" not in ptx


def test_reflection_decides_rounding_and_flushing() -> None:
    body = unary("%y = llvm.call @__nv_sqrtf(%x) : (f32) -> f32")
    extra = "llvm.func @__nv_sqrtf(f32) -> f32"
    assert "sqrt.rn.f32" in compile_to_ptx(body, extra=extra)
    assert "sqrt.approx.f32" in compile_to_ptx(body, extra=extra, approx=True)
    told = PtxEmitter(nvvm_reflect_add="__CUDA_PREC_SQRT=0,__CUDA_FTZ=1,MINE=-7")
    assert "sqrt.approx.ftz.f32" in compile_to_ptx(body, extra=extra, emitter=told)
    told = PtxEmitter(nvvm_reflect_add="__CUDA_PREC_SQRT=1")
    assert "sqrt.rn.f32" in compile_to_ptx(body, extra=extra, emitter=told, approx=True)


@pytest.mark.parametrize(
    ("added", "text"),
    [
        ("=1", "Empty name in nvvm-reflect-add option '=1'"),
        ("A=1,", "Empty name in nvvm-reflect-add option ''"),
        ("A=", "Missing value in nvvm-reflect-add option 'A='"),
        ("A", "Missing value in nvvm-reflect-add option 'A'"),
        ("A=one", "integer value expected in nvvm-reflect-add option 'A=one'"),
        ("A=0x1", "integer value expected in nvvm-reflect-add option 'A=0x1'"),
        ("A=4294967296", "integer value expected in nvvm-reflect-add option 'A=4294967296'"),
    ],
)
def test_answers_that_are_none_are_refused(added: str, text: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(text)):
        compile_to_ptx("", emitter=PtxEmitter(nvvm_reflect_add=added))


def test_slow_path_of_a_library_function_stays_a_function() -> None:
    body = unary("%y = llvm.call @__nv_sin(%x) : (f64) -> f64", "f64")
    ptx = compile_to_ptx(body, extra="llvm.func @__nv_sin(f64) -> f64")
    assert "__internal_trig_reduction_slowpathd" in ptx
    assert ".extern" not in ptx


def test_float_constants_keep_their_bits() -> None:
    body = "\n".join(
        f"%c{i} = llvm.mlir.constant({value} : f32) : f32\n"
        f"%q{i} = llvm.getelementptr %p[{i}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32\n"
        f"llvm.store volatile %c{i}, %q{i} : f32, !llvm.ptr<1>"
        for i, value in enumerate(["0.1", "0x7F800001", "0xFFC12345", "1.0e-45", "0xFF800000"])
    )
    ptx = compile_to_ptx(body)
    stored = [
        int(v) & 0xFFFFFFFF for v in re.findall(r"st\.volatile\.global\.b32 .*, (-?\d+);", ptx)
    ]
    assert stored == [0x3DCCCCCD, 0x7F800001, 0xFFC12345, 1, 0xFF800000]


def test_tile_launch_marks_kernels_and_raises_the_version() -> None:
    body = unary("%y = llvm.fadd %x, %x : f32")
    marked, plain = (
        compile_to_ptx(body),
        compile_to_ptx(body, emitter=PtxEmitter(tile_launch=False)),
    )
    assert ".version 9.2\n" in marked
    assert ".reqntid 128\n.language 7\n" in marked
    assert ".version 9.0\n" in plain
    assert ".language" not in plain
    assert ptx_text.as_tile_kernels(plain) == marked


def test_kernels_without_a_fixed_block_are_no_tile_kernels() -> None:
    ptx = (
        ".version 9.0\n.visible .entry a()\n{\n\tret;\n}\n.visible .entry b()\n.reqntid 32\n{\n}\n"
    )
    assert ptx_text.as_tile_kernels(ptx) == ptx.replace("9.0", "9.2").replace(
        ".reqntid 32\n", ".reqntid 32\n.language 7\n"
    )


def test_version_is_never_lowered() -> None:
    assert ptx_text.with_version(".version 9.4\n", 92) == ".version 9.4\n"
    assert ptx_text.with_version(".version 9.0\n", 92) == ".version 9.2\n"


def test_asking_for_a_version_sets_it() -> None:
    body = unary("%y = llvm.fadd %x, %x : f32")
    assert (
        compile_to_ptx(body, emitter=PtxEmitter(ptx_version=94)).splitlines()[4] == ".version 9.4"
    )


def test_output_is_the_same_in_a_fresh_worker() -> None:
    first = compile_to_ptx(LIBDEVICE_EXP, extra=DECLARE_EXP)
    pool.POOL.shutdown()
    assert compile_to_ptx(LIBDEVICE_EXP, extra=DECLARE_EXP) == first


# --- what goes wrong -----------------------------------------------------------------------------

NO_LIBRARY_CALL = """
define ptx_kernel void @doomed(ptr addrspace(1) %p) {
  %x = load float, ptr addrspace(1) %p
  %y = call float @llvm.log2.f32(float %x)
  store float %y, ptr addrspace(1) %p
  ret void
}
"""
CANNOT_SELECT = """
define ptx_kernel void @doomed() {
  call void @llvm.nvvm.wgmma.fence.sync.aligned()
  ret void
}
"""


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (NO_LIBRARY_CALL, "no libcall available for flog2"),  # LLVM exits
        (CANNOT_SELECT, "Cannot select: intrinsic %llvm.nvvm.wgmma.fence"),  # LLVM aborts
    ],
)
def test_a_fatal_error_of_llvm_is_an_error_of_ours(source: str, said: str) -> None:
    with pytest.raises(CompileError, match="LLVM cannot compile doomed for sm_80") as caught:
        PtxEmitter().emit(source, context("sm_80"))
    assert said in caught.value.message
    # and the next compilation works
    assert "add.rn.f32" in compile_to_ptx(unary("%y = llvm.fadd %x, %x : f32"))


def test_text_that_llvm_cannot_read_is_reported_with_its_words() -> None:
    with pytest.raises(CompileError) as caught:
        PtxEmitter().emit("define ptx_kernel void @k() { bogus }", context())
    assert "bogus" in "\n".join(caught.value.notes)


def test_an_unknown_intrinsic_is_refused() -> None:
    source = "define ptx_kernel void @k() {\n  call void @llvm.nvvm.not.there()\n  ret void\n}\n"
    with pytest.raises(CompileError) as caught:
        PtxEmitter().emit(source, context())
    assert "llvm.nvvm.not.there" in "\n".join(caught.value.notes)


@pytest.mark.parametrize("name", ["helper", "__nv_no_such_function"])
def test_an_undefined_function_is_refused(name: str) -> None:
    body = unary(f"%y = llvm.call @{name}(%x) : (f32) -> f32")
    with pytest.raises(CompileError, match=name):
        compile_to_ptx(body, extra=f"llvm.func @{name}(f32) -> f32")


def test_a_chip_that_llvm_does_not_know_is_refused() -> None:
    made_up = Target("sm_99", "sm_99", 90, 1024, 64)
    with pytest.raises(CompileError, match="does not know the chip sm_99"):
        PtxEmitter().emit("define ptx_kernel void @k() { ret void }", EmitContext(made_up, {}))


def test_missing_libdevice_is_a_configuration_error(tmp_path) -> None:
    cx = EmitContext(builtin_targets()["sm_90"], {}, {"libdevice": tmp_path / "none.bc"})
    source = LlvmIrEmitter().emit(module(LIBDEVICE_EXP, arguments=POINTER, extra=DECLARE_EXP), cx)
    with pytest.raises(ConfigurationError, match="libdevice not found") as caught:
        PtxEmitter().emit(source, cx)
    assert "nvidia-nvvm" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opt_level": 4}, "invalid optimization level: 4"),
        ({"lineinfo": 1}, "'lineinfo' expects bool"),
    ],
)
def test_bad_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        PtxEmitter().emit("", context("sm_90", **options))


# --- the worker process --------------------------------------------------------------------------

EMPTY = "define ptx_kernel void @k() { ret void }"


def test_the_worker_is_reused() -> None:
    PtxEmitter().emit(EMPTY, context())
    before = [w.process.pid for w in pool.POOL._all]
    PtxEmitter().emit(EMPTY, context())
    assert [w.process.pid for w in pool.POOL._all] == before


def test_prewarm_starts_one_worker_and_returns_at_once() -> None:
    pool.POOL.shutdown()
    start = time.perf_counter()
    PtxEmitter.prewarm()
    PtxEmitter.prewarm()
    assert time.perf_counter() - start < 1.0
    assert len(pool.POOL._all) == 1
    assert ".entry k" in PtxEmitter().emit(EMPTY, context())


def test_threads_share_the_pool() -> None:
    results: list[str] = []

    def work() -> None:
        results.extend(PtxEmitter().emit(EMPTY, context()) for _ in range(3))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 18
    assert len(set(results)) == 1
    assert len(pool.POOL._all) <= pool.MAX_WORKERS


def test_a_worker_killed_from_outside_is_replaced() -> None:
    PtxEmitter().emit(EMPTY, context())
    for worker in pool.POOL._all:
        os.kill(worker.process.pid, signal.SIGKILL)
        worker.process.wait()
    assert ".entry k" in PtxEmitter().emit(EMPTY, context())


def test_a_time_limit_ends_the_worker() -> None:
    pool.POOL.shutdown()
    pool.POOL.prewarm()
    (worker,) = pool.POOL._all
    os.kill(worker.process.pid, signal.SIGSTOP)  # it hangs
    with pytest.raises(CompileError, match="did not finish within"):
        PtxEmitter(timeout=0.2).emit(EMPTY, context())
    assert worker.process.poll() == -signal.SIGKILL
    assert ".entry k" in PtxEmitter().emit(EMPTY, context())


def run_script(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


PREAMBLE = """
        import os, signal, sys
        from tile_core.emit import EmitContext
        from tile_core.target import builtin_targets
        from tile_nvptx.emit.pool import POOL
        from tile_nvptx.emit.ptx import PtxEmitter
        EMPTY = "define ptx_kernel void @k() { ret void }"
        cx = EmitContext(builtin_targets()["sm_90"], {})
"""


def test_a_forked_child_compiles_with_its_own_worker() -> None:
    done = run_script(
        PREAMBLE
        + """
        PtxEmitter().emit(EMPTY, cx)
        mine = POOL._all[0].process.pid
        child = os.fork()
        if child == 0:
            PtxEmitter().emit(EMPTY, cx)
            os._exit(0 if POOL._all[0].process.pid != mine else 3)
        assert os.waitpid(child, 0)[1] == 0
        PtxEmitter().emit(EMPTY, cx)
        assert POOL._all[0].process.pid == mine
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_worker_dies_with_its_parent() -> None:
    done = run_script(
        PREAMBLE
        + """
        PtxEmitter().emit(EMPTY, cx)
        print(POOL._all[0].process.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    assert done.returncode == -signal.SIGKILL
    worker = int(done.stdout)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and _running(worker):
        time.sleep(0.02)
    assert not _running(worker)


def _running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_the_caller_never_imports_llvm() -> None:
    done = run_script(
        PREAMBLE
        + """
        PtxEmitter().emit(EMPTY, cx)
        heavy = [name for name in sys.modules if "llvmlite" in name or "torch_mlir" in name]
        assert not heavy, heavy
        """
    )
    assert (done.returncode, done.stderr) == (0, "")

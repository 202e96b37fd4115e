"""Cubins with PTX and host code inside run in the simulator; broken ones are clear errors."""

from __future__ import annotations

import platform
import subprocess
import sys

import numpy as np
import pytest
from support.peer_objects import CRASHES, LOOPS, PTX, cubin, fills, host_object
from tile_sim import Module, SimError
from tile_sim.peer import Cubin
from tile_sim.peer.host import HostCode
from tile_sim.peer.process import Code, HostProcess

# Parameters begin at 0x210 of the bank: 12 bytes of arguments, then 64-byte alignment there.
FIRST_HIDDEN = 0x240 - 0x210
here = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "AMD64"),
    reason="host code of cubins runs on x86-64 Linux",
)


def run(data: bytes) -> np.ndarray:
    out = np.zeros(32, np.uint32)
    Cubin(data).load("sm_90").launch("copy_map", (1, 1, 1), None, [out, 7])
    return out


@here
def test_host_code_fills_hidden_parameters() -> None:
    data = cubin(host=host_object(fills(FIRST_HIDDEN + 8, 0x1122334455667788)))
    assert run(data).tolist() == [0, 0, 0x55667788, 0x11223344, *[0] * 28]


@here
def test_the_callback_sees_the_arguments() -> None:
    # mov eax, [rcx+8]; mov [rcx+48], eax; xor eax, eax; ret
    code = b"\x8b\x41\x08\x89\x41" + bytes([FIRST_HIDDEN]) + b"\x31\xc0\xc3"
    assert run(cubin(host=host_object(code)))[0] == 7


def test_kernels_without_hidden_parameters_need_no_host_code() -> None:
    visible = PTX.replace(".hidden .param", ".param")
    out = np.zeros(32, np.uint32)
    Cubin(cubin(visible)).load().launch("copy_map", (1, 1, 1), None, [out, 7, bytes(range(128))])
    assert out[0] == 0x03020100


def test_sections_and_embedded_sources_behind_kernels() -> None:
    text = PTX + (
        '.file 1 "program.py"\n.section .debug_str { .b8 1, 2 }\n'
        ".nv_intermediate_source_section {\n.code_block {\n.source_begin\nfor %i in (@1, ?) {\n"
        ".source_end\n}\n}\n"
    )
    data = cubin(text.replace(".hidden ", ""))
    assert Cubin(data).load().entries == ["copy_map"]
    with pytest.raises(SimError, match="embedded source without end"):
        Cubin(cubin(text.replace(".source_end", ""))).load()


# --- bad input ----------------------------------------------------------------------------------


BROKEN = {
    "no ELF file": b"\x7fELX" + bytes(100),
    "cut short": cubin()[:40],
    "has no PTX": cubin(None),
    "without PTX": cubin("nothing"),
    "for machine 62, no NVIDIA GPU": cubin(machine=62),
    "has no host code .* 1 hidden parameter ": cubin(),
    "does not say where the parameters of 'copy_map' lie": cubin(
        host=host_object(fills(48, 1)), base=None
    ),
    "the host code is for machine 183, not x86-64": cubin(host=host_object(b"\xc3", machine=183)),
    "host object is no ELF": cubin(host=b"nonsense" * 20),
}


@pytest.mark.parametrize("message", BROKEN)
def test_broken_cubins(message: str) -> None:
    with pytest.raises(SimError, match=message) as found:
        Cubin(BROKEN[message]).load("sm_90")
    assert found.value.kind in ("cubin", "host")


def test_a_cubin_of_another_architecture() -> None:
    with pytest.raises(SimError, match="the cubin is for sm_90, not for sm_100") as found:
        Cubin(cubin(host=host_object(fills(48, 1)))).load("sm_100")
    assert found.value.kind == "target"


@here
def test_callbacks_that_fail() -> None:
    cases = {
        "failed with status 3": fills(48, 1, status=3),
        "ended its process: Illegal instruction": CRASHES,
    }
    for message, code in cases.items():
        with pytest.raises(SimError, match=message) as found:
            run(cubin(host=host_object(code)))
        assert found.value.kind == "host"
    with pytest.raises(SimError, match="no host callback for kernel 'copy_map'; there are: other"):
        run(cubin(host=host_object(fills(48, 1), "other")))


@here
def test_a_callback_without_end_is_ended() -> None:
    process = HostProcess(seconds=0.3)
    with pytest.raises(SimError, match=r"did not return in 0\.3 s"):
        process.call(Code(LOOPS, 0), bytes(64))
    assert process.call(Code(fills(8, 5), 0), bytes(64))[1][8] == 5
    process.close()


def test_elsewhere_host_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    code = HostCode(host_object(fills(48, 1)))
    with pytest.raises(SimError, match=r"x86-64 Linux only, this is .* on aarch64"):
        code.call("copy_map", bytes(200))


@here
def test_a_map_that_is_none() -> None:
    text = PTX.replace("ret;", "").replace(
        "st.global.b32 [%o], %v;",
        """.shared .align 128 .b8 buf[1024]; .shared .b64 bar; .reg .b64 %m; .reg .b32 %s, %c;
        mov.b64 %m, map; mov.u32 %s, buf; mov.u32 %c, bar; mbarrier.init.shared.b64 [%c], 1;
        cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
          [%s], [%m, {0}], [%c];""",
    )
    with pytest.raises(SimError, match="no tensor map here: rank 8") as found:
        run(cubin(text, host_object(fills(FIRST_HIDDEN + 8, 0x72))))
    assert found.value.kind == "tensormap"


@pytest.mark.parametrize("seed", range(4))
def test_damaged_cubins_end_in_errors(seed: int) -> None:
    """Any bytes give a result or a SimError, nothing else."""
    rng = np.random.default_rng(seed)
    whole = np.frombuffer(cubin(host=host_object(fills(48, 1))), np.uint8)
    for _ in range(60):
        data = whole.copy()
        data[rng.integers(len(data), size=4)] = rng.integers(256, size=4)
        try:
            module = Cubin(data[: rng.integers(40, len(data) + 1)].tobytes()).load()
            if module.hidden is not None:
                _ = module.hidden.code.callbacks  # type: ignore[attr-defined]
        except SimError:
            pass


def test_the_child_imports_nothing_of_ours() -> None:
    """Native code of a file runs beside as little as possible."""
    from tile_sim.peer import process

    source = process._CHILD.read_text()
    assert "tile_" not in source.split('"""', 2)[2]
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(process._CHILD)], input=b"", check=False, timeout=20
    )
    assert done.returncode == 0


def test_memory_that_no_driver_gives_a_cta() -> None:
    """tileiras' group GEMM asks for it, and takes its place in a hidden parameter's if there is
    none."""
    module = Module("""
    .version 9.5
    .target sm_90a
    .address_size 64
    .visible .entry k(.param .u64 out)
    .reqntid 32
    .minperctamemory 768
    {
      .reg .b64 %rd<4>;
      ld.param.u64 %rd1, [out]; mov.u64 %rd2, %perctamemoryoffset; add.u64 %rd2, %rd2, 5;
      st.global.u64 [%rd1], %rd2;
      ret;
    }""")
    out = np.zeros(1, np.uint64)
    module.launch("k", (1, 1, 1), None, [out])
    assert out[0] == 5


@here
def test_the_callback_hands_on_the_memory_that_a_kernel_asked_for() -> None:
    """By the second word of its context, as that of tileiras' group GEMM does."""
    text = """
    .version 9.5
    .target sm_90a
    .address_size 64
    .visible .entry copy_map(.param .u64 out, .hidden .param .u64 room)
    .reqntid 32
    .minperctamemory 768
    {
      .reg .b64 %rd<4>; .reg .b32 %r<4>;
      ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [room]; mov.u32 %r1, %tid.x;
      mul.wide.u32 %rd3, %r1, 4; add.u64 %rd2, %rd2, %rd3; add.u64 %rd1, %rd1, %rd3;
      st.global.u32 [%rd2], %r1; ld.global.u32 %r2, [%rd2]; st.global.u32 [%rd1], %r2;
      ret;
    }"""
    code = bytes.fromhex("488b5608 48895108 31c0 c3")  # rdx = rsi[1]; rcx[1] = rdx; return 0
    out = np.zeros(32, np.uint32)
    made = Cubin(cubin(text, host_object(code))).load()
    report = made.launch("copy_map", (1, 1, 1), None, [out], check=True)
    assert report.findings == []
    np.testing.assert_array_equal(out, np.arange(32))

"""What is made of a cubin: the listing of its code, and an object of the host's that holds it."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
from tile_nvptx.emit import listing, toolchain
from tile_nvptx.emit.embedded import SECTION

import tile_core
from tile_core.diagnostics import CompileError, ConfigurationError
from tile_core.elf import Elf

PROGRAM = Path(__file__).parents[3] / "examples" / "bytecode" / "vector_add_f32.tileirbc"

needs_disassembler = pytest.mark.skipif(
    not any(toolchain.find(name) for name in ("nvdisasm", "cuobjdump")), reason="no disassembler"
)


def compiled(emit: str, **more: object) -> tile_core.Artifact:
    return tile_core.compile(PROGRAM.read_bytes(), "sm_90", emit=emit, **more)  # type: ignore[arg-type]


@needs_disassembler
def test_sass_is_a_listing() -> None:
    text = compiled("sass").output
    assert isinstance(text, str)
    assert ".text.vector_add_f32" in text
    assert " LDG.E" in text
    assert "vector_add.py" not in text


@needs_disassembler
def test_sass_names_source_lines() -> None:
    assert 'vector_add.py", line 13' in str(compiled("sass", options={"lineinfo": True}).output)


def test_without_a_disassembler_the_error_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(toolchain, "_roots", lambda: iter(()))
    with pytest.raises(ConfigurationError, match="nvdisasm") as caught:
        listing.disassembler()
    assert "nvidia-cuda-nvdisasm" in (caught.value.hint or "")


@pytest.mark.skipif(toolchain.find("cuobjdump") is None, reason="no cuobjdump")
def test_cuobjdump_does_it_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    find = toolchain.find
    monkeypatch.setattr(toolchain, "find", lambda n, *m: None if n == "nvdisasm" else find(n, *m))
    assert "LDG.E" in str(compiled("sass").output)


@pytest.mark.parametrize(("host", "machine"), [("x86_64", 62), ("aarch64", 183)])
def test_an_object_holds_the_cubin(host: str, machine: int) -> None:
    triple = {"object.host-triple": f"{host}-unknown-linux-gnu"}
    made = compiled("obj", pass_options=triple)
    assert isinstance(made.output, bytes)
    elf = Elf(made.output)
    assert elf.machine == machine
    section = elf.find(SECTION)
    assert section is not None
    cubin = made.stages["cubin"]
    found = {s.name: s for s in elf.symbols if s.section == section.index}
    data, size = found["cubin_of_vector_add_f32"], found["cubin_size_of_vector_add_f32"]
    assert section.data[data.value : data.value + data.size] == cubin
    assert int.from_bytes(section.data[size.value : size.value + 8], "little") == len(cubin)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no linker")
def test_a_program_links_the_object(tmp_path: Path) -> None:
    made = compiled("obj")
    assert isinstance(made.output, bytes)
    (tmp_path / "kernel.o").write_bytes(made.output)
    command = ["cc", "-shared", "-o", "kernel.so", "kernel.o"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    library = ctypes.CDLL(str(tmp_path / "kernel.so"))
    size = ctypes.c_ulong.in_dll(library, "cubin_size_of_vector_add_f32").value
    data = (ctypes.c_char * size).in_dll(library, "cubin_of_vector_add_f32").raw
    assert data == made.stages["cubin"]


def test_a_program_without_kernels_has_no_name_to_link_by() -> None:
    from tile_cudatile.bytecode.writer import write_bytecode
    from tile_cudatile.tree import Module

    data = write_bytecode(Module(), version=(13, 4))
    with pytest.raises(CompileError, match="the program has none"):
        tile_core.compile(data, "sm_90", emit="obj")

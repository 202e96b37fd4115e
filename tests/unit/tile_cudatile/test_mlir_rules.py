"""Programs in MLIR's syntax obey the rules of the language; so do those in its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tile_cudatile import print_text, read_bytecode
from unit.tile_cudatile import samples

import tile_core
from tile_core.cli.main import Application
from tile_core.cli.opt import opt
from tile_core.diagnostics import ExitCode, InputError, SourceLocation

LINES = """!p = !cuda_tile.tile<array<i64>, !cuda_tile.ptr<f32>>
!f = !cuda_tile.tile<array<i64>, f32>
!i = !cuda_tile.tile<array<i64>, i32>
"cuda_tile.module"() ({
  "cuda_tile.entry"() ({
  ^bb0(%p: !p, %f: !f, %i: !i):
    BODY
    "cuda_tile.return"() {operandSegmentSizes = array<i32: ZEROS>} : () -> ()
  }) {function_type = (!p, !f, !i) -> (), sym_name = "k"} : () -> ()
}) {sym_name = "kernels"} : () -> ()
""".replace("ZEROS", ", ".join(["0"] * 32))

STORE = (
    '"cuda_tile.store_ptr_tko"(%p, %f) {memory_ordering_semantics = "weak", EXTRA'
    "operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!p, !f) -> !cuda_tile.token"
)
GOOD = "%t = " + STORE.replace("EXTRA", "")
DIV_BY_12 = '{kind = "div_by", divisor = 12 : i64}'
BAD = {
    f'%0 = "cuda_tile.assume"(%p) {{predicate = {DIV_BY_12}}} : (!p) -> !p': (
        "divisor must be a power of 2"
    ),
    "%t = " + STORE.replace("EXTRA", 'memory_scope = "device", '): "weak",
    '%0 = "cuda_tile.addi"(%f, %f) {overflow = "none"} : (!f, !f) -> !f': (
        "'cuda_tile.addi' op operand #0 must be tile of"
    ),
    '%0 = "cuda_tile.addi"(%i, %i) {overflow = "sometimes"} : (!i, !i) -> !i': "overflow",
    '%0 = "arith.constant"() {value = 1 : i32} : () -> i32': "has no form in CUDA Tile IR",
}


def program(body: str) -> str:
    return LINES.replace("BODY", body)


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("body", BAD)
def test_a_broken_program_is_refused_at_every_level(body: str, level: int) -> None:
    with pytest.raises(InputError) as caught:
        tile_core.compile(program(body), "sm_90", opt_level=level, emit="ptx", name="k.mlir")
    assert BAD[body] in caught.value.message
    assert caught.value.exit_code == ExitCode.INPUT
    assert isinstance(caught.value.where, SourceLocation)
    assert (caught.value.where.file, caught.value.where.line) == ("k.mlir", 7)


def test_a_good_program() -> None:
    assert tile_core.compile(program(GOOD), "sm_90", emit="ptx").stage("ptx")


@pytest.mark.parametrize("body", BAD)
def test_opt_refuses_it_as_well(body: str, tmp_path: Path) -> None:
    path = tmp_path / "k.mlir"
    path.write_text(program(body))
    result = CliRunner().invoke(opt, [str(path)], obj=Application(), standalone_mode=False)
    assert isinstance(result.exception, InputError)
    assert BAD[body] in result.exception.message
    assert str(result.exception.where).startswith(f"{path}:7")


@pytest.mark.parametrize("name", samples.NAMES[:2])
def test_the_text_that_dis_prints_is_compiled(name: str) -> None:
    data = samples.sample(name)
    text = print_text(read_bytecode(data))
    made = [tile_core.compile(source, "sm_90", emit="ptx") for source in (data, text)]
    assert str(made[0].output).count("\n") > 10
    assert "visible .entry" in str(made[1].output)


def test_opt_reads_that_text(tmp_path: Path) -> None:
    path = tmp_path / "k.tileir"
    path.write_text("// as `tilec dis` has it\nentry @k(%p: tile<ptr<f32>>) {\n  return\n}\n")
    result = CliRunner().invoke(opt, [str(path)], obj=Application(), standalone_mode=False)
    assert result.exception is None
    assert '"cuda_tile.entry"' in result.output
    path.write_text(
        "entry @k(%p: tile<ptr<f32>>) {\n  %0 = addi %p, %p : tile<ptr<f32>>\n return\n}\n"
    )
    result = CliRunner().invoke(opt, [str(path)], obj=Application(), standalone_mode=False)
    assert isinstance(result.exception, InputError)

"""`tile_core.compile`: stages, starting and stopping, input formats, reuse."""

from __future__ import annotations

import threading

import pytest

import tile_core
import tile_core.api
import tile_core.registry
from tile_core.diagnostics import (
    CompileError,
    ConfigurationError,
    ExitCode,
    InputError,
    SourceLocation,
    UsageError,
)
from tile_core.hookspecs import LazyEmitter

PIPELINE = """\
[pipeline]
name = "toy"
[options.n]
type = "int"
default = 5
[[segment]]
name = "one"
nest = ["gpu.module", "func.func"]
passes = [{ pass = "toy-mark", value = "$n" }]
[[segment]]
name = "two"
nest = ["gpu.module", "func.func"]
passes = ["mlir:canonicalize", "mlir:cse"]
[emit]
chain = ["toy-text", "toy-bytes"]
[emit.options.toy-text]
prefix = "for "
"""


@pytest.fixture
def compile_toy(registry, write_pipeline, module_text):
    path = write_pipeline(PIPELINE)

    def go(source=module_text, target="sm_90", **values):
        values = {"emit": "bytes", "pipeline": path, "registry": registry} | values
        return tile_core.compile(source, target, **values)

    return go


def test_every_stage_is_there(compile_toy) -> None:
    artifact = compile_toy()
    assert list(artifact.stages) == ["tileir", "mlir:one", "mlir:two", "mlir", "text", "bytes"]
    assert "mark" not in artifact.stages["tileir"]
    assert "mark = 5" in artifact.stages["mlir:one"]
    assert "arith.addi" in artifact.stages["mlir:one"]
    assert "arith.addi" not in artifact.stages["mlir:two"]
    assert artifact.stages["text"].startswith("for sm_90\n")
    assert artifact.output == artifact.stages["text"].encode()
    *passes, serialize = artifact.timings.children
    assert [c.name for c in passes] == ["prepare", "context", "read", "one", "two"]
    assert serialize.name == "SerializeGPUModule"
    assert [c.name for c in serialize.children] == ["toy-text", "toy-bytes"]
    assert artifact.statistics == {("toy-mark", "marked"): 2}
    assert len(artifact.remarks) == 2


def test_unknown_stages_are_named(compile_toy) -> None:
    with pytest.raises(UsageError) as caught:
        compile_toy().stage("mlir:ono")
    assert "did you mean 'mlir:one'?" in str(caught.value)
    with pytest.raises(UsageError, match="no stage 'cubin'"):
        _ = compile_toy().cubin


@pytest.mark.parametrize(
    ("values", "kept", "gone"),
    [
        ({"emit": "tileir"}, ["arith.addi"], ["mark"]),
        ({"emit": "mlir"}, ["mark = 5"], ["arith.addi"]),
        ({"emit": "mlir:one"}, ["mark = 5", "arith.addi"], []),
        ({"emit": "mlir:toy-mark"}, ["mark = 5", "arith.addi"], []),
        ({"stop_after": "mlir:canonicalize"}, ["mark = 5"], ["arith.addi"]),
        ({"stop_after": "two/mlir:canonicalize"}, ["mark = 5"], ["arith.addi"]),
        ({"emit": "mlir", "start_at": "two"}, [], ["mark", "arith.addi"]),
        ({"emit": "mlir", "options": {"n": "6"}}, ["mark = 6"], []),
        ({"emit": "mlir", "pass_options": {"toy-mark.value": 8}}, ["mark = 8"], []),
        ({"stop_after": "toy-text"}, ["for sm_90", "mark = 5"], []),
        ({"emit": "mlir", "without": ["one/toy-mark"]}, [], ["mark", "arith.addi"]),
    ],
)
def test_stopping_and_starting(compile_toy, values, kept, gone) -> None:
    text = compile_toy(**values).output
    for word in kept:
        assert word in text
    for word in gone:
        assert word not in text


@pytest.mark.parametrize("end", ["stop_after", "start_at"])
@pytest.mark.parametrize(
    ("kind", "own", "change"),
    [
        ("segment", "segment:text", ('name = "two"', 'name = "text"')),
        ("pass", "one/text", ('"toy-mark",', '"toy-mark", id = "text",')),
    ],
)
def test_a_name_of_two_stages_is_refused(
    compile_toy, write_pipeline, end: str, kind: str, own: str, change: tuple[str, str]
) -> None:
    """A segment or pass that is called as what an emitter makes or takes."""
    path = write_pipeline(PIPELINE.replace(*change))
    with pytest.raises(ConfigurationError, match=f"'text' is a {kind} of") as caught:
        compile_toy(pipeline=path, **{end: "text"})
    assert f"say {own} for the {kind}, toy-" in str(caught.value.hint)
    assert compile_toy(pipeline=path, emit="mlir", **{end: own}).output


def test_every_stage_of_the_levels_has_a_name_of_its_own() -> None:
    registry = tile_core.registry.default_registry()
    emitters = [entry.lazy for entry in registry.entries("emitter")]
    made = {lazy.produces for lazy in emitters if isinstance(lazy, LazyEmitter)}
    for level in range(4):
        plan = tile_core.api.plan_for("sm_90", opt_level=level)
        assert not made & {segment.name for segment in plan.segments}


def test_what_is_no_program_is_refused_before_its_options(compile_toy) -> None:
    """As tileiras has it: the target, then how the input starts, then the level."""
    with pytest.raises(InputError, match="does not correspond to Tile IR bytecode"):
        compile_toy(b"\x00\x01", pipeline=None, opt_level=5)
    with pytest.raises(ConfigurationError, match="invalid optimization level '5'"):
        compile_toy(b"TOYx", pipeline=None, opt_level=5)
    with pytest.raises(ConfigurationError, match="sm_99 is not supported"):
        compile_toy(b"\x00\x01", target="sm_99", opt_level=5)


def test_a_stopped_compilation_can_go_on(compile_toy) -> None:
    whole = compile_toy()
    half = compile_toy(emit="mlir:one")
    rest = compile_toy(half.output, start_at="two")
    assert rest.output == whole.output
    assert compile_toy(whole.stages["text"], start_at="toy-bytes").output == whole.output
    assert compile_toy(whole.stages["text"], start_at="text").output == whole.output


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"emit": "bites"}, ["cannot emit 'bites'", "did you mean 'bytes'?"]),
        ({"emit": "mlir:ono"}, ["no segment or pass 'ono'", "did you mean 'one'?"]),
        ({"start_at": "tow"}, ["no segment or pass 'tow'", "did you mean 'two'?"]),
        ({"without": ["one/toy-mrak"]}, ["no pass 'one/toy-mrak'", "mean 'one/toy-mark'?"]),
        ({"pipeline": "toyy"}, ["there is no pipeline 'toyy'"]),
        ({"pipeline": "absent.toml"}, ["cannot read pipeline file 'absent.toml'"]),
        ({"pipeline": "tileir-listing-o3"}, ["is a listing for display"]),
        ({"target": "sm_9"}, ["GPU architecture sm_9 is not supported"]),
        ({"opt_level": 4, "pipeline": None}, ["invalid optimization level '4'"]),
        (
            {"instrumentations": ["toy-recorder=f"]},
            ["takes nothing, but is given 'f'", "--instrument toy-recorder"],
        ),
        ({"instrumentations": ["toy-recoder"]}, ["did you mean 'toy-recorder'?"]),
        ({"instrumentations": [3]}, ["3 is not an instrumentation"]),
    ],
)
def test_wrong_requests(compile_toy, values, words) -> None:
    with pytest.raises(ConfigurationError) as caught:
        compile_toy(**values)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"", ["does not correspond to Tile IR bytecode", "empty"]),
        (b"\x00\x01\x02", ["does not correspond to Tile IR bytecode", "installed readers: toy"]),
        (b"ML\xefR\x01", ["(it looks like MLIR bytecode instead)"]),
        (b"hello", ['loc("in.mlir":1:1)', "read as textual MLIR"]),
        (b"func.func @f() { return", ['loc("in.mlir":1:']),
        (b'"no.such"() : () -> ()', ["unregistered dialect"]),
        (b"TOYx", ["in.mlir: error: not a number"]),
        (b"TOY10", ["internal error in reader 'toy': IndexError: too many", "mistake in toys 0"]),
    ],
)
def test_wrong_input(compile_toy, source: bytes, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        compile_toy(source, name="in.mlir")
    assert caught.value.exit_code == ExitCode.INPUT
    for word in words:
        assert word in str(caught.value)


def test_front_ends_are_found_by_how_the_input_starts(compile_toy) -> None:
    assert compile_toy(b"TOY3", emit="mlir").output.count("mark = 5") == 3


def test_errors_of_emitters(compile_toy) -> None:
    with pytest.raises(CompileError, match="the tool refuses"):
        compile_toy("module @refuse {}")


def test_errors_in_textual_input_name_the_file(compile_toy, registry, write_pipeline) -> None:
    path = write_pipeline(PIPELINE.replace("toy-mark", "toy-fail").replace(', value = "$n"', ""))
    with pytest.raises(CompileError) as caught:
        compile_toy(pipeline=path, name="kernel.mlir")
    assert caught.value.where == SourceLocation("kernel.mlir", 3, 3)


def test_stages_outlive_the_session(compile_toy) -> None:
    first = compile_toy()
    for _ in range(3):
        compile_toy(options={"n": 1})
    assert "mark = 5" in first.stages["mlir:one"]


def test_products_are_handed_over_as_they_come(compile_toy) -> None:
    seen: list[str] = []
    with pytest.raises(CompileError):
        compile_toy("module @refuse {}", on_stage=lambda kind, product: seen.append(kind))
    assert seen == ["text"]


def test_threads_do_not_disturb_each_other(compile_toy) -> None:
    wanted = compile_toy().output
    found: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: found.extend(compile_toy().output for _ in range(5)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 20


def test_a_compilation_inside_another(compile_toy, toys) -> None:
    inner: list[bytes] = []

    class Nested(toys.Recorder):
        def before_pipeline(self, run) -> None:
            inner.append(compile_toy().output)

    outer = compile_toy(instrumentations=[Nested()])
    assert inner == [outer.output]


def test_plan_for(registry, write_pipeline) -> None:
    found = tile_core.plan_for("sm_90", pipeline=write_pipeline(PIPELINE), registry=registry)
    assert [call.name for call in found.passes()] == ["toy-mark", "mlir:canonicalize", "mlir:cse"]


@pytest.mark.parametrize("head", ["", "// a comment\n#loc = loc(unknown)\n", "!t = i32\n"])
def test_mlir_is_not_for_an_emitter_of_something_else(head: str) -> None:
    """It would be LLVM's parser that says so, of a text that is not LLVM's."""
    with pytest.raises(InputError) as caught:
        tile_core.compile(f"{head}module {{ }}\n", "sm_90", start_at="llvm", name="v.mlir")
    assert caught.value.message == "'v.mlir' is MLIR, and emitter 'ptx' takes llvm"


def test_assembly_of_a_module_is_llvms() -> None:
    text = 'module asm "// nothing"\ndefine ptx_kernel void @k() { ret void }\n'
    made = tile_core.compile(text, "sm_90", start_at="llvm", emit="ptx")
    assert ".entry k" in str(made.output)

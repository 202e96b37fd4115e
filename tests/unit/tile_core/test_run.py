"""Running plans: anchors, analyses, hooks, verification, failures, legality."""

from __future__ import annotations

import pickle

import pytest

from tile_core.diagnostics import CompileError, ConfigurationError, SourceLocation, TileError
from tile_core.pipeline.run import Run
from tile_core.session import Session

NEST = '"gpu.module", "func.func"'


def text(passes: str, nest: str = NEST, extra: str = "") -> str:
    return (
        f'[pipeline]\nname = "t"\n[[segment]]\nname = "s"\nnest = [{nest}]\n'
        f"passes = [{passes}]\n{extra}\n"
    )


def line_of(error: TileError) -> int:
    """The line of the user's source that an error names."""
    assert isinstance(error.where, SourceLocation)
    return error.where.line


@pytest.fixture
def execute(registry, planned, module_text):
    """Run a pipeline text over the toy module; the finished run."""

    def go(pipeline: str, source: str = module_text, **values) -> Run:
        session = Session(registry)
        run = Run(planned(pipeline), session, session.parse(source), **values)
        run.execute()
        return run

    return go


def test_passes_run_on_every_anchor(execute) -> None:
    run = execute(text('{ pass = "toy-mark", value = 7 }'))
    assert str(run.module).count("mark = 7 : i32") == 2
    assert run.statistics == {("toy-mark", "marked"): 2}
    assert [(r.function, r.kind, r.pass_name) for r in run.remarks] == [
        ("a", "missed", "toy-mark"),
        ("b", "missed", "toy-mark"),
    ]
    assert run.remarks[0].where.line == 3


def test_upstream_passes_run_in_place(execute) -> None:
    run = execute(text('"mlir:canonicalize", "mlir:cse"'))
    assert "arith.addi" not in str(run.module)


@pytest.mark.parametrize(
    ("nest", "count"), [('"*", "func.func"', 2), ('"gpu.module", "*", "func.func"', 2),
                        ('"func.func"', 0), ('"nothing.here", "func.func"', 0)]
)  # fmt: skip
def test_anchors(execute, nest: str, count: int) -> None:
    assert str(execute(text('"toy-mark"', nest)).module).count("mark = 1") == count


def test_anchors_must_be_isolated(execute) -> None:
    source = "func.func @f(%c: i1) { scf.if %c { } return }"
    with pytest.raises(
        ConfigurationError, match="nested pipeline anchor must be IsolatedFromAbove"
    ):
        execute(text('"mlir:cse"', '"func.func", "scf.if"'), source)


def test_analyses_are_made_once_until_a_pass_drops_them(execute, toys) -> None:
    toys.CountOps.made.clear()
    execute(text('"toy-look", "toy-look"'))
    assert toys.CountOps.made == ["func.func", "func.func"]
    toys.CountOps.made.clear()
    execute(text('"toy-look", "toy-mark", "toy-look", "mlir:cse", "toy-look"'))
    assert len(toys.CountOps.made) == 6
    toys.CountOps.made.clear()
    execute(text('"toy-look", { pass = "toy-mark", preserve = ["CountOps"] }, "toy-look"'))
    assert len(toys.CountOps.made) == 2


def test_published_results_reach_the_pass_that_requires_them(execute) -> None:
    run = execute(text('"toy-publish", { pass = "mlir:cse", preserve = ["Plan"] }, "toy-require"'))
    assert 'plan = "a"' in str(run.module)
    assert 'plan = "b"' in str(run.module)


def test_hooks_come_in_order_and_go_in_reverse(execute, toys) -> None:
    toys.Recorder.log.clear()
    watchers = [toys.Recorder("A "), toys.Recorder("B ")]
    source = "gpu.module @k { func.func @a() { return } }"
    execute(text('"toy-look", "mlir:cse"'), source, instrumentations=watchers)
    assert toys.Recorder.log == [
        "A before-pipeline", "B before-pipeline",
        "A before toy-look", "B before toy-look",
        "A before CountOps", "B before CountOps", "B after CountOps", "A after CountOps",
        "B after toy-look", "A after toy-look",
        "A before mlir:cse", "B before mlir:cse", "B after mlir:cse", "A after mlir:cse",
        "B after-pipeline", "A after-pipeline",
    ]  # fmt: skip


def test_a_failing_pass_is_only_seen_to_fail(execute, toys) -> None:
    toys.Recorder.log.clear()
    with pytest.raises(CompileError) as caught:
        execute(text('"toy-fail", "toy-mark"'), instrumentations=[toys.Recorder()])
    assert toys.Recorder.log == [
        "before-pipeline", "before toy-fail", "failed toy-fail", "before toy-fail",
        "failed toy-fail", "pipeline-failed",
    ]  # fmt: skip
    assert caught.value.message == "'func.func' op cannot be done"
    assert line_of(caught.value) == 3
    assert caught.value.hint == "try something else"
    assert caught.value.notes == ("in pass 'toy-fail' on 'func.func' @a",)


def test_every_function_is_told_what_is_wrong(execute) -> None:
    """Passes go on with the functions that have not failed, to the end of the segment."""
    with pytest.raises(CompileError) as caught:
        execute(
            text('{ pass = "toy-fail-on", only = "a" }, { pass = "toy-fail-on", only = "b" }, '
                 '{ pass = "toy-fail-on", only = "b", id = "again" }')
        )  # fmt: skip
    error = caught.value
    assert error.message == "'func.func' op is called a"
    assert error.notes == ("in pass 'toy-fail-on' on 'func.func' @a",)
    assert [(e.message, line_of(e)) for e in error.also] == [("'func.func' op is called b", 8)]
    assert [line for line in str(error).splitlines() if "error:" in line] == [
        "loc(\"-\":3:3): error: 'func.func' op is called a",
        "loc(\"-\":8:3): error: 'func.func' op is called b",
    ]
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)


def test_the_next_segment_does_not_run(execute) -> None:
    more = f'[[segment]]\nname = "u"\nnest = [{NEST}]\npasses = ["toy-fail-on"]'
    with pytest.raises(CompileError) as caught:
        execute(text('{ pass = "toy-fail-on", only = "a" }', extra=more))
    assert not caught.value.also


def test_a_pass_may_go_on_behind_its_errors(execute) -> None:
    """A soft failure: all that is wrong is reported, and the run fails."""
    with pytest.raises(CompileError) as caught:
        execute(text('"toy-complain"'))
    error = caught.value
    assert error.message == "'arith.constant' op is not liked"
    assert [e.message for e in error.also] == [
        "'arith.addi' op is not liked", "'func.return' op is not liked",
        "'func.return' op is not liked",
    ]  # fmt: skip


def test_mistakes_of_passes_are_named(execute) -> None:
    with pytest.raises(CompileError) as caught:
        execute(text('{ pass = "toy-fail", how = "bug" }'))
    assert "internal error in pass 'toy-fail': ZeroDivisionError: a mistake" in str(caught.value)
    assert "toys 0" in (caught.value.hint or "")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_reported_errors_fail_the_run(execute) -> None:
    with pytest.raises(CompileError, match="reported, not raised") as caught:
        execute(text('{ pass = "toy-fail", how = "emit" }'))
    assert line_of(caught.value) == 3


def test_errors_of_upstream_passes_keep_their_place(execute) -> None:
    source = """func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = builtin.unrealized_conversion_cast %a : tensor<4xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
    with pytest.raises(CompileError, match="op was not bufferized") as caught:
        execute(text('"mlir:one-shot-bufferize", "mlir:cse"', ""), source, verify="pass")
    assert line_of(caught.value) == 2
    assert "mlir:one-shot-bufferize" in caught.value.notes[-1]
    with pytest.raises(CompileError) as caught:  # run as one, they are named together
        execute(text('"mlir:one-shot-bufferize", "mlir:cse"', ""), source)
    assert "in pass 'mlir:one-shot-bufferize,mlir:cse' on" in caught.value.notes[-1]


def test_verification_names_the_pass_or_the_segment(execute, toys) -> None:
    broken = text('{ pass = "toy-fail", how = "invalid" }, "toy-mark"')
    with pytest.raises(CompileError, match="between-pass verifier rejected IR after 'toy-fail'"):
        execute(broken, verify="pass")
    with pytest.raises(CompileError, match="verifier rejected IR after segment 's'"):
        execute(broken)
    execute(broken, verify="none")
    toys.Recorder.log.clear()
    with pytest.raises(CompileError):
        execute(broken, verify="pass", instrumentations=[toys.Recorder()])
    assert "failed toy-fail" in toys.Recorder.log


@pytest.mark.parametrize(
    ("dialect", "source", "words"),
    [
        ("arith", None, ["'arith.constant' op survived segment 's', which removes 'arith'"]),
        (
            "llvm",
            "gpu.module @k { func.func @f(%p: !llvm.ptr) { return } }",
            ["has block argument type !llvm.ptr after segment 's'"],
        ),
        (
            "gpu",
            "func.func @f() attributes {x = #gpu.address_space<global>} { return }",
            ["'func.func' op has attribute 'x' #gpu.address_space"],
        ),
    ],
)
def test_removed_dialects_are_checked(execute, module_text, dialect, source, words) -> None:
    with pytest.raises(CompileError) as caught:
        execute(text("", extra=f'removes = ["{dialect}"]'), source or module_text)
    for word in words:
        assert word in str(caught.value)
    assert caught.value.where is not None


def test_names_of_attributes_may_carry_a_removed_dialect(execute) -> None:
    source = 'func.func @f() attributes {llvm.note = "#llvm.x"} { return }'
    execute(text("", extra='removes = ["arith", "scf"]'), source)
    execute(text("", extra='removes = ["llvm"]'), source.replace("#llvm.x", "y"))


def test_times_form_a_tree(execute) -> None:
    run = execute(text('"toy-module"', "") + '[[segment]]\nname = "u"\npasses = []\n')
    (segment, empty) = run.clock.root.children
    assert (segment.name, segment.kind, empty.name) == ("s", "segment", "u")
    (one,) = segment.children
    assert (one.name, one.kind) == ("toy-module", "pass")
    assert [c.name for c in one.children] == ["thinking"]
    assert segment.wall >= one.wall >= one.children[0].wall >= 0


def test_two_runs_give_the_same_bytes(execute) -> None:
    pipeline = text('"toy-mark", "mlir:canonicalize", "toy-look", "mlir:cse"')
    first, second = execute(pipeline), execute(pipeline)
    assert str(first.module) == str(second.module)
    assert first.remarks == second.remarks


def test_undeclared_statistics_and_results_are_mistakes(execute, registry, planned) -> None:
    run = execute(text('"toy-look"'))
    with pytest.raises(TypeError):
        run.count("nothing", 1)
    with pytest.raises(TypeError):
        run.publish("Plan", run.module.operation, 1)
    with pytest.raises(TileError, match="invalidated Plan"):
        run.published("Plan", run.module.operation)

"""Accesses to multicast memory: the code that is made, and what is refused.

They need several GPUs, so that they do not run here.
"""

import numpy as np
import pytest
from support.programs import I32, Program
from tile_cudatile import types as t

from tile_core.diagnostics import CompileError

INTEGER = {
    "add": "add.u", "min": "min.s", "max": "max.s", "umin": "min.u", "umax": "max.u",
    "and": "and.b", "or": "or.b", "xor": "xor.b",
}  # fmt: skip
WEAK = {"memory_ordering_semantics": "weak"}
RELAXED = {"memory_ordering_semantics": "relaxed", "memory_scope": "sys"}
PADDED = "zero"


def view_of(p, element, shape=(64,)):
    tensor = t.TensorView(element, (1000,), (1,), "multicast")
    base = p.argument(t.Tile((), t.Pointer(element, "multicast")))
    view = p.emit("make_tensor_view", [base, (), ()], tensor)
    return p.emit("make_partition_view", [view], t.PartitionView(shape, tensor, (0,), PADDED))


def load_reduce(element, reduction, **order):
    p = Program()
    index = (p.argument(I32),)
    x = p.emit(
        "multimem_load_reduce_view_tko", [view_of(p, element), index], t.Tile((64,), element),
        t.TOKEN, reduction=reduction, **order,
    )  # fmt: skip
    p.store(x, (64,), element)
    return p


def update(name, element, **attrs):
    p = Program()
    x = p.load((64,), element)
    p.emit(f"multimem_{name}_view_tko", [view_of(p, element), x, (p.argument(I32),)], t.TOKEN,
           **attrs)  # fmt: skip
    return p


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("reduction", INTEGER)
def test_integers(reduction, width):
    element = {32: t.I32, 64: t.I64}[width]
    word = f"{INTEGER[reduction]}{width}"
    assert f"multimem.ld_reduce.weak.global.{word}" in load_reduce(element, reduction, **WEAK).ptx()
    ptx = update("reduce", element, reduction=reduction, **RELAXED).ptx("sm_100")
    assert f"multimem.red.relaxed.sys.global.{word}" in ptx


@pytest.mark.parametrize(
    ("element", "reduction", "word"),
    [
        (t.F32, "add", "add.f32"),
        (t.F64, "add", "add.f64"),
        (t.F16, "add", "add.acc::f32.f16x2"),
        (t.BF16, "max", "max.bf16x2"),
    ],
)
def test_floats(element, reduction, word):
    order = {"memory_ordering_semantics": "acquire", "memory_scope": "device"}
    ptx = load_reduce(element, reduction, **order).ptx()
    assert f"multimem.ld_reduce.acquire.gpu.global.{word}" in ptx
    if reduction == "add":
        plain = word.replace(".acc::f32", "")
        ptx = update("reduce", element, reduction="add", **RELAXED).ptx()
        assert f"multimem.red.relaxed.sys.global.{plain}" in ptx


def test_stores():
    order = {"memory_ordering_semantics": "release", "memory_scope": "sys"}
    assert "multimem.st.release.sys.global.b64" in update("store", t.F64, **order).ptx()
    halves = update("store", t.F16, **WEAK).ptx()
    assert halves.index("multimem.red.relaxed.sys.global.and.b32") < halves.index(
        "multimem.red.relaxed.sys.global.or.b32"
    )


def test_one_thread_of_those_that_hold_an_element_acts():
    """64 elements, 128 threads: the instruction stands under a predicate."""
    ptx = update("reduce", t.I32, reduction="add", **RELAXED).ptx()
    lines = [line.strip() for line in ptx.splitlines() if "multimem.red" in line]
    assert lines
    assert all(line.startswith("@%p") for line in lines)


def test_what_has_no_instruction_is_refused():
    with pytest.raises(CompileError, match="needs multicast memory, which sm_89 lacks"):
        load_reduce(t.F32, "add", **WEAK).ptx("sm_89")
    with pytest.raises(CompileError, match="stores f16 to multicast memory with memory ordering"):
        update("store", t.F16, **RELAXED).ptx()


def test_the_evaluator_says_why_it_does_not_run_them():
    import tile_cudatile
    from tile_cudatile.evaluator import EvaluationError

    program = load_reduce(t.F32, "add", **WEAK)
    with pytest.raises(EvaluationError, match="needs several GPUs"):
        tile_cudatile.evaluate(
            program.module(), "k", (1,), [np.int32(0), np.zeros(1000, "f"), np.zeros(64, "f")]
        )

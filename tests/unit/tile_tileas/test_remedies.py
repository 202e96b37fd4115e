"""Remarks of whole kernels: nothing is mute, and each refusal says what would change it."""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable
from functools import cache
from pathlib import Path

import pytest
import tile_tileas
import yaml
from support.tiles import registry
from tile_tileas.remedies import REMEDIES, remedy

import tile_core
from tile_core.remarks import Remark, as_yaml

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = Path(tile_tileas.__file__).parent
KERNELS = [
    ("vector_add_tail_f32", "sm_90"), ("matmul_f16", "sm_100"), ("matmul_f32", "sm_80"),
    ("softmax_f32", "sm_80"), ("layer_norm_backward_f16", "sm_120"), ("attention_f16", "sm_90"),
]  # fmt: skip
MOVES = {"LoadInstructionSelected", "StoreInstructionSelected"}
#: The best form of each: nothing better could be refused.
BEST = re.compile(r"TMA|wgmma|tcgen05")


@cache
def remarks(name: str, target: str) -> list[Remark]:
    data = (ROOT / "examples" / "bytecode" / f"{name}.tileirbc").read_bytes()
    made = tile_core.compile(data, target, registry=registry(), keep_stages=False)
    return list(made.remarks)


@pytest.mark.parametrize(("name", "target"), KERNELS)
def test_what_was_missed_has_a_reason_and_a_remedy(name: str, target: str) -> None:
    for remark in remarks(name, target):
        if remark.kind == "missed" and remark.category != "occupancy":
            assert remark.reasons or ": " in remark.message, remark
            assert remark.hint, remark


@pytest.mark.parametrize(("name", "target"), KERNELS)
def test_every_choice_that_is_not_the_best_says_why(name: str, target: str) -> None:
    told = [remark for remark in remarks(name, target) if remark.name in MOVES]
    assert told
    plain = [r for r in told if dict(r.facts)["Instruction"] in ("ld.global", "st.global")]
    # Loads that a pass has split or moved since are told by that pass, at the same place.
    elsewhere = {r.where for r in remarks(name, target) if r.kind == "missed"}
    for remark in plain:
        assert remark.reasons or remark.where in elsewhere, remark


@pytest.mark.parametrize(("name", "target"), KERNELS)
def test_the_yaml_is_that_of_optimization_records(name: str, target: str) -> None:
    class Loader(yaml.SafeLoader):
        pass

    def mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Hashable, object]:
        return dict(loader.construct_mapping(node, deep=True))

    for tag in ("Passed", "Missed", "Failure", "Analysis"):
        Loader.add_constructor(f"!{tag}", mapping)  # pyright: ignore[reportArgumentType]
    text = as_yaml(remarks(name, target))
    documents = list(yaml.load_all(text, Loader))
    assert len(documents) == len(remarks(name, target))
    for number, document in enumerate(documents, 1):
        assert {"Pass", "Name", "Function", "Args"} <= set(document)
        assert document["Name"].startswith("Remark")
        assert document["Args"][0] == {"RemarkId": number}


def said_in(file: str) -> list[str]:
    """The texts that a file's functions yield or return, with a word for each value in them."""
    found: list[str] = []
    for node in ast.walk(ast.parse((PACKAGE / file).read_text())):
        value = node.value if isinstance(node, (ast.Yield, ast.Return)) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            found.append(value.value)
        elif isinstance(value, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "16" for p in value.values)
            found.append("".join(map(str, parts)))
    return [text for text in found if " " in text]


#: Refusals that a kernel's author cannot change: they tell of what an earlier pass made.
INTERNAL = (
    "it is no plain load", "the buffer", "works on the buffer", "several threads hold",
    "the access has no plan", "a product reads swizzled rows",
)  # fmt: skip


@pytest.mark.parametrize("file", ["tma/refusals.py", "tma/benefit.py", "pipelining/prefetch.py"])
def test_every_refusal_has_a_remedy(file: str) -> None:
    texts = said_in(file)
    assert len(texts) > 3
    mute = [t for t in texts if not remedy([t]) and not any(words in t for words in INTERNAL)]
    assert not mute


def test_remedies_are_found_by_the_first_row_that_fits() -> None:
    assert remedy(["unknown", "the access is ordered"]) == dict(REMEDIES)["the access is ordered"]
    assert remedy(["unknown"]) == remedy([]) == ""

"""Recipes of tensor maps: what they compute, against the simulator's encoder, and their text."""

from __future__ import annotations

import random

import pytest
from tile_cute.map_recipe import (
    OPERATIONS,
    WIDENING,
    Apply,
    Argument,
    Constant,
    Expression,
    MapRecipe,
    evaluate,
)
from tile_cute.tensor_map import TYPE_BY_NAME
from tile_sim import TensorMap

ARGUMENTS = tuple(Argument(at, 64) for at in range(10))


def recipe(**changed: object) -> MapRecipe:
    fields: dict[str, object] = {
        "kernel": "k", "parameter": 3, "type": "f16", "address": ARGUMENTS[0],
        "dims": ARGUMENTS[1:3], "strides": ARGUMENTS[6:7], "box": (64, 8), "swizzle": "128B",
    }  # fmt: skip
    return MapRecipe(**{**fields, **changed})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("seed", range(40))
def test_words_are_those_of_the_encoder(seed: int) -> None:
    draw = random.Random(seed)
    rank = draw.randint(1, 5)
    kind = draw.choice(["u8", "u16", "u32", "u64", "f16", "bf16", "f32", "tf32", "f64"])
    dims = [draw.randint(1, 1 << draw.randint(1, 31)) for _ in range(rank)]
    strides = [16 * draw.randint(1, 1 << draw.randint(1, 30)) for _ in range(rank - 1)]
    inner = 16 * 8 // TYPE_BY_NAME[kind].bits
    box = (inner, *(draw.randint(1, 256) for _ in range(rank - 1)))
    address = draw.getrandbits(52) << 4
    made = recipe(
        type=kind, dims=ARGUMENTS[1 : 1 + rank], strides=ARGUMENTS[6 : 5 + rank], box=box,
        swizzle=draw.choice(["none", "32B", "64B", "128B"]),
    )  # fmt: skip
    values = dict(zip(ARGUMENTS, [address, *dims, *[0] * (5 - rank), *strides], strict=False))
    encoder = TensorMap(
        None, box, tuple(dims), tuple(strides), type=kind, swizzle=made.swizzle
    )  # fmt: skip
    expected = encoder.encode(address)
    words = b"".join(word.to_bytes(8, "little") for word in made.words(lambda a: values[a]))
    assert words == expected[:64]
    assert not any(expected[64:])


#: Extents and strides of launches with rows of 16 bytes, 32 of them to a box, and whether its box
#: is one run then.
LAUNCHES = [
    ((16, 32, 7, 9), (16, 512, 4096), True),
    ((16, 48, 7, 9), (16, 1024, 512), True),
    ((16, 24, 7, 9), (16, 512, 4096), False),
    ((8, 32, 7, 9), (16, 512, 4096), False),
    ((16, 32, 7, 9), (32, 1024, 4096), False),
    ((16, 32, 0, 9), (16, 512, 4096), False),
    ((0, 32, 7, 9), (16, 512, 4096), False),
]


@pytest.mark.parametrize(("dims", "strides", "is_run"), LAUNCHES)
@pytest.mark.parametrize("joined", [2, 3])
def test_boxes_that_are_one_run_have_long_rows(
    dims: tuple[int, ...], strides: tuple[int, ...], is_run: bool, joined: int
) -> None:
    """Three dimensions are a run of four tiles if these follow each other, too."""
    box = (16, 32, 4, 2)
    made = recipe(
        type="u8", dims=ARGUMENTS[1:5], strides=ARGUMENTS[6:9], box=box, swizzle="none",
        joined=joined,
    )  # fmt: skip
    values = dict(zip(ARGUMENTS, [1 << 20, *dims, 0, *strides], strict=False))
    if is_run and joined == 2:
        dims, strides, box = (256, 2, *dims[2:]), (256, *strides[1:]), (256, 2, 4, 2)
    elif is_run and strides[1] == 512:
        dims, strides, box = (256, 8, 1, dims[3]), (256, 2048, strides[2]), (256, 8, 1, 2)
    if not all(dims):
        dims = tuple(extent or 1 << 32 for extent in dims)
    encoder = TensorMap(None, box, dims, strides, type="u8", swizzle="none")
    words = made.words(lambda argument: values[argument])
    found = b"".join(word.to_bytes(8, "little") for word in words)
    large = 85  # of what is there: extents of 0 are counted as they are
    mask = ~(1 << large)
    expected = int.from_bytes(encoder.encode(1 << 20)[:64], "little")
    assert int.from_bytes(found, "little") & mask == expected & mask
    assert MapRecipe.from_json(made.to_json()) == made


def test_an_extent_of_zero_is_stored_as_all_ones() -> None:
    values = {ARGUMENTS[0]: 0, ARGUMENTS[1]: 0, ARGUMENTS[2]: 4, ARGUMENTS[6]: 64}
    assert recipe().words(lambda a: values[a])[4] == 3 << 32 | 0xFFFFFFFF


EXPRESSIONS: list[tuple[Expression, int]] = [
    (Constant(-1), (1 << 64) - 1),
    (Argument(0, 8), 0xFE),
    (Apply("extsi", 8, (Argument(0, 8),)), (1 << 64) - 2),
    (Apply("trunci", 8, (Constant(0x1FF),)), 0xFF),
    (Apply("muli", 32, (Constant(1 << 31), Constant(2))), 0),
    (Apply("divsi", 32, (Constant(-7), Constant(2))), (1 << 32) - 3),
    (Apply("divsi", 32, (Constant(5), Constant(0))), 0),
    (Apply("divui", 32, (Constant(-1), Constant(2))), 0x7FFFFFFF),
    (Apply("minsi", 16, (Constant(-1), Constant(1))), 0xFFFF),
    (Apply("minui", 16, (Constant(-1), Constant(1))), 1),
    (Apply("shli", 32, (Constant(1), Constant(32))), 0),
    (Apply("subi", 64, (Constant(0), Constant(1))), (1 << 64) - 1),
]


@pytest.mark.parametrize(("expression", "value"), EXPRESSIONS)
def test_arithmetic_wraps_at_its_width(expression: Expression, value: int) -> None:
    assert evaluate(expression, lambda _: 0xFE) == value


def test_text_is_read_back() -> None:
    for name in OPERATIONS:
        one = name in (*WIDENING, "trunci")
        operands = (Argument(2, 32),) if one else (Argument(2, 32), Constant(-5))
        made = recipe(address=Apply(name, 32, operands))
        assert MapRecipe.from_json(made.to_json()) == made


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        recipe().to_json().replace('"kernel"', '"colonel"'),
        recipe().to_json().replace('{"arg":0,"bits":64}', '{"arg":-1,"bits":64}'),
        recipe().to_json().replace('{"arg":0,"bits":64}', '["powi",64,2,3]'),
        recipe().to_json().replace('{"arg":0,"bits":64}', '["addi",64,2]'),
        recipe().to_json().replace('{"arg":0,"bits":64}', "true"),
        recipe().to_json().replace('"f16"', '"f17"'),
        recipe().to_json().replace("[64,8]", "[64]"),
        recipe().to_json().replace("[64,8]", "[64,257]"),
        recipe(swizzle="none").to_json()[:-1] + ',"joined":1}',
        recipe(swizzle="none").to_json()[:-1] + ',"joined":3}',
        recipe().to_json()[:-1] + ',"joined":2}',
        recipe().to_json().replace('{"arg":0,"bits":64}', "[" * 5000 + "]" * 5000),
    ],
)
def test_what_is_no_recipe_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no recipe of a tensor map"):
        MapRecipe.from_json(text)

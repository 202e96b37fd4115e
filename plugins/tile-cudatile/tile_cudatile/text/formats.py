"""The assembly of each operation, from which printer and parser work.

Besides literal text:

| | |
|---|---|
| `$x`, `$x*` | an operand; a variadic group, separated by commas |
| `!x`, `!x*` | its type, or a result's; the types of a group |
| `!!x` | the common type of a group's values, written once |
| `&x` | the types of view indices: one if all are equal, else each; behind a comma |
| `@x` | an attribute's value |
| `?x` | the name of a unit attribute, if set, behind a space |
| `~x` | `rounding<..>`, unless it is the default of the operation |
| `^x` | ` x<..>`, unless it is the attribute's default |
| `%x` | an enumeration in a dictionary of attributes, unless it is the default |
| `{..}` | only if the operand or attribute inside is present |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

_MEMORY = " @memory_ordering_semantics{ @memory_scope}"
_HINTS = "{ optimization_hints = @optimization_hints}"
_MULTI_PLAIN = "{ token = $token} {inbounds = @inbounds} : "
_MULTI = "{ token = $token} {inbounds = @inbounds}%reduction : "
_UNARY = " $source : !result"
_BINARY = " $lhs, $rhs : !result"
_CAST = " $source : !source -> !result"

FORMATS: dict[str, str] = {
    **dict.fromkeys(
        (
            "absf",
            "absi",
            "negf",
            "ceil",
            "floor",
            "cos",
            "cosh",
            "sin",
            "sinh",
            "tan",
            "log",
            "log2",
        ),
        _UNARY,
    ),
    **dict.fromkeys(("exp", "tanh"), " $source ~rounding_mode : !result"),
    **dict.fromkeys(("exp2", "rsqrt"), " $source?flush_to_zero : !result"),
    "sqrt": " $source ~rounding_mode?flush_to_zero : !result",
    **dict.fromkeys(
        ("addf", "subf", "mulf", "divf"), " $lhs, $rhs ~rounding_mode?flush_to_zero : !result"
    ),
    "fma": " $lhs, $rhs, $acc ~rounding_mode?flush_to_zero : !result",
    **dict.fromkeys(("maxf", "minf"), " $lhs, $rhs?flush_to_zero?propagate_nan : !result"),
    **dict.fromkeys(("remf", "andi", "ori", "xori"), _BINARY),
    "fpowf": " $source, $exponent : !result",
    "fpowi": " $source, $exponent : !source, !exponent",
    **dict.fromkeys(("atan2", "mulhii"), " $x, $y : !result"),
    "cmpf": " @comparison_predicate @comparison_ordering $lhs, $rhs : !lhs -> !result",
    "cmpi": " @comparison_predicate $lhs, $rhs, @signedness : !lhs -> !result",
    "negi": " $source^overflow : !result",
    **dict.fromkeys(("addi", "subi", "muli", "shli"), " $lhs, $rhs^overflow : !result"),
    **dict.fromkeys(("maxi", "mini", "remi", "shri"), " $lhs, $rhs @signedness : !result"),
    "divi": " $lhs, $rhs @signedness^rounding : !result",
    "mmaf": " $lhs, $rhs, $acc?fast_acc : !lhs, !rhs, !acc",
    "mmai": " $lhs, $rhs, $acc @signedness_lhs @signedness_rhs : !lhs, !rhs, !acc",
    "mmaf_scaled": " $lhs, $rhs, $acc, $lhs_scale, $rhs_scale : "
    "!lhs, !rhs, !acc, !lhs_scale, !rhs_scale",
    **dict.fromkeys(
        (
            "bitcast",
            "int_to_ptr",
            "ptr_to_int",
            "ptr_to_ptr",
            "broadcast",
            "reshape",
            "pack",
            "unpack",
        ),
        _CAST,
    ),
    "exti": " $from @signedness : !from -> !to",
    "trunci": " $from^overflow : !from -> !to",
    "ftof": " $from ~rounding_mode : !from -> !to",
    "ftoi": " $from @signedness ~rounding_mode?saturating : !from -> !to",
    "itof": " $from @signedness ~rounding_mode : !from -> !to",
    "iota": " : !result",
    "permute": " $source @permutation : !source -> !result",
    "cat": " $lhs, $rhs dim = @dim : !lhs, !rhs -> !result",
    "extract": " $source[$indices*] : !source -> !result",
    "insert": " $source, $destination[$indices*] : !source, !destination",
    "select": " $cond, $val_if_true, $val_if_false : !cond, !result",
    "offset": " $ptr, $offset : !ptr, !offset -> !result",
    "get_tile_block_id": " : !blockId_x",
    "get_num_tile_blocks": " : !gridSize_x",
    "get_global": " @name : !result",
    "assume": " @predicate, $value : !value",
    "constant": " @value",
    **dict.fromkeys(
        ("make_partition_view", "make_strided_view", "make_gather_scatter_view"),
        " $tensor_view : !result",
    ),
    **dict.fromkeys(("get_tensor_shape", "get_index_space_shape"), " $src : !src -> !!result"),
    "load_view_tko": f"{_MEMORY} $view[$index*]{{ token = $token}}"
    f"{_HINTS}{{ inbounds = @inbounds}} : !view&index -> !tile, !result_token",
    "store_view_tko": f"{_MEMORY} $tile, $view[$index*]{{ token = $token}}"
    f"{_HINTS}{{ inbounds = @inbounds}} : !tile, !view&index -> !result_token",
    "load_ptr_tko": f"{_MEMORY} $source{{, $mask}}{{, $paddingValue}}{{ token=$token}}{_HINTS} : "
    "!source{, !mask}{, !paddingValue} -> !result, !result_token",
    "store_ptr_tko": f"{_MEMORY} $destination, $value{{, $mask}}{{ token=$token}}{_HINTS} : "
    "!destination, !value{, !mask} -> !result_token",
    "atomic_cas_tko": f"{_MEMORY} $pointers, $cmp, $val{{, $mask}}{{ token=$token}} : "
    "!pointers, !val{, !mask} -> !result, !result_token",
    "atomic_rmw_tko": f"{_MEMORY} $pointers, @mode, $arg{{, $mask}}{{ token=$token}} : "
    "!pointers, !arg{, !mask} -> !result, !result_token",
    "atomic_red_view_tko": f"{_MEMORY} $view[$index*], @mode, $value{{ token = $token}}"
    "{ inbounds = @inbounds} : !value, !view&index -> !result_token",
    "multimem_load_reduce_view_tko": f"{_MEMORY} $view[$index*]{_MULTI}"
    "!view&index{, !token} -> !reduced_values, !result_token",
    "multimem_reduce_view_tko": f"{_MEMORY} $view, $tile[$index*]{_MULTI}"
    "!view, !tile&index{, !token} -> !result_token",
    "multimem_store_view_tko": f"{_MEMORY} $view, $tile[$index*]{_MULTI_PLAIN}"
    "!view, !tile&index{, !token} -> !result_token",
    "make_token": " : !result",
    "join_tokens": " $tokens* : !result",
    **dict.fromkeys(
        ("gdc_launch_dependents_tko", "gdc_wait_tko"), "{ token = $token} -> !result_token"
    ),
    "memory_fence_alias_tko": " $token",
    "alloca": " num_elem = @num_elem, alignment = @alignment?global : !result",
    "print_tko": " @str{, $args*}{ token=$token}{ : !args*} -> !result_token",
    "assert": " $condition, @message : !condition",
    **dict.fromkeys(("break", "continue", "return", "yield"), "{ $operands* : !operands*}"),
}

#: The rounding mode that is not written.
DEFAULT_ROUNDING = {"exp": "full", "tanh": "full", "ftoi": "nearest_int_to_zero"}


@dataclass(frozen=True)
class Item:
    """A piece of a format; `kind` is its sigil, or `text`, or `group`."""

    kind: str
    name: str
    items: tuple[Item, ...] = ()


_TOKEN = re.compile(r"\$\w+\*?|!!\w+|!\w+\*?|[&@?~^%]\w+|\{|\}|[^$!&@?~^%{}]+")


@cache
def format_items(name: str) -> tuple[Item, ...] | None:
    """The pieces of an operation's format; None if it is written by code of its own."""
    text = FORMATS.get(name)
    if text is None:
        return None
    items, end = _parse(_TOKEN.findall(text), 0)
    assert end == len(_TOKEN.findall(text)), name
    return items


def _parse(tokens: list[str], start: int) -> tuple[tuple[Item, ...], int]:
    items: list[Item] = []
    position = start
    while position < len(tokens) and tokens[position] != "}":
        token = tokens[position]
        position += 1
        if token == "{":
            inner, position = _parse(tokens, position)
            position += 1
            items.append(Item("group", "", inner))
        elif token.startswith("!!"):
            items.append(Item("!!", token[2:]))
        elif token[0] in "$!&@?~^%":
            kind = token[0] + ("*" if token.endswith("*") else "")
            items.append(Item(kind, token[1:].rstrip("*")))
        else:
            items.append(Item("text", token))
    return tuple(items), position

"""The enumerations of CUDA Tile IR: position in the tuple is the value in bytecode."""

from __future__ import annotations

SIGNEDNESS = ("unsigned", "signed")
OVERFLOW = ("none", "no_signed_wrap", "no_unsigned_wrap", "no_wrap")
ROUNDING = (
    "nearest_even",
    "zero",
    "negative_inf",
    "positive_inf",
    "approx",
    "full",
    "nearest_int_to_zero",
    "nearest_away",
)
ORDERING = ("unordered", "ordered")
PREDICATE = (
    "equal",
    "not_equal",
    "less_than",
    "less_than_or_equal",
    "greater_than",
    "greater_than_or_equal",
)
RMW_MODE = ("and", "or", "xor", "add", "addf", "max", "min", "umax", "umin", "xchg")
SCOPE = ("tl_blk", "device", "sys")
SEMANTICS = ("weak", "relaxed", "acquire", "release", "acq_rel")
VISIBILITY = ("public", "private")
REDUCTION = ("add", "min", "max", "and", "or", "xor", "umin", "umax")

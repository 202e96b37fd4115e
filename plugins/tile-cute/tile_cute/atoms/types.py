"""Element types as PTX spells them, with their bits in memory and in MMA registers."""

BITS: dict[str, int] = {
    "b1": 1,
    "s4": 4,
    "u4": 4,
    "e2m1": 4,
    "e2m3": 6,
    "e3m2": 6,
    "s8": 8,
    "u8": 8,
    "e4m3": 8,
    "e5m2": 8,
    "ue8m0": 8,
    "ue4m3": 8,
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "f32": 32,
    "s32": 32,
    "f64": 64,
}

FP8 = ("e4m3", "e5m2")
NARROW_FLOATS = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")  # kind f8f6f4: byte containers
INT8 = ("s8", "u8")
INT4 = ("s4", "u4")

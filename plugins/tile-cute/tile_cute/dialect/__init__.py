"""The `cute` and `cute_nvgpu` dialects."""


def load() -> None:
    """Declare `cute` in the current context."""
    from tile_cute.dialect import algebra_ops, fragment_ops, sugar_ops, view_ops  # noqa: F401
    from tile_cute.dialect.base import Cute

    Cute.load()


def load_nvgpu() -> None:
    """Declare `cute_nvgpu`, and `cute` on which it builds, in the current context."""
    from tile_cute.dialect import nvgpu_ops  # noqa: F401
    from tile_cute.dialect.base import CuteNvgpu

    load()
    CuteNvgpu.load()

"""The `cutlass` dialect."""


def load() -> None:
    """Declare `cutlass`, and `cute` which its values point into, in the current context."""
    from tile_cute.cutlass.dialect import ops  # noqa: F401
    from tile_cute.cutlass.dialect.types import Cutlass
    from tile_cute.dialect import load_nvgpu

    load_nvgpu()
    Cutlass.load()

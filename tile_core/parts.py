"""Programs of several `gpu.module`s: each is compiled by itself, for the target that it carries.

    builtin.module {
      gpu.module @a [#nvvm.target<chip = "sm_80">] { ... }
      gpu.module @b [#nvvm.target<chip = "sm_90a">] { ... }
    }

The parts are programs of their own, so that they can be compiled in any order, or at once, with the
same bytes as a result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tile_core.diagnostics import CompileError, ConfigurationError

if TYPE_CHECKING:
    from tile_core.mlir import ir
    from tile_core.registry import Registry

_CHIP = re.compile(r'#nvvm\.target<[^>]*\bchip = "(\w+)"')


@dataclass(frozen=True)
class Part:
    """One `gpu.module`: its symbol, the target it names ("" if none), a program of it alone."""

    name: str
    target: str
    program: bytes


def may_have_parts(program: bytes) -> bool:
    """Whether to look: text that has the word."""
    return b"gpu.module" in program and not program.startswith(b"\x7f")


def parts_of(program: bytes, registry: Registry) -> list[Part]:
    """The parts of a textual MLIR program with `gpu.module`s; empty for any other input.

    Raises:
        InputError: the text is no module.
        CompileError: several of them stand beside operations that would belong to none.
        ConfigurationError: a module names several targets, or one that is not known.
    """
    if not may_have_parts(program):
        return []
    from tile_core.frontend import FrontendContext, read_input
    from tile_core.rehearsal import rehearse_reading
    from tile_core.session import session_of

    rehearse_reading(program, registry)
    with session_of(registry) as session:
        any_target = registry.target("sm_90")  # text is read alike for all of them
        module = read_input(program, FrontendContext(any_target), session)
        with session.context:
            return _parts(module, registry)


def _parts(module: ir.Module, registry: Registry) -> list[Part]:
    inside = [view.operation for view in module.body.operations]
    found = [op for op in inside if op.name == "gpu.module"]
    if len(found) > 1 and len(found) < len(inside):
        other = next(op for op in inside if op.name != "gpu.module")
        raise CompileError(
            f"'{other.name}' stands beside {len(found)} gpu.modules, and belongs to none of them"
        )
    return [Part(_symbol(op), target_of(op, registry), _alone(op)) for op in found]


def _symbol(op: ir.Operation) -> str:
    return str(op.attributes["sym_name"]).strip('"')


def _alone(op: ir.Operation) -> bytes:
    text = op.get_asm(enable_debug_info=True)
    return f"builtin.module {{\n{text}\n}}\n".encode()


def target_of(op: ir.Operation, registry: Registry) -> str:
    """The target that a `gpu.module` carries, as `#nvvm.target` or `nv_tileaa.target_spec`; or "".

    Raises:
        ConfigurationError: several targets, or one that is not known.
    """
    text = str(op.attributes["targets"]) if "targets" in op.attributes else ""
    names = [registry.target(chip).name for chip in _CHIP.findall(text)]
    if "nv_tileaa.target_spec" in op.attributes:
        spec = str(op.attributes["nv_tileaa.target_spec"]).strip('"')
        names.append(registry.target(spec).name)
    known = list(dict.fromkeys(names))
    if len(known) > 1:
        raise ConfigurationError(
            f"gpu.module already carries a conflicting target: @{_symbol(op)} names "
            f"{' and '.join(known)}"
        )
    return known[0] if known else ""


def chosen(part: Part, asked: str, *, given: bool) -> str:
    """The target that a part is compiled for.

    Args:
        asked: the target of the command line, `given` if somebody asked for it.

    Raises:
        ConfigurationError: somebody did, and the part carries another one.
    """
    if not part.target:
        return asked
    if given and asked != part.target:
        raise ConfigurationError(
            "gpu.module already carries a conflicting target: "
            f"@{part.name} is for {part.target}, and {asked} was asked for",
            hint="leave out --gpu-name, or the module's target",
        )
    return part.target

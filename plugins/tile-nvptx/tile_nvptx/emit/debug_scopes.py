"""The scopes that locations of a program name, as debug information of LLVM. Worker process only.

A location of cuda_tile is a position, fused with its scope as a dictionary. What the dictionary
says (names, lines, the compile unit with its directory) is what debuggers and profilers show;
MLIR's own pass would make a subprogram of the function's symbol, in a unit without a name.
"""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.mlir import ir
from tile_nvptx.emit.options import EmitOptions

#: Fields of a scope by its kind, and what they hold.
_TEXTS = {
    "subprogram": ("file", "directory", "name", "linkage_name", "unit_file", "unit_directory"),
    "lexical_block": ("file", "directory"),
}
_NUMBERS = {"subprogram": ("line", "scope_line"), "lexical_block": ("line", "column")}
#: Blocks inside one another, beyond which a block counts as the one around it.
_DEEPEST = 64
#: Columns of a line in LLVM, of which 0 is none.
_COLUMNS = 1 << 16


def describe(module: ir.Operation, options: EmitOptions) -> None:
    """Put the scopes into the locations of `module`, its functions and their operations.

    What names none is left for MLIR's pass, which takes the compile unit from the module.
    """
    scopes = _Scopes(options)
    operations = _inside(module)
    for op in operations:
        for part in _parts(op.location):
            scopes.add(_scope_of(part))
    unit = scopes.make()
    if unit is None:
        return
    module.location = ir.Location.fused([module.location], unit)
    taken: set[ir.DictAttr] = set()
    for function in operations:
        own = _scope_of(function.location)
        if function.name == "llvm.func" and own not in taken:  # a subprogram is of one function
            for op in (*_inside(function), function):
                op.location = scopes.placed(op.location, own)
            if own is not None:
                taken.add(own)


def _inside(root: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return [op for op in found if op != root]


def _typed(location: ir.Location) -> ir.Location:
    """`location` as what it is: operations give the base class."""
    return ir.Location.from_attr(location.attr)


def _parts(location: ir.Location) -> Iterator[ir.Location]:
    location = _typed(location)
    yield location
    if isinstance(location, ir.CallSiteLoc):
        yield from _parts(location.callee)
        yield from _parts(location.caller)


def _scope_of(location: ir.Location) -> ir.DictAttr | None:
    """The scope of a position, if it has one as cuda_tile writes it."""
    location = _typed(location)
    if not isinstance(location, ir.FusedLoc) or location.metadata is None:
        return None
    found = location.metadata.maybe_downcast()
    return found if isinstance(found, ir.DictAttr) and _is_whole(found) else None


def _is_whole(scope: ir.Attribute) -> bool:
    """Whether it says all that is needed: who writes MLIR may write any dictionary."""
    while isinstance(scope, ir.DictAttr):
        kind = scope["kind"].maybe_downcast() if "kind" in scope else None
        kind = kind.value if isinstance(kind, ir.StringAttr) else ""
        wanted = [(name, ir.StringAttr) for name in _TEXTS.get(kind, ())]
        wanted += [(name, ir.IntegerAttr) for name in _NUMBERS.get(kind, ())]
        if not wanted or not all(
            name in scope and isinstance(scope[name].maybe_downcast(), type_)
            for name, type_ in wanted
        ):
            return False
        if kind == "subprogram":
            return True
        scope = scope["scope"].maybe_downcast() if "scope" in scope else scope["kind"]
    return False


def _outer(scope: ir.DictAttr) -> ir.DictAttr | None:
    """The scope around a block; a subprogram has none."""
    return ir.DictAttr(scope["scope"]) if "column" in scope else None


def _subprogram(scope: ir.DictAttr | None) -> ir.DictAttr | None:
    """The subprogram around a scope."""
    while scope is not None and (outer := _outer(scope)) is not None:
        scope = outer
    return scope


def _number(scope: ir.DictAttr, name: str) -> int:
    """Unsigned, of 32 bits: LLVM has no larger lines."""
    return min(max(ir.IntegerAttr(scope[name]).value, 0), 2**32 - 1)


class _Scopes:
    """Scope of cuda_tile -> scope of LLVM."""

    def __init__(self, options: EmitOptions) -> None:
        self._full = options.device_debug
        self._texts: list[str] = []  # definition of each attribute, #0 is the compile unit
        self._numbers: dict[ir.Attribute, int] = {}
        self._made: dict[ir.Attribute, ir.Attribute] = {}

    def add(self, scope: ir.DictAttr | None) -> None:
        """Note a scope, and those around it."""
        if scope is None or scope in self._numbers:
            return
        around = []
        while scope is not None:
            around.append(scope)
            scope = _outer(scope)
        for depth, one in enumerate(reversed(around)):
            if one not in self._numbers:
                self._numbers[one] = self._defined(one, depth)

    def _defined(self, scope: ir.DictAttr, depth: int) -> int:
        outer = _outer(scope)
        if outer is not None and depth > _DEEPEST:
            return self._numbers[outer]
        if not self._texts:
            self._texts.append(self._compile_unit(scope))
        number = len(self._texts)
        file = f"<{scope['file']} in {scope['directory']}>"
        line = _number(scope, "line")
        if outer is not None:
            column = _number(scope, "column")
            if not line or column >= _COLUMNS:  # LLVM has no such place
                column = 0
            self._texts.append(
                f"#llvm.di_lexical_block<scope = #s{self._numbers[outer]}, file = {file}, "
                f"line = {line}, column = {column}>"
            )
        else:
            flags = "Definition" if self._full else "Definition|Optimized"
            self._texts.append(
                f"#llvm.di_subprogram<id = distinct[{number}]<>, compileUnit = #s0, "
                f"scope = #llvm.di_file{file}, name = {scope['name']}, "
                f"linkageName = {scope['linkage_name']}, file = {file}, line = {line}, "
                f"scopeLine = {_number(scope, 'scope_line')}, "
                f'subprogramFlags = "{flags}", type = <callingConvention = DW_CC_normal>>'
            )
        return number

    def _compile_unit(self, scope: ir.DictAttr) -> str:
        """Of the whole module: ptxas takes one."""
        kind = "Full" if self._full else "DebugDirectivesOnly"
        optimized = "false" if self._full else "true"
        return (
            "#llvm.di_compile_unit<id = distinct[0]<>, sourceLanguage = DW_LANG_C, "
            f"file = <{scope['unit_file']} in {scope['unit_directory']}>, "
            f'producer = "tilec", isOptimized = {optimized}, emissionKind = {kind}>'
        )

    def make(self) -> ir.Attribute | None:
        """Build what was noted, and return the compile unit."""
        if not self._texts:
            return None
        lines = [f"#s{number} = {text}" for number, text in enumerate(self._texts)]
        names = ", ".join(f"#s{number}" for number in range(len(lines)))
        holder = ir.Module.parse("\n".join([*lines, f"module attributes {{a.s = [{names}]}} {{}}"]))
        made = list(ir.ArrayAttr(holder.operation.attributes["a.s"]))
        self._made = {scope: made[number] for scope, number in self._numbers.items()}
        return made[0]

    def placed(self, location: ir.Location, own: ir.DictAttr | None) -> ir.Location:
        """`location` with scopes of LLVM; `own` is the function's, which encloses what it holds."""
        location = _typed(location)
        if isinstance(location, ir.CallSiteLoc):
            callee = self.placed(location.callee, _subprogram(_scope_of(location.callee)))
            return ir.Location.callsite(callee, [self.placed(location.caller, own)])
        scope = _scope_of(location)
        if scope is None or own is None or _subprogram(scope) != own:
            return location
        assert isinstance(location, ir.FusedLoc)
        return ir.Location.fused(location.locations, self._made[scope])

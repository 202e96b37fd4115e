"""From MLIR to the tree."""

import struct
from collections.abc import Callable
from typing import Any

from tile_core.diagnostics import CompileError
from tile_core.mlir import ir
from tile_cudatile import attrs as a
from tile_cudatile import locations as loc
from tile_cudatile import tree
from tile_cudatile.dialect.ops import operand_groups
from tile_cudatile.dialect.types import describe
from tile_cudatile.ops import BODY_OPS
from tile_cudatile.ops.spec import AttrSpec, OpSpec
from tile_cudatile.text.literals import number_bits, pack_elements, parse_dense
from tile_cudatile.text.scanner import Scanner
from tile_cudatile.types import F64, I1, Function, Scalar, Tile
from tile_cudatile.versions import NEWEST, Version


def from_mlir(module: ir.Module | ir.Operation, version: Version = NEWEST) -> tree.Module:
    """The tree of a module as `to_mlir` makes it, or of a `cuda_tile.module` alone.

    Constants whose elements are all alike become splats, as MLIR keeps them. Raises
    `CompileError` for operations of other dialects. Nothing is checked besides: see `verify`.
    """
    top = module.operation
    if top.name == "builtin.module":
        inside = [op.operation for op in top.regions[0].blocks[0].operations]
        if len(inside) != 1:
            raise _refuse(top, "expected one 'cuda_tile.module' and nothing besides")
        top = inside[0]
    if top.name != "cuda_tile.module":
        raise _refuse(top, "expected a 'cuda_tile.module'")
    return Reader(version).module(top)


def _refuse(op: Any, message: str) -> CompileError:
    return CompileError(f"'{op.name}' op {message}", where=str(op.location))


class Reader:
    """Reads one module. Constants, scopes and locations are made once each."""

    def __init__(self, version: Version = NEWEST) -> None:
        self._version = version
        self._values: dict[ir.Value, tree.Value] = {}
        self._locations: dict[ir.Attribute, loc.Location] = {}
        self._scopes: dict[ir.Attribute, loc.Scope] = {}
        self._dense: dict[ir.Attribute, a.Dense] = {}

    def module(self, op: ir.Operation) -> tree.Module:
        """The whole program."""
        producer = op.attributes.get("producer", None)
        made = tree.Module(self._version, producer=None if producer is None else _text(producer))
        made.loc = self.location(op.location)
        views = [view for block in op.regions[0].blocks for view in block.operations]
        for inner in (view.operation for view in views):
            if inner.name == "cuda_tile.global":
                made.globals.append(self._global(inner))
            elif inner.name == "cuda_tile.entry":
                made.entries.append(self._entry(inner))
            else:
                raise _refuse(inner, "cannot stand in a 'cuda_tile.module'")
        return made

    def _global(self, op: ir.Operation) -> tree.Global:
        attrs = op.attributes
        return tree.Global(
            _text(attrs["sym_name"]),
            self.dense(attrs["value"]),
            ir.IntegerAttr(attrs["alignment"]).value,
            "constant" in attrs,
            _text(attrs["symbol_visibility"]) if "symbol_visibility" in attrs else "public",
        )

    def _entry(self, op: ir.Operation) -> tree.Entry:
        attrs = op.attributes
        if len(op.regions[0].blocks) != 1:
            raise _refuse(op, "expected a body of one block")
        signature = describe(ir.TypeAttr(attrs["function_type"]).value)
        assert isinstance(signature, Function)
        hints: Any = _plain(attrs["optimization_hints"]) if "optimization_hints" in attrs else {}
        split = attrs.get(tree.LOOP_SPLIT, None)
        entry = tree.Entry(
            _text(attrs["sym_name"]),
            signature,
            self._region(op.regions[0]),
            a.Hints(hints),
            _plain(attrs["arg_attrs"]) if "arg_attrs" in attrs else (),  # type: ignore[arg-type]
            self.location(op.location),
            None if split is None else self._loop_split(op, split),
        )
        self._values.clear()
        return entry

    def _region(self, region: ir.Region) -> tree.Region:
        blocks = []
        for block in region.blocks:
            made = tree.Block(tuple(tree.Value(describe(arg.type)) for arg in block.arguments))
            self._values.update(zip(block.arguments, made.args, strict=True))
            made.ops = [self._op(view.operation) for view in block.operations]
            blocks.append(made)
        return tree.Region(blocks)

    def _op(self, op: ir.Operation) -> tree.Op:
        dialect, _, name = op.name.partition(".")
        spec = BODY_OPS.by_name.get(name) if dialect == "cuda_tile" else None
        if spec is None:
            raise _refuse(op, "has no form in CUDA Tile IR")
        values = self._values
        if spec.variable:
            groups = operand_groups(op)
            operands = tuple(
                _group(group.arity, [values[v] for v in groups[group.name]])
                for group in spec.operands
            )
        else:
            operands = tuple(values[v] for v in op.operands)
        made = tree.Op(
            spec,
            operands,
            tuple(tree.Value(describe(r.type)) for r in op.results),
            self._attributes(spec, op),
            tuple(self._region(region) for region in op.regions),
            self.location(op.location),
        )
        for result, value in zip(op.results, made.results, strict=True):
            values[result] = value
        return made

    def _loop_split(self, op: ir.Operation, attr: ir.Attribute) -> int:
        if not isinstance(attr, ir.IntegerAttr):
            raise _refuse(op, f"has '{tree.LOOP_SPLIT}' = {attr}, which is no integer")
        return attr.value

    def _attributes(self, spec: OpSpec, op: ir.Operation) -> dict[str, a.Attr]:
        found: dict[str, a.Attr] = {}
        if spec.name in ("if", "for") and tree.LOOP_SPLIT in op.attributes:
            found[tree.LOOP_SPLIT] = self._loop_split(op, op.attributes[tree.LOOP_SPLIT])
        if not spec.attrs:
            return found
        present = op.attributes
        for attr in spec.attrs:
            if attr.name not in present:
                if not attr.flagged and attr.default is not None:
                    found[attr.name] = attr.default
                continue
            try:
                value = self._inherent(attr, present[attr.name])
            except (AssertionError, KeyError, StopIteration, TypeError, ValueError):
                raise _refuse(op, f"has no valid '{attr.name}', but {present[attr.name]}") from None
            since = attr.since or spec.since
            if attr.name == "inbounds" and since > self._version and not any(value):  # type: ignore[arg-type]
                value = ()  # what older versions, which do not know it, mean
            found[attr.name] = value
        return found

    def _inherent(self, spec: AttrSpec, attr: ir.Attribute) -> a.Attr:
        if spec.kind == "dense":
            return self.dense(attr)
        if spec.kind == "enum" and _text(attr) not in spec.values:
            raise ValueError(attr)
        return _KINDS.get(spec.kind, _plain)(attr)

    def dense(self, attr: ir.Attribute) -> a.Dense:
        """A constant from its `dense<..> : tensor<..>`."""
        found = self._dense.get(attr)
        if found is None:
            found = self._dense[attr] = _dense(ir.DenseElementsAttr(attr))
        return found

    def location(self, where: ir.Location) -> loc.Location:
        """A location from the forms that `to_mlir` writes; others by the position they hold."""
        key = where.attr
        found = self._locations.get(key)
        if found is None:
            found = self._locations[key] = self._location(where)
        return found

    def _location(self, where: ir.Location) -> loc.Location:
        if isinstance(where, ir.FileLineColLoc):
            return loc.FileLine(where.filename, where.start_line, where.start_col)
        if isinstance(where, ir.CallSiteLoc):
            return loc.CallSite(self.location(where.callee), self.location(where.caller))
        if isinstance(where, ir.FusedLoc):
            parts = [self.location(part) for part in where.locations]
            first = next((part for part in parts if part != loc.UNKNOWN), loc.UNKNOWN)
            scope = _scope_of(where)
            if isinstance(first, loc.FileLine) and scope is not None:
                return loc.DebugLoc(self._scope(scope), first.filename, first.line, first.column)
            return first
        if isinstance(where, ir.NameLoc):
            return self.location(where.child_loc)
        return loc.UNKNOWN

    def _scope(self, attr: ir.Attribute) -> loc.Scope:
        found = self._scopes.get(attr)
        if found is None:
            found = self._scopes[attr] = self._make_scope(ir.DictAttr(attr))
        return found

    def _make_scope(self, fields: ir.DictAttr) -> loc.Scope:
        file = loc.File(_text(fields["file"]), _text(fields["directory"]))
        line = ir.IntegerAttr(fields["line"]).value
        if _text(fields["kind"]) == "lexical_block":
            column = ir.IntegerAttr(fields["column"]).value
            return loc.LexicalBlock(self._scope(fields["scope"]), file, line, column)
        unit = loc.File(_text(fields["unit_file"]), _text(fields["unit_directory"]))
        return loc.Subprogram(
            file,
            line,
            _text(fields["name"]),
            _text(fields["linkage_name"]),
            loc.CompileUnit(unit),
            ir.IntegerAttr(fields["scope_line"]).value,
            ir.IntegerAttr(fields["flags"]).value,
        )


def _scope_of(where: ir.FusedLoc) -> ir.DictAttr | None:
    metadata = where.metadata
    found = None if metadata is None else metadata.maybe_downcast()
    if isinstance(found, ir.DictAttr) and "kind" in found and "file" in found:
        return found
    return None


def _group(arity: str, values: list[tree.Value]) -> tree.Group:
    if arity == "variadic":
        return tuple(values)
    return values[0] if values else None


def _text(attr: ir.Attribute) -> str:
    return ir.StringAttr(attr).value


def _plain(attr: ir.Attribute) -> a.Attr:
    """A self-contained attribute from its MLIR form."""
    return next(make(attr) for kind, make in _CLASSES.items() if isinstance(attr, kind))


def _integer(attr: ir.IntegerAttr) -> a.Integer:
    scalar = describe(attr.type)
    assert isinstance(scalar, Scalar)
    return a.Integer(scalar, attr.value & ((1 << scalar.width) - 1))


def _float(attr: ir.FloatAttr) -> a.Float:
    scalar = describe(attr.type)
    assert isinstance(scalar, Scalar)
    if scalar == F64:
        return a.Float(F64, struct.unpack("<Q", struct.pack("<d", attr.value))[0])
    bits = number_bits(str(attr).partition(" : ")[0], scalar)
    assert bits is not None
    return a.Float(scalar, bits)


def _identities(attr: ir.Attribute) -> a.Attr:
    values = [_plain(item) for item in ir.ArrayAttr(attr)]
    return tuple(a.Integer(I1, int(v)) if isinstance(v, bool) else v for v in values)


def _predicate(attr: ir.Attribute) -> a.Attr:
    fields = ir.DictAttr(attr)

    def number(name: str) -> int | None:
        return ir.IntegerAttr(fields[name]).value if name in fields else None

    kind = _text(fields["kind"])
    if kind == "div_by":
        return a.DivBy(number("divisor") or 0, number("every"), number("along"))
    if kind == "same_elements":
        return a.SameElements(tuple(ir.DenseI64ArrayAttr(fields["values"])))
    return a.Bounded(number("lb"), number("ub"))


def _dense(attr: Any) -> a.Dense:
    tensor = ir.RankedTensorType(attr.type)
    element = describe(tensor.element_type)
    assert isinstance(element, Scalar)
    tile = Tile(tuple(tensor.shape), element)
    if element.name in _IN_BUFFERS:
        # A view, not a NumPy array: most compilations never load NumPy.
        view = memoryview(attr)
        data = view.tobytes()[: view.itemsize] if attr.is_splat else view.tobytes()
        if element == I1:
            return a.Dense(tile, pack_elements(list(data), I1, attr.is_splat))
        return a.Dense(tile, data)
    text = str(attr)
    text = text[text.index("<") + 1 : text.rindex("> : ")]
    if text.startswith('"0x'):
        return a.Dense(tile, bytes.fromhex(text[3:-1]))
    patterns, shape = parse_dense(Scanner(text, "constant"), element)
    return a.Dense(tile, pack_elements(patterns, element, shape is None))


#: Elements that Python's buffers know; the others are read from the attribute's text.
_IN_BUFFERS = ("i1", "i8", "i16", "i32", "i64", "f16", "f32", "f64")
_CLASSES: dict[type, Callable[[Any], a.Attr]] = {
    ir.BoolAttr: lambda v: v.value,
    ir.IntegerAttr: _integer,
    ir.FloatAttr: _float,
    ir.StringAttr: _text,
    ir.ArrayAttr: lambda v: tuple(map(_plain, v)),
    ir.DictAttr: lambda v: {item.name: _plain(item.attr) for item in v},
    ir.TypeAttr: lambda v: a.TypeRef(describe(v.value)),
    ir.DenseElementsAttr: _dense,
}
_KINDS: dict[str, Callable[[ir.Attribute], a.Attr]] = {
    "enum": _text,
    "str": _text,
    "i32": lambda v: ir.IntegerAttr(v).value,
    "i64": lambda v: ir.IntegerAttr(v).value,
    "bool": lambda v: ir.BoolAttr(v).value,
    "symbol": lambda v: ir.FlatSymbolRefAttr(v).value,
    "i32_array": lambda v: tuple(ir.DenseI32ArrayAttr(v)),
    "bool_array": lambda v: tuple(ir.DenseBoolArrayAttr(v)),
    "unit": lambda v: True,
    "hints": lambda v: a.Hints(_plain(v)),  # type: ignore[arg-type]
    "predicate": _predicate,
    "array": _identities,
}

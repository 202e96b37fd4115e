"""From the tree to MLIR."""

import struct
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

from tile_core.deferred_numpy import np
from tile_core.diagnostics import CompileError, InputError
from tile_core.dialect import runs_of_types
from tile_core.mlir import ir
from tile_cudatile import attrs as a
from tile_cudatile import locations as loc
from tile_cudatile import tree
from tile_cudatile.dialect.ops import MIXED
from tile_cudatile.dialect.runs import TERMINATORS, Arrangement, Order, arrange, split_print
from tile_cudatile.dialect.types import CudaTile, TypeMap
from tile_cudatile.ops import BODY_OPS
from tile_cudatile.ops.spec import AttrSpec, OpSpec
from tile_cudatile.types import F64, I1, I4, TF32, Scalar

_T = TypeVar("_T")


def to_mlir(module: tree.Module, context: ir.Context | None = None) -> ir.Module:
    """The MLIR form of `module`, in `context`, the current context, or a new one.

    The result is `builtin.module { cuda_tile.module { cuda_tile.global*, cuda_tile.entry* } }`.
    """
    current = _current_context()
    active = context or current or ir.Context()
    entered = nullcontext() if current is active else active
    with entered, ir.Location.unknown(active):
        CudaTile.load()
        return Builder().module(module)


def _current_context() -> ir.Context | None:
    try:
        return ir.Context.current
    except ValueError:
        return None


class Builder:
    """Builds one module. Types, attributes and locations are made once each."""

    def __init__(self) -> None:
        self.types = TypeMap()
        self.unknown = ir.Location.unknown()
        self.unit = ir.UnitAttr.get()
        self._strings: dict[str, ir.Attribute] = {}
        self._segments: dict[tuple[int, ...], ir.Attribute] = {}
        self._locations: dict[int, tuple[loc.Location, ir.Location]] = {}
        self._scopes: dict[int, tuple[loc.DebugRecord, ir.Attribute]] = {}
        self._dense: dict[int, tuple[a.Dense, ir.Attribute]] = {}
        self._values: dict[tree.Value, ir.Value] = {}
        self._ends: dict[str, Order] = {}  # of the terminators of the operations around
        self._i32, self._i64 = (ir.IntegerType.get_signless(w) for w in (32, 64))

    def module(self, module: tree.Module) -> ir.Module:
        """The whole program."""
        top = ir.Module.create()
        self.program(module, ir.InsertionPoint(top.body))
        return top

    def program(self, module: tree.Module, at: ir.InsertionPoint) -> ir.Operation:
        """The `cuda_tile.module`."""
        attributes: dict[str, ir.Attribute] = {"sym_name": ir.StringAttr.get("kernels")}
        if module.producer is not None:
            attributes["producer"] = self.string(module.producer)
        where = self.location(module.loc)
        inner = ir.Operation.create(
            "cuda_tile.module", attributes=attributes, regions=1, loc=where, ip=at
        )
        ip = ir.InsertionPoint(inner.regions[0].blocks.append())
        for item in module.globals:
            self._global(item, ip)
        for entry in module.entries:
            self._entry(entry, ip)
        return inner

    def _global(self, item: tree.Global, ip: ir.InsertionPoint) -> None:
        attributes = {
            "sym_name": self.string(item.name),
            "value": self.dense(item.value),
            "alignment": ir.IntegerAttr.get(self._i64, item.alignment),
            "symbol_visibility": self.string(item.visibility),
        }
        if item.constant:
            attributes["constant"] = self.unit
        ir.Operation.create("cuda_tile.global", attributes=attributes, ip=ip)

    def _entry(self, entry: tree.Entry, ip: ir.InsertionPoint) -> None:
        attributes = {
            "sym_name": self.string(entry.name),
            "function_type": ir.TypeAttr.get(self.types(entry.type)),
        }
        if entry.hints.targets:
            attributes["optimization_hints"] = self.attribute(entry.hints)
        if any(entry.arg_attrs):
            attributes["arg_attrs"] = self.attribute(entry.arg_attrs)
        if entry.loop_split is not None:
            attributes[tree.LOOP_SPLIT] = self._number(entry.loop_split)
        where = self.location(entry.loc)
        op = ir.Operation.create(
            "cuda_tile.entry", attributes=attributes, regions=1, loc=where, ip=ip
        )
        self._region(entry.body, op.regions[0], where)
        self._values.clear()

    def _region(
        self, region: tree.Region, into: ir.Region, where: ir.Location, order: Order | None = None
    ) -> None:
        for block in region.blocks:
            args = _ordered(block.args, order)
            types = [self.types(arg.type) for arg in args]
            made = into.blocks.append(*types, arg_locs=[where] * len(types))
            for arg, value in zip(args, made.arguments, strict=True):
                self._values[arg] = value
            ip = ir.InsertionPoint(made)
            for op in block.ops:
                if op.name == "print_tko":
                    self._print(op, ip)
                else:
                    self._op(op, ip)

    def _print(self, op: tree.Op, ip: ir.InsertionPoint) -> None:
        parts = split_print(op)
        for part in parts:
            self._op(part, ip)
        self._values[op.result] = self._values[parts[-1].result]

    def _op(self, op: tree.Op, ip: ir.InsertionPoint) -> None:
        spec, values, types = op.spec, self._values, self.types
        attributes = _ATTRIBUTES[spec.name](self, op) if op.attrs else {}
        plan = arrange(op) if spec.name in TERMINATORS else None
        made_results = op.results if plan is None else _ordered(op.results, plan.results)
        results = [types(r.type) for r in made_results]
        if spec.variable:
            operands = self._grouped(op, attributes, plan)
        else:
            operands = [values[v] for v in op.operands]  # type: ignore[index]
        if spec.name in _MIXED_RESULTS:
            sizes = self._runs(spec, spec.results[0].name, results, op.loc)
            attributes["resultSegmentSizes"] = self._segment_sizes(tuple(sizes))
        where = self.location(op.loc)
        made = ir.Operation.create(
            _NAMES[spec.name], results, operands, attributes, None, len(spec.regions), where, ip
        )
        if len(made_results) == 1:
            values[made_results[0]] = made.result
        elif made_results:
            values.update(zip(made_results, made.results, strict=True))
        if op.regions:
            self._regions(op, made, where, plan)

    def _regions(
        self, op: tree.Op, made: ir.Operation, where: ir.Location, plan: Arrangement | None
    ) -> None:
        around = self._ends
        if around or plan is not None:
            own = TERMINATORS[op.name]
            self._ends = {name: order for name, order in around.items() if name not in own}
            self._ends.update({} if plan is None else plan.terminators)
        for region, into in zip(op.regions, made.regions, strict=True):
            self._region(region, into, where, None if plan is None else plan.arguments)
        self._ends = around

    def _grouped(
        self, op: tree.Op, attributes: dict[str, ir.Attribute], plan: Arrangement | None
    ) -> list[ir.Value]:
        """The operands of an operation with groups, whose sizes go to `attributes`."""
        values = self._values
        operands: list[ir.Value] = []
        sizes: list[int] = []
        orders = {} if plan is None else plan.operands
        if plan is not None and plan.identities is not None:
            given = ir.ArrayAttr(attributes["identities"])
            attributes["identities"] = ir.ArrayAttr.get(_ordered(list(given), plan.identities))
        for group, operand in zip(op.operands, op.spec.operands, strict=True):
            if isinstance(group, tuple):
                group = _ordered(group, orders.get(operand.name) or self._ends.get(op.name))
                found = [values[v] for v in group]
                operands.extend(found)
                if (op.name, operand.name) in MIXED:
                    kinds = [self.types(v.type) for v in group]
                    sizes.extend(self._runs(op.spec, operand.name, kinds, op.loc))
                else:
                    sizes.append(len(group))
            elif group is None:
                sizes.append(0)
            else:
                operands.append(values[group])
                sizes.append(1)
        attributes["operandSegmentSizes"] = self._segment_sizes(tuple(sizes))
        return operands

    def _runs(
        self, spec: OpSpec, group: str, kinds: list[ir.Type], where: loc.Location
    ) -> list[int]:
        slots = MIXED[spec.name, group]
        sizes = runs_of_types(kinds, slots)
        if sizes is None:
            raise CompileError(
                f"'cuda_tile.{spec.name}' op has values of more than {slots} types in '{group}'",
                where=str(self.location(where)),
                hint="the compiler has no room for more in one operation",
            )
        return sizes

    def _segment_sizes(self, sizes: tuple[int, ...]) -> ir.Attribute:
        found = self._segments.get(sizes)
        if found is None:
            found = self._segments[sizes] = ir.DenseI32ArrayAttr.get(list(sizes))
        return found

    def string(self, text: str) -> ir.Attribute:
        """A string attribute, made once per text."""
        found = self._strings.get(text)
        if found is None:
            found = self._strings[text] = ir.StringAttr.get(_utf8(text))
        return found

    def inherent(self, spec: AttrSpec, value: Any) -> ir.Attribute:
        """The MLIR form of an operation's own attribute."""
        if spec.kind in ("enum", "str"):
            return self.string(value)
        if spec.kind in ("i32", "i64"):
            return ir.IntegerAttr.get(self._i32 if spec.kind == "i32" else self._i64, value)
        if spec.kind == "symbol":
            return ir.FlatSymbolRefAttr.get(value)
        if spec.kind == "i32_array":
            return ir.DenseI32ArrayAttr.get(list(value))
        if spec.kind == "bool_array":
            return ir.DenseBoolArrayAttr.get(list(value))
        if spec.kind == "unit":
            return self.unit
        return self.attribute(value)

    def attribute(self, value: a.Attr) -> ir.Attribute:
        """The MLIR form of a self-contained attribute."""
        return _SELF_CONTAINED[type(value)](self, value)

    def dense(self, value: a.Dense) -> ir.Attribute:
        """A constant as `dense<..> : tensor<..>`."""
        found = self._dense.get(id(value))
        if found is None:
            found = self._dense[id(value)] = (value, self._make_dense(value))
        return found[1]

    def _make_dense(self, value: a.Dense) -> ir.Attribute:
        element = value.type.element
        assert isinstance(element, Scalar)
        shape = list(value.type.shape)
        if value.is_splat or element == TF32:
            text = value.data.hex().upper()
            tensor = ir.RankedTensorType.get(shape, self.types(element))
            if element == I1:
                return ir.DenseElementsAttr.get_splat(
                    tensor, ir.BoolAttr.get(value.data[0] & 1 != 0)
                )
            if element == I4:
                return ir.DenseElementsAttr.get_splat(
                    tensor, ir.IntegerAttr.get(self.types(element), value.data[0] & 15)
                )
            return ir.Attribute.parse(f'dense<"0x{text}"> : {tensor}')
        array: Any = np.frombuffer(value.data, _STORAGE[element.width])
        if element == I1:
            count = a.element_count(value.type.shape)
            array = np.unpackbits(array, bitorder="little")[:count]
        return ir.DenseElementsAttr.get(array, type=self.types(element), shape=shape)

    def location(self, where: loc.Location) -> ir.Location:
        """The MLIR form of a location.

        `di_loc` becomes the plain position, fused with its scope as a dictionary.
        """
        found = self._locations.get(id(where))
        if found is None:
            found = self._locations[id(where)] = (where, self._make_location(where))
        return found[1]

    def _make_location(self, where: loc.Location) -> ir.Location:
        if isinstance(where, loc.DebugLoc):
            position = ir.Location.file(
                _readable(where.filename), _u32(where.line), _u32(where.column)
            )
            return ir.Location.fused([position], self._scope(where.scope))
        if isinstance(where, loc.CallSite):
            return ir.Location.callsite(self.location(where.callee), [self.location(where.caller)])
        if isinstance(where, loc.FileLine):
            return ir.Location.file(_readable(where.filename), where.line, where.column)
        return self.unknown

    def _scope(self, scope: loc.Scope) -> ir.Attribute:
        found = self._scopes.get(id(scope))
        if found is None:
            found = self._scopes[id(scope)] = (scope, self._make_scope(scope))
        return found[1]

    def _make_scope(self, scope: loc.Scope) -> ir.Attribute:
        fields: dict[str, ir.Attribute] = {
            "file": self.string(scope.file.name),
            "directory": self.string(scope.file.directory),
            "line": self._number(scope.line),
        }
        if isinstance(scope, loc.LexicalBlock):
            fields["kind"] = self.string("lexical_block")
            fields["column"] = self._number(scope.column)
            fields["scope"] = self._scope(scope.scope)
            return ir.DictAttr.get(fields)
        unit = scope.compile_unit.file
        fields["kind"] = self.string("subprogram")
        fields["name"] = self.string(scope.name)
        fields["linkage_name"] = self.string(scope.linkage_name)
        fields["scope_line"] = self._number(scope.scope_line)
        fields["flags"] = self._number(scope.flags)
        fields["unit_file"] = self.string(unit.name)
        fields["unit_directory"] = self.string(unit.directory)
        return ir.DictAttr.get(fields)

    def _number(self, value: int) -> ir.Attribute:
        return ir.IntegerAttr.get(self._i64, _i64(value))

    def _integer(self, value: a.Integer) -> ir.Attribute:
        if value.type == I1:
            return ir.BoolAttr.get(value.bits != 0)
        return ir.IntegerAttr.get(self.types(value.type), value.value)

    def _float(self, value: a.Float) -> ir.Attribute:
        kind = self.types(value.type)
        size = (value.type.width + 7) // 8
        if value.type == F64:
            return ir.FloatAttr.get(kind, struct.unpack("<d", struct.pack("<Q", value.bits))[0])
        # A NaN's payload survives in a dense attribute only.
        text = value.bits.to_bytes(size, "little").hex().upper()
        dense = ir.Attribute.parse(f'dense<"0x{text}"> : tensor<{kind}>')
        return ir.DenseElementsAttr(dense).get_splat_value()

    def _predicate(self, kind: str, **fields: ir.Attribute | None) -> ir.Attribute:
        present = {name: field for name, field in fields.items() if field is not None}
        return ir.DictAttr.get({"kind": self.string(kind), **present})

    def _maybe(self, value: int | None) -> ir.Attribute | None:
        return None if value is None else self._number(value)


_LOOP_SPLIT = AttrSpec(tree.LOOP_SPLIT, "i64", optional=True)


def _ordered(values: Sequence[_T], order: Order | None) -> Sequence[_T]:
    return values if order is None else [values[i] for i in order]


def _plain_attributes(spec: OpSpec) -> Callable[[Builder, tree.Op], dict[str, ir.Attribute]]:
    specs = {attr.name: attr for attr in (*spec.attrs, _LOOP_SPLIT)}

    def build(builder: Builder, op: tree.Op) -> dict[str, ir.Attribute]:
        return {name: builder.inherent(specs[name], value) for name, value in op.attrs.items()}

    return build


def _view_attributes(spec: OpSpec) -> Callable[[Builder, tree.Op], dict[str, ir.Attribute]]:
    plain = _plain_attributes(spec)

    def build(builder: Builder, op: tree.Op) -> dict[str, ir.Attribute]:
        attributes = plain(builder, op)
        if not op.attrs.get("inbounds"):
            index = op.group("index")
            assert isinstance(index, tuple)
            attributes["inbounds"] = ir.DenseBoolArrayAttr.get([False] * len(index))
        return attributes

    return build


def _constant_attributes(builder: Builder, op: tree.Op) -> dict[str, ir.Attribute]:
    value = op.attrs["value"]
    assert isinstance(value, a.Dense)
    return {"value": builder.dense(value)}


_MIXED_RESULTS = {
    spec.name for spec in BODY_OPS for result in spec.results if (spec.name, result.name) in MIXED
}
_NAMES = {spec.name: f"cuda_tile.{spec.name}" for spec in BODY_OPS}
_ATTRIBUTES = {
    spec.name: _view_attributes(spec)
    if any(attr.name == "inbounds" for attr in spec.attrs)
    else _plain_attributes(spec)
    for spec in BODY_OPS
}
_ATTRIBUTES["constant"] = _constant_attributes
# NumPy's types by name: nothing may load NumPy before a dense constant is met.
_STORAGE = {1: "u1", 4: "u1", 8: "u1", 16: "<u2", 32: "<u4", 64: "<u8"}

_SELF_CONTAINED: dict[type, Callable[[Builder, Any], ir.Attribute]] = {
    bool: lambda b, v: ir.BoolAttr.get(v),
    int: lambda b, v: b._number(v),
    str: lambda b, v: b.string(v),
    tuple: lambda b, v: ir.ArrayAttr.get([b.attribute(i) for i in v]),
    dict: lambda b, v: ir.DictAttr.get({_utf8(k): b.attribute(i) for k, i in v.items()}),
    a.Hints: lambda b, v: b.attribute(v.targets),
    a.Integer: Builder._integer,
    a.Float: Builder._float,
    a.TypeRef: lambda b, v: ir.TypeAttr.get(b.types(v.type)),
    a.Dense: Builder.dense,
    a.DivBy: lambda b, v: b._predicate(
        "div_by", divisor=b._number(v.divisor), every=b._maybe(v.every), along=b._maybe(v.along)
    ),
    a.SameElements: lambda b, v: b._predicate(
        "same_elements", values=ir.DenseI64ArrayAttr.get(list(v.values))
    ),
    a.Bounded: lambda b, v: b._predicate("bounded", lb=b._maybe(v.lb), ub=b._maybe(v.ub)),
    a.MultimemReduction: lambda b, v: b._predicate("multimem_reduction", value=b.string(v.kind)),
}


def _i64(value: int) -> int:
    """`value` modulo 2**64, read as signed."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _utf8(text: str) -> str:
    """`text`, if MLIR's bindings can hand it back.

    Raises:
        InputError: it has bytes that are not UTF-8, which files may hold and Python strings not.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raw = text.encode("utf-8", "surrogateescape")
        raise InputError(
            f"string {raw!r} is not UTF-8, so the program cannot be compiled"
        ) from None
    return text


def _readable(text: str) -> str:
    """A file name for messages; bytes that are not UTF-8 are replaced."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _u32(value: int) -> int:
    return value & 0xFFFFFFFF

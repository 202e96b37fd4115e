"""Dialects, operations, types and attributes as Python classes: what their bodies declare.

A class body lists fields, `name: Operand[C]`, with what IRDL (`tile_core.irdl`) shall ask of each:

| annotation | field |
|---|---|
| `Operand[C]`, `Result[C]` | a value whose type meets the constraint `C` |
| `Operand[C] \\| None`, `Sequence[Operand[C]]` | at most one; any number of one type |
| `Mixed(Operand[C], slots)` | any number, of several types |
| `Region` | a region |
| a class of attributes, `Any` | an attribute that must be there |

`MLIR`'s bindings have the like in `dialects/ext.py`. This one knows what is used here alone, and
makes the 260 operations of a compilation in a third of the time.
"""

import types as python_types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple, Union, get_args, get_origin

from tile_core import irdl
from tile_core.mlir import bindings_name, ir, registrar
from tile_core.mlir_substitutes import is_loaded

Operand = ir.Value
Region = ir.Region
Result = ir.OpResult

Kind = Literal["operand", "attribute", "result", "region"]
Variadicity = Literal["single", "optional", "variadic"]


class Mixed(NamedTuple):
    """What annotates a group whose values may differ in type.

    IRDL asks all values of a group to be of one type. This one is therefore `slots` groups, over
    which its values are spread in runs of one type (`runs_of_types`).
    """

    of: Any  # `Operand[C]` or `Result[C]`
    slots: int


class Field(NamedTuple):
    """One field of an operation."""

    name: str
    kind: Kind
    constraint: Any
    variadicity: Variadicity = "single"
    may_be_left_out: bool = False  # in Python, `= None` in the class body
    slots: int = 1  # groups of IRDL's


class Dialect(ir.Dialect):
    """Base of every dialect of the project; `load()` adds it to the current context."""

    DIALECT_NAMESPACE: ClassVar[str]
    operations: ClassVar[list[type["Operation"]]]
    types: ClassVar[list[type["Type"]]]
    attributes: ClassVar[list[type["Attribute"]]]

    def __init_subclass__(cls, name: str, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls.DIALECT_NAMESPACE = name
        cls.operations, cls.types, cls.attributes = [], [], []

    @classmethod
    def load(cls) -> None:
        """Declare the dialect in the current context; a second call does nothing."""
        name = cls.DIALECT_NAMESPACE
        if is_loaded(ir.Context.current, name):
            return
        declared = len(cls.operations) + len(cls.types) + len(cls.attributes)
        irdl.load(_definitions(cls, declared))
        for op in cls.operations:
            op.attach_traits()
        bindings = registrar()
        bindings.globals._register_dialect_impl(name, cls, replace=True)
        # Numbers of types are the context's.
        for type_ in cls.types:
            number = ir.DynamicType.lookup_typeid(type_.type_name)
            bindings.register_type_caster(number, replace=True)(type_)
        for attribute in cls.attributes:
            number = ir.DynamicAttr.lookup_typeid(attribute.attr_name)
            bindings.register_type_caster(number, replace=True)(attribute)
        for op in cls.operations:
            bindings.register_operation(cls, replace=True)(op)
        _stand_in_for_module(name)


def _stand_in_for_module(dialect: str) -> None:
    """The bindings look for a module of the dialect's name at every downcast of one of its
    operations, and a failed import costs 20 us: show them an empty one."""
    import sys

    module = f"{bindings_name()}.dialects.{dialect}"
    sys.modules.setdefault(module, python_types.ModuleType(module))


@cache
def _definitions(dialect: type[Dialect], declared: int) -> str:
    """The text of a dialect that has so many definitions, the same in every context."""
    del declared
    texts = [irdl.parameters("type", t.mnemonic, t._parameters) for t in dialect.types]
    texts += [irdl.parameters("attribute", a.mnemonic, a._parameters) for a in dialect.attributes]
    texts += [irdl.operation(op.mnemonic, op._fields) for op in dialect.operations]
    return irdl.dialect(dialect.DIALECT_NAMESPACE, texts)


class Operation(ir.OpView):
    """Base of operations: `class AddOp(Operation, dialect=D, name="add", traits=[Pure])`."""

    OPERATION_NAME: ClassVar[str]
    mnemonic: ClassVar[str]
    _fields: ClassVar[tuple[Field, ...]] = ()
    _traits: ClassVar[tuple[Any, ...]] = ()
    # What the bindings call them.
    _ODS_OPERAND_SEGMENTS: ClassVar[Any]
    _ODS_RESULT_SEGMENTS: ClassVar[Any]

    def __init_subclass__(
        cls, *, dialect: type[Dialect], name: str, traits: Sequence[Any] = (), **rest: Any
    ) -> None:
        super().__init_subclass__(**rest)
        cls._fields = tuple(
            _field(name, annotation, cls.__dict__) for name, annotation in _annotations(cls)
        )
        cls._traits = tuple(traits)
        cls.mnemonic = name
        cls.OPERATION_NAME = f"{dialect.DIALECT_NAMESPACE}.{name}"
        operands, results = cls._of("operand"), cls._of("result")
        cls._ODS_REGIONS = (len(cls._of("region")), True)
        cls._ODS_OPERAND_SEGMENTS = _segments(operands)
        cls._ODS_RESULT_SEGMENTS = _segments(results)
        for field, accessor in _accessors(cls._fields):
            setattr(cls, field.name, accessor)
        dialect.operations.append(cls)

    def __init__(
        self, *given: Any, loc: ir.Location | None = None, ip: Any = None, **named: Any
    ) -> None:
        """Make the operation, from what it declares, in that order, without its regions."""
        values = self._bound(given, named)
        regions = len(self._of("region")) or None
        super().__init__(
            self.OPERATION_NAME,
            self._ODS_REGIONS,
            self._ODS_OPERAND_SEGMENTS,
            self._ODS_RESULT_SEGMENTS,
            attributes={f.name: values[f.name] for f in self._of("attribute")},
            results=self._groups("result", values),
            operands=self._groups("operand", values),
            successors=None,
            regions=regions,
            loc=loc,
            ip=ip,
        )

    @classmethod
    def _of(cls, kind: Kind) -> list[Field]:
        return [field for field in cls._fields if field.kind == kind]

    @classmethod
    def _groups(cls, kind: Kind, values: Mapping[str, Any]) -> list[Any]:
        """What each of IRDL's groups is given.

        Raises:
            ValueError: values of more types than the group has slots.
        """
        found: list[Any] = []
        for field in cls._of(kind):
            given = values[field.name]
            if field.slots == 1:
                found.append(given)
                continue
            types = [value.type if isinstance(value, ir.Value) else value for value in given]
            sizes = runs_of_types(types, field.slots)
            if sizes is None:
                raise ValueError(f"'{field.name}' of {cls.__name__} holds {field.slots} types")
            rest = iter(given)
            found += [[next(rest) for _ in range(size)] for size in sizes]
        return found

    @classmethod
    def _bound(cls, given: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """What each field is given.

        Raises:
            TypeError: too much, too little, or what no field is called.
        """
        fields = [field for field in cls._fields if field.kind != "region"]
        values: dict[str, Any] = {f.name: None for f in fields if f.may_be_left_out}
        positional = [field.name for field in fields if not field.may_be_left_out]
        if len(given) > len(positional):
            raise TypeError(
                f"{cls.__name__} takes {len(positional)} arguments, and got {len(given)}"
            )
        values.update(zip(positional, given, strict=False))
        for name, value in named.items():
            if name in positional[: len(given)] or all(f.name != name for f in fields):
                raise TypeError(f"{cls.__name__} got an unexpected argument '{name}'")
            values[name] = value
        for name in positional:
            if name not in values:
                raise TypeError(f"{cls.__name__} lacks the argument '{name}'")
        return values

    @classmethod
    def attach_traits(cls) -> None:
        """Tell the current context the traits, and the verifier if there is one."""
        for trait in cls._traits:
            trait.attach(cls.OPERATION_NAME)
        if hasattr(cls, "verify_invariants") or hasattr(cls, "verify_region_invariants"):
            ir.DynamicOpTrait.attach(cls.OPERATION_NAME, cls)


def _annotations(cls: type) -> list[tuple[str, Any]]:
    """What the body of `cls` itself annotates."""
    if "__annotations__" in cls.__dict__ or hasattr(cls, "__annotate__"):
        return list(cls.__annotations__.items())
    return []


def _field(name: str, annotation: Any, body: Mapping[str, Any]) -> Field:
    if isinstance(annotation, str):
        raise TypeError(f"the annotation of '{name}' is a text: do without annotations as such")
    left_out = name in body
    if left_out and body[name] is not None:
        raise TypeError(f"the field '{name}' can have no default but None")
    kind, constraint, variadicity, slots = _read(annotation)
    if left_out and variadicity != "optional":
        raise TypeError(f"only an optional operand or result can be None, not '{name}'")
    if kind is None:
        raise TypeError(f"only operands and results can be optional or many, not '{name}'")
    return Field(name, kind, constraint, variadicity, left_out, slots)


@cache
def _read(annotation: Any) -> tuple[Kind | None, Any, Variadicity, int]:
    """What an annotation says, no matter of which field: as `Field` has it. The kind is None where
    it is optional or many and no value. A dialect says the same of most of its fields."""
    if isinstance(annotation, Mixed):
        kind, constraint, variadicity, _ = _read(Sequence[annotation.of])
        return kind, constraint, variadicity, annotation.slots
    variadicity = "single"
    origin = get_origin(annotation)
    if origin is Sequence or origin is python_types.UnionType or origin is Union:
        inner = _inner(annotation, origin)
        if inner is not None:
            variadicity = "variadic" if origin is Sequence else "optional"
            annotation, origin = inner, get_origin(inner)
    if origin is Operand or origin is Result:
        kind = "operand" if origin is Operand else "result"
        return kind, get_args(annotation)[0], variadicity, 1
    if variadicity != "single":
        return None, annotation, variadicity, 1
    return "region" if annotation is Region else "attribute", annotation, variadicity, 1


def _inner(annotation: Any, origin: Any) -> Any:
    """`T` of `Sequence[T]` and `T | None`; None for a union of others."""
    arguments = get_args(annotation)
    if origin is Sequence:
        return arguments[0]
    if len(arguments) == 2 and type(None) in arguments:
        return arguments[0] if arguments[1] is type(None) else arguments[1]
    return None


_SEGMENTS: dict[Variadicity, int] = {"single": 1, "optional": 0, "variadic": -1}


def _segments(fields: Sequence[Field]) -> list[int] | None:
    """How the bindings want it said; None where every field is one value."""
    if all(field.variadicity == "single" for field in fields):
        return None
    return [_SEGMENTS[field.variadicity] for field in fields for _ in range(field.slots)]


def runs_of_types(types: Sequence[Any], slots: int) -> list[int] | None:
    """Sizes of the runs of equal `types`, padded with 0 to `slots`; None if they are too many."""
    sizes: list[int] = []
    previous = None
    for type_ in types:
        if sizes and type_ == previous:
            sizes[-1] += 1
        else:
            sizes.append(1)
        previous = type_
    return sizes + [0] * (slots - len(sizes)) if len(sizes) <= slots else None


# --- properties, which operations share ----------------------------------------------------------


def _accessors(fields: Sequence[Field]) -> list[tuple[Field, property]]:
    many = {
        kind: any(f.kind == kind and f.variadicity != "single" for f in fields)
        for kind in ("operand", "result")
    }
    counts: dict[str, int] = dict.fromkeys(("operand", "attribute", "result", "region"), 0)
    found: list[tuple[Field, property]] = []
    for field in fields:
        at = counts[field.kind]
        counts[field.kind] += field.slots
        if field.kind == "attribute":
            accessor = _attribute(field.name)
        elif many.get(field.kind):
            accessor = _segment(field.kind, at, field.slots, field.variadicity)
        else:
            accessor = _single(field.kind, at)
        found.append((field, accessor))
    return found


@cache
def _attribute(name: str) -> property:
    return property(lambda op: op.attributes[name])


@cache
def _single(kind: Kind, at: int) -> property:
    get: dict[Kind, Callable[[Any], Any]] = {
        "operand": lambda op: op.operands[at],
        "result": lambda op: op.results[at],
        "region": lambda op: op.regions[at],
    }
    return property(get[kind])


@cache
def _segment(kind: Kind, at: int, slots: int, variadicity: Variadicity) -> property:
    values, sizes = f"{kind}s", f"{kind}SegmentSizes"

    def get(op: Any) -> Any:
        operation = op.operation
        counts = list(ir.DenseI32ArrayAttr(operation.attributes[sizes]))
        start = sum(counts[:at])
        found = getattr(operation, values)[start : start + sum(counts[at : at + slots])]
        if variadicity == "single":
            return found[0]
        if variadicity == "optional":
            return found[0] if len(found) else None
        return found

    return property(get)


# --- types and attributes ------------------------------------------------------------------------


class Type(ir.DynamicType):
    """Base of types: `class PtrType(Type, dialect=D, name="ptr")`, a field for each parameter."""

    type_name: ClassVar[str]  # pyright: ignore - here it is the class's
    mnemonic: ClassVar[str]
    symbol: ClassVar[str]
    _parameters: ClassVar[tuple[tuple[str, Any], ...]] = ()

    def __init_subclass__(cls, *, dialect: type[Dialect], name: str, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls.type_name = f"{dialect.DIALECT_NAMESPACE}.{name}"  # pyright: ignore
        _declare_parameters(cls, dialect, name)
        dialect.types.append(cls)

    @classmethod
    def get(  # pyright: ignore - of the class, whose name it therefore is not told
        cls, *parameters: Any, context: ir.Context | None = None
    ) -> Any:
        """The type with these parameters, attributes or types."""
        made = ir.DynamicType.get(cls.type_name, _as_attributes(parameters, context), context)
        return cls(made)


class Attribute(ir.DynamicAttr):
    """Base of attributes, declared as types are."""

    attr_name: ClassVar[str]  # pyright: ignore - here it is the class's
    mnemonic: ClassVar[str]
    symbol: ClassVar[str]
    _parameters: ClassVar[tuple[tuple[str, Any], ...]] = ()

    def __init_subclass__(cls, *, dialect: type[Dialect], name: str, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls.attr_name = f"{dialect.DIALECT_NAMESPACE}.{name}"  # pyright: ignore
        _declare_parameters(cls, dialect, name)
        dialect.attributes.append(cls)

    @classmethod
    def get(  # pyright: ignore - of the class, whose name it therefore is not told
        cls, *parameters: Any, context: ir.Context | None = None
    ) -> Any:
        """The attribute with these parameters, attributes or types."""
        made = ir.DynamicAttr.get(cls.attr_name, _as_attributes(parameters, context), context)
        return cls(made)


def _declare_parameters(cls: Any, dialect: type[Dialect], name: str) -> None:
    cls.mnemonic = name
    cls.symbol = f"@{dialect.DIALECT_NAMESPACE}::@{name}"
    cls._parameters = tuple(_annotations(cls))
    for at, (parameter, _) in enumerate(cls._parameters):
        setattr(cls, parameter, _parameter(at))


@cache
def _parameter(at: int) -> property:
    return property(lambda value: value.params[at])


def _as_attributes(parameters: Sequence[Any], context: ir.Context | None) -> list[Any]:
    return [ir.TypeAttr.get(p, context) if isinstance(p, ir.Type) else p for p in parameters]

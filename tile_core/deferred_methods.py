"""Dataclasses whose methods are made when they are first used.

`dataclasses` makes six methods for a class when it is decorated, and most are never called: of the
329 classes of a vector add's compilation 154 have no instance, 11 are compared, 9 hashed. Here a
class gets a stand-in for each, a descriptor that puts the method in its own place when somebody
looks it up; `__dataclass_fields__` is among them, so that `fields`, `replace` and `asdict` find
what they look for. `__init__` is written here, since it is what is called most; all else
`dataclasses` itself makes, for a class that has only the fields. What is not simple (`slots`,
`order`, `InitVar`, a mistake in the class) it does at once, with messages of its own.
"""

from __future__ import annotations

import abc
import dataclasses
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, MISSING, Field, FrozenInstanceError, InitVar
from typing import Any, ClassVar

_real = dataclasses.dataclass
#: How `dataclasses` marks a field that is none of the special ones; None if it does so otherwise.
_KIND: Any = getattr(dataclasses, "_FIELD", None)
_FIELDS = "__dataclass_fields__"
#: Arguments of the decorator that are known here; with any other it is not for us.
_KNOWN = frozenset(("frozen", "eq", "kw_only"))
#: With these in its body a class is not for us, either; Python 3.14 evaluates annotations by the
#: last when somebody asks for them.
_UNKNOWN = ("__setattr__", "__delattr__", "__annotate_func__")
#: How names begin that generated code has beside those of fields.
_INTERNAL = "__tilec_"
_SET, _ABSENT = f"{_INTERNAL}set", f"{_INTERNAL}absent"


class _Plan:
    """What the methods of a class are made from.

    Attributes:
        options: the decorator's arguments.
        bases: dataclasses that it inherits from, those first whose fields come first.
        fields: of its own: a `Field`, a default or MISSING, as the body has it.
        parameters: of `__init__`, those of bases first.
    """

    __slots__ = ("bases", "compares", "fields", "is_frozen", "options", "parameters")

    def __init__(self, options: dict[str, bool], bases: list[type]) -> None:
        self.options, self.bases = options, bases
        self.fields: dict[str, Any] = {}
        self.parameters: dict[str, _Parameter] = {}
        self.is_frozen = options.get("frozen", False)
        self.compares = options.get("eq", True)


class _Parameter:
    """A field, as `__init__` takes it. `default` and `factory` may be MISSING."""

    __slots__ = ("annotation", "default", "factory", "is_keyword", "name")

    def __init__(self, name: str, annotation: Any, value: Any, *, is_keyword: bool) -> None:
        self.name, self.annotation = name, annotation
        self.default, self.factory, self.is_keyword = value, MISSING, is_keyword
        if isinstance(value, Field):
            self.default, self.factory = value.default, value.default_factory
            if value.kw_only is not MISSING:
                self.is_keyword = bool(value.kw_only)

    @property
    def is_required(self) -> bool:
        """Whether a call has to give it."""
        return self.default is MISSING and self.factory is MISSING

    @property
    def initial(self) -> Any:
        """What `__init__` has as its default value."""
        return self.default if self.factory is MISSING else _absent


class _Absent:
    """What a parameter with a factory has when it is not given."""

    def __repr__(self) -> str:
        return "<factory>"  # as in signatures of `dataclasses`


_absent = _Absent()


class _Later:
    """Stands in for an attribute of a class that `make` makes. Threads may both make it: they make
    the same, and there is something at every moment."""

    __slots__ = ("make", "name", "of")

    def __init__(self, of: type, name: str, make: Callable[[type, str], Any]) -> None:
        self.of, self.name, self.make = of, name, make

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        made = self.make(self.of, self.name)
        setattr(self.of, self.name, made)
        return made.__get__(instance, owner) if isinstance(made, types.FunctionType) else made


class DeferredMethods:
    """Makes dataclasses.

    Args:
        execute: `exec(text, names)`.
    """

    def __init__(self, execute: Callable[[str, dict[str, Any]], None]) -> None:
        self._execute = execute
        self._plans: dict[type, _Plan] = {}
        # What this version of Python gives a dataclass.
        self._makers = {
            name: self._make_others for name in vars(_real(_empty())) if name not in vars(_empty())
        } | {"__init__": self._make_init, _FIELDS: self._make_fields}
        self._root = {is_frozen: _real(frozen=is_frozen)(_empty()) for is_frozen in (False, True)}

    def dataclass(self, cls: type | None = None, /, **options: bool) -> Any:
        """As `dataclasses.dataclass`."""
        if cls is None:
            return lambda cls: self._decorated(cls, options)
        return self._decorated(cls, options)

    def _decorated(self, cls: type, options: dict[str, bool]) -> type:
        plan = self._plan(cls, options)
        if plan is None:
            return _real(**options)(cls)
        self._plans[cls] = plan
        for name, value in plan.fields.items():
            if isinstance(value, Field):
                if value.default is MISSING:
                    delattr(cls, name)
                else:
                    setattr(cls, name, value.default)
        self._stand_in(cls, plan)
        if type(cls) is abc.ABCMeta:
            abc.update_abstractmethods(cls)
        return cls

    def _stand_in(self, cls: type, plan: _Plan) -> None:
        own = vars(cls)
        # Python gives what has an `__eq__` a `__hash__` that is None.
        hashes = "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)
        for name, make in self._makers.items():
            if name not in own and name != "__hash__" and (plan.compares or name != "__eq__"):
                setattr(cls, name, _Later(cls, name, make))
        if plan.compares and not hashes:
            later = _Later(cls, "__hash__", self._make_others)
            setattr(cls, "__hash__", later if plan.is_frozen else None)  # noqa: B010 - of any class
        if plan.is_frozen:
            for name, make in _REFUSALS.items():
                setattr(cls, name, _Later(cls, name, make))

    # --- what is simple --------------------------------------------------------------------------

    def _plan(self, cls: type, options: dict[str, bool]) -> _Plan | None:
        """How to make a class; None if it is not simple."""
        own = vars(cls)
        if (
            not cls.__doc__ or not options.keys() <= _KNOWN or not own.keys().isdisjoint(_UNKNOWN)
            or type(cls) not in (type, abc.ABCMeta)
        ):  # fmt: skip
            return None
        bases = [base for base in cls.__mro__[-2:0:-1] if _FIELDS in vars(base)]
        plan = _Plan(options, bases)
        for base in bases:
            above = self._plans.get(base)
            if above is None or above.is_frozen != plan.is_frozen:
                return None
            plan.parameters |= above.parameters
        if not _add_fields(plan, cls) or not _in_order(plan):
            return None
        stray = any(type(v) is Field and name not in plan.fields for name, v in own.items())
        return None if stray else plan

    # --- what is made ----------------------------------------------------------------------------

    def _make_init(self, cls: type, name: str) -> Any:
        plan = self._plans[cls]
        every = plan.parameters.values()
        parameters = [each for each in every if not each.is_keyword]
        head = ["self", *map(_taken, parameters)]
        if keywords := [each for each in every if each.is_keyword]:
            head += ["*", *map(_taken, keywords)]
            parameters += keywords
        names: dict[str, Any] = {_SET: object.__setattr__, _ABSENT: _absent}
        body: list[str] = []
        for each in parameters:
            value = each.name
            if each.factory is not MISSING:
                factory = f"{_INTERNAL}make_{value}"
                names[factory] = each.factory
                value = f"{factory}() if {value} is {_ABSENT} else {value}"
            body.append(
                f"{_SET}(self, {each.name!r}, {value})" if plan.is_frozen
                else f"self.{each.name} = {value}"
            )  # fmt: skip
        if hasattr(cls, "__post_init__"):
            body.append("self.__post_init__()")
        text = "\n ".join((f"def {name}({', '.join(head)}):", *(body or ("pass",))))
        self._execute(text, names)
        return _described(names[name], cls, parameters)

    def _make_fields(self, cls: type, name: str) -> Any:
        """`__dataclass_fields__`, without the methods."""
        plan = self._plans[cls]
        if _KIND is not None and vars(cls).get("__annotations__", {}).keys() <= plan.fields.keys():
            return _inherited(plan) | {key: _field_of(cls, plan, key) for key in plan.fields}
        # It has a `ClassVar`, which `dataclasses` notes as well.
        fields_only = self._fields_only(cls, is_frozen=False)
        kw_only = plan.options.get("kw_only", False)
        return vars(_real(init=False, repr=False, eq=False, kw_only=kw_only)(fields_only))[name]

    def _make_others(self, cls: type, name: str) -> Any:
        """What `dataclasses` makes for the fields of `cls`: `name`, and what it needs for that."""
        plan = self._plans[cls]
        options, wanted = plan.options, self._makers.keys()
        if name in ("__eq__", "__hash__"):  # what is asked for most often, and without the others
            options = {"init": False, "repr": False, "unsafe_hash": name == "__hash__"}
            wanted = {name}
        is_frozen = options.get("frozen", False)
        made = vars(_real(**options)(self._fields_only(cls, is_frozen=is_frozen)))
        for each in wanted:
            ours = self._makers.get(each) in (None, self._make_others)
            if ours and each in made and isinstance(vars(cls).get(each), _Later):
                setattr(cls, each, made[each])
        return made[name]

    def _fields_only(self, cls: type, *, is_frozen: bool) -> type:
        """A class that has the fields of `cls`, with those of its bases, and nothing else."""
        plan = self._plans[cls]
        annotations = vars(cls).get("__annotations__", {})
        body = {name: plan.fields.get(name, getattr(cls, name, MISSING)) for name in annotations}
        body = {name: value for name, value in body.items() if value is not MISSING} | {
            "__annotations__": annotations, "__doc__": cls.__doc__, "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
        }  # fmt: skip
        fields = _inherited(plan)
        above = (type("Base", (self._root[is_frozen],), {_FIELDS: fields}),) if fields else ()
        return type(cls.__name__, above, body)


def _empty() -> type:
    return type("Empty", (), {"__doc__": "of none", "__annotations__": {}})


def _inherited(plan: _Plan) -> dict[str, Field[Any]]:
    return {key: field for base in plan.bases for key, field in getattr(base, _FIELDS).items()}


def _field_of(cls: type, plan: _Plan, name: str) -> Field[Any]:
    """The description of a field of its own."""
    value = plan.fields[name]
    made: Any = value if isinstance(value, Field) else dataclasses.field(default=value)
    made.name, made.type = name, vars(cls)["__annotations__"][name]
    made._field_type = _KIND
    if made.kw_only is MISSING:
        made.kw_only = plan.options.get("kw_only", False)
    return made


def _add_fields(plan: _Plan, cls: type) -> bool:
    """Add the class's own; whether they are simple."""
    module = sys.modules.get(cls.__module__)
    known = vars(module) if module is not None else {}
    is_keyword = plan.options.get("kw_only", False)
    for name, annotation in vars(cls).get("__annotations__", {}).items():
        is_of_class = _is_of_class(annotation, known)
        if is_of_class is None:
            return False
        if is_of_class:
            continue
        value = getattr(cls, name, MISSING)
        if name == "self" or not _is_simple(value):
            return False
        plan.fields[name] = value
        plan.parameters[name] = _Parameter(name, annotation, value, is_keyword=is_keyword)
    return True


def _in_order(plan: _Plan) -> bool:
    """Whether no parameter without a default follows one with it."""
    required = [each.is_required for each in plan.parameters.values() if not each.is_keyword]
    return all(required[: sum(required)])


def _is_of_class(annotation: Any, known: Mapping[str, Any]) -> bool | None:
    """Whether it is no field's, but a `ClassVar`; None where it may say still more.

    Args:
        known: names of the module that it stands in.
    """
    if not isinstance(annotation, str):
        if annotation is ClassVar or getattr(annotation, "__origin__", None) is ClassVar:
            return True
        special = annotation in (KW_ONLY, InitVar) or isinstance(annotation, InitVar)
        return None if special else False
    value = known.get(annotation.partition("[")[0])
    if value is ClassVar:
        return True
    special = value is InitVar or value is KW_ONLY
    # With the name of a module in front, or in quotes.
    special = special or "ClassVar" in annotation or "InitVar" in annotation
    return None if special or "KW_ONLY" in annotation else False


def _is_simple(value: Any) -> bool:
    """Whether a body's value for a field is a default as any other. One that cannot be hashed is a
    mistake; a member's descriptor is none."""
    if isinstance(value, Field):
        if not value.init:
            return False
        value = value.default
    hashed = next(each["__hash__"] for each in map(vars, type(value).__mro__) if "__hash__" in each)
    return hashed is not None and not isinstance(value, types.MemberDescriptorType)


def _taken(parameter: _Parameter) -> str:
    """A parameter in the head of `__init__`."""
    return parameter.name if parameter.is_required else f"{parameter.name}={_ABSENT}"


def _described(made: Any, cls: type, parameters: Iterable[_Parameter]) -> Any:
    """`__init__` with its default values, and what it says of itself."""
    defaults: list[Any] = []
    of_keywords: dict[str, Any] = {}
    annotations: dict[str, Any] = {}
    for each in parameters:
        annotations[each.name] = each.annotation
        if not each.is_required and each.is_keyword:
            of_keywords[each.name] = each.initial
        elif not each.is_required:
            defaults.append(each.initial)
    made.__defaults__ = tuple(defaults)
    made.__kwdefaults__ = of_keywords
    made.__annotations__ = annotations | {"return": None}
    made.__module__ = cls.__module__
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _refuse_to_set(cls: type, method: str) -> Any:
    """`__setattr__` of what is frozen: subclasses may have attributes that are no fields."""

    def refuse(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in getattr(cls, _FIELDS):
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    refuse.__qualname__ = f"{cls.__qualname__}.{method}"
    return refuse


def _refuse_to_delete(cls: type, method: str) -> Any:
    """`__delattr__` of what is frozen."""

    def refuse(self: Any, name: str) -> None:
        if type(self) is cls or name in getattr(cls, _FIELDS):
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    refuse.__qualname__ = f"{cls.__qualname__}.{method}"
    return refuse


_REFUSALS = {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}

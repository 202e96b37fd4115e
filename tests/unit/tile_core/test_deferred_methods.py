"""Dataclasses with deferred methods are those that `dataclasses` makes, and made no sooner."""

from __future__ import annotations

import abc
import copy
import dataclasses
import inspect
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from tile_core.deferred_methods import DeferredMethods

HEAD = """
from __future__ import annotations
import abc
from dataclasses import InitVar, KW_ONLY, field
from typing import Any, ClassVar, Generic, TypeVar
T = TypeVar("T")
Alias = ClassVar
"""

FROZEN = "(frozen=True)"


def a(*body: str, given: str = "", base: str = "", before: str = "") -> str:
    """The text of a dataclass `A`.

    Args:
        body: its lines.
        given: arguments of the decorator, in brackets.
        base: classes that it inherits from, in brackets.
        before: what stands in front of it.
    """
    lines = "".join(f"    {line}\n" for line in ('"""Doc."""', *body))
    return f"{before}\n@dataclass{given}\nclass A{base}:\n{lines}"


def b(*body: str, given: str = FROZEN) -> str:
    """The same, called `B`."""
    return a(*body, given=given).replace("class A", "class B")


ABSTRACT = """
class B(abc.ABC):
    @property
    @abc.abstractmethod
    def x(self): ...
"""

#: Texts of classes, and arguments that are to make instances of them.
CLASSES: dict[str, tuple[str, tuple[str, ...]]] = {
    "empty": (a(), ("", "1")),
    "plain": (a("x: int", "y: str = 'b'"), ("1", "2, 'c'", "y='c', x=2", "", "1, 2, 3", "1, z=2")),
    "frozen": (a("x: int", "y: Any = None", given=FROZEN), ("1", "1, 2", "1, []")),
    "factory": (
        a("x: list[int] = field(default_factory=list)", "y: int = field(default=3, repr=False)"),
        ("", "[1]", "[], 4"),
    ),
    "not compared": (a("x: int", "y: int = field(default=3, compare=False)"), ("1", "1, 4")),
    "keywords": (
        a("x: int = 1", "y: int", given="(kw_only=True)"), ("y=2", "x=2, y=3", "2, 3", "")
    ),
    "one keyword": (
        a("x: int = field(default=1, kw_only=True)", "y: int"), ("2", "2, x=3", "2, 3")
    ),
    "without equality": (a("x: int", given="(eq=False)"), ("1",)),
    "frozen without equality": (a("x: int", given="(frozen=True, eq=False)"), ("1",)),
    "own methods": (
        a("x: int", "__eq__ = lambda a, b: True", "__repr__ = lambda a: 'mine'",
          "__hash__ = lambda a: 5", given=FROZEN),
        ("1", "2"),
    ),
    "own equality": (a("x: int", "__eq__ = lambda a, b: True", given=FROZEN), ("1",)),
    "own equality that changes": (a("x: int", "__eq__ = lambda a, b: True"), ("1",)),
    "own start": (a("x: int = 7", "def __init__(self): pass"), ("", "1")),
    "after": (a("x: int", "def __post_init__(self): self.x += 1"), ("1",)),
    "of the class": (a("k: ClassVar[int] = 1", "l: Alias = 2", "x: int"), ("1",)),
    "of the start": (
        a("x: InitVar[int]", "y: int = 0", "def __post_init__(self, x): self.y = x"), ("1",)
    ),
    "from here on": (a("x: int", "_: KW_ONLY", "y: int"), ("1, y=2", "1, 2")),
    "inherits": (
        a("z: int = 3", "x: str = 'q'", given=FROZEN, base="(B)", before=b("x: int", "y: int = 2")),
        ("", "1, 2, 3", "z=5"),
    ),
    "inherits a default": (a("x: int", base="(B)", before="class B: x = 4"), ("", "1")),
    "inherits slots": (
        a("y: int = 3", given=FROZEN, base="(B)",
          before=b("x: int", given="(frozen=True, slots=True)")),
        ("1",),
    ),
    "adds nothing": (a(given=FROZEN, base="(B)", before=b("x: int")), ("1",)),
    "undecorated": (b("x: int") + "class A(B):\n    pass\n", ("1",)),
    "no documentation": ("@dataclass\nclass A:\n    x: int\n", ("1",)),
    "ordered": (a("x: int", given="(order=True)"), ("1", "2")),
    "slots": (a("x: int = 1", given="(slots=True)"), ("", "1")),
    "not given": (a("x: int = field(init=False, default=3)"), ("", "1")),
    "abstract": (a("x: int", "@abc.abstractmethod", "def f(self): ...", base="(abc.ABC)"), ("1",)),
    "made concrete": (a("x: int = 2", base="(B)", before=ABSTRACT), ("", "1")),
    "made abstract again": (
        a("x: int = field(default_factory=int)", base="(B)", before=ABSTRACT), ("", "1")
    ),
    "generic": (a("x: T", given=FROZEN, base="(Generic[T])"), ("1",)),
    "odd names": (a("name: int", "cls: int", "print: int = 1"), ("1, 2",)),
    "called self": (a("self: int"), ("1",)),
    # Mistakes.
    "mutable default": (a("x: list = []"), ()),
    "late default": (a("x: int = 1", "y: int"), ()),
    "late default of a base": (
        a("y: int", given=FROZEN, base="(B)", before=b("x: int = 1")), ()
    ),
    "no annotation": (a("x = field(default=1)"), ()),
    "thaws": (a(base="(B)", before=b()), ()),
    "sets": (a("def __setattr__(self, n, v): ...", given=FROZEN), ()),
    "unknown argument": (a(given="(frost=True)"), ()),
}  # fmt: skip


def module_of(body: str, decorator: Any) -> ModuleType:
    module = ModuleType("of_a_test")
    sys.modules[module.__name__] = module
    vars(module)["dataclass"] = decorator
    exec(HEAD + body, vars(module))
    return module


def said(ask: Callable[[], Any]) -> Any:
    """What it returns, or how it fails."""
    try:
        return ask()
    except Exception as error:  # whatever it is, both ways have to raise the same
        return f"{type(error).__name__}: {error}"


def told(instance: Any, others: list[Any]) -> Iterator[Any]:
    """What can be asked of an instance."""
    cls = type(instance)
    yield repr(instance), vars(instance) if hasattr(instance, "__dict__") else None
    yield [(instance == other, instance != other) for other in [*others, None]]
    yield said(lambda: hash(instance)) if cls.__hash__ is not object.__hash__ else "by identity"
    yield [(f.name, f.type, f.default, f.kw_only, f.init, f.repr, f.compare, f.hash)
           for f in dataclasses.fields(instance)]  # fmt: skip
    yield said(lambda: dataclasses.asdict(instance)), said(lambda: dataclasses.astuple(instance))
    yield said(lambda: repr(dataclasses.replace(instance)))
    yield said(lambda: repr(dataclasses.replace(instance, x=9)))
    yield repr(copy.deepcopy(instance)), repr(pickle.loads(pickle.dumps(instance)))


def changed(instance: Any) -> Iterator[Any]:
    """What comes of changing an instance."""
    yield said(lambda: setattr(instance, "x", 8)), said(lambda: setattr(instance, "new", 8))
    yield said(lambda: delattr(instance, "new")), said(lambda: delattr(instance, "x"))


def all_told(body: str, makers: tuple[str, ...], decorator: Any) -> Any:
    try:
        module = module_of(body, decorator)
    except Exception as error:  # whatever it is, both ways have to raise the same
        return f"{type(error).__name__}: {error}"
    cls = module.A
    made = [said(lambda text=text: eval(f"A({text})", vars(module))) for text in makers]
    instances = [one for one in made if isinstance(one, cls)]
    return [
        cls.__doc__, dataclasses.is_dataclass(cls), str(inspect.signature(cls)),
        [repr(one) for one in made], [list(told(one, instances)) for one in instances],
        [list(changed(one)) for one in instances],
        cls.__match_args__, repr(cls.__dataclass_params__), sorted(vars(cls).keys()),
        cls.__init__.__qualname__, cls.__init__.__module__, cls.__init__.__annotations__,
        inspect.isabstract(cls), {k: v for k, v in vars(cls).items() if isinstance(v, int | str)},
    ]  # fmt: skip


@pytest.mark.parametrize("title", CLASSES)
def test_a_class_is_what_dataclasses_makes(title: str) -> None:
    body, makers = CLASSES[title]
    expected = all_told(body, makers, dataclasses.dataclass)
    assert all_told(body, makers, DeferredMethods(exec).dataclass) == expected


def test_fields_may_be_asked_for_first() -> None:
    body, _ = CLASSES["keywords"]
    module = module_of(body, DeferredMethods(exec).dataclass)
    assert [field.name for field in dataclasses.fields(module.A)] == ["x", "y"]
    assert repr(module.A(y=3)) == "A(x=1, y=3)"


def test_nothing_is_made_before_it_is_used() -> None:
    texts: list[str] = []

    def execute(text: str, names: dict[str, Any]) -> None:
        texts.append(text)
        exec(text, names)

    body, _ = CLASSES["frozen"]
    cls = module_of(body, DeferredMethods(execute).dataclass).A
    assert not texts
    instance = cls(1)
    assert texts == [
        "def __init__(self, x, y=__tilec_absent):\n"
        " __tilec_set(self, 'x', x)\n"
        " __tilec_set(self, 'y', y)"
    ]
    made = {name: vars(cls)[name] for name in ("__init__", "__eq__", "__repr__")}
    assert [inspect.isfunction(method) for method in made.values()] == [True, False, False]
    assert instance == cls(1, None)
    assert inspect.isfunction(vars(cls)["__eq__"])
    assert len(texts) == 1


def test_threads_may_use_a_class_for_the_first_time_at_once() -> None:
    body, _ = CLASSES["inherits"]
    for _ in range(50):
        cls = module_of(body, DeferredMethods(exec).dataclass).A
        start = threading.Barrier(4)
        found: list[Any] = []

        def use(cls: Any = cls, start: threading.Barrier = start, found: Any = found) -> None:
            start.wait()
            found.append((repr(cls(z=5)), hash(cls()) == hash(cls()), len(dataclasses.fields(cls))))

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [("A(x='q', y=2, z=5)", True, 3)] * 4


def test_of_abstract_classes_only_known_kinds_are_deferred() -> None:
    class Other(abc.ABCMeta):
        pass

    cls = Other("A", (), {"__doc__": "Doc.", "__annotations__": {"x": "int"}})
    assert inspect.isfunction(vars(DeferredMethods(exec).dataclass(cls))["__init__"])

from typing import Any, ClassVar

from torch_mlir import ir

Operand = ir.Value
Result = ir.OpResult
Region = ir.Region

class Variadicity:
    single: ClassVar[Variadicity]
    optional: ClassVar[Variadicity]
    variadic: ClassVar[Variadicity]

class FieldDef:
    name: str
    variadicity: Variadicity

class OperandDef(FieldDef): ...
class ResultDef(FieldDef): ...

class Operation(ir.OpView):
    OPERATION_NAME: ClassVar[str]
    # The real signature follows from the declared fields.
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __init_subclass__(
        cls, *, dialect: type[Dialect] = ..., name: str = ..., traits: list[Any] = ..., **kwargs: Any
    ) -> None: ...

class Type(ir.Type):
    def __init_subclass__(cls, *, dialect: type[Dialect] = ..., name: str = ..., **kwargs: Any) -> None: ...
    @classmethod
    def get(cls, *args: Any, context: ir.Context | None = None) -> Any: ...

class Attribute(ir.Attribute):
    def __init_subclass__(cls, *, dialect: type[Dialect] = ..., name: str = ..., **kwargs: Any) -> None: ...
    @classmethod
    def get(cls, *args: Any, context: ir.Context | None = None) -> Any: ...

class Dialect(ir.Dialect):
    DIALECT_NAMESPACE: ClassVar[str]
    def __init_subclass__(cls, name: str = ..., **kwargs: Any) -> None: ...
    @classmethod
    def load(cls) -> None: ...

class Pure:
    NoMemoryEffect: ClassVar[Any]
    @staticmethod
    def attach(op_name: str) -> None: ...

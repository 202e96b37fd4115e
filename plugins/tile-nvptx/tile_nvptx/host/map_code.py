"""LLVM IR, for the host, of one callback: reads arguments of a launch, writes its tensor maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tile_cute import tensor_map
from tile_cute.map_recipe import WIDENING, Apply, Argument, Constant, Expression, MapRecipe
from tile_cute.tensor_map import FIELDS

#: Words of 8 bytes that a callback writes; the upper half of a map stays as it is.
WORDS = 8

#: Operation of `tile_cute.map_recipe` -> instruction of LLVM, where one is enough.
_INSTRUCTIONS = {
    "addi": "add", "subi": "sub", "muli": "mul", "andi": "and", "ori": "or", "xori": "xor",
}  # fmt: skip
_INTRINSICS = {"minui": "umin", "maxui": "umax", "minsi": "smin", "maxsi": "smax"}


class MapCode:
    """The body of a callback; `%parameters` is the first byte of the launch's parameters."""

    def __init__(self, offsets: Sequence[int]) -> None:
        """`offsets`: bytes from the first parameter to each."""
        self._offsets = offsets
        self._lines: list[str] = []
        self._known: dict[Expression, str] = {}
        self.declared: set[str] = set()

    @property
    def body(self) -> str:
        return "\n".join(f"  {line}" for line in self._lines)

    def write(self, recipe: MapRecipe) -> None:
        """Add what writes one map."""
        words = {word: [] for word in range(WORDS)}
        for name, index, stored in self._fields(recipe):
            field = FIELDS[name]
            word, shift = divmod(field.position(index), 64)
            masked = self._line(f"and i64 {stored}, {(1 << field.width) - 1}")
            words[word].append(self._line(f"shl i64 {masked}, {shift}"))
        fixed = recipe.fixed_bits()
        for word, parts in words.items():
            value = str(_signed(fixed >> 64 * word))
            for part in parts:
                value = self._line(f"or i64 {part}, {value}")
            place = self._place(self._offsets[recipe.parameter] + 8 * word)
            self._lines.append(f"store i64 {value}, ptr {place}, align 8")

    def _fields(self, recipe: MapRecipe) -> list[tuple[str, int, str]]:
        """(field, number in it, what is stored): all that depends on arguments."""
        dims = [self._value(expression) for expression in recipe.dims]
        strides = [self._value(expression) for expression in recipe.strides]
        box: list[str] = []
        if recipe.joined:
            dims, strides, box = self._joined(recipe, dims, strides)
        lessened = [self._line(f"add i64 {extent}, -1") for extent in dims]
        found = [("global_address", 0, self._line(f"lshr i64 {self._value(recipe.address)}, 4"))]
        found += [("global_dim", at, extent) for at, extent in enumerate(lessened)]
        for at, extent in enumerate(box):
            found.append(("box_dim", at, self._line(f"add i64 {extent}, -1")))
        for at, stride in enumerate(strides):
            found.append(("stride_low", at, self._line(f"lshr i64 {stride}, 4")))
            found.append(("stride_high", at, self._line(f"lshr i64 {stride}, 36")))
        row = self._line(f"mul i64 {dims[0]}, {recipe.element_bits}")
        span = self._line(f"lshr i64 {self._line(f'add i64 {row}, 7')}, 3")
        for extent, stride in zip(lessened[1:], strides, strict=True):
            span = self._line(f"add i64 {span}, {self._line(f'mul i64 {extent}, {stride}')}")
        large = self._line(f"icmp uge i64 {span}, {tensor_map.LARGE_BYTES}")
        return [*found, ("large", 0, self._line(f"zext i1 {large} to i64"))]

    def _joined(
        self, recipe: MapRecipe, dims: list[str], strides: list[str]
    ) -> tuple[list[str], list[str], list[str]]:
        """Extents and strides of the map, and boxes of joined dimensions."""
        count, others = recipe.joined, recipe.joined - 1
        boxes = zip(dims[:count], recipe.box[:count], strict=True)
        steps = zip(strides[:others], recipe.dense_strides, strict=True)
        flags = [self._line(f"icmp uge i64 {extent}, {box}") for extent, box in boxes]
        flags += [self._line(f"icmp eq i64 {stride}, {dense}") for stride, dense in steps]
        flags += [self._line(f"icmp ne i64 {extent}, 0") for extent in dims[count:]]
        run = flags[0]
        for flag in flags[1:]:
            run = self._line(f"and i1 {run}, {flag}")

        def chosen(rows: Sequence[int], own: Sequence[str | int]) -> list[str]:
            pairs = zip(rows, own, strict=True)
            return [self._line(f"select i1 {run}, i64 {row}, i64 {old}") for row, old in pairs]

        box = chosen(recipe.joined_box, recipe.box[:count])
        extents = chosen(recipe.joined_box, dims[:count])
        rows = chosen(recipe.joined_strides, strides[:others])
        return [*extents, *dims[count:]], [*rows, *strides[others:]], box

    def _line(self, text: str) -> str:
        name = f"%v{len(self._lines)}"
        self._lines.append(f"{name} = {text}")
        return name

    def _place(self, offset: int) -> str:
        return self._line(f"getelementptr i8, ptr %parameters, i64 {offset}")

    def _value(self, expression: Expression) -> str:
        """An `i64` that holds the expression's value, zero-extended."""
        if expression not in self._known:
            self._known[expression] = self._made(expression)
        return self._known[expression]

    def _made(self, expression: Expression) -> str:
        match expression:
            case Constant(value):
                return str(_signed(value))
            case Argument(index, bits):
                read = max(bits, 8)
                place = self._place(self._offsets[index])
                value = self._line(f"load i{read}, ptr {place}, align 1")
                if bits < read:
                    value = self._line(f"and i{read} {value}, {(1 << bits) - 1}")
                return self._widened(value, read)
            case Apply():
                return self._applied(expression)

    def _applied(self, applied: Apply) -> str:
        bits, name = applied.bits, applied.name
        operands = [self._cut(self._value(operand), bits) for operand in applied.operands]
        if name in WIDENING:
            return self._widened(operands[0], bits, signed=name == "extsi")
        if name == "trunci":
            return self._widened(operands[0], bits)
        a, b = operands
        if name in _INSTRUCTIONS:
            result = self._line(f"{_INSTRUCTIONS[name]} i{bits} {a}, {b}")
        elif name in _INTRINSICS:
            callee = f"@llvm.{_INTRINSICS[name]}.i{bits}"
            self.declared.add(f"declare i{bits} {callee}(i{bits}, i{bits})")
            result = self._line(f"call i{bits} {callee}(i{bits} {a}, i{bits} {b})")
        elif name in ("shli", "shrui"):
            result = self._shifted("shl" if name == "shli" else "lshr", bits, a, b)
        else:
            result = self._quotient(name, bits, a, b)
        return self._widened(result, bits)

    def _shifted(self, instruction: str, bits: int, a: str, b: str) -> str:
        # A shift by the width or more is poison in LLVM.
        fits = self._line(f"icmp ult i{bits} {b}, {bits}")
        amount = self._line(f"select i1 {fits}, i{bits} {b}, i{bits} 0")
        shifted = self._line(f"{instruction} i{bits} {a}, {amount}")
        return self._line(f"select i1 {fits}, i{bits} {shifted}, i{bits} 0")

    def _quotient(self, name: str, bits: int, a: str, b: str) -> str:
        # A division that traps would end the process that launches the kernel.
        bad = self._line(f"icmp eq i{bits} {b}, 0")
        if name == "divsi":
            least = self._line(f"icmp eq i{bits} {a}, {-(1 << bits - 1)}")
            negates = self._line(f"icmp eq i{bits} {b}, -1")
            overflows = self._line(f"and i1 {least}, {negates}")
            bad = self._line(f"or i1 {bad}, {overflows}")
        divisor = self._line(f"select i1 {bad}, i{bits} 1, i{bits} {b}")
        quotient = self._line(f"{'sdiv' if name == 'divsi' else 'udiv'} i{bits} {a}, {divisor}")
        return self._line(f"select i1 {bad}, i{bits} 0, i{bits} {quotient}")

    def _cut(self, value: str, bits: int) -> str:
        if not value.startswith("%"):
            return str(_signed(int(value), bits))
        return value if bits == 64 else self._line(f"trunc i64 {value} to i{bits}")

    def _widened(self, value: str, bits: int, *, signed: bool = False) -> str:
        if bits == 64:
            return value
        return self._line(f"{'sext' if signed else 'zext'} i{bits} {value} to i64")


def _signed(value: int, bits: int = 64) -> int:
    """`value` as LLVM writes constants of `bits`."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def callback(
    name: str, recipes: Sequence[MapRecipe], offsets: Mapping[int, int]
) -> tuple[str, set[str]]:
    """The function `name` that writes the maps of one kernel, and what it needs declared.

    `offsets`: parameter -> bytes behind the first one.
    """
    code = MapCode([offsets[index] for index in range(len(offsets))])
    for recipe in recipes:
        code.write(recipe)
    head = f"define internal i32 @{name}(ptr %a, ptr %b, ptr %c, ptr %parameters) {{"
    return f"{head}\n{code.body}\n  ret i32 0\n}}\n", code.declared

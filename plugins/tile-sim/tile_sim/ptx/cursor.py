"""A cursor over tokens, and the operands and constant expressions read with it."""

from __future__ import annotations

import struct
from typing import NoReturn

from tile_sim.errors import SimError
from tile_sim.ptx.lexer import Source, Token, tokenize
from tile_sim.ptx.syntax import Address, Float, Group, Int, Name, Operand, Pair, Vector

# Binary operators of constant expressions, loosest first (PTX ISA, "Constant Expressions").
_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/"),
)
#: What follows an operand that is over.
_ENDS = frozenset(",;])}")
_BINDS = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}


class Cursor:
    """Reads tokens in order; every failure is a SimError at the token's place."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = tokenize(source)
        self.i = 0
        self._names: dict[str, Name] = {}

    @property
    def token(self) -> Token:
        return self.tokens[self.i]

    def error(self, message: str, token: Token | None = None) -> SimError:
        return SimError("syntax", message, self.source.where((token or self.token).pos))

    def fail(self, message: str, token: Token | None = None) -> NoReturn:
        raise self.error(message, token)

    def next(self) -> Token:
        token = self.tokens[self.i]
        if token.kind != "end":
            self.i += 1
        return token

    def at(self, *texts: str) -> bool:
        token = self.tokens[self.i]
        return token.text in texts and token.kind != "str"

    def accept(self, *texts: str) -> Token | None:
        return self.next() if self.at(*texts) else None

    def expect(self, text: str) -> Token:
        if not self.at(text):
            found = self.token.text or "the end of the text"
            self.fail(f"expected {text!r}, found {found!r}")
        return self.next()

    def identifier(self, what: str) -> Token:
        if self.token.kind != "id":
            self.fail(f"expected {what}, found {self.token.text or 'the end of the text'!r}")
        return self.next()

    def integer(self, what: str = "an integer") -> int:
        """A constant expression that yields an integer."""
        token = self.token
        text = token.text
        if text.isdigit() and text[0] != "0" and self.tokens[self.i + 1].text not in _BINDS:
            self.i += 1  # as nearly all are
            return int(text)
        value = self.expression()
        if not isinstance(value, Int):
            self.fail(f"expected {what}", token)
        return value.value

    def number(self) -> Int | Float:
        token = self.next()
        text = token.text
        head = text[:2].lower()
        if head == "0f":
            bits = int(text[2:], 16)
            return Float(struct.unpack("<f", struct.pack("<I", bits))[0], bits, 32)
        if head == "0d":
            bits = int(text[2:], 16)
            return Float(struct.unpack("<d", struct.pack("<Q", bits))[0], bits, 64)
        if head in ("0x", "0b"):
            return Int(int(text.rstrip("U"), 0))
        if "." in text or "e" in text or "E" in text:
            value = float(text)
            return Float(value, struct.unpack("<Q", struct.pack("<d", value))[0], 64)
        text = text.rstrip("U")
        if len(text) > 1 and text[0] == "0":
            if set(text) - set("01234567"):
                self.fail(f"{text!r} is not an octal number", token)
            return Int(int(text, 8))
        return Int(int(text))

    def expression(self, level: int = 0) -> Operand:
        """A constant expression of operators that bind as `level` does or closer.

        A lone name, or name +- integer, stays a Name.
        """
        left = self._unary()
        while (binds := _BINDS.get(self.token.text, -1)) >= level:
            # `d|p` is a pair of operands, not a constant, unless both sides are integers.
            if self.token.text == "|" and not isinstance(left, Int):
                return left
            op = self.next()
            left = self._fold(op, left, self.expression(binds + 1))
        return left

    def _fold(self, op: Token, left: Operand, right: Operand) -> Operand:
        if isinstance(left, Name) and isinstance(right, Int) and op.text in "+-":
            delta = right.value if op.text == "+" else -right.value
            return Name(left.name, left.part, left.offset + delta)
        if not (isinstance(left, Int) and isinstance(right, Int)):
            self.fail(f"operator {op.text!r} needs integer constants", op)
        a, b = left.value, right.value
        if op.text == "/":
            if b == 0:
                self.fail("division by zero in a constant expression", op)
            return Int(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))
        if op.text in ("<<", ">>") and not 0 <= b < 64:
            self.fail(f"shift by {b} in a constant expression", op)
        return Int(int(_FOLD[op.text](a, b)))

    def _unary(self) -> Operand:
        token = self.token
        if token.kind == "num":
            return self.number()
        if token.text == "(":
            return self._parenthesised()
        if token.kind == "op" and token.text in "-+~!":
            self.next()
            return self._apply_unary(token, self._unary())
        if token.kind == "id":
            return self._name()
        raise self.error(f"expected an operand, found {token.text or 'the end of the text'!r}")

    def _parenthesised(self) -> Operand:
        """`(expr)`, or a cast `(.s64) expr`, which we keep unbounded."""
        self.expect("(")
        if self.token.kind == "dot":
            self.next()
            self.expect(")")
            return self._unary()
        inner = self.expression()
        self.expect(")")
        return inner

    def _apply_unary(self, op: Token, value: Operand) -> Operand:
        if op.text == "!" and isinstance(value, Name):
            return Name(value.name, value.part, value.offset, negated=True)
        if isinstance(value, Float) and op.text in "+-":
            if op.text == "+":
                return value
            sign = 1 << (value.bits - 1)
            return Float(-value.value, value.pattern ^ sign, value.bits)
        if not isinstance(value, Int):
            self.fail(f"operator {op.text!r} needs a constant", op)
        a = value.value
        return Int({"-": -a, "+": a, "~": ~a, "!": int(not a)}[op.text])

    def _name(self) -> Name:
        token = self.next()
        part = None
        if self.token.kind == "dot" and self.token.pos == token.pos + len(token.text):
            part = self.next().text[1:]
        return Name(token.text, part)

    def operand(self) -> Operand:
        """One operand of an instruction."""
        token = self.tokens[self.i]
        if token.kind == "id" and self.tokens[self.i + 1].text in _ENDS:
            self.i += 1
            return self._lone(token.text)
        left = self._operand()
        if self.accept("|"):
            return Pair(left, self._operand())
        return left

    def _lone(self, text: str) -> Name:
        """A name with nothing to it; the same object each time."""
        found = self._names.get(text)
        if found is None:
            found = self._names[text] = Name(text)
        return found

    def _operand(self) -> Operand:
        if self.accept("{"):
            return Vector(self._items("}"))
        if self.accept("["):
            return self._address()
        if self.at("("):
            mark = self.i
            self.next()
            items = self._items(")")
            if len(items) == 1 and isinstance(items[0], Int | Float) and not self.at(",", ";"):
                self.i = mark
                return self.expression()
            return Group(items)
        return self.expression()

    def _items(self, close: str) -> tuple[Operand, ...]:
        items: list[Operand] = []
        while not self.accept(close):
            items.append(self.operand())
            if not self.at(close):
                self.expect(",")
                if self.at(close):
                    self.fail("expected an operand after the comma")
        return tuple(items)

    def _address(self) -> Address:
        token = self.token
        if token.kind == "id" and self.tokens[self.i + 1].text == "]":
            self.i += 2
            return Address(self._lone(token.text))
        base = self.expression()
        extra: list[Operand] = []
        while self.accept(","):
            extra.append(self.operand())
        self.expect("]")
        if isinstance(base, Int):
            return Address(base, 0, tuple(extra))
        if not isinstance(base, Name):
            self.fail("expected a register, variable or integer in an address", token)
        return Address(Name(base.name, base.part), base.offset, tuple(extra))


_FOLD = {
    "||": lambda a, b: bool(a) or bool(b),
    "&&": lambda a, b: bool(a) and bool(b),
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}

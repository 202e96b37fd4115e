"""Random kernels of numbers, truth values, branches and loops."""

from __future__ import annotations

import random

_HEAD = "entry @k(%p: tile<ptr<i32>>, %x: tile<i32>, %y: tile<i32>, %z: tile<i32>) {\n"
_PREDICATES = (
    "equal", "not_equal", "less_than", "less_than_or_equal", "greater_than",
    "greater_than_or_equal",
)  # fmt: skip
#: Numbers of the array that a kernel writes.
CELLS = 8


class Writer:
    """Writes one kernel. Every number it computes may end up in the array."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._count = 0
        self._budget = 40

    def text(self) -> str:
        """The kernel."""
        body = self._ops(["%x", "%y", "%z"], [], 0, "entry", [])
        return f"{_HEAD}{body}return\n}}\n"

    def _name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _ops(
        self, numbers: list[str], truths: list[str], depth: int, parent: str, carried: list[str]
    ) -> str:
        numbers, truths = list(numbers), list(truths)
        self._last = numbers, truths
        text = ""
        for _ in range(self._random.randrange(2, 7)):
            if self._budget <= 0:
                break
            self._budget -= 1
            kinds = [self._number, self._truth, self._select, self._store]
            if self._random.random() < 0.25:
                kinds = [self._choice, self._assumption, self._sum]
            if depth < 3:
                kinds += [self._branch, self._branch, self._loop]
            text += self._random.choice(kinds)(numbers, truths, depth, parent, carried)
        self._last = numbers, truths
        return text

    def _number(self, numbers, truths, depth, parent, carried) -> str:
        a, b, name = self._random.choice(numbers), self._random.choice(numbers), self._name()
        numbers.append(name)
        if self._random.random() < 0.3:
            value = self._random.choice((0, 1, -1, 2, 7, 2147483647, -2147483648))
            return f"{name} = constant <i32: {value}> : tile<i32>\n"
        operation = self._random.choice(("addi", "subi", "muli", "xori"))
        return f"{name} = {operation} {a}, {b} : tile<i32>\n"

    def _truth(self, numbers, truths, depth, parent, carried) -> str:
        name = self._name()
        choice = self._random.random()
        if choice < 0.25:
            text = f"{name} = constant <i1: {self._random.choice(('true', 'false'))}> : tile<i1>\n"
        elif choice < 0.5 and truths:
            true = self._name()
            text = f"{true} = constant <i1: true> : tile<i1>\n"
            text += f"{name} = xori {self._random.choice(truths)}, {true} : tile<i1>\n"
            truths.append(true)
        else:
            a, b = self._random.choice(numbers), self._random.choice(numbers)
            predicate = self._random.choice(_PREDICATES)
            text = f"{name} = cmpi {predicate} {a}, {b}, signed : tile<i32> -> tile<i1>\n"
        truths.append(name)
        return text

    def _condition(self, numbers, truths) -> tuple[str, str]:
        if not truths or self._random.random() < 0.2:
            return self._truth(numbers, truths, 0, "", []), truths[-1]
        return "", self._random.choice(truths)

    def _select(self, numbers, truths, depth, parent, carried) -> str:
        text, condition = self._condition(numbers, truths)
        of_truths = len(truths) > 1 and self._random.random() < 0.4
        pool, kind = (truths, "i1") if of_truths else (numbers, "i32")
        a, b, name = self._random.choice(pool), self._random.choice(pool), self._name()
        pool.append(name)
        return f"{text}{name} = select {condition}, {a}, {b} : tile<i1>, tile<{kind}>\n"

    def _choice(self, numbers, truths, depth, parent, carried) -> str:
        """A selection of constants."""
        text, condition = self._condition(numbers, truths)
        arms = [self._name(), self._name()]
        for arm in arms:
            text += f"{arm} = constant <i32: {self._random.choice((0, 1, 5))}> : tile<i32>\n"
        if self._random.random() < 0.3:
            condition = self._name()
            text += f"{condition} = constant <i1: true> : tile<i1>\n"
        numbers.append(self._name())
        arms_text = ", ".join(arms)
        return f"{text}{numbers[-1]} = select {condition}, {arms_text} : tile<i1>, tile<i32>\n"

    def _assumption(self, numbers, truths, depth, parent, carried) -> str:
        """What holds for every number."""
        name, value = self._name(), self._random.choice(numbers)
        last = [n for n in numbers if n.endswith("a")]
        value = self._random.choice(last) if last else value
        numbers.append(f"{name}a")
        return f"{name}a = assume bounded<-2147483648, 2147483647>, {value} : tile<i32>\n"

    def _sum(self, numbers, truths, depth, parent, carried) -> str:
        """A sum of a product, as bits."""
        a, b, c, product, total, bits = (self._name() for _ in range(6))
        text = ""
        for name in (a, b, c):
            source = self._random.choice(numbers)
            text += f"{name} = itof {source} signed : tile<i32> -> tile<f32>\n"
        operands = f"{c}, {product}" if self._random.random() < 0.7 else f"{product}, {c}"
        numbers.append(bits)
        return (
            f"{text}{product} = mulf {a}, {b} : tile<f32>\n"
            f"{total} = addf {operands} : tile<f32>\n"
            f"{bits} = bitcast {total} : tile<f32> -> tile<i32>\n"
        )

    def _store(self, numbers, truths, depth, parent, carried) -> str:
        place, at, token = self._name(), self._name(), self._name()
        value = self._random.choice(numbers)
        return (
            f"{place} = constant <i32: {self._random.randrange(CELLS)}> : tile<i32>\n"
            f"{at} = offset %p, {place} : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>\n"
            f"{token} = store_ptr_tko weak {at}, {value} : tile<ptr<i32>>, tile<i32> -> token\n"
        )

    def _branch(self, numbers, truths, depth, parent, carried) -> str:
        text, condition = self._condition(numbers, truths)
        kinds = [self._random.choice(("i32", "i1")) for _ in range(self._random.randrange(3))]
        if not truths:
            kinds = []
        sides = [self._side(numbers, truths, depth, parent, carried, kinds) for _ in range(2)]
        names = [self._name() for _ in kinds]
        head = f"{', '.join(names)} = " if names else ""
        arrow = f" -> ({', '.join(f'tile<{k}>' for k in kinds)})" if kinds else ""
        text += f"{head}if {condition}{arrow} {{\n{sides[0]}}}"
        if kinds or self._random.random() < 0.6:
            text += f" else {{\n{sides[1]}}}"
        for name, kind in zip(names, kinds, strict=True):
            (numbers if kind == "i32" else truths).append(name)
        return text + "\n"

    def _side(self, numbers, truths, depth, parent, carried, kinds) -> str:
        text = ""
        inner = numbers, truths
        if self._random.random() < 0.7:
            text = self._ops(numbers, truths, depth + 1, parent, carried)
            inner = self._last
        if self._random.random() < 0.15 and parent in ("entry", "for"):
            if parent == "entry":
                return f"{text}return\n"
            values = ", ".join(self._random.choice(inner[0]) for _ in carried)
            types = ", ".join("tile<i32>" for _ in carried)
            return f"{text}continue {values} : {types}\n" if carried else f"{text}continue\n"
        values = [self._random.choice(inner[0] if k == "i32" else inner[1]) for k in kinds]
        types = ", ".join(f"tile<{k}>" for k in kinds)
        return f"{text}yield {', '.join(values)} : {types}\n" if kinds else text

    def _loop(self, numbers, truths, depth, parent, carried) -> str:
        low, high, step, index = (self._name() for _ in range(4))
        first = self._random.randrange(-3, 4)
        text = f"{low} = constant <i32: {first}> : tile<i32>\n"
        text += f"{high} = constant <i32: {first + self._random.randrange(-2, 6)}> : tile<i32>\n"
        text += f"{step} = constant <i32: {self._random.choice((1, 1, 2, 3))}> : tile<i32>\n"
        count = self._random.randrange(3)
        names, args = [self._name() for _ in range(count)], [self._name() for _ in range(count)]
        inits = [self._random.choice(numbers) for _ in range(count)]
        inside = [*numbers, index, index, index, *args]
        body = self._compare(index, inside, truths)
        body_truths = [*truths, self._compared]
        body += self._ops(inside, body_truths, depth + 1, "for", args)
        given = [self._random.choice(self._last[0]) for _ in range(count)]
        types = ", ".join("tile<i32>" for _ in range(count))
        carries = ", ".join(f"{a} = {b}" for a, b in zip(args, inits, strict=True))
        iterated = f" iter_values({carries}) -> ({types})" if count else ""
        head = f"{', '.join(names)} = " if count else ""
        end = f"continue {', '.join(given)} : {types}\n" if count else ""
        text += (
            f"{head}for {index} in ({low} to {high}, step {step}) : tile<i32>{iterated} {{\n"
            f"{body}{end}}}\n"
        )
        numbers += names
        return text

    def _compare(self, index: str, numbers: list[str], truths: list[str]) -> str:
        self._compared = self._name()
        other = self._random.choice(numbers)
        pair = (index, other) if self._random.random() < 0.5 else (other, index)
        predicate = self._random.choice(_PREDICATES)
        return (
            f"{self._compared} = cmpi {predicate} {pair[0]}, {pair[1]}, signed : tile<i32> -> "
            "tile<i1>\n"
        )

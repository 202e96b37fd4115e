"""Vector spaces over GF(2); a vector is a Python int, bit i its i-th component."""

from collections.abc import Iterable, Sequence


class Span:
    """A growing span that remembers how each vector is made of the inserted ones.

    Rows are kept by their highest bit; `combo` bit i stands for the i-th inserted vector.
    """

    __slots__ = ("count", "rows")

    def __init__(self, vectors: Iterable[int] = ()) -> None:
        self.rows: dict[int, tuple[int, int]] = {}
        self.count = 0
        for vector in vectors:
            self.add(vector)

    @property
    def rank(self) -> int:
        return len(self.rows)

    def add(self, vector: int) -> bool:
        """Insert a vector; True if it was independent of those before it."""
        combo = 1 << self.count
        self.count += 1
        rows = self.rows
        while vector:
            row = rows.get(vector.bit_length())
            if row is None:
                rows[vector.bit_length()] = (vector, combo)
                return True
            vector ^= row[0]
            combo ^= row[1]
        return False

    def solve(self, vector: int) -> int | None:
        """The inserted vectors (a mask) that add up to `vector`; None if it is outside."""
        combo = 0
        rows = self.rows
        while vector:
            row = rows.get(vector.bit_length())
            if row is None:
                return None
            vector ^= row[0]
            combo ^= row[1]
        return combo

    def contains(self, vector: int) -> bool:
        rows = self.rows
        while vector:
            row = rows.get(vector.bit_length())
            if row is None:
                return False
            vector ^= row[0]
        return True

    def copy(self) -> "Span":
        twin = Span()
        twin.rows = dict(self.rows)
        twin.count = self.count
        return twin


def rank(vectors: Iterable[int]) -> int:
    return Span(vectors).rank


def combine(vectors: Sequence[int], mask: int) -> int:
    """XOR of the vectors whose bit is set in `mask`: the matrix product of columns and vector."""
    total = 0
    while mask:
        low = mask & -mask
        total ^= vectors[low.bit_length() - 1]
        mask ^= low
    return total


def table(vectors: Sequence[int]) -> list[int]:
    """`combine(vectors, i)` for every i, by doubling."""
    values = [0]
    for vector in vectors:
        values += [value ^ vector for value in values]
    return values


def independent(vectors: Iterable[int]) -> list[int]:
    """The vectors, in order, that are independent of those before them."""
    span = Span()
    return [vector for vector in vectors if span.add(vector)]


def kernel(vectors: Sequence[int]) -> list[int]:
    """Basis of the masks m with combine(vectors, m) == 0, lowest redundant vector first."""
    span = Span()
    found = []
    for index, vector in enumerate(vectors):
        combo = span.solve(vector)
        if combo is not None:
            found.append(combo | 1 << index)
        span.add(vector)
    return found


def intersection(left: Sequence[int], right: Sequence[int]) -> list[int]:
    """Basis of the intersection of two spans."""
    a, b = independent(left), independent(right)
    low = (1 << len(a)) - 1
    return independent(combine(a, mask & low) for mask in kernel([*a, *b]))


def reduced(vectors: Iterable[int]) -> list[int]:
    """Reduced echelon basis of a span, ascending: equal spans have equal results."""
    rows: list[int] = []
    for vector in vectors:
        for row in rows:
            vector = min(vector, vector ^ row)
        if vector:
            rows = [min(row, row ^ vector) for row in rows]
            rows.append(vector)
            rows.sort(reverse=True)
    return rows[::-1]


def complete(vectors: Iterable[int], bits: int) -> list[int]:
    """Unit vectors that extend the span of `vectors` to all of GF(2)^bits."""
    span = Span(vectors)
    return [1 << i for i in range(bits) if span.add(1 << i)]


def inverse(columns: Sequence[int]) -> list[int] | None:
    """Columns of the inverse of a square matrix; None if it is singular."""
    span = Span(columns)
    if span.rank != len(columns):
        return None
    return [combo for i in range(len(columns)) if (combo := span.solve(1 << i)) is not None]

"""Sums of products of numbers of so many bits, and functions of them, that can be compared.

Two forms that are equal have the same value whatever their symbols stand for; those that differ may
have it, too. Sums and products are worked out modulo 2^bits, so that nothing is lost where numbers
wrap around. All else is a function of forms that nothing is known of.

No MLIR here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

#: What is multiplied, by number, in order. () is one.
Product = tuple[int, ...]
#: What stands in the place of an axis' coordinate: another one's, or None for zero, and what is
#: added to it.
Moved = tuple[int, tuple[int | None, int]]
#: Products of a sum, and factors of a product, beyond which it is a function that nothing is known
#: of.
_MOST_TERMS, _MOST_FACTORS = 24, 8
#: Functions of functions that are looked into.
_DEEPEST = 32


class TooDeepError(Exception):
    """A form would have too many functions of functions."""


@dataclass(frozen=True)
class Form:
    """A sum modulo 2^bits: products and how often each is taken, in the order of their numbers."""

    bits: int
    terms: tuple[tuple[Product, int], ...] = ()


@dataclass(frozen=True)
class _Coordinate:
    """Where along an axis of its tile an element stands."""

    axis: int


@dataclass(frozen=True)
class _Applied:
    """A function, or a symbol where there are no operands."""

    name: Hashable
    operands: tuple[Form, ...]


class Forms:
    """Makes forms; those that one `Forms` made may be compared."""

    def __init__(self) -> None:
        self._numbers: dict[_Coordinate | _Applied, int] = {}
        self._atoms: list[_Coordinate | _Applied] = []
        self._moved: dict[tuple[Form, tuple[Moved, ...]], Form] = {}
        self._outlines: dict[Hashable, int] = {}
        self._depths: dict[int, int] = {}

    def constant(self, value: int, bits: int) -> Form:
        """A number."""
        return _sum({(): value}, bits)

    def coordinate(self, axis: int, bits: int) -> Form:
        """An element's place along `axis`."""
        return self._atom(_Coordinate(axis), bits)

    def applied(self, name: Hashable, operands: Sequence[Form], bits: int) -> Form:
        """A function of forms; those of the same name are the same, of as many bits.

        Raises:
            TooDeepError: these are functions of functions of functions already.
        """
        found = self._atom(_Applied(name, tuple(operands)), bits)
        ((number,), _) = found.terms[0]
        if number not in self._depths:
            inside = (n for operand in operands for product, _ in operand.terms for n in product)
            self._depths[number] = 1 + max((self._depths.get(n, 0) for n in inside), default=0)
        if self._depths[number] > _DEEPEST:
            raise TooDeepError
        return found

    def _atom(self, atom: _Coordinate | _Applied, bits: int) -> Form:
        if atom not in self._numbers:
            self._numbers[atom] = len(self._atoms)
            self._atoms.append(atom)
        return Form(bits, (((self._numbers[atom],), 1),))

    def add(self, left: Form, right: Form, times: int = 1) -> Form:
        """left + times * right."""
        terms = Counter(dict(left.terms))
        for product, factor in right.terms:
            terms[product] += times * factor
        found = _sum(terms, left.bits)
        if len(found.terms) > _MOST_TERMS:
            return self.applied(("add", times, left.bits), (left, right), left.bits)
        return found

    def multiply(self, left: Form, right: Form) -> Form:
        """left * right."""
        terms, factors = len(left.terms) * len(right.terms), _factors(left) + _factors(right)
        if terms > _MOST_TERMS or factors > _MOST_FACTORS:
            return self.applied(("multiply", left.bits), (left, right), left.bits)
        found: Counter[Product] = Counter()
        for a, m in left.terms:
            for b, n in right.terms:
                found[tuple(sorted((*a, *b)))] += m * n
        return _sum(found, left.bits)

    def narrowed(self, form: Form, bits: int) -> Form:
        """The lowest `bits` bits, of no more than there are."""
        return _sum(dict(form.terms), bits)

    def moved(self, form: Form, places: tuple[Moved, ...]) -> Form:
        """The form with other coordinates in the place of some."""
        if (form, places) not in self._moved:
            total = Form(form.bits)
            for product, factor in form.terms:
                made = self.constant(1, form.bits)
                for number in product:
                    made = self.multiply(made, self._moved_atom(number, places, form.bits))
                total = self.add(total, made, factor)
            self._moved[form, places] = total
        return self._moved[form, places]

    def _moved_atom(self, number: int, places: tuple[Moved, ...], bits: int) -> Form:
        atom = self._atoms[number]
        if isinstance(atom, _Applied):
            operands = [self.moved(operand, places) for operand in atom.operands]
            return self.applied(atom.name, operands, bits)
        axis, by = dict(places).get(atom.axis, (atom.axis, 0))
        shift = self.constant(by, bits)
        return shift if axis is None else self.add(self.coordinate(axis, bits), shift)

    # -- what differs by a number of elements -----------------------------------------------

    def start(self, forms: Sequence[Form], axis: int) -> int:
        """How far along `axis` the elements lie that `forms` speak of: of forms in which the axis'
        coordinate alone has another number added, that number differs by as much. 0 if there is no
        such number.
        """
        found = min(self._starts(forms, axis), default=None)
        return 0 if found is None else found[-1]

    def _starts(self, forms: Sequence[Form], axis: int) -> Iterator[tuple[bool, int, int]]:
        """What is added to the coordinate where it stands in a sum, the plainest first."""
        coordinate = self._numbers.get(_Coordinate(axis))
        stack, seen = list(forms), set[Form]()
        while stack:
            form = stack.pop()
            if form in seen:
                continue
            seen.add(form)
            terms = dict(form.terms)
            for product, factor in form.terms:
                atoms = [self._atoms[number] for number in product]
                stack += [o for atom in atoms if isinstance(atom, _Applied) for o in atom.operands]
                if coordinate is None or product.count(coordinate) != 1:
                    continue
                others = tuple(number for number in product if number != coordinate)
                added = _signed(terms.get(others, 0), form.bits)
                by = _signed(factor, form.bits)
                plain = by == 1 and not others
                yield not plain, self._outline(form), added // by

    def _outline(self, form: Form) -> int:
        """A number of what a form is but for the numbers that are added in it."""
        if form not in self._outlines:
            parts = (
                (tuple(sorted(map(self._outline_of_atom, product))), factor)
                for product, factor in form.terms
                if product
            )
            shape = (form.bits, tuple(sorted(parts)))
            self._outlines[form] = self._outlines.setdefault(shape, len(self._outlines))
        return self._outlines[form]

    def _outline_of_atom(self, number: int) -> int:
        atom = self._atoms[number]
        key: Hashable = atom
        if isinstance(atom, _Applied):
            key = (atom.name, tuple(map(self._outline, atom.operands)))
        return self._outlines.setdefault(key, len(self._outlines))


def _factors(form: Form) -> int:
    return max((len(product) for product, _ in form.terms), default=0)


def _sum(terms: Mapping[Product, int], bits: int) -> Form:
    kept = ((product, factor % (1 << bits)) for product, factor in terms.items())
    return Form(bits, tuple(sorted(term for term in kept if term[1])))


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value

"""Units at the door: ``7.03 pJ``, ``128 MiB``, ``614 GB/s`` in, SI numbers out, and back for printing.

Inside einloom every number is SI: joules, seconds, watts, square metres; sizes in bits; throughputs in bits per second
or operations per second. Suffixes exist only in files and in print. 1 kB is 1000 bytes, 1 KiB is 1024.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from decimal import Decimal
from fractions import Fraction
from keyword import iskeyword
from types import MappingProxyType
from typing import Literal, get_args

from ..dataclass import dataclass
from ..errors import SpecError, nearest
from .arithmetic import MAX_EXPRESSION_LENGTH, Named, exact, measure
from .dimensions import PLAIN, Dimension, Measure, dimension, dimension_text

Quantity = Literal["size", "throughput", "rate", "energy", "time", "power", "area", "count", "any"]
"""What a number is. ``count``: a plain number; ``any``: what a parameter holds, of whichever dimension."""

_SMALL = {"f": -15, "p": -12, "n": -9, "u": -6, "µ": -6, "\N{GREEK SMALL LETTER MU}": -6, "m": -3}
_LARGE = {"k": 3, "M": 6, "G": 9, "T": 12, "P": 15}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5}


def _scaled(unit: str, factor: int, *, small: bool = False, binary: bool = False) -> dict[str, Fraction]:
    table = {unit: Fraction(factor)}
    table.update({prefix + unit: Fraction(10) ** power * factor for prefix, power in _LARGE.items()})
    if small:
        table.update({prefix + unit: Fraction(10) ** power * factor for prefix, power in _SMALL.items()})
    if binary:
        table.update({prefix + unit: Fraction(1024) ** power * factor for prefix, power in _BINARY.items()})
    return table


_SIZES = {**_scaled("bit", 1, binary=True), **_scaled("B", 8, binary=True)}
_AREAS = {"m2": 0, "cm2": 4, "mm2": 6, "um2": 12, "nm2": 18}


@dataclass(frozen=True, slots=True)
class _Kind:
    """What there is to know of a quantity.

    meaning: in words. units: by name, with what one of them is in SI. dimensions: that a value may have, beside that of
    a plain number. printed: the SI unit.
    """

    meaning: str
    units: Mapping[str, Fraction]
    dimensions: tuple[Dimension, ...] = ()
    printed: str = ""


_KINDS: dict[Quantity, _Kind] = {
    "size": _Kind("a size (bit, B, KiB, MiB)", {**_SIZES, "bits": Fraction(1)}, (dimension(bit=1),), "bit"),
    "throughput": _Kind(
        "a memory throughput (bit/s, GB/s, GiB/s)",
        {f"{unit}/s": factor for unit, factor in _SIZES.items()},
        (dimension(bit=1, s=-1),),
        "bit/s",
    ),
    "rate": _Kind(
        "a rate (Hz, GHz, op/s)",
        {**_scaled("Hz", 1), **_scaled("op/s", 1), **_scaled("ops/s", 1)},
        (dimension(op=1, s=-1), dimension(s=-1)),
        "Hz",
    ),
    "energy": _Kind("an energy (J, nJ, pJ, fJ)", _scaled("J", 1, small=True), (dimension(J=1),), "J"),
    "time": _Kind(
        "a time (s, ms, us)",
        {**_scaled("s", 1, small=True), "min": Fraction(60), "h": Fraction(3600)},
        (dimension(s=1),),
        "s",
    ),
    "power": _Kind("a power (W, mW)", _scaled("W", 1, small=True), (dimension(J=1, s=-1),), "W"),
    "area": _Kind(
        "an area (m2, mm2, um2)",
        {unit: Fraction(1, 10**power) for unit, power in _AREAS.items()},
        (dimension(m=2),),
        "m2",
    ),
    "count": _Kind("a plain number, without a unit", {}, (PLAIN,)),
}
_KINDS["any"] = _Kind("a number", {name: one for kind in _KINDS.values() for name, one in kind.units.items()})
_LETTER = r"[A-Za-zµ\N{GREEK SMALL LETTER MU}]"
_WRITTEN = re.compile(
    r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*(?![eE][+-]?\d+\s*\Z)"
    rf"({_LETTER}(?:{_LETTER}|[0-9/])*)\s*\Z"
)
_WORD = re.compile(rf"(?<![A-Za-z_.]){_LETTER}\w*")
_NUMBER_AND_UNIT = re.compile(rf"(?<![\w.])((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(\s*)({_LETTER}\w*)")


def _measures() -> Mapping[str, Measure]:
    """Every unit by its name, those with a slash included."""
    table = {}
    for kind in _KINDS.values():
        for name, factor in kind.units.items() if kind.dimensions else ():
            # a hertz is a rate of anything, an op/s is one of operations
            table[name] = Measure(factor, kind.dimensions[-1 if name.endswith("Hz") else 0])
    for unit in ("op", "ops"):
        table.update({name: Measure(factor, dimension(op=1)) for name, factor in _scaled(unit, 1).items()})
    return MappingProxyType(table)


_MEASURES = _measures()
_NAMES = MappingProxyType({name: found for name, found in _MEASURES.items() if "/" not in name})
UNIT_NAMES = frozenset(_NAMES)
"""Names that arithmetic gives a meaning wherever it stands."""


def meaning(quantity: Quantity) -> str:
    """What a number of this quantity is, in words."""
    return _KINDS[quantity].meaning


def suffixes(quantity: Quantity) -> tuple[str, ...]:
    """The units that a number of this quantity may have."""
    return tuple(_KINDS[quantity].units)


def parse(value: str | int | float, quantity: Quantity, names: Mapping[str, Named] | None = None) -> int | float:
    """The value in SI: bits for a size (an int), bits or operations per second, joules, seconds, watts, square metres.

    Plain numbers are SI already; text is a number with a unit or arithmetic over `names` and units.

    >>> parse("128 MiB", "size"), parse("7.03 pJ", "energy"), parse("2 * KiB", "size"), parse("1.05 GHz", "rate")
    (1073741824, 7.03e-12, 16384, 1050000000.0)

    Raises SpecError for unknown units and units of another dimension, sizes that are not whole bits, and anything that
    is no finite number.
    """
    if isinstance(value, bool):
        raise SpecError(f"{value} is not {_KINDS[quantity].meaning}")
    number = _of_quantity(value, quantity, names or {}) if isinstance(value, str) else exact(value)
    if quantity in ("size", "count"):
        if number.denominator != 1:
            raise SpecError(f"{_equal(value, number)} is not a whole number{' of bits' if quantity == 'size' else ''}")
        return int(number)
    try:
        return float(number)
    except OverflowError:
        raise SpecError(f"{value} is too large") from None


def _equal(value: str | int | float, number: Fraction) -> str:
    """``1 / 3 = 0.333333``, or ``0.5`` alone."""
    try:
        shown = f"{float(number):g}"
    except OverflowError:
        return str(value)
    return shown if str(value).strip() == shown else f"{value} = {shown}"


def _of_quantity(text: str, quantity: Quantity, names: Mapping[str, Named]) -> Fraction:
    """The value of a text, whose dimension must be that of the quantity; a plain number is in SI."""
    found = measured(text, names, quantity)
    if found.dimension == PLAIN or quantity == "any" or found.dimension in _KINDS[quantity].dimensions:
        return found.value
    raise SpecError(f"{text.strip()!r} {described(found)}, but this must be {_KINDS[quantity].meaning}")


def described(found: Measure) -> str:
    """What a number is, as the end of a sentence: ``is an energy (J, nJ, pJ, fJ)``, ``has the unit J*bit``."""
    meanings = [kind.meaning for kind in _KINDS.values() if found.dimension in kind.dimensions]
    return f"is {meanings[0]}" if meanings else f"has the unit {dimension_text(found.dimension)}"


def measured(text: str, names: Mapping[str, Named] | None = None, quantity: Quantity = "any") -> Measure:
    """The number that a text means, with its dimension: ``64 KiB``, ``2 * lanes * 8 bit``, ``614 GB/s``.

    >>> measured("64 KiB / 8 B").value
    Fraction(8192, 1)

    quantity: what is expected, for messages and suggestions alone. Raises SpecError for what cannot be read.
    """
    names = names or {}
    match = _WRITTEN.match(text) if len(text) <= 100 else None
    if match is not None and match[2] in _MEASURES and match[2] not in names:
        unit = _MEASURES[match[2]]
        return Measure(Fraction(match[1]) * unit.value, unit.dimension)
    listed = [*unit_names(quantity), *names]

    def suggest(name: str) -> str | None:
        return nearest(name, names) or _suggested_unit(name, quantity)

    try:
        return measure(_spelled(text), {**_NAMES, **names}, shown=text, listed=listed, suggest=suggest)
    except SpecError:
        if match is None or any(word not in _NAMES and word not in names for word in match[2].split("/")[1:]):
            raise
        raise SpecError(
            f"unknown unit {match[2]!r} in {text.strip()!r}; this must be {_KINDS[quantity].meaning}",
            suggestion=_suggested_unit(match[2], quantity),
        ) from None


def _spelled(text: str) -> str:
    """The text with a times sign between a number and the unit (or name) after it: ``2 * (64*KiB)`` for 2 * 64 KiB."""
    if len(text) > MAX_EXPRESSION_LENGTH:
        return text

    def product(found: re.Match[str]) -> str:
        number, blanks, word = found.groups()
        apart = bool(blanks) and not iskeyword(word)
        return f"({number}*{word})" if apart or word in _NAMES else found[0]

    return _NUMBER_AND_UNIT.sub(product, text)


def _suggested_unit(unit: str, quantity: Quantity) -> str | None:
    """A unit that differs only in spelling: KB may mean kB or KiB, Gb/s means Gbit/s, Pj means pJ."""
    known = _KINDS[quantity].units
    binary = re.sub(r"^([KMGTP])B", r"\1iB", unit)
    bits = re.sub(r"b(?=$|/|ps$)", "bit", unit.replace("bps", "b/s"))
    for candidate in (bits, binary):
        if candidate in known:
            return candidate
    same = sorted((name for name in known if name.lower() == unit.lower()), key=lambda name: name[0].isupper())
    return same[0] if same else nearest(unit, known)


def mistaken_unit(text: str, quantity: Quantity, value: float, names: Collection[str] = ()) -> str | None:
    """A sentence for a text whose unit is huge where the same letters, the first one small, are a tiny one.

    >>> mistaken_unit("8 PJ", "energy", 8e15)
    "'8 PJ' is 8e+15 J; is 'pJ' meant?"

    No part of a machine has an energy, a power or a time of such a unit. names: of parameters, which are no units. None
    for other texts and quantities.
    """
    known = _KINDS[quantity].units
    for unit in _WORD.findall(text):
        small = unit[0].lower() + unit[1:]
        if small != unit and unit in known and small in known and unit not in names:
            return f"{text.strip()!r:.80} is {value:g} {_KINDS[quantity].printed}; is {small!r} meant?"
    return None


def unit_names(quantity: Quantity) -> tuple[str, ...]:
    """Names of units that make up a value of this quantity, as in ``128 * MiB`` or ``614 * GB / s``."""
    if quantity == "any":
        return ()
    return tuple(dict.fromkeys(part for name in _KINDS[quantity].units for part in name.split("/")))


def format(value: int | float, quantity: Quantity, digits: int | None = None) -> str:
    """The value with the unit that reads best; without `digits` exact, so that `parse` gives the same value back.

    >>> format(1073741824, "size"), format(7.03e-12, "energy"), format(4.912e12, "throughput"), format(12, "size")
    ('128 MiB', '7.03 pJ', '614 GB/s', '12 bit')
    >>> format(1234567.0, "time", digits=3)
    '1.23 Ms'
    """
    if quantity not in get_args(Quantity):
        raise ValueError(f"unknown quantity {quantity}")
    number = Decimal(repr(float(value))) if isinstance(value, float) else Decimal(value)
    if quantity == "count" or number == 0:
        unit = _KINDS[quantity].printed
        return f"{_plain(number, digits)} {unit}" if unit else _plain(number, digits)
    unit, scaled = _best(number, quantity, digits is None)
    return f"{_plain(scaled, digits)} {unit}"


def _best(number: Decimal, quantity: Quantity, exactly: bool) -> tuple[str, Decimal]:
    """Unit and number; exactly: without units that `mistaken_unit` doubts, as files are written and read."""
    if quantity == "area":
        power, unit = (0, "m2") if abs(number) >= Decimal("0.1") else (6, "mm2")
        return ("um2", number.scaleb(12)) if abs(number) < Decimal("1e-9") else (unit, number.scaleb(power))
    base, per = _KINDS[quantity].printed.partition("/")[0], "/s" if quantity == "throughput" else ""
    if quantity == "size":
        return _best_size(int(number))
    if quantity == "throughput" and len((number / 8).normalize().as_tuple().digits) <= 6 and number * 8 / 8 == number:
        base, number = "B", number / 8
    prefixes = {0: "", **{power: prefix for prefix, power in _LARGE.items()}}
    if quantity in ("energy", "time", "power"):
        large = {power: prefix for power, prefix in prefixes.items() if not exactly or prefix.lower() not in _SMALL}
        prefixes = {**large, **{power: prefix for prefix, power in _SMALL.items() if prefix.isascii()}}
    fitting = [power for power in sorted(prefixes) if abs(number) >= Decimal(10) ** power]
    power = fitting[-1] if fitting else min(prefixes)
    return prefixes[power] + base + per, number.scaleb(-power)


def _best_size(bits: int) -> tuple[str, Decimal]:
    """The unit in which a whole number of bits has the fewest digits, binary units of bytes first."""
    units = [f"{prefix}B" for prefix in (*reversed(_BINARY), *reversed(_LARGE))]
    units += ["B", "bit", *(f"{prefix}bit" for prefix in _LARGE)]
    fitting = [unit for unit in units if bits % int(_SIZES[unit]) == 0 and (unit != "B" or abs(bits) >= 64)]
    unit = min(fitting, key=lambda name: len(str(bits // int(_SIZES[name]))))
    return unit, Decimal(bits // int(_SIZES[unit]))


def _plain(number: Decimal, digits: int | None) -> str:
    if digits is not None:
        return f"{float(number):.{digits}g}"
    text = f"{number.normalize():f}"
    return text if len(text) <= 20 else f"{number.normalize():e}"

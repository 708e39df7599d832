"""Units at the door: ``7.03 pJ``, ``128 MiB``, ``614 GB/s`` in, SI numbers out, and back for printing.

Inside einloom every number is SI: joules, seconds, watts, square metres; sizes in bits; throughputs in bits per second
or operations per second. Suffixes exist only in files and in print. 1 kB is 1000 bytes, 1 KiB is 1024.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Literal, get_args

from .arithmetic import Number, arithmetic, exact
from .errors import SpecError, nearest

Quantity = Literal["size", "throughput", "rate", "energy", "time", "power", "area", "count"]

_SMALL = {"f": -15, "p": -12, "n": -9, "u": -6, "µ": -6, "m": -3}
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
_UNITS: Mapping[Quantity, Mapping[str, Fraction]] = MappingProxyType(
    {
        "size": {**_SIZES, "bits": Fraction(1)},
        "throughput": {f"{unit}/s": factor for unit, factor in _SIZES.items()},
        "rate": {**_scaled("Hz", 1), **_scaled("op/s", 1), **_scaled("ops/s", 1)},
        "energy": _scaled("J", 1, small=True),
        "time": {**_scaled("s", 1, small=True), "min": Fraction(60), "h": Fraction(3600)},
        "power": _scaled("W", 1, small=True),
        "area": {
            "m2": Fraction(1),
            "cm2": Fraction(1, 10**4),
            "mm2": Fraction(1, 10**6),
            "um2": Fraction(1, 10**12),
            "nm2": Fraction(1, 10**18),
        },
        "count": {},
    }
)
_EXTRA_NAMES: Mapping[Quantity, Mapping[str, Fraction]] = MappingProxyType(
    {
        "throughput": {**_SIZES, "s": Fraction(1)},
        "rate": {**_scaled("op", 1), "s": Fraction(1)},
    }
)
_PRINTED: Mapping[Quantity, str] = MappingProxyType(
    {"rate": "Hz", "energy": "J", "time": "s", "power": "W", "size": "bit", "throughput": "bit/s"}
)
_WRITTEN = re.compile(
    r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*(?![eE][+-]?\d+\s*\Z)([A-Za-zµ][A-Za-zµ0-9/]*)\s*\Z"
)
_MEANING: Mapping[Quantity, str] = MappingProxyType(
    {
        "size": "a size (bit, B, KiB, MiB)",
        "throughput": "a memory throughput (bit/s, GB/s, GiB/s)",
        "rate": "a rate (Hz, GHz, op/s)",
        "energy": "an energy (J, nJ, pJ, fJ)",
        "time": "a time (s, ms, us)",
        "power": "a power (W, mW)",
        "area": "an area (m2, mm2, um2)",
        "count": "a plain number, without a unit",
    }
)
UNIT_NAMES = frozenset(
    name for table in (*_UNITS.values(), *_EXTRA_NAMES.values()) for name in table if "/" not in name
)


def suffixes(quantity: Quantity) -> tuple[str, ...]:
    """The units that a number of this quantity may have."""
    return tuple(_UNITS[quantity])


def parse(value: str | int | float, quantity: Quantity, names: Mapping[str, Number] | None = None) -> int | float:
    """The value in SI: bits for a size (an int), bits or operations per second, joules, seconds, watts, square metres.

    Plain numbers are SI already; text is a number with a unit or arithmetic over `names` and units.

    >>> parse("128 MiB", "size"), parse("7.03 pJ", "energy"), parse("2 * KiB", "size"), parse("1.05 GHz", "rate")
    (1073741824, 7.03e-12, 16384, 1050000000.0)

    Raises SpecError for unknown or wrong units, sizes that are not whole bits, and anything that is no finite number.
    """
    if isinstance(value, bool):
        raise SpecError(f"{value} is not {_MEANING[quantity]}")
    number = _read(value, quantity, names or {}) if isinstance(value, str) else exact(value)
    if quantity in ("size", "count"):
        if number.denominator != 1:
            raise SpecError(f"{value} is {float(number):g}, which is not a whole number{_of_bits(quantity)}")
        return int(number)
    try:
        return float(number)
    except OverflowError:
        raise SpecError(f"{value} is too large") from None


def _of_bits(quantity: Quantity) -> str:
    return " of bits" if quantity == "size" else ""


def _read(text: str, quantity: Quantity, names: Mapping[str, Number]) -> Fraction:
    match = _WRITTEN.match(text) if len(text) <= 100 else None
    if match is None:
        return arithmetic(text, {**unit_names(quantity), **names})
    number, unit = match.groups()
    factor = _UNITS[quantity].get(unit)
    if factor is not None:
        return Fraction(number) * factor
    elsewhere = [_MEANING[other] for other, units in _UNITS.items() if unit in units]
    if elsewhere:
        raise SpecError(f"{text.strip()!r} is {elsewhere[0]}, but this must be {_MEANING[quantity]}")
    raise SpecError(
        f"unknown unit {unit!r} in {text.strip()!r}; this must be {_MEANING[quantity]}",
        suggestion=_suggested_unit(unit, quantity),
    )


def _suggested_unit(unit: str, quantity: Quantity) -> str | None:
    """A unit that differs only in spelling: KB may mean kB or KiB, Gb/s means Gbit/s, PJ means pJ."""
    known = _UNITS[quantity]
    binary = re.sub(r"^([KMGTP])B", r"\1iB", unit)
    bits = re.sub(r"b(?=$|/|ps$)", "bit", unit.replace("bps", "b/s"))
    for candidate in (bits, binary):
        if candidate in known:
            return candidate
    same = sorted((name for name in known if name.lower() == unit.lower()), key=lambda name: name[0] != unit[0])
    return same[0] if same else nearest(unit, known)


def unit_names(quantity: Quantity) -> Mapping[str, Number]:
    """Names that arithmetic in a value of this quantity may use, as in ``128 * MiB`` or ``614 * GB / s``."""
    plain = {name: factor for name, factor in _UNITS[quantity].items() if "/" not in name}
    return {**plain, **_EXTRA_NAMES.get(quantity, {})}


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
        unit = _UNITS[quantity] and ("m2" if quantity == "area" else _PRINTED[quantity])
        return f"{_plain(number, digits)} {unit}" if unit else _plain(number, digits)
    unit, scaled = _best(number, quantity)
    return f"{_plain(scaled, digits)} {unit}"


def _best(number: Decimal, quantity: Quantity) -> tuple[str, Decimal]:
    if quantity == "area":
        power, unit = (0, "m2") if abs(number) >= Decimal("0.1") else (6, "mm2")
        return ("um2", number.scaleb(12)) if abs(number) < Decimal("1e-9") else (unit, number.scaleb(power))
    base, per = _PRINTED[quantity].partition("/")[0], "/s" if quantity == "throughput" else ""
    if quantity == "size":
        return _best_size(int(number))
    if quantity == "throughput" and len((number / 8).normalize().as_tuple().digits) <= 6 and number * 8 / 8 == number:
        base, number = "B", number / 8
    prefixes = {0: "", **{power: prefix for prefix, power in _LARGE.items()}}
    if quantity in ("energy", "time", "power"):
        prefixes.update({power: prefix for prefix, power in _SMALL.items() if prefix != "µ"})
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

"""TileFlow's files as named sections: one file or many, merged in any order, and the numbers that macros name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction

from ...errors import SpecError
from ...reading.arithmetic import Number, arithmetic, exact
from ...reading.located import Located

READ = ("architecture", "problem", "mapping", "macro", "check")
LEFT_OUT = ("output", "verbose", "tileflow-mapper")
CHECKS = ("mem", "spatial", "loopcount")


def sections(views: Sequence[Located], notes: list[str]) -> dict[str, Located]:
    """The sections of all files by name; each may stand in one file only. Settings of the search become a note."""
    return named_sections(views, READ, LEFT_OUT, "{} (settings of TileFlow itself) is left out", notes)


def named_sections(
    views: Iterable[Located], read: Sequence[str], left_out: Sequence[str], note: str, notes: list[str]
) -> dict[str, Located]:
    """The sections of all files by name. note: says of a section that it is left out. SpecError for any other name."""
    found: dict[str, Located] = {}
    for view in views:
        for name, key, value in view.entries():
            if name in left_out:
                notes.append(note.format(name))
            elif name not in read:
                raise key.unknown("section", name, (*read, *left_out))
            elif name in found:
                raise key.error(f"section {name!r} stands in {found[name].file} already")
            else:
                found[name] = value
    return found


def macros(view: Located | None, given: Mapping[str, str]) -> dict[str, Number]:
    """The section ``macro`` in its order, each value arithmetic over those before it; `given` values come first."""
    table: dict[str, Number] = {}
    for name, text in given.items():
        try:
            table[name] = arithmetic(text)
        except SpecError as error:
            raise SpecError(f"{name}={text}: {error.message}") from None
    for name, _, value in view.entries() if view is not None else ():
        if name not in given:
            table[name] = _number(value, table)
    return table


def checks_left_out(view: Located | None, notes: list[str]) -> None:
    """Note which of its own checks a file tells TileFlow to skip; einloom skips none."""
    if view is None:
        return
    for name in CHECKS:
        field = view.get(name)
        if field is not None and not truth(field):
            notes.append(f"check: {name}: False is not followed; legality is never skipped here")
    view.finish()


def whole(view: Located, names: Mapping[str, Number], minimum: int = 1) -> int:
    """A whole number, plain, as a macro's name or as arithmetic over macros."""
    number = _number(view, names)
    if number.denominator != 1 or number < minimum:
        raise view.error(f"expected a whole number of at least {minimum}, found {number}")
    if number > 2**40:
        raise view.error(f"{number} is too large; sizes are at most 2**40")
    return int(number)


def real(view: Located, names: Mapping[str, Number]) -> float:
    """A number of at least zero."""
    number = _number(view, names)
    if number < 0 or number > 10**18:
        raise view.error(f"{float(number):g} is out of range; a number from 0 to 10**18 is expected")
    return float(number)


def truth(view: Located) -> bool:
    """True or false, as YAML 1.1 and TileFlow's examples write it."""
    if view.is_text and view.text().lower() in ("true", "false"):
        return view.text().lower() == "true"
    return view.boolean()


def words(view: Located | None) -> tuple[str, ...]:
    """Names in a list, or in one text with commas or blanks between them; a name may stand there once."""
    if view is None:
        return ()
    if view.is_list:
        return view.names()
    found = tuple(view.name().replace(",", " ").split())
    for name in found:
        if found.count(name) > 1:
            raise view.error(f"{name!r} stands here twice")
    return found


def known(view: Located, names: Sequence[str], table: Collection[str], what: str) -> tuple[str, ...]:
    """The names, each one of the table."""
    for name in names:
        if name not in table:
            raise view.unknown(what, name, table)
    return tuple(names)


def _number(view: Located, names: Mapping[str, Number]) -> Fraction:
    if view.is_text:
        with view.placed():
            return arithmetic(view.text(), names)
    return exact(view.number("energy"))

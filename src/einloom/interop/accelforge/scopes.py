"""Variables of AccelForge's files: evaluated in any order, each against the others, and only as far as they are needed.

A variable may use those before and after it. What cannot be evaluated (a function of a Python file, which is not
executed) is an error only where the value is needed; a user gives such a value in a file beside::

    einloom:
      values: {array_parallel_inputs: 32}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

from ...errors import SpecError
from ...reading.arithmetic import exact
from ...reading.located import Located
from .expressions import Value, evaluate


class Layered(Mapping[str, Value]):
    """Several tables as one, the first that has a name counts; nothing is evaluated before it is asked for."""

    def __init__(self, *tables: Mapping[str, Any]) -> None:
        self.tables = tables

    def __getitem__(self, name: str) -> Value:
        for table in self.tables:
            if name in table:
                found: Value = table[name]
                return found
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(name in table for table in self.tables)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for table in self.tables for name in table))

    def __len__(self) -> int:
        return len(list(iter(self)))


class VariableScope(Layered):
    """The variables that sections write, over `given` values, which win, and `outer` names.

    wanted: collects the variables that were asked for and have no value, with the reason.
    """

    def __init__(
        self,
        sections: Sequence[Located | None],
        given: Mapping[str, Value],
        outer: Mapping[str, Value],
        wanted: dict[str, str],
    ) -> None:
        self.views = {name: value for view in sections if view is not None for name, _, value in view.entries()}
        super().__init__(given, self.views, outer)
        self.given, self.outer, self.wanted = given, outer, wanted
        self.found: dict[str, Value | SpecError] = {}
        self.roots: dict[int, str] = {}
        self.open: list[str] = []
        for name in self.views:  # in the file's order, so that long chains need no deep recursion
            self._value(name)

    def __getitem__(self, name: str) -> Value:
        found = self._value(name)
        if not isinstance(found, SpecError):
            return found
        if not self.open and id(found) in self.roots:
            self.wanted[self.roots[id(found)]] = found.message
        raise found

    def failed(self) -> tuple[str, ...]:
        """The variables that have no value, needed or not."""
        return tuple(name for name, found in self.found.items() if isinstance(found, SpecError))

    def _value(self, name: str) -> Value | SpecError:
        if name in self.given:
            return self.given[name]
        if name not in self.views:
            return self.outer[name]
        if name not in self.found:
            self.found[name] = self._evaluated(name, self.views[name])
        return self.found[name]

    def _evaluated(self, name: str, view: Located) -> Value | SpecError:
        if name in self.open:
            circle = " -> ".join([*self.open[self.open.index(name) :], name])
            return view.error(f"variable {name} depends on itself: {circle}")
        self.open.append(name)
        try:
            return evaluate(view.text(), self) if view.is_text else plain(view)
        except SpecError as error:
            if error.line is not None or error.file is not None:
                return error  # of a variable that this one uses, or with a place of its own
            close = f" (did you mean {error.suggestion!r}?)" if error.suggestion else ""
            found = view.error(
                f"{error.message}{close}; or give its value beside: einloom: {{values: {{{name}: ...}}}}"
            )
            self.roots[id(found)] = name
            return found
        finally:
            self.open.pop()


class Agreed(Layered):
    """Variables that may differ from Einsum to Einsum, where all Einsums agree; else a SpecError says so."""

    def __init__(self, scopes: Sequence[VariableScope]) -> None:
        super().__init__(scopes[0])
        self.scopes = scopes

    def __getitem__(self, name: str) -> Value:
        values = [scope[name] for scope in self.scopes]
        if any(value != values[0] for value in values):
            raise SpecError(f"variable {name} differs from Einsum to Einsum; a machine has one value here")
        return values[0]


def plain(view: Located) -> Value:
    """A value that is no expression: a number, a truth value, a list of such. Raises SpecError with the place."""
    if view.is_list:
        return [evaluate(item.text(), {}) if item.is_text else plain(item) for item in view.items()]
    if view.is_mapping:
        raise view.error("expected a number, an expression or a list, found a table")
    with suppress(SpecError):
        return view.boolean()
    return exact(view.number("energy"))


def fanouts(nodes: Located, names: Mapping[str, Value]) -> dict[str, Value]:
    """What ``NODE.get_fanout()`` answers, for each node: its instances, the product of its fanouts.

    Fanouts that cannot be read are left out here; they are errors where they stand.
    """
    found: dict[str, Value] = {}
    for node in nodes.items():
        with suppress(SpecError):
            name, product = node.require("name").name(), Fraction(1)
            for axis in node.listed("spatial"):
                size = axis.require("fanout")
                value = evaluate(size.text(), names) if size.is_text else Fraction(size.integer())
                product *= value if isinstance(value, Fraction) else 0
            if product >= 1:
                found[f"{name}.get_fanout()"] = product
    return found


def texts(remainder: Mapping[str, object], key: str) -> dict[str, str]:
    """A table of names that einloom wrote for the way back; empty if there is none."""
    table = remainder.get(key)
    return {name: str(text) for name, text in table.items()} if isinstance(table, Mapping) else {}


def given_values(view: Located | None) -> dict[str, Value]:
    """The values that a user gives for variables: numbers, expressions, or plain text."""
    found: dict[str, Value] = {}
    for name, _, value in view.entries() if view is not None else ():
        found[name] = expression_or_text(value.text(), found) if value.is_text else plain(value)
    return found


def expression_or_text(text: str, names: Mapping[str, Value]) -> Value:
    """A number, or whatever the text means as an expression; else the text."""
    try:
        return evaluate(text, names)
    except SpecError:
        return text

"""The one door for every file: values with their file, line and column, read with types and refused with a place.

A reader takes a `Located` view, asks it for typed fields, and calls `finish`, which refuses keys that nobody asked
for. Several errors are gathered with ``with view.gather():`` and raised together by ``view.raise_gathered()``.
"""

from __future__ import annotations

import math
import operator
import os
import stat
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from ..errors import ConsequentError, EinloomWarning, SpecError, SpecErrors, combined, nearest, unknown
from .arithmetic import Named
from .jsonplaces import JsonPlaces
from .units import Quantity, mistaken_unit, parse
from .yamltree import MAX_FILE_BYTES, Node, Scalar, parse_yaml

MAX_TEXT = 10_000
MAX_WHOLE = 2**62
MAX_COUNTED = 2**1000
"""What was counted may be larger than what is stated: products of sizes, as long as floats can hold them."""
KEPT = 100_000  # letters of a text of which it is kept what it holds
MAX_ERRORS = 100
"""After so many mistakes a file is not read any further."""


class Located:
    """A value of a file together with where it stands, and how it is reached from the top (`path`)."""

    __slots__ = ("_asked", "_gathered", "_node", "_places", "file", "path")

    def __init__(
        self, node: Node, file: str | None, path: str, gathered: list[SpecError], places: _Places | None = None
    ) -> None:
        self._node = node
        self.file = file
        self.path = path
        self._gathered = gathered
        self._places = places
        self._asked: set[Scalar] = set()

    # Places and errors

    def error(self, message: str, suggestion: str | None = None) -> SpecError:
        """A SpecError that points here."""
        line, column = (self._node.line, self._node.column) if self._node.line else (None, None)
        if line is None and self._places is not None:
            line, column = self._places.of(self._node)
        return SpecError(
            message, file=self.file, line=line, column=column, path=self.path or None, suggestion=suggestion
        )

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Give errors that come out of the block without a place this view's place."""
        try:
            yield
        except SpecError as error:
            if error.file is not None or error.line is not None or error.path is not None:
                raise
            if isinstance(error, ConsequentError):
                raise
            raise self.error(error.message, error.suggestion) from None

    def unknown(self, what: str, name: str, known: Iterable[str]) -> SpecError:
        """The error for a name at this place that is none of the known ones."""
        said = unknown(what, name, known)
        return self.error(said.message, said.suggestion)

    def gather(self) -> Gathering:
        """Keep a SpecError of the ``with`` block for `raise_gathered` and go on after the block."""
        return Gathering(self, self._gathered)

    @property
    def mistakes(self) -> int:
        """How many were gathered so far, anywhere in this file."""
        return len(self._gathered)

    def raise_gathered(self) -> None:
        """Raise everything gathered anywhere in this file as one error, in the file's order; nothing if nothing was."""
        if self._gathered:
            flat = combined(self._gathered)
            problems = flat.problems if isinstance(flat, SpecErrors) else (flat,)
            once = {str(problem): problem for problem in problems}
            raise combined(sorted(once.values(), key=lambda error: (error.line or 0, error.column or 0)))

    # Mappings and lists

    @property
    def is_mapping(self) -> bool:
        return self._node.kind == "mapping"

    @property
    def is_list(self) -> bool:
        return self._node.kind == "list"

    @property
    def is_text(self) -> bool:
        return isinstance(self._node.scalar, str)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of a mapping, as text, in file order."""
        self._must_be("mapping")
        return tuple(str(key.scalar) for key, _ in self._node.pairs)

    def get(self, key: str) -> Located | None:
        """The field `key`, or None if it is absent or null; either way `finish` accepts it."""
        self._must_be("mapping")
        self._asked.add(key)
        for found, value in self._node.pairs:
            if str(found.scalar) == key:
                return None if value.kind == "scalar" and value.scalar is None else self._child(value, key)
        return None

    def require(self, key: str) -> Located:
        """The field `key`; SpecError if it is absent or null."""
        field = self.get(key)
        if field is None:
            close = nearest(key, [name for name in self.keys if name not in self._asked])
            raise self.error(f"key {key!r} is missing" + (f"; is {close!r} meant to be it?" if close else ""))
        return field

    def entries(self) -> list[tuple[str, Located, Located]]:
        """All (key, view of the key, view of the value) of a mapping, in file order; all count as asked for."""
        self._must_be("mapping")
        self._asked.update(self.keys)
        return [
            (str(key.scalar), self._child(key, str(key.scalar)), self._child(value, str(key.scalar)))
            for key, value in self._node.pairs
        ]

    def items(self) -> list[Located]:
        """The elements of a list."""
        self._must_be("list")
        return [
            Located(item, self.file, f"{self.path}[{i}]", self._gathered, self._places)
            for i, item in enumerate(self._node.items)
        ]

    def table(self, key: str) -> list[tuple[str, Located, Located]]:
        """The entries of the mapping `key`; none if it is absent or null."""
        field = self.get(key)
        return [] if field is None else field.entries()

    def listed(self, key: str) -> list[Located]:
        """The elements of the list `key`; none if it is absent or null."""
        field = self.get(key)
        return [] if field is None else field.items()

    def finish(self) -> None:
        """Refuse every key of a mapping that nobody asked for, all at once, with the nearest known key."""
        wrong = []
        for key, _ in self._node.pairs:
            name = str(key.scalar)
            if name not in self._asked:
                known = [str(candidate) for candidate in self._asked]
                close = nearest(name, known)
                listed = "" if close else f"; known here are {', '.join(sorted(known)) or 'none'}"
                wrong.append(self._child(key, "").error(f"unknown key {name!r}{listed}", close))
                if len(wrong) >= MAX_ERRORS:
                    break
        if wrong:
            raise combined(wrong)

    def _child(self, node: Node, key: str) -> Located:
        path = f"{self.path}.{key}" if self.path and key else self.path or key
        return Located(node, self.file, path, self._gathered, self._places)

    def _must_be(self, kind: str) -> None:
        if self._node.kind != kind:
            wanted = "a mapping (key: value)" if kind == "mapping" else "a list"
            raise self.error(f"expected {wanted}, found {self._shown}")

    @property
    def _shown(self) -> str:
        if self._node.kind != "scalar":
            return f"a {self._node.kind}"
        return "nothing" if self._node.scalar is None else f"{self._node.scalar!r:.80}"

    # Scalars

    def text(self, *, what: str = "text", most: int = MAX_TEXT) -> str:
        """A non-empty string of at most so many characters."""
        value = self._node.scalar
        if not isinstance(value, str) or not value.strip():
            raise self.error(f"expected {what}, found {self._shown}")
        if len(value) > most:
            raise self.error(f"a text of {len(value)} characters; at most {most} are read")
        return value

    def name(self) -> str:
        """A name: text, or a whole number read as text."""
        value = self._node.scalar
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else self.text(what="a name")

    def choice(self, options: Sequence[str]) -> str:
        """One of `options`."""
        value = self.text(what=f"one of {', '.join(options)}")
        if value not in options:
            raise self.error(f"{value!r:.80} is none of {', '.join(options)}", nearest(value, options))
        return value

    def boolean(self) -> bool:
        if not isinstance(self._node.scalar, bool):
            raise self.error(f"expected true or false, found {self._shown}")
        return self._node.scalar

    def names(self) -> tuple[str, ...]:
        """A list of names without repetition; a single name counts as a list of one."""
        views = self.items() if self.is_list else [self]
        found: list[str] = []
        for view in views:
            if (name := view.name()) in found:
                raise view.error(f"{name!r} stands here twice")
            found.append(name)
        return tuple(found)

    def integer(self, *, names: Mapping[str, Named] | None = None, minimum: int | None = None) -> int:
        """A whole number, plain or as arithmetic over `names`."""
        return int(self.number("count", names=names, minimum=minimum))

    def number(
        self,
        quantity: Quantity,
        *,
        names: Mapping[str, Named] | None = None,
        minimum: float | None = None,
        positive: bool = False,
        most: int = MAX_WHOLE,
    ) -> int | float:
        """A finite number in SI, from a plain number, a number with a unit, or arithmetic over `names` and units.

        most: whole numbers are at most so large, of either sign.
        """
        value = self._node.scalar
        if self._node.kind != "scalar" or value is None or isinstance(value, bool):
            raise self.error(f"expected a number, found {self._shown}")
        with self.placed():
            if isinstance(value, str):
                self.text()
            number = parse(value, quantity, names)
        if isinstance(value, str) and (doubt := mistaken_unit(value, quantity, number, names or ())):
            warnings.warn(str(self.error(doubt)), EinloomWarning, stacklevel=2)
        if (isinstance(number, int) and abs(number) > most) or not math.isfinite(number):
            raise self.error(f"{self._shown} is too large")
        if minimum is not None and number < minimum:
            negative = "may not be negative" if minimum == 0 else f"must be at least {minimum:g}"
            raise self.error(f"{self._shown} {negative}")
        if positive and number <= 0:
            raise self.error(f"{self._shown} must be greater than zero")
        return number

    def schema(self, kind: str, version: int) -> None:
        """Check the key ``schema: KIND/VERSION``."""
        field = self.get("schema")
        if field is None:
            raise self.error(f"key 'schema' is missing; this einloom reads 'schema: {kind}/{version}'")
        found = field.text(what="a schema")
        if found == f"{kind}/{version}":
            return
        stem, _, number = found.partition("/")
        if stem != kind:
            raise field.error(f"this is a {stem!r:.40} file; a {kind} file is expected ('schema: {kind}/{version}')")
        raise field.error(f"version {number!r:.40} of schema {kind} is unknown; this einloom reads {kind}/{version}")


class Gathering:
    """A ``with`` block whose SpecErrors are kept for later, with the place of `view` where they have none."""

    __slots__ = ("_gathered", "_view")

    def __init__(self, view: Located, gathered: list[SpecError]) -> None:
        self._view = view
        self._gathered = gathered

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, SpecError):
            return False
        if len(self._gathered) >= MAX_ERRORS:
            return False
        if isinstance(error, ConsequentError) and self._gathered:
            return True
        placed = error.file is not None or error.line is not None or error.path is not None
        self._gathered.append(error if placed else self._view.error(error.message, error.suggestion))
        if len(self._gathered) >= MAX_ERRORS:
            self._view.raise_gathered()
        return True


def read_text(text: str, file: str = "<text>", repeated: list[SpecError] | None = None) -> Located:
    """The view of a YAML (or JSON) text; `file` is what errors call it, `repeated` as of `parse_yaml`."""
    once = repeated is None and len(text) <= KEPT
    return read_node(_parsed(text, file) if once else parse_yaml(text, file, repeated), file)


@lru_cache(maxsize=16)
def _parsed(text: str, file: str) -> Node:
    """What a text holds: a family reads its machine file once for every machine."""
    return parse_yaml(text, file)


def read_node(node: Node, file: str) -> Located:
    """The view of a text that is parsed already."""
    return Located(node, file, "", [])


def read_file(path: str | Path) -> Located:
    """The view of a YAML (or JSON) file of at most 5 MB.

    Raises SpecError if the file cannot be read, is too large, or is not YAML.
    """
    return read_text(file_text(path), str(path))


def file_text(path: str | Path) -> str:
    """The text of a file of at most 5 MB, as it stands there but for a byte order mark.

    Raises SpecError if the file cannot be read, is larger, or is not UTF-8, then with the line of the first such byte.
    """
    file = str(path)
    try:
        about = os.stat(path)
        if stat.S_ISFIFO(about.st_mode) and _named(path):
            raise SpecError("a FIFO, and nobody may ever write into it; give a file, or '<(cat FIFO)'", file=file)
        with open(path, "rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SpecError(f"cannot read the file: {reason}", file=file) from None
    if len(raw) > MAX_FILE_BYTES:
        most = MAX_FILE_BYTES // 10**6
        megabytes = max(about.st_size, len(raw)) / 10**6
        raise SpecError(f"the file has {megabytes:.1f} MB; einloom reads at most {most} MB", file=file)
    try:
        return raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SpecError(f"not a text file in UTF-8: byte {raw[error.start]:#x}", file=file, line=line) from None


def _named(path: str | Path) -> bool:
    """True for a FIFO in a folder; False for a pipe of this process, as the shell's ``<(...)`` gives it."""
    try:
        return stat.S_ISFIFO(os.stat(os.path.realpath(path)).st_mode)
    except OSError:  # /proc/self/fd/63 leads to pipe:[4711], which is nowhere
        return False


def from_data(data: object, file: str | None = None, text: str | None = None) -> Located:
    """The view of plain data (as `json.loads` makes it); `text` is the JSON that it was read from, if there is one.

    With the text errors have lines, which are looked up when the first error happens.
    """
    root = _data_node(data)
    return Located(root, file, "", [], None if text is None else _Places(root, text))


class _Places:
    """Line and column of the nodes of plain data, looked up in its text when an error asks for them."""

    __slots__ = ("_parents", "_places", "_root")

    def __init__(self, root: Node, text: str) -> None:
        self._root, self._places = root, JsonPlaces(text)
        self._parents: dict[int, tuple[Node, int, bool]] = {}

    def of(self, node: Node) -> tuple[int, int]:
        if not self._parents:
            self._find_parents()
        trail: list[int] = []
        is_key, at = False, node
        while at is not self._root:
            at, index, key = self._parents[id(at)]
            is_key = is_key or key
            trail.append(index)
        trail.reverse()
        return self._places.key(trail) if is_key else self._places.value(trail)

    def _find_parents(self) -> None:
        waiting = [self._root]
        while waiting:
            node = waiting.pop()
            for index, item in enumerate(node.items):
                self._parents[id(item)] = (node, index, False)
            for index, (key, value) in enumerate(node.pairs):
                self._parents[id(key)] = (node, index, True)
                self._parents[id(value)] = (node, index, False)
                waiting.append(value)
            waiting += node.items


def _data_node(data: object) -> Node:
    if isinstance(data, Mapping):
        pairs = tuple((_data_node(str(key)), _data_node(value)) for key, value in data.items())
        return Node("mapping", 0, 0, pairs=pairs)
    if isinstance(data, Iterable) and not isinstance(data, str | bytes):
        return Node("list", 0, 0, items=tuple(_data_node(item) for item in data))
    if data is None or isinstance(data, str | int) or type(data) is float:
        return Node("scalar", 0, 0, data)
    if hasattr(data, "__index__"):  # a whole number of NumPy
        return Node("scalar", 0, 0, operator.index(data))
    if hasattr(data, "__float__"):
        return Node("scalar", 0, 0, float(data))
    raise SpecError(f"data of type {type(data).__name__} has no place in a file")

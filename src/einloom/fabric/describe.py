"""A fabric as data: arrays of processing elements, what an element can do, and the table of legal configurations.

Comes in: YAML of the schema ``fabric/1`` (`data/` has five). Goes out: `Fabric`. A configuration joins arrays to
regions of one shape; array i of a region stands in row i // width and column i % width of it. A column configuration
has two regions: the sums of the first, quantised row by row, are what the second reads on its left edge. Everything
else follows from this table: which multiplexers the RTL has, which tiles a mapping may have, how many cycles they take.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal, cast

from ..dataclass import dataclass
from ..errors import SpecError, nearest, unknown
from ..reading.located import Located, read_file

VERSION = 1
DATA = Path(__file__).parent / "data"
NAMES = ("tpu-v4i-like", "gemmini-like", "planaria-like", "unfcu", "fusecu")
OPERATIONS = ("hold", "os", "tile", "column")
"""What a fabric runs: an operand held, sums in place, both one after the other on one tile, or side by side."""
Operation = Literal["hold", "os", "tile", "column"]
Stationary = Literal["WS", "IS", "OS"]
STATIONARY: tuple[Stationary, ...] = ("WS", "IS", "OS")


@dataclass(frozen=True, slots=True)
class Element:
    """What a processing element can do. operand_bits, sum_bits: widths of operands and of partial sums."""

    stationary: tuple[Stationary, ...]
    shadow: bool = False
    operand_bits: int = 8
    sum_bits: int = 32

    @property
    def holds(self) -> bool:
        """True if an operand can stay in it."""
        return "WS" in self.stationary or "IS" in self.stationary

    @property
    def owns(self) -> bool:
        """True if a sum can stay in it."""
        return "OS" in self.stationary

    @property
    def shift_bits(self) -> int:
        """Bits of a number of places to shift a sum by."""
        return (self.sum_bits - 1).bit_length()


@dataclass(frozen=True, slots=True)
class Source:
    """What an edge reads: ``memory``, the ``next`` array's edge, or the quantised ``sums`` of an array."""

    kind: Literal["memory", "next", "sums"]
    array: int = 0


MEMORY = Source("memory")


@dataclass(frozen=True, slots=True)
class Configuration:
    """One way of joining arrays. rows, columns: of a region, in arrays. column: two regions, the first feeds the
    second."""

    name: str
    rows: int
    columns: int
    column: bool = False

    @property
    def arrays(self) -> int:
        """Arrays of one region."""
        return self.rows * self.columns

    @property
    def regions(self) -> int:
        return 2 if self.column else 1

    def extents(self, fabric: Fabric) -> tuple[int, int]:
        """Rows and columns of elements of a region."""
        return self.rows * fabric.rows, self.columns * fabric.columns

    def copies(self, fabric: Fabric) -> int:
        """How often it stands side by side in the fabric, each with other operands."""
        return fabric.count // (self.arrays * self.regions)

    def place(self, i: int) -> tuple[int, int, int]:
        """(region over all copies, row, column) of array i."""
        region, at = divmod(i, self.arrays)
        return region, *divmod(at, self.columns)

    def array(self, region: int, row: int, column: int) -> int:
        return region * self.arrays + row * self.columns + column

    def used(self, fabric: Fabric, i: int) -> bool:
        """True if array i belongs to a region."""
        return i < self.copies(fabric) * self.arrays * self.regions

    def reads_sums(self, fabric: Fabric, i: int) -> bool:
        """True if array i stands in a second region."""
        return self.column and self.used(fabric, i) and self.place(i)[0] % 2 == 1

    def left(self, fabric: Fabric, i: int, turning: bool) -> Source:
        """What the left edge of array i reads; `turning`: while sums in place become the operand that is held."""
        if not self.used(fabric, i):
            return MEMORY
        region, row, column = self.place(i)
        if column:
            return Source("next", self.array(region, row, column - 1))
        if self.reads_sums(fabric, i):
            return Source("sums", self.array(region - 1, row, self.columns - 1))
        if turning and fabric.turns and not self.column:
            return Source("sums", self.array(region, row, self.columns - 1))
        return MEMORY

    def top(self, fabric: Fabric, i: int) -> Source:
        """What the top edge of array i reads."""
        if not self.used(fabric, i):
            return MEMORY
        region, row, column = self.place(i)
        return Source("next", self.array(region, row - 1, column)) if row else MEMORY


@dataclass(frozen=True)
class Fabric:
    """A compute fabric. count: arrays, each of rows x columns elements. clock: Hz. bandwidth: bits per second between
    buffer and arrays. buffer: bits. fusion: which of ``tile`` and ``column`` it can do."""

    name: str
    description: str
    count: int
    rows: int
    columns: int
    element: Element
    configurations: tuple[Configuration, ...]
    fusion: tuple[str, ...] = ()
    clock: float = 1e9
    bandwidth: float = 8e12
    buffer: int = 8 * 2**20

    @property
    def elements(self) -> int:
        return self.count * self.rows * self.columns

    @property
    def turns(self) -> bool:
        """True if a tile of sums can become the operand that is held."""
        return "tile" in self.fusion

    @property
    def configuration_bits(self) -> int:
        return max(1, (len(self.configurations) - 1).bit_length())

    def left_sources(self, i: int) -> tuple[Source, ...]:
        """Everything that the left edge of array i may read; memory first."""
        found = (c.left(self, i, turning) for c in self.configurations for turning in (False, True))
        return tuple(dict.fromkeys((MEMORY, *found)))

    def top_sources(self, i: int) -> tuple[Source, ...]:
        """Everything that the top edge of array i may read; memory first."""
        return tuple(dict.fromkeys((MEMORY, *(c.top(self, i) for c in self.configurations))))

    @cached_property
    def quantised(self) -> tuple[int, ...]:
        """Arrays whose sums somebody reads as operands."""
        every = (s for i in range(self.count) for s in self.left_sources(i) if s.kind == "sums")
        return tuple(sorted({source.array for source in every}))

    def operations(self) -> Iterator[tuple[Operation, Configuration]]:
        """Every legal pair of an operation and a configuration."""
        for one in self.configurations:
            if one.column:
                yield "column", one
                continue
            if self.element.holds:
                yield "hold", one
            if self.element.owns:
                yield "os", one
            if self.turns:
                yield "tile", one

    def with_arrays(self, rows: int, columns: int) -> Fabric:
        """The same fabric with arrays of another size."""
        return replace(self, rows=rows, columns=columns)

    def refuse(self, operation: str, configuration: str) -> SpecError | None:
        """Why the fabric cannot do so, or None."""
        names = [c.name for c in self.configurations]
        if configuration not in names:
            close = nearest(configuration, names)
            return SpecError(
                f"{self.name} has no configuration {configuration!r}; it has {', '.join(names)}", suggestion=close
            )
        if any((operation, configuration) == (o, c.name) for o, c in self.operations()):
            return None
        can = sorted({o for o, c in self.operations() if c.name == configuration})
        return SpecError(
            f"{self.name} cannot do {operation!r} as {configuration}; it can do {', '.join(can) or 'nothing'}"
        )


def fabric(name: str) -> Fabric:
    """The fabric that ships under a name, or that a file ending in .yaml or .yml describes.

    >>> fabric("fusecu").elements
    65536

    Raises SpecError with a suggestion for an unknown name, with the place of whatever is wrong in a file.
    """
    if name.endswith((".yaml", ".yml")):
        return fabric_from(read_file(name))
    if name not in NAMES:
        raise unknown("fabric", name, NAMES)
    return _shipped(name)


@lru_cache(maxsize=len(NAMES))
def _shipped(name: str) -> Fabric:
    return fabric_from(read_file(DATA / f"{name}.yaml"))


def fabric_from(view: Located) -> Fabric:
    """The fabric that a view shows. Raises SpecError with the places of all that is wrong."""
    view.schema("fabric", VERSION)
    for key in ("source", "kind"):
        view.get(key)
    arrays = view.require("arrays")
    count, rows, columns = (arrays.require(key).integer(minimum=1) for key in ("count", "rows", "columns"))
    arrays.finish()
    element = _element(view.require("element"))
    table = tuple(_configuration(item, count) for item in view.require("configurations").items())
    field = view.get("fusion")
    fusion = () if field is None else field.names()
    clock, bandwidth, buffer = view.require("clock"), view.require("bandwidth"), view.require("buffer")
    found = Fabric(
        view.require("name").name(),
        view.require("description").text(),
        count,
        rows,
        columns,
        element,
        table,
        fusion,
        float(clock.number("rate", positive=True)),
        float(bandwidth.number("throughput", positive=True)),
        int(buffer.number("size", positive=True)),
    )
    view.finish()
    _check(view, found)
    return found


def _element(view: Located) -> Element:
    modes = view.require("stationary")
    found = modes.names()
    for mode in found:
        if mode not in STATIONARY:
            raise modes.error(f"{mode!r:.40} is none of {', '.join(STATIONARY)}", nearest(mode, STATIONARY))
    shadow, operand, sums = view.get("shadow"), view.get("operand_bits"), view.get("sum_bits")
    view.finish()
    return Element(
        cast("tuple[Stationary, ...]", found),
        False if shadow is None else shadow.boolean(),
        8 if operand is None else operand.integer(minimum=2),
        32 if sums is None else sums.integer(minimum=4),
    )


def _configuration(view: Located, count: int) -> Configuration:
    rows, columns = (item.integer(minimum=1) for item in view.require("shape").items())
    column = view.get("column")
    found = Configuration(view.require("name").name(), rows, columns, column is not None and column.boolean())
    view.finish()
    if found.arrays * found.regions > count:
        needed = found.arrays * found.regions
        raise view.error(f"configuration {found.name} needs {needed} arrays; the fabric has {count}")
    return found


def _check(view: Located, found: Fabric) -> None:
    """Refuse a table that speaks of what the elements cannot do."""
    element = found.element
    names = [c.name for c in found.configurations]
    for name in names:
        if names.count(name) > 1:
            raise view.require("configurations").error(f"two configurations are called {name}")
    for kind in found.fusion:
        if kind not in ("tile", "column"):
            raise view.require("fusion").error(
                f"{kind!r:.40} is none of tile, column", nearest(kind, ("tile", "column"))
            )
        if not (element.holds and element.owns):
            raise view.require("fusion").error(
                f"fusion by {kind} needs elements that hold an operand and that keep sums"
            )
    if any(c.column for c in found.configurations) and "column" not in found.fusion:
        raise view.require("configurations").error("a column configuration needs 'column' under fusion")
    if element.sum_bits < 2 * element.operand_bits:
        raise view.require("element").error(f"a sum of {element.sum_bits} bits does not hold one product")

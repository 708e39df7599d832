"""What every picture asks of a workload on a machine: tensors with their looks, Einsums in windows, sourced numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Literal

from ...dataclass import dataclass
from ...machine.levels import Machine
from ...reading.units import format as with_unit
from ...reading.units import parse
from ...result import Provenance
from ...workload.einsum import Workload
from ..data.given import Given, given
from ..text.results import bits, joules, seconds
from .drawing import Ink
from .markup import Html, el
from .palette import look

MEMORIES: tuple[Ink, ...] = ("m0", "m1", "m2", "m3", "m4")
"""The ink of each memory, the outermost first; the last one is that of all further in."""
ALL_AT_ONCE, WINDOW = 16, 12


@dataclass(eq=False)
class Scene:
    """A workload, on a machine if one is given, before anything is known of a mapping."""

    workload: Workload
    machine: Machine | None = None
    provenance: Provenance | None = None

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        """Every tensor once; what is shared between Einsums comes first and so gets the plainest looks."""
        names = (tensor.name for tensor in self.workload.tensors)
        return tuple(dict.fromkeys((*self.workload.intermediates, *names)))

    @cached_property
    def number(self) -> dict[str, int]:
        return {tensor: i for i, tensor in enumerate(self.tensors)}

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """Einsum names in the order in which they are drawn."""
        return tuple(einsum.name for einsum in self.workload.einsums)

    @cached_property
    def windows(self) -> tuple[range, ...]:
        """The leaves in runs that one picture can show."""
        count = len(self.leaves)
        if count <= ALL_AT_ONCE:
            return (range(count),)
        return tuple(range(start, min(start + WINDOW, count)) for start in range(0, count, WINDOW))

    @cached_property
    def given(self) -> tuple[Given, ...]:
        """Every number of machine and workload, with its source."""
        return tuple(given(self.workload, self.machine))

    @cached_property
    def outermost(self) -> str:
        return self.machine.memories[0].name if self.machine else ""

    @cached_property
    def backing(self) -> dict[str, str]:
        """Tensor -> memory of its outermost store, where that is known."""
        return {}

    def chip(self, tensor: str, *more: object, tag: str = "span", **attributes: object) -> Html:
        """A label for a tensor: swatch and name; lights up with the tensor."""
        inside = (el("i", class_=f"swatch {look(self.number[tensor])}"), el("span", tensor, class_="word"), *more)
        return el(tag, *inside, **{"class_": "chip", "data_t": self.number[tensor], **attributes})


def pretty(text: str) -> str:
    """A number with unit, with the micro sign."""
    value, _, unit = text.rpartition(" ")
    return f"{value} µ{unit[1:]}" if len(unit) > 1 and unit[0] == "u" else text


def energy(value: float, digits: int = 4) -> str:
    return pretty(joules(value, digits))


def time(value: float, digits: int = 4) -> str:
    return pretty(seconds(value, digits))


def size(value: int) -> str:
    return bits(value)


def in_one_unit(what: Literal["energy", "time", "size"], largest: float) -> tuple[float, Callable[[float, int], str]]:
    """The unit in which the largest value of an axis reads best, and how every value is printed in it.

    >>> unit, shown = in_one_unit("size", 3 * 8 * 1024**2)
    >>> unit, shown(unit / 2, 4)
    (8388608.0, '0.5 MiB')
    """
    name = (bits(int(largest)) if what == "size" else with_unit(float(largest), what, 4)).rpartition(" ")[2]
    unit = float(parse(f"1 {name}", what))
    return unit, lambda value, digits: pretty(f"{value / unit:.{digits}g} {name}") if value else "0"

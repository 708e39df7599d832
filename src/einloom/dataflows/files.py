"""Files of dataflows: the schema ``dataflow/1``, and those that ship.

Comes in: a name, a file or a text. Goes out: a `Dataflow`. The schema is ``dataflow/1``::

    schema: dataflow/1
    name: flat-h
    title: FLAT-HGran
    family: attention                                         # or a file beside this one, as families.py reads it
    source: TileFlow (MICRO'23), Table 5
    kind: printed                                             # printed | code | derived | assumed
    description: one tile of heads at a time, intermediates on chip
    fusion:
      - {tensors: intermediate, at: buffers}                  # where the backing stores of these intermediates stand
    loops:
      - {tensors: intermediate, over: [b, h]}                 # fused loops above them iterate these ranks at most
    memories:
      - {at: on_chip, keep: all, einsums: [QK]}               # also may_keep and bypass
    tiles:
      - {at: buffers, tensors: weights, variables: [l], sizes: whole}     # or a number, a list, {least: , most: }
    axes:
      - {at: outer, over: [b, h, m]}                          # these ranks at most are spread over these axes
      - {axis: rows, over: [k], einsums: [QK]}                # or over an axis by its name
      - {axis: core, variables: [h], instances: 4}            # a number, a list, or {least: , most: }
    binding: {kind: pipelined, stages: [[QK], [max, sub, exp, sum, div], [AV]]}
    rewrite: {online_softmax: {tiles: divisors}}              # or a number, a list: makes the family of another one
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import cast, get_args

from ..errors import SpecError, nearest
from ..mapspace.files import HOLDS, numbers_from
from ..mapspace.limits.data import Numbers
from ..reading.located import Located, read_file, read_text
from ..reading.yamltree import Node, parse_yaml
from ..workload.selectors import KEYWORDS, Selector, selector
from .families import Family, family, family_from
from .rewrites import REWRITES, Rewrite
from .rules import KINDS, PLACES, SPOTS, Binding, Dataflow, Fuse, Hold, Kind, Over, Place, Rule, Spread, Tile

VERSION = 1
DATA = Path(__file__).parent / "data" / "dataflows"
NAMES = (
    "layerwise",
    "uni-pipe",
    "flat-m",
    "flat-b",
    "flat-h",
    "flat-r",
    "chimera",
    "tileflow-attention",
    "flash-attention",
    "chimera-online",
    "transfusion",
    "layerwise-convolution",
    "fused-layer",
    "isos",
    "tileflow-convolution",
    "spread-attention",
    "spread-online-attention",
    "spread-convolution",
    "spread-tiled-convolution",
)


def dataflow(name: str) -> Dataflow:
    """The dataflow that ships under a name, or that a file ending in .yaml or .yml describes.

    >>> dataflow("flat-h").title
    'FLAT-HGran'

    Raises SpecError with a suggestion for an unknown name, with the place of whatever is wrong in a file.
    """
    if name.endswith((".yaml", ".yml")):
        return dataflow_from(read_file(name))
    if name not in NAMES:
        listed = "`einloom zoo` lists those that ship; a file ends in .yaml"
        raise SpecError(f"there is no dataflow {name!r:.60}; {listed}", suggestion=nearest(name, NAMES))
    return _shipped(name)


@lru_cache(maxsize=len(NAMES))
def _shipped(name: str) -> Dataflow:
    return dataflow_from(read_file(DATA / f"{name}.yaml"))


def parse_dataflow(text: str, file: str = "<text>") -> Dataflow:
    """The dataflow of a YAML text."""
    return dataflow_from(read_text(text, file))


def dataflow_text(name: str) -> str:
    """The file of a dataflow that ships, as it stands there: a start for one's own."""
    dataflow(name)
    return (DATA / f"{name}.yaml").read_text(encoding="utf-8")


def dataflow_data(name: str) -> object:
    """The same file as plain data."""
    return _plain(parse_yaml(dataflow_text(name), name))


def _plain(node: Node) -> object:
    if node.kind == "mapping":
        return {str(key.scalar): _plain(value) for key, value in node.pairs}
    return [_plain(item) for item in node.items] if node.kind == "list" else node.scalar


def dataflow_from(view: Located) -> Dataflow:
    """The dataflow that a view shows. Raises SpecError with the places of all that is wrong."""
    view.schema("dataflow", VERSION)
    name = view.require("name").name()
    field = view.require("family")
    with field.placed():
        kind = _family(field.name(), view.file)
    reader = _Reader(kind)
    rules = tuple(reader.rules(view))
    binding = Binding()
    if (bound := view.get("binding")) is not None:
        with bound.gather():
            binding = reader.binding(bound)
    title, about, changed = view.get("title"), view.get("description"), view.get("rewrite")
    rewrite = None
    if changed is not None:
        with changed.gather():
            rewrite = reader.rewrite(changed)
    found = Dataflow(
        name,
        name if title is None else title.text(),
        kind,
        view.require("source").text(),
        view.require("kind").choice(KINDS),
        "" if about is None else about.text(),
        rules,
        binding,
        rewrite,
    )
    with view.gather():
        view.finish()
    view.raise_gathered()
    return found


def _family(name: str, beside: str | None) -> Family:
    """The family of a name, or of a file that stands beside the file that names it."""
    if name.endswith((".yaml", ".yml")):
        return family_from(read_file(Path(beside or "").parent / name))
    return family(name)


def _tiles(view: Located) -> tuple[int, ...] | None:
    """Numbers of tiles: one, a list, or None for ``divisors``."""
    if view.is_text:
        view.choice(("divisors",))
        return None
    items = view.items() if view.is_list else [view]
    if not items:
        raise view.error("an empty list; numbers of tiles or 'divisors' must stand here")
    return tuple(dict.fromkeys(item.integer(minimum=1) for item in items))


class _Reader:
    """Reads the sections of a dataflow file; what names a role is checked against the family. Errors are gathered."""

    def __init__(self, kind: Family) -> None:
        self.family = kind
        self.einsums = tuple(einsum.name for einsum in kind.einsums)

    def rules(self, view: Located) -> Iterator[Rule]:
        for section, read in (
            ("fusion", self.fuse),
            ("loops", self.over),
            ("memories", self.hold),
            ("tiles", self.tile),
            ("axes", self.spread),
        ):
            field = view.get(section)
            for item in [] if field is None else field.items():
                with item.gather():
                    yield from read(item)
                    item.finish()

    def fuse(self, item: Located) -> Iterator[Rule]:
        yield Fuse(self.tensors(item.require("tensors")), self.place(item.require("at")))

    def over(self, item: Located) -> Iterator[Rule]:
        yield Over(
            self.tensors(item.require("tensors")), self.roles(item.require("over"), self.family.variables, "rank")
        )

    def hold(self, item: Located) -> Iterator[Rule]:
        at, which = self.place(item.require("at")), item.get("einsums")
        einsums = None if which is None else self.roles(which, self.einsums, "Einsum")
        for rule in HOLDS:
            if (field := item.get(rule)) is not None:
                yield Hold(rule, at, self.tensors(field), einsums)

    def tile(self, item: Located) -> Iterator[Rule]:
        at, which, sizes = self.place(item.require("at")), item.get("tensors"), item.require("sizes")
        whole = sizes.is_text and sizes.text() == "whole"
        yield Tile(
            at,
            selector("all") if which is None else self.tensors(which),
            self.roles(item.require("variables"), self.family.variables, "rank"),
            None if whole else numbers_from(sizes),
        )

    def spread(self, item: Located) -> Iterator[Rule]:
        named, at, which = item.get("axis"), item.get("at"), item.get("einsums")
        if (named is None) == (at is None):
            raise item.error("an axis is meant by 'axis: NAME' or by 'at: outer' or 'at: array'")
        spot = named.name() if named is not None else "" if at is None else at.choice(SPOTS)
        einsums = None if which is None else self.roles(which, self.einsums, "Einsum")
        over = item.get("over")
        if over is not None:
            most = self.roles(over, self.family.variables, "rank")
            others = tuple(role for role in self.family.variables if role not in most)
            yield Spread(spot, others, Numbers(values=(1,)), einsums)
        else:
            variables = self.roles(item.require("variables"), self.family.variables, "rank")
            yield Spread(spot, variables, numbers_from(item.require("instances")), einsums)

    def binding(self, view: Located) -> Binding:
        """The binding; its stages hold every Einsum once, in program order."""
        kind = cast(Kind, view.require("kind").choice(get_args(Kind)))
        field = view.get("stages")
        stages = () if field is None else tuple(self.roles(s, self.einsums, "Einsum") for s in field.items())
        view.finish()
        if kind == "sequential" and field is not None:
            raise field.error("a sequential binding has no stages")
        if kind != "sequential" and tuple(role for stage in stages for role in stage) != self.einsums:
            message = f"the stages must hold each of {', '.join(self.einsums)} once, in this order"
            raise (view if field is None else field).error(message)
        return Binding(kind, stages)

    def rewrite(self, view: Located) -> Rewrite:
        """The rewrite and its numbers of tiles; it must make the family that the file speaks of."""
        entries = view.entries()
        if len(entries) != 1:
            raise view.error("expected one rewrite, as in {online_softmax: {tiles: divisors}}")
        ((name, key, value),) = entries
        if name not in REWRITES:
            raise key.error(f"there is no rewrite {name!r:.60}; known: {', '.join(REWRITES)}", nearest(name, REWRITES))
        rule = REWRITES[name]
        if rule.target != self.family.name:
            raise key.error(f"{name} makes {rule.target} of {rule.source}, but the family here is {self.family.name}")
        numbers: list[tuple[str, tuple[int, ...] | None]] = []
        for cut, place, tiles in value.entries():
            if cut not in rule.cuts:
                known = ", ".join(rule.cuts)
                raise place.error(f"{name} has no number {cut!r:.60}; it has {known}", nearest(cut, rule.cuts))
            numbers.append((cut, _tiles(tiles)))
        if not numbers:
            raise value.error(f"which tiles? {name} has {', '.join(rule.cuts)}, each 'divisors', a number or a list")
        return Rewrite(name, tuple(numbers))

    def place(self, view: Located) -> Place:
        return cast(Place, view.choice(PLACES))

    def tensors(self, view: Located) -> Selector:
        with view.placed():
            found = selector(view.text(what="a selector such as 'intermediate & ~weights'"))
        for name in found.names:
            if name not in KEYWORDS and name not in self.family.tensors:
                known = ", ".join(self.family.tensors)
                message = f"the family {self.family.name} has no tensor {name!r:.60}; it has {known}"
                raise view.error(message, nearest(name, self.family.tensors))
        return found

    def roles(self, view: Located, known: tuple[str, ...], what: str) -> tuple[str, ...]:
        names = view.names()
        for name in names:
            if name not in known:
                message = f"the family {self.family.name} has no {what} {name!r:.60}; it has {', '.join(known)}"
                raise view.error(message, nearest(name, known))
        return names

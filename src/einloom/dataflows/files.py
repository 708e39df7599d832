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
from typing import Any, get_args

from ..errors import unknown
from ..mapspace.files import HOLDS, NUMBERS, numbers_of
from ..mapspace.limits.data import Numbers
from ..reading.facts import KINDS
from ..reading.fields import STATED, read_record
from ..reading.keys import NAME, TEXT, Choice, Each, Either, Key, NameOf, Number, Record, Table, Written
from ..reading.located import Located, read_file, read_text
from ..reading.yamltree import Node, parse_yaml
from ..workload.selectors import KEYWORDS, Selector, selector
from .families import Family, family, family_from
from .rewrites import Rewrite, known_rule
from .rules import PLACES, SPOTS, Binding, Dataflow, Fuse, Hold, Kind, Over, Rule, Spread, TileSizes

VERSION = 1
TILE_COUNT = Number("count", minimum=1, sourced=False)
TILES = Either((Choice(("divisors",)), TILE_COUNT, Each(TILE_COUNT, minimum=1)))
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
        raise unknown("dataflow", name, NAMES, "; a file ends in .yaml")
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
    field = view.require("family")
    with field.placed():
        kind = _family(field.name(), view.file)
    found = read_record(view, DataflowTables(kind).record, STATED, ignored=("schema", "family"))
    view.raise_gathered()
    rewrite = None
    if "rewrite" in found:
        rewrite = _rewrite(view.require("rewrite"), found["rewrite"], kind)
    rules = [rule for section in SECTIONS for made in found.get(section, ()) for rule in made]
    return Dataflow(
        found["name"],
        found.get("title", found["name"]),
        kind,
        found["source"],
        found["kind"],
        found.get("description", ""),
        tuple(rules),
        found.get("binding", Binding()),
        rewrite,
    )


def _family(name: str, beside: str | None) -> Family:
    """The family of a name, or of a file that stands beside the file that names it."""
    if name.endswith((".yaml", ".yml")):
        return family_from(read_file(Path(beside or "").parent / name))
    return family(name)


REWRITE = Table(Table(TILES))


class DataflowTables:
    """The table of a dataflow file; names of roles are those of the family. None: any, as in a schema."""

    def __init__(self, family: Family | None = None) -> None:
        self.family = family

    @property
    def record(self) -> Record:
        """The table of the whole file."""
        stages = Key("stages", Each(self._roles("Einsum")), "Einsums that run together, each once, in program order")
        kind = Key("kind", Choice(get_args(Kind)), "how branches share the machine", required=True)
        return Record(
            "a dataflow",
            (
                Key("schema", TEXT, "what this file is, and its version", required=True),
                Key("name", NAME, "what it is called", required=True),
                Key("title", TEXT, "as the paper calls it"),
                Key("family", NAME, "the family of workloads whose roles it names, or its file", required=True),
                Key("source", TEXT, "where it was published", required=True),
                Key("kind", Choice(KINDS), "how sure it is", required=True),
                Key("description", TEXT, "for people"),
                *self._sections(),
                Key("binding", Record("a binding", (kind, stages), build=self._binding), "what runs at the same time"),
                Key("rewrite", REWRITE, "makes the family of another one"),
            ),
        )

    def _sections(self) -> tuple[Key, ...]:
        tensors = Key("tensors", Written("a selector such as 'intermediate & ~weights'", self._selector), required=True)
        some = Key("tensors", tensors.shape, "by default all")
        at = Key("at", Choice(PLACES), "which memories", required=True)
        over = Key("over", self._roles("rank"), "these at most", required=True)
        einsums = Key("einsums", self._roles("Einsum"), "by default all")
        variables = Key("variables", self._roles("rank"), required=True)
        sizes = Key("sizes", Either((Choice(("whole",)), *NUMBERS.shapes)), "or a number, a list", required=True)
        holds = (Key(rule, tensors.shape) for rule in HOLDS)
        spread = (
            Key("axis", NAME, "an axis by its name"),
            Key("at", Choice(SPOTS), "or where it stands"),
            Key("over", over.shape, "these ranks at most are spread"),
            Key("variables", variables.shape, "or each of these"),
            Key("instances", NUMBERS, "takes so many"),
            einsums,
        )
        rows = {
            "fusion": ("where intermediates are backed", (tensors, at), _fuse),
            "loops": ("ranks of fused loops", (tensors, over), _over),
            "memories": ("what memories hold", (at, *holds, einsums), _hold),
            "tiles": ("sizes of tiles", (at, some, variables, sizes), _tile),
            "axes": ("spatial use", spread, self._spread),
        }
        return tuple(Key(name, Each(Record(title, keys, build=made))) for name, (title, keys, made) in rows.items())

    def _roles(self, what: str) -> NameOf:
        if self.family is None:
            return NameOf(what, several=True)
        known = self.family.variables if what == "rank" else [einsum.name for einsum in self.family.einsums]
        return NameOf(
            f"{'an' if what == 'Einsum' else 'a'} {what} of the family {self.family.name}", known, several=True
        )

    def _selector(self, text: str) -> Selector:
        found = selector(text)
        known = self.family.tensors if self.family else found.names
        for name in found.names:
            if name not in KEYWORDS and name not in known:
                raise unknown(f"a tensor of the family {self.family.name if self.family else ''}", name, known)
        return found

    def _spread(self, item: Located, found: dict[str, Any]) -> Iterator[Rule]:
        assert self.family is not None
        if ("axis" in found) == ("at" in found):
            raise item.error("an axis is meant by 'axis: NAME' or by 'at: outer' or 'at: array'")
        spot, einsums = found.get("axis", found.get("at", "")), found.get("einsums")
        if "over" in found:
            others = tuple(role for role in self.family.variables if role not in found["over"])
            return iter([Spread(spot, others, Numbers(values=(1,)), einsums)])
        item.require("variables"), item.require("instances")
        return iter([Spread(spot, found["variables"], numbers_of(found["instances"]), einsums)])

    def _binding(self, view: Located, found: dict[str, Any]) -> Binding:
        """The binding; its stages hold every Einsum once, in program order."""
        assert self.family is not None
        kind, stages, einsums = found["kind"], found.get("stages", ()), tuple(e.name for e in self.family.einsums)
        if kind == "sequential" and "stages" in found:
            raise view.require("stages").error("a sequential binding has no stages")
        if kind != "sequential" and tuple(role for stage in stages for role in stage) != einsums:
            message = f"the stages must hold each of {', '.join(einsums)} once, in this order"
            raise (view.get("stages") or view).error(message)
        return Binding(kind, stages)


SECTIONS = ("fusion", "loops", "memories", "tiles", "axes")


def _rewrite(view: Located, found: Any, family: Family) -> Rewrite:
    """The rewrite and its numbers of tiles; it must make the family that the file speaks of."""
    if len(found) != 1:
        raise view.error("expected one rewrite, as in {online_softmax: {tiles: divisors}}")
    ((name, numbers),) = found
    ((_, key, value),) = view.entries()
    with key.placed():
        rule = known_rule(name, (cut for cut, _ in numbers))
    if rule.target != family.name:
        raise key.error(f"{name} makes {rule.target} of {rule.source}, but the family here is {family.name}")
    if not numbers:
        raise value.error(f"which tiles? {name} has {', '.join(rule.cuts)}, each 'divisors', a number or a list")
    return Rewrite(name, tuple((cut, _counts(tiles)) for cut, tiles in numbers))


def _counts(tiles: Any) -> tuple[int, ...] | None:
    """Numbers of tiles; None for ``divisors``."""
    if tiles == "divisors":
        return None
    return (tiles,) if isinstance(tiles, int) else tuple(dict.fromkeys(tiles))


def _fuse(item: Located, found: dict[str, Any]) -> Iterator[Rule]:
    yield Fuse(found["tensors"], found["at"])


def _over(item: Located, found: dict[str, Any]) -> Iterator[Rule]:
    yield Over(found["tensors"], found["over"])


def _hold(item: Located, found: dict[str, Any]) -> Iterator[Rule]:
    for rule in HOLDS:
        if rule in found:
            yield Hold(rule, found["at"], found[rule], found.get("einsums"))


def _tile(item: Located, found: dict[str, Any]) -> Iterator[Rule]:
    sizes = None if found["sizes"] == "whole" else numbers_of(found["sizes"])
    yield TileSizes(found["at"], found.get("tensors", selector("all")), found["variables"], sizes)


DATAFLOW = DataflowTables().record

"""TileFlow's ``mapping`` as data: a tree of tiles, scopes and operators, with every structural rule checked.

A tile's ``permutation`` lists its loops innermost first; here they stand outermost first. A tile with several subtrees
is an implicit sequential scope.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Literal

from ...dataclass import dataclass
from ...errors import SpecError, nearest
from ...reading.arithmetic import Number, arithmetic
from ...reading.located import Located
from .operators import OperatorProblem
from .sections import truth, whole, words

Kind = Literal["sequential", "sharing", "parallel", "pipelined"]
Direction = Literal["X", "Y"]
_KINDS: tuple[tuple[str, Kind], ...] = (
    ("seq", "sequential"),
    ("shar", "sharing"),
    ("para", "parallel"),
    ("pipe", "pipelined"),
)
_FACTOR = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*([A-Za-z0-9_?]+)(\s*,\s*[0-9]+)?[\s,]*")
CONCURRENT: tuple[Kind, ...] = ("parallel", "pipelined")


@dataclass(frozen=True, slots=True)
class Op:
    """A leaf: the operator `name`."""

    name: str
    place: Located = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TileNode:
    """Loops (dimension, trips), outermost first, over the tile that `child` handles.

    target: the level whose data it handles. along: for a spatial tile the direction of each loop, empty for a temporal
    one. profile: False hides its own traffic in TileFlow's reports.
    """

    target: str
    loops: tuple[tuple[str, int], ...]
    child: Node
    place: Located = field(compare=False, repr=False)
    along: tuple[Direction, ...] = ()
    spatial: bool = False
    multicast: bool = True
    bypass: tuple[str, ...] = ()
    profile: bool = True


@dataclass(frozen=True, slots=True)
class Scope:
    """Where operators part ways."""

    kind: Kind
    children: tuple[Node, ...]
    place: Located = field(compare=False, repr=False)


Node = TileNode | Scope | Op


def operators_below(node: Node) -> tuple[str, ...]:
    """Names of the operators at or below `node`, in program order."""
    if isinstance(node, Op):
        return (node.name,)
    if isinstance(node, TileNode):
        return operators_below(node.child)
    return tuple(name for child in node.children for name in operators_below(child))


def tiles_below(node: Node) -> Iterator[TileNode]:
    """All tiles at or below `node`, outermost first."""
    if isinstance(node, TileNode):
        yield node
        yield from tiles_below(node.child)
    elif isinstance(node, Scope):
        for child in node.children:
            yield from tiles_below(child)


def first_level(node: Node) -> str:
    """The level of the outermost tile at or below `node`."""
    return next(tiles_below(node)).target


def mapping_nodes(
    view: Located, problem: OperatorProblem, levels: tuple[str, ...], names: Mapping[str, Number]
) -> Node:
    """The tree that the section says. levels: storage levels, outermost first. SpecError with the place otherwise."""
    root = _Reader(problem, levels, names).node(view, None, {})
    found = operators_below(root)
    for einsum in problem.workload.einsums:
        if found.count(einsum.name) != 1:
            raise view.error(f"operator {einsum.name} stands {found.count(einsum.name)} times in the mapping, not once")
    return root


class _Reader:
    """Reads one node after the other; `done` is what the loops above have made of each dimension."""

    def __init__(self, problem: OperatorProblem, levels: tuple[str, ...], names: Mapping[str, Number]) -> None:
        self.problem, self.levels, self.names = problem, levels, names
        self.known = {einsum.name: einsum for einsum in problem.workload.einsums}

    def node(self, view: Located, above: TileNode | None, done: Mapping[str, int]) -> Node:
        kind = view.require("node-type").name().lower()
        if kind == "tile":
            return self.tile(view, above, done)
        if kind == "scope":
            return self.scope(view, above, done)
        if kind != "op":
            raise view.require("node-type").unknown("node", kind, ("tile", "scope", "op"))
        return self.op(view, above, done)

    def op(self, view: Located, above: TileNode | None, done: Mapping[str, int]) -> Op:
        field = view.require("name")
        name = field.name()
        view.get("binding")
        view.finish()
        if name not in self.known:
            raise field.error(f"the problem has no operator {name!r:.60}", nearest(name, self.known))
        if above is None or above.target != self.levels[-1] or above.spatial:
            raise view.error(f"an operator stands below a temporal tile of {self.levels[-1]}, the innermost level")
        mine = set(self.known[name].variables)
        for dimension, variable in self.problem.variables.items():
            size, product = self.problem.sizes[dimension], done.get(dimension, 1)
            if variable in mine and product != size:
                raise view.error(f"{name}: the factors of {dimension} multiply to {product}, its size is {size}")
        return Op(name, view)

    def scope(self, view: Located, above: TileNode | None, done: Mapping[str, int]) -> Scope:
        kind: Kind = "sequential"
        if (field := view.get("type")) is not None:
            text = field.name().lower()
            found = [value for stem, value in _KINDS if stem in text]
            if len(found) != 1:
                known = ("Sequential", "Sharing", "Parallel", "Pipeline")
                raise field.unknown("scope", text, known)
            kind = found[0]
        children = tuple(self.node(item, above, done) for item in self.subtree(view))
        view.get("tag")
        view.finish()
        return self.joined(kind, children, view)

    def joined(self, kind: Kind, children: tuple[Node, ...], view: Located) -> Scope:
        if len(children) < 2:
            raise view.error(f"a scope needs at least two subtrees; this one has {len(children)}")
        for child in children:
            if isinstance(child, Op):
                raise child.place.error("an operator stands directly in a scope; a tile must stand between")
        levels = {first_level(child) for child in children}
        if len(levels) > 1:
            raise view.error(f"the subtrees of a scope begin at one level, these at {', '.join(sorted(levels))}")
        return Scope(kind, children, view)

    def subtree(self, view: Located) -> list[Located]:
        field = view.get("subtree")
        if field is None:
            raise view.error("a leaf must be an Op; this node has no subtree")
        return field.items() if field.is_list else [field]

    def tile(self, view: Located, above: TileNode | None, done: Mapping[str, int]) -> TileNode:
        spatial = self.is_spatial(view)
        target = self.target(view, above, spatial)
        factors = self.factors(view.require("factors"))
        order = self.order(view, factors)
        split = len(order)
        if (field := view.get("split")) is not None:
            if not spatial:
                raise field.error("only a spatial tile has a split")
            split = whole(field, self.names, minimum=0)
        along: tuple[Direction, ...] = ()
        if spatial:
            along = tuple("X" if order.index(dimension) < split else "Y" for dimension in reversed(order))
        multicast = (flag := view.get("multicast")) is None or truth(flag)
        profile = (flag := view.get("profile")) is None or truth(flag)
        bypass = words(field := view.get("bypass"))
        for tensor in bypass:
            known = [t.name for t in self.problem.workload.tensors]
            if tensor not in known:
                assert field is not None
                raise field.error(f"bypass names {tensor!r:.60}, which is no tensor", nearest(tensor, known))
        view.get("tag")
        loops = tuple((dimension, factors[dimension]) for dimension in reversed(order))
        inner = {d: done.get(d, 1) * factors.get(d, 1) for d in self.problem.variables}
        outline = TileNode(target, loops, Op("", view), view, along, spatial, multicast, bypass, profile)
        children = tuple(self.node(item, outline, inner) for item in self.subtree(view))
        view.finish()
        if not children:
            raise view.error("a leaf must be an Op; this node has an empty subtree")
        child = children[0] if len(children) == 1 else self.joined("sequential", children, view)
        return TileNode(target, loops, child, view, along, spatial, multicast, bypass, profile)

    def is_spatial(self, view: Located) -> bool:
        field = view.get("type")
        if field is None:
            return False
        text = field.name().lower()
        if "temp" not in text and "spatial" not in text:
            raise field.unknown("type of tile", text, ("temporal", "spatial"))
        return "temp" not in text

    def target(self, view: Located, above: TileNode | None, spatial: bool) -> str:
        """The level, by name or counted from the innermost one; levels go inwards one by one."""
        field = view.require("target")
        name = field.name()
        if name.isdigit() and int(name) < len(self.levels):
            name = self.levels[-1 - int(name)]
        if name not in self.levels:
            raise field.unknown("level", name, self.levels)
        place = self.levels.index(name)
        before = -1 if above is None else self.levels.index(above.target)
        if above is None and (spatial or place):
            raise field.error(f"the outermost tile is a temporal one of {self.levels[0]}, the outermost level")
        if above is not None and spatial and (above.spatial or place != before):
            raise field.error(f"a spatial tile stands right below a temporal tile of its own level {name}")
        if above is not None and above.spatial and not spatial and place != before + 1:
            raise field.error(f"below a spatial tile of {above.target} stands a temporal tile of the level below it")
        if not before <= place <= before + 1:
            raise field.error(
                f"{name} stands below a tile of {above.target if above else 'nothing'}; levels go inwards one by one"
            )
        return name

    def factors(self, field: Located) -> dict[str, int]:
        """Trips by dimension; a token that is neither a number nor a macro is free, and refused."""
        text = field.text().partition("#")[0]
        found: dict[str, int] = {}
        at = 0
        while text[at:].strip():
            match = _FACTOR.match(text, at)
            if match is None:
                raise field.error(f"cannot read the factors from {text[at:].strip()!r:.60}; they are written M=4 L=2")
            dimension, token, ragged = match.groups()
            if dimension not in self.problem.variables:
                raise field.unknown("dimension", dimension, self.problem.variables)
            if dimension in found:
                raise field.error(f"{dimension} has two factors here")
            if ragged:
                raise field.error(f"{dimension}: a second, ragged factor, which TileFlow reads and does not honour")
            found[dimension] = self.factor(field, dimension, token)
            at = match.end()
        return found

    def factor(self, field: Located, dimension: str, token: str) -> int:
        if not token.isdigit() and token not in self.names:
            raise field.error(
                f"{dimension}={token}: a free factor; einloom reads mappings whose factors are numbers or macros "
                f"(give it a value with {token}=...)",
                nearest(token, self.names),
            )
        with field.placed():
            number = arithmetic(token, self.names)
            if number.denominator != 1 or not 1 <= number <= 2**40:
                raise SpecError(f"{dimension}={token}: a factor is a whole number from 1 to 2**40, not {number}")
        return int(number)

    def order(self, view: Located, factors: Mapping[str, int]) -> list[str]:
        """Dimensions innermost first."""
        field = view.get("permutation")
        if field is None:
            if sum(trips > 1 for trips in factors.values()) > 1:
                raise view.error(
                    "without a permutation TileFlow takes the order of these loops from a hash table; write it"
                )
            return list(factors)
        order = [letter for letter in field.name() if not letter.isspace()]
        if sorted(order) != sorted(factors):
            raise field.error(f"the permutation {''.join(order)!r:.60} does not list the factors' {', '.join(factors)}")
        return order

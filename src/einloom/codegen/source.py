"""The C program of one mapping: its loops as loops, each of its stores as buffers, every move as a copy.

Comes in: the plan of a mapping, as the oracle has it. Goes out: the text of a program that reads ``input0.bin`` and so
on, writes ``results.bin``, and prints how many values moved where. Spatial instances run one after the other, each with
buffers of its own; what several share on the way is counted at the first of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from importlib.resources import files
from itertools import count, product
from math import prod

from ..dataclass import dataclass
from ..dataflows.casts import Cast
from ..mapping.tree import Mapping, Nest, Split, lines
from ..oracle.plan import (
    Expression,
    Gate,
    LeafPlan,
    LoopPlan,
    Need,
    NestPlan,
    Operand,
    PlaceCut,
    Plan,
    Site,
    SplitPlan,
    StorePlan,
)
from ..workload.einsum import Workload
from .functions import in_c

Key = tuple[str, str, str, str]  # Einsum, memory, tensor, read or write
STEPS = ("running", "change")  # Einsums that read what the step before left
RUNTIME, TABLES = "runtime.c", "/* tables */"
COLUMNS = 24  # numbers in a line of a table


@dataclass(frozen=True)
class CProgram:
    """text: of the C file. counters: what each number that it prints counts, in order. inputs, results: the tensors in
    its two files, in order. bytes: that it takes at most, about."""

    text: str
    counters: tuple[Key, ...]
    inputs: tuple[str, ...]
    results: tuple[str, ...]
    bytes: int


@dataclass(frozen=True)
class _Here:
    """Where a node stands. ranges: the C expressions of the two ends of every place. full: how long the range of a
    place is, always; None if that depends. temporal: names and trips of the loops above. spatial: likewise. idle: of
    each Einsum that may be without work, by its bit, the name of what is true then."""

    ranges: tuple[tuple[str, str], ...]
    full: tuple[int | None, ...]
    temporal: tuple[tuple[str, int], ...] = ()
    spatial: tuple[tuple[str, int], ...] = ()
    idle: tuple[tuple[int, str], ...] = ()
    depth: int = 1

    def all_idle(self, mask: int) -> str | None:
        """A condition: none of these Einsums has work. None if that cannot be."""
        names = [name for bit, name in self.idle if bit & mask]
        return " && ".join(names) if len(names) == mask.bit_count() else None

    @property
    def indent(self) -> str:
        return "    " * self.depth


class Writer:
    """Writes the program of a plan. once: partial sums that are read back are not counted. scans: who plays which role
    in an attention with online softmax, whose scans mean what `SCANS` says (dataflows/rewrites/online_softmax.py)."""

    def __init__(self, workload: Workload, plan: Plan, mapping: Mapping, once: bool, scans: Cast | None) -> None:
        self.workload, self.plan, self.mapping, self.once = workload, plan, mapping, once
        self.roles = {} if scans is None else {name: role for role, name in scans.einsums.items()}
        self.tiles = {} if scans is None else {scans.einsums[role]: scans.variables[role]["t"] for role in STEPS}
        self.states = 0 if scans is None else workload.tensor(scans.tensors["running"]).size
        self.number = {id(site): i for i, site in enumerate(plan.sites)}
        self.counters: dict[Key, int] = {}
        self.fresh = count()
        places = ((e.name, v) for e in workload.einsums for v in e.variables)
        self.bases = [f"{_identifier(v)}_{i}" for i, (_, v) in enumerate(places)]
        self.inputs = (*workload.inputs, *(tensor.name for tensor in workload.tensors if tensor.initial))
        self.results = tuple(workload.writers)
        self.flags: dict[tuple[tuple[int, bool], ...], str] = {}
        self.tables: list[str] = []  # that are still to be written
        self.bits: list[tuple[str, int]] = []  # bit sets of leaves: name and size
        self.bytes = 0

    def program(self) -> CProgram:
        """The whole text."""
        extents = tuple(end for _, end in self.plan.ranges)
        here = _Here(tuple(("0", str(end)) for end in extents), extents)
        body = [*self._nest(self.plan.root, self.mapping.nest, here), *self._closed(self.plan.root.tops, here)]
        tables = "\n".join(self._tables())
        before, after = files(__package__).joinpath(RUNTIME).read_text(encoding="utf-8").split(TABLES)
        views = [len(self.workload.shape(access)) for e in self.workload.einsums for access in e.accesses]
        ranks = max([1, *views, *(len(self._shape(site)) for site in self.plan.sites)])
        parts = [
            f"/* The program of a mapping of {_plain(self.workload.name)}, which stands at the end of this file.",
            "   `cc -std=c99 -O3 mapping.c -lm && ./a.out` reads input0.bin, ..., writes results.bin, prints moves. */",
            f"#define RANKS {ranks}",
            f"#define ONCE {int(self.once)}",
            before + tables + after,
            "static void mapped(void) {",
            *body,
            "}",
            *self._main(),
            "/*",
            *(f"   {_plain(line)}" for line in str(self.mapping).splitlines()),
            "*/",
        ]
        return CProgram("\n".join(parts) + "\n", tuple(self.counters), self.inputs, self.results, self.bytes)

    def _counter(self, einsum: str, site: Site | Gate, action: str) -> int:
        key = einsum, site.memory, site.tensor, action
        return self.counters.setdefault(key, len(self.counters))

    def _shape(self, site: Site) -> tuple[int, ...]:
        return (site.view.view if site.view else self.workload.tensor(site.tensor).shape) or (1,)

    # -- the tree ----------------------------------------------------------------------------------------------

    def _nest(self, plan: NestPlan, nest: Nest, here: _Here) -> Iterator[str]:
        """The statements of a nest; the tree's own lines stand above them as comments."""
        nodes = [node for node in plan.nodes if isinstance(node, StorePlan | LoopPlan | LeafPlan | SplitPlan)]
        closing = 0
        for node, line, text in zip(nodes, nest, lines(nest), strict=False):  # a split has several lines
            if not isinstance(line, Split):
                yield f"{here.indent}/* {_plain(text)} */"
            if isinstance(node, StorePlan):
                for site in node.sites:
                    yield from self._visit(site, here)
            elif isinstance(node, LoopPlan):
                head, here = self._loop(node, here)
                yield from head
                closing += 1
            elif isinstance(node, LeafPlan):
                yield from self._leaf(node, here)
            elif isinstance(line, Split):
                for i, (branch, below) in enumerate(zip(node.branches, line.branches, strict=True)):
                    without = here.all_idle(branch.mask)
                    yield f"{here.indent}{'' if without is None else f'if (!({without})) '}{{"
                    inner = replace(here, depth=here.depth + 1)
                    yield from self._nest(branch, below, inner)
                    yield from self._closed(node.handed[i] if node.concurrent else branch.tops, inner)
                    yield f"{here.indent}}}"
        for k in range(closing):
            yield f"{'    ' * (here.depth - 1 - k)}}}"

    def _loop(self, loop: LoopPlan, here: _Here) -> tuple[list[str], _Here]:
        """The head of a loop, and what stands below it."""
        n = next(self.fresh)
        i, pad = f"i{n}", here.indent + "    "
        head = [f"{here.indent}for (long {i} = 0; {i} < {loop.trips}; {i}++) {{"]
        ranges, full, idle = list(here.ranges), list(here.full), dict(here.idle)
        for cut in loop.cuts:
            low, high = here.ranges[cut.place]
            start, end = (f"{self.bases[cut.place]}_{n}_{word}" for word in ("from", "to"))
            even = not cut.needs and here.full[cut.place] == loop.trips * cut.tile
            if cut.needs and all(_as_consumer(need, here.ranges, cut.place) for need in cut.needs):
                guide = cut.needs[0].place  # as the last consumer: what it takes is what is made
                ranges[cut.place], full[cut.place] = ranges[guide], full[guide]
                if full[guide] is None:
                    head.append(self._idle(cut, ranges[guide], idle, n, pad))
                continue
            if cut.needs:
                ends, starts = (
                    _most([_needed(need, ranges[need.place][side]) for need in cut.needs]) for side in (1, 0)
                )
                begun = f"{i} ? {_clipped(starts, low, high)} : {low}"
                head += [f"{pad}const long {end} = {_clipped(ends, low, high)}, {start} = {begun};"]
            else:
                from_ = _sum([low, _times(cut.tile, i)])
                head += [f"{pad}const long {start} = {from_ if even else f'least({from_}, {high})'};"]
                to = f"{start} + {cut.tile}"
                if even and cut.tile == 1:
                    end = f"({to})"
                else:
                    head += [f"{pad}const long {end} = {to if even else f'least({to}, {high})'};"]
            ranges[cut.place], full[cut.place] = (start, end), cut.tile if even else None
            if not even:
                head.append(self._idle(cut, (start, end), idle, n, pad))
        mine = ((i, loop.trips),)
        temporal = here.temporal + (mine if loop.axis is None else ())
        spatial = here.spatial + (mine if loop.axis is not None else ())
        below = _Here(tuple(ranges), tuple(full), temporal, spatial, tuple(idle.items()), here.depth + 1)
        if below.idle != here.idle and (without := below.all_idle(loop.mask)) is not None:
            head.append(f"{pad}if ({without}) continue;")
        return head, below

    @staticmethod
    def _idle(cut: PlaceCut, ends: tuple[str, str], idle: dict[int, str], n: int, pad: str) -> str:
        """Says whether an Einsum has work in an iteration, which it enters in `idle`."""
        before = idle.get(cut.einsum_bit)
        name = idle[cut.einsum_bit] = f"idle{n}_{cut.einsum_bit.bit_length() - 1}"
        either = "" if before is None else f"{before} || "
        return f"{pad}const int {name} = {either}{ends[0]} >= {ends[1]};"

    def _visit(self, site: Site, here: _Here) -> Iterator[str]:
        """A store takes the hull of what the Einsums with work below it need."""
        pad = here.indent
        yield f"{pad}begin_tile({self.number[id(site)]}); /* {_plain(site.tensor)} in {_plain(site.memory)} */"
        for name, bit, expressions in site.users:
            ends = [_interval(expression, here) for expression in expressions] or [("0", "1")]
            idle = dict(here.idle).get(bit)
            when = [] if idle is None else [f"!{idle}"]
            if site.all is not None:  # the ranks of a view are other ranks; whether anything is needed they say
                when += [f"{low} < {high}" for low, high in map(_cut, expressions, ends)]
                own = [None if side is None else (str(side[0]), str(side[1])) for side in site.all]
                ends = [side or ends[rank] for rank, side in enumerate(own)]
            box = ", ".join(f"{{{low}, {high}}}" for low, high in ends)
            condition = f"if ({' && '.join(when)}) " if when else ""
            if site.all is not None:
                yield f"{pad}tile.work |= {'1' if idle is None else f'!{idle}'};"
            yield f"{pad}{condition}reach((const long[][2]){{{box}}}); /* {_plain(name)} */"
        if site.written_alone:
            yield from self._marks(site, here, pad)
        yield f"{pad}take({_mixed(here.spatial)}, {_mixed(here.temporal[: site.cut])});"

    def _marks(self, site: Site, here: _Here, pad: str) -> Iterator[str]:
        """Along ranks that a store's only user writes with gaps, the positions that it reaches."""
        for r, expression in enumerate(site.users[0][2]):
            if [c for _, c in expression.terms] in ([], [1]):
                continue
            names = [(f"t{k}", c, *here.ranges[place]) for k, (place, c) in enumerate(expression.terms)]
            yield from (f"{pad}for (long {t} = {low}; {t} < {high}; {t}++)" for t, _, low, high in names)
            at = _sum([str(expression.constant), *(_times(c, t) for t, c, _, _ in names)])
            yield f"{pad}    if (tile.some) mark({r}, {at});"

    def _closed(self, sites: Sequence[Site], here: _Here) -> Iterator[str]:
        """The end of a branch, or of the run: all that stands in it is emptied."""
        for site in sites:
            inner = prod(n for _, n in site.spatial[len(here.spatial) :])
            number, lane = self.number[id(site)], _mixed(here.spatial)
            if inner == 1:
                yield f"{here.indent}close_store({number}, {lane});"
            else:
                lane = "k" if lane == "0" else f"({lane}) * {inner} + k"
                yield f"{here.indent}for (long k = 0; k < {inner}; k++) close_store({number}, {lane});"

    # -- operations --------------------------------------------------------------------------------------------

    def _leaf(self, leaf: LeafPlan, here: _Here) -> Iterator[str]:
        """One operation: operands are read, each tensor once, and the value is added to the output."""
        pad = here.indent
        maximum = leaf.reduction == "max"
        names: dict[str, str] = {}
        for operand in leaf.inputs:
            if operand.tensor not in names:
                names[operand.tensor] = f"v{len(names)}"
        if names:
            yield f"{pad}double {', '.join(names.values())};"
        for operand in {operand.tensor: operand for operand in leaf.inputs}.values():
            yield from self._operand(leaf, operand, names[operand.tensor], here, maximum)
        values = [names[operand.tensor] for operand in leaf.inputs]
        result = in_c(leaf.function, values) if leaf.kind == "map" else " * ".join(values)
        missing = " || ".join(f"!{name}_in" for name in dict.fromkeys(values)) if maximum else "0"
        yield f"{pad}operations[{list(self.workload.names).index(leaf.einsum)}]++;"
        scale, role = "1", self.roles.get(leaf.einsum)
        if role in ("running", "change"):
            yield from self._last(leaf, here)
        if role == "running":
            yield f"{pad}running[now] = fmax(last, {values[0]});"
            result = "running[now]"
        elif role == "change":
            result = f"last - {values[1]}"
        elif role in ("total", "rescale"):
            scale, result = values
        yield from self._added(leaf, scale, result, missing or "0", here, leaf.output.tensor in names)

    def _last(self, leaf: LeafPlan, here: _Here) -> Iterator[str]:
        """The running maximum before this tile of keys; ``now``: the place of that after it."""
        shape = self._shape(leaf.output.site)
        at = [_position(e, here) for e in leaf.output.expressions]
        tiles = self.workload.einsum(leaf.einsum).output.rank_of(self.tiles[leaf.einsum])
        assert tiles is not None
        place = reduce(lambda text, one: f"({text}) * {one[1]} + {one[0]}", zip(at[1:], shape[1:], strict=True), at[0])
        yield f"{here.indent}const long now = {place};"
        before = f"running[now - {prod(shape[tiles + 1 :])}]"
        yield f"{here.indent}const double last = {at[tiles]} ? {before} : -INFINITY;"

    def _operand(self, leaf: LeafPlan, operand: Operand, name: str, here: _Here, told: bool) -> Iterator[str]:
        """The value of an operand, 0 outside the declared shape, counted where it is read. told: its presence, too."""
        pad, gates = here.indent, () if leaf.free else operand.gates
        at = ", ".join(_position(e, here) for e in operand.expressions) or "0"
        number, lane = self.number[id(operand.site)], _mixed(here.spatial[: operand.site.depth])
        counted = "NULL"
        if not leaf.free:
            counted = _if_first(operand.apart, here, self._counter(leaf.einsum, operand.site, "read"))
        call = f"read_value({number}, {lane}, (const long[]){{{at}}}, &{name}, {counted})"
        if operand.view:
            shape = operand.view.view
            sizes = ", ".join(map(str, shape)) or "1"
            ranks = f"{len(shape) or 1}, (const long[]){{{sizes}}}, (const long[]){{{at}}}"
            call = f"read_view({number}, {lane}, {ranks}, &{name}, {counted})"
        yield f"{pad}{f'const int {name}_in = ' if told or gates else ''}{call}; /* {_plain(operand.tensor)} */"
        for gate in gates:
            for way, coordinates in (("down", gate.down), ("up", gate.up)):
                yield from self._passed(leaf, gate, way, coordinates, here, f"if ({name}_in) ")

    def _added(self, leaf: LeafPlan, scale: str, value: str, none: str, here: _Here, read: bool) -> Iterator[str]:
        """Adds a value to the innermost store; a partial sum is read before, but the first, and counts `scale` times.
        read: the operation has read the element already."""
        output, pad = leaf.output, here.indent
        seen = f"begun{len(self.bits)}"
        size = prod(self._shape(output.site)) * prod(n for _, n in here.spatial)
        self.bits.append((seen, size))
        self.bytes += size // 8
        back = written = "NULL"
        if leaf.unit is not None and not read:
            back = _if_first(output.apart, here, self._counter(leaf.einsum, output.site, "read"))
        if not leaf.free:
            written = _if_first(output.apart, here, self._counter(leaf.einsum, output.site, "write"))
        at = ", ".join(_position(e, here) for e in output.expressions) or "0"
        where = f"{self.number[id(output.site)]}, {_mixed(here.spatial[: output.site.depth])}, (const long[]){{{at}}}"
        again = "const int again = " if output.gates else ""
        call = f"add({where}, {scale}, {value}, {none}, {seen}, {_mixed(here.spatial)}, {back}, {written})"
        yield f"{pad}{again}{call}; /* {_plain(output.tensor)} */"
        for gate in output.gates:
            yield from self._passed(leaf, gate, "up", gate.up, here, "if (again >= 0) ")
            yield from self._passed(leaf, gate, "down", gate.down, here, "if (again > 0) ")

    def _passed(
        self, leaf: LeafPlan, gate: Gate, way: str, told: Sequence[int] | None, here: _Here, when: str
    ) -> Iterator[str]:
        """An operation's value goes through a toll, once for all instances that `told` does not tell apart."""
        if told is not None:
            counter = self._counter(leaf.einsum, gate, way)
            yield f"{here.indent}{when}counters[{counter}] += {_first_here(told, here)};"

    # -- tables ------------------------------------------------------------------------------------------------

    def _tables(self) -> Iterator[str]:
        """The sites, and who shares what with whom."""
        rows, children = list[str](), list[int]()
        for number, site in enumerate(self.plan.sites):
            shape, lanes = self._shape(site), prod(n for _, n in site.spatial)
            yield f"static const long shape{number}[] = {{{', '.join(map(str, shape))}}};"
            read_first, write_first = (self._flags(site, apart) for apart in (site.read_by, site.write_by))
            parent = -1 if site.parent is None else self.number[id(site.parent)]
            above = 1 if site.parent is None else prod(n for _, n in site.parent.spatial)
            first = len(children)
            children += [self.number[id(child)] for child in site.children]
            counted = ["0"] * 4 if site.parent is None else self._counted(site, site.parent)
            ways = {way: list(self._tolls(site, way)) for way in ("down", "up")}
            given = self.inputs.index(site.tensor) if site.tensor in self.inputs else 0
            made = self.results.index(site.tensor) if site.tensor in self.results else 0
            needed = "NULL"
            if site.needed.of is not None:
                needed = f"needed{number}"
                own = self.workload.tensor(site.tensor).shape  # in the order of a view's elements, too
                yield _table("int", needed, (site.needed.at(e) for e in product(*map(range, own))))
            yield from self.tables
            self.tables.clear()
            for way, tolls in ways.items():
                yield f"static const Toll {way}{number}[] = {{{', '.join(tolls) or '{0, NULL}'}}};"
            rows.append(
                f"{{{len(shape)}, {int(site.produced)}, {int(self._maximum(site))}, {parent}, {len(site.children)}, "
                f"{first}, {given}, {made}, {lanes}, {lanes // above}, {site.needed.each}, {needed}, shape{number}, "
                f"{', '.join(counted)}, {read_first}, {write_first}, "
                f"{len(ways['down'])}, {len(ways['up'])}, down{number}, up{number}, "
                f"NULL, NULL, {prod(shape)}, {_quoted(f'{site.tensor} in {site.memory}')}}},"
            )
            self.bytes += lanes * (64 + 8 * 6) + (lanes * prod(shape) // 8 if site.produced else 0)
        yield f"static const int child_of[] = {{{', '.join(map(str, [*children, 0]))}}};"
        einsums = len(self.workload.einsums)
        yield f"enum {{ SITES = {len(rows)}, COUNTERS = {len(self.counters)}, EINSUMS = {einsums} }};"
        for word, names in (("counted", ("\t".join(key) for key in self.counters)), ("einsum", self.workload.names)):
            yield f"static const char *const {word}_names[] = {{"
            yield from (f"    {_quoted(name)}," for name in names)
            yield "    NULL};"
        yield "static Site sites[] = {"
        yield from (f"    {row}" for row in rows)
        yield "};"
        yield f"static long counters[{len(self.counters) + 1}];"
        yield f"static long operations[{len(self.workload.einsums)}];"
        yield f"static double *inputs[{len(self.inputs) + 1}], *results[{len(self.results) + 1}];"
        yield f"static unsigned char *finished[{len(self.results) + 1}];"
        yield from (f"static unsigned char *{name};" for name, _ in self.bits)
        if self.states:
            yield f"static double running[{self.states}]; /* the maximum after each tile of keys */"
            self.bytes += 8 * self.states

    def _tolls(self, site: Site, way: str) -> Iterator[str]:
        """The tolls that a site's values pass one way, and who counts there."""
        for gate in site.gates:
            told = gate.down if way == "down" else gate.up
            if told is not None:
                einsum = site.payer if way == "down" else site.producer or site.payer
                yield f"{{{self._counter(einsum, gate, way)}, {self._flags(site, told)}}}"

    def _flags(self, site: Site, apart: Sequence[int]) -> str:
        """The name of a table: per instance of a site, is it the first of those that `apart` does not tell apart?"""
        loops = tuple((n, i in apart) for i, (_, n) in enumerate(site.spatial) if n > 1)
        if loops not in self.flags:
            self.flags[loops] = f"first{len(self.flags)}"
            self.tables.append(_table("unsigned char", self.flags[loops], _first_of(loops)))
        return self.flags[loops]

    def _counted(self, site: Site, parent: Site) -> list[str]:
        """The numbers of the four counters; who writes to a link is not charged there."""
        writer = site.producer or site.payer
        keys = (site.payer, parent, "read"), (site.payer, site, "write"), (writer, site, "read")
        written = "COUNTERS" if parent.link else str(self._counter(writer, parent, "write"))
        return [*(str(self._counter(*key)) for key in keys), written]

    def _maximum(self, site: Site) -> bool:
        writer = site.producer or site.payer
        return self.workload.einsum(writer).reduction == "max"

    def _main(self) -> Iterator[str]:
        sizes = [[prod(self.workload.tensor(t).shape) for t in names] for names in (self.inputs, self.results)]
        self.bytes += 8 * sum(sizes[0]) + 9 * sum(sizes[1])
        yield "int main(void) {"
        yield f"    const long given[] = {{{', '.join(map(str, [*sizes[0], 0]))}}};"
        yield f"    const long made[] = {{{', '.join(map(str, [*sizes[1], 0]))}}};"
        yield from (f"    {name} = room({size // 8 + 1}, 1);" for name, size in self.bits)
        yield f"    begin({len(self.inputs)}, given, {len(self.results)}, made, SITES);"
        yield "    mapped();"
        yield f"    return end({len(self.results)}, made, COUNTERS, EINSUMS);"
        yield "}"


def _identifier(name: str) -> str:
    """A part of a C name: what no name may have becomes a line below."""
    text = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
    return text if text[:1].isalpha() else f"v{text}"


def _plain(text: str) -> str:
    """Text for a comment: no character that could end it."""
    return "".join(c if c.isascii() and (c.isalnum() or c in " _.,:;=@()[]/+-") else "." for c in text)


def _quoted(text: str) -> str:
    """Text as a C string, every unusual byte by its number."""
    safe = (chr(b) if chr(b).isalnum() or chr(b) in " _.,:-" else f"\\{b:03o}" for b in text.encode("utf-8"))
    return f'"{"".join(safe)}"'


def _table(kind: str, name: str, numbers: Iterable[int]) -> str:
    """An array of numbers."""
    texts = [str(int(one)) for one in numbers]
    rows = [", ".join(texts[k : k + COLUMNS]) for k in range(0, len(texts), COLUMNS)]
    return f"static const {kind} {name}[] = {{{(',' + chr(10)).join(rows)}}};"


def _first_here(apart: Sequence[int], here: _Here) -> str:
    """True in the instance at which a value is counted that several take at once."""
    others = [name for i, (name, n) in enumerate(here.spatial) if i not in apart and n > 1]
    return " && ".join(f"!{name}" for name in others) or "1"


def _first_of(loops: Sequence[tuple[int, bool]]) -> Iterator[bool]:
    """Per instance of spatial loops of so many trips: is it at the first trip of all that are not told apart?"""
    for lane in range(prod(n for n, _ in loops)):
        rest, first = lane, True
        for trips, apart in reversed(loops):
            rest, at = divmod(rest, trips)
            first = first and (apart or at == 0)
        yield first


def _if_first(apart: Sequence[int], here: _Here, counter: int) -> str:
    """The place of a counter, in the instance at which a value is counted that several take at once."""
    first = _first_here(apart, here)
    return f"&counters[{counter}]" if first == "1" else f"{first} ? &counters[{counter}] : NULL"


def _mixed(loops: Sequence[tuple[str, int]]) -> str:
    """One number for what several loops are at."""
    text = "0"
    for name, trips in loops:
        text = name if text == "0" else f"({text}) * {trips} + {name}"
    return text


def _times(coefficient: int, name: str) -> str:
    return name if coefficient == 1 else f"{coefficient} * {name}"


def _sum(terms: Sequence[str]) -> str:
    return " + ".join(term for term in terms if term != "0") or "0"


def _most(every: Sequence[str]) -> str:
    return reduce(lambda text, one: f"most({text}, {one})", every)


def _clipped(one: str, low: str, high: str) -> str:
    return f"least(most({one}, {low}), {high})"


def _as_consumer(need: Need, ranges: tuple[tuple[str, str], ...], place: int) -> bool:
    """True if a producer makes in each iteration just what one consumer takes."""
    return need.coefficient == 1 and need.reach == 0 and ranges[need.place] == ranges[place]


def _needed(need: Need, end: str) -> str:
    """How far a consumer reaches into a producer's rank."""
    reached = (
        _sum([end, str(need.reach)])
        if need.coefficient == 1
        else f"{need.coefficient} * ({end} - 1) + {need.reach + 1}"
    )
    return f"least({reached}, {need.size})"


def _interval(expression: Expression, here: _Here) -> tuple[str, str]:
    """First and one past the last position."""
    low, high, more = [str(expression.constant)], list[str](), expression.constant + 1
    for place, coefficient in expression.terms:
        start, end = here.ranges[place]
        low.append(_times(coefficient, start))
        high.append(_times(coefficient, end))
        more -= coefficient
    return _sum(low), _sum([*high, str(more)])


def _cut(expression: Expression, ends: tuple[str, str]) -> tuple[str, str]:
    """The interval within the declared shape."""
    return f"most({ends[0]}, 0)", f"least({ends[1]}, {expression.size})"


def _position(expression: Expression, here: _Here) -> str:
    return _sum([str(expression.constant), *(_times(c, here.ranges[place][0]) for place, c in expression.terms)])

"""The C program of one mapping: its loops as loops, each of its stores as buffers, every move as a copy.

Comes in: the plan of a mapping, as the oracle has it. Goes out: the text of a program that reads ``inputs.bin``, writes
``results.bin``, and prints how many values moved where. Spatial instances run one after the other, each with buffers of
its own; what several share on the way is counted at the first of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import count
from math import prod

from ..dataclass import dataclass
from ..mapping.tree import Mapping, Nest, Split, lines
from ..oracle.plan import Expression, Gate, LeafPlan, LoopPlan, NestPlan, Operand, Plan, Site, SplitPlan, StorePlan
from ..workload.einsum import Workload
from .functions import in_c

Key = tuple[str, str, str, str]  # Einsum, memory, tensor, read or write
RUNTIME, TABLES = "runtime.c", "/* tables */"
COLUMNS = 24  # numbers in a line of a table


@dataclass(frozen=True)
class Program:
    """text: of the C file. counters: what each number that it prints counts, in order. inputs, results: the tensors in
    its two files, in order. bytes: that it takes at most, about."""

    text: str
    counters: tuple[Key, ...]
    inputs: tuple[str, ...]
    results: tuple[str, ...]
    bytes: int


@dataclass(frozen=True)
class _Here:
    """Where a node stands. ranges: the names of the two ends of every place. temporal: names and trips of the loops
    above. spatial: likewise. dead: the name of the set of Einsums without work."""

    ranges: tuple[tuple[str, str], ...]
    temporal: tuple[tuple[str, int], ...] = ()
    spatial: tuple[tuple[str, int], ...] = ()
    dead: str = "0UL"
    depth: int = 1

    @property
    def indent(self) -> str:
        return "    " * self.depth


def refusals(plan: Plan, workload: Workload) -> Iterator[str]:
    """Why a plan has no program yet, each reason once; nothing if it has one."""
    if any(tensor.initial for tensor in workload.tensors) or workload.parted:
        yield "a tensor that is written in parts"
    if any(site.view is not None or site.all is not None for site in plan.sites):
        yield "a tensor that is read under other ranks"


class Writer:
    """Writes the program of a plan without `refusals`. once: partial sums that are read back are not counted."""

    def __init__(self, workload: Workload, plan: Plan, mapping: Mapping, once: bool) -> None:
        self.workload, self.plan, self.mapping, self.once = workload, plan, mapping, once
        self.number = {id(site): i for i, site in enumerate(plan.sites)}
        self.counters: dict[Key, int] = {}
        self.fresh = count()
        self.inputs = tuple(workload.inputs)
        self.results = tuple(name for name in workload.writers if self.workload.writers[name])
        self.bits: list[tuple[str, int]] = []  # bit sets of leaves: name and size
        self.bytes = 0

    def program(self) -> Program:
        """The whole text."""
        every = tuple((f"{name}_{i}_from", f"{name}_{i}_to") for i, (name, _) in enumerate(self._places()))
        body = [
            *(f"    const long {low} = 0, {high} = {n};" for (low, high), (_, n) in zip(every, self._places())),  # noqa: B905
            *self._nest(self.plan.root, self.mapping.nest, _Here(every)),
            *self._closed(self.plan.root.tops, _Here(every)),
        ]
        tables = "\n".join(self._tables())
        before, after = files(__package__).joinpath(RUNTIME).read_text(encoding="utf-8").split(TABLES)
        ranks = max([1, *(len(self._shape(site)) for site in self.plan.sites)])
        parts = [
            f"/* {self.workload.name}: the program of the mapping at the end of this file. */",
            f"#define RANKS {ranks}",
            f"#define ONCE {int(self.once)}",
            before + tables + after,
            "static void mapped(void) {",
            *body,
            "}",
            *self._main(),
            "/*",
            *(f"   {line}".replace("*/", "* /") for line in str(self.mapping).splitlines()),
            "*/",
        ]
        return Program("\n".join(parts) + "\n", tuple(self.counters), self.inputs, self.results, self.bytes)

    def _places(self) -> list[tuple[str, int]]:
        """A C name and the extent of every place."""
        pairs = [(e.name, v) for e in self.workload.einsums for v in e.variables]
        return [
            ("".join(c if c.isascii() and c.isalnum() else "_" for c in f"e_{v}"), self.workload.extents[v])
            for _, v in pairs
        ]

    def _counter(self, einsum: str, site: Site | Gate, action: str) -> int:
        key = einsum, site.memory, site.tensor, action
        return self.counters.setdefault(key, len(self.counters))

    def _shape(self, site: Site) -> tuple[int, ...]:
        return self.workload.tensor(site.tensor).shape or (1,)

    # -- the tree ----------------------------------------------------------------------------------------------

    def _nest(self, plan: NestPlan, nest: Nest, here: _Here) -> Iterator[str]:
        """The statements of a nest; the tree's own lines stand above them as comments."""
        nodes = [node for node in plan.nodes if isinstance(node, StorePlan | LoopPlan | LeafPlan | SplitPlan)]
        closing = 0
        for node, line, text in zip(nodes, nest, lines(nest), strict=False):  # a split has several lines
            if not isinstance(line, Split):
                yield f"{here.indent}/* {text} */"
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
                    yield f"{here.indent}if ({branch.mask}UL & ~{here.dead}) {{"
                    inner = _Here(here.ranges, here.temporal, here.spatial, here.dead, here.depth + 1)
                    yield from self._nest(branch, below, inner)
                    yield from self._closed(node.handed[i] if node.concurrent else branch.tops, inner)
                    yield f"{here.indent}}}"
        for k in range(closing):
            yield f"{'    ' * (here.depth - 1 - k)}}}"

    def _loop(self, loop: LoopPlan, here: _Here) -> tuple[list[str], _Here]:
        """The head of a loop, and what stands below it."""
        n = next(self.fresh)
        i, dead = f"i{n}", f"dead{n}"
        pad = here.indent + "    "
        head = [f"{here.indent}for (long {i} = 0; {i} < {loop.trips}; {i}++) {{"]
        ranges, empty = list(here.ranges), [here.dead]
        for cut in loop.cuts:
            low, high = here.ranges[cut.place]
            start, end = (f"{name.rsplit('_', 1)[0].rstrip('0123456789_')}_{n}_{cut.place}" for name in (low, high))
            start, end = f"{start}_from", f"{end}_to"
            if cut.needs:
                ends = [_needed(need.coefficient, ranges[need.place][1], need.reach, need.size) for need in cut.needs]
                starts = [_needed(need.coefficient, ranges[need.place][0], need.reach, need.size) for need in cut.needs]
                head += [
                    f"{pad}const long {end} = {_clipped(_most(ends), low, high)};",
                    f"{pad}const long {start} = {i} ? {_clipped(_most(starts), low, high)} : {low};",
                ]
            else:
                head += [
                    f"{pad}const long {start} = {_least(f'{low} + {i} * {cut.tile}', high)};",
                    f"{pad}const long {end} = {_least(f'{low} + ({i} + 1) * {cut.tile}', high)};",
                ]
            ranges[cut.place] = start, end
            empty.append(f"({start} >= {end} ? {cut.einsum_bit}UL : 0)")
        head += [
            f"{pad}const unsigned long {dead} = {' | '.join(empty)};",
            f"{pad}if (!({loop.mask}UL & ~{dead})) continue;",
        ]
        mine = ((i, loop.trips),)
        temporal = here.temporal + (mine if loop.axis is None else ())
        spatial = here.spatial + (mine if loop.axis is not None else ())
        return head, _Here(tuple(ranges), temporal, spatial, dead, here.depth + 1)

    def _visit(self, site: Site, here: _Here) -> Iterator[str]:
        """A store takes the hull of what the Einsums with work below it need."""
        pad, ranks = here.indent, len(self._shape(site))
        yield f"{pad}{{"
        yield f"{pad}    long low[RANKS] = {{0}}, high[RANKS] = {{0}};"
        yield f"{pad}    int some = 0, work = 0;"
        for name, bit, expressions in site.users:
            yield f"{pad}    if (!({here.dead} & {bit}UL)) {{ /* {name} */"
            ends = [_interval(e, here) for e in expressions] or [("0", "1")]
            yield f"{pad}        const long l[] = {{{', '.join(low for low, _ in ends)}}};"
            yield f"{pad}        const long h[] = {{{', '.join(high for _, high in ends)}}};"
            yield f"{pad}        work = 1;"
            yield f"{pad}        some = grown({ranks}, low, high, l, h, some);"
            yield f"{pad}    }}"
        outer = _mixed(here.temporal[: site.cut])
        yield f"{pad}    if (work) visit({self.number[id(site)]}, {_mixed(here.spatial)}, low, high, {outer});"
        yield f"{pad}}}"

    def _closed(self, sites: Sequence[Site], here: _Here) -> Iterator[str]:
        """The end of a branch, or of the run: all that stands in it is emptied."""
        for site in sites:
            inner = prod(n for _, n in site.spatial[len(here.spatial) :])
            lane = f"({_mixed(here.spatial)}) * {inner} + k"
            yield f"{here.indent}for (long k = 0; k < {inner}; k++) close_store({self.number[id(site)]}, {lane});"

    # -- operations --------------------------------------------------------------------------------------------

    def _leaf(self, leaf: LeafPlan, here: _Here) -> Iterator[str]:
        pad = here.indent
        yield f"{pad}{{ /* one operation of {leaf.einsum} */"
        names: dict[str, str] = {}
        for operand in leaf.inputs:
            if operand.tensor not in names:
                names[operand.tensor] = f"v{len(names)}"
                yield from self._operand(leaf, operand, names[operand.tensor], here, pad + "    ")
        values = [names[operand.tensor] for operand in leaf.inputs]
        missing = " || ".join(f"!{name}_in" for name in dict.fromkeys(values)) or "0"
        result = in_c(leaf.function, values) if leaf.kind == "map" else " * ".join(values)
        yield f"{pad}    const double value = {result};"
        yield f"{pad}    const int none = {missing if leaf.reduction == 'max' else '0'};"
        yield f"{pad}    operations[{self._einsum(leaf.einsum)}]++;"
        yield from self._result(leaf, leaf.output, here, pad + "    ", names)
        yield f"{pad}}}"

    def _einsum(self, name: str) -> int:
        return list(self.workload.names).index(name)

    def _operand(self, leaf: LeafPlan, operand: Operand, name: str, here: _Here, pad: str) -> Iterator[str]:
        """The value of an operand, 0 outside the declared shape, counted where it is read."""
        read = "" if leaf.free else f"{_first_here(operand.apart, here)} ? &counters[{self._reads(leaf, operand)}] : NULL"
        yield f"{pad}double {name} = 0;"
        yield f"{pad}const long {name}_at[] = {{{', '.join(_position(e, here) for e in operand.expressions) or '0'}}};"
        lane = _lane(here, operand.site.depth)
        site = self.number[id(operand.site)]
        yield f"{pad}const int {name}_in = operand({site}, {lane}, {name}_at, &{name}, {read or 'NULL'});"
        for gate in () if leaf.free else operand.gates:
            for way, told in (("down", gate.down), ("up", gate.up)):
                yield from self._passed(leaf, gate, way, told, here, f"{pad}if ({name}_in) ")

    def _passed(
        self, leaf: LeafPlan, gate: Gate, way: str, told: Sequence[int] | None, here: _Here, when: str
    ) -> Iterator[str]:
        """An operation's value goes through a toll, once for all instances that `told` does not tell apart."""
        if told is not None:
            yield f"{when}counters[{self._counter(leaf.einsum, gate, way)}] += {_first_here(told, here)};"

    def _reads(self, leaf: LeafPlan, operand: Operand) -> int:
        return self._counter(leaf.einsum, operand.site, "read")

    def _result(self, leaf: LeafPlan, output: Operand, here: _Here, pad: str, known: dict[str, str]) -> Iterator[str]:
        """Adds the value to the innermost store; a partial sum is read before, but the first."""
        lanes = prod(n for _, n in here.spatial)
        size = prod(self._shape(output.site)) * lanes
        seen = f"begun{len(self.bits)}"
        self.bits.append((seen, size))
        self.bytes += size // 8
        first, site = _first_here(output.apart, here), self.number[id(output.site)]
        back = "NULL"
        if leaf.unit is not None and output.tensor not in known:
            back = f"{first} ? &counters[{self._reads(leaf, output)}] : NULL"
        write = "NULL"
        if not leaf.free:
            write = f"{first} ? &counters[{self._counter(leaf.einsum, output.site, 'write')}] : NULL"
        yield f"{pad}const long at[] = {{{', '.join(_position(e, here) for e in output.expressions) or '0'}}};"
        lane = _lane(here, output.site.depth)
        place = _mixed(here.spatial)
        yield f"{pad}const int again = result({site}, {lane}, at, value, none, {seen}, {place}, {back}, {write});"
        for gate in output.gates:
            yield from self._passed(leaf, gate, "up", gate.up, here, f"{pad}if (again >= 0) ")
            yield from self._passed(leaf, gate, "down", gate.down, here, f"{pad}if (again > 0) ")
        yield f"{pad}(void)again;"

    # -- tables ------------------------------------------------------------------------------------------------

    def _tables(self) -> Iterator[str]:
        """The sites, and who shares what with whom."""
        rows, children = list[str](), list[int]()
        for number, site in enumerate(self.plan.sites):
            shape, lanes = self._shape(site), prod(n for _, n in site.spatial)
            yield f"static const long shape{number}[] = {{{', '.join(map(str, shape))}}};"
            for word, apart in (("read", site.read_by), ("write", site.write_by)):
                yield _flags(f"{word}_first{number}", site, apart)
            parent = -1 if site.parent is None else self.number[id(site.parent)]
            above = 1 if site.parent is None else prod(n for _, n in site.parent.spatial)
            first = len(children)
            children += [self.number[id(child)] for child in site.children]
            counted = ["0"] * 4 if site.parent is None else self._counted(site, site.parent)
            ways = {way: list(self._tolls(site, number, way)) for way in ("down", "up")}
            for way, (tables, tolls) in ((way, (t[:-1], t[-1])) for way, t in ways.items()):
                yield from tables
                yield f"static const Toll {way}{number}[] = {{{tolls}}};"
            names = self.results if site.produced else self.inputs
            rows.append(
                f"{{{len(shape)}, {int(site.produced)}, {int(self._maximum(site))}, {parent}, {len(site.children)}, "
                f"{first}, {names.index(site.tensor) if site.tensor in names else 0}, {lanes}, {lanes // above}, "
                f"{site.needed.each}, shape{number}, {', '.join(counted)}, read_first{number}, write_first{number}, "
                f'{len(ways["down"]) - 1}, {len(ways["up"]) - 1}, down{number}, up{number}, '
                f'NULL, NULL, {prod(shape)}, "{site.tensor} in {site.memory}"}},'
            )
            self.bytes += lanes * (64 + 8 * 6) + (lanes * prod(shape) // 8 if site.produced else 0)
        yield f"static const int child_of[] = {{{', '.join(map(str, [*children, 0]))}}};"
        einsums = len(self.workload.einsums)
        yield f"enum {{ SITES = {len(rows)}, COUNTERS = {len(self.counters)}, EINSUMS = {einsums} }};"
        yield "static Site sites[] = {"
        yield from (f"    {row}" for row in rows)
        yield "};"
        yield f"static long counters[{len(self.counters) + 1}];"
        yield f"static long operations[{len(self.workload.einsums)}];"
        yield f"static double *inputs[{len(self.inputs) + 1}], *results[{len(self.results) + 1}];"
        yield f"static unsigned char *finished[{len(self.results) + 1}];"
        yield from (f"static unsigned char *{name};" for name, _ in self.bits)

    def _tolls(self, site: Site, number: int, way: str) -> Iterator[str]:
        """The instances that count at each toll that a site's values pass one way; last, the tolls themselves."""
        rows = []
        for k, gate in enumerate(site.gates):
            told = gate.down if way == "down" else gate.up
            if told is not None:
                einsum = site.payer if way == "down" else site.producer or site.payer
                yield _flags(f"{way}_first{number}_{k}", site, told)
                rows.append(f"{{{self._counter(einsum, gate, way)}, {way}_first{number}_{k}}}")
        yield ", ".join(rows) or "{0, NULL}"

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


def _flags(name: str, site: Site, apart: Sequence[int]) -> str:
    """A table: per instance of a site, is it the first of those that `apart` does not tell apart?"""
    flags = [str(int(one)) for one in _first_of(site.spatial, apart)]
    lines = [", ".join(flags[k : k + COLUMNS]) for k in range(0, len(flags), COLUMNS)]
    return f"static const unsigned char {name}[] = {{{(',' + chr(10)).join(lines)}}};"


def _first_here(apart: Sequence[int], here: _Here) -> str:
    """True in the instance at which a value is counted that several take at once."""
    others = [name for i, (name, n) in enumerate(here.spatial) if i not in apart and n > 1]
    return " && ".join(f"!{name}" for name in others) or "1"


def _first_of(spatial: tuple[tuple[str, int], ...], apart: Sequence[int]) -> Iterator[bool]:
    """Per instance: is it the first of those that `apart` does not tell apart?"""
    for lane in range(prod(n for _, n in spatial)):
        rest, first = lane, True
        for i in reversed(range(len(spatial))):
            rest, at = divmod(rest, spatial[i][1])
            first = first and (i in apart or at == 0)
        yield first


def _mixed(loops: Sequence[tuple[str, int]]) -> str:
    """One number for what several loops are at."""
    text = "0"
    for name, trips in loops:
        text = name if text == "0" else f"({text}) * {trips} + {name}"
    return text


def _lane(here: _Here, depth: int) -> str:
    return _mixed(here.spatial[:depth])


def _least(one: str, other: str) -> str:
    return f"least({one}, {other})"


def _most(every: Sequence[str]) -> str:
    text = every[0]
    for one in every[1:]:
        text = f"most({text}, {one})"
    return text


def _clipped(one: str, low: str, high: str) -> str:
    return f"least(most({one}, {low}), {high})"


def _needed(coefficient: int, end: str, reach: int, size: int) -> str:
    return f"least({coefficient} * ({end} - 1) + {reach + 1}, {size})"


def _interval(expression: Expression, here: _Here) -> tuple[str, str]:
    """First and one past the last position, cut at the declared shape."""
    low, high = str(expression.constant), str(expression.constant)
    for place, coefficient in expression.terms:
        start, end = here.ranges[place]
        low += f" + {coefficient} * {start}"
        high += f" + {coefficient} * ({end} - 1)"
    return f"most({low}, 0)", f"least({high} + 1, {expression.size})"


def _position(expression: Expression, here: _Here) -> str:
    return " + ".join([str(expression.constant), *(f"{c} * {here.ranges[place][0]}" for place, c in expression.terms)])

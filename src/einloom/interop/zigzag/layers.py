"""ZigZag's layers as a cascade of Einsums: ``O[k][ox]+=W[k][c][fx]*I[c][ix]`` with ``ix=1*ox+1*fx``.

An operand whose source is another layer is that layer's output, rank by rank. A dimension keeps its name in lower
case; where layers give it different sizes, ``NAME_ID``. Operands are called by letter and layer: ``W0``, ``O0``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...dataclass import dataclass
from ...errors import SpecError, combined, nearest
from ...reading.located import Located
from ...workload.build import MAX_SIZE, build_workload
from ...workload.einsum import Access, Einsum, Index, Workload
from ...workload.notation import check_einsum, check_name

_OPERAND = re.compile(r"\s*(\w+)\s*((?:\[\s*\w*\s*\]\s*)+)")
_RELATION = re.compile(r"\s*(\w+)\s*=\s*(?:(\w+)\s*\*\s*)?(\w+)\s*\+\s*(?:(\w+)\s*\*\s*)?(\w+)\s*\Z")
_POOLS = ("Max", "MaxPool", "Pooling", "Pool", "AveragePool", "GlobalAveragePool")
_OUTPUTS = ("O", "O_final")


@dataclass(frozen=True, slots=True)
class LayerOperand:
    """One access of an equation: its letter and the dimension of every rank."""

    letter: str
    ranks: tuple[str, ...]


@dataclass
class Layer:
    """One entry of the file. sizes: by dimension, in lower case. relations: ``ix`` -> ((dimension, factor), ...).

    starts: how much padding stands before a related dimension. extents: its size without padding.
    """

    id: int
    name: str
    kind: str
    view: Located
    output: LayerOperand
    inputs: tuple[LayerOperand, ...]
    adds: bool
    sizes: Mapping[str, int]
    relations: Mapping[str, tuple[tuple[str, int], ...]]
    bits: Mapping[str, int]
    sources: Mapping[str, int]
    starts: Mapping[str, int]
    extents: Mapping[str, int]

    def tensor(self, letter: str) -> str:
        """The tensor that an operand names."""
        return f"O{self.sources[letter]}" if letter in self.sources else f"{letter}{self.id}"

    def reach(self, rank: str) -> int:
        """Positions of a rank from the first to the last that the loops reach."""
        terms = self.relations.get(rank, ((rank, 1),))
        return 1 + sum(factor * (self.sizes[name] - 1) for name, factor in terms)


@dataclass(frozen=True)
class CascadeOfLayers:
    """The cascade of a file; kinds: operator type of every Einsum; names: (Einsum, dimension) -> rank variable."""

    workload: Workload
    kinds: Mapping[str, str]
    names: Mapping[tuple[str, str], str]


def layers_from(view: Located, name: str, notes: list[str]) -> CascadeOfLayers:
    """The cascade that the file lists. SpecError with the place of every mistake."""
    layers: list[Layer] = []
    for item in view.items():
        with item.gather():
            layers.append(_layer(item, layers, notes))
    view.raise_gathered()
    if not layers:
        raise view.error("the file lists no layer")
    by_id = {layer.id: layer for layer in layers}
    for layer in layers:
        with layer.view.gather():
            _check_sources(layer, by_id)
    view.raise_gathered()
    names = _variables(layers)
    accesses = _accesses(layers, names)
    ranks = {names[layer.id, dimension]: size for layer in layers for dimension, size in layer.sizes.items()}
    einsums = []
    for layer in layers:
        with layer.view.gather(), layer.view.placed():
            einsums.append(_einsum(layer, accesses))
            check_einsum(einsums[-1])
            _check_extents(layer, accesses, ranks)
    view.raise_gathered()
    used = {variable for einsum in einsums for variable in einsum.variables}
    try:
        workload = build_workload(
            name,
            einsums,
            {variable: size for variable, size in ranks.items() if variable in used},
            bits=_bits(layers, notes),
            shapes=_shapes(layers, by_id, accesses, ranks),
        )
    except SpecError as error:
        raise _placed(error, layers, view) from None
    called = {layer.id: layer.name for layer in layers}
    kinds = {layer.name: layer.kind for layer in layers}
    return CascadeOfLayers(workload, kinds, {(called[number], d): v for (number, d), v in names.items()})


def _placed(error: SpecError, layers: Sequence[Layer], view: Located) -> SpecError:
    """The errors of `build_workload` at the layers that they name."""
    places = {f"einsums.{layer.name}": layer.view for layer in layers}
    problems = getattr(error, "problems", (error,))
    return combined([places.get(one.path or "", view).error(one.message, one.suggestion) for one in problems])


def _layer(view: Located, before: Sequence[Layer], notes: list[str]) -> Layer:
    number = view.require("id").integer(minimum=0)
    if any(layer.id == number for layer in before):
        raise view.require("id").error(f"two layers have the id {number}")
    called = view.get("name")
    name = f"layer{number}" if called is None else called.name()
    with (called or view).placed():
        check_name(name, "a layer")
    if any(layer.name == name for layer in before):
        raise (called or view).error(f"two layers are called {name}")
    kind = view.require("operator_type").name()
    output, inputs, adds = _equation(view.require("equation"))
    if kind in _POOLS:
        notes.append(f"{name} ({kind}): counted as its equation says, one operation for each point")
    sizes = _sizes(view.require("loop_dims"), view.require("loop_sizes"))
    relations = _relations(view.listed("dimension_relations"), sizes)
    sources = {letter: source for letter, source in _sources(view, inputs).items() if source != number}
    bits = _precision(view, inputs)
    related = _related(view, relations)
    layer = Layer(number, name, kind, view, output, inputs, adds, sizes, relations, bits, sources, *related)
    _check_ranks(layer, view.require("equation"))
    view.finish()
    return layer


def _equation(view: Located) -> tuple[LayerOperand, tuple[LayerOperand, ...], bool]:
    """(what is written, what is read, is it a sum of the operands?)."""
    text = view.text()
    left, equals, right = text.partition("=")
    written = _OPERAND.fullmatch(left.replace("+", " "))
    if not equals or written is None or written[1] != "O":
        raise view.error(f"an equation reads O[k][c]+=W[k][c]*I[c], not {text!r:.80}")
    adds = "+" in right
    if adds and "*" in right:
        raise view.error("an equation multiplies its operands or adds them, not both")
    operands = [_OPERAND.fullmatch(part) for part in re.split(r"[*+]+", right)]
    found = [_operand(match) for match in (written, *operands) if match is not None]
    if len(found) != len(operands) + 1:
        raise view.error(f"cannot read the operands of {text!r:.80}; they are written I[c][ix]")
    letters = [operand.letter for operand in found]
    for letter in letters:
        if letters.count(letter) > 1:
            raise view.error(f"operand {letter} stands here twice")
    # I is the input of a layer, W its weights, whichever stands first
    return found[0], tuple(sorted(found[1:], key=lambda operand: operand.letter != "I")), adds


def _operand(match: re.Match[str]) -> LayerOperand:
    ranks = re.findall(r"\[\s*(\w*)\s*\]", match[2])
    return LayerOperand(match[1], tuple(rank.lower() for rank in ranks if rank))


def _sizes(dims: Located, sizes: Located) -> dict[str, int]:
    names = [name.lower() for name in dims.names()]
    counts = [item.integer(minimum=1) for item in sizes.items()]
    if len(names) != len(counts):
        raise sizes.error(f"{len(counts)} sizes for {len(names)} loop dimensions")
    for name, item in zip(names, dims.items() if dims.is_list else [dims], strict=True):
        with item.placed():
            check_name(name, "a rank variable")
        if names.count(name) > 1:
            raise item.error(f"{name!r} and its upper case are one dimension")
    for item, count in zip(sizes.items(), counts, strict=True):
        if count > MAX_SIZE:
            raise item.error(f"{count} is too large; sizes are at most 2**40")
    return dict(zip(names, counts, strict=True))


def _relations(items: Sequence[Located], sizes: Mapping[str, int]) -> dict[str, tuple[tuple[str, int], ...]]:
    """``ix=2*ox+1*fx`` as ``ix`` -> ((ox, 2), (fx, 1))."""
    found: dict[str, tuple[tuple[str, int], ...]] = {}
    for item in items:
        match = _RELATION.match(item.text())
        if match is None:
            raise item.error(f"a relation reads ix=1*ox+1*fx, not {item.text()!r:.80}")
        name, *parts = match.groups()
        terms = []
        for factor, dimension in zip(parts[::2], parts[1::2], strict=True):
            if dimension.lower() not in sizes:
                raise item.unknown("loop dimension", dimension.lower(), sizes)
            if factor is not None and not re.fullmatch("[0-9]{1,9}", factor):
                raise item.error(f"{factor!r:.40} is no whole number; write the stride or the dilation itself")
            terms.append((dimension.lower(), 1 if factor is None else int(factor)))
        if name.lower() in found or name.lower() in sizes:
            raise item.error(f"{name} has a size or a relation already")
        found[name.lower()] = tuple(terms)
    return found


def _sources(view: Located, inputs: Sequence[LayerOperand]) -> dict[str, int]:
    found: dict[str, int] = {}
    for letter, key, value in view.table("operand_source"):
        if all(operand.letter != letter for operand in inputs):
            raise key.error(f"{letter!r:.40} is no operand that the equation reads")
        found[letter] = value.integer(minimum=0)
    return found


def _precision(view: Located, inputs: Sequence[LayerOperand]) -> dict[str, int]:
    """Bits by operand letter; ``O`` of partial sums, ``O_final`` of what is handed on."""
    table = view.require("operand_precision")
    found = {letter: value.integer(minimum=1) for letter, _, value in table.entries()}
    known = (*(operand.letter for operand in inputs), *_OUTPUTS)
    for letter, key, value in table.entries():
        if letter not in known:
            raise key.unknown("operand", letter, known)
        if found[letter] > 4096:
            raise value.error(f"{found[letter]} bits for a value; at most 4096 are possible")
    for letter in (*known[: len(inputs)], "O"):
        if letter not in found:
            raise table.error(f"operand_precision says nothing about {letter}")
    return found


def _related(view: Located, relations: Mapping[str, object]) -> tuple[dict[str, int], dict[str, int]]:
    """(padding before, size without padding) of each related dimension that says so."""
    names = [] if (listed := view.get("pr_loop_dims")) is None else [name.lower() for name in listed.names()]
    for name in names:
        if name not in relations and listed is not None:
            raise listed.error(f"{name} has no relation in dimension_relations", nearest(name, relations))
    starts: dict[str, int] = {}
    extents: dict[str, int] = {}
    if (padding := view.get("padding")) is not None:
        for name, pair in _zipped(padding, names):
            both = [item.integer(minimum=0) for item in pair.items()]
            if len(both) != 2:
                raise pair.error("padding is a pair: before and after")
            starts[name] = both[0]
    if (sizes := view.get("pr_loop_sizes")) is not None:
        extents = {name: item.integer(minimum=1) for name, item in _zipped(sizes, names)}
    return starts, extents


def _zipped(view: Located, names: Sequence[str]) -> list[tuple[str, Located]]:
    items = view.items()
    if len(items) != len(names):
        raise view.error(f"{len(items)} entries for {len(names)} pr_loop_dims")
    return list(zip(names, items, strict=True))


def _check_ranks(layer: Layer, view: Located) -> None:
    """SpecError for a rank without a size, and for a loop that no operand has."""
    met: set[str] = set()
    for operand in (layer.output, *layer.inputs):
        for rank in operand.ranks:
            if rank not in layer.sizes and rank not in layer.relations:
                known = (*layer.sizes, *layer.relations)
                message = f"{rank} of {operand.letter} has neither a size in loop_dims nor a relation"
                raise view.error(message, nearest(rank, known))
            met |= {name for name, _ in layer.relations.get(rank, ((rank, 1),))}
    for name, size in layer.sizes.items():
        if size > 1 and name not in met:
            raise view.error(f"the layer loops over {name}, of size {size}, which no operand has")


def _check_sources(layer: Layer, by_id: Mapping[int, Layer]) -> None:
    for letter, source in layer.sources.items():
        if source not in by_id:
            known = ", ".join(map(str, by_id))
            raise layer.view.require("operand_source").error(f"{letter} comes from layer {source}; known are {known}")


def _variables(layers: Sequence[Layer]) -> dict[tuple[int, str], str]:
    """(layer, dimension) -> rank variable, where some operand of the layer has the dimension."""
    sizes: dict[str, set[int]] = {}
    for layer in layers:
        for name, size in layer.sizes.items():
            sizes.setdefault(name, set()).add(size)
    return {
        (layer.id, name): name if len(sizes[name]) == 1 else f"{name}_{layer.id}"
        for layer in layers
        for name in layer.sizes
    }


def _accesses(layers: Sequence[Layer], names: Mapping[tuple[int, str], str]) -> dict[tuple[int, str], Access]:
    """(layer, operand letter) -> access. Where accesses of one tensor differ in rank, ranks of one element go."""
    users: dict[str, list[tuple[Layer, LayerOperand]]] = {}
    for layer in layers:
        for operand in (layer.output, *layer.inputs):
            users.setdefault(layer.tensor(operand.letter), []).append((layer, operand))
    table: dict[tuple[int, str], Access] = {}
    for tensor, uses in users.items():
        uneven = len({len(operand.ranks) for _, operand in uses}) > 1
        for layer, operand in uses:
            ranks = [rank for rank in operand.ranks if not uneven or layer.reach(rank) > 1]
            table[layer.id, operand.letter] = Access(tensor, tuple(_index(layer, rank, names) for rank in ranks))
    return table


def _index(layer: Layer, rank: str, names: Mapping[tuple[int, str], str]) -> Index:
    terms = layer.relations.get(rank, ((rank, 1),))
    return Index(tuple((names[layer.id, name], factor) for name, factor in terms), -layer.starts.get(rank, 0))


def _einsum(layer: Layer, accesses: Mapping[tuple[int, str], Access]) -> Einsum:
    inputs = tuple(accesses[layer.id, operand.letter] for operand in layer.inputs)
    output = accesses[layer.id, "O"]
    return Einsum(layer.name, output, inputs, "map", "add") if layer.adds else Einsum(layer.name, output, inputs)


def _bits(layers: Sequence[Layer], notes: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for layer in layers:
        final = layer.bits.get("O_final", layer.bits["O"])
        found[f"O{layer.id}"] = final
        if layer.bits["O"] != final:
            notes.append(f"{layer.name}: partial sums of {layer.bits['O']} bits are counted as {final} bits, O_final")
    for layer in layers:
        for operand in layer.inputs:
            tensor, bits = layer.tensor(operand.letter), layer.bits[operand.letter]
            if found.setdefault(tensor, bits) != bits:
                notes.append(f"{layer.name} reads {tensor} with {bits} bits; it is written with {found[tensor]}")
    return found


def _shapes(
    layers: Sequence[Layer],
    by_id: Mapping[int, Layer],
    accesses: Mapping[tuple[int, str], Access],
    ranks: Mapping[str, int],
) -> dict[str, tuple[int, ...]]:
    """Shapes that loops alone do not give: padding and strides leave a reader's windows larger or smaller."""
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in layers:
        for operand in layer.inputs:
            tensor = layer.tensor(operand.letter)
            if operand.letter in layer.sources:
                written = accesses[layer.sources[operand.letter], "O"].indices
                shapes[tensor] = tuple(index.extent(ranks) for index in written)
            elif any(rank in layer.extents or rank in layer.starts for rank in operand.ranks):
                shapes[tensor] = tuple(layer.extents.get(rank, layer.reach(rank)) for rank in operand.ranks)
    return shapes


def _check_extents(layer: Layer, accesses: Mapping[tuple[int, str], Access], ranks: Mapping[str, int]) -> None:
    """SpecError where a layer reads a rank without a window with another size than its source writes it."""
    for letter, source in layer.sources.items():
        written, read = accesses[source, "O"].indices, accesses[layer.id, letter].indices
        for mine, theirs in zip(read, written, strict=False):
            if mine.simple and mine.extent(ranks) != theirs.extent(ranks):
                raise layer.view.require("operand_source").error(
                    f"{letter} has size {mine.extent(ranks)} along {mine}; layer {source} writes "
                    f"{theirs.extent(ranks)} along {theirs}"
                )

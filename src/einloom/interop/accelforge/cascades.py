"""An AccelForge workload as a `Workload`.

``workload`` and ``renames`` come in as located views. Sizes come from ``iteration_space_shape`` and ``rank_sizes``; the
iteration space is the bounding box that AccelForge counts in. Roles (input, weight, output) are renames over there and
follow from the operands here: operands are reordered where that makes both say the same, else the Einsum is named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import cast

from ...dataclass import dataclass
from ...errors import SpecError, SpecErrors, combined, nearest
from ...reading.located import Located
from ...workload.build import build_workload
from ...workload.einsum import Access, Einsum, Index, Kind, Reduction, Workload
from ...workload.notation import RESERVED, einsum_text, parse_einsum
from .expressions import TensorSet, Value, evaluate, positive_integer, whole
from .scopes import Layered, texts

_ACCESS = re.compile(r"\s*([A-Za-z_]\w*)\s*\[([^\]]*)\]")
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_BOUNDS = re.compile(r"\s*(\d+)\s*<=\s*([A-Za-z_]\w*)\s*(<=?)\s*(.+)\Z")
ROLES = ("input", "weight", "output")
SetNames = Mapping[str, Mapping[str, Value]]


@dataclass
class Draft:
    """One Einsum as its file gives it: name, accesses in order (tensor, index text per rank), and what else it says."""

    name: str
    place: Located
    output: str = ""
    accesses: dict[str, dict[str, str]] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)
    operators: str = ""
    copy: bool = False
    repeat: int = 1
    bits: dict[str, Located] = field(default_factory=dict)
    renames: dict[str, Located] = field(default_factory=dict)
    bounds: list[Located] = field(default_factory=list)


class CascadeReader:
    """Reads the section ``workload``, and holds what its parts share."""

    def __init__(
        self, view: Located, variables: Mapping[str, Value], remainder: Mapping[str, object], notes: list[str]
    ) -> None:
        self.view, self.variables, self.remainder, self.notes = view, variables, remainder, notes
        self.drafts: list[Draft] = []
        self.rank_sizes: dict[str, int] = {}
        self.bounds: dict[str, int] = {}
        self.tensors: dict[str, str] = {}
        self.restored = texts(remainder, "variables")

    def read(self, renames: Located | None) -> tuple[Workload, SetNames]:
        """The cascade, and per Einsum what set expressions may name.

        Raises SpecError with the place of what cannot be read or carried over.
        """
        view = self.view
        shapes = view.get("iteration_space_shape")
        ranks = view.get("rank_sizes")
        widths, persistent = view.get("bits_per_value"), view.get("persistent_tensors")
        instances = view.get("n_instances")
        einsums = view.require("einsums")
        view.finish()
        for name, _, value in ranks.entries() if ranks is not None else ():
            self.rank_sizes[name] = whole(value, self.variables)
        for name, _, value in shapes.entries() if shapes is not None else ():
            self.bound(value, name)
        for item in einsums.items():
            with item.gather():
                self.drafts.append(self.draft(item))
        view.raise_gathered()
        for draft in self.drafts:
            for place in draft.bounds:
                self.bound(place, None)
        defaults = self.defaults(renames)
        symbols = {draft.name: self.symbols(draft, defaults) for draft in self.drafts}
        sizes = self.sizes()
        bits = self.bits(widths, symbols)
        symbols = {name: _with_bits(table, bits) for name, table in symbols.items()}
        workload = self.workload(sizes, bits, self.persistent(persistent, symbols), instances, symbols)
        self.check_roles(workload, symbols)
        return workload, symbols

    # Sizes

    def bound(self, view: Located, variable: str | None) -> None:
        """Take ``0 <= m < 128``; anything else is no rectangular bound."""
        text = view.text(what="a bound such as '0 <= m < 128'")
        match = _BOUNDS.match(text)
        if match is None or int(match[1]) != 0 or (variable is not None and match[2] != variable):
            name = variable or "m"
            raise view.error(f"{text!r} is no bound that is read here; only '0 <= {name} < SIZE' is")
        with view.placed():
            size = positive_integer(match[4] if match[3] == "<" else f"({match[4]}) + 1", self.variables)
        self.bounds[match[2]] = min(size, self.bounds.get(match[2], size))

    def sizes(self) -> dict[str, int]:
        """The extent of every rank variable: the bounding box of all bounds."""
        found = dict(self.bounds)
        uses = [
            (terms, self.rank_sizes.get(rank), draft)
            for draft in self.drafts
            for projection in draft.accesses.values()
            for rank, text in projection.items()
            for terms in [_terms(text, draft.place)]
        ]
        for (terms, _), size, _ in uses:
            if size is not None and len(terms) == 1:
                ((variable, factor),) = terms
                limit = (size - 1) // factor + 1
                found[variable] = min(limit, found.get(variable, limit))
        for (terms, _), size, _ in uses:
            for variable, factor in terms:
                if size is not None and variable not in found:
                    found[variable] = (size - 1) // factor + 1
        for (terms, _), _, draft in uses:
            for variable, _ in terms:
                if variable not in found:
                    near = nearest(variable.upper(), self.rank_sizes)
                    raise draft.place.error(f"rank variable {variable!r} of Einsum {draft.name} has no size", near)
        return found

    # Einsums

    def draft(self, view: Located) -> Draft:
        if not view.is_mapping:
            draft = Draft("", view)
            self.notation(draft, view.text(what="an Einsum"), view)
            draft.name = draft.output
            return draft
        text, name = view.get("einsum"), view.get("name")
        draft = Draft("", view)
        if text is not None:
            self.notation(draft, text.text(what="an Einsum"), text)
        for item in view.listed("tensor_accesses"):
            self.access(draft, item)
        draft.name = name.name() if name is not None else draft.output
        copy, repeat, renames = view.get("is_copy_operation"), view.get("n_instances"), view.get("renames")
        draft.copy = copy is not None and copy.boolean()
        draft.repeat = 1 if repeat is None else whole(repeat, self.variables)
        draft.renames = _renames(renames)
        draft.bounds = view.listed("iteration_space_shape")
        view.finish()
        if not draft.output or not draft.reads:
            raise view.error(f"Einsum {draft.name or '?'} needs one output and at least one input")
        return draft

    def notation(self, draft: Draft, text: str, place: Located) -> None:
        """Take ``Z[m, n] = A[m, k] * B[K: k, n]``."""
        left, equals, right = text.partition("=")
        found = [_ACCESS.fullmatch(left.rstrip())] + list(_ACCESS.finditer(right))
        if not equals or "=" in right or found[0] is None or len(found) < 2:
            raise place.error(f"{text!r:.80} is no Einsum such as 'Z[m, n] = A[m, k] * B[k, n]'")
        rest = "".join(_ACCESS.sub(" ", right).split())
        if not re.fullmatch(r"[*+\-/]*", rest):
            raise place.error(f"{rest!r:.40} in {text!r:.80} is not read here")
        draft.operators = rest
        for i, match in enumerate(found):
            assert match is not None
            self.use(draft, match[1], _projection(match[2], place), output=i == 0, place=place)

    def access(self, draft: Draft, view: Located) -> None:
        name = view.require("name").name()
        projection, output, bits = view.get("projection"), view.get("output"), view.get("bits_per_value")
        view.finish()
        if projection is not None:
            if projection.is_mapping:
                table = {rank: value.text(what="an index") for rank, _, value in projection.entries()}
            else:
                table = {item.text().upper(): item.text() for item in projection.items()}
            self.use(draft, name, table, output=output is not None and output.boolean(), place=view)
        elif name not in draft.accesses:
            raise view.error(f"tensor {name} has no projection")
        if bits is not None:
            draft.bits[name] = bits

    def use(self, draft: Draft, tensor: str, projection: dict[str, str], *, output: bool, place: Located) -> None:
        if tensor in draft.accesses and draft.accesses[tensor] != projection:
            raise place.error(f"Einsum {draft.name} indexes {tensor} in two ways")
        if output and draft.output:
            raise place.error(f"Einsum {draft.name} has two outputs, {draft.output} and {tensor}; here it has one")
        draft.accesses[tensor] = projection
        if output:
            draft.output = tensor
        else:
            draft.reads.append(tensor)

    # Sets

    def defaults(self, renames: Located | None) -> dict[str, dict[str, Located]]:
        """Renames by Einsum name; ``default`` counts for all."""
        found: dict[str, dict[str, Located]] = {}
        for item in renames.listed("einsums") if renames is not None else ():
            name = item.require("name").name()
            accesses, ranks = item.get("tensor_accesses"), item.get("rank_variables")
            item.finish()
            found[name] = _renames(accesses)
            if ranks is not None and (ranks.keys if ranks.is_mapping else ranks.items()):
                self.notes.append(f"renames of rank variables ({name}) are left out")
        if renames is not None:
            renames.finish()
        return found

    def symbols(self, draft: Draft, defaults: Mapping[str, Mapping[str, Located]]) -> dict[str, Value]:
        """The sets that expressions may name for an Einsum, renames in order."""
        mine = frozenset(draft.accesses)
        written = {d.output for d in self.drafts}
        read = {t for d in self.drafts for t in d.reads}
        users = [t for d in self.drafts for t in d.accesses]
        everything = TensorSet(mine, mine, {})
        table: dict[str, Value] = {
            "All": everything,
            "Tensors": everything,
            "Nothing": everything.of(frozenset()),
            "Inputs": everything.of(frozenset(draft.reads)),
            "Outputs": everything.of(frozenset((draft.output,))),
            "Intermediates": everything.of(mine & written & read),
            "Shared": everything.of(frozenset(t for t in mine if users.count(t) > 1)),
            "Persistent": everything.of(frozenset()),
        }
        for tensor in users:
            table[tensor] = everything.of(mine & {tensor})
        renames = {**defaults.get("default", {}), **defaults.get(draft.name, {}), **draft.renames}
        waiting = sorted(renames.items(), key=lambda entry: entry[0] not in draft.renames)
        for name, source in waiting:
            table[name] = _tensors(source, source.text(what="a set expression"), Layered(table, self.variables))
        return table

    def bits(self, widths: Located | None, symbols: SetNames) -> dict[str, int]:
        found: dict[str, int] = {}
        for text, key, value in widths.entries() if widths is not None else ():
            width = whole(value, self.variables)
            for table in symbols.values():
                for tensor in _tensors(key, text, table).names:
                    if found.setdefault(tensor, width) != width:
                        raise key.error(f"tensor {tensor} has {found[tensor]} and {width} bits per value")
        for draft in self.drafts:
            for tensor, place in draft.bits.items():
                found[tensor] = whole(place, self.variables)
        missing = sorted({t for d in self.drafts for t in d.accesses} - set(found))
        if missing:
            raise self.view.error(f"bits_per_value says nothing about {', '.join(missing)}")
        return found

    def persistent(self, view: Located | None, symbols: SetNames) -> list[str]:
        if view is None:
            return []
        found = [name for table in symbols.values() for name in sorted(_tensors(view, view.text(), table).names)]
        return list(dict.fromkeys(found))

    # The workload

    def workload(
        self,
        sizes: dict[str, int],
        bits: dict[str, int],
        persistent: Sequence[str],
        instances: Located | None,
        symbols: SetNames,
    ) -> Workload:
        repeats = {draft.repeat for draft in self.drafts}
        if len(repeats) > 1:
            raise self.view.error("different n_instances of Einsums have no counterpart: a whole cascade repeats here")
        self.tensors = {t: f"{t}_" if t in RESERVED else t for t in bits}
        order = self.ranks()
        einsums = [self.einsum(draft, order, symbols[draft.name]) for draft in self.drafts]
        names = {self.restored.get(v, v): size for v, size in sizes.items()}
        used = {v for einsum in einsums for v in einsum.variables}
        shapes = self.shapes(order, einsums, names)
        repeat = repeats.pop() * (1 if instances is None else whole(instances, self.variables))
        try:
            return build_workload(
                str(self.remainder.get("workload", "accelforge")),
                einsums,
                {variable: names[variable] for variable in names if variable in used},
                bits={self.tensors[t]: width for t, width in bits.items()},
                shapes=shapes,
                persistent=[self.tensors[t] for t in persistent],
                repeat=repeat,
            )
        except SpecErrors as error:
            raise combined([self.view.error(problem.message) for problem in error.problems]) from None
        except SpecError as error:
            raise self.view.error(error.message, error.suggestion) from None

    def ranks(self) -> dict[str, tuple[str, ...]]:
        """The order of a tensor's ranks: its producer's, else its first user's."""
        order: dict[str, tuple[str, ...]] = {}
        for draft in self.drafts:
            order[draft.output] = tuple(draft.accesses[draft.output])
        for draft in self.drafts:
            for tensor, projection in draft.accesses.items():
                known = order.setdefault(tensor, tuple(projection))
                if set(known) != set(projection):
                    raise draft.place.error(
                        f"tensor {tensor} has the ranks {', '.join(known)} and, in Einsum {draft.name}, "
                        f"{', '.join(projection)}"
                    )
        return order

    def einsum(self, draft: Draft, order: Mapping[str, tuple[str, ...]], table: Mapping[str, Value]) -> Einsum:
        reads = self.operands(draft, table)
        offsets = self.remainder.get("offsets")
        shifts = offsets if isinstance(offsets, Mapping) else {}
        accesses = {
            tensor: self.indexed(draft, tensor, order[tensor], shifts.get(f"{draft.name}.{tensor}"))
            for tensor in draft.accesses
        }
        kind: Kind = "copy" if draft.copy else "map" if len(reads) == 1 else "multiply"
        function = "elementwise" if kind == "map" else None
        if kind == "multiply" and draft.operators.strip("*"):
            kind, function = "map", "add" if set(draft.operators) == {"+"} else "elementwise"
        reduction: Reduction = "sum"
        kept = self.remainder.get("einsums")
        said = kept.get(draft.name) if isinstance(kept, Mapping) else None
        if isinstance(said, Mapping):
            kind = cast(Kind, str(said.get("kind", kind)))
            function = str(said["function"]) if "function" in said else None if "kind" in said else function
            reduction = cast(Reduction, str(said.get("reduction", reduction)))
        einsum = Einsum(
            draft.name, accesses[draft.output], tuple(accesses[t] for t in reads), kind, function, reduction
        )
        with draft.place.placed():
            parse_einsum(einsum_text(einsum), draft.name)
        return einsum

    def indexed(self, draft: Draft, tensor: str, ranks: tuple[str, ...], shift: object) -> Access:
        indices = []
        shifts = shift if isinstance(shift, list) and len(shift) == len(ranks) else [0] * len(ranks)
        for rank, extra in zip(ranks, shifts, strict=True):
            terms, constant = _terms(draft.accesses[tensor][rank], draft.place)
            named = tuple((self.restored.get(variable, variable), factor) for variable, factor in terms)
            indices.append(Index(named, constant + int(extra)))
        return Access(self.tensors[tensor], tuple(indices))

    def operands(self, draft: Draft, table: Mapping[str, Value]) -> list[str]:
        """The inputs, the one that the renames call ``input`` first."""
        chosen = table.get("input")
        if not isinstance(chosen, TensorSet) or len(chosen.names) != 1:
            return draft.reads
        (first,) = chosen.names
        return sorted(draft.reads, key=lambda tensor: tensor != first) if first in draft.reads else draft.reads

    def shapes(
        self, order: Mapping[str, tuple[str, ...]], einsums: Sequence[Einsum], sizes: Mapping[str, int]
    ) -> dict[str, tuple[int, ...]]:
        """Declared shapes, where every rank of a tensor has a size and the accesses alone do not give it."""
        found: dict[str, tuple[int, ...]] = {}
        accesses = [access for einsum in einsums for access in (einsum.output, *einsum.inputs)]
        for tensor, ranks in order.items():
            mine = [access for access in accesses if access.tensor == self.tensors[tensor]]
            declared = [self.rank_sizes.get(rank) for rank in ranks]
            reached = [max(a.indices[i].extent(sizes) for a in mine) for i in range(len(ranks))]
            shape = tuple(r if d is None else d for d, r in zip(declared, reached, strict=True))
            windows = any(not index.simple for access in mine for index in access.indices)
            if shape != tuple(reached) or windows:
                found[self.tensors[tensor]] = shape
        return found

    def check_roles(self, workload: Workload, symbols: SetNames) -> None:
        """Refuse roles that the renames give otherwise than this project does."""
        for draft in self.drafts:
            for role in ROLES:
                said = symbols[draft.name].get(role)
                if not isinstance(said, TensorSet):
                    continue
                theirs = {self.tensors[t] for t in said.names}
                ours = {t for t in workload.einsum(draft.name).tensors if workload.role(draft.name, t) == role}
                if theirs != ours:
                    raise draft.place.error(
                        f"Einsum {draft.name}: {_listed(theirs)} is called {role}, but here {_listed(ours)} is; the "
                        "input is the first operand that another Einsum writes, else the first operand"
                    )


def _tensors(place: Located, text: str, names: Mapping[str, Value]) -> TensorSet:
    """The set that an expression at `place` means."""
    with place.placed():
        found = evaluate(text, names)
        if not isinstance(found, TensorSet):
            raise SpecError(f"{text!r:.60} is no set of tensors")
        return found


def _with_bits(table: Mapping[str, Value], bits: Mapping[str, int]) -> dict[str, Value]:
    return {
        name: TensorSet(value.names, value.space, bits) if isinstance(value, TensorSet) else value
        for name, value in table.items()
    }


def _renames(view: Located | None) -> dict[str, Located]:
    """New name -> view of its set expression, from a table or a list."""
    if view is None:
        return {}
    if view.is_mapping:
        return {name: value for name, _, value in view.entries()}
    found = {}
    for item in view.items():
        found[item.require("name").name()] = item.require("source")
        item.get("expected_count")
        item.finish()
    return found


def _projection(text: str, place: Located) -> dict[str, str]:
    """``b, M: p, h`` as rank -> index text; a bare variable names its rank by its capital form."""
    table: dict[str, str] = {}
    for part in text.split(","):
        rank, colon, index = (word.strip() for word in part.partition(":"))
        if not colon:
            rank, index = rank.upper(), rank
        if not _NAME.match(rank) or not index or rank in table:
            raise place.error(f"{part.strip()!r:.40} is no index (a variable, or RANK: expression), or a second one")
        table[rank] = index
    return table


def _terms(text: str, place: Located) -> tuple[tuple[tuple[str, int], ...], int]:
    """An affine index as (variable, factor) terms and a constant."""
    terms: dict[str, int] = {}
    constant = 0
    compact = "".join(str(text).split()).replace("-", "+-")
    for part in compact.removeprefix("+").split("+"):
        match = re.fullmatch(r"(-?)(?:(\d{1,9})\*?)?([A-Za-z_]\w*)?", part) or re.fullmatch(
            r"(-?)(?:([A-Za-z_]\w*)\*(\d{1,9}))", part
        )
        if match is None or part in ("", "-"):
            raise place.error(f"{text!r:.60} is no sum of rank variables, factors and a constant")
        sign, first, second = match.groups()
        number, name = (second, first) if first and not first.isdigit() else (first, second)
        value = int(number or 1) * (-1 if sign else 1)
        if name is None:
            constant += value
        elif value < 1 or name in terms:
            raise place.error(f"{text!r:.60}: factors are positive, and a variable stands in an index once")
        else:
            terms[name] = value
    return tuple(terms.items()), constant


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"

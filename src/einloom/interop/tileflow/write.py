"""A workload, a machine and a mapping as TileFlow's YAML: ``arch.yaml``, ``prob.yaml``, ``map.yaml``.

What is written is read back and compared: a mapping for which TileFlow's notation has no place is refused, never
written as something else. Energies are left out with a note, because TileFlow takes them from tables of its own.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from collections.abc import Mapping as Table
from dataclasses import field

from ...dataclass import dataclass
from ...errors import SpecError
from ...machine.levels import ComputeUnit, Fanout, Machine, Memory, Toll
from ...mapping.normal import normal_form
from ...mapping.tree import Loop, Mapping, Nest, Split, Store
from ...reading.yamltree import dump_yaml
from ...workload.einsum import Access, Workload
from ...workload.parts import refuse_parts
from ..bundle import ExportedFiles
from ..one_unit import left_out
from .branches import mapping_data
from .read import read_texts


def export(workload: Workload, machine: Machine, mapping: Mapping | None = None, clock: float = 1.0) -> ExportedFiles:
    """The problem, and the mapping if there is one, as TileFlow's files; by `clock`, throughputs are words per cycle.

    Raises SpecError for what TileFlow cannot say.
    """
    refuse_parts(workload, "TileFlow has no word for parts or views of tensors")
    writer = _Writer(workload, machine, clock)
    files = {"arch.yaml": dump_yaml(writer.architecture()), "prob.yaml": dump_yaml(writer.problem())}
    if mapping is not None:
        shaped = normal_form(mapping, workload)
        files["map.yaml"] = dump_yaml({"mapping": mapping_data(shaped, workload, machine, writer.letters)})
        _check(files, writer, shaped)
    return ExportedFiles(files, tuple(writer.notes))


def _check(files: Table[str, str], writer: _Writer, wanted: Mapping) -> None:
    """SpecError unless the files say the mapping again."""
    try:
        found = read_texts(files, clock=writer.clock)
    except SpecError as error:
        raise SpecError(f"TileFlow's notation has no place for this mapping: {error.message}") from None
    assert found.mapping is not None and found.workload is not None
    again = normal_form(found.mapping, found.workload)
    if _spelled(again.nest, {}) != _spelled(wanted.nest, writer.renaming()):
        raise SpecError(
            "TileFlow's notation has no place for this mapping: its stores and splits do not stand where a tree of "
            "tiles and scopes puts them"
        )


def _spelled(nest: Nest, names: Table[str, str]) -> tuple[object, ...]:
    """A nest for comparison: variables and axes by `names`, neighbouring spatial loops in any order."""
    found: list[object] = []
    spatial: list[tuple[object, ...]] = []
    for node in nest:
        if isinstance(node, Loop):
            binds = tuple((einsum, names.get(f"{einsum}.{v}", v)) for einsum, v in node.binds)
            if node.axis is not None:
                spatial.append((names.get(f"@{node.axis}", node.axis), binds, node.trips))
                continue
            found.extend((*sorted(spatial, key=repr), (binds, node.trips)))
        elif isinstance(node, Split):
            where = None if node.where is None else names.get(f"@{node.where}", node.where)
            branches = tuple(_spelled(branch, names) for branch in node.branches)
            found.extend((*sorted(spatial, key=repr), (node.kind, where, branches)))
        elif isinstance(node, Store):
            found.extend((*sorted(spatial, key=repr), (node.memory, frozenset(node.tensors))))
        else:
            found.extend((*sorted(spatial, key=repr), node))
        spatial = []
    return tuple(found)


@dataclass
class _Writer:
    workload: Workload
    machine: Machine
    clock: float
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        widths = {tensor.bits for tensor in self.workload.tensors}
        if len(widths) > 1:
            raise SpecError("TileFlow has one width of words; these tensors have several")
        self.bits = widths.pop()
        if self.machine.tolls:
            names = ", ".join(toll.name for toll in self.machine.tolls)
            raise SpecError(f"TileFlow has no word for a toll ({names})")
        if len(self.machine.units) != 1:
            raise SpecError(f"TileFlow has one kind of compute unit; {self.machine.name} has {len(self.machine.units)}")
        if self.workload.repeat != 1:
            raise SpecError("TileFlow has no word for repeat")
        self.letters = _letters(self.workload)
        self.notes.append("energies are left out: TileFlow takes them from tables of its own")
        self.notes += [*left_out(self.machine, "TileFlow"), *self.limits()]

    def limits(self) -> Iterator[str]:
        """Notes on what the file does not say of memories and axes."""
        for memory in self.machine.memories:
            outermost = memory is self.machine.memories[0]
            said = {
                "double_buffer": memory.double_buffer,
                "must": not outermost and memory.must.text != "nothing",
                "may": not outermost and memory.may.text != "all",
                "backs": memory.backs.text != "all",
                "setup": memory.setup,
                "prefetch": memory.prefetch,
                "through": memory.through,
            }
            if words := [key for key, stated in said.items() if stated]:
                yield f"{memory.name}: {', '.join(words)} {'is' if len(words) == 1 else 'are'} left out"
        for axis in self.machine.axes.values():
            if axis.use != "any" or axis.only_irrelevant_to.text != "nothing":
                yield f"{axis.name}: use and only_irrelevant_to are left out"

    def renaming(self) -> dict[str, str]:
        """einloom's ``EINSUM.variable`` and ``@axis`` -> what the files call them when they are read again."""
        table = {f"{einsum}.{v}": letter.lower() for (einsum, v), letter in self.letters.items()}
        for fanout, below in self.fanouts():
            for axis, direction in zip(fanout.axes, "XY", strict=False):
                table[f"@{axis.name}"] = f"{below}_{direction}"
        return table

    def fanouts(self) -> list[tuple[Fanout, str]]:
        """Every fanout with the name of the level below it."""
        found: list[tuple[Fanout, str]] = []
        for above, below in zip(self.machine.levels, self.machine.levels[1:], strict=False):
            if isinstance(above, Fanout):
                if isinstance(below, Fanout):
                    raise SpecError(f"TileFlow has one fanout between two levels; {below.name} follows {above.name}")
                if len(above.axes) > 2:
                    raise SpecError(f"TileFlow's fanouts have X and Y; {above.name} has {len(above.axes)} axes")
                found.append((above, below.name))
        return found

    def architecture(self) -> dict[str, object]:
        """Nested levels; instances and mesh are those of the whole machine."""
        sizes = {below: [axis.size for axis in fanout.axes] for fanout, below in self.fanouts()}
        x = y = 1
        chain: list[list[dict[str, object]]] = []
        for level in self.machine.levels:
            if isinstance(level, Fanout | Toll):
                continue
            dx, dy = (*sizes.get(level.name, ()), 1, 1)[:2]
            x, y = x * dx, y * dy
            name = level.name if x * y == 1 else f"{level.name}[0..{x * y - 1}]"
            unit, outermost = isinstance(level, ComputeUnit), level is self.machine.levels[0]
            kind = "intmac" if unit else "DRAM" if outermost else "SRAM"
            attributes = {"meshX": x, "meshY": y, **self.attributes(level)}
            if not unit:
                chain.append([])
            chain[-1].append({"name": name, "class": kind, "attributes": attributes})
        node: dict[str, object] | None = None
        for depth, local in reversed(list(enumerate(chain))):
            name = self.machine.name if depth == 0 else f"level{depth}"
            made: dict[str, object] = {"name": re.sub(r"\W+", "_", name), "local": local}
            node = made if node is None else {**made, "subtree": [node]}
        return {"architecture": {"version": 0.2, "subtree": [node]}}

    def attributes(self, level: Memory | ComputeUnit) -> dict[str, object]:
        if isinstance(level, ComputeUnit):
            if level.throughput != self.clock:
                raise SpecError(
                    f"TileFlow's units do one operation per cycle; give {level.name}'s throughput as the clock"
                )
            return {"word-bits": round(16 * level.energy**0.5) or self.bits}
        width = level.widths[0][1] if level.widths and level.widths[0][0].text == "all" else self.bits
        block = level.bits_per_access // width or 1
        data: dict[str, object] = {"word-bits": width, "block-size": block}
        if level.size is not None:
            words = level.size // width
            data["block-size" if words % block else "depth"] = 1 if words % block else words // block
            data.setdefault("depth", words)
        rates = {"read": level.read_throughput, "write": level.write_throughput}
        if level.ports == "shared" and any(rates.values()):
            if len(set(rates.values())) > 1:
                raise SpecError(
                    f"{level.name}: TileFlow's shared bandwidth is one number; reads and writes differ here"
                )
            rates = {"shared": level.read_throughput}
        for key, rate in rates.items():
            if rate is not None:
                words_per_cycle = rate / width / self.clock
                data[f"{key}_bandwidth"] = int(words_per_cycle) if words_per_cycle.is_integer() else words_per_cycle
        return data

    def problem(self) -> dict[str, object]:
        sizes = {letter: self.workload.extents[v] for (_, v), letter in self.letters.items()}
        ops = []
        for einsum in self.workload.einsums:
            if einsum.kind == "copy" or einsum.reduction != "sum":
                raise SpecError(f"TileFlow has no word for what {einsum.name} does ({einsum.kind}, {einsum.reduction})")
            spaces = [self.space(einsum.name, access) for access in einsum.accesses]
            if einsum.reduced:
                spaces[0]["read-write"] = True
            op: dict[str, object] = {
                "name": einsum.name,
                "dimensions": [self.letters[einsum.name, v] for v in einsum.variables],
                "data-spaces": spaces,
                "ins": list(dict.fromkeys(access.tensor for access in einsum.inputs)),
                "out": einsum.output.tensor,
            }
            if einsum.function is not None:
                op["type"] = einsum.function
            ops.append(op)
        io = {"ins": list(self.workload.inputs), "outs": list(self.workload.outputs)}
        return {"problem": {"io": io, "dimensions": list(sizes), "instance": sizes, "ops": ops}}

    def space(self, einsum: str, access: Access) -> dict[str, object]:
        ranks = []
        for index in access.indices:
            if index.constant:
                raise SpecError(f"{einsum} reads {access}: TileFlow has no word for a constant in an index")
            ranks.append([[self.letters[einsum, v], *([] if n == 1 else [n])] for v, n in index.terms])
        return {"name": access.tensor, "projection": ranks}


def _letters(workload: Workload) -> dict[tuple[str, str], str]:
    """(Einsum, variable) -> dimension: one letter for all that index the same rank of a tensor.

    SpecError where one Einsum would have one letter twice, or a tensor is indexed by a sum in one place only.
    """
    group = {(e.name, v): (e.name, v) for e in workload.einsums for v in e.variables}

    def root(key: tuple[str, str]) -> tuple[str, str]:
        while group[key] != key:
            key = group[key]
        return key

    for tensor in workload.tensors:
        users = [(e.name, e.access(tensor.name)) for e in workload.einsums if tensor.name in e.tensors]
        first, access = users[0]
        for other, again in users[1:]:
            for one, two in zip(access.indices, again.indices, strict=True):
                if not (one.simple and two.simple):
                    raise SpecError(
                        f"{tensor.name} is indexed by {one} and by {two}: TileFlow has one projection for both"
                    )
                group[root((other, two.variables[0]))] = root((first, one.variables[0]))
    roots: dict[tuple[str, str], str] = {}
    for key in group:
        roots.setdefault(root(key), key[1])
    taken: dict[tuple[str, str], str] = {}
    free = list(string.ascii_uppercase)
    named: dict[str, str] = {}
    for key, variable in roots.items():
        wanted = named.get(variable) or variable[0].upper()
        letter = wanted if variable in named or wanted in free else free[0] if free else ""
        if not letter:
            raise SpecError("TileFlow's dimensions are letters; this workload needs more than 26")
        named.setdefault(variable, letter)
        free = [other for other in free if other != letter]
        taken[key] = letter
    letters = {key: taken[root(key)] for key in group}
    for einsum in workload.einsums:
        mine = [letters[einsum.name, v] for v in einsum.variables]
        for variable, letter in zip(einsum.variables, mine, strict=True):
            if mine.count(letter) > 1:
                raise SpecError(
                    f"{einsum.name}: {variable} and another variable would be one dimension, because TileFlow names "
                    "the ranks of a tensor alike wherever it is used"
                )
    return letters

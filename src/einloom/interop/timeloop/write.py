"""A workload of one Einsum, a machine and a mapping as Timeloop's YAML: ``arch``, ``problem``, ``map``, ``ERT``.

What is written is read back: a mapping whose counts do not come back the same is refused, never written as another one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Table
from dataclasses import field

from ...dataclass import dataclass
from ...errors import SpecError
from ...machine.levels import ComputeUnit, Fanout, Machine, Memory
from ...mapping.normal import normal_form
from ...mapping.tree import Loop, Mapping, Store
from ...reading.arithmetic import exact
from ...reading.yamltree import dump_yaml
from ...workload.einsum import Access, Einsum, Index, Workload
from ...workload.parts import refuse_parts
from ...workload.selectors import select
from ..bundle import ExportedFiles
from ..clocks import cycles_per_second
from ..one_unit import with_one_unit
from .counts import counts
from .read import read_texts

_PICO = 10**12
VERSION = 0.4


def export(workload: Workload, machine: Machine, mapping: Mapping | None = None, clock: float = 0.0) -> ExportedFiles:
    """The problem, and the mapping if there is one. clock: cycles per second; by default the unit's operations.

    Raises SpecError for what Timeloop has no word for.
    """
    refuse_parts(workload, "Timeloop has no word for parts or views of tensors")
    writer = _Writer(workload, machine, clock)
    files = {"arch.yaml": _tagged(dump_yaml({"architecture": writer.architecture()}))}
    files["problem.yaml"] = dump_yaml({"problem": writer.problem()})
    if mapping is not None:
        files["map.yaml"] = dump_yaml({"mapping": writer.mapping(normal_form(mapping, workload))})
    files["ERT.yaml"] = dump_yaml({"ERT": {"version": VERSION, "tables": writer.tables}})
    _check(files, writer, mapping)
    return ExportedFiles(files, tuple(dict.fromkeys(writer.notes)))


def _check(files: Table[str, str], writer: _Writer, mapping: Mapping | None) -> None:
    """SpecError unless the files say the same problem, and a mapping of the same counts."""
    wrong = "Timeloop's notation has no place for this mapping"
    try:
        found = read_texts(files)
    except SpecError as error:
        if mapping is None:
            raise
        raise SpecError(f"{wrong}: {error.message}") from None
    if mapping is None:
        return
    assert found.workload is not None and found.machine is not None and found.mapping is not None
    theirs = counts(found.workload, found.machine, found.mapping)
    if theirs != counts(writer.workload, writer.machine, mapping):
        raise SpecError(f"{wrong}: a level has one store, then its temporal loops, then those of the mesh below")


def _tagged(text: str) -> str:
    """``kind: Component`` of a node as its tag."""
    text = re.sub(r"^(\s*- )\{kind: (\w+), ", r"\1!\2 {", text, flags=re.MULTILINE)
    return re.sub(r"^(\s*- )kind: (\w+)$", r"\1!\2", text, flags=re.MULTILINE)


@dataclass
class _Writer:
    workload: Workload
    machine: Machine
    clock: float
    notes: list[str] = field(default_factory=list)
    tables: list[dict[str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.einsum = self._one_einsum()
        self.machine = with_one_unit(self.workload, self.machine, "Timeloop", self.notes)
        self.unit = self.machine.units[0]
        self.clock = self.clock or self.unit.throughput or cycles_per_second()
        names = [v.upper() for v in self.workload.extents]
        plain = len(set(names)) == len(names) and all(v.islower() for v in self.workload.extents)
        self.dimensions = {v: v.upper() if plain else v for v in self.workload.extents}

    def _one_einsum(self) -> Einsum:
        if len(self.workload.einsums) != 1 or self.workload.repeat != 1:
            number = len(self.workload.einsums)
            raise SpecError(f"a problem of Timeloop is one Einsum, run once; {self.workload.name} has {number}")
        einsum = self.workload.einsums[0]
        if einsum.kind != "multiply" or einsum.reduction != "sum":
            raise SpecError(f"a problem of Timeloop multiplies and sums; {einsum.name} does something else")
        return einsum

    # problem

    def problem(self) -> dict[str, object]:
        factors: dict[str, int] = {}
        spaces: list[dict[str, object]] = []
        for access in (*self.einsum.inputs, self.einsum.output):
            self._check_shape(access)
            ranks = [self._rank(index, factors) for index in access.indices]
            spaces.append({"name": access.tensor, "projection": ranks})
        spaces[-1]["read_write"] = True
        dimensions = list(self.dimensions.values())
        shape: dict[str, object] = {"name": self.einsum.name, "dimensions": dimensions, "data_spaces": spaces}
        if factors:
            shape["coefficients"] = [{"name": name, "default": 1} for name in factors]
        instance = {self.dimensions[v]: size for v, size in self.workload.sizes}
        return {"version": VERSION, "shape": shape, "instance": {**instance, **factors}}

    def _check_shape(self, access: Access) -> None:
        tensor = self.workload.tensor(access.tensor)
        if any(index.constant for index in access.indices):
            raise SpecError(f"Timeloop has no word for the constants of {access}")
        if tensor.shape != tuple(index.extent(self.workload.extents) for index in access.indices):
            raise SpecError(f"Timeloop has no word for padding; {access} has the shape {tensor.shape}")

    def _rank(self, index: Index, factors: dict[str, int]) -> list[list[str]]:
        terms = []
        for variable, factor in index.terms:
            term = [self.dimensions[variable]]
            if factor != 1:
                term.append(f"{self.dimensions[variable]}_by_{factor}")
                factors[term[1]] = factor
            terms.append(term)
        return terms

    # architecture

    def architecture(self) -> dict[str, object]:
        cycle = float(1 / exact(self.clock))
        nodes: list[dict[str, object]] = [
            {"kind": "Container", "name": self.machine.name, "attributes": {"global_cycle_seconds": cycle}}
        ]
        for level in self.machine.levels:
            if isinstance(level, Fanout):
                nodes.append(self._array(level))
            elif isinstance(level, Memory):
                nodes.append(self._memory(level))
            elif isinstance(level, ComputeUnit):
                nodes.append({"kind": "Component", "name": level.name, "class": "intmac"})
                self._energies(level.name, level.leakage, {"compute": level.energy})
                if level.throughput != self.clock:
                    self.notes.append(f"{level.name}: Timeloop's unit makes one operation per cycle")
        return {"version": VERSION, "nodes": nodes}

    def _array(self, fanout: Fanout) -> dict[str, object]:
        if len(fanout.axes) > 2:
            raise SpecError(f"a mesh of Timeloop has two axes; {fanout.name} has {len(fanout.axes)}")
        mesh = {f"mesh{self.directions(fanout)[axis.name]}": axis.size for axis in fanout.axes}
        for axis in fanout.axes:
            if (axis.multicast.text, axis.reduce.text) != ("all", "all"):
                self.notes.append(f"{axis.name}: Timeloop multicasts and reduces everything")
            if axis.use != "any" or axis.only_irrelevant_to.text != "nothing":
                self.notes.append(f"{axis.name}: use and only_irrelevant_to are left out")
        return {"kind": "Container", "name": fanout.name, "spatial": mesh}

    @staticmethod
    def directions(fanout: Fanout) -> dict[str, str]:
        """X or Y of each axis."""
        if len(fanout.axes) == 1:
            return {fanout.axes[0].name: "Y" if fanout.axes[0].name.endswith("_Y") else "X"}
        return dict(zip((axis.name for axis in fanout.axes), "XY", strict=True))

    def _memory(self, memory: Memory) -> dict[str, object]:
        outermost = memory is self.machine.memories[0]
        may = select(memory.may, self.workload, self.einsum.name)
        must = select(memory.must, self.workload, self.einsum.name)
        if "unheld" in (*memory.may.names, *memory.must.names):
            self.notes.append(f"{memory.name}: 'unheld' depends on other memories and is left out")
            must = frozenset()
        bits = self._word(memory, may | must)
        width = memory.bits_per_access if memory.bits_per_access % bits == 0 else bits
        if memory.size is not None and memory.size % width:
            width = bits
        attributes: dict[str, object] = {"width": width, "datawidth": bits}
        if memory.size is not None and not outermost:
            attributes["depth"] = memory.size // width
        if memory.double_buffer:
            attributes["multiple_buffering"] = 2
        attributes |= self._rates(memory, bits)
        scale = exact(width) / exact(memory.bits_per_access)
        actions = {"read": memory.read_energy, "write": memory.write_energy, "update": memory.write_energy}
        self._energies(memory.name, memory.leakage, {name: float(exact(e) * scale) for name, e in actions.items()})
        if memory.area or memory.setup or memory.prefetch or memory.through:
            self.notes.append(f"{memory.name}: area, setup, prefetch and through are left out")
        kind = "DRAM" if outermost else "SRAM"
        node: dict[str, object] = {"kind": "Component", "name": memory.name, "class": kind, "attributes": attributes}
        barred = [tensor.name for tensor in self.workload.tensors if tensor.name not in may]
        if not outermost and (must or barred):
            kept = [tensor.name for tensor in self.workload.tensors if tensor.name in must]
            node["constraints"] = {"dataspace": {"keep": kept, "bypass": barred}}
        return node

    def _word(self, memory: Memory, held: frozenset[str]) -> int:
        widths = {memory.bits(self.workload, self.einsum.name, tensor) for tensor in held or self.einsum.tensors}
        if len(widths) > 1:
            listed = ", ".join(map(str, sorted(widths)))
            raise SpecError(f"a level of Timeloop has one datawidth; values in {memory.name} have {listed} bits")
        return widths.pop()

    def _rates(self, memory: Memory, bits: int) -> dict[str, float]:
        """Words per cycle."""
        rates = {
            key: float(exact(rate) / (bits * exact(self.clock)))
            for key, rate in (("read", memory.read_throughput), ("write", memory.write_throughput))
            if rate is not None
        }
        if memory.ports == "shared" and rates:
            if len(set(rates.values())) == 1 and len(rates) == 2:
                return {"shared_bandwidth": rates["read"]}
            self.notes.append(f"{memory.name}: reads and writes at different rates do not take turns in Timeloop")
        return {f"{key}_bandwidth": rate for key, rate in rates.items()}

    def _energies(self, name: str, leakage: float, actions: Table[str, float]) -> None:
        every = {**actions, "leak": float(exact(leakage) / exact(self.clock))}
        listed = [{"name": action, "energy": float(exact(joules) * _PICO)} for action, joules in every.items()]
        self.tables.append({"name": f"{name}[1..{self.machine.instances(name)}]", "actions": listed})

    # mapping

    def mapping(self, mapping: Mapping) -> list[dict[str, object]]:
        """An entry for what every memory keeps, for its temporal loops, and for the loops of every fanout."""
        loops: dict[str, list[Loop]] = {}
        kept: dict[str, list[str]] = {memory.name: [] for memory in self.machine.memories}
        at, order = 0, self.machine.levels
        for node in mapping.nest:
            if isinstance(node, Store):
                at = self._further(at, self.machine.position[node.memory], node.memory)
                kept[node.memory] += node.tensors
            elif isinstance(node, Loop) and node.axis is not None:
                at = self._further(at, self.machine.position[node.axis], node.axis)
                loops.setdefault(order[at].name, []).append(node)
            elif isinstance(node, Loop):
                at = next(i for i in range(at, len(order)) if not isinstance(order[i], Fanout))
                loops.setdefault(order[at].name, []).append(node)
        entries: list[dict[str, object]] = []
        for level in order:
            if isinstance(level, Memory):
                every = [tensor.name for tensor in self.workload.tensors]
                spaces = {"keep": kept[level.name], "bypass": [t for t in every if t not in kept[level.name]]}
                entries.append({"target": level.name, "type": "dataspace", **spaces})
                entries.append({"target": level.name, "type": "temporal", **self._loops(loops.get(level.name, []))})
            elif isinstance(level, Fanout):
                entries.append({"target": level.name, "type": "spatial", **self._spatial(level, loops)})
        if loops.get(self.unit.name):
            raise SpecError(f"Timeloop has no place for loops below the innermost memory, at {self.unit.name}")
        return entries

    def _further(self, before: int, place: int, name: str) -> int:
        if place < before:
            raise SpecError(
                f"Timeloop's levels go inwards; {name} stands below {self.machine.levels[before].name} here"
            )
        return place

    def _loops(self, loops: list[Loop]) -> dict[str, object]:
        trips: dict[str, int] = {}
        for loop in reversed(loops):
            ((_, variable),) = loop.binds
            dimension = self.dimensions[variable]
            if dimension in trips:
                raise SpecError(f"Timeloop has one loop over {dimension} at a level; here are two")
            trips[dimension] = loop.trips
        named = {**trips, **{dimension: 1 for dimension in self.dimensions.values() if dimension not in trips}}
        return {"factors": [f"{name}={number}" for name, number in named.items()], "permutation": list(named)}

    def _spatial(self, fanout: Fanout, loops: Table[str, list[Loop]]) -> dict[str, object]:
        directions = self.directions(fanout)
        mine = loops.get(fanout.name, [])
        along = [loop for loop in mine if directions[str(loop.axis)] == "X"]
        across = [loop for loop in mine if loop not in along]
        return {**self._loops(across + along), "split": len(along)}

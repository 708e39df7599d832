"""A workload, a machine and a search as AccelForge YAML: architecture, workload and mapper settings.

Comes in: einloom's objects. Goes out: the text of each file, and notes on what the other tool takes differently.
``einloom.yaml`` keeps what the format has no word for (names, functions, declared backing), for the way back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from keyword import iskeyword

from ...dataclass import dataclass
from ...errors import SpecError
from ...machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory, Toll
from ...mapspace.space import Mapspace
from ...problem import Objective
from ...reading.yamltree import dump_yaml
from ...workload.einsum import Access, Einsum, Index, Workload
from ...workload.parts import refuse_parts
from ...workload.selectors import select
from ..bundle import ExportedFiles
from .sets import COPIED, PRODUCT, always_held_above, exported_set, set_names

METRICS: Mapping[str, int] = {"latency": 1, "energy": 2, "edp": 128}
"""Objective -> the member of AccelForge's flag, which its files give as a number."""

WIDTH = 1000  # of a line: set expressions may be keys, which must not be broken
SEPARATE = "max(a.n_calls / a.throughput for a in actions)"
TAKEN = frozenset(name.strip("()~") for name in (*set_names(), "Shared", "Inputs", "Outputs", "inf", "spec"))
"""Words with a meaning of their own in AccelForge's expressions."""


def export(
    workload: Workload,
    machine: Machine,
    objective: Objective | None = None,
    mapspace: Mapspace | None = None,
) -> ExportedFiles:
    """The AccelForge files of a problem.

    >>> from ...zoo.workload_by_name import load_workload
    >>> from ...zoo.machine_by_name import load_machine
    >>> sorted(export(load_workload("matmul:m=4,n=4,k=4"), load_machine("simple")).files)
    ['arch.yaml', 'einloom.yaml', 'mapper.yaml', 'workload.yaml']

    Raises SpecError for whatever AccelForge has no words for and that would change what a mapping costs.
    """
    refuse_parts(workload, "AccelForge has no word for parts or views of tensors")
    writer = _Writer(workload, machine)
    data: dict[str, dict[str, object]] = {
        "arch.yaml": {"arch": {"nodes": writer.levels()}},
        "workload.yaml": writer.cascade(),
        "mapper.yaml": {"mapper": _mapper(objective or Objective("energy"), mapspace or Mapspace())},
        "einloom.yaml": {"einloom": writer.remainder()},
    }
    files = {name: _tagged(dump_yaml(content, WIDTH)) for name, content in data.items()}
    return ExportedFiles(files, tuple(writer.notes))


def _tagged(text: str) -> str:
    """The text with ``- node: Memory`` and the lines below it turned into ``- !Memory``, as AccelForge writes nodes."""
    return re.sub(r"^( *)- node: (\w+)$", r"\1- !\2", text, flags=re.MULTILINE)


def _mapper(objective: Objective, mapspace: Mapspace) -> dict[str, object]:
    if objective.name not in METRICS:
        raise SpecError(f"AccelForge has no objective {objective.name!r}; it knows {', '.join(METRICS)}")
    data: dict[str, object] = {"metrics": METRICS[objective.name]}
    if mapspace.name != "ffm":
        raise SpecError(f"AccelForge searches the space 'ffm', not {mapspace.name!r}")
    if mapspace.order != "program":
        raise SpecError("AccelForge keeps the Einsums in program order", suggestion="order: program")
    if mapspace.stores != "own":
        raise SpecError("AccelForge has no stores that serve several Einsums", suggestion="stores: own")
    if mapspace.max_fused_loops is not None:
        data["max_fused_loops"] = mapspace.max_fused_loops
    if mapspace.max_fused_loops_per_rank_variable != 1:
        data["max_fused_loops_per_rank_variable"] = mapspace.max_fused_loops_per_rank_variable
    return data


class AccelForgeNames:
    """Names that the format accepts, each used once; remembers those that had to change."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.table: dict[str, str] = {}
        self._taken = set(taken)

    def add(self, name: str, *, lower: bool = False) -> str:
        """The name to write for `name`."""
        if name not in self.table:
            plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
            plain = plain[0].lower() + plain[1:] if lower else plain
            while plain in self._taken:
                plain += "_"
            self._taken.add(plain)
            self.table[name] = plain
        return self.table[name]

    @property
    def changed(self) -> dict[str, str]:
        """Written name -> einloom's name, where they differ."""
        return {written: name for name, written in self.table.items() if written != name}


@dataclass
class _Writer:
    """Turns one workload and one machine into plain data, gathering notes and what the format cannot hold."""

    workload: Workload
    machine: Machine
    notes: list[str] = field(default_factory=list)
    components: AccelForgeNames = field(init=False)
    axes: AccelForgeNames = field(default_factory=AccelForgeNames)
    variables: AccelForgeNames = field(default_factory=AccelForgeNames)

    def __post_init__(self) -> None:
        """Tensors and components share one set of symbols over there; tensors keep their names."""
        self.components = AccelForgeNames(tensor.name for tensor in self.workload.tensors)

    # The machine

    def levels(self) -> list[dict[str, object]]:
        """The nodes of the architecture, outermost first."""
        if self.machine.partial_sums != "read-modify-write":
            raise SpecError(f"machine {self.machine.name}: AccelForge always charges the read-back of partial sums")
        above: list[Memory] = []
        nodes: list[dict[str, object]] = []
        for level in self.machine.levels:
            if isinstance(level, Memory):
                nodes.append(self._memory(level, above))
                above.append(level)
            elif isinstance(level, Fanout):
                axes = [self._axis(axis) for axis in level.axes]
                nodes.append({"node": "Container", "name": self.components.add(level.name), "spatial": axes})
            elif isinstance(level, Toll):
                nodes.append(self._toll(level))
            else:
                nodes.append(self._compute(level))
        return nodes

    def _memory(self, memory: Memory, above: Sequence[Memory]) -> dict[str, object]:
        node: dict[str, object] = {"node": "Memory", "name": self.components.add(memory.name)}
        size = memory.size
        if memory.double_buffer and size is not None:
            size //= 2
            self.notes.append(f"{memory.name}: double buffering is written as half the size")
        node["size"] = "inf" if size is None else size
        if memory.widths:
            node["bits_per_value"] = self._widths(memory)
        node |= {"leak_power": memory.leakage, "area": memory.area}
        if memory.ports == "separate":
            node["total_latency"] = SEPARATE
        node["actions"] = [
            _action("read", memory.read_energy, memory.read_throughput, memory.bits_per_access),
            _action("write", memory.write_energy, memory.write_throughput, memory.bits_per_access),
        ]
        node["tensors"] = {"keep": exported_set(memory.must), "may_keep": exported_set(memory.may)}
        copies = [e.name for e in self.workload.einsums if e.kind == "copy"]
        if always_held_above(above) and any(select(memory.must, self.workload, name) for name in copies):
            self.notes.append(f"{memory.name}: copies ({', '.join(copies)}) pass AccelForge's inner memories for free")
        if memory.backs.text != "all" and not (memory.backs.text == "nothing" and always_held_above(above)):
            self.notes.append(
                f"{memory.name}: AccelForge has no limit on what a memory may back; it may search more than "
                f"'backs: {memory.backs.text}' allows"
            )
        return node

    def _toll(self, toll: Toll) -> dict[str, object]:
        node: dict[str, object] = {"node": "Toll", "name": self.components.add(toll.name)}
        if toll.widths:
            node["bits_per_value"] = self._widths(toll)
        down, up = (exported_set(which) for which in (toll.down, toll.up))
        node |= {"leak_power": toll.leakage, "area": toll.area}
        node["actions"] = [_action("read", toll.energy, toll.throughput, toll.bits_per_access)]
        if down == up or "Nothing" in (down, up):
            node["tensors"] = {"keep": up if down == "Nothing" else down}
            node["direction"] = "up_and_down" if down == up else "up" if down == "Nothing" else "down"
            return node
        down, up = (f"({text})" if " " in text else text for text in (down, up))
        node["tensors"] = {"keep": f"{down} | {up}"}
        ways = {f"{down} & {up}": "up_and_down", f"{down} & ~{up}": "down"}
        node["direction"] = {**ways, f"~{down}": "up"}  # also of tensors that it does not keep: each must have one
        return node

    def _widths(self, way: Memory | Toll) -> dict[str, object]:
        table: dict[str, object] = {}
        before: list[str] = []
        for which, bits in way.widths:
            text = exported_set(which)
            table[text if not before else f"({text}) & ~({' | '.join(before)})"] = bits
            before.append(f"({text})")
        return table

    def _axis(self, axis: Axis) -> dict[str, object]:
        data: dict[str, object] = {"name": self.axes.add(axis.name), "fanout": axis.size}
        reuse, multicast, reduce = (exported_set(s) for s in (axis.only_irrelevant_to, axis.multicast, axis.reduce))
        both = _reused(multicast, reduce)
        if reuse != "Nothing":
            data["reuse"] = reuse
        if both != (reuse if reuse != "Nothing" else "All"):
            data["may_reuse"] = both
        if axis.use == "full":
            data["min_usage"] = 1
        return data

    def _compute(self, unit: ComputeUnit) -> dict[str, object]:
        action = {"name": "compute", "energy": unit.energy, "throughput": _rate(unit.throughput)}
        node: dict[str, object] = {"node": "Compute", "name": self.components.add(unit.name)}
        node |= {"leak_power": unit.leakage, "area": unit.area, "actions": [action]}
        condition = self._enabled(unit)
        if condition is not None:
            node["enabled"] = condition
        return node

    def _enabled(self, unit: ComputeUnit) -> str | None:
        """Which Einsums a unit runs; copies, which need no unit in einloom, go to the first one."""
        condition = " or ".join(f"len(All) == {count + 1}" for count in unit.operands)
        if len(unit.kinds) == 1:
            only = f"len({PRODUCT}) {'>' if unit.kinds[0] == 'multiply' else '=='} 0"
            condition = f"({condition}) and {only}" if condition else only
        copies = any(einsum.kind == "copy" for einsum in self.workload.einsums)
        if unit is self.machine.units[0]:
            free = unit.operands == () or 1 in unit.operands
            if not copies or (free and len(unit.kinds) > 1):
                return condition or None
            return f"{condition} or len({COPIED}) > 0"
        if copies and (not unit.operands or 1 in unit.operands):
            return f"({condition}) and len({COPIED}) == 0" if condition else f"len({COPIED}) == 0"
        return condition or None

    # The cascade

    def cascade(self) -> dict[str, object]:
        """The sections ``workload`` and ``renames``."""
        self._check()
        if copies := [e.name for e in self.workload.einsums if e.kind == "copy"]:
            self.notes.append(
                f"copies ({', '.join(copies)}): AccelForge 1.0.467 charges one towards an inner memory the wrong way "
                "round, as a read there and a write further out"
            )
        sizes: dict[str, int] = {}
        ranks = {tensor.name: self._ranks(tensor.name, sizes) for tensor in self.workload.tensors}
        widths = [tensor.bits for tensor in self.workload.tensors]
        common = max(sorted(set(widths)), key=widths.count)
        data: dict[str, object] = {
            "iteration_space_shape": {
                (name := self.variables.add(variable, lower=True)): f"0 <= {name} < {size}"
                for variable, size in self.workload.sizes
            },
            "rank_sizes": sizes,
            "bits_per_value": {"All": common},
        }
        persistent = [tensor.name for tensor in self.workload.tensors if tensor.persistent]
        if persistent:
            data["persistent_tensors"] = " | ".join(persistent)
        if self.workload.repeat != 1:
            data["n_instances"] = self.workload.repeat
        data["einsums"] = [self._einsum(einsum, ranks, common) for einsum in self.workload.einsums]
        defaults = [{"name": name, "source": "Nothing"} for name in ("input", "weight", "output", COPIED, PRODUCT)]
        return {"workload": data, "renames": {"einsums": [{"name": "default", "tensor_accesses": defaults}]}}

    def _check(self) -> None:
        """Refuse what would cost something else over there."""
        written = [t for t in self.workload.producers if not self.workload.consumers[t]]
        if set(self.workload.outputs) != set(written):
            odd = sorted(set(self.workload.outputs) ^ set(written))
            raise SpecError(
                f"workload {self.workload.name}: AccelForge takes the tensors that nobody reads for the outputs; "
                f"{', '.join(odd)} cannot be said"
            )
        variables = {variable for variable, _ in self.workload.sizes}
        for tensor in self.workload.tensors:
            if tensor.name in TAKEN or tensor.name in variables or iskeyword(tensor.name):
                raise SpecError(f"tensor {tensor.name} cannot be called so in AccelForge: the word has a meaning there")
        for einsum in self.workload.einsums:
            if einsum.reduction == "online_softmax":
                raise SpecError(f"Einsum {einsum.name}: AccelForge has no online softmax")
            if len({access.tensor for access in einsum.inputs}) < len(einsum.inputs):
                raise SpecError(f"Einsum {einsum.name}: AccelForge reads a tensor at most once per Einsum")

    def _ranks(self, tensor: str, sizes: dict[str, int]) -> tuple[str, ...]:
        """Names of the ranks of a tensor: the producer's (or first user's) variables where sizes agree."""
        accesses = [a for e in self.workload.einsums for a in e.accesses if a.tensor == tensor]
        producer = self.workload.producers.get(tensor)
        first = self.workload.einsum(producer).access(tensor) if producer else accesses[0]
        found: list[str] = []
        for i, (index, size) in enumerate(zip(first.indices, self.workload.tensor(tensor).shape, strict=True)):
            name = self.variables.add(index.variables[0], lower=True).upper() if index.simple else f"{tensor}_{i}"
            name = name[0].upper() + name[1:]
            if name in found or sizes.get(name, size) != size:
                name = f"{tensor[0].upper()}{tensor[1:]}_{i}"
            while name in found or sizes.get(name, size) != size:
                name += "_"
            sizes[name] = size
            found.append(name)
        return tuple(found)

    def _einsum(self, einsum: Einsum, ranks: Mapping[str, tuple[str, ...]], common: int) -> dict[str, object]:
        accesses = [self._access(access, ranks, common) for access in einsum.inputs]
        accesses.append({**self._access(einsum.output, ranks, common), "output": True})
        renames: dict[str, str] = {}
        for role in ("input", "weight", "output"):
            mine = [t for t in einsum.tensors if self.workload.role(einsum.name, t) == role]
            renames[role] = " | ".join(mine) or "Nothing"
        renames[COPIED] = "All" if einsum.kind == "copy" else "Nothing"
        renames[PRODUCT] = "All" if einsum.kind == "multiply" else "Nothing"
        data: dict[str, object] = {"name": einsum.name, "tensor_accesses": accesses, "renames": renames}
        if einsum.kind == "copy":
            data["is_copy_operation"] = True
        return data

    def _access(self, access: Access, ranks: Mapping[str, tuple[str, ...]], common: int) -> dict[str, object]:
        projection = {rank: self._index(i) for rank, i in zip(ranks[access.tensor], access.indices, strict=True)}
        data: dict[str, object] = {"name": access.tensor, "projection": projection}
        bits = self.workload.tensor(access.tensor).bits
        if bits != common:
            data["bits_per_value"] = bits
        return data

    def _index(self, index: Index) -> str:
        names = [(self.variables.add(name, lower=True), factor) for name, factor in index.terms]
        return " + ".join(name if factor == 1 else f"{factor} * {name}" for name, factor in names) or "0"

    # What the format has no words for

    def remainder(self) -> dict[str, object]:
        """What the way back needs and AccelForge does not read."""
        data: dict[str, object] = {"workload": self.workload.name, "machine": self.machine.name}
        for key in ("components", "axes", "variables"):
            if changed := getattr(self, key).changed:
                data[key] = changed
        data["backs"] = {m.name: m.backs.text for m in self.machine.memories}
        if doubled := [m.name for m in self.machine.memories if m.double_buffer]:
            data["double_buffer"] = {name: self.machine.memory(name).size for name in doubled}
        if einsums := {e.name: text for e in self.workload.einsums if (text := _meaning(e))}:
            data["einsums"] = einsums
        offsets = {
            f"{e.name}.{a.tensor}": [i.constant for i in a.indices]
            for e in self.workload.einsums
            for a in e.accesses
            if any(i.constant for i in a.indices)
        }
        if offsets:
            data["offsets"] = offsets
            self.notes.append("constants in index expressions (padding in front) are left out: " + ", ".join(offsets))
        return data


def _meaning(einsum: Einsum) -> dict[str, object]:
    """Function and reduction, where they are not what a reader would take them for."""
    data: dict[str, object] = {}
    expected = "copy" if einsum.kind == "copy" else "multiply" if len(einsum.inputs) > 1 else "map"
    if einsum.kind != expected or einsum.function not in (None, "elementwise"):
        data["kind"] = einsum.kind
        if einsum.function is not None:
            data["function"] = einsum.function
    if einsum.reduction != "sum":
        data["reduction"] = einsum.reduction
    return data


def _action(name: str, energy: float, throughput: float | None, bits: int) -> dict[str, object]:
    data: dict[str, object] = {"name": name, "energy": energy}
    if bits != 1:
        data["bits_per_action"] = bits
    data["throughput"] = _rate(None if throughput is None else throughput / bits)
    return data


def _rate(value: float | None) -> object:
    return "inf" if value is None else value


def _reused(multicast: str, reduce: str) -> str:
    """What may be reused along an axis: inputs of the one set, outputs of the other."""
    if multicast == reduce or (multicast, reduce) in (("input", "Nothing"), ("weight", "Nothing")):
        return multicast
    if (multicast, reduce) == ("Nothing", "output"):
        return "output"
    return f"({multicast}) & ~output | ({reduce}) & output"

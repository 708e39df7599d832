"""A cascade of two-operand Einsums and a machine as ZigZag's YAML: ``accelerator.yaml`` and ``layers.yaml``.

What is written is read back: a workload that comes back as another one is refused. Tensors are called by letter and
layer in the files, axes ``D1``, ``D2`` and so on.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from dataclasses import field, replace

from ...dataclass import dataclass
from ...errors import SpecError
from ...machine.levels import Fanout, Machine, Memory
from ...reading.arithmetic import exact
from ...reading.yamltree import dump_yaml
from ...workload.einsum import Access, Einsum, Index, Workload
from ...workload.parts import refuse_parts
from ...workload.selectors import select
from ..bundle import ExportedFiles
from ..clocks import cycles_per_second
from ..one_unit import with_one_unit
from .accelerator import ROLES
from .read import read_texts

_PICO = 10**12
_ENDLESS, _WIDE = 10**13, 2**16
_WAYS = {"I1": ("tl",), "I2": ("tl",), "O": ("tl", "th")}
_BACK = {"I1": ("fh",), "I2": ("fh",), "O": ("fh", "fl")}


def export(workload: Workload, machine: Machine, clock: float = 0.0) -> ExportedFiles:
    """The problem as ZigZag's files. clock: cycles per second; by default the compute unit's operations.

    Raises SpecError for what ZigZag has no word for.
    """
    refuse_parts(workload, "ZigZag has no word for parts or views of tensors")
    writer = _Writer(workload, machine, clock)
    layers = {"layers.yaml": writer.layers()}
    found = read_texts(layers).workload
    if found is None or replace(found, name="", facts=()) != writer.renamed():
        raise SpecError(
            f"{workload.name}: ZigZag's layers do not say this workload again; it has indices of other forms"
        )
    files = {"accelerator.yaml": dump_yaml(writer.accelerator()), **layers}
    read_texts(files)
    return ExportedFiles(files, tuple(dict.fromkeys(writer.notes)))


@dataclass
class _Writer:
    workload: Workload
    machine: Machine
    clock: float
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.machine = with_one_unit(self.workload, self.machine, "ZigZag", self.notes)
        if self.workload.repeat != 1:
            raise SpecError("ZigZag has no word for repeat")
        self.unit = self.machine.units[0]
        self.clock = self.clock or self.unit.throughput or cycles_per_second()
        if self.unit.throughput != self.clock:
            self.notes.append(f"{self.unit.name}: ZigZag's array makes one operation per cycle and element")
        if self.unit.leakage:
            self.notes.append(f"{self.unit.name}: leakage is left out")
        self.ids = self.workload.position
        self.tensors = self._tensors()

    def _tensors(self) -> dict[tuple[str, str], str]:
        """(Einsum, tensor) -> operand letter."""
        table: dict[tuple[str, str], str] = {}
        for einsum in self.workload.einsums:
            inputs = [access.tensor for access in einsum.inputs]
            multiplies = einsum.kind == "multiply" and einsum.reduction == "sum"
            if len(set(inputs)) != 2 or not (multiplies or einsum.function == "add"):
                raise SpecError(f"a layer of ZigZag multiplies or adds two operands; {einsum.name} does something else")
            for tensor in inputs:
                table[einsum.name, tensor] = "I" if self.workload.role(einsum.name, tensor) == "input" else "W"
            table[einsum.name, einsum.output.tensor] = "O"
        return table

    def called(self, einsum: str, tensor: str) -> str:
        """What the reader calls the tensor."""
        writer = self.workload.producers.get(tensor)
        return f"O{self.ids[writer]}" if writer is not None else f"{self.tensors[einsum, tensor]}{self.ids[einsum]}"

    def renamed(self) -> Workload:
        """The workload with the reader's names of tensors."""
        names: dict[str, str] = {}
        for (einsum, tensor), _ in self.tensors.items():
            if names.setdefault(tensor, self.called(einsum, tensor)) != self.called(einsum, tensor):
                raise SpecError(f"{tensor} is read by several Einsums and written by none; ZigZag has no word for that")

        def access(one: Access) -> Access:
            return Access(names[one.tensor], one.indices)

        einsums = []
        for einsum_ in self.workload.einsums:
            inputs = sorted(map(access, einsum_.inputs), key=lambda one: one.tensor.startswith("W"))
            einsums.append(replace(einsum_, output=access(einsum_.output), inputs=tuple(inputs)))
        order = dict.fromkeys(a.tensor for e in einsums for a in (*e.inputs, e.output))
        old = {new: name for name, new in names.items()}
        tensors = tuple(replace(self.workload.tensor(old[name]), name=name) for name in order)
        variables = dict.fromkeys(v for e in einsums for v in e.variables)
        sizes = tuple((v, self.workload.extents[v]) for v in variables)
        outputs = tuple(names[tensor] for tensor in self.workload.outputs)
        return Workload("", tuple(einsums), tensors, sizes, outputs)

    def layers(self) -> str:
        listed = [dump_yaml(self.layer(einsum)) for einsum in self.workload.einsums]
        return "".join("- " + text.rstrip("\n").replace("\n", "\n  ") + "\n" for text in listed)

    def layer(self, einsum: Einsum) -> dict[str, object]:
        number = self.ids[einsum.name]
        relations: dict[str, Index] = {}
        ranks: dict[str, list[str]] = {}
        for access in (einsum.output, *einsum.inputs):
            letter = self.tensors[einsum.name, access.tensor]
            ranks[letter] = [self._rank(index, relations, einsum) for index in access.indices]
        sign = "+" if einsum.kind == "map" else "*"
        written = {letter: letter + "".join(f"[{rank}]" for rank in names) for letter, names in ranks.items()}
        if "" in (rank for names in ranks.values() for rank in names) or not all(ranks.values()):
            raise SpecError(f"{einsum.name}: ZigZag has no word for a tensor without ranks")
        dims = {v.upper(): self.workload.extents[v] for v in einsum.variables}
        found: dict[str, object] = {"id": number, "name": einsum.name}
        found["operator_type"] = "Add" if sign == "+" else "Conv" if relations else "Gemm"
        equals = "+=" if einsum.reduced else "="
        found["equation"] = f"{written['O']}{equals}{written['I']}{sign}{written['W']}"
        if relations:
            found["dimension_relations"] = [
                f"{name}=" + "+".join(f"{factor}*{variable}" for variable, factor in index.terms)
                for name, index in relations.items()
            ]
        found["loop_dims"], found["loop_sizes"] = list(dims), list(dims.values())
        bits = {self.tensors[einsum.name, t]: self.workload.tensor(t).bits for t in einsum.tensors}
        found["operand_precision"] = {**bits, "O_final": bits["O"]}
        producers = self.workload.producers
        sources = {a.tensor: self.ids[producers[a.tensor]] if a.tensor in producers else number for a in einsum.inputs}
        found["operand_source"] = {self.tensors[einsum.name, tensor]: source for tensor, source in sources.items()}
        return {**found, **self._padding(einsum, relations)}

    def _rank(self, index: Index, relations: dict[str, Index], einsum: Einsum) -> str:
        if index.simple:
            return index.variables[0]
        if len(index.terms) != 2 or index.constant > 0:
            raise SpecError(f"{einsum.name}: a window of ZigZag is a sum of two dimensions, not {index}")
        name = "i" + "".join(index.variables)
        relations[name] = index
        return name

    def _padding(self, einsum: Einsum, relations: Table[str, Index]) -> dict[str, object]:
        """Padding before and after, and the size without it, of each window that needs it."""
        found: dict[str, tuple[int, int, int]] = {}
        for access in einsum.inputs:
            shape = self.workload.tensor(access.tensor).shape
            for index, size in zip(access.indices, shape, strict=True):
                if not index.simple:
                    name = next(key for key, value in relations.items() if value == index)
                    reach = index.extent(self.workload.extents)
                    found[name] = (-index.constant, max(0, reach + index.constant - size), size)
        if all(
            before == 0 and relations[name].extent(self.workload.extents) == size
            for name, (before, _, size) in found.items()
        ):
            return {}
        return {
            "pr_loop_dims": [name.upper() for name in found],
            "pr_loop_sizes": [size for _, _, size in found.values()],
            "padding": [[before, after] for before, after, _ in found.values()],
        }

    # accelerator

    def accelerator(self) -> dict[str, object]:
        axes = [axis for fanout in self.machine.fanouts for axis in fanout.axes]
        if len(axes) > 9:
            raise SpecError(f"an array of ZigZag has nine dimensions at most; here are {len(axes)} axes")
        names = {axis.name: f"D{number}" for number, axis in enumerate(axes, 1)}
        for axis in axes:
            if (axis.multicast.text, axis.reduce.text) != ("all", "all"):
                self.notes.append(f"{axis.name}: ZigZag multicasts and reduces everything")
            if axis.use != "any" or axis.only_irrelevant_to.text != "nothing":
                self.notes.append(f"{axis.name}: use and only_irrelevant_to are left out")
        memories: dict[str, object] = {}
        served = [] if axes else ["D1"]
        for level in reversed(self.machine.levels):
            if isinstance(level, Fanout):
                served = [names[axis.name] for axis in level.axes] + served
            elif isinstance(level, Memory):
                memories[level.name] = self._memory(level, served)
        array: dict[str, object] = {"unit_energy": float(exact(self.unit.energy) * _PICO), "unit_area": 0}
        array["dimensions"] = list(names.values()) or ["D1"]
        array["sizes"] = [axis.size for axis in axes] or [1]
        return {"name": self.machine.name, "memories": memories, "operational_array": array}

    def _operands(self, memory: Memory) -> list[str]:
        """The operands that the memory may keep, in every layer the same."""
        if memory is self.machine.memories[0]:
            return list(ROLES)
        found: set[tuple[str, ...]] = set()
        for einsum in self.workload.einsums:
            may = select(memory.may, self.workload, einsum.name) | select(memory.must, self.workload, einsum.name)
            roles = {self.workload.role(einsum.name, tensor) for tensor in may}
            found.add(tuple(operand for operand, role in ROLES.items() if role in roles))
        if len(found) != 1 or not (chosen := found.pop()):
            raise SpecError(f"{memory.name}: ZigZag keeps the same operands in every layer")
        return list(chosen)

    def _memory(self, memory: Memory, served: list[str]) -> dict[str, object]:
        if memory.widths:
            self.notes.append(f"{memory.name}: widths are left out; ZigZag takes each layer's operand_precision")
        if memory.prefetch or memory.setup or memory.through or memory.leakage or memory.area:
            self.notes.append(f"{memory.name}: area, leakage, prefetch, setup and through are left out")
        operands = self._operands(memory)
        widths = [self._width(memory, rate) for rate in (memory.read_throughput, memory.write_throughput)]
        costs = (memory.read_energy, memory.write_energy)
        cost = [float(exact(e) * _PICO * w / memory.bits_per_access) for e, w in zip(costs, widths, strict=True)]
        if memory.size is None:
            self.notes.append(f"{memory.name}: without a limit of size, written as {_ENDLESS} bits")
        found: dict[str, object] = {"size": memory.size or _ENDLESS, "r_cost": cost[0], "w_cost": cost[1]}
        found |= {"area": 0, "latency": 1, "operands": operands, "served_dimensions": list(served)}
        if memory.double_buffer:
            found["force_double_buffering"] = True
        return {**found, "ports": self._ports(memory, operands, widths)}

    def _width(self, memory: Memory, rate: float | None) -> int:
        """Bits per cycle of a port."""
        if rate is None:
            width = memory.bits_per_access * -(-_WIDE // memory.bits_per_access)
            self.notes.append(f"{memory.name}: without a limit of bandwidth, written as {width} bits per cycle")
            return width
        bits = exact(rate) / exact(self.clock)
        if bits.denominator != 1:
            self.notes.append(f"{memory.name}: {float(bits):g} bits per cycle are written as {max(1, int(bits))}")
        return max(1, int(bits))

    def _ports(self, memory: Memory, operands: list[str], widths: list[int]) -> list[dict[str, object]]:
        reads, writes = (
            [f"{operand}, {way}" for operand in operands for way in table[operand]] for table in (_WAYS, _BACK)
        )

        def port(name: str, kind: str, width: int, allocation: list[str]) -> dict[str, object]:
            limits = {"bandwidth_min": min(width, memory.bits_per_access), "bandwidth_max": width}
            return {"name": name, "type": kind, **limits, "allocation": allocation}

        if memory.ports == "shared" and widths[0] == widths[1]:
            return [port("rw_port_1", "read_write", widths[0], reads + writes)]
        if memory.ports == "shared":
            self.notes.append(f"{memory.name}: reads and writes at different rates do not take turns in the file")
        return [port("r_port_1", "read", widths[0], reads), port("w_port_1", "write", widths[1], writes)]

"""Random trees of all that a workload file can say: scalars, constants, repeated operands, read outputs, copies.

`wide_case` draws a cascade Einsum by Einsum: every operand is a new tensor, one that was there before, or an operand of
the same Einsum once more; every rank of it is indexed by a variable, a window or a constant. Machines have widths by
role and by tensor, and tolls. Everything is a function of the seed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from concurrent_trees import made_concurrent
from einloom.machine.levels import Machine, Memory, Toll
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.notation import parse_einsum
from einloom.workload.selectors import selector
from trees import Case, TreeGrower, random_machine

WIDE = (
    "scalar result",
    "scalar operand",
    "no rank variables",
    "constant",
    "only a constant",
    "window",
    "repeated operand",
    "repeated window or constant",
    "two readers",
    "read output",
    "persistent input",
    "persistent intermediate",
    "repeat",
    "copy",
    "maximum",
    "width by role",
    "width by tensor",
    "toll",
    "fused",
)
ROLES = ("input", "weight", "output", "input | output", "~weight", "intermediate", "cascade_output", "persistent")


@dataclass
class _Cascade:
    """A cascade as it grows. shapes: of every tensor so far. written, read: tensors, in order."""

    rng: Random
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def variable(self, size: int, known: list[str]) -> str:
        """A variable of this size: one of `known`, or a new one."""
        fitting = [v for v in known if self.sizes[v] == size]
        if fitting and self.rng.random() < 0.6:
            return self.rng.choice(fitting)
        name = f"v{len(self.sizes)}"
        self.sizes[name] = size
        return name

    def index(self, size: int, known: list[str], taken: set[str]) -> str:
        """One rank of an operand: a constant, a window, or a plain variable. taken: variables of its other ranks."""
        free = [v for v in known if v not in taken]
        dice = self.rng.random()
        if dice < 0.12:
            return str(self.rng.randrange(size))
        if dice < 0.24 and size >= 3:
            kernel = self.rng.randint(2, size - 1)
            outer = self.variable(size - kernel + 1, free)
            inner = self.variable(kernel, [v for v in free if v != outer])
            taken |= {outer, inner}
            return f"{outer}+{inner}"
        chosen = self.variable(size, free)
        taken.add(chosen)
        return chosen

    def operand(self, mine: list[str], known: list[str]) -> str:
        """An operand as text. mine: the operands of the Einsum so far."""
        if mine and self.rng.random() < 0.2:
            return self.rng.choice(mine)
        before = [t for t in (*self.written, *self.written, *self.read) if not any(o.startswith(f"{t}[") for o in mine)]
        if before and self.rng.random() < 0.65:
            tensor = self.rng.choice(before)
        else:
            tensor = f"I{len(self.shapes)}"
            ranks = self.rng.choice((0, 1, 1, 2, 2))
            self.shapes[tensor] = tuple(self.rng.choice((1, 2, 2, 3, 4)) for _ in range(ranks))
        taken: set[str] = set()
        access = f"{tensor}[{','.join(self.index(size, known, taken) for size in self.shapes[tensor])}]"
        known.extend(v for v in self.sizes if v in taken and v not in known)
        if tensor not in (*self.read, *self.written):
            self.read.append(tensor)
        return access

    def einsum(self) -> None:
        """One more Einsum."""
        known: list[str] = []
        mine: list[str] = []
        for _ in range(self.rng.choice((1, 1, 2, 2, 3))):
            mine.append(self.operand(mine, known))
        used = [v for v in known if any(v in _names(access) for access in mine)]
        copied = (
            len(mine) == 1
            and "+" not in mine[0]
            and not any(map(str.isdigit, _names(mine[0])))
            and (self.rng.random() < 0.4)
        )
        kept = used if copied else [v for v in used if self.rng.random() < 0.65][:3]
        self.rng.shuffle(kept)
        tensor = f"T{len(self.lines)}"
        self.shapes[tensor] = tuple(self.sizes[v] for v in kept)
        self.written.append(tensor)
        function = {1: "exp", 2: "sub"}.get(len(mine), "add")
        body = " * ".join(mine) if self.rng.random() < 0.6 else f"{function}({', '.join(mine)})"
        lacked = [v for v in used if v not in kept]
        if lacked and self.rng.random() < 0.15:
            body = f"max[{','.join(lacked)}] {body}"
        self.lines.append(f"{tensor}[{','.join(kept)}] = " + (f"copy {mine[0]}" if copied else body))


def _names(access: str) -> set[str]:
    """Variables and constants in the indices of an access."""
    inside = access[access.index("[") + 1 : -1]
    return {part for index in inside.split(",") for part in index.split("+") if part}


def wide_workload(rng: Random) -> Workload:
    """One to four Einsums that may say whatever the notation can say."""
    grown = _Cascade(rng)
    for _ in range(rng.choice((1, 1, 2, 2, 3, 4))):
        grown.einsum()
    einsums = [parse_einsum(line) for line in grown.lines]
    read = {access.tensor for einsum in einsums for access in einsum.inputs}
    used = {v for einsum in einsums for v in einsum.variables}
    return build_workload(
        "wide",
        einsums,
        {v: size for v, size in grown.sizes.items() if v in used},
        bits={tensor: rng.choice((1, 1, 2, 3)) for tensor in grown.shapes},
        shapes={tensor: shape for tensor, shape in grown.shapes.items() if shape},
        outputs=[t for t in grown.written if t not in read or rng.random() < 0.3],
        persistent=[t for t in grown.shapes if rng.random() < (0.12 if t in grown.read else 0.06)],
        repeat=rng.choice((1, 1, 1, 2, 3)),
    )


def wide_machine(rng: Random, workload: Workload) -> Machine:
    """A random machine with widths by role or by tensor, and tolls."""
    machine = random_machine(rng)
    levels = []
    for level in machine.levels:
        if isinstance(level, Memory) and rng.random() < 0.4:
            named = [tensor.name for tensor in workload.tensors]
            which = [rng.choice(ROLES) if rng.random() < 0.6 else rng.choice(named) for _ in range(rng.randint(1, 2))]
            level = replace(level, widths=tuple((selector(text), rng.choice((2, 5, 7))) for text in which))
        levels.append(level)
        if len(levels) < len(machine.levels) and rng.random() < 0.08:
            ways = (selector(rng.choice(ROLES)), selector("nothing"))
            down, up = ways if rng.random() < 0.5 else ways[::-1]
            levels.append(Toll(f"Toll{len(levels)}", 2.0, rng.choice((1, 4)), 1.0, down, up))
    return replace(machine, levels=tuple(levels))


def wide_case(seed: int) -> Case:
    """The case of one seed; `features` is a subset of WIDE."""
    rng = Random(f"wide {seed}")
    workload = wide_workload(rng)
    machine = wide_machine(rng, workload)
    grower = TreeGrower(rng, workload, machine)
    mapping = grower.mapping()
    first = machine.memories[0]
    inner = [t.name for t in workload.tensors if t.persistent and grower.backing[t.name] != first.name]
    if inner:  # persistent inputs may have their home further in, if the outermost memory may not back them
        backs = replace(first, backs=selector(f"~({' | '.join(inner)})"))
        machine = replace(machine, levels=tuple(backs if level is first else level for level in machine.levels))
    return Case(workload, machine, mapping, features(workload, machine))


def wide_concurrent_case(seed: int) -> Case:
    """The case of `wide_case(seed)` with some of its sequential splits made concurrent."""
    return made_concurrent(wide_case(seed), Random(f"wide concurrent {seed}"))


def features(workload: Workload, machine: Machine) -> frozenset[str]:
    """Which of WIDE the workload and its machine have."""
    accesses = [access for einsum in workload.einsums for access in einsum.inputs]
    again = [e for e in workload.einsums if len({a.tensor for a in e.inputs}) < len(e.inputs)]
    fixed = {a.tensor for a in accesses for i in a.indices if not i.variables}
    whole = {a.tensor for e in workload.einsums for a in e.accesses if all(i.variables for i in a.indices)}
    widths = {str(which) for memory in machine.memories for which, _ in memory.widths}
    named = {tensor.name for tensor in workload.tensors}
    persistent = {tensor.name for tensor in workload.tensors if tensor.persistent}
    found = {
        "scalar result": any(not e.output.indices for e in workload.einsums),
        "scalar operand": any(not a.indices for a in accesses),
        "no rank variables": any(not e.variables for e in workload.einsums),
        "constant": bool(fixed & whole),
        "only a constant": bool(fixed - whole),
        "window": any(len(i.terms) > 1 for a in accesses for i in a.indices),
        "repeated operand": bool(again),
        "repeated window or constant": any(
            not i.simple for e in again for a in e.inputs if e.inputs.count(a) > 1 for i in a.indices
        ),
        "two readers": any(len(users) > 1 for users in workload.consumers.values()),
        "read output": any(workload.consumers[tensor] for tensor in workload.outputs),
        "persistent input": bool(persistent & set(workload.inputs)),
        "persistent intermediate": bool(persistent & set(workload.intermediates)),
        "repeat": workload.repeat > 1,
        "copy": any(e.kind == "copy" for e in workload.einsums),
        "maximum": any(e.reduction == "max" for e in workload.einsums),
        "width by role": bool(widths - named),
        "width by tensor": bool(widths & named),
        "toll": bool(machine.tolls),
        "fused": len(workload.einsums) > 1,
    }
    return frozenset(name for name, has in found.items() if has)

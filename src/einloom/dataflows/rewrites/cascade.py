"""A cascade written from a family's roles in the names of a workload: what all rewrites end with.

Comes in: who plays which role in a workload, and what is new in the family that is to be written. Goes out: a
workload of that family. Names of the workload stay where the roles do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from ...dataclass import dataclass
from ...errors import SpecError
from ...reading.facts import Fact
from ...workload.build import build_workload
from ...workload.einsum import Access, Einsum, Index, Workload
from ...workload.parts import refuse_parts
from ..casts import Cast
from ..families import Family

Weights = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Script:
    """What a rewrite says of the family that it writes, in roles.

    einsums: per new Einsum the old one whose rank variables it speaks of; those of equal role need no entry. tensors:
    per new tensor the old one that it is named after and has the bits of. ranks: per new rank variable the old one, and
    its Einsum, that it is named after. sizes: extents of the ranks that are new or not what they were. weights:
    coefficients other than 1, by tensor and rank variable. orders: per tensor its ranks by their rank variable, in
    their order, where it is not that of the family.
    """

    family: Family
    einsums: Mapping[str, str]
    tensors: Mapping[str, str]
    ranks: Mapping[str, tuple[str, str]]
    sizes: Mapping[str, int]
    weights: Weights = field(default_factory=dict)
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def write(script: Script, players: Cast, workload: Workload, name: str, outputs: Iterable[str], why: str) -> Workload:
    """The cascade of the script in the names of `workload`; `why` is the source of the sizes that are new."""
    names = _Names(script, players, workload)
    einsums = [names.einsum(einsum) for einsum in script.family.einsums]
    bits = {name: workload.tensor(like).bits for name, like in names.like.items()}
    kept = [f for f in workload.facts if f.path.partition(".")[2] in (*names.unchanged, *bits, "default", "")]
    made = [Fact(f"ranks.{rank}", why, "derived") for rank in names.sizes if rank not in names.unchanged]
    return build_workload(
        name,
        einsums,
        names.sizes,
        bits=bits,
        outputs=[names.tensors[role] for role in outputs],
        persistent=[t.name for t in workload.tensors if t.persistent and t.name in bits],
        repeat=workload.repeat,
        facts=[fact for fact in kept if not fact.path.startswith("shapes.")] + made,
        absorbed=workload.absorbed,
    )


class _Names:
    """Gives Einsums, tensors and rank variables of a script their names: those of the workload, and new ones."""

    def __init__(self, script: Script, players: Cast, workload: Workload) -> None:
        self.script, self.players, self.workload = script, players, workload
        self.taken = {*workload.names, *workload.extents, *(tensor.name for tensor in workload.tensors)}
        tensors = {
            t: players.tensors[t] for t in script.family.tensors if t in players.tensors and t not in script.tensors
        }
        self.like = {name: name for name in tensors.values()}
        for role, old in script.tensors.items():
            tensors[role] = self._fresh(f"{players.tensors[old]}_{role}")
            self.like[tensors[role]] = players.tensors[old]
        self.tensors = tensors
        self.ranks = {
            role: self._fresh(f"{players.variables[einsum][old]}_{role}")
            for role, (einsum, old) in script.ranks.items()
        }
        self.sizes: dict[str, int] = {}
        self.unchanged: set[str] = set()
        self.called: set[str] = set()

    def _fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def einsum(self, role: Einsum) -> Einsum:
        """The Einsum of a role. Raises SpecError where one name would need two sizes."""
        old = self.script.einsums.get(role.name, role.name)
        mine = {**self.players.variables[old], **self.ranks}
        for variable in role.variables:
            if variable not in mine:
                continue
            size = self.script.sizes.get(variable, self.workload.extents.get(mine[variable], 0))
            if self.sizes.setdefault(mine[variable], size) != size:
                raise SpecError(
                    f"{self.workload.name}: rank variable {mine[variable]} would have two sizes; rename one"
                )
            if self.workload.extents.get(mine[variable]) == size:
                self.unchanged.add(mine[variable])
        output, *inputs = (self._access(access, mine) for access in (role.output, *role.inputs))
        name, before = self._called(role, output.tensor), self.workload.einsum(self.players.einsums[old])
        made = Einsum(name, output, tuple(inputs), role.kind, role.function, role.reduction)
        return replace(made, group=before.group, nodes=before.nodes)

    def _called(self, role: Einsum, tensor: str) -> str:
        """The old name of an Einsum that writes what it wrote; else that of the tensor."""
        before = {einsum.name: einsum.output.tensor for einsum in self.players.family.einsums}
        name = self.players.einsums[role.name] if before.get(role.name) == role.output.tensor else tensor
        while name in self.called:
            name += "_"
        self.called.add(name)
        return name

    def _access(self, access: Access, names: Mapping[str, str]) -> Access:
        weights = self.script.weights
        ranks = list(access.indices)
        if (order := self.script.orders.get(access.tensor)) is not None:
            ranks.sort(key=lambda index: order.index(index.variables[0]) if index.variables[0] in order else -1)
        indices = tuple(
            Index(tuple((names[v], weights.get((access.tensor, v), 1)) for v in index.variables))
            for index in ranks
            if all(v in names for v in index.variables)
        )
        return Access(self.tensors[access.tensor], indices)


def check_whole(workload: Workload, rewrite: str, windows: bool = False) -> None:
    """Refuse a workload whose Einsums access anything but whole tensors, by bare rank variables or unpadded windows."""
    refuse_parts(workload, f"{rewrite} rewrites whole tensors")
    for einsum in workload.einsums:
        for access in einsum.accesses:
            for index, size in zip(access.indices, workload.tensor(access.tensor).shape, strict=True):
                where = f"{rewrite}: Einsum {einsum.name} of {workload.name} reads {access}"
                if not index.simple and not windows:
                    raise SpecError(f"{where}; ranks must be indexed by bare rank variables")
                if index.constant or index.extent(workload.extents) != size:
                    raise SpecError(
                        f"{where}, of which padding or a part is not read; only whole tensors are rewritten"
                    )

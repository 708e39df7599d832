"""Families of workloads: a cascade whose Einsums, tensors and rank variables are roles, and who plays them.

Comes in: a family file (``data/families``, or a user's) and a workload. Goes out: a `Cast` that says which Einsum,
tensor and rank variable of the workload plays which role, found by position alone: names mean nothing. The schema is
``family/1``::

    schema: family/1
    name: attention
    description: self-attention with softmax in five steps
    optional: [b, h]                   # rank variables that a workload may lack
    einsums:
      QK: 'scores[b,h,m,l] = query[b,h,m,k] * key[b,h,k,l]'
      max: 'peak[b,h,m] = max[l] scores[b,h,m,l]'
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations
from pathlib import Path

from ..errors import SpecError, nearest
from ..located import Located, read_file
from ..workload.einsum import Access, Einsum, Index, Workload
from ..workload.notation import parse_einsum

VERSION = 1
DATA = Path(__file__).parent / "data" / "families"
NAMES = ("attention", "online-attention", "convolution-chain", "tiled-convolution-chain")


@dataclass(frozen=True, slots=True)
class Family:
    """A cascade of roles. optional: rank variables that a workload may lack."""

    name: str
    einsums: tuple[Einsum, ...]
    optional: tuple[str, ...] = ()
    description: str = ""

    @property
    def tensors(self) -> tuple[str, ...]:
        """Roles of tensors, in the order in which they are named."""
        return tuple(dict.fromkeys(access.tensor for einsum in self.einsums for access in einsum.accesses))

    @property
    def variables(self) -> tuple[str, ...]:
        """Roles of rank variables, in the order in which they are named."""
        return tuple(dict.fromkeys(v for einsum in self.einsums for v in einsum.variables))


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays which role in a workload: Einsums, tensors, and per role of an Einsum its rank variables."""

    family: Family
    einsums: dict[str, str]
    tensors: dict[str, str]
    variables: dict[str, dict[str, str]]


def family(name: str) -> Family:
    """The family of this name. Raises SpecError with a suggestion for any other.

    >>> family("attention").tensors[:3]
    ('scores', 'query', 'key')
    """
    if name not in NAMES:
        raise SpecError(
            f"there is no family of workloads {name!r:.60}; known: {', '.join(NAMES)}", suggestion=nearest(name, NAMES)
        )
    return _shipped(name)


@lru_cache(maxsize=len(NAMES))
def _shipped(name: str) -> Family:
    return family_from(read_file(DATA / f"{name}.yaml"))


def family_from(view: Located) -> Family:
    """The family that a view shows. Raises SpecError with the place of whatever is wrong."""
    view.schema("family", VERSION)
    name = view.require("name").name()
    about = view.get("description")
    optional = view.get("optional")
    einsums = []
    for role, _, value in view.require("einsums").entries():
        with value.gather(), value.placed():
            einsums.append(parse_einsum(value.text(what="an Einsum"), role))
    found = Family(
        name, tuple(einsums), () if optional is None else optional.names(), "" if about is None else about.text()
    )
    with view.gather():
        for left in sorted(set(found.optional) - set(found.variables)):
            assert optional is not None
            raise optional.error(f"no Einsum has a rank variable {left!r:.60}", nearest(left, found.variables))
    with view.gather():
        view.finish()
    view.raise_gathered()
    return found


def cast(kind: Family, workload: Workload) -> Cast:
    """Who plays the roles of `kind` in `workload`: its Einsums in program order, their operands in order, rank by rank.

    Raises SpecError with the first thing that differs if the workload is no member of the family.
    """
    closest, complaint = (-1, -1), ""
    for without in chain.from_iterable(combinations(kind.optional, n) for n in range(len(kind.optional) + 1)):
        pattern = [_lacking(einsum, without) for einsum in kind.einsums]
        found = Cast(kind, {}, {}, {})
        try:
            _match(found, pattern, workload)
        except SpecError as error:
            if (far := (len(found.einsums), len(found.tensors))) > closest:
                closest, complaint = far, error.message
        else:
            return found
    raise SpecError(f"{workload.name} is no {kind.name}: {complaint}")


def is_member(kind: Family, workload: Workload) -> bool:
    """True if the roles of `kind` can be cast in `workload`."""
    try:
        cast(kind, workload)
    except SpecError:
        return False
    return True


def _lacking(einsum: Einsum, variables: tuple[str, ...]) -> list[tuple[str, tuple[Index, ...]]]:
    """Tensor and indices of every access, without the ranks of `variables`; the output comes first."""
    accesses: tuple[Access, ...] = (einsum.output, *einsum.inputs)
    return [(a.tensor, tuple(i for i in a.indices if not set(i.variables) & set(variables))) for a in accesses]


def _match(found: Cast, pattern: list[list[tuple[str, tuple[Index, ...]]]], workload: Workload) -> None:
    """Fill `found`, Einsum by Einsum; SpecError at the first thing that differs."""
    roles = found.family.einsums
    if len(workload.einsums) != len(roles):
        raise SpecError(f"it has {len(workload.einsums)} Einsums, not {len(roles)}")
    for role, accesses, einsum in zip(roles, pattern, workload.einsums, strict=True):
        where = f"Einsum {einsum.name} is no {role.name}"
        if (role.kind, role.function, role.reduction) != (einsum.kind, einsum.function, einsum.reduction):
            raise SpecError(f"{where}: another operation")
        mine = (einsum.output, *einsum.inputs)
        if len(mine) != len(accesses):
            raise SpecError(f"{where}: {len(mine) - 1} operands, not {len(accesses) - 1}")
        names: dict[str, str] = {}
        for (tensor, indices), access in zip(accesses, mine, strict=True):
            _play(found.tensors, tensor, access.tensor, where)
            for mark, name in _pairs(indices, access.indices, where):
                _play(names, mark, name, where)
        found.variables[role.name] = names
        found.einsums[role.name] = einsum.name


def _pairs(roles: tuple[Index, ...], players: tuple[Index, ...], where: str) -> Iterator[tuple[str, str]]:
    """Variables of equal position in the ranks of two accesses."""
    if len(roles) != len(players):
        raise SpecError(f"{where}: a tensor has {len(players)} ranks, not {len(roles)}")
    for role, player in zip(roles, players, strict=True):
        if len(role.terms) != len(player.terms):
            raise SpecError(f"{where}: index {player} is not like {role}")
        yield from zip(role.variables, player.variables, strict=True)


def _play(found: dict[str, str], role: str, name: str, where: str) -> None:
    """Note that `name` plays `role`; each plays one."""
    known = found.setdefault(role, name)
    if known != name or list(found.values()).count(name) > 1:
        raise SpecError(f"{where}: {name} stands in a place of {role}")

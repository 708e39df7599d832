"""Who plays the roles of a family in a workload: Einsums, tensors and rank variables, by structure; names mean nothing.

Einsums play in program order. Their operands and ranks play by position if that fits; else in any order in which every
tensor keeps its order of ranks throughout and operands trade places in products alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import chain, combinations, permutations

from ..dataclass import dataclass
from ..errors import SpecError
from ..workload.einsum import Access, Einsum, Index, Workload
from ..workload.parts import not_whole
from .families import Family

Accesses = tuple[Access, ...]
"""The accesses of an Einsum, output first, an operand each time that it is read."""


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays which role in a workload: Einsums, tensors, and per role of an Einsum its rank variables."""

    family: Family
    einsums: dict[str, str] = field(default_factory=dict)
    tensors: dict[str, str] = field(default_factory=dict)
    variables: dict[str, dict[str, str]] = field(default_factory=dict)


def cast(kind: Family, workload: Workload, in_order: bool = False) -> Cast:
    """Who plays the roles of `kind` in `workload`. in_order: by position alone.

    Of several ways the one counts in which most of the roles that should have one extent have it, by position if that
    is as good. Raises SpecError with the first thing that differs by position if the workload is no member.
    """
    for tensor in sorted(workload.viewed):
        raise SpecError(f"{workload.name} is no {kind.name}: {tensor} {not_whole(workload, tensor)}")
    found: list[Cast] = []
    furthest, complaint = (-1, -1), ""
    for without in chain.from_iterable(combinations(kind.optional, n) for n in range(len(kind.optional) + 1)):
        roles = [_lacking(einsum, without) for einsum in kind.einsums]
        attempt = Cast(kind)
        try:
            _by_position(attempt, roles, workload)
        except SpecError as error:
            if (far := (len(attempt.einsums), len(attempt.tensors))) > furthest:
                furthest, complaint = far, error.message
        else:
            found.append(attempt)
        if not in_order and _same_operations(kind, workload) and not (found and _alike(found[0], workload)):
            found += _in_any_order(kind, roles, workload)
        if found:
            return max(found, key=lambda one: _alike(one, workload))  # the first of equals
    raise SpecError(f"{workload.name} is no {kind.name}: {complaint}")


def is_member(kind: Family, workload: Workload) -> bool:
    """True if the roles of `kind` can be cast in `workload`."""
    try:
        cast(kind, workload)
    except SpecError:
        return False
    return True


def _alike(found: Cast, workload: Workload) -> int:
    """How many pairs of roles that should have one extent have it, wherever both are."""
    return sum(
        workload.extents[names[one]] == workload.extents[names[other]]
        for one, other in found.family.alike
        for names in found.variables.values()
        if one in names and other in names
    )


def _lacking(einsum: Einsum, variables: tuple[str, ...]) -> Accesses:
    """The accesses without the ranks of `variables`."""
    return tuple(
        Access(a.tensor, tuple(i for i in a.indices if not set(i.variables) & set(variables)))
        for a in (einsum.output, *einsum.inputs)
    )


def _same_operations(kind: Family, workload: Workload) -> bool:
    return len(kind.einsums) == len(workload.einsums) and all(
        _operation(role) == _operation(einsum) and len(role.inputs) == len(einsum.inputs)
        for role, einsum in zip(kind.einsums, workload.einsums, strict=True)
    )


def _operation(einsum: Einsum) -> tuple[object, ...]:
    return einsum.kind, einsum.function, einsum.reduction


def _by_position(found: Cast, pattern: list[Accesses], workload: Workload) -> None:
    """Fill `found`, Einsum by Einsum, operand by operand, rank by rank; SpecError at the first thing that differs."""
    roles = found.family.einsums
    if len(workload.einsums) != len(roles):
        raise SpecError(f"it has {len(workload.einsums)} Einsums, not {len(roles)}")
    for role, accesses, einsum in zip(roles, pattern, workload.einsums, strict=True):
        where = f"Einsum {einsum.name} is no {role.name}"
        if _operation(role) != _operation(einsum):
            raise SpecError(f"{where}: another operation")
        mine = (einsum.output, *einsum.inputs)
        if len(mine) != len(accesses):
            raise SpecError(f"{where}: {len(mine) - 1} operands, not {len(accesses) - 1}")
        names: dict[str, str] = {}
        for played, access in zip(accesses, mine, strict=True):
            _play(found.tensors, played.tensor, access.tensor, where)
            for mark, name in _pairs(played.indices, access.indices, where):
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


@dataclass(frozen=True, slots=True)
class _Partial:
    """A cast of the Einsums so far. orders: per role of a tensor the rank of the player at each of its ranks."""

    tensors: Mapping[str, str]
    orders: Mapping[str, tuple[int, ...]]
    variables: tuple[dict[str, str], ...]


def _in_any_order(kind: Family, pattern: list[Accesses], workload: Workload) -> Iterator[Cast]:
    """Every cast in which operands of products and ranks may stand in another order."""

    def extend(at: int, partial: _Partial) -> Iterator[_Partial]:
        if at == len(pattern):
            yield partial
            return
        for more in _next(pattern[at], workload.einsums[at], partial):
            yield from extend(at + 1, more)

    for whole in extend(0, _Partial({}, {}, ())):
        names = [role.name for role in kind.einsums]
        einsums = dict(zip(names, (einsum.name for einsum in workload.einsums), strict=True))
        yield Cast(kind, einsums, dict(whole.tensors), dict(zip(names, whole.variables, strict=True)))


def _next(roles: Accesses, einsum: Einsum, partial: _Partial) -> Iterator[_Partial]:
    """The partial cast and one Einsum more, in every way."""
    orders = permutations(einsum.inputs) if einsum.kind == "multiply" else [einsum.inputs]
    for inputs in orders:
        players = (einsum.output, *inputs)
        tensors = dict(partial.tensors)
        pairs = list(zip(roles, players, strict=True))
        if any(len(role.indices) != len(player.indices) for role, player in pairs):
            continue
        if any(tensors.setdefault(role.tensor, player.tensor) != player.tensor for role, player in pairs):
            continue
        if len(set(tensors.values())) < len(tensors):
            continue
        for names in _assignments(roles, players):
            found = {role.tensor: _order(role, player, names) for role, player in pairs}
            known = {tensor: order for tensor, order in found.items() if order is not None}
            if len(known) == len(found) and all(partial.orders.get(t, o) == o for t, o in known.items()):
                yield _Partial(tensors, {**partial.orders, **known}, (*partial.variables, names))


def _assignments(roles: Accesses, players: Accesses) -> Iterator[dict[str, str]]:
    """Every way to give the rank variables of an Einsum their roles: each stands in the same accesses as its role."""
    wanted, given = _signatures(roles), _signatures(players)
    if len(wanted) != len(given):
        return

    def assign(left: tuple[str, ...], names: dict[str, str]) -> Iterator[dict[str, str]]:
        if not left:
            yield dict(names)
            return
        for name, signature in given.items():
            if signature == wanted[left[0]] and name not in names.values():
                yield from assign(left[1:], {**names, left[0]: name})

    yield from assign(tuple(wanted), {})


def _signatures(accesses: Accesses) -> dict[str, tuple[int, ...]]:
    """Per rank variable and access the number of terms of the index that it stands in, 0 if in none."""
    variables = dict.fromkeys(v for access in accesses for v in access.variables)
    return {
        v: tuple(next((len(i.terms) for i in access.indices if v in i.variables), 0) for access in accesses)
        for v in variables
    }


def _order(role: Access, player: Access, names: Mapping[str, str]) -> tuple[int, ...] | None:
    """The rank of the player at each rank of the role; None if an index has no counterpart."""
    ranks = {frozenset(index.variables): rank for rank, index in enumerate(player.indices)}
    found = [ranks.get(frozenset(names[v] for v in index.variables)) for index in role.indices]
    return None if None in found else tuple(rank for rank in found if rank is not None)

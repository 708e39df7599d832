"""Where the store of a tensor that is written in parts or has views may stand: one for all, whole where it must be."""

from __future__ import annotations

from collections.abc import Iterator

from ...workload.parts import not_whole
from ..analysed import Analysed
from ..tree import Loop, Store, describe
from .reason import Reason


def part_problems(tree: Analysed, tensor: str) -> Iterator[Reason]:
    """Reasons about the stores of a tensor that is written in parts or has views (docs/model/parts.md, views.md).

    Loops of several trips above its backing store iterate the same whole rank for all who write or read it (of an input
    with views there are none); every other store of it serves one Einsum.
    """
    users = [e for e in tree.paths if tensor in tree.workload.einsum(e).tensors]
    stores: dict[tuple[int, ...], list[str]] = {}
    nodes: dict[tuple[int, ...], Store] = {}
    for user in users:
        for address, node in tree.trails[user]:
            if isinstance(node, Store) and tensor in node.tensors:
                stores.setdefault(address, []).append(user)
                nodes[address] = node
    why = not_whole(tree.workload, tensor)
    shared = [address for address, names in stores.items() if len(names) > 1]
    for address in shared[1:]:
        yield Reason(
            f"{tensor} {why}, so only its backing store may serve several Einsums; the one in "
            f"{nodes[address].memory} serves {', '.join(stores[address])}",
            nodes[address],
        )
    first = tree.paths[users[0]] if users else ()
    backing = next((i for i, n in enumerate(first) if isinstance(n, Store) and tensor in n.tensors), 0)
    for i, node in enumerate(first[:backing]):
        if not isinstance(node, Loop) or node.trips == 1:
            continue
        if tensor in tree.workload.inputs:
            yield Reason(f"'{describe(node)}' stands above the backing store of {tensor}, which {why}", node)
        else:
            sharing = [u for u in users if tree.shared(users[0], u) > i]
            yield from (Reason(words, node) for words in _loop_above(tree, tensor, sharing, node))


def _loop_above(tree: Analysed, tensor: str, users: list[str], loop: Loop) -> Iterator[str]:
    said = f"'{describe(loop)}' stands above the backing store of {tensor}, which {not_whole(tree.workload, tensor)}"
    viewed = tensor in tree.workload.viewed
    only = "that they do not have in common" if viewed else "of which some Einsum writes only a part"
    ranks: dict[int, str] = {}
    for user in users:
        variable = loop.variable(user)
        rank = None if variable is None else tree.workload.einsum(user).access(tensor).rank_of(variable)
        if rank is None:
            yield f"{said}; for {user} it iterates no rank of {tensor}"
        elif not tree.workload.tied(tensor, rank):
            yield f"{said}; for {user} it iterates rank {rank}, {only}"
        else:
            ranks.setdefault(rank, user)
    if len(ranks) > 1:
        each = ", ".join(f"rank {rank} for {user}" for rank, user in ranks.items())
        yield f"{said}; it iterates {each}"

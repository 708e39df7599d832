"""Tiles that stages hand on over a link: what may stand in one, and why not.

A link is a way and not a place: ``store LINK: T`` directly above a pipelined split says that every tile of T goes from
the store of the stage that computes it straight to the stores of the stages that read it. Comes in: a tree with sound
names. Goes out: every reason why a store in a link cannot be. docs/model/bindings.md.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from ...machine.levels import Link, Machine
from ...workload.einsum import Workload
from ...workload.parts import not_whole
from ..analysed import Analysed
from ..extents import Trail
from ..tree import Loop, Split, Store, describe
from .concurrency import stage_distance
from .reason import Reason


def link_problems(machine: Machine, tree: Analysed) -> Iterator[Reason]:
    """Reasons about every store that stands in a link of the machine."""
    names = {memory.name for memory in machine.memories if isinstance(memory, Link)}
    if not names:
        return
    paths = tree.trails
    for steps in paths.values():
        for place, (_, node) in enumerate(steps):
            if isinstance(node, Store) and node.memory in names:
                yield from _place_problems(machine, node, steps[place + 1 :])
                for tensor in node.tensors:
                    yield from _tensor_problems(tree.workload, machine, tensor, node, place, paths)


def _place_problems(machine: Machine, store: Store, below: Trail) -> Iterator[Reason]:
    link = machine.memory(store.memory)
    assert isinstance(link, Link)
    node = next(node for _, node in below if not isinstance(node, Store))
    if not isinstance(node, Split) or node.kind != "pipelined" or node.where != link.axis:
        below_it = f"'split pipelined @ {link.axis}', whose stages it joins"
        yield Reason(f"store {store.memory} must stand directly above a {below_it}", store)


def _tensor_problems(
    workload: Workload, machine: Machine, tensor: str, store: Store, place: int, paths: dict[str, Trail]
) -> Iterator[Reason]:
    said = f"store {store.memory}: {tensor}"
    producer = workload.producers.get(tensor)
    users = (*((producer,) if producer is not None else ()), *workload.consumers.get(tensor, ()))
    if producer is None or tensor in workload.outputs:
        yield Reason(f"{said} is no intermediate; a link hands on what one stage computes and others read", store)
        return
    if tensor in workload.parted:
        why = not_whole(workload, tensor)
        yield Reason(f"{said} {why}; a link hands on what one stage computes as a whole", store)
        return
    home = paths[producer][: place + 1]
    if outside := [user for user in users if paths[user][: place + 1] != home]:
        others = ", ".join(outside)
        yield Reason(f"{said} is also accessed by {others}, which does not stand below the link", store)
        return
    if any(isinstance(node, Store) and tensor in node.tensors for _, node in home[:-1]):
        yield Reason(f"{said} has a store further out; what crosses a link is stored in the stages only", store)
    split = next(i for i in range(place, len(paths[producer])) if isinstance(paths[producer][i][1], Split))
    room = []
    for user in users:
        if user != producer and paths[user][split + 1][0] == paths[producer][split + 1][0]:
            yield Reason(f"{said}: {user} stands in the same stage as {producer}, which needs no link", store)
            return
        access = workload.einsum(user).access(tensor)
        if not all(index.simple for index in access.indices):
            yield Reason(f"{said}: {user} reads it through a window, {access}; links hand on whole tiles", store)
        end = yield from _end_problems(machine, tensor, store, user, paths[user][split + 1 :])
        room.append(0 if end is None else end.slots or machine.memory(end.memory).capacity_share())
    yield from _spread_problems(workload, tensor, said, producer, paths[producer][split + 1 :])
    node = paths[producer][split][1]
    assert isinstance(node, Split)
    wanted = store.slots or 1 + max(stage_distance(node, producer, user) for user in users)
    if all(room) and wanted > room[0] + min(room[1:]):
        most = room[0] + min(room[1:])
        yield Reason(f"{said} has {wanted} tiles on the way; the stores at its ends have room for {most}", store)


def _end_problems(
    machine: Machine, tensor: str, link: Store, user: str, below: Trail
) -> Generator[Reason, None, Store | None]:
    """Why a stage has no store of the whole tile; returns the store, None if there are reasons."""
    said = f"store {link.memory}: {tensor}"
    end = next((i for i, (_, node) in enumerate(below) if isinstance(node, Store) and tensor in node.tensors), None)
    if end is None:
        yield Reason(f"{said} has no store in the stage of {user}; a link holds nothing", link)
        return None
    for _, node in below[:end]:
        if isinstance(node, Split):
            between = f"between the link and the store of {tensor} for {user}; that is not done"
            yield Reason(f"{said}: a split stands {between}", node)
            return None
        if isinstance(node, Loop) and node.axis is None and node.trips > 1:
            between = f"between the link and the store of {tensor} for {user}"
            yield Reason(f"{said}: '{describe(node)}' stands {between}", node)
            return None
    store = below[end][1]
    assert isinstance(store, Store)
    if isinstance(machine.memory(store.memory), Link):
        words = f"{said} goes on over another link in the stage of {user}; links inside a stage are not done"
        yield Reason(words, store)
        return None
    return store


def _spread_problems(workload: Workload, tensor: str, said: str, producer: str, below: Trail) -> Iterator[Reason]:
    """Instances of the stage that writes each have a part of the tile of their own: nothing is added on a link."""
    for _, node in below:
        if isinstance(node, Store) and tensor in node.tensors:
            return
        if not isinstance(node, Loop) or node.axis is None or node.trips == 1:
            continue
        if node.variable(producer) not in workload.einsum(producer).output.variables:
            words = f"'{describe(node)}' spreads a sum over instances; parts cannot be added on a link"
            yield Reason(f"{said}: {words}", node)

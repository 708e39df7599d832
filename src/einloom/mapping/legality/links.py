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


def link_problems(machine: Machine, tree: Analysed) -> Iterator[str]:
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


def _place_problems(machine: Machine, store: Store, below: Trail) -> Iterator[str]:
    link = machine.memory(store.memory)
    assert isinstance(link, Link)
    node = next(node for _, node in below if not isinstance(node, Store))
    if not isinstance(node, Split) or node.kind != "pipelined" or node.where != link.axis:
        yield f"store {store.memory} must stand directly above a 'split pipelined @ {link.axis}', whose stages it joins"


def _tensor_problems(
    workload: Workload, machine: Machine, tensor: str, store: Store, place: int, paths: dict[str, Trail]
) -> Iterator[str]:
    said = f"store {store.memory}: {tensor}"
    producer = workload.producers.get(tensor)
    users = (*((producer,) if producer is not None else ()), *workload.consumers.get(tensor, ()))
    if producer is None or tensor in workload.outputs:
        yield f"{said} is no intermediate; a link hands on what one stage computes and others read"
        return
    if tensor in workload.parted:
        yield f"{said} {not_whole(workload, tensor)}; a link hands on what one stage computes as a whole"
        return
    home = paths[producer][: place + 1]
    if outside := [user for user in users if paths[user][: place + 1] != home]:
        yield f"{said} is also accessed by {', '.join(outside)}, which does not stand below the link"
        return
    if any(isinstance(node, Store) and tensor in node.tensors for _, node in home[:-1]):
        yield f"{said} has a store further out; what crosses a link is stored in the stages only"
    split = next(i for i in range(place, len(paths[producer])) if isinstance(paths[producer][i][1], Split))
    room = []
    for user in users:
        if user != producer and paths[user][split + 1][0] == paths[producer][split + 1][0]:
            yield f"{said}: {user} stands in the same stage as {producer}, which needs no link"
            return
        access = workload.einsum(user).access(tensor)
        if not all(index.simple for index in access.indices):
            yield f"{said}: {user} reads it through a window, {access}; links hand on whole tiles"
        end = yield from _end_problems(machine, tensor, said, user, paths[user][split + 1 :])
        room.append(0 if end is None else end.slots or machine.memory(end.memory).capacity_share())
    yield from _spread_problems(workload, tensor, said, producer, paths[producer][split + 1 :])
    node = paths[producer][split][1]
    assert isinstance(node, Split)
    wanted = store.slots or 1 + max(stage_distance(node, producer, user) for user in users)
    if all(room) and wanted > room[0] + min(room[1:]):
        yield f"{said} has {wanted} tiles on the way; the stores at its ends have room for {room[0] + min(room[1:])}"


def _end_problems(
    machine: Machine, tensor: str, said: str, user: str, below: Trail
) -> Generator[str, None, Store | None]:
    """Why a stage has no store of the whole tile; returns the store, None if there are reasons."""
    end = next((i for i, (_, node) in enumerate(below) if isinstance(node, Store) and tensor in node.tensors), None)
    if end is None:
        yield f"{said} has no store in the stage of {user}; a link holds nothing"
        return None
    for _, node in below[:end]:
        if isinstance(node, Split):
            yield f"{said}: a split stands between the link and the store of {tensor} for {user}; that is not done"
            return None
        if isinstance(node, Loop) and node.axis is None and node.trips > 1:
            yield f"{said}: '{describe(node)}' stands between the link and the store of {tensor} for {user}"
            return None
    store = below[end][1]
    assert isinstance(store, Store)
    if isinstance(machine.memory(store.memory), Link):
        yield f"{said} goes on over another link in the stage of {user}; links inside a stage are not done"
        return None
    return store


def _spread_problems(workload: Workload, tensor: str, said: str, producer: str, below: Trail) -> Iterator[str]:
    """Instances of the stage that writes each have a part of the tile of their own: nothing is added on a link."""
    for _, node in below:
        if isinstance(node, Store) and tensor in node.tensors:
            return
        if not isinstance(node, Loop) or node.axis is None or node.trips == 1:
            continue
        if node.variable(producer) not in workload.einsum(producer).output.variables:
            yield f"{said}: '{describe(node)}' spreads a sum over instances; parts cannot be added on a link"

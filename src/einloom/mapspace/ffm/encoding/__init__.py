"""Trees of `ffm` as skeletons and privates: what samplers, moves and crossover change (docs/mappers.md).

A skeleton says what the Einsums share: the memory that backs each intermediate, how many loops stand above that store,
and those loops. The privates of an Einsum are its compute unit, its own stores, its own loops, and what the loops of a
variable cover that is cut unevenly. Splits follow.
"""

from __future__ import annotations

from functools import cached_property
from random import Random

from ....dataclass import dataclass
from ....machine.levels import Machine
from ....mapping.tree import Mapping
from ....workload.einsum import Workload
from ...space import Mapspace
from . import crossover, moves, retiling, trees
from . import sample as sampling
from .checks import fault
from .facts import Facts
from .rooms import overflow
from .skeletons import NoProposal
from .state import State

SHARED = 0.3  # share of moves that change what Einsums share
__all__ = ["Encoding", "NoProposal", "State"]


@dataclass(frozen=True)
class Encoding:
    """States of one workload on one machine, in `ragged` with uneven tiles, in every order, with the stores for several
    readers and the groups that the space has."""

    workload: Workload
    machine: Machine
    mapspace: Mapspace

    @cached_property
    def facts(self) -> Facts:
        """The tables with the Einsums in program order; those of a state are `of(state)`."""
        return Facts(self.workload, self.machine, self.mapspace)

    def of(self, state: State) -> Facts:
        """The tables with the Einsums in the state's order."""
        return self.facts.in_order(state.sequence)

    def sample(self, rng: Random, fuse: float | None = None) -> State | None:
        """A state that keeps the rules and fits its memories; None if this draw gave none.

        fuse: the share of the intermediates that are tried to be brought into an inner memory; None draws it.
        """
        return sampling.sampled(self.facts.drawn_order(rng), rng, fuse)

    def unfused(self, rng: Random) -> State | None:
        """As `sample` with nothing brought into an inner memory, and Einsums that are alike with the same privates."""
        return sampling.unfused(self.facts, rng)

    def propose(self, state: State, rng: Random, shared: float = SHARED, einsum: int | None = None) -> State:
        """A state one move away that keeps the rules; it may not fit. Raises NoProposal with a rule's name.

        shared: the share of moves that change what Einsums share. einsum: the one whose privates the others change.
        """
        return moves.proposed(self.of(state), state, rng, shared, einsum)

    def retiled(self, state: State, i: int, rng: Random) -> State:
        """In `ragged`, a state that fits with other tiles of the loops that Einsum i shares. Raises NoProposal."""
        return retiling.retiled(self.of(state), state, i, rng, self.fits)

    def cross(self, one: State, other: State, rng: Random) -> State:
        """A state that has something of both. Raises NoProposal."""
        return crossover.crossed(self.facts, one, other, rng)

    def fitted(self, state: State, rng: Random, steps: int | None = None) -> State | None:
        """The state changed until all its tiles fit; None if so many steps did not do."""
        return sampling.fitted(self.of(state), state, rng, steps)

    def fault(self, state: State) -> str | None:
        """The first rule that the state breaks, ``capacity`` among them; None if its tree is legal and inside."""
        facts = self.of(state)
        return fault(facts, state) or ("capacity" if overflow(facts, state) else None)

    def fits(self, state: State) -> bool:
        """True if all tiles of a state that keeps the rules fit their memories."""
        return overflow(self.of(state), state) is None

    def decode(self, state: State) -> Mapping:
        """The tree of a state."""
        return trees.decode(self.of(state), state)

    def encode(self, tree: Mapping) -> State | None:
        """The state of a tree in normal form; None for what states do not write: branches of several Einsums that run
        at the same time, and uneven tiles below another loop over the same variable."""
        return trees.encode(self.facts, tree)

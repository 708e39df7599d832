"""The door of mapspaces: one of another package is found by its name, searched, and held to its own definition."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from einloom.mapping.tree import Mapping
from einloom.mapspace.ffm.space import Ffm
from einloom.mapspace.registry import space_for
from einloom.mapspace.space import SPACES, Mapspace, Space
from einloom.problem import Budget, Guarantee, Problem
from einloom.result import Result
from einloom.search.door import searched
from einloom.search.evaluator import Evaluator
from einloom.search.method import Capabilities, Watcher
from einloom.search.registry import method
from einloom.testing.packages import installed
from einloom.testing.spaces import space_faults
from einloom.testing.tiny import tiny_problem

EXAMPLE = Path(__file__).parents[2] / "examples" / "unfused-space"


class FirstOfAll:
    """A method that asks the space for one tree."""

    name, guarantee, able = "first", Guarantee.NONE, Capabilities()

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        tree = space.sample(Random(1))
        assert tree is not None
        price.of(tree)
        return price.result(self.name)


@pytest.fixture
def unfused(tmp_path: Path) -> Iterator[None]:
    with installed(EXAMPLE, tmp_path / "site"):
        yield


@pytest.mark.usefixtures("unfused")
def test_a_space_of_another_package_is_searched() -> None:
    chain = tiny_problem("chain")
    mine = Problem(chain.workload, chain.machine, Mapspace("unfused"), chain.objective)
    space = space_for(mine.workload, mine.machine, mine.mapspace)
    assert all(space.contains(tree) == (not space.outside(tree)) for tree in islice(space.trees(), 50))
    found = searched(FirstOfAll(), mine)
    assert space.contains(found.mapping) and found.mapspace.name == "unfused"
    best = searched(method("exhaustive"), chain)
    assert not space.contains(best.mapping) and "unfused: B" in space.outside(best.mapping)[-1]


@pytest.mark.usefixtures("unfused")
def test_the_example_has_no_faults() -> None:
    from einloom.reading.plugins import loaded

    assert space_faults(loaded("einloom.spaces", "unfused"), Mapspace("unfused")) == ()


@pytest.mark.parametrize("name", SPACES)
def test_the_shipped_spaces_have_no_faults(name: str) -> None:
    assert space_faults(Ffm, Mapspace(name), ("tight", "chain")) == ()


class Wandering(Ffm):
    """Draws what its own definition forbids."""

    def outside(self, tree: Mapping) -> tuple[str, ...]:
        return (*super().outside(tree), "nothing is inside")

    def sample(self, rng: Random) -> Mapping | None:
        return Ffm(self.workload, self.machine, self.mapspace).sample(rng)


class Fickle(Ffm):
    def sample(self, rng: Random) -> Mapping | None:
        return super().sample(Random())


class Stuttering(Ffm):
    def trees(self) -> Iterator[Mapping]:
        return (tree for found in super().trees() for tree in (found, found))


class Circling(Ffm):
    def neighbours(self, tree: Mapping, rng: Random) -> Iterator[Mapping]:
        return iter([tree, *islice(super().neighbours(tree, rng), 1)])


class Silent(Ffm):
    def sample(self, rng: Random) -> Mapping | None:
        return None


class Narrow(Ffm):
    def tilings(self, skeleton: Any) -> Any:
        return (block[:, :0] for block in super().tilings(skeleton))


class Overfull(Ffm):
    """Draws and contains what does not fit."""

    def contains(self, tree: Mapping) -> bool:
        return True

    def sample(self, rng: Random) -> Mapping | None:
        return next(tree for tree in super().trees() if not super(Overfull, self).contains(tree))


class Bare(Ffm):
    def tilings(self, skeleton: Any) -> Any:
        return iter(())


class Wordy(Ffm):
    def sample(self, rng: Random) -> Mapping | None:
        return "tree"  # type: ignore[return-value]


class Unlisted(Ffm):
    def trees(self) -> Iterator[Mapping]:
        return iter(())


class Raising(Ffm):
    def neighbours(self, tree: Mapping, rng: Random) -> Iterator[Mapping]:
        raise SystemExit(0)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (Wordy, "it draws str, not a Mapping"),
        (Unlisted, "it draws a tree, and lists none"),
        (Raising, "it raises SystemExit: 0"),
        (Wandering, "a tree that is outside: nothing is inside"),
        (Fickle, "one seed draws two trees"),
        (Stuttering, "it lists a tree twice"),
        (Circling, "a tree is its own neighbour"),
        (Silent, "it draws nothing"),
        (Narrow, "its tilings are"),
        (Overfull, "it draws a tree that is illegal"),
        (Bare, "its tilings leave out the tiles of a tree inside"),
    ],
)
def test_the_kit_finds_every_planted_mistake(broken: type[Ffm], words: str) -> None:
    assert any(words in fault for fault in space_faults(broken, names=("tight",)))

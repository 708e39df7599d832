"""The door of search methods: what comes in by name, as an object or from a package, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from click.testing import CliRunner

import einloom as el
from broken_methods import (
    Boasting,
    Deaf,
    Fickle,
    Flattering,
    Idle,
    Late,
    Leaving,
    Listed,
    Needy,
    Posing,
    Sound,
    Unlicensed,
    Wandering,
)
from einloom.cli import main
from einloom.errors import BrokenMethod, Ended, SpecError
from einloom.mapping.tree import Mapping
from einloom.mapspace.registry import space_for
from einloom.problem import Budget
from einloom.questions import problem
from einloom.search.evaluator import Evaluator, Stop
from einloom.search.method import Recorder
from einloom.search.registry import SHIPPED, method, methods
from einloom.testing.methods import method_faults
from einloom.testing.packages import installed
from einloom.testing.tiny import tiny_problem

EXAMPLE = Path(__file__).parents[2] / "examples" / "random-sampling"
TINY = ("matmul:m=2,n=2,k=2", "simple:glb_bits=16,dram_energy=10")


@pytest.fixture
def random_sampling(tmp_path: Path) -> Iterator[None]:
    with installed(EXAMPLE, tmp_path / "site"):
        yield


@pytest.mark.usefixtures("random_sampling")
def test_a_method_of_another_package_is_found_by_its_entry_point() -> None:
    assert methods() == ("exact", "exhaustive", *SHIPPED[2:], "random-sampling")
    options = {"seed": "3", "points": 5}
    found = el.map(*TINY, method="random-sampling", method_options=options)
    assert found.method == "random-sampling" and found.energy >= el.map(*TINY).energy
    asked = ["map", *TINY, "--method", "random-sampling", "--method-option", "seed=3", "--method-option", "points=5"]
    ran = CliRunner().invoke(main, [*asked, "--json", "-"])
    assert ran.exit_code == 0 and json.loads(ran.stdout)["mapping"] == json.loads(found.to_json())["mapping"]
    for text, words in (
        ("sed=3", "no option 'sed'; it has seed, points; did you mean 'seed'"),
        ("seed=x", "'x' is not an integer"),
        ("points=0", "at least 1 is needed"),
        ("points", "is not KEY=VALUE"),
    ):
        ran = CliRunner().invoke(main, [*asked[:5], "--method-option", text])
        assert ran.exit_code == 2 and words in ran.output, ran.output


def test_an_offer_that_is_no_mapping_is_dropped_for_the_next_best() -> None:
    asked = problem(*TINY)
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    good = space.sample(Random(0))
    assert good is not None
    unfinished = Mapping(good.nest[:1])
    price = Evaluator(asked, space)
    value = asked.objective.value(el.evaluate(*TINY, good))
    for number in range(50):
        price.offer(value, lambda: good)
        price.offer(value / (number + 2), lambda: unfinished)
    found = price.result("none")
    assert found.value == value and found.certificate is not None
    counts = found.certificate.counts
    assert counts["illegal"] > 20 and counts["evaluated"] == 50


@pytest.mark.usefixtures("random_sampling")
def test_the_example_has_no_faults() -> None:
    assert method_faults(lambda: method("random-sampling", {"points": 4}), steps=8) == ()


@pytest.mark.parametrize("name", ["exhaustive", pytest.param("exact", marks=pytest.mark.slow)])
def test_the_shipped_methods_have_no_faults(name: str) -> None:
    assert method_faults(lambda: method(name), steps=10**6, patience=60.0) == ()


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (Flattering, "its mapping costs"),
        (Deaf, "asked to stop, it goes on"),
        (Fickle, "two answers"),
        (Wandering, "outside the space: rule 2"),
        (Boasting, "claims a bound"),
        (Late, "its certificate says"),
        (Idle, "it finds a mapping of none of one, tight"),
        (Leaving, "it raises SystemExit: 0"),
        (Unlicensed, "it cannot be made: RuntimeError: no licence"),
        (Needy, "it cannot be made: TypeError"),
        (Listed, "its able is {'starts': True}, and no Capabilities"),
        (Posing, "it calls itself 'exact', as a method that ships"),
    ],
)
def test_the_kit_finds_every_planted_mistake(broken: type[Sound], words: str) -> None:
    assert any(words in fault for fault in method_faults(broken, steps=5, patience=2.0))


@pytest.mark.usefixtures("random_sampling")
def test_the_kit_knows_the_entry_points_of_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    made = type(method("random-sampling"))
    monkeypatch.setattr(made, "name", "sampling")
    faults = method_faults(lambda: made(points=1), steps=2)
    assert "it calls itself 'sampling', and its entry point is called 'random-sampling'" in faults


def test_the_kit_finds_nothing_where_nothing_is_wrong() -> None:
    assert method_faults(Sound, steps=5) == ()


@pytest.mark.parametrize(
    ("broken", "words"), [(Flattering, "the search says energy"), (Wandering, "outside the space: rule 2")]
)
def test_a_wrong_answer_does_not_leave(broken: type[Sound], words: str) -> None:
    with pytest.raises(BrokenMethod, match=f"method 'sound' is broken: .*{words}"):
        el.map(*TINY, method=broken())


def test_a_method_that_fails_is_named() -> None:
    class Failing(Sound):
        def search(self, *given: object) -> el.Result:  # type: ignore[override]
            return {}["nothing"]

    with pytest.raises(BrokenMethod, match="'sound' is broken: it ended with KeyError: 'nothing'"):
        el.map(*TINY, method=Failing())


def test_what_a_method_cannot_do_is_refused() -> None:
    start = el.map(*TINY)
    with pytest.raises(SpecError, match=r"'sound' cannot start from a known mapping; did you mean 'exact'"):
        el.map(*TINY, method=Sound(), start=start)
    with pytest.raises(SpecError, match=r"'sound' finds one mapping, objective 'pareto' is a front"):
        el.map(*TINY, method=Sound(), objective="pareto")
    with pytest.raises(SpecError, match=r"give an object: Sound\(\)"):
        el.map(*TINY, method=Sound)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="it lacks name"):
        el.map(*TINY, method=3)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="options are for a method that is named"):
        el.map(*TINY, method=Sound(), method_options={"seed": 1})
    with pytest.raises(SpecError, match=r"unknown method 'exakt'.*did you mean 'exact'"):
        el.map(*TINY, method="exakt")


def test_a_budget_ends_every_method() -> None:
    found = el.map(*TINY, method=Sound(), steps=2)
    assert found.ended is Ended.STEPS and found.certificate is not None
    assert found.certificate.counts["evaluated"] + found.certificate.counts["illegal"] == 2
    heard = Recorder(stop=lambda: heard.best is not None)
    assert el.map(*TINY, method=Sound(), watch=heard).ended is Ended.STOPPED
    assert heard.best is not None and heard.counts["evaluated"] == 1


def test_many_prices_rows_as_one_by_one() -> None:
    asked = problem("matmuls:n=2,m=16,kn=8", "simple:glb_bits=1024", "edp")
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    price = Evaluator(asked, space)

    trees = [tree for seed in range(6) if (tree := space.sample(Random(seed))) is not None]
    skeleton = max(map(space.skeleton, trees), key=lambda one: sum(map(len, space.tilings(one))))
    rows = np.concatenate(list(space.tilings(skeleton)))
    values = price.many(skeleton, rows)
    alone = Evaluator(asked, space)
    assert len(rows) > 3 and values.tolist() == [alone.of(space.tree(skeleton, row)).value for row in rows]
    assert all(not space.outside(space.tree(skeleton, row)) for row in rows)
    assert (price.value, price.best) == (alone.value, alone.best) and price.evaluated == alone.evaluated


def test_many_prices_no_more_rows_than_the_budget_has_left() -> None:
    asked = problem("matmul:m=8,n=8,k=8", "simple:glb_bits=512", "energy")
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    tree = next(tree for seed in range(9) if (tree := space.sample(Random(seed))) is not None)
    price, skeleton = Evaluator(asked, space, Budget(steps=5)), space.skeleton(tree)
    price.of(tree)
    price.of(tree)
    rows = np.concatenate([*space.tilings(skeleton)] * 6)
    assert len(price.many(skeleton, rows)) == 3 and price.evaluated + price.illegal == 5


def test_samples_and_neighbours_are_members() -> None:

    for name in ("one", "tight", "spread", "chain", "window"):
        asked = tiny_problem(name)
        space = space_for(asked.workload, asked.machine, asked.mapspace)
        rng, seen = Random(1), set()
        for _ in range(5):
            tree = space.sample(rng)
            assert tree is not None and space.contains(tree)
            seen |= {tree, *space.neighbours(tree, rng)}
        assert len(seen) > 3 and all(space.contains(tree) for tree in seen)
    hopeless = tiny_problem("hopeless")
    assert space_for(hopeless.workload, hopeless.machine, hopeless.mapspace).sample(Random(1)) is None


def test_an_evaluator_without_budget_left_stops() -> None:
    asked = tiny_problem("one")
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    price = Evaluator(asked, space, Budget(steps=1))
    tree = next(iter(space.trees()))
    price.of(tree)
    with pytest.raises(Stop):
        price.of(tree)
    assert price.stopped() and price.ended is Ended.STEPS

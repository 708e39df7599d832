"""Random problems: what is drawn, how one is made smaller, how a run is taken up, and old mistakes brought back."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import combinations, islice
from pathlib import Path
from random import Random

import pytest

from einloom.testing.problems.claims import ProblemTrees, check
from einloom.testing.problems.dimensions import DIMENSIONS, LATER, LATEST, dimensions_of, impossible
from einloom.testing.problems.drawing import RARE_PAIR, draw, sketches, wanted
from einloom.testing.problems.files import read_folder
from einloom.testing.problems.keys import known, used
from einloom.testing.problems.machines import machine
from einloom.testing.problems.spaces import space

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = {
    "an Einsum: inputs": "names for NumPy's notation, another way to write the same Einsum",
    "an Einsum: output": "names for NumPy's notation, another way to write the same Einsum",
}
NARROW = (
    "copies only",
    "copy",
    "maximum",
    "one memory",
    "read output",
    "readers with the fused rank",
    "readers without it",
    "copy held behind a fanout",
    "home by role",
    "store behind what backs",
    "store over two readers",
    "wider for a consumer",
    *LATER,
)


@pytest.fixture(autouse=True)
def _bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def dice(rng: Random) -> frozenset[str]:
    """Half of the dimensions, of those that leave little room for others fewer."""
    return frozenset(name for name in DIMENSIONS if rng.random() < (0.05 if name in NARROW else 0.5))


def test_every_key_and_word_of_the_files_is_drawn() -> None:
    """Whatever the schema of workload, machine and mapspace files has; what is left out has a reason."""
    seen: set[str] = set()
    for seed in range(300):
        rng = Random(f"keys {seed}")
        on = dice(rng)
        for files in islice(sketches(rng, on), 1):
            workload = files.read[0]
            for chip in (machine(rng, on, workload, False) for _ in range(8)):
                plain = replace(files, machine=chip, mapspace={"schema": "mapspace/1"}).read[1]
                for _ in range(3):
                    found = replace(files, machine=chip, mapspace=space(rng, on, workload, plain))
                    seen |= used(found)
                assert found.read[1] == plain
        if known() - seen <= LEFT_OUT.keys():
            break
    assert known() - seen == LEFT_OUT.keys()
    assert seen <= known()


@pytest.mark.slow
def test_problems_have_what_they_are_drawn_for() -> None:
    drawn = [draw(seed) for seed in range(5, 45)]
    assert sum(not one.lacks for one in drawn) >= 36
    assert all(one.has == dimensions_of(*one.files.read) for one in drawn)
    assert draw(7).files == draw(7).files
    common = Counter(name for one in drawn for name in one.has)
    assert len(common) > len(DIMENSIONS) // 2
    assert not any(impossible(a, b) for one in drawn for a in one.has for b in one.has)


def test_arrangements_of_memories_stand_beside_each_other() -> None:
    """Each has memories of its own, so that one does not undo the other."""
    for pair in combinations((*LATEST, "store over two readers", "store behind what backs"), 2):
        if {*pair} & {*LATEST}:
            drawn = [next(sketches(Random(seed), frozenset(pair), RARE_PAIR), None) for seed in range(6)]
            has = [{*pair} <= dimensions_of(*files.read) for files in drawn if files is not None]
            assert has and all(has), pair


def test_a_problem_is_made_smaller_as_long_as_it_shows_the_same(tmp_path: Path) -> None:
    """What is looked for here: a copy and a memory of limited size."""
    from einloom.testing.problems.minimise import minimised

    rng = Random(2)
    files = next(sketches(rng, frozenset(("copy", "repeat", "toll", "small outermost memory", "keep or bypass"))))

    def shows(smaller: object) -> bool:
        workload, machine, _ = smaller.read  # type: ignore[attr-defined]
        sized = any(memory.size is not None for memory in machine.memories)
        return any(e.kind == "copy" for e in workload.einsums) and sized

    assert shows(files)
    small = minimised(files, shows)
    assert shows(small)
    assert small.workload.keys() <= {"schema", "name", "ranks", "bits", "einsums"}
    assert len(small.workload["einsums"]) == 1 and set(small.workload.get("ranks", {}).values()) <= {1}
    assert len(small.machine["levels"]) <= 3 and small.mapspace == {"schema": "mapspace/1"}
    small.write(tmp_path / "found")
    assert read_folder(tmp_path / "found") == small.read


def test_a_run_is_taken_up_and_what_it_finds_is_kept(tmp_path: Path) -> None:
    from bench.truth import table
    from bench.truth.planted import PLANTS, planted, shows
    from bench.truth.runs import known as outcomes_of
    from bench.truth.runs import run

    path, found = tmp_path / "outcomes.jsonl", tmp_path / "found"
    first = run(range(3), path, found)
    path.write_text(path.read_text() + '{"seed": 3, "cut of')
    assert outcomes_of(path) == first
    path.write_text("".join(line + "\n" for line in path.read_text().splitlines()[:3]))
    assert run(range(3), path, found) == first and not found.exists()
    rows = table.counts(first)
    assert rows[0]["problems"] == 3 and [row["dimension"] for row in rows[1:]] == list(DIMENSIONS)
    repeated = next(one for one in PLANTS if one.name == "repeated-operand")
    seed = next(
        s
        for s in range(3, 400)
        if "repeated operand" in wanted(s).core and shows(repeated, ProblemTrees(*draw(s).files.read, s))
    )
    with planted(repeated):
        run([seed], path, found)
    folder = next(found.iterdir())
    claim = json.loads((folder / "note.json").read_text())["claim"]
    assert check(read_folder(folder), seed).failed == {}
    with planted(repeated):
        assert claim in check(read_folder(folder), seed).failed


@pytest.mark.slow
def test_further_seeds_complete_the_pairs_that_are_rare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.truth import runs

    path, found = tmp_path / "outcomes.jsonl", tmp_path / "found"
    outcomes = runs.run(range(2), path, found)
    asked = {seed: wanted(seed).core for seed in range(2, 30)}
    rare, common = list({core: None for core in asked.values() if len(core) == 2})[:2]
    counts = runs.pair_counts

    def counted(chosen: list[runs.Outcome]) -> Counter[tuple[str, str]]:
        return Counter({rare: counts(chosen)[rare], common: 99})

    monkeypatch.setattr(runs, "pair_counts", counted)
    monkeypatch.setattr(runs, "NEEDED", counted(outcomes)[rare] + 1)
    seed = next(seed for seed, core in asked.items() if core == rare)
    more = runs.completed(outcomes, [*(s for s, core in asked.items() if core == common), seed], path, found)
    assert [one.seed for one in more] == [0, 1, seed] and set(rare) <= set(more[-1].has)
    assert runs.completed(outcomes, [seed], path, found) == more == runs.known(path)


def test_seeds_ask_for_a_rare_pair_until_enough_problems_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.truth import runs, table

    rare, drawn_to = ("scalar", "repeat"), ("readers with the fused rank", "copies only")
    monkeypatch.setattr(runs, "possible_pairs", lambda: [rare, drawn_to, ("window", "must")])
    before = {rare: runs.NEEDED - 2, drawn_to: runs.NEEDED - 1, ("window", "must"): runs.NEEDED}
    path = tmp_path / "outcomes.jsonl"
    outcomes = runs.evened(before, 9, path, tmp_path / "found")
    assert runs.known(path) == outcomes == runs.evened(before, 9, path, tmp_path / "found")
    has = runs.pair_counts(outcomes)
    assert has[rare] >= 2 and has[drawn_to] >= 1
    assert {wanted(one.seed).core for one in outcomes} == {rare, drawn_to} and len(outcomes) <= 3
    assert not any(one.failed for one in outcomes)
    assert runs.evened(before, 0, path, tmp_path / "found") == outcomes
    rows = {(row["one"], row["other"]): row for row in table.rare_rows(before, outcomes)}
    assert rows[rare]["together"] == before[rare] + has[rare] and ("window", "must") not in rows


def test_a_pair_that_is_never_drawn_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.truth import runs

    asked: list[int] = []
    monkeypatch.setattr(runs, "possible_pairs", lambda: [("scalar", "repeat")])
    monkeypatch.setattr(runs, "draw_with", lambda want, seed: asked.append(seed))
    assert runs.evened({}, 30, tmp_path / "outcomes.jsonl", tmp_path / "found") == []
    assert len(asked) == runs.MISSES


@pytest.mark.slow
def test_pairs_that_are_said_to_be_impossible_are() -> None:
    from bench.truth.impossible import every_pair, looked

    seen = every_pair(6)
    assert all(one.holds for one in seen), [one for one in seen if not one.holds]
    assert sum(one.sentences for one in seen) > 20 and sum(one.refused for one in seen) > 20
    assert not looked("one memory", "home by role", 10).holds
    assert not looked("backed behind an idle memory", "groups", 10).holds


def test_every_old_mistake_can_be_brought_back() -> None:
    from bench.truth.planted import PLANTS, planted

    for one in PLANTS:
        with planted(one):
            pass
    assert len({one.name for one in PLANTS}) == len(PLANTS) >= 14


@pytest.mark.parametrize("name", ["scalar", "constant-index", "read-output", "home-inside"])
def test_an_old_mistake_is_seen_on_its_own_problem(name: str) -> None:
    from bench.truth.planted import PLANTS, planted

    from einloom.machine.files import read_machine
    from einloom.mapspace.space import Mapspace
    from einloom.workload.files import read_workload

    folder = ROOT / "tests" / "search" / "defects" / name
    read = read_workload(folder / "workload.yaml"), read_machine(folder / "machine.yaml"), Mapspace()
    assert check(read, 2, ("exact = all trees",)).failed == {}
    with planted(next(one for one in PLANTS if one.name == name)):
        assert check(read, 2, ("exact = all trees",)).failed

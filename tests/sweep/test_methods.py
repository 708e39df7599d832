"""Several methods on one problem: the gap table, the folder that is taken up, the page, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from einloom.cli import main
from einloom.errors import SpecError
from einloom.problem import Budget
from einloom.sweep import methods
from einloom.sweep.methods import MethodRun, MethodRuns, compare_methods, medians, value_at
from einloom.testing.tiny import tiny_problem

NAMES = ["matmuls:n=2,m=16,kn=16", "simple:glb_bits=2048"]


def asked(*words: str) -> Result:
    return CliRunner().invoke(main, ["compare", *words], catch_exceptions=False)


def test_the_verb_prints_gaps_to_the_optimum_and_takes_a_folder_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, page = tmp_path / "runs", tmp_path / "page.html"
    words = [*NAMES, "--methods", "random,exact,anneal", "--seeds", "2", "--budget-evaluations", "40"]
    ran = asked(*words, "--folder", str(folder), "--output", str(page), "--json", str(tmp_path / "gaps.json"))
    assert ran.exit_code == 0 and "gaps to the proven optimum, 2.6624e+05 J" in ran.stdout
    data = json.loads((tmp_path / "gaps.json").read_text())
    assert data["proven"] and [one["method"] for one in data["methods"]] == ["random", "exact", "anneal"]
    assert [(run["method"], run["seed"]) for run in data["runs"]][:3] == [("random", 0), ("random", 1), ("exact", None)]
    assert all(run["points"] == 40 for run in data["runs"] if run["seed"] is not None)
    assert all(run["value"] >= data["reference"] for run in data["runs"])
    assert "<svg" in page.read_text() and "random" in page.read_text()
    monkeypatch.setattr(methods, "_searched", None)  # nothing is run again
    again = asked(*words, "--folder", str(folder), "--csv", "-")
    assert again.exit_code == 0 and again.stdout.splitlines()[0].startswith("method,runs,found,median")


@pytest.mark.parametrize("name", ["random-0-40points.csv", "random-0-40points.json", "exact.json"])
@pytest.mark.parametrize("text", ["", "points\nx\n", "{"])
def test_a_broken_file_of_a_folder_is_made_again(tmp_path: Path, name: str, text: str) -> None:
    words = [*NAMES, "--methods", "random,exact", "--budget-evaluations", "40", "--folder", str(tmp_path)]
    before = asked(*words, "--csv", "-")
    (tmp_path / name).write_text(text)
    ran = asked(*words, "--csv", "-")
    assert ran.exit_code == 0 and name in ran.stderr and "again" in ran.stderr
    assert ran.stdout.splitlines()[1].split(",")[:5] == before.stdout.splitlines()[1].split(",")[:5]
    assert (tmp_path / name).read_text() != text


def test_a_folder_of_another_question_is_refused(tmp_path: Path) -> None:
    words = ["--methods", "random,exact", "--seeds", "2", "--budget-evaluations", "20", "--folder", str(tmp_path)]
    assert asked(*NAMES, *words).exit_code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for other, said in (
        (["matmul:m=2,n=2,k=2", NAMES[1]], "workload"),
        ([*NAMES, "--objective", "latency"], "objective"),
    ):
        ran = asked(*other, *words)
        assert ran.exit_code == 2 and f"another question ({said}: " in ran.output and "choose another" in ran.output
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_answer_of_another_method_is_refused(tmp_path: Path) -> None:
    words = ["--methods", "exact,anneal", "--budget-evaluations", "20", "--folder", str(tmp_path)]
    assert asked(*NAMES, *words).exit_code == 0
    (tmp_path / "anneal-0-20points.json").write_bytes((tmp_path / "exact.json").read_bytes())
    ran = asked(*NAMES, *words)
    assert ran.exit_code == 2 and "by exact, not by anneal" in ran.output


def test_a_method_that_does_not_answer_is_named_before_any_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "_searched", None)  # nothing is run
    folder = tmp_path / "runs"
    found = asked(*NAMES, "--methods", "exact,random,principles", "--folder", str(folder))
    assert found.exit_code == 2 and "method principles does not answer this problem" in found.output
    assert not folder.exists()


def test_methods_are_compared_within_the_limits_that_map_takes(tmp_path: Path) -> None:
    words = [
        "matmul:m=13,n=13,k=13",
        "simple:dram_energy=100,glb_bits=400",
        "--methods",
        "exact,anneal",
        "--budget-evaluations",
        "60",
    ]
    perfect = json.loads(asked(*words, "--folder", str(tmp_path / "perfect"), "--json", "-").stdout)
    folder = ["--folder", str(tmp_path / "uneven")]
    uneven = json.loads(asked(*words, *folder, "--space", "ragged", "--json", "-").stdout)
    assert uneven["proven"] and uneven["reference"] < perfect["reference"]
    assert {run["method"] for run in uneven["runs"] if run["value"] < perfect["reference"]} == {"exact", "anneal"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--methods", "anneal", "a", "b", "c"], "--methods runs on WORKLOAD and MACHINE; 3 names were given"),
        ([*NAMES, "--methods", "aneal"], "unknown method 'aneal'"),
        ([*NAMES, "--methods", ","], "--methods names no method"),
        ([*NAMES, "--order", "free"], "--order is for runs of --methods"),
        ([*NAMES, "--seeds", "3"], "--seeds is for runs of --methods"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], said: str) -> None:
    ran = asked(*words)
    assert ran.exit_code == 2 and said in ran.output


def test_a_problem_without_a_mapping_and_a_stop() -> None:
    found = compare_methods(tiny_problem("hopeless"), ["exhaustive", "random"], 1, Budget(steps=20))
    assert [run.value for run in found.runs] == [None, None] and "0 of 1" in str(found)
    assert compare_methods(tiny_problem("one"), ["random"], stop=lambda: True).runs == ()
    with pytest.raises(SpecError, match="no method is named"):
        compare_methods(tiny_problem("one"), [])


def test_medians_step_where_a_run_improves() -> None:
    runs = [
        MethodRun("a", seed, 100, 1.0, value, None, False, ((1, 0.0, 9.0), (at, 0.0, value)))
        for seed, (at, value) in enumerate(((10, 4.0), (20, 2.0), (50, 6.0)))
    ]
    assert medians(runs) == [(1, 9.0), (10, 9.0), (10, 9.0), (20, 9.0), (20, 4.0), (50, 4.0), (50, 4.0), (100, 4.0)]
    assert value_at(runs[0], 9) == 9.0 and value_at(runs[0], 0) is None
    assert MethodRuns(tiny_problem("one"), tuple(runs)).reference is None


def test_the_same_seed_gives_the_same_curve() -> None:
    problem = tiny_problem("chain")
    one, other = (compare_methods(problem, ["anneal"], 2, Budget(steps=60)) for _ in range(2))
    for a, b in zip(one.runs, other.runs, strict=True):
        assert [(at, value) for at, _, value in a.improvements] == [(at, value) for at, _, value in b.improvements]
        assert a.value == b.value == min(value for _, _, value in a.improvements)


def test_a_run_ends_at_the_value_that_it_is_to_reach(tmp_path: Path) -> None:
    problem = tiny_problem("chain")
    proven = compare_methods(problem, ["exhaustive"]).reference
    assert proven is not None
    for _ in range(2):  # found, and read from the folder
        (run,) = compare_methods(problem, ["anneal"], 1, Budget(steps=5000), tmp_path, until=proven).runs
        assert run.value == proven and run.points < 1000
    (whole,) = compare_methods(problem, ["anneal"], 1, Budget(steps=5000), until=proven * 0.99).runs
    assert whole.value == proven and whole.points >= 5000

"""The benches measure what they say: rows that name their command and versions, failures that are not hidden."""

from __future__ import annotations

import csv
import stat
from itertools import count
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SMALL = "matmuls:n=1,m=8,kn=8,bits=8"
MACHINE = "simple:dram_energy=10,glb_bits=64"
PAIR = ("problem", "method")
PEER = """#!/bin/sh
if [ "$1" = -c ]; then echo 9.9.9 True; exit; fi
echo '{{"version": "9.9.9", "metrics": "energy", "points": [[{energy}, 1.0]]}}'
"""


@pytest.fixture(autouse=True)
def _bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def pretend(folder: Path, energy: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that answers at once, in place of the installed one; one small problem."""
    from bench import peer
    from bench.problems import BenchProblem

    python = folder / "python"
    python.write_text(PEER.format(energy=energy))
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(peer, "PEER_PYTHON", python)
    monkeypatch.setattr(peer, "PROBLEMS", (BenchProblem("small", SMALL, MACHINE),))


def test_both_tools_in_one_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bench import peer

    import einloom as el

    best = el.map(SMALL, MACHINE).value
    pretend(tmp_path, best, monkeypatch)
    table = tmp_path / "peer.csv"
    assert peer.main(["-o", str(table)]) == 0
    (row,) = rows(table)
    assert list(row) == peer.COLUMNS
    assert (row["peer_version"], row["einloom_version"]) == ("9.9.9", el.__version__)
    assert row["einloom_command"] == f"einloom map {SMALL} {MACHINE} --objective energy"
    assert float(row["einloom_optimum"]) == float(row["peer_optimum"]) == best
    assert float(row["relative_difference"]) == 0
    for side in ("einloom_cold", "einloom_warm", "peer"):
        assert float(row[f"{side}_wall_s"]) >= 0 and float(row[f"{side}_rss_mb"]) > 0
    assert float(row["einloom_cold_cpu_s"]) > 0 and float(row["einloom_warm_cpu_s"]) > 0
    assert row["time"][:2] == "20" and "T" in row["time"]
    capsys.readouterr()
    assert peer.main(["-o", str(table)]) == 0
    assert len(rows(table)) == 1
    printed = capsys.readouterr().out
    assert "measured" in printed and repr(best) not in printed


def test_another_optimum_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench import peer

    pretend(tmp_path, 1.0, monkeypatch)
    assert peer.main(["-o", str(tmp_path / "peer.csv")]) == 1
    assert float(rows(tmp_path / "peer.csv")[0]["relative_difference"]) > 1


def test_problems_of_einloom_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench import alone
    from bench.problems import ALONE, BenchProblem

    from einloom import questions

    assert len({p.name for p in ALONE}) == len(ALONE)
    for p in ALONE:
        questions.problem(p.workload, p.machine, p.objective, p.max_fused_loops)
    monkeypatch.setattr(alone, "ALONE", (BenchProblem("small", SMALL, MACHINE),))
    table = tmp_path / "alone.csv"
    assert alone.main(["-o", str(table)]) == 0
    (row,) = rows(table)
    assert list(row) == alone.COLUMNS
    assert (row["guarantee"], row["einsums"], row["gap"]) == ("optimal", "1", "0.00e+00")
    assert float(row["cold_cpu_s"]) > 0 and float(row["warm_cpu_s"]) > 0
    monkeypatch.setattr(alone, "ALONE", (BenchProblem("late", SMALL, MACHINE),))
    assert alone.main(["-o", str(table), "--timeout", "0.01"]) == 1
    assert rows(table)[1]["outcome"] == "timed out" and rows(table)[1]["guarantee"] == ""


def test_arrays_agree_or_the_bench_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bench import arrays

    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.setattr(arrays, "first_call", lambda cache: 1.0)
    ticks = count()  # a clock that ticks whenever it is looked at: real ones may not in some microseconds
    monkeypatch.setattr(arrays.time, "process_time", lambda: float(next(ticks)))
    table = tmp_path / "arrays.csv"
    words = ["--choices", "3000", "--repeat", "1", "-o", str(table)]
    assert arrays.main(words) == 0
    (row,) = rows(table)
    assert row["agree"] == "True" and float(row["compiled_us"]) > 0 and float(row["numpy_us"]) > 0
    assert "agree: True" in capsys.readouterr().out
    monkeypatch.setattr(arrays, "one_by_one", lambda *_: (1.0, False))
    assert arrays.main(words) == 1


def test_groups_beside_one_after_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from bench import groups

    table = tmp_path / "groups.csv"
    asked = ["--workload", SMALL, "--machine", MACHINE, "--objective", "latency", "--concurrent", "shared"]
    assert groups.main([*asked, "-o", str(table)]) == 0
    (row,) = rows(table)
    assert row["concurrent"] == "shared" and float(row["cpu_s"]) > 0
    assert row["guarantee"] == "OPTIMAL"
    assert float(row["bound"]) == float(row["value"]) <= float(row["sequential"])
    assert "CPU ratio" in capsys.readouterr().out


def test_sizes_beside_padding_and_any_integers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bench import sizes

    from einloom.workload.build import build_workload

    small = build_workload("small", ("Z[m,n] = A[m,k] * B[k,n]",), {"m": 13, "n": 8, "k": 4}, bits=16)
    monkeypatch.setattr(sizes, "WORKLOADS", (small,))
    file = tmp_path / "sizes.csv"
    asked = ["--machine", "ffm-edge", "--seconds", "30", "--output", str(file)]
    assert sizes.main(asked) == sizes.main(asked) == 0
    (row,) = rows(file)  # the second run has nothing to do
    assert row["perfect_gap"] == row["ragged_gap"] == row["padded_gap"] == "0.00%"
    perfect, ragged, least, padded = (
        float(row[k]) for k in ("perfect_edp", "ragged_edp", "integer_bound", "padded_edp")
    )
    assert least <= ragged <= padded <= perfect
    assert "| small | ffm-edge |" in sizes.table([row])
    assert "small, ffm-edge" in capsys.readouterr().out


def test_ranks_are_padded_to_multiples() -> None:
    from bench import sizes

    from einloom.workload.build import build_workload

    conv = build_workload("conv", ("O[k,p] = I[p+r] * W[k,r]",), {"k": 12, "p": 55, "r": 11}, bits=16)
    trials = [(by, wider.extents["k"], wider.extents["p"], wider.extents["r"]) for by, wider in sizes.padded(conv)]
    assert trials == [(2, 12, 56, 11), (16, 12, 64, 11)]  # 12 to 16 is a third more: left alone


def test_values_below_any_integer_tiles_are_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench import imperfect

    pretend(tmp_path, 2.0e-8, monkeypatch)
    name = "matmul 1000 x 1000 x 1000"
    ours = tmp_path / "sizes.csv"
    ours.write_text(
        "problem,machine,perfect_edp,ragged_edp,integer_bound,ragged_cpu_s\n"
        f"{name},tpu-v4i,1.0e-08,1.0e-08,1.0e-08,0.10\n{name},ffm-edge,3.0e-08,3.0e-08,3.0e-08,0.10\n"
    )
    monkeypatch.setattr(imperfect, "SIZES", ours)
    file = tmp_path / "imperfect.csv"
    assert imperfect.main(["--output", str(file)]) == imperfect.main(["--output", str(file)]) == 0
    possible, below = rows(file)
    assert [one["peer_imperfect_edp"] for one in (possible, below)] == ["2.00000e-08"] * 2
    assert not imperfect.impossible(possible) and imperfect.impossible(below)


def test_rows_of_one_method_are_replaced_and_others_stay(tmp_path: Path) -> None:
    from bench.mappers import replace

    path = tmp_path / "rows.csv"
    order = [("a", "x"), ("a", "y"), ("b", "x")]
    replace(path, [{"problem": "b", "method": "x", "n": 1}, {"problem": "a", "method": "y", "n": 2}], PAIR, order)
    replace(path, [{"problem": "b", "method": "x", "n": 3}, {"problem": "a", "method": "x", "n": 4}], PAIR, order)
    assert [(row["problem"], row["method"], row["n"]) for row in rows(path)] == [
        ("a", "x", "4"),
        ("a", "y", "2"),
        ("b", "x", "3"),
    ]


@pytest.mark.parametrize(
    ("network", "einsums", "fusible", "giga"),
    [
        ("GPT-3 6.7B", 6, 2, 105.2),
        ("VGG16", 16, 10, 15.47),
        ("VGG19", 19, 13, 19.63),
        ("ResNet18", 21, 8, 1.814),
        ("MobileNetV1", 28, 22, 0.5687),
    ],
)
def test_networks_of_fadiff_have_their_layers(network: str, einsums: int, fusible: int, giga: float) -> None:
    from bench.fadiff import workload

    made, apart = workload(network, True), workload(network, False)
    assert len(made.einsums) == einsums and len(made.intermediates) == fusible
    assert not apart.intermediates
    assert sum(made.operations(e.name) for e in made.einsums) / 1e9 == pytest.approx(giga, rel=1e-3)
    assert sum(apart.operations(e.name) for e in apart.einsums) == sum(made.operations(e.name) for e in made.einsums)


def test_auto_is_compared_cell_by_cell() -> None:
    from bench import auto

    shared = {"problem": "p", "cpu_seconds": "1", "auto_proven": "3", "seeds": "3", "auto": "10.0"}
    made = [
        {**shared, "method": "one", "value": "8.0", "auto_not_worse": "False"},
        {**shared, "method": "other", "value": "11.0", "auto_not_worse": "True"},
    ]
    lines = auto.table(made).split("\n")
    assert lines[2] == "| p | 1 | 3 of 3 seeds | 1 of 2 methods | one 20.0% |"
    assert lines[3] == "| all | | | 1 of 2, 50% | |"


def test_cells_of_the_table_of_methods_say_how_many_seeds_they_have() -> None:
    from bench import mappers

    shared = {"problem": "16 matmuls, energy", "cpu_seconds": "1.5", "reference": "1.0", "proven": "True"}
    made = [
        {**shared, "method": "anneal", "points": "1000", "seeds": "3", "gaps": "0.3 0.1 0.2"},
        {**shared, "method": "anneal", "points": "10000", "seeds": "1", "gaps": "0.05"},
        {**shared, "method": "local", "points": "1000", "seeds": "2", "gaps": "- 0.1"},
    ]
    lines = mappers.table(made).split("\n")
    assert lines[2] == "| 16 matmuls, energy | anneal | - | 20.0%, 30.0% (3) | 5.0% (1) | - | 1.5 |"
    assert "nothing (2)" in lines[3]
    assert "1,000 points: 1 with 3 seeds, 1 with 2 seeds, 79 not measured" in lines[-1]
    assert "100,000 points: 81 not measured" in lines[-1]


def test_known_optima_are_measured_a_row_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench import known_optima

    from einloom.errors import Defect

    asked: list[tuple[int, str]] = []

    def row(seed: int, name: str, problem: object, best: float, points: int, ends: bool) -> dict[str, object]:
        asked.append((seed, name))
        value = {"one": 2.0, "other": 3.0, "wrong": 1.0}[name]
        return {"problem": seed, "method": name, "points": points, "value": repr(value), "optimum": repr(best)}

    monkeypatch.setattr(known_optima, "row", row)
    monkeypatch.setattr(known_optima, "solved", lambda seed, _: None if seed == 1 else (None, 2.0))
    path = tmp_path / "rows.csv"
    known_optima.measure(True, 2, 50, ["one"], path)
    known_optima.measure(True, 3, 50, ["one", "other"], path)
    assert asked == [(0, "one"), (2, "one"), (0, "other"), (2, "other"), (3, "one"), (3, "other")]
    with pytest.raises(Defect, match="problem 0"):
        known_optima.measure(True, 1, 50, ["wrong"], path)
    assert len(rows(path)) == 6
    known_optima.forget(True, ["other"], path)
    assert [one["method"] for one in rows(path)] == ["one"] * 3

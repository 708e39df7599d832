"""Points a second, by every way that a method may have them priced: ``python -m bench.speeds``. See docs/mappers.md.

One row per problem, CPU seconds of one core, caches warm, the best of some rounds. Tests compare each way with
`evaluate` (`tests/search/test_rows.py`, `test_heuristic_parts.py`). A problem that the CSV has is measured again if
it is asked for by ``--problem``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from einloom.cost.batch.arrays import price_many
from einloom.cost.evaluate import evaluate
from einloom.cost.traffic.paths import paths
from einloom.mapspace.ffm.encoding import NoProposal, State
from einloom.mapspace.ffm.encoding.rooms import overflow
from einloom.mapspace.registry import space_for
from einloom.questions import problem
from einloom.search.evaluator import Evaluator
from einloom.search.heuristics.points import Points, Valued
from einloom.search.heuristics.rows import TripRows

from .auto import named
from .mappers import PROBLEMS
from .measured import Column, Row
from .rows import had, replace, stamp

RESULTS = Path(__file__).parent / "results" / "speeds.csv"
ROUNDS = 5
BATCH = 20_000  # rows of one skeleton
FEW = 200  # rows of each of many skeletons
BURST = 1000
NEAR = 2000  # states one move away
TRIED = 50  # times that so many rows are dealt, of which few may fit
CHAIN = "Two convolutions, latency"  # of TileFlow's Table 2


def seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """CPU seconds of the fastest round; the first one, which loads or compiles, does not count."""
    work()
    taken = []
    for _ in range(rounds):
        begun = time.process_time()
        work()
        taken.append(time.process_time() - begun)
    return min(taken)


def fitting(points: Points, rng: Random) -> State:
    """A drawn state that fits."""
    while True:
        state = points.encoding.sample(rng)
        if state is not None and overflow(points.facts, state) is None:
            return state


def measured(name: str, skeletons: int) -> dict[str, object]:
    """A row: milliseconds and points a second on one problem."""
    asked, rng = problem("tileflow-cc1", "tileflow-edge", "latency") if name == CHAIN else named(name), Random(0)
    space = space_for(asked.workload, asked.machine, asked.mapspace)
    points = Points(asked, space, Evaluator(asked, space))
    states = [fitting(points, rng) for _ in range(skeletons)]
    row: dict[str, object] = {"problem": name, "einsums": points.facts.count}
    row["sample_ms"] = f"{seconds(lambda: [fitting(points, rng) for _ in range(5)]) / 5 * 1e3:.2f}"
    tree = points.encoding.decode(states[0])
    row["evaluate_a_second"] = rate(1, seconds(lambda: evaluate(asked.workload, asked.machine, tree)))
    row["one_by_one"], row["one_by_one_found"] = one_by_one(points, states[0])
    row["changed_a_second"], row["unknown_a_second"] = priced(points, states[0])
    able = [state for state in states if TripRows.able(points, state)]
    blank = (
        "row_prepare_ms",
        "rows_a_second",
        "distinct_rows",
        "trees_a_second",
        "changes_a_second",
        "array_prepare_ms",
        "array_rows",
    )
    row |= dict.fromkeys((*blank, "one_by_one_loaded"), "")
    if able:
        row |= batches(points, able)
        points.forget()
        row["one_by_one_loaded"], _ = one_by_one(points, states[0])
        row["changes_a_second"] = changes(points, able[0])
        row |= arrays(points, able[0]) if points.plain else {}
    return {**row, **stamp()}


def rate(points: int, took: float) -> str:
    return f"{points / took:.0f}"


def one_by_one(points: Points, state: State) -> tuple[str, str]:
    """Moves of the encoding, proposed and priced one by one from Python: legal ones a second, and their share."""
    rng = Random(1)
    legal = proposed = 0
    now: Valued = points.apart(state), state
    begun = time.process_time()
    while time.process_time() - begun < 1.0:
        proposed += 1
        try:
            moved = points.encoding.propose(now[1], rng)
        except NoProposal:
            continue
        value = points.apart(moved)
        legal += value < float("inf")
        now = (value, moved) if value < float("inf") and rng.random() < 0.5 else now
    return rate(legal, time.process_time() - begun), f"{legal / proposed:.3f}"


def priced(points: Points, state: State) -> tuple[str, str]:
    """States priced one by one, a second, what proposed them not counted: those that differ from one in the privates of
    an Einsum, and the same if nothing is known of their paths."""
    rng, near = Random(2), list[State]()
    while len(near) < NEAR:
        with suppress(NoProposal):
            near.append(points.encoding.propose(state, rng, 0.0))
    begun = time.process_time()
    for one in near:
        points.apart(one)
    took = time.process_time() - begun
    bare = [State(one.homes, one.depths, one.shared, one.owns) for one in near[: NEAR // 10]]
    begun = time.process_time()
    for one in bare:
        points.forget()
        points.apart(one)
    return rate(NEAR, took), rate(len(bare), time.process_time() - begun)


def dealt(made: TripRows, many: int, rng: Random) -> NDArray[np.int64]:
    """So many rows that fit, few of them alike: the trips of each variable of an Einsum, dealt anew to its loops."""
    groups: dict[tuple[int, str], list[int]] = {}
    for n, loop in enumerate(made.loops):
        if not loop.shared:
            groups.setdefault((loop.einsum, loop.variable), []).append(n)
    found, tried = [made.trips[None]], 0
    while sum(map(len, found)) < many and tried < TRIED:
        rows, tried = np.tile(made.trips, (many, 1)), tried + 1
        some = rng.sample(sorted(groups), rng.randint(1, len(groups)))
        for columns in (groups[one] for one in some if len(groups[one]) > 1):
            left = np.full(many, rows[0, columns].prod())
            for c in columns[:-1]:
                divisors = np.array([d for d in range(1, int(left.max()) + 1) if left.max() % d == 0])
                chosen = divisors[np.array([rng.randrange(len(divisors)) for _ in range(many)])]
                rows[:, c] = np.gcd(chosen, left)
                left //= rows[:, c]
            rows[:, columns[-1]] = left
        found.append(rows[np.isfinite(made.price(rows))])
    every = np.concatenate(found)
    return every[np.arange(many) % len(every)]


def distinct(rows: NDArray[np.int64]) -> int:
    """How many rows differ: a skeleton may have few that fit."""
    return len(np.unique(rows, axis=0))


def batches(points: Points, states: Sequence[State]) -> dict[str, object]:
    """Rows of trips in machine code: to prepare a skeleton, of one skeleton, and of many with a few rows each."""
    rng = Random(3)
    few = [dealt(TripRows(points, s), FEW, rng) for s in states]
    made = TripRows(points, states[max(range(len(states)), key=lambda n: distinct(few[n]))])
    many = dealt(made, BATCH, rng)
    took = seconds(lambda: made.price(many))
    prepare = seconds(lambda: [TripRows(points, State(s.homes, s.depths, s.shared, s.owns)) for s in states])
    each = seconds(lambda: [TripRows(points, s).price(rows) for s, rows in zip(states, few, strict=True)])
    return {
        "row_prepare_ms": f"{prepare / len(states) * 1e3:.2f}",
        "rows_a_second": rate(BATCH, took),
        "distinct_rows": distinct(many),
        "trees_a_second": rate(FEW * len(states), each),
    }


def changes(points: Points, state: State) -> str:
    """Proposals for the privates of one Einsum in machine code, legal ones a second, over all Einsums."""
    able = [i for i in range(points.facts.count) if points.bursts.able(state, i)]
    rests, legal = {i: points.sums(state, {i}) for i in able}, 0

    def work() -> None:
        nonlocal legal
        legal = sum(points.bursts.run(state, i, rests[i], BURST, BURST, 0.1, Random(i)).legal for i in able)

    took = seconds(work)
    return rate(legal, took) if able else ""


def arrays(points: Points, state: State) -> dict[str, object]:
    """`price_many` in NumPy: to prepare a skeleton, and rows a second after that."""
    asked = points.problem
    mapping = points.encoding.decode(state)
    own = {path.addresses[loop.place]: loop.tile for path in paths(asked.workload, mapping) for loop in path.loops}
    tiles = {at: np.full(BATCH, tile, dtype=np.int64) for at, tile in own.items()}
    first = {at: one[:1].copy() for at, one in tiles.items()}
    begun = time.process_time()
    price_many(asked.workload, asked.machine, mapping, first, compiled=False)
    prepared = time.process_time() - begun
    took = seconds(lambda: price_many(asked.workload, asked.machine, mapping, tiles, compiled=False), 2)
    return {"array_prepare_ms": f"{prepared * 1e3:.0f}", "array_rows": rate(BATCH, took)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the CSV lacks."""
    parser = argparse.ArgumentParser(prog="python -m bench.speeds", description=__doc__.split("\n")[0])
    parser.add_argument("--skeletons", type=int, default=20)
    parser.add_argument("--problem", action="append", choices=[*PROBLEMS, CHAIN])
    asked = parser.parse_args(arguments)
    known = had(RESULTS, "problem")
    for name in asked.problem or (*PROBLEMS, CHAIN):
        if (name,) not in known or asked.problem:
            row = measured(name, asked.skeletons)
            replace(RESULTS, [row], ("problem",), [(one,) for one in (*PROBLEMS, CHAIN)])
            print(*list(row.values())[:-3], sep=", ", flush=True)


def _thousands(name: str) -> Callable[[Row], str]:
    return lambda row: f"{int(row[name]):,}" if row.get(name) else "-"


COLUMNS = (
    Column("problem", "problem"),
    Column("a draw that fits, ms", "sample_ms"),
    Column("`evaluate`, trees a second", _thousands("evaluate_a_second")),
    Column("moves proposed and priced, a second", _thousands("one_by_one")),
    Column("the same with machine code loaded", _thousands("one_by_one_loaded")),
    Column("states with one Einsum changed, priced one by one, a second", _thousands("changed_a_second")),
    Column("states of which nothing is known", _thousands("unknown_a_second")),
    Column("one Einsum changed, machine code, a second", _thousands("changes_a_second")),
    Column("a skeleton's rows, to prepare, ms", lambda row: row["row_prepare_ms"] or "-"),
    Column("rows a second", _thousands("rows_a_second")),
    Column("of 20,000 rows distinct", _thousands("distinct_rows")),
    Column("trees a second, 200 a skeleton, with preparation", _thousands("trees_a_second")),
    Column("`price_many`, to prepare, ms", lambda row: row["array_prepare_ms"] or "-"),
    Column("rows a second", _thousands("array_rows")),
)

if __name__ == "__main__":
    main()

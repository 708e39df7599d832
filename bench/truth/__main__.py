"""Draw random problems and ask every claim of each: ``python -m bench.truth --problems 10000``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.mutants.table import read
from bench.rows import append, stamp
from bench.truth import table
from bench.truth.impossible import every_pair
from bench.truth.planted import PLANTS, noticed
from bench.truth.runs import NEEDED, Outcome, completed, evened, pair_counts, run

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
MOST = 2000
"""An old mistake must be noticed within so many problems."""
FOUND = ROOT / "tests" / "search" / "found"


def main(words: Sequence[str] | None = None) -> int:
    """0: every claim holds for every problem; 1: some does not."""
    parser = argparse.ArgumentParser(prog="python -m bench.truth", description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=10_000, help="how many (default 10,000)")
    parser.add_argument(
        "--further", type=int, default=0, help="look at so many more seeds for pairs of dimensions that are still rare"
    )
    parser.add_argument(
        "--towards",
        type=int,
        help="instead: draw for the pairs that are rare in bench/results, so many seeds for each at most; 0 sums up",
    )
    parser.add_argument("--first", type=int, default=0, help="seed of the first one")
    parser.add_argument(
        "--build", type=Path, default=ROOT / "build" / "truth", help="folder of what came of each problem"
    )
    parser.add_argument("--found", type=Path, default=FOUND, help="folder for problems that show a difference")
    parser.add_argument("--publish", action="store_true", help="write the counts into bench/results")
    parser.add_argument("--planted", action="store_true", help="bring old mistakes back, and say when each is noticed")
    parser.add_argument("--impossible", action="store_true", help="look whether pairs said to be impossible are")
    options = parser.parse_args(words)
    if options.impossible:
        return impossible_ones(options.publish)
    if options.planted:
        return old_mistakes(options.problems)
    if options.towards is not None:
        return rare_pairs(options.towards, options.build / "towards.jsonl", options.found, options.publish)
    seeds = range(options.first, options.first + options.problems)
    path = options.build / "outcomes.jsonl"
    outcomes = run(seeds, path, options.found)
    if options.further:
        further = range(seeds.stop, seeds.stop + options.further)
        outcomes = completed(outcomes, further, path, options.found)
    if options.publish:
        table.write(RESULTS / "truth.csv", table.counts(outcomes))
        table.write(RESULTS / "truth-pairs.csv", table.pair_rows(outcomes))
    return summed_up(outcomes)


def old_mistakes(most: int) -> int:
    """Print after how many problems each old mistake is noticed, and write that down; 1 if one is not."""
    path = RESULTS / "truth-planted.csv"
    done = {row["mistake"] for row in read(path)}
    waiting = [plant for plant in PLANTS if plant.name not in done]
    for plant, problems, said in noticed(waiting, min(most, MOST)):
        append(path, {"mistake": plant.name, "problems": problems, "claim": said.split(":")[0], **stamp()})
        print(f"{plant.name}: problem {problems}: {said[:200]}", flush=True)
    missed = {plant.name for plant in PLANTS} - {row["mistake"] for row in read(path)}
    print(
        f"{len(PLANTS) - len(missed)} of {len(PLANTS)} old mistakes noticed within {min(most, MOST)} problems", *missed
    )
    return 1 if missed else 0


def rare_pairs(most: int, path: Path, found: Path, publish: bool) -> int:
    """Draw for the pairs that are rare in what was published, and print those that still are; 1 if a claim fails."""
    before = table.published(RESULTS / "truth-pairs.csv")
    outcomes = evened(before, most, path, found)
    rows = table.rare_rows(before, outcomes)
    if publish:
        table.write(RESULTS / "truth-rare.csv", rows)
    failed = sum(bool(o.failed) for o in outcomes)
    print(f"{len(outcomes)} problems for {len(rows)} rare pairs, {failed} differences")
    for row in rows:
        if row["together"] < NEEDED:  # type: ignore[operator]
            print(f"  {row['together']}: {row['one']}, {row['other']}")
    return 1 if failed else 0


def impossible_ones(publish: bool) -> int:
    """Look at each pair of dimensions that is said to be impossible; 1 if a problem may have both."""
    seen = every_pair()
    if publish:
        table.write(RESULTS / "truth-impossible.csv", table.impossible_rows(seen))
    wrong = [one for one in seen if not one.holds]
    print(
        f"{len(seen)} pairs, {sum(one.files for one in seen)} files; {len(wrong)} pairs that a problem may have", *wrong
    )
    return 1 if wrong else 0


def summed_up(outcomes: Sequence[Outcome]) -> int:
    """Print what came of the problems; 1 if a claim does not hold for some."""
    by_pair = pair_counts(outcomes)
    rare = {pair: n for pair, n in by_pair.items() if n < NEEDED}
    failed = [o for o in outcomes if o.failed]
    print(f"{len(outcomes)} problems, {sum(max(o.trees, 0) for o in outcomes)} legal trees, {len(failed)} differences")
    print(f"{sum(o.seconds for o in outcomes):.0f} CPU seconds; {sum(o.executed for o in outcomes)} trees executed")
    print(f"{len(by_pair)} pairs of dimensions, {len(rare)} of them in fewer than {NEEDED} problems")
    for (one, other), number in sorted(rare.items(), key=lambda item: item[1])[:20]:
        print(f"  {number}: {one}, {other}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

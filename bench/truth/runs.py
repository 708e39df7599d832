"""What came of each problem, a line of JSON for each; a problem that shows a difference is made smaller and written
down where the tests read it."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

from bench.rows import commit
from einloom.testing.problems.claims import check
from einloom.testing.problems.dimensions import DIMENSIONS, pairs, possible_pairs
from einloom.testing.problems.drawing import DrawnProblem, TooLarge, draw, draw_with, few, towards, wanted
from einloom.testing.problems.files import Files
from einloom.testing.problems.minimise import minimised

FEW = 400
"""So many candidates may a problem have that is made smaller."""
NEEDED = 10
"""So many problems shall have both dimensions of each pair."""
MISSES = 3
"""So many seeds in a row may draw nothing for a pair before it is left."""
Pair = tuple[str, str]


@dataclass(frozen=True)
class Outcome:
    """What came of the problem of a seed. has: its dimensions. failed: claim -> its first difference."""

    seed: int
    has: tuple[str, ...]
    failed: dict[str, str]
    trees: int
    executed: int
    seconds: float
    commit: str = ""


def tried(seed: int, commit: str = "", drawn: DrawnProblem | None = None) -> tuple[Outcome, Files]:
    """Draw the problem of a seed, if it is not drawn yet, and ask every claim."""
    started = time.process_time()
    drawn = drawn or draw(seed)
    report = check(drawn.files.read, seed)
    spent = round(time.process_time() - started, 3)
    return Outcome(
        seed, tuple(sorted(drawn.has)), report.failed, report.trees, report.executed, spent, commit
    ), drawn.files


def known(path: Path) -> list[Outcome]:
    """The outcomes of a file; none if there is no file. A line that was cut off is left out."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            data = json.loads(line)
        except json.JSONDecodeError:
            continue
        found.append(Outcome(**{**data, "has": tuple(data["has"])}))
    return found


def run(seeds: Iterable[int], path: Path, found: Path) -> list[Outcome]:
    """Try the seeds that the file at `path` has not; differences go into folders of `found`. All outcomes come back.

    What the file has may be of an earlier commit: each outcome says of which.
    """
    outcomes = {outcome.seed: outcome for outcome in known(path)}
    wanted, now = list(seeds), commit()
    for seed in wanted:
        if seed not in outcomes:
            outcomes[seed] = told(tried(seed, now), path, found)
    return [outcomes[seed] for seed in wanted]


def told(result: tuple[Outcome, Files], path: Path, found: Path) -> Outcome:
    """Add an outcome to the file at `path`, and write down each difference."""
    outcome, files = result
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(outcome)) + "\n")
    for claim, said in outcome.failed.items():
        print(f"seed {outcome.seed}: {claim}: {said}", flush=True)
        keep(files, outcome.seed, claim, found)
    return outcome


def completed(outcomes: list[Outcome], seeds: Iterable[int], path: Path, found: Path) -> list[Outcome]:
    """The outcomes and more: of these further seeds, those that ask for a pair which is still rare, and get it."""
    has = pair_counts(outcomes)
    done = {outcome.seed: outcome for outcome in known(path)}
    more, now = list(outcomes), commit()
    for seed in seeds:
        if min(has.values()) >= NEEDED:
            break
        core = wanted(seed).core
        if len(core) < 2 or has[core[0], core[1]] >= NEEDED:
            continue
        if seed not in done:
            drawn = draw(seed)
            if not set(core) <= drawn.has:
                continue
            done[seed] = told(tried(seed, now, drawn), path, found)
        more.append(done[seed])
        has.update(pair_counts([done[seed]]))
    return more


def evened(before: Mapping[Pair, int], most: int, path: Path, found: Path) -> list[Outcome]:
    """Problems drawn for the pairs that fewer than `NEEDED` problems have: `most` seeds for each pair at most.

    before: pair -> problems that have both already; a pair that is not there counts as 0. Each pair gets one seed
    after the other in turn, so that a run that is cut off has looked at all of them; one of which `MISSES` seeds in a
    row gave nothing is left, and pairs that no problem has come last. What the file at `path` has counts, too.
    """
    done = {outcome.seed: outcome for outcome in known(path)}
    has = Counter({pair: before.get(pair, 0) for pair in possible_pairs()})
    has.update(pair_counts(done.values()))
    known_ones = [pair for pair in possible_pairs() if has[pair]]
    missed: Counter[Pair] = Counter()
    now = commit()
    for among in (known_ones, possible_pairs()):
        for seed, pair in _in_turn(among, most):
            if seed in done or has[pair] >= NEEDED or missed[pair] >= MISSES:
                continue
            drawn = draw_with(wanted(seed), seed)
            if drawn is None or drawn.lacks:
                missed[pair] += 1
                continue
            missed[pair] = 0
            done[seed] = told(tried(seed, now, drawn), path, found)
            has.update(pair_counts([done[seed]]))
    return list(done.values())


def _in_turn(among: Sequence[Pair], most: int) -> Iterator[tuple[int, Pair]]:
    """The first seed of each pair, the second of each, and so on."""
    seeds = [towards(pair) for pair in among]
    for _ in range(most):
        yield from zip(map(next, seeds), among, strict=True)


def pair_counts(outcomes: Iterable[Outcome]) -> Counter[Pair]:
    """Pair of dimensions -> problems that have both; every pair that seeds are drawn for is there."""
    found: Counter[Pair] = Counter(dict.fromkeys(pairs(), 0))
    for outcome in outcomes:
        found.update(pair for pair in combinations(DIMENSIONS, 2) if set(pair) <= set(outcome.has))
    return found


def keep(files: Files, seed: int, claim: str, found: Path) -> Path:
    """Make a problem smaller as long as the claim does not hold, and write it down. Its folder comes back."""

    def shows(smaller: Files) -> bool:
        try:
            few(smaller, FEW, 10 * FEW)
        except TooLarge:
            return False
        except Exception:  # noqa: BLE001 (a crash of the enumeration may be what is looked for)
            pass
        return claim in check(smaller.read, seed, (claim,)).failed

    small = minimised(files, shows)
    folder = found / f"{claim.replace(' ', '-').replace('=', 'is')}-{seed}"
    small.write(folder)
    said = check(small.read, seed, (claim,)).failed.get(claim, "")
    (folder / "note.json").write_text(json.dumps({"claim": claim, "seed": seed, "said": said}, indent=1) + "\n")
    return folder

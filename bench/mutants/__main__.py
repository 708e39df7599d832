"""Draw mutants, run the tests that fit, list the survivors: ``python -m bench.mutants run --seed 1 --count 60``."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from bench.mutants import table
from bench.mutants.draw import FOLDERS, Mutant, draw, found_again
from bench.mutants.reach import Reach, digests, keep
from bench.mutants.trial import Workshop

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).resolve().parents[1] / "results" / "mutants.csv"
HOURS = 6
MOST = 600.0


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """0: nothing survived; 1: something did; 2: there is no map, or the tests fail without a mutant."""
    parser = argparse.ArgumentParser(prog="python -m bench.mutants", description=__doc__)
    parser.add_argument("what", choices=("record", "run", "again", "list"))
    parser.add_argument("paths", nargs="*", help="test files and folders to record; by default all")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--count", type=int, default=60, help="how many mutants are drawn")
    parser.add_argument("--folders", default=",".join(FOLDERS), help="parts of src/einloom, with commas between them")
    parser.add_argument("--all", action="store_true", help="record every test file, not only new and changed ones")
    parser.add_argument("--most", type=float, default=MOST, help="recorded seconds of tests that a mutant may take")
    parser.add_argument("--build", type=Path, default=root / "build" / "mutants", help="folder of map and copies")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, help="the CSV")
    options = parser.parse_intermixed_args(arguments)
    with suppress(ValueError):  # in another thread than the first
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started ends, too
    if options.what == "record":
        return record(root, options.build, options.paths, options.all)
    if options.what == "list":
        return listed(root, options.output, options.seed)
    reach = Reach(options.build)
    if not reach.layers:
        print("there is no map of what tests execute: python -m bench.mutants record", file=sys.stderr)
        return 2
    if outdated := reach.outdated(root):
        print(f"the map does not have {len(outdated)} test files as they are: {', '.join(outdated)}", file=sys.stderr)
    if options.what == "again":
        return again(root, options, reach)
    drawn = draw(root, options.seed, options.count, options.folders.split(","))
    done = {table.identity(one) for one in table.read(options.output) if one["seed"] == str(options.seed)}
    try_all(root, options, reach, [mutant for mutant in drawn if mutant.identity not in done])
    return listed(root, options.output, options.seed)


def record(root: Path, build: Path, paths: Sequence[str], every: bool) -> int:
    """Add to the map which lines the tests execute: of all test files, or of those that it does not have.

    Some files at a time, so that an interrupted recording is taken up where it ended.
    """
    files = list(digests(root)) if every else Reach(build).outdated(root)
    files = [file for file in files if not paths or any(Path(file).is_relative_to(path) for path in paths)]
    if not files:
        print("the map has every test file as it is")
        return 0
    shop = Workshop(root, build / "copy")
    recorded = build / "recorded"
    for some in slices(files):
        shutil.rmtree(recorded, ignore_errors=True)
        recorded.mkdir(parents=True)
        code = shop.pytest(["-p", "bench.mutants.recording", *some], HOURS * 3600.0, EINLOOM_REACH=str(recorded))
        if code not in (0, 1, 5) or not (recorded / "tests.json").exists():
            print((shop.folder / "pytest.log").read_text()[-3000:], file=sys.stderr)
            return 2
        if code == 1:
            print("some tests fail without any mutant; they are left out:", file=sys.stderr)
            print((shop.folder / "pytest.log").read_text()[-1500:], file=sys.stderr)
        layer = keep(build, recorded, root, some)
        cpu = sum(seconds for seconds, _ in layer.tests.values())
        print(f"{len(layer.tests)} tests, {cpu:.0f} CPU seconds: {' '.join(some)}", flush=True)
    return 0


def slices(files: Sequence[str]) -> Iterator[list[str]]:
    """The files in groups of one folder, of four at most."""
    for _, together in groupby(files, lambda file: Path(file).parent):
        some = list(together)
        yield from (some[i : i + 4] for i in range(0, len(some), 4))


def try_all(root: Path, options: argparse.Namespace, reach: Reach, mutants: Sequence[Mutant]) -> None:
    """Run each mutant and add its row."""
    if not mutants:
        return
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True).stdout
    known = {one.identity: one.reason for one in table.equivalents()}
    shop = Workshop(root, options.build / f"copy-{os.getpid()}")
    for mutant in mutants:
        verdict = shop.trial(mutant, reach.tests(mutant.change, mutant.source), options.most)
        found = table.row(mutant, verdict, options.seed, commit.strip(), known)
        earlier = table.read(options.output)
        others = [one for one in earlier if (one["seed"], table.identity(one)) != (str(options.seed), mutant.identity)]
        if len(others) < len(earlier):
            table.replace(options.output, [*others, found])
        else:
            table.append(options.output, found)
        told = " ".join(str(found[key]) for key in ("number", "verdict", "seconds", "file", "function", "kind"))
        print(f"{told}: {found['was']}  ->  {found['now']}  [{verdict.test}]", flush=True)


def again(root: Path, options: argparse.Namespace, reach: Reach) -> int:
    """Run once more what survived, wherever it stands by now, and put the new rows in the place of the old."""
    rows = table.read(options.output)
    known = {one.identity: one.reason for one in table.equivalents()}
    mine = [one for one in rows if one["seed"] == str(options.seed) and one["verdict"] in ("survived", "unreached")]
    survived = [one for one in mine if table.identity(one) not in known]
    for one in mine:
        if one not in survived:
            one["verdict"] = "equivalent"
    found = [mutant for one in survived if (mutant := found_again(root, one["file"], table.identity(one)))]
    table.replace(options.output, rows)
    try_all(root, options, reach, found)
    return listed(root, options.output, options.seed)


def listed(root: Path, output: Path, seed: int) -> int:
    """Print the survivors of a seed with their differences, and the sum of all."""
    rows = [one for one in table.read(output) if one["seed"] == str(seed)]
    survived = [one for one in rows if one["verdict"] in ("survived", "unreached")]
    for one in survived:
        mutant = found_again(root, one["file"], table.identity(one))
        gone = f"{one['file']} {one['function']}: {one['was']}  ->  {one['now']} (no longer there)"
        print(f"\n{one['verdict']}, {one['reaching']} tests reach it\n{gone if mutant is None else mutant.diff()}")
    print(f"\n{table.summary(rows)}")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())

"""The best mapping of every machine of a family, searched only where other machines do not tell it already.

Machines are asked from the largest memories down. What is proven on one bounds all that hold no more (`scaling`), and
its mapping is priced on others, where it may fit. Where price and bound meet, up to a tolerance, nothing is searched.
Every answer is a file of the folder, written as soon as it is known.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from math import inf, prod
from pathlib import Path

from ..dataclass import dataclass
from ..errors import Ended
from ..mapping.tree import Mapping
from ..problem import Certificate, Guarantee, Problem
from ..reading import writing
from ..result import FrontPoint, Result
from ..search import registry
from ..search.checked import certified
from ..search.starts import fitting
from ..sweep.store import kept_answer
from ..sweep.tasks import Answer, Task, answers
from .family import FamilyMember, MachineFamily
from .record import ExploredFamily, ExploredMachine, How, points_of
from .regions import ANYWHERE, EQUAL, Archive, Region, below, both, distance, least, scaled, staircase, summed
from .scaling import Profile, factors, holds_more

Key = tuple[int, int]
"""A machine and a workload, by their numbers."""
Heard = Callable[[FamilyMember, Answer, How], None]
METHOD = "explore"
"""The method of answers that other machines told."""
TRIED = 40  # mappings of other machines that are priced on one, at most
TRIED_OF_FRONTS = 200  # the same where each machine has a Pareto set
LONGEST = 120  # letters of the name of a file


def explore_family(
    family: MachineFamily,
    folder: str | Path,
    *,
    tolerance: float = 0.0,
    method: str = "exact",
    seconds: float | None = None,
    jobs: int = 1,
    share: tuple[int, int] = (1, 1),
    cluster: str | None = None,
    every: bool = False,
    heard: Heard = lambda member, found, how: None,
    stop: Callable[[], bool] = lambda: False,
) -> ExploredFamily:
    """What is known of every machine of a family when all are settled, or a stop is asked for.

    folder: of the answers; what is there is not asked again, unless its gap is above the tolerance. tolerance: how far
    a mapping of another machine may be above what is proven, as a part of its value. seconds: for each search. jobs:
    processes. share: (k, n), this call settles the k-th of n parts of the machines alone, and takes what other calls
    left in the folder. cluster: instead of processes here, the address of a Dask scheduler. every: machines that
    others beat are settled, too. Raises SpecError if the folder has answers to other questions.
    """
    return _Study(family, folder, tolerance, method, share, every, heard).run(seconds, jobs, cluster, stop)


@dataclass(frozen=True, slots=True)
class _Found:
    answer: Answer
    how: How


class _Study:
    def __init__(
        self,
        family: MachineFamily,
        folder: str | Path,
        tolerance: float,
        method: str,
        share: tuple[int, int],
        every: bool,
        heard: Heard,
    ) -> None:
        self.family, self.tolerance, self.method, self.heard = family, tolerance, method, heard
        self.every = every
        self.folder = writing.folder(folder)
        self.profiles = [Profile.of(one.machine) for one in family.members]
        self.objective = family.members[0].asked[0][0].problem.objective
        self.found: dict[Key, _Found] = {}
        self.pareto = self.objective.name == "pareto"
        self.regions: list[list[Region]] = [[ANYWHERE] * len(family.members) for _ in family.workloads]
        self.complete = Archive()  # costs and points of machines with all mappings
        self.running: dict[Key, Result | None] = {}  # with the best mapping that was known before
        self.mappings: dict[int, dict[Mapping, int]] = {w: {} for w in range(len(family.workloads))}
        self.order = sorted(range(len(family.members)), key=lambda m: (_largest_first(self.profiles[m]), m))
        self.mine = {m for place, m in enumerate(self.order) if place % share[1] == share[0] - 1}
        self.names = _file_names(family)
        self.tried: set[Key] = set()

    def run(self, seconds: float | None, jobs: int, cluster: str | None, stop: Callable[[], bool]) -> ExploredFamily:
        self._read_all()
        for (key, *_), one in answers(self._tasks(), self.method, seconds, jobs, stop, cluster):
            known = self.running.pop(key)
            if known is None or (isinstance(one, Result) and _no_worse(one, known)):
                self._keep(key, one, "searched")
            else:
                self._prove(key, _proven(one))
                self._keep(key, known if self.pareto else self._answer(key, [known]), "neighbour")
        return self.exploration()

    # The folder

    def _path(self, key: Key) -> Path:
        return self.folder / self.names[key]

    def _problems(self, key: Key) -> list[Problem]:
        return [each.problem for each in self.family.members[key[0]].asked[key[1]]]

    def _read_all(self) -> None:
        """What the folder has; what is unfinished or too far from its bound is a known mapping and no answer."""
        for key in self._keys():
            self._read(key)

    def _keys(self) -> list[Key]:
        return [(m, w) for m in self.order for w in range(len(self.family.workloads))]

    def _read(self, key: Key) -> None:
        """Take the answer of a file, if there is one."""
        one = kept_answer(self._path(key), *self._problems(key))
        if one is not None:
            self._note(key, _Found(one, "neighbour" if one.method == METHOD else "searched"))

    def _note(self, key: Key, found: _Found) -> None:
        m, w = key
        self.found[key] = found
        self._prove(key, _proven(found.answer), told=found.how == "searched")
        if isinstance(found.answer, Result):
            for mapping in _mappings(found.answer):
                self.mappings[w].setdefault(mapping, m)
            answers = [self.found.get((m, work)) for work in range(len(self.family.workloads))]
            points = [points_of(one.answer) for one in answers if one is not None and isinstance(one.answer, Result)]
            if len(points) == len(answers):
                self.complete.add(self.family.members[m].cost or 0.0, summed(self.family.weights, points))

    def _prove(self, key: Key, proven: Region, told: bool = True) -> None:
        """Bound a machine by what is proven of it; and those that hold no more, if that is told."""
        regions, known = self.regions[key[1]], self.profiles[key[0]]
        regions[key[0]] = both(regions[key[0]], proven)
        if not told or proven == ANYWHERE:
            return
        for m, other in enumerate(self.profiles):
            if regions[m] and holds_more(known, other):
                regions[m] = both(regions[m], scaled(proven, factors(known, other, self.objective)))

    def _keep(self, key: Key, one: Answer, how: How) -> None:
        path = self._path(key)
        writing.folder(path.parent)
        before = self.found.get(key)
        if isinstance(one, Result) or before is None or not isinstance(before.answer, Result):
            one.write(path)
            self._note(key, _Found(one, how))
        self.tried.add(key)
        self.heard(self.family.members[key[0]], one, how)

    # What is settled

    def _settled(self, key: Key) -> bool:
        """True if no search is needed any more: proven up to the tolerance, or tried with all that this call has."""
        if not self.region(key):
            return True
        found = self.found.get(key)
        if found is None:
            return False
        one = found.answer
        if not isinstance(one, Result):
            return key in self.tried
        if one.ended is Ended.STOPPED:
            return False
        proves = registry.method(self.method).guarantee is not Guarantee.NONE
        return key in self.tried or self._near(points_of(one), key) or (one.method == self.method and not proves)

    def _near(self, points: Region, key: Key) -> bool:
        return distance(points, self.region(key)) <= self.tolerance + EQUAL

    def region(self, key: Key) -> Region:
        """Where the mappings of a machine and workload lie, by its own answer and those of all others; empty where it
        has none, proven."""
        return self.regions[key[1]][key[0]]

    # What is searched

    def _tasks(self) -> Iterator[Task[Key]]:
        """The next search each time that one is asked for, until everything of this share is settled or running."""
        waiting = [key for key in self._keys() if key[0] in self.mine]
        while waiting:
            self._look_around()
            for key in self._best_first(waiting):
                waiting.remove(key)
                if self._settled(key) or self._beaten(key[0]):
                    continue
                best = self._priced(key)
                if best is not None and self._near(points_of(best), key):
                    self._keep(key, best, "neighbour")
                    continue
                self.running[key] = best
                yield key, self.family.members[key[0]].asked[key[1]], (() if best is None else _mappings(best))
                break

    def _look_around(self) -> None:
        """Take what calls with other shares have left in the folder since."""
        for key in self._keys():
            if key[0] not in self.mine and key not in self.found and self._path(key).exists():
                self._read(key)

    def _best_first(self, waiting: list[Key]) -> list[Key]:
        """The keys in order; those about which a running search will say nothing first."""
        return sorted(waiting, key=lambda key: any(self._related(key, one) for one in self.running))

    def _related(self, key: Key, other: Key) -> bool:
        return key[1] == other[1] and holds_more(self.profiles[other[0]], self.profiles[key[0]])

    def _priced(self, key: Key) -> Result | None:
        """The best mapping of this workload that is known from any machine, on this one; for ``pareto`` those that no
        other beats. The last one that is priced is as good as what is proven, if any is."""
        m, w = key
        near = sorted(self.mappings[w].items(), key=lambda pair: self._differences(pair[1], m))
        found: list[Result] = []
        for mapping, _ in near[: TRIED_OF_FRONTS if self.pareto else TRIED]:
            for labelled in self.family.members[m].asked[w]:
                if fitting(labelled.problem, [mapping]):
                    found.append(Result.of(labelled.problem, mapping, method=METHOD))
                    if self._near(_reached(found, self.pareto), key):
                        return self._answer(key, found)
        return self._answer(key, found) if found else None

    def _answer(self, key: Key, found: Sequence[Result]) -> Result:
        """The best of some mappings of a machine, with what is proven of it; with all that no other beats, for
        ``pareto``."""
        best, region = min(found, key=lambda one: one.value), self.region(key)
        apart = distance(_reached(found, self.pareto), region)
        bound = min(best.value, least(region, self.pareto))
        proof = Certificate(
            Guarantee.OPTIMAL if apart <= EQUAL else Guarantee.BOUNDED,
            best.value,
            best.value if apart <= EQUAL else bound,
            best.problem.mapspace.describe(),
        )
        best = replace(best, certificate=certified(proof, best.problem, best.mapping))
        if not self.pareto:
            return best
        points = {(one.cost.energy, one.cost.latency): one.mapping for one in reversed(found)}
        return replace(best, front=tuple(FrontPoint(*pair, points[pair]) for pair in staircase(points)))

    def _differences(self, m: int, other: int) -> int:
        pairs = zip(self.family.members[m].values, self.family.members[other].values, strict=True)
        return sum(a != b for a, b in pairs)

    def _beaten(self, m: int) -> bool:
        """True if another machine, with mappings, costs no more and has at most what this one has at least."""
        if self.every or not self.family.costs or all((m, w) in self.found for w in range(len(self.family.workloads))):
            return False
        regions = [self.region((m, w)) for w in range(len(self.family.workloads))]
        return self.complete.beats(self.family.members[m].cost or 0.0, summed(self.family.weights, regions))

    def exploration(self) -> ExploredFamily:
        """What is known now."""
        return ExploredFamily(self.family, self.objective, tuple(map(self._known, range(len(self.family.members)))))

    def _known(self, m: int) -> ExploredMachine:
        keys = [(m, w) for w in range(len(self.family.workloads))]
        found = [self.found.get(key) for key in keys]
        ways: set[How] = {"open" if one is None else one.how for one in found}
        how: How = next(one for one in ("open", "searched", "neighbour") if one in ways)
        if how == "open" and all(map(self.region, keys)) and self._beaten(m):
            how = "beaten"
        answers = tuple(None if one is None else one.answer for one in found)
        return ExploredMachine(
            self.family.members[m],
            how,
            answers,
            tuple(map(self.region, keys)),
            tuple(self.names[key] for key in keys),
            self.family.weights,
        )


def _proven(one: Answer) -> Region:
    """Where an answer proves all mappings to lie."""
    if not isinstance(one, Result):
        if one.status == "infeasible":
            return ()
        return ANYWHERE if one.problem.objective.name == "pareto" else ((one.bound or 0.0, 0.0),)
    if one.front:
        return points_of(one) if one.optimal else ANYWHERE
    return ANYWHERE if one.certificate is None else ((one.certificate.bound, 0.0),)


def _mappings(one: Result) -> tuple[Mapping, ...]:
    """The mapping of an answer, or those of its Pareto set."""
    return tuple(point.mapping for point in one.front) or (one.mapping,)


def _reached(found: Sequence[Result], pareto: bool) -> Region:
    """The points of some mappings that no other one beats."""
    return staircase((one.cost.energy, one.cost.latency) if pareto else (one.value, 0.0) for one in found)


def _no_worse(one: Result, known: Result) -> bool:
    """True if no known mapping is better than all of an answer's."""
    if one.front:
        return below(points_of(one), tuple((a * (1 + EQUAL), b * (1 + EQUAL)) for a, b in points_of(known)))
    return one.value <= known.value


def _largest_first(profile: Profile) -> tuple[float, float, float]:
    """A key by which machines with larger memories, more throughput and less energy come first."""
    return -prod(size for size in profile.sizes if size < inf), sum(profile.times), sum(profile.energies)


def answer_files(family: MachineFamily, folder: str | Path) -> set[Path]:
    """The files in which a folder has the answers for a family."""
    return {Path(folder).resolve() / name for name in _file_names(family).values()}


def _file_names(family: MachineFamily) -> dict[Key, str]:
    """The file of each machine and workload below the folder, by the values of its parameters."""
    texts = [_plain(member.label) for member in family.members]
    alike = Counter(texts)
    for m, member in enumerate(family.members):
        if len(texts[m]) > LONGEST or alike[texts[m]] > 1:
            texts[m] = f"{texts[m][:LONGEST]}-{sha256(member.label.encode()).hexdigest()[:8]}"
    homes = [f"{w + 1}-{_plain(workload)}"[:LONGEST] for w, workload in enumerate(family.workloads)]
    return {(m, w): f"{home}/{text}.json" for w, home in enumerate(homes) for m, text in enumerate(texts)}


def _plain(text: str) -> str:
    """A text as a part of a file's name."""
    return re.sub(r"[^\w.=+-]+", "_", text.replace(", ", ",").replace(" ", "").replace(",", "_")).strip("._") or "_"

"""The smallest set of constraints to blame, found by asking which choices of them leave a mapping.

A minimal conflict comes from QuickXplain (Junker, AAAI 2004, figure 1); that none is smaller is shown with hitting sets
(Reiter, Artificial Intelligence 1987: a conflict meets the complement of every choice that has a mapping). A mapping
that was found for one choice of constraints answers for every other choice that it keeps to, without another run.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from ..dataclass import dataclass
from ..mapping.tree import Mapping
from ..problem import Problem
from .constraints import Constraint, demands_full_use, only, said, shapes_spreads, where
from .feasibility import Asker, Undecided, Unfinished, objections
from .record import Conflict, Member

Choice = frozenset[int]
MAX_SETS = 200_000  # hitting sets tried before smallest is left open
MAX_SHAPING = 4  # of so many limits of spatial choices every subset is tried


@dataclass(frozen=True, slots=True)
class Known:
    """The constraints `kept` have the mapping that run number `run` found."""

    kept: Choice
    mapping: Mapping
    run: int


class Blame:
    """Answers for choices of constraints of one problem, each asked at most once.

    A choice counts as feasible if it, or it with further constraints, has a mapping (on axes with ``use: full`` more
    limits may leave other mappings): so what is infeasible stays so when constraints are added.
    """

    def __init__(self, asker: Asker, problem: Problem, candidates: tuple[Constraint, ...]) -> None:
        self.asker = asker
        self.problem = problem
        self.candidates = candidates
        self.everything: Choice = frozenset(range(len(candidates)))
        self.known: list[Known] = []
        self.infeasible: dict[Choice, int] = {}
        self.undecided: set[Choice] = set()
        self.left = False
        self._full = frozenset(i for i, c in enumerate(candidates) if demands_full_use(c))
        self._shaping = frozenset(i for i, c in enumerate(candidates) if shapes_spreads(c))

    def mapped(self, choice: Choice) -> Known | None:
        """A mapping that keeps to the chosen constraints; None if there is none. Raises Unfinished, Undecided."""
        for known in self.known:
            if choice <= known.kept:
                return known
        if any(small <= choice for small in self.infeasible):
            return None
        if choice in self.undecided:
            raise Undecided
        for asked in self._wider(choice):
            try:
                answer = self.asker.feasible(only(self.problem, self.candidates, asked), self._question(asked))
            except Undecided:
                self.undecided.add(choice)
                raise
            if answer.mapping is not None:
                return self._learn(asked, answer.mapping, answer.run)
            if asked == choice:
                run = answer.run
        self.infeasible[choice] = run
        return None

    def _wider(self, choice: Choice) -> Iterator[Choice]:
        """The choice, and where full use counts the choice with more limits of spatial choices."""
        yield choice
        others = sorted(self._shaping - choice) if choice & self._full else []
        sizes = range(1, len(others) + 1) if len(others) <= MAX_SHAPING else (1, len(others))
        for size in sizes:
            yield from (choice | set(extra) for extra in combinations(others, size))

    def _learn(self, asked: Choice, mapping: Mapping, run: int) -> Known:
        """Remember a mapping with everything that it keeps to, and say so in the record of its run."""
        found = Known(self._kept(asked, mapping), mapping, run)
        self.known.append(found)
        if found.kept != asked:
            broken = sorted(self.everything - found.kept)
            words = f"everything but {self._names(broken)}" if broken else "every constraint"
            self.asker.remark(run, f"its mapping keeps to {words}")
        return found

    def _kept(self, asked: Choice, mapping: Mapping) -> Choice:
        """`asked` and whatever else the mapping keeps to."""
        kept = asked
        for i in sorted(self.everything - asked):
            if not objections(only(self.problem, self.candidates, kept | {i}), mapping):
                kept |= {i}
        return kept

    def _question(self, choice: Choice) -> str:
        if choice == self.everything:
            return "all constraints"
        given_up = sorted(self.everything - choice)
        if len(given_up) <= len(choice):
            return "all constraints but " + self._names(given_up)
        return "no constraint at all" if not choice else "only " + self._names(sorted(choice))

    def _names(self, numbers: list[int]) -> str:
        return ", ".join(self.label(i) for i in numbers)

    def label(self, number: int) -> str:
        """A constraint in one phrase."""
        constraint = self.candidates[number]
        text = said(self.problem, constraint)
        return f"'{text}'" if where(constraint) == "mapspace" else f"{where(constraint)} {text}"

    # -- one conflict -------------------------------------------------------------------------------------------------

    def minimal(self, among: Choice) -> Choice:
        """A minimal conflict within the infeasible choice `among`. Raises Unfinished.

        What cannot be decided counts as feasible; then the conflict may not be minimal.
        """
        if self.lost(frozenset()):
            return frozenset()
        return self._quick(frozenset(), False, sorted(among))

    def lost(self, choice: Choice) -> bool:
        """True if it is known that the choice has no mapping. Raises Unfinished."""
        try:
            return self.mapped(choice) is None
        except Undecided:
            return False

    def _quick(self, background: Choice, changed: bool, rest: list[int]) -> Choice:
        """QuickXplain: what of `rest` a minimal conflict with `background` needs; earlier ones are kept first."""
        if changed and self.lost(background):
            return frozenset()
        if len(rest) == 1:
            return frozenset(rest)
        half = len(rest) // 2
        first, second = rest[:half], rest[half:]
        later = self._quick(background | set(first), True, second)
        earlier = self._quick(background | later, bool(later), first)
        return later | earlier

    def smallest(self, conflict: Choice) -> tuple[Choice, bool]:
        """A conflict with the fewest members, and whether that is proven. Raises Unfinished."""
        tried = 0
        for size in range(1, len(conflict)):
            for chosen in combinations(sorted(self.everything), size):
                tried += 1
                choice = frozenset(chosen)
                if all(choice - known.kept for known in self.known) and self.lost(choice):
                    return choice, True
                if tried > MAX_SETS or choice in self.undecided:
                    return conflict, False
        return conflict, not any(len(choice) < len(conflict) for choice in self.undecided)

    def conflict(self, choice: Choice, smallest: bool = False) -> Conflict:
        """The conflict as it is reported: every member with a run that has a mapping without it."""
        members = []
        for i in sorted(choice):
            known = next((k for k in self.known if choice - {i} <= k.kept), None)
            constraint = self.candidates[i]
            run = None if known is None else known.run
            members.append(Member(where(constraint), said(self.problem, constraint), run))
        minimal = all(member.without is not None for member in members)
        return Conflict(tuple(members), self._shown(choice), minimal, smallest and minimal)

    def _shown(self, choice: Choice) -> int:
        """The run that finds no mapping for the choice."""
        if choice not in self.infeasible:
            problem = only(self.problem, self.candidates, choice)
            answer = self.asker.feasible(problem, self._question(choice))
            assert not answer.feasible, "a conflict has no mapping"
            self.infeasible[choice] = answer.run
        return self.infeasible[choice]

    # -- what is reported ---------------------------------------------------------------------------------------------

    def first(self) -> Choice | None:
        """A minimal conflict, or the smallest infeasible choice that is known when the budget ends, which `left` says.

        None if all constraints together have a mapping.
        """
        if not self.lost(self.everything):
            return None
        try:
            return self.minimal(self.everything)
        except Unfinished:
            self.left = True
            return min(self.infeasible, key=lambda choice: (len(choice), sorted(choice)))

    def others(self, conflict: Choice) -> Iterator[Choice]:
        """Further minimal conflicts, none of which shares a member with another or with `conflict`."""
        among = self.everything - conflict
        while conflict and self.lost(among):
            conflict = self.minimal(among)
            yield conflict
            among = among - conflict

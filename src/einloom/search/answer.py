"""The answer of a search, whatever ended it: a result, or why there is none.

`several` raises where it finds nothing; here that becomes an `Unmapped`, and so does a search that was cut off by
Ctrl-C or by the end of the machine's memory, if its recorder had heard of no mapping.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import BudgetExhausted, Ended, Infeasible
from ..mapping.tree import Mapping
from ..problem import Budget, Certificate, Guarantee, Problem
from ..result import Result
from ..result.unmapped import Unmapped
from .checked import certified, priced, sound
from .door import chosen
from .method import Method, Recorder
from .several import Labelled, best_of


def answer(
    asked: Sequence[Labelled], method: Method | str, budget: Budget, recorder: Recorder, starts: Sequence[Mapping] = ()
) -> Result | Unmapped:
    """As `best_of`, but where nothing is found that comes back, and after Ctrl-C what the recorder has heard."""
    last, method = asked[-1].problem, chosen(method)
    try:
        return best_of(asked, method, budget, recorder, starts)
    except (Infeasible, BudgetExhausted) as error:
        return _nothing(last, recorder, method.name, error)
    except KeyboardInterrupt:
        ended = Ended.STOPPED
    except MemoryError:
        ended = budget.without_memory
    return so_far(last, recorder, method.name, ended)  # out here, where the error keeps no tables alive


def so_far(asked: Problem, recorder: Recorder, method: str, ended: Ended) -> Result | Unmapped:
    """What a search that was cut off had told its recorder: the best mapping, certified by the bound; or the bound."""
    bound = max(recorder.lower or 0.0, 0.0)
    if recorder.best_mapping is None:
        return _nothing(asked, recorder, method, BudgetExhausted(bound, ended=ended))
    with sound(method, asked):
        said = recorder.mapped_value
        cost = priced(asked, recorder.best_mapping, float("inf") if said is None else said, or_less=True)
        value, space = asked.objective.value(cost), asked.mapspace.describe()
        certificate = certified(
            Certificate(Guarantee.BOUNDED, value, bound, space, recorder.counts), asked, recorder.best_mapping
        )
    plain = Result.of(asked, recorder.best_mapping, cost, certificate=certificate, method=method, trace=recorder.trace)
    return replace(plain, seconds=recorder.seconds, ended=ended)


def _nothing(asked: Problem, recorder: Recorder, method: str, why: Infeasible | BudgetExhausted) -> Unmapped:
    return Unmapped.of(asked, why, method, recorder.seconds, recorder.counts, recorder.trace, recorder.lower)

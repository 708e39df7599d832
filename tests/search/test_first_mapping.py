"""A search that may take no step answers with a legal mapping and a bound above zero; proofs do not depend on that."""

from __future__ import annotations

from math import inf

import pytest
from bench.first import HARDEST

from einloom.api import verify
from einloom.errors import Ended
from einloom.problem import Budget, Guarantee
from einloom.questions import problem
from einloom.search.exact import Exact, drawing
from einloom.search.exact import branch_and_bound as engine
from einloom.search.exact.options import ExactOptions
from einloom.search.exact.stops import Stopped
from einloom.search.method import Watcher

IN_PARTS = (("swin-t", "simple"), ("swin-t", "tileflow-edge"))  # a network whose tensors are written in parts


@pytest.mark.parametrize(("workload", "machine"), [*HARDEST, *IN_PARTS])
def test_without_a_step(workload: str, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(mine: drawing.Drawing) -> None:
        raise Stopped(Ended.STEPS)

    monkeypatch.setattr(drawing.Drawing, "checkpoint", stopped)
    found = Exact().search(problem(workload, machine, "edp"), Budget(steps=1))
    assert found.ended is Ended.STEPS and found.certificate is not None
    assert found.certificate.guarantee is Guarantee.BOUNDED and 0 < found.certificate.bound < found.value
    assert verify(found, quick=True).ok


def test_what_is_promised_is_no_worse_than_what_is_priced() -> None:
    first = drawing.FirstMappings(problem("matmuls:n=2,m=16,kn=16", "simple:glb_bits=2048", "energy"), Watcher())
    assert first.promised == first.value == inf
    while first.best is None:
        first.work(0.0)
    assert 0 < first.promised <= first.value < inf


def test_a_proof_is_the_same_with_drawn_mappings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn at every question whether to go on, they are still no part of the search."""
    asked = problem("residual-diamond", "simple:dram_energy=10,glb_bits=512", "edp")
    alone = Exact().search(asked)
    drawn: list[float] = []
    work = drawing.FirstMappings.work

    def counted(mine: drawing.FirstMappings, until: float) -> None:
        drawn.append(until)
        work(mine, until)

    monkeypatch.setattr(drawing, "AFTER", 0.0)
    monkeypatch.setattr(drawing, "PROVING", 0)
    monkeypatch.setattr(drawing, "SLICE", 0.0)
    monkeypatch.setattr(drawing.FirstMappings, "work", counted)
    found = Exact().search(asked)
    assert len(drawn) > 10
    assert (found.mapping, found.value, found.certificate) == (alone.mapping, alone.value, alone.certificate)


def test_nothing_is_drawn_while_drawing_rests() -> None:
    """Once a mapping is known; and afterwards it goes on as it was due."""
    asked = problem("gpt3-6.7b:batch=1,tokens=64", "tpu-v4i", "edp")
    run = engine.Run(asked, ExactOptions(), Budget(seconds=600.0), Watcher())
    run.incumbent.prove(1e-300)
    resting = run.drawing
    assert resting.first is not None

    def drawn() -> bool:
        """Whether the next look at the clock draws, as it is due."""
        resting._asked = resting._again = -inf
        slices.clear()
        resting.checkpoint()
        return bool(slices)

    slices: list[float] = []
    draws = resting.first.work
    resting.first.work = lambda until: (slices.append(until), draws(until))[1]  # type: ignore[method-assign]
    resting._at = due = -inf
    with resting.resting(600.0):
        assert drawn(), "nothing is known yet"
    assert resting.least < inf
    with resting.resting(600.0):
        assert not drawn()
    assert resting._at == due and drawn()
    with resting.resting(-1.0):
        assert drawn(), "the rest is over"

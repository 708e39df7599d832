"""Objects as a Python prompt shows them, and what ended a search, wherever answers are shown."""

from __future__ import annotations

import pickle
from dataclasses import replace

import einloom as el
from einloom.mapspace.limits.data import HoldLimit, Limits
from einloom.mapspace.space import Mapspace
from einloom.problem import Budget
from einloom.questions import problem
from einloom.report.page import page
from einloom.report.text import results as text
from einloom.report.text.table import columns
from einloom.result.unmapped import Unmapped, parse_answer
from einloom.search.answer import answer
from einloom.search.method import Recorder
from einloom.search.several import Labelled
from einloom.workload.selectors import selector


def test_a_mapping_prints_as_its_tree_and_a_result_as_one_line() -> None:
    """What a Python prompt shows of them: the whole problem stood there before, 5,000 characters of it."""
    found = el.map("matmul:m=4,n=4,k=4", "simple")
    assert str(found.mapping) == "store DRAM: A B Z\nfor m in 4\nfor n in 4\nfor k in 4\ncompute Z @ MAC"
    assert repr(found) == "<Result: matmul on simple, energy 1984 J, optimal>"
    priced = el.evaluate("matmul:m=4,n=4,k=4", "simple", str(found.mapping) + "\n")
    assert repr(priced) == "<Result: matmul on simple, energy 1984 J, evaluated>"
    assert repr(
        replace(found, certificate=replace(found.certificate, guarantee=el.Guarantee.BOUNDED, bound=992.0))
    ) == ("<Result: matmul on simple, energy 1984 J, bounded, gap 50.000%>")
    front = el.map("matmul:m=4,n=4,k=4", "simple", "pareto")
    assert repr(front) == "<Result: matmul on simple, a front of 1 mappings, least EDP 126976 J s, optimal>"


def test_what_ended_a_search_is_said() -> None:
    asked = el.questions.problem("residual-diamond", "simple:dram_energy=10,glb_bits=512", "edp")
    recorder = Recorder()
    whole = answer((Labelled("", asked),), "exact", Budget(), recorder)
    steps = recorder.counts["evaluated"] - 1
    found = answer((Labelled("", asked),), "exact", Budget(steps=steps), Recorder())
    assert isinstance(whole, el.Result) and isinstance(found, el.Result)
    assert "ended" not in text.summary(whole) and "ended" not in whole.to_data()
    assert "ended       the budget of steps ended; this is the best so far" in text.summary(found)
    assert "the budget of steps ended; this is the best so far" in page(found)
    assert found.to_data()["ended"] == "steps" and el.Result.from_json(found.to_json()).ended is found.ended
    asked = el.questions.problem("matmul:m=4,n=4,k=4", "two-level:glb_bits=32")
    nothing = answer((Labelled("", asked),), "exhaustive", Budget(memory=1), Recorder())
    assert isinstance(nothing, Unmapped) and nothing.to_data()["ended"] == "memory"
    assert parse_answer(nothing.to_json()).ended is nothing.ended
    assert repr(nothing).startswith("<Unmapped: matmul on two-level, unfinished")
    assert pickle.loads(pickle.dumps(nothing)) == nothing


def test_what_a_space_is_called_and_the_order_of_stores_are_said() -> None:
    """Beside the space's definition, which certificates have; the title is only a word for its limits."""
    space = Mapspace(limits=Limits(holds=(HoldLimit("bypass", "GLB", selector("A")),)), title="row stationary")
    found = el.map("matmul:m=4,n=4,k=4", "simple", mapspace=space)
    said = " ".join(text.summary(found).split())
    assert "space row stationary, in ffm: perfect tiles" in said
    assert "stores in the order of the machine's memories, no recomputation" in said
    assert found.certificate is not None and found.certificate.mapspace == space.describe()
    assert "row stationary, in ffm: " in page(found)
    kept = replace(space, limits=Limits(holds=(HoldLimit("keep", "GLB", selector("all")),)))
    tight = problem("matmul:m=4,n=4,k=4", "simple:glb_bits=8", mapspace=kept)
    none = answer((Labelled("", tight),), "exact", Budget(), Recorder())
    assert isinstance(none, Unmapped)
    assert "row stationary, in ffm: " in " ".join(text.nothing(none).split())
    compared = el.compare({"rs": found, "plain": el.map("matmul:m=4,n=4,k=4", "simple")})
    assert "different mapspaces: ffm 'row stationary' (rs); ffm (plain)" in " ".join(str(compared).split())
    assert [one["mapspace_name"] for one in compared.to_data()["results"]] == ["row stationary", None]
    assert ",row stationary," in compared.to_csv()


def test_the_bound_of_a_front_that_is_cut_off_is_one_of_the_least_edp() -> None:
    asked = problem("matmul:m=4,n=4,k=4", "simple", "pareto")
    found = answer((Labelled("", asked),), "exact", Budget(steps=1), Recorder())
    assert isinstance(found, el.Result) and found.ended is not None
    said = " ".join(text.summary(found).split())
    assert "proof bounded: no mapping has an EDP below" in said and "no more is proven of the front" in said
    assert "no more is proven of the front" not in text.summary(el.map("matmul:m=4,n=4,k=4", "simple", "pareto"))


def test_long_names_that_end_differently_stay_apart_in_tables() -> None:
    one, two, other = "e" * 119 + "1", "e" * 119 + "2", "o" * 120
    lines = columns("t", ("name", "x"), [(one, "3"), (two, "4")]).splitlines()
    assert [line.split()[0][-4:] for line in lines[3:]] == ["eee1", "eee2"] and "..." in lines[3]
    assert all(len(line) <= 100 for line in lines)
    lines = columns("t", ("name", "x"), [(one, "3"), (other, "4")]).splitlines()
    assert [line.split()[0][-4:] for line in lines[3:]] == ["e...", "o..."]

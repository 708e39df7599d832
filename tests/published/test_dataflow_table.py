"""TileFlow's comparison of dataflows: a small table solved, and what is proven infeasible."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from bench.dataflows import upgraded

from einloom.api import map as solve
from einloom.cost.evaluate import legality
from einloom.dataflows.files import dataflow
from einloom.dataflows.rewrites import online_softmax
from einloom.errors import Infeasible
from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapping.text import parse_mapping
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.limits.data import BackLimit, Limits, LoopLimit, Numbers
from einloom.mapspace.space import Mapspace
from einloom.published.cells import FREE, Cell
from einloom.published.dataflow_table import speed_ups, table
from einloom.published.dataflows import cell, cells, crowded
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

TILEFLOW_EDGE = 262_144  # cycles of TileFlow's published Bert-S mapping, which is not legal (docs/tileflow.md)


@pytest.mark.slow
def test_two_shapes() -> None:
    """Restrictions that contain each other order their optima; every tree is legal and inside."""
    names = ("flat-m", "flat-h", "flat-r", "flash-attention")
    found = list(cells(("tileflow-bert-s", "tileflow-vit-16-b"), ("tileflow-edge",), names, seconds=100))
    assert [c.dataflow for c in found] == [*names, *names]
    by = {(c.workload, c.dataflow): c for c in found}
    machine = load_machine("tileflow-edge")
    for name in ("tileflow-bert-s", "tileflow-vit-16-b"):
        workload = load_workload(name)
        values = [by[name, flow].cycles for flow in names[:3]]
        assert None not in values and values == sorted(values, reverse=True)  # type: ignore[type-var]
        flash = by[name, "flash-attention"]
        tiled = online_softmax(workload, int(flash.tiles.removeprefix("tiles=")))
        assert flash.status == "optimal" and not legality(tiled, machine, parse_mapping(flash.mapping, tiled, machine))
        for flow in names[:3]:
            one = by[name, flow]
            assert one.status == "optimal" and one.gap == 0
            tree = parse_mapping(one.mapping, workload, machine)
            assert not legality(workload, machine, tree)
            assert not outside(workload, machine, dataflow(flow).mapspace(workload, machine), tree)
    text = table(found)
    assert "attention on tileflow-edge, latency (cycles)" in text


def test_the_table_tells_what_is_proven() -> None:
    """``~``: not proven. Einsums at the same time: ``*`` where groups were not searched, and the faster of two."""
    known = Cell("tileflow-t5", "tileflow-edge", "flat-r", "latency", "optimal", cycles=500.0)
    cells = (
        replace(known, dataflow="layerwise", cycles=900.0, grouped=800.0, grouped_status="optimal"),
        replace(known, dataflow="flat-m", status="infeasible", cycles=None),
        replace(known, dataflow="flat-h", status="bounded", grouped=490.0, grouped_status="bounded"),
        replace(known, concurrent=450.0),
        replace(known, dataflow="chimera", concurrent=400.0, grouped=500.0, grouped_status="optimal"),
    )
    lines = [line.split()[1:] for line in table(cells).splitlines() if line.startswith("tileflow-t5")]
    assert lines == [["900", "infeasible", "~500", "500", "500"], ["800", "infeasible", "~490", "*450", "~400"]]


@pytest.mark.parametrize(
    ("name", "above"), [("tileflow-edge", 1.09), pytest.param("tileflow-edge-code", 1.04, marks=pytest.mark.slow)]
)
def test_best_legal_attention_on_edge(name: str, above: float) -> None:
    """einloom's legal mapping of Bert-S on Edge needs less than a third of the cycles of TileFlow's illegal one.

    It is near the bound that the number of operations sets for any mapping.
    """
    found = cell("tileflow-bert-s", name, "flat-r")
    workload, machine = load_workload("tileflow-bert-s"), load_machine(name)
    assert not legality(workload, machine, parse_mapping(found.mapping, workload, machine))
    assert found.status == "optimal" and found.cycles is not None
    operations = sum(prod(workload.extents[v] for v in e.variables) for e in workload.einsums)
    least = operations / prod(axis.size for axis in machine.axes.values())
    assert least == 68_096
    assert least <= found.cycles < above * least
    assert found.cycles < TILEFLOW_EDGE / 3


def _machine(bits: int) -> Machine:
    return Machine(
        "small",
        (
            Memory("DRAM", read_energy=10.0, write_energy=10.0, read_throughput=8.0, write_throughput=8.0),
            Memory("GLB", size=bits, read_energy=1.0, write_energy=1.0, must=selector("intermediate")),
            ComputeUnit("MAC", throughput=1.0, energy=1.0),
        ),
    )


def test_what_cannot_fit_is_told_by_counting() -> None:
    """T and U of the second Einsum are alive together: 16 values of a bit."""
    chain = build_workload("chain", ["T[m] = exp(X[m])", "U[m] = exp(T[m])", "Z[m] = exp(U[m])"], {"m": 8}, bits=1)
    both = BackLimit(selector("intermediate"), ("GLB",))
    space = Mapspace(limits=Limits(backs=(both,), loops=(LoopLimit(selector("all"), ("m",), Numbers(values=(1,))),)))
    assert crowded(chain, _machine(15), space) == "T, U of U take 16 bits as a whole, on chip are 15"
    with pytest.raises(Infeasible):
        solve(chain, _machine(15), mapspace=space)
    assert crowded(chain, _machine(16), space) == ""
    assert solve(chain, _machine(16), mapspace=space).certificate is not None
    tiled = Mapspace(limits=Limits(backs=(both,)))
    assert crowded(chain, _machine(15), tiled) == ""
    assert solve(chain, _machine(15), mapspace=tiled).certificate is not None


def test_speed_ups_are_geometric_means() -> None:
    def one(workload: str, flow: str, cycles: float, concurrent: float | None = None) -> Cell:
        return Cell(workload, "tileflow-edge", flow, "latency", "optimal", cycles, 1.0, 0.0, 0.0, concurrent)

    found = [
        one("tileflow-t5", "layerwise", 100.0),
        one("tileflow-t5", "flat-h", 50.0, 25.0),
        one("tileflow-xlm", "layerwise", 800.0),
        one("tileflow-xlm", "flat-h", 100.0, 200.0),
        one("tileflow-bert-s", "flat-h", 1.0),
    ]
    layers, heads = speed_ups(found)
    assert (layers.mean, layers.printed, layers.shapes) == (1.0, None, 2)
    assert heads.shapes == 2 and heads.mean == pytest.approx(4.0) and heads.printed == 3.59
    assert heads.concurrent == pytest.approx((4.0 * 8.0) ** 0.5)


def test_an_upgrade_keeps_the_better_of_two_runs() -> None:
    """Without groups and with them each; bounds are in seconds."""
    rate = load_machine("tileflow-edge").units[0].throughput
    assert rate is not None

    def run(status: str, cycles: float | None, bound: float, *groups: object) -> Cell:
        base = Cell("tileflow-t5", "tileflow-edge", "flat-h", "latency", status, cycles, 1.0, bound / rate, 0.5)
        if not groups:
            return base
        what, value, low = groups
        return replace(base, grouped_status=what, grouped=value, grouped_bound=low / rate)  # type: ignore[operator]

    proven, slow = run("optimal", 100.0, 100.0), run("bounded", 120.0, 90.0)
    for a, b in ((proven, slow), (slow, proven)):
        assert (upgraded(a, b).status, upgraded(a, b).cycles, upgraded(a, b).gap) == ("optimal", 100.0, 0.0)
    better = upgraded(run("bounded", 110.0, 80.0), slow)
    assert (better.status, better.cycles, better.bound) == ("bounded", 110.0, pytest.approx(90.0 / rate))
    assert better.gap == pytest.approx(1 - 90 / 110)
    assert upgraded(run("open", None, 120.0), slow).status == "optimal"
    assert upgraded(slow, run("open", None, 120.0)).status == "optimal"
    found = upgraded(
        run("optimal", 100.0, 100.0, "bounded", 100.0, 70.0), run("optimal", 100.0, 100.0, "open", None, 80.0)
    )
    assert (found.grouped_status, found.grouped, found.grouped_bound) == ("bounded", 100.0, pytest.approx(80.0 / rate))
    found = upgraded(found, run("bounded", 110.0, 90.0, "optimal", 95.0, 95.0))
    assert (found.status, found.cycles, found.grouped_status, found.grouped) == ("optimal", 100.0, "optimal", 95.0)
    assert upgraded(proven, slow).grouped_status == "" and upgraded(proven, slow).grouped_bound is None


def test_a_cell_starts_from_what_is_known() -> None:
    """With no time at all it has the mapping of a smaller space, but not one from outside its own: then any of its own.

    The least cycles of flat-m are a bound of flat-r, too, so they are its least.
    """
    names = "tileflow-vit-16-b", "tileflow-edge"
    layers, smaller = cell(*names, "layerwise"), cell(*names, "flat-m")
    stopped = cell(*names, FREE, seconds=0.0, starts=["", layers.mapping])
    assert (stopped.status, stopped.cycles, stopped.mapping) == ("bounded", layers.cycles, layers.mapping)
    assert stopped.bound is not None and smaller.bound is not None and stopped.bound <= smaller.bound
    for seconds, status in ((0.0, "bounded"), (None, "optimal")):
        begun = cell(*names, "flat-r", seconds=seconds, starts=[layers.mapping, smaller.mapping])
        assert (begun.status, begun.cycles, begun.mapping) == (status, smaller.cycles, smaller.mapping)
    for other in ("layerwise", "flash-attention"):
        begun = cell(*names, other, seconds=0.0, starts=[smaller.mapping])
        assert begun.status in ("open", "bounded") and begun.mapping != smaller.mapping
    grouped = cell(*names, "flat-m", groups=True, starts=[smaller.mapping])
    assert (grouped.grouped_status, grouped.grouped) == ("optimal", smaller.cycles)


def test_lenders_are_solved_first_and_are_no_cells() -> None:
    asked = []

    def lenders(workload: str, machine: str, flow: str) -> tuple[str, ...]:
        asked.append(flow)
        return ("flat-m",)

    names = ("tileflow-vit-16-b",), ("tileflow-edge",)
    found = list(cells(*names, ("flat-b", "flat-h", "flat-r"), wanted=lambda *key: key[2] != "flat-h", lenders=lenders))
    assert [(c.dataflow, c.status) for c in found] == [("flat-b", "optimal"), ("flat-r", "optimal")]
    assert asked == ["flat-b", "flat-r"]

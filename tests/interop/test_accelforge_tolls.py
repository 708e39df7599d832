"""AccelForge's ``Toll`` and the other words of its compute-in-memory macros, read and written."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from einloom.cost.evaluate import evaluate
from einloom.errors import SpecError
from einloom.interop.accelforge import export, read
from einloom.interop.accelforge.read import read_texts
from einloom.interop.bundle import Bundle
from einloom.machine.files import parse_machine
from einloom.machine.levels import Machine
from einloom.mapspace.limits.data import HoldLimit
from einloom.mapspace.space import Mapspace
from einloom.oracle import simulate
from einloom.problem import Guarantee, Objective, Problem
from einloom.search.exact import Exact, ExactOptions, Rules
from einloom.zoo.workload_by_name import load_workload

MACRO = """
arch:
  nodes:
  - !Toll
    name: Converter
    tensors: {keep: output}
    direction: up
    values_per_action: {All: 2}
    actions: [{name: read, energy: 6e-12, throughput: 1e9}]
  - !Memory
    name: Latch
    size: 64
    tensors: {keep: input, no_resend_to_below: input}
  - !Container
    name: Column
    spatial: [{name: reuse, fanout: 4, may_reuse: input, min_usage: 1, power_gateable: True}]
  - !Toll
    name: Limiter
    tensors: {keep: (weight | output) & Above}
    direction: {Outputs: up, ~Outputs: down}
    bits_per_value: {weight: 0.75, output: 2, input: 0}
    actions: [{name: read, latency: 1e-9}]
  - !Container
    name: Row
    spatial: [{name: reuse, fanout: 8, reuse: output, loop_bounds: [{expression: "{M, N}", operator: <=, value: 1}]}]
  - !Memory
    name: Cell
    size: 8
    bits_per_value: {weight: 8 / 3}
    values_per_action: {All: 1}
    tensors: {keep: weight, no_refetch_from_above: weight, force_memory_hierarchy_order: False}
    actions: [{name: write, energy: 3e-12}]
  - !Compute
    name: Free
    enabled: len(All) == 3
    skip_initial_output_write: False
"""
MATMUL = """
workload:
  rank_sizes: {M: 2, N: 4, K: 8}
  bits_per_value: {All: 8}
  einsums:
  - name: Matmul
    tensor_accesses:
    - {name: input, projection: [m, k]}
    - {name: weight, projection: [k, n]}
    - {name: output, projection: [m, n], output: True}
"""
FRONT = "einloom: {main_memory: Outside}\n"


def macro(*changes: str) -> Bundle:
    arch = MACRO
    for old, new in (change.split(" => ") for change in changes):
        assert old in arch
        arch = arch.replace(old, new)
    return read_texts({"arch.yaml": arch, "workload.yaml": MATMUL, "front.yaml": FRONT})


def machine_of(found: Bundle) -> Machine:
    assert found.machine is not None
    return found.machine


def test_a_macro_reads_as_tolls_a_memory_and_a_limit() -> None:
    found = macro()
    machine = machine_of(found)
    assert [level.name for level in machine.levels] == (
        ["Outside", "Converter", "Latch", "Column", "Limiter", "Row", "Cell", "Free"]
    )
    converter, latch, limiter = machine.tolls
    assert (converter.energy, converter.bits_per_access, converter.throughput) == (6e-12, 2, 2e9)
    assert (converter.down.text, converter.up.text, converter.widths[0][1]) == ("nothing", "output", 1)
    assert (latch.energy, latch.throughput, latch.down.text, latch.up.text) == (0, None, "input", "nothing")
    assert [(which.text, bits) for which, bits in limiter.widths] == [("weight", 3), ("output", 8), ("all", 32)]
    assert (limiter.bits_per_access, limiter.throughput) == (4, pytest.approx(4e9))
    assert found.workload is not None
    charges = {t: limiter.charges(found.workload, "Matmul", t) for t in ("input_", "weight_", "output_")}
    assert charges == {"input_": (False, False), "weight_": (True, False), "output_": (False, True)}
    cell = machine.memory("Cell")
    assert (cell.size, cell.bits(found.workload, "Matmul", "weight_"), cell.bits_per_access) == (24, 8, 8)
    assert found.mapspace is not None
    assert found.mapspace.limits.holds == (HoldLimit("once", "Cell", cell.must),)
    assert [limit.variables for limit in found.mapspace.limits.axes] == [("m", "n")]
    assert set(machine.axes) == {"reuse", "Row-reuse"}
    said = " ".join(found.notes)
    for word in ("power_gateable", "no_resend_to_below", "force_memory_hierarchy_order", "skip_initial_output_write"):
        assert word in said


def test_the_macro_is_mapped_to_its_optimum() -> None:
    """8 rows and 4 columns hold all 32 weights, written once at 3 pJ; 8 results pass the converter, two at a time."""
    found = macro()
    assert found.workload is not None
    result = Exact().search(Problem(found.workload, machine_of(found), found.mapspace or Mapspace(), Objective("edp")))
    assert result.certificate is not None and result.certificate.guarantee is Guarantee.OPTIMAL
    cost = evaluate(result.workload, result.machine, result.mapping)
    assert cost.energy == pytest.approx(32 * 3e-12 + 8 / 2 * 6e-12)
    assert cost.count("Cell", "weight_", "write") == 32
    assert (cost.count("Converter", "output_", "up"), cost.count("Latch", "input_", "down")) == (8, 16)
    assert (cost.count("Limiter", "weight_", "down"), cost.count("Limiter", "output_", "up")) == (32, 8)


SIDE_BY_SIDE = """
arch:
  nodes:
  - !Memory
    name: MainMemory
    size: inf
    tensors: {keep: All}
    actions: [{name: read, energy: 20, throughput: 64}, {name: write, energy: 20, throughput: 64}]
  - !Memory
    name: Buffer
    size: 2048
    tensors: {keep: Nothing, may_keep: input | output}
    actions: [{name: read, energy: 2, throughput: 128}, {name: write, energy: 2, throughput: 128}]
  - !Toll
    name: ADC
    tensors: {keep: output}
    direction: up
    values_per_action: {All: 1}
    actions: [{name: read, energy: 30, throughput: 4}]
  - !Toll
    name: RowDrivers
    tensors: {keep: input}
    direction: down
    values_per_action: {All: 1}
    actions: [{name: read, energy: 5, throughput: 16}]
  - !Memory
    name: Latch
    size: 8 * 16
    tensors: {keep: input, no_resend_to_below: input}
    actions: [{name: read, energy: 0, throughput: inf}, {name: write, energy: 0, throughput: inf}]
  - !Toll
    name: WeightDrivers
    tensors: {keep: weight & Above}
    direction: down
    actions: [{name: read, energy: 3, throughput: inf}]
  - !Container
    name: Column
    spatial: [{name: col, fanout: 8, may_reuse: input, min_usage: 1}]
  - !Container
    name: Row
    spatial: [{name: row, fanout: 16, reuse: output, min_usage: 1}]
  - !Memory
    name: Cell
    size: 8 * CELLS
    values_per_action: {All: 1}
    tensors: {keep: weight, no_refetch_from_above: weight, force_memory_hierarchy_order: False}
    actions: [{name: read, energy: 0.5, throughput: 1}, {name: write, energy: 7, throughput: 1}]
  - !Compute
    name: Free
    actions: [{name: compute, energy: 0, throughput: inf}]
    enabled: len(All) == 3
"""
FOUND = (
    ((1, 4, 8, 16), 41344, 28),
    ((4, 16, 16, 32), 343552, 224),
    ((2, 32, 8, 32), 294656, 192),
    ((2, 8, 16, 16), 102144, 64),
    ((8, 24, 24, 32), 699648, 456),
)
"""(Weights per cell, M, N, K), joules and seconds of what AccelForge 1.0.467 finds, for energy and for EDP."""


@pytest.mark.parametrize(("sizes", "joules", "seconds"), FOUND)
def test_a_macro_costs_what_the_other_tool_finds(sizes: tuple[int, ...], joules: float, seconds: float) -> None:
    cells, m, n, k = sizes
    workload = MATMUL.replace("{M: 2, N: 4, K: 8}", f"{{M: {m}, N: {n}, K: {k}}}")
    found = read_texts({"arch.yaml": SIDE_BY_SIDE.replace("CELLS", str(cells)), "workload.yaml": workload})
    assert found.workload is not None
    for objective in ("energy", "edp"):
        problem = Problem(found.workload, machine_of(found), found.mapspace or Mapspace(), Objective(objective))
        result = Exact(ExactOptions(Rules(deferral=False))).search(problem)
        assert (result.energy, result.latency) == (pytest.approx(joules), pytest.approx(seconds))
        stays = Exact().search(problem)
        assert (stays.energy, stays.latency) == (pytest.approx(LESS.get(joules, (joules, seconds))))
        assert simulate(problem.workload, problem.machine, stays.mapping).correct


LESS = {343552: (286208, 160), 699648: (503040, 336)}
"""Joules and seconds where all weights stay in the cells while the buffer changes: no mapping of the other tool."""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("direction: up\n => direction: sideways\n", "sideways"),
        ("{keep: output} => {may_keep: output}", "may_keep of a Toll"),
        ("size: 64 => actions: [{name: read, energy: 1}]\n    size: 64", "a place that values pass"),
        ("no_resend_to_below: input => no_resend_to_below: weight", "a place that values pass"),
        ("name: Cell => name: Cell\n    leak_power: 1", "power_gateable has no counterpart here, and Cell"),
        ("power_gateable: True => name: again", "name"),
        ('"{M, N}" => "{M, X}"', "'X' in '{M, X}' is no rank variable"),
        ("8 / 3 => -8 / 3", "bits per value must be a positive number"),
        ("8 / 3 => inf", "bits per value must be a positive number"),
        ("8 / 3 => 0", "bits per value must be a positive number"),
        ("weight: 0.75 => weight: -0.75", "may not be negative"),
        ("direction: up\n => direction: down\n", "first reads of results cost something, as in Converter"),
    ],
)
def test_what_cannot_be_said_is_named(change: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        macro(change)


def test_without_a_memory_in_front_the_way_out_is_told() -> None:
    with pytest.raises(SpecError, match="main_memory: MainMemory"):
        read_texts({"arch.yaml": MACRO, "workload.yaml": MATMUL})


TOLLED = """
schema: machine/1
name: tolled
levels:
  - {memory: MM, read_energy: 1, write_energy: 1, must: ~intermediate}
  - {toll: Bus, energy: 2, bits_per_access: 4, throughput: 8, leakage: 1}
  - {memory: GLB, size: 1024, read_energy: 1, write_energy: 1, must: unheld}
  - {fanout: PE, axes: [{axis: X, size: 4, multicast: all, reduce: all}]}
  - {toll: ADC, energy: 3, down: input, up: output, widths: {all: 1}, area: 2}
  - {toll: Odd, energy: 1, down: input | output, up: output}
  - {compute: MAC, throughput: 1, energy: 1}
"""


def test_tolls_go_there_and_back() -> None:
    workload, machine = load_workload("matmul:m=4,n=4,k=4"), parse_machine(TOLLED)
    exported = export(workload, machine)
    assert exported.files["arch.yaml"].count("!Toll") == 3
    again = machine_of(read_texts(exported.files))
    for mine, theirs in zip(machine.tolls, again.tolls, strict=True):
        einsum = workload.einsums[0].name
        for tensor in workload.einsums[0].tensors:
            assert mine.charges(workload, einsum, tensor) == theirs.charges(workload, einsum, tensor), (mine, theirs)
            share = mine.bits(workload, einsum, tensor) * theirs.bits_per_access
            assert share == theirs.bits(workload, einsum, tensor) * mine.bits_per_access
        assert (mine.name, mine.energy, mine.leakage, mine.area) == (
            theirs.name,
            theirs.energy,
            theirs.leakage,
            theirs.area,
        )
    optima = [Exact().search(Problem(workload, m, Mapspace(), Objective("edp"))).value for m in (machine, again)]
    assert optima[0] == pytest.approx(optima[1])


PRICED = """
arch:
  nodes:
  - !Memory
    name: MM
    size: inf
    tensors: {keep: All}
    actions: [{name: read, energy: 1, throughput: 2}, {name: write, energy: 1, throughput: 2}]
  - !Toll
    name: Bus
    tensors: {keep: All}
    direction: up_and_down
    actions: [{name: read, energy: 1, throughput: 1}]
  - !Container
    name: PE
    spatial: [{name: X, fanout: 4}]
  - !Toll
    name: Driver
    tensors: {keep: All}
    direction: up_and_down
    actions: [{name: read, energy: 1}]
  - !Memory
    name: Reg
    size: 64
    tensors: {keep: B, may_keep: All}
    actions: [{name: read, energy: 1, throughput: 1}, {name: write, energy: 1, throughput: 1}]
  - !Compute
    name: MAC
    actions: [{name: compute, energy: 1, throughput: 1}]
workload:
  rank_sizes: {M: 4, N: 4, K: 4}
  bits_per_value: {All: 1}
  einsums:
  - name: E
    tensor_accesses:
    - {name: A, projection: [m, k]}
    - {name: B, projection: [k, n]}
    - {name: Z, projection: [m, n], output: True}
mapping:
  nodes:
  - !Storage {tensors: [A, B, Z], component: MM}
  - !Toll {tensors: [A, B, Z], component: Bus}
  - !Spatial {rank_variable: n, tile_shape: 1, name: X, component: PE}
  - !Toll {tensors: [A, B, Z], component: Driver}
  - !Storage {tensors: [B], component: Reg}
  - !Temporal {rank_variable: k, tile_shape: 1}
  - !Temporal {rank_variable: m, tile_shape: 1}
  - !Compute {einsum: E, component: MAC}
"""


def test_a_mapping_with_tolls_costs_what_the_other_tool_says() -> None:
    """The totals and counts are those that AccelForge 1.0.467 prints of this schedule."""
    found = read_texts({"all.yaml": PRICED})
    assert found.workload is not None and found.machine is not None and found.mapping is not None
    cost = evaluate(found.workload, found.machine, found.mapping)
    passed = {(a.component, a.tensor): 0 for a in cost.actions if a.action in ("down", "up")}
    for a in cost.actions:
        if a.action in ("down", "up"):
            passed[a.component, a.tensor] += a.count
    assert (cost.energy, cost.latency) == (624, 144)
    assert passed == {
        ("Bus", "A"): 16,
        ("Bus", "B"): 16,
        ("Bus", "Z"): 112,
        ("Driver", "A"): 64,
        ("Driver", "B"): 16,
        ("Driver", "Z"): 112,
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  - !Toll {tensors: [A, B, Z], component: Bus}\n", "", "Z of E passes Bus, which the mapping leaves out"),
        ("[A, B, Z], component: Driver", "[A, B, C], component: Driver", "Driver charges no 'C' here"),
        ("component: Driver}", "component: Drive}", "has no toll 'Drive'"),
    ],
)
def test_a_mapping_pays_the_tolls_of_the_machine(old: str, new: str, message: str) -> None:
    assert old in PRICED
    with pytest.raises(SpecError, match=re.escape(message)):
        read_texts({"all.yaml": PRICED.replace(old, new)})


# The examples of the package itself, where it is installed (bench/setup_peer.sh, or a folder in ACCELFORGE_EXAMPLES).

INSTALLED = "bench/.venv-peer/lib/python*/site-packages/examples"
PLACES = (os.environ.get("ACCELFORGE_EXAMPLES", ""), *map(str, Path(__file__).parents[2].glob(INSTALLED)))
EXAMPLES = next((Path(place) for place in PLACES if place and Path(place).is_dir()), None)
FILES = [] if EXAMPLES is None else sorted(EXAMPLES.glob("arches/**/*.yaml"))
ARCHES = [path for path in FILES if path.parent.name != "memory_cells" and not path.name.startswith("_")]
MACROS = [path for path in ARCHES if path.parent.name == "compute_in_memory"]
VALUES = {"average": "0.5", "scaling": "moderate", "voltage": "1"}
ROWS = {"basic": 32, "colonnade": 128, "isaac": 128, "jia": 2304, "neurram": 256, "raella": 512}
"""Rows of the arrays of some macros, which a function of the package would count; 64 of the others."""


def filled(path: Path, folder: Path) -> Bundle:
    """The example, every energy one picojoule, with numbers for what its functions would say."""
    models: dict[str, str] = {}
    values: dict[str, str] = {}
    assert EXAMPLES is not None
    front = "  main_memory: Front\n" if path in MACROS else "  components: {}\n"
    files = [path] if path in MACROS else [path, EXAMPLES / "workloads" / "matmuls.yaml"]
    beside, rows = folder / "beside.yaml", str(ROWS.get(path.stem.split("_")[0], 64))
    for _ in range(12):
        given = "".join(f"    {name}: {numbers}\n" for name, numbers in models.items())
        known = "".join(f"    {name}: {number}\n" for name, number in values.items())
        text = f"einloom:\n{front}" + f"  models:\n{given}" * bool(given) + f"  values:\n{known}" * bool(known)
        beside.write_text(text, encoding="utf-8")
        try:
            return read([*files, beside], {"N_EINSUMS": "2"})
        except SpecError as error:
            asked = dict(re.findall(r"^    (\w+): (\{.*?\})", str(error), re.MULTILINE))
            missing = re.findall(r"values: \{(\w+): \.\.\.", str(error))
            missing += re.findall(r"^    (\w+): FILL$", str(error), re.MULTILINE)
            if not asked and not missing:
                raise
            models |= {name: numbers.replace("FILL", "1") for name, numbers in asked.items()}
            values |= {name: next((v for k, v in VALUES.items() if name.startswith(k)), "8") for name in missing}
            values |= {name: rows for name in values if name.startswith("array_parallel")}
    raise AssertionError(f"{path.name} asks for more and more")


@pytest.mark.skipif(not ARCHES, reason="AccelForge's examples are not installed")
def test_every_architecture_of_the_package_loads(tmp_path: Path) -> None:
    assert (len(ARCHES), len(MACROS)) == (20, 9)
    for path in ARCHES:
        found = filled(path, tmp_path)
        assert machine_of(found).levels and (path not in MACROS or machine_of(found).tolls), path.name


@pytest.mark.skipif(not ARCHES, reason="AccelForge's examples are not installed")
def test_every_macro_maps_its_own_matmul_to_a_proven_optimum(tmp_path: Path) -> None:
    for path in MACROS:
        found = filled(path, tmp_path)
        assert found.workload is not None
        problem = Problem(found.workload, machine_of(found), found.mapspace or Mapspace(), Objective("energy"))
        result = Exact().search(problem)
        assert result.certificate is not None and result.certificate.guarantee is Guarantee.OPTIMAL, path.name
        tolls = {toll.name for toll in result.machine.tolls}
        assert sum(a.energy for a in result.cost.actions if a.component in tolls) > 0, path.name

"""Machine files: read, write, and every mistake with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from einloom.errors import SpecError, SpecErrors
from einloom.machine.checked import checked
from einloom.machine.files import machine_from_data, parse_machine, read_machine
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory, Toll
from einloom.machine.write import machine_data, machine_text, write_machine
from einloom.reading.facts import Fact
from einloom.workload.selectors import selector

GOOD = """\
schema: machine/1
name: small
description: for tests
source: data sheet
kind: printed
partial_sums: once
parameters: {lanes: 16}
levels:
  - memory: DRAM
    read_energy: 7.03 pJ
    write_energy: {value: 7.03 pJ, source: own measurement, kind: derived}
    read_throughput: 614 GB/s
    must: ~intermediate
  - memory: GLB
    source: another sheet
    size: 128 MiB
    bits_per_access: 8 B
    write_throughput: 1 Tbit/s
    ports: separate
    widths: {output: 32, input | weight: 4}
    must: unheld
    may: (input | output) & ~copy
    backs: nothing
    double_buffer: true
    leakage: 2 mW
    area: 3 mm2
  - fanout: Z
    axes: [{axis: Z, size: 4, multicast: nothing, reduce: nothing, use: full}]
  - compute: Vector
    kinds: [map]
    operands: [1, 2]
  - fanout: PE
    axes:
      - {axis: rows, size: 2 * lanes, multicast: input, only_irrelevant_to: input}
      - {axis: columns, size: lanes}
  - compute: MAC
    throughput: 1.05 GHz
    energy: 0.084 pJ
    leakage: 1 uW
    area: 5 um2
"""


def test_every_field_is_read() -> None:
    machine = parse_machine(GOOD)
    nothing = selector("nothing")
    assert machine == Machine(
        "small",
        (
            Memory("DRAM", None, 7.03e-12, 7.03e-12, read_throughput=614e9 * 8, must=selector("~intermediate")),
            Memory(
                "GLB",
                2**30,
                bits_per_access=64,
                write_throughput=1e12,
                ports="separate",
                widths=((selector("output"), 32), (selector("input | weight"), 4)),
                must=selector("unheld"),
                may=selector("(input | output) & ~copy"),
                backs=nothing,
                double_buffer=True,
                leakage=2e-3,
                area=3e-6,
            ),
            Fanout("Z", (Axis("Z", 4, nothing, nothing, use="full"),)),
            ComputeUnit("Vector", kinds=("map",), operands=(1, 2)),
            Fanout(
                "PE",
                (
                    Axis("rows", 32, multicast=selector("input"), only_irrelevant_to=selector("input")),
                    Axis("columns", 16),
                ),
            ),
            ComputeUnit("MAC", 1.05e9, 0.084e-12, leakage=1e-6, area=5e-12),
        ),
        partial_sums="once",
    )
    assert machine.instances("GLB") == 1 and machine.instances("MAC") == 4 * 32 * 16


def test_sources_are_inherited() -> None:
    facts = {fact.path: (fact.source, fact.kind) for fact in parse_machine(GOOD).facts}
    assert facts["DRAM.read_energy"] == ("data sheet", "printed")
    assert facts["DRAM.write_energy"] == ("own measurement", "derived")
    assert facts["GLB.size"] == ("another sheet", "printed")
    assert facts["GLB.widths.output"] == ("another sheet", "printed")
    assert facts["rows.size"] == ("data sheet", "printed")


def test_round_trips(tmp_path: Path) -> None:
    machine = parse_machine(GOOD)
    again = parse_machine(machine_text(machine))
    assert again == machine and set(again.facts) == set(machine.facts)
    assert machine_from_data(json.loads(json.dumps(machine_data(machine)))) == machine
    write_machine(machine, tmp_path / "m.yaml")
    assert read_machine(tmp_path / "m.yaml") == machine


def test_parameters_may_be_set() -> None:
    assert parse_machine(GOOD, parameters={"lanes": "3"}).axes["rows"].size == 6
    with pytest.raises(SpecError, match="did you mean 'lanes'"):
        parse_machine(GOOD, parameters={"lane": "3"})
    with pytest.raises(SpecError, match=r"m\.yaml:2:14: a parameter may not be called 's'"):
        parse_machine("schema: machine/1\nparameters: {s: 3}\nname: x\n", "m.yaml")


HEAD = "schema: machine/1\nname: x\nlevels:\n"
MEMORY = "- memory: A\n"
UNIT = "- compute: C\n"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (HEAD + "- {memory: A, sise: 3}\n" + UNIT, "m.yaml:4:15:", "did you mean 'size'"),
        (HEAD + "- {memory: A, size: 1, size: 2}\n", "m.yaml:4:24:", "stands here twice"),
        (HEAD + "- {memory: A, size: 0}\n" + UNIT, "m.yaml:4:21:", "greater than zero"),
        (HEAD + "- {memory: A, size: 1.5 bit}\n" + UNIT, "m.yaml:4:21:", "not a whole number of bits"),
        (HEAD + "- {memory: A, size: 3 pJ}\n" + UNIT, "m.yaml:4:21:", "is an energy"),
        (HEAD + "- {memory: A, read_throughput: -614 GB/s}\n" + UNIT, "m.yaml:4:32:", "greater than zero"),
        (HEAD + "- {memory: A, read_energy: -1 pJ}\n" + UNIT, "m.yaml:4:28:", "may not be negative"),
        (HEAD + "- {memory: A, read_energy: unlimited}\n" + UNIT, "m.yaml:4:28:", "unknown name"),
        (HEAD + "- {memory: A, leakage: -1}\n" + UNIT, "m.yaml:4:24:", "may not be negative"),
        (HEAD + "- {memory: A, bits_per_access: 0}\n" + UNIT, "m.yaml:4:32:", "greater than zero"),
        (HEAD + "- {memory: A, ports: shred}\n" + UNIT, "m.yaml:4:22:", "did you mean 'shared'"),
        (HEAD + "- {memory: A, must: input & }\n" + UNIT, "m.yaml:4:21:", "ends too early"),
        (HEAD + "- {memory: A, must: input ? x}\n" + UNIT, "m.yaml:4:21:", "unexpected '?'"),
        (HEAD + "- {memory: A, widths: {output: 0}}\n" + UNIT, "m.yaml:4:32:", "at least 1"),
        (HEAD + "- {memory: A, widths: {'(': 3}}\n" + UNIT, "m.yaml:4:24:", "ends too early"),
        (HEAD + "- {memory: A, double_buffer: 2}\n" + UNIT, "m.yaml:4:30:", "true or false"),
        (HEAD + "- {memory: A, size: __import__('os').system('x')}\n" + UNIT, "m.yaml:4:21:", "is not arithmetic"),
        (HEAD + "- {memory: A, size: {value: 3, sauce: x}}\n" + UNIT, "m.yaml:4:32:", "did you mean 'source'"),
        (HEAD + "- {memory: A, size: {value: 3, source: x, kind: guess}}\n" + UNIT, "m.yaml:4:49:", "is none of"),
        (HEAD + MEMORY + "- {fanout: F, axes: [{axis: X, size: 0}]}\n" + UNIT, "m.yaml:5:38:", "at least 1"),
        (HEAD + MEMORY + "- {fanout: F, axes: [{axis: X}]}\n" + UNIT, "m.yaml:5:22:", "key 'size' is missing"),
        (HEAD + MEMORY + "- {fanout: F, axes: []}\n" + UNIT, "m.yaml:5:21:", "an axis must stand here"),
        (HEAD + MEMORY + "- {fanout: A, axes: [{axis: X, size: 2}]}\n" + UNIT, "m.yaml:5:3:", "name A is taken"),
        (HEAD + MEMORY + "- {fanout: F, axes: [{axis: A, size: 2}]}\n" + UNIT, "m.yaml:5:3:", "name A is taken"),
        (
            HEAD + MEMORY + "- {fanout: F, axes: [{axis: F, size: 2}, {axis: G, size: 2}]}\n" + UNIT,
            "m.yaml:5:3:",
            "name F is taken",
        ),
        (HEAD + MEMORY + MEMORY + UNIT, "m.yaml:5:3:", "name A is taken"),
        (HEAD + MEMORY, "m.yaml:4:1:", "at least one compute unit"),
        (HEAD + UNIT, "m.yaml:4:1:", "at least one memory"),
        (HEAD + UNIT + MEMORY, "m.yaml:4:3:", "first level must be a memory"),
        (HEAD + MEMORY + UNIT + "- memory: B\n", "m.yaml:6:3:", "stands after every compute unit"),
        (HEAD + MEMORY + "- {compute: C, throughput: 0}\n", "m.yaml:5:28:", "greater than zero"),
        (HEAD + MEMORY + "- {compute: C, kinds: [mul]}\n", "m.yaml:5:24:", "is none of"),
        (HEAD + MEMORY + "- {compute: C, kinds: []}\n", "m.yaml:5:23:", "one of multiply, map must stand here"),
        (HEAD + MEMORY + "- {compute: C, operands: [0]}\n", "m.yaml:5:27:", "at least 1"),
        (HEAD + "- {memory: A, compute: B}\n", "m.yaml:4:3:", "has 2 of them"),
        (HEAD + "- {memory: 'a b'}\n" + UNIT, "m.yaml:4:12:", "is no name"),
        (HEAD + f"- {{memory: {'a' * 128}}}\n" + UNIT, "m.yaml:4:12:", "it has 128 characters of at most 100"),
        (HEAD + "- 3\n" + UNIT, "m.yaml:4:3:", "expected a mapping"),
        ("schema: machine/1\nname: x\nlevels: 3\n", "m.yaml:3:9:", "expected a list"),
        ("schema: machine/1\nname: x\n", "m.yaml:1:1:", "key 'levels' is missing"),
        ("schema: workload/1\n", "m.yaml:1:9:", "a machine file is expected"),
        (HEAD + MEMORY + UNIT + "partial_sum: once\n", "m.yaml:6:1:", "did you mean 'partial_sums'"),
    ],
)
def test_mistakes_have_a_place(text: str, place: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_machine(text, "m.yaml")
    assert str(caught.value).startswith(place) and message in str(caught.value)


def test_several_mistakes_come_at_once() -> None:
    text = HEAD + "- {memory: A, size: 0, sise: 3}\n- {compute: C, energy: -1}\n"
    with pytest.raises(SpecErrors) as caught:
        parse_machine(text, "m.yaml")
    assert [(error.line, error.column) for error in caught.value.problems] == [(4, 21), (4, 24), (5, 24)]


POSITIVE = st.floats(1e-15, 1e15)
SELECTORS = st.sampled_from(("all", "nothing", "~intermediate", "(input|output)&~copy", "X | ~Y")).map(selector)


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Machines with a DRAM, up to three more levels and a unit, all fields random."""
    levels: list[Memory | Toll | Fanout | ComputeUnit] = []
    for i in range(draw(st.integers(1, 3))):
        levels.append(
            Memory(
                f"M{i}",
                size=draw(st.none() | st.integers(1, 2**50)),
                read_energy=draw(st.just(0.0) | POSITIVE),
                write_energy=draw(POSITIVE),
                bits_per_access=draw(st.sampled_from((1, 64, 4096))),
                read_throughput=draw(st.none() | POSITIVE),
                write_throughput=draw(st.none() | POSITIVE),
                ports=draw(st.sampled_from(("shared", "separate"))),
                widths=draw(st.just(()) | st.tuples(st.tuples(SELECTORS, st.integers(1, 64)))),
                must=draw(SELECTORS),
                may=draw(SELECTORS),
                backs=draw(SELECTORS),
                double_buffer=draw(st.booleans()),
                leakage=draw(POSITIVE),
                area=draw(POSITIVE),
            )
        )
        if draw(st.booleans()):
            levels.append(
                Toll(
                    f"T{i}",
                    energy=draw(POSITIVE),
                    bits_per_access=draw(st.sampled_from((1, 8))),
                    throughput=draw(st.none() | POSITIVE),
                    down=draw(SELECTORS),
                    up=draw(SELECTORS),
                    widths=draw(st.just(()) | st.tuples(st.tuples(SELECTORS, st.integers(1, 64)))),
                    leakage=draw(POSITIVE),
                    area=draw(POSITIVE),
                )
            )
        if draw(st.booleans()):
            axis = Axis(f"x{i}", draw(st.integers(1, 999)), draw(SELECTORS), draw(SELECTORS), draw(SELECTORS), "full")
            levels.append(Fanout(draw(st.sampled_from((f"x{i}", f"F{i}"))), (axis,)))
    levels.append(
        ComputeUnit(
            "C",
            draw(st.none() | POSITIVE),
            draw(POSITIVE),
            draw(st.sampled_from((("map",), ("multiply", "map")))),
            (2,),
        )
    )
    facts = draw(st.sampled_from(((), (Fact("M0.write_energy", "a: 'sheet' # 3", "code"),))))
    return Machine(draw(st.sampled_from(("x", "1e3", "null", "~", "a b"))), tuple(levels), facts=facts)


@given(machines())
def test_written_machines_read_back(machine: Machine) -> None:
    again = parse_machine(machine_text(machine))
    assert again == machine and again.facts == machine.facts


def test_attributes_of_time_in_events_go_both_ways() -> None:
    text = """
schema: machine/1
name: timed
levels:
  - {memory: DRAM, read_throughput: 1 GB/s, setup: 12 ns, release: start}
  - {memory: GLB, size: 1 KiB, prefetch: 3}
  - {compute: MAC, throughput: 1 GHz, setup: 55 ns}
"""
    found = parse_machine(text)
    dram, glb = found.memories
    assert (dram.setup, dram.release, dram.prefetch, dram.capacity_share()) == (12e-9, "start", None, 1)
    assert (glb.setup, glb.release, glb.prefetch, glb.capacity_share()) == (0.0, "end", 3, 3)
    assert found.units[0].setup == 55e-9
    assert parse_machine(machine_text(found)) == found
    with pytest.raises(SpecError, match="is none of end, start"):
        parse_machine(text.replace("release: start", "release: sometimes"))
    with pytest.raises(SpecError, match="must be at least 1"):
        parse_machine(text.replace("prefetch: 3", "prefetch: 0"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("write_energy: 2 pJ", "write_energy: 1e308", "1e+308 is too large: an energy"),
        ("write_energy: 2 pJ", "write_energy: {value: 2e30, source: a slip}", "2e+30 is too large: an energy"),
        ("leakage: 1 W", "leakage: 1e31", "1e+31 is too large: a power"),
        ("throughput: 1 GHz", "throughput: 1e-200", "1e-200 is too small: a rate"),
        ("throughput: 1 GHz", "throughput: 1e200", "1e+200 is too large: a rate"),
        ("setup: 1 s", "setup: 1e40", "1e+40 is too large: a time"),
    ],
)
def test_costs_that_cannot_be_added_up_are_refused_with_their_place(old: str, new: str, message: str) -> None:
    text = (
        "schema: machine/1\nname: m\nlevels:\n  - {memory: D, write_energy: 2 pJ, leakage: 1 W, setup: 1 s}\n"
        "  - {compute: MAC, throughput: 1 GHz}\n"
    )
    assert parse_machine(text).name == "m"
    with pytest.raises(SpecError) as raised:
        parse_machine(text.replace(old, new), "m.yaml")
    assert raised.value.line == (4 if old in text.splitlines()[3] else 5)
    assert message in str(raised.value)


def test_a_machine_from_python_is_refused_for_such_costs_too() -> None:
    machine = Machine("m", (Memory("D", read_energy=1e300), ComputeUnit("MAC", throughput=1e-300)))
    with pytest.raises(SpecErrors) as raised:
        checked(machine)
    assert "1e+300 is too large" in str(raised.value) and "1e-300 is too small" in str(raised.value)

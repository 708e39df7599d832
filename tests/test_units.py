"""Units in and out, and the arithmetic behind them."""

from __future__ import annotations

import doctest
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import einloom.reading.arithmetic
import einloom.reading.dimensions
import einloom.reading.units
from einloom.dataflows.files import parse_dataflow
from einloom.errors import EinloomWarning, SpecError
from einloom.machine.files import parse_machine
from einloom.mapspace.files import parse_mapspace
from einloom.reading.arithmetic import arithmetic
from einloom.reading.units import UNIT_NAMES, Quantity, format, measured, mistaken_unit, parse, suffixes
from einloom.workload.files import parse_workload
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload


@pytest.mark.parametrize("module", [einloom.reading.arithmetic, einloom.reading.dimensions, einloom.reading.units])
def test_doctests(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "quantity", "value"),
    [
        ("7.03 pJ", "energy", 7.03e-12),
        ("0.084pJ", "energy", 0.084e-12),
        ("128 MiB", "size", 2**30),
        ("4 B", "size", 32),
        ("16 bit", "size", 16),
        ("5 MB", "size", 40_000_000),
        ("128 * MiB", "size", 2**30),
        ("2 * (64 + 64) * KiB / 2", "size", 2**20),
        ("614 GB/s", "throughput", 614e9 * 8),
        ("614 * GB / s", "throughput", 614e9 * 8),
        ("1.05 GHz", "rate", 1.05e9),
        ("128 * 1.05 * GHz", "rate", 134.4e9),
        ("3 Gop/s", "rate", 3e9),
        ("2 W", "power", 2.0),
        ("1 mm2", "area", 1e-6),
        ("3 ns", "time", 3e-9),
        ("1e3", "rate", 1000.0),
        (12, "size", 12),
        (0.5, "energy", 0.5),
        ("64 KiB", "size", 2**19),
        ("2 * 64 KiB + 8 * 4 bit", "size", 2**20 + 32),
        ("3 * (1 KiB - 24 B)", "size", 24000),
        ("1 KiB + 24", "size", 8192 + 24),
        ("64 KiB / 2", "size", 2**18),
        ("64 KiB // 3", "size", 2**19 // 3),
        ("100 bit % 7", "size", 2),
        ("1e3 bit", "size", 1000),
        ("64 KiB / 8 B", "count", 8192),
        ("8 * 8 bit * 1.05 GHz", "throughput", 67.2e9),
        ("614 GB / 1 s", "throughput", 614e9 * 8),
        ("16 op * 1 GHz", "rate", 16e9),
        ("1 / 2 ns", "rate", 0.5e9),
        ("2 W * 3 ns", "energy", 6e-9),
        ("7 pJ / 2", "energy", 3.5e-12),
        ("2 mm2 * 3", "area", 6e-6),
        ("(3 mm2 / 1 mm2) ** 2", "count", 9),
        ("5 \u00b5J", "energy", 5e-6),
        ("5 * \u00b5J", "energy", 5e-6),
        ("5 * \u03bcJ", "energy", 5e-6),
        ("2 min", "time", 120.0),
        ("0.2 pJ * sqrt(64 KiB / KiB)", "energy", 1.6e-12),
        ("sqrt(2)", "any", 2**0.5),
        ("sqrt(9 / 4)", "any", 1.5),
        ("(64 KiB / 16 KiB) ** 1.5 * pJ", "energy", 8e-12),
        ("4 ** 0.5 * KiB", "size", 16384),
        ("max(2 KiB, 3 KiB, 1 bit)", "size", 3 * 8192),
        ("min(2 min, 3 s)", "time", 3.0),
        ("ceil(7 / 2) + floor(0 - 7 / 2)", "count", 0),
        ("log2(1024) + log2(1 / 8)", "count", 7),
        ("log2(10)", "any", 3.321928094887362),
        ("table(8 KiB, 8 KiB, 1.1 pJ, 64 KiB, 2.6 pJ, 1 MiB, 9 pJ)", "energy", 1.1e-12),
        ("table(64 KiB, 8 KiB, 1.1 pJ, 64 KiB, 2.6 pJ, 1 MiB, 9 pJ)", "energy", 2.6e-12),
        ("table(1 MiB, 8 KiB, 1.1 pJ, 64 KiB, 2.6 pJ, 1 MiB, 9 pJ)", "energy", 9e-12),
        ("table(4 KiB, 1 KiB, 1, 16 KiB, 4)", "any", 2.0),
        ("2 * table(2, 1, 8 bit, 4, 32 bit)", "size", 32),
    ],
)
def test_parse(text: str | float, quantity: str, value: float) -> None:
    assert parse(text, quantity) == value  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "quantity", "message", "suggestion"),
    [
        ("7 KB", "size", "unknown unit 'KB'", "KiB"),
        ("7 Gb/s", "throughput", "unknown unit 'Gb/s'", "Gbit/s"),
        ("7 GBps", "throughput", "unknown unit 'GBps'", "GB/s"),
        ("3 pj", "energy", "unknown unit 'pj'", "pJ"),
        ("3 pJ", "size", "is an energy", None),
        ("3 MiB", "count", "is a size", None),
        ("1.5 bit", "size", "not a whole number of bits", None),
        ("128 * MiBs", "size", "unknown name 'MiBs'", "MiB"),
        ("1 / 0", "size", "division by zero", None),
        ("2 ** 1000", "size", "exponent", None),
        ("9**9**9", "size", "exponent", None),
        ("(2**64)**64 * (2**64)**64", "size", "too large", None),
        ("1e999", "energy", "finite", None),
        ("((((", "size", "cannot read", None),
        ("", "size", "cannot read", None),
        ("True", "size", "is not arithmetic", None),
        ("1 if 1 else 2", "size", "is not arithmetic", None),
        ("[1][0]", "size", "is not arithmetic", None),
        ("1 << 9", "size", "is not arithmetic", None),
        ("__import__('os').system('x')", "size", "is not arithmetic", None),
        ("(lambda: 1)()", "size", "is not arithmetic", None),
        ("1" * 600, "size", "at most 500 characters", None),
        ("sqr(4)", "count", "the functions are sqrt, log2, min, max, ceil, floor, table, not 'sqr'", "sqrt"),
        ("eval('4')", "count", "is not arithmetic", None),
        ("sqrt(x=4)", "count", "is not arithmetic", None),
        ("max(*[1])", "count", "is not arithmetic", None),
        ("sqrt(4 KiB)", "count", "takes a plain number, not one in bit", None),
        ("sqrt(4, 5)", "count", "takes one number, not 2", None),
        ("sqrt(0 - 4)", "count", "below 0", None),
        ("log2(0)", "count", "not above 0", None),
        ("min()", "count", "takes one number or more", None),
        ("min(lanes", "count", "within braces a value with commas stands in quotes", None),
        ("max(2 KiB, 3 pJ)", "size", "different units, bit and J", None),
        ("(0 - 4) ** 0.5", "count", "needs a number above 0", None),
        ("(4 KiB) ** 0.5", "size", "a number in bit has no power 0.5", None),
        ("(2**60) ** 60.5", "count", "too large", None),
        ("sqrt(2 * (2**60) ** 60)", "any", "too large", None),
        ("table(8, 1, 2)", "any", "two or more pairs", None),
        ("table(8, 1, 2, 9)", "any", "two or more pairs", None),
        ("table(8, 4, 2, 4, 3)", "any", "the first ones ascending", None),
        ("table(8, 4, 2, 16, 0)", "any", "numbers above 0", None),
        ("table(2, 4, 2, 16, 3)", "any", "2 is below all of the table, which ends at 4", None),
        ("table(4 MiB, 4 bit, 2, 16 bit, 3)", "any", "bit is above all of the table, which ends at 16 bit", None),
        ("table(8 bit, 4 s, 2, 16 s, 3)", "any", "different units, bit and s", None),
        ("2 * 3 pJ", "size", "'2 * 3 pJ' is an energy", None),
        ("2 * KiB", "count", "is a size", None),
        ("614 * GB", "throughput", "is a size", None),
        ("1 GHz * 8", "throughput", "is a rate", None),
        ("5 op", "rate", "has the unit op, but this must be a rate", None),
        ("2 pJ * 8 bit", "energy", "has the unit bit*J", None),
        ("1 / 8 bit", "size", "has the unit 1/bit", None),
        ("3 pJ + 4 bit", "energy", "adds values of different units, J and bit", None),
        ("7 pJ // 2", "energy", "would round to whole J", None),
        ("2 ** 3 bit", "size", "the exponent in '2 ** 3 bit' has the unit bit", None),
        ("2 * 4 KB", "size", "unknown name 'KB'", "KiB"),
        ("1 / 3", "size", "1 / 3 = 0.333333 is not a whole number of bits", None),
        ("(2**60)**60 / 3", "size", "is not a whole number of bits", None),
        ("1 if", "size", "unknown unit 'if'", None),
        ("2 * 3 if", "size", "cannot read", None),
    ],
)
def test_refused(text: str, quantity: str, message: str, suggestion: str | None) -> None:
    with pytest.raises(SpecError) as caught:
        parse(text, quantity)  # type: ignore[arg-type]
    assert message in caught.value.message
    assert caught.value.suggestion == suggestion


@pytest.mark.parametrize("value", [True, float("nan"), float("inf"), -float("inf")])
def test_refused_numbers(value: float) -> None:
    with pytest.raises(SpecError):
        parse(value, "energy")


@given(
    st.floats(min_value=1e-30, max_value=1e30),
    st.sampled_from(["energy", "time", "power", "throughput", "rate", "area"]),
)
def test_what_is_printed_reads_back_exactly(value: float, quantity: str) -> None:
    assert parse(format(value, quantity), quantity) == value  # type: ignore[arg-type]


@given(st.integers(0, 2**70))
def test_sizes_read_back_exactly(bits: int) -> None:
    assert parse(format(bits, "size"), "size") == bits


def test_short_print() -> None:
    assert format(0.15934879, "energy", 4) == "159.3 mJ"
    assert format(6.7931358e-3, "time", 3) == "6.79 ms"
    assert format(0, "energy") == "0 J"
    assert format(1.5e-6, "area") == "1.5 mm2"


@given(st.text(max_size=60))
def test_any_text_gives_a_number_or_a_spec_error(text: str) -> None:
    with suppress(SpecError):
        assert isinstance(arithmetic(text), Fraction)


@given(st.integers(-1000, 1000), st.integers(-1000, 1000), st.integers(1, 1000))
def test_arithmetic_is_python_s(a: int, b: int, c: int) -> None:
    assert arithmetic("a * b + c - a // c + b % c", {"a": a, "b": b, "c": c}) == a * b + c - a // c + b % c
    assert arithmetic("(a + b) / c", {"a": a, "b": b, "c": c}) == Fraction(a + b, c)


def test_no_unit_has_two_meanings() -> None:
    quantities: tuple[Quantity, ...] = ("size", "throughput", "rate", "energy", "time", "power", "area")
    every = [name for quantity in quantities for name in suffixes(quantity)]
    assert len(every) == len(set(every)) == len(suffixes("any"))
    assert {name for name in every if "/" not in name} < UNIT_NAMES


@given(st.integers(1, 10**6), st.sampled_from(sorted(suffixes("any"))))
def test_a_number_beside_its_unit_is_their_product(number: int, unit: str) -> None:
    """Alone, in arithmetic and with a times sign, of every unit; a hertz is a rate, and so is an op/s."""
    alone, product, spelled = (measured(text.format(number, unit)) for text in ("{} {}", "{} * {}", "1 * {} {} + 0"))
    assert alone == product == spelled
    assert measured(f"{number} {unit} / (2 * {unit})").value == Fraction(number, 2)


MACHINE = """\
schema: machine/1
name: small
parameters: {lanes: 16, buffer: 64 * KiB, word: 8 bit, clock: 1 GHz, cost: 0.1 pJ}
levels:
  - {memory: DRAM, read_energy: 80 * cost, read_throughput: 2 * lanes * word * clock}
  - {memory: SRAM, size: buffer, bits_per_access: lanes * word, widths: {output: 4 * word}, setup: 5 / clock}
  - {toll: bus, energy: cost, throughput: 16 GB/s / 2, bits_per_access: word}
  - fanout: array
    axes: [{axis: rows, size: buffer / (4 KiB)}]
  - {compute: MAC, throughput: clock, energy: cost * 2, leakage: 2 * 3 mW, area: 3 * 10 um2}
"""


def test_units_work_wherever_a_machine_has_a_number() -> None:
    machine = parse_machine(MACHINE)
    dram, sram = machine.memories
    assert (dram.read_energy, dram.read_throughput) == (8e-12, 256e9)
    assert (sram.size, sram.bits_per_access, sram.widths[0][1], sram.setup) == (2**19, 128, 32, 5e-9)
    assert machine.axes["rows"].size == 16
    assert machine.tolls[0].throughput == 64e9
    unit = machine.units[0]
    assert (unit.throughput, unit.energy, unit.leakage, unit.area) == (1e9, 2e-13, 6e-3, 3e-11)
    given = parse_machine(MACHINE, parameters={"buffer": "128 KiB", "word": "2 B", "clock": "2e9"})
    assert given.memories[1].size == 2**20 and given.memories[1].widths[0][1] == 64
    assert given.memories[0].read_throughput == 1024e9, "a plain number counts in SI"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("size: buffer, ", "size: cost, ", "m:6:26: 'cost' is an energy (J, nJ, pJ, fJ), but this must be a size"),
        (
            "64 * KiB",
            "64 * KB",
            "m:3:33: unknown name 'KB' in '64 * KB'; known are lanes (at parameters.buffer); did you mean 'KiB'",
        ),
        (
            "64 * KiB",
            "64 KB",
            "m:3:33: unknown unit 'KB' in '64 KB'; this must be a number (at parameters.buffer); did you mean 'KiB'",
        ),
        ("buffer / (4 KiB)", "buffer", "m:9:31: 'buffer' is a size"),
        ("80 * cost", "80 * buffer", "m:5:33: '80 * buffer' is a size"),
        ("2 * lanes * word * clock", "2 * lanes * clock", "m:5:61: '2 * lanes * clock' is a rate"),
        ("cost * 2", "cost + word", "m:10:47: 'cost + word' adds values of different units, J and bit"),
        ("lanes: 16", "KiB: 1, lanes: 16", "m:3:14: a parameter may not be called 'KiB'"),
    ],
)
def test_a_unit_of_another_dimension_has_a_place(old: str, new: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_machine(MACHINE.replace(old, new), "m")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value), "nothing is said of what uses it"


def test_a_parameter_that_is_given_has_the_unit_of_its_default() -> None:
    with pytest.raises(SpecError) as caught:
        parse_machine(MACHINE, "m", {"buffer": "3 pJ"})
    message = "m:3:33: '3 pJ' is an energy (J, nJ, pJ, fJ), but the default is a size (bit, B, KiB, MiB)"
    assert str(caught.value) == f"{message} (at parameters.buffer)"
    with pytest.raises(SpecError, match="did you mean 'KiB'"):
        load_machine("simple:glb_bits=4 KB")
    assert load_machine("simple:glb_bits=1 MiB,dram_energy=2 pJ").memory("GLB").size == 2**23
    assert load_machine("simple:glb_bits=unlimited").memory("GLB").size is None
    with pytest.raises(SpecError, match="'dram_energy' is a size"):
        load_machine("simple:dram_energy=4 KiB")


def test_units_in_the_other_files() -> None:
    text = "schema: workload/1\nname: w\nparameters: {page: 4 KiB, word: 2 B}\n"
    text += "ranks: {m: page / word, k: 8}\nbits: {default: word, A: word / 4}\neinsums: ['Z[m] = A[m,k] * B[k]']\n"
    workload = parse_workload(text)
    assert workload.extents["m"] == 2048 and [workload.tensor(t).bits for t in "ABZ"] == [4, 16, 16]
    with pytest.raises(SpecError, match=r"w:4:12: 'page' is a size"):
        parse_workload(text.replace("page / word", "page"), "w")
    space = "schema: mapspace/1\ntiles: [{memory: GLB, variables: [m], sizes: {most: 64 KiB / 8 bit}}]\n"
    assert parse_mapspace(space, load_machine("simple")).limits.tiles[0].sizes.most == 2**16
    with pytest.raises(SpecError, match=r"s:2:.*is a size.*but this must be a plain number"):
        parse_mapspace(space.replace(" / 8 bit", ""), load_machine("simple"), "s")
    flow = "schema: dataflow/1\nname: mine\nsource: me\nkind: assumed\nfamily: online-attention\n"
    flow += "rewrite: {online_softmax: {tiles: [4 KiB / 2 KiB, 2 * 2]}}\n"
    made = parse_dataflow(flow).rewrite
    assert made is not None and made.numbers == (("tiles", (2, 4)),)
    with pytest.raises(SpecError, match=r"d:6:.*'4 KiB' is a size"):
        parse_dataflow(flow.replace(" / 2 KiB", ""), "d")
    assert load_workload("matmul:bits=2 B,m=2 * 4").tensor("A").bits == 16
    with pytest.raises(SpecError, match="matmul: m: '2 B' is a size"):
        load_workload("matmul:m=2 B")


@pytest.mark.parametrize(
    ("text", "quantity", "meant"),
    [
        ("8 Pj", "energy", "pJ"),
        ("3 MS", "time", "ms"),
        ("5 mw", "power", "mW"),
        ("5 Mw", "power", "mW"),
        ("3 FJ", "energy", "fJ"),
    ],
)
def test_of_units_that_differ_in_case_the_small_one_is_suggested(text: str, quantity: Quantity, meant: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse(text, quantity)
    assert caught.value.suggestion == meant


@pytest.mark.parametrize(
    ("text", "quantity", "said"),
    [
        ("8 PJ", "energy", "'8 PJ' is 8e+15 J; is 'pJ' meant?"),
        ("2 * 4PJ", "energy", "'2 * 4PJ' is 8e+15 J; is 'pJ' meant?"),
        ("3 Ms", "time", "'3 Ms' is 3e+06 s; is 'ms' meant?"),
        ("5 MW", "power", "'5 MW' is 5e+06 W; is 'mW' meant?"),
        ("8 kJ", "energy", None),
        ("8 pJ", "energy", None),
        ("8 MB", "size", None),
        ("8 PB/s", "throughput", None),
        ("8 MHz", "rate", None),
    ],
)
def test_huge_units_with_a_small_twin_are_doubted(text: str, quantity: Quantity, said: str | None) -> None:
    assert mistaken_unit(text, quantity, parse(text, quantity)) == said


def test_a_parameter_called_as_a_unit_is_none() -> None:
    assert mistaken_unit("2 * Ms", "time", 4.0, {"Ms"}) is None


@given(st.floats(1e-15, 1e18), st.sampled_from(("energy", "power", "time")))
def test_no_number_that_is_written_is_doubted(value: float, quantity: Quantity) -> None:
    text = format(value, quantity)
    assert parse(text, quantity) == value and mistaken_unit(text, quantity, value) is None


def test_a_machine_of_huge_energies_is_warned_of_with_the_place() -> None:
    text = "schema: machine/1\nname: x\nlevels:\n- {memory: A, read_energy: 8 PJ, write_energy: 8 pJ}\n- {compute: C}\n"
    with pytest.warns(EinloomWarning, match=r"^m:4:28: '8 PJ' is 8e\+15 J; is 'pJ' meant\? \(at levels\[0\]"):
        assert parse_machine(text, "m").memories[0].read_energy == 8e15

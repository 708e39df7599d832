"""Units in and out, and the arithmetic behind them."""

from __future__ import annotations

import doctest
from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import einloom.arithmetic
import einloom.units
from einloom.arithmetic import arithmetic
from einloom.errors import SpecError
from einloom.units import format, parse


@pytest.mark.parametrize("module", [einloom.arithmetic, einloom.units])
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
        ("1" * 300, "size", "at most 200 characters", None),
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

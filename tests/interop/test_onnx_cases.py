"""Operators of ONNX: cases that the package itself ships have the values that it expects, or are refused by name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from bench.onnx_cases import cases

from einloom.interop.onnx import from_onnx
from onnx_models import onnx

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


@pytest.mark.slow
def test_no_operator_is_lowered_wrongly() -> None:
    """A twelfth of the cases; `python -m bench.onnx_cases` runs all."""
    found = list(cases(limit=157))
    wrong = [one for one in found if one.fate in ("wrong", "failed")]
    assert not wrong
    assert Counter(one.fate for one in found)["equal"] > len(found) // 3


@pytest.mark.parametrize(
    ("name", "einsums", "cuts", "mega"),
    [
        ("resnet50", 76, 0, 4089.184256),
        ("zfnet512", 22, 0, 1481.727008),
        ("squeezenet", 34, 0, 349.151936),
        ("shufflenet", 75, 0, 124.664528),
        ("bvlc_alexnet", 22, 0, 654.560384),
    ],
)
def test_networks_of_the_package_keep_every_multiplication(name: str, einsums: int, cuts: int, mega: float) -> None:
    if not LIGHT.is_dir():
        pytest.skip("this release of onnx ships no networks")
    model = from_onnx(LIGHT / f"light_{name}.onnx")
    counted, mapped = model.multiplications
    assert counted == mapped and mapped / 1e6 == pytest.approx(mega, rel=1e-3)
    assert (len(model.workload.einsums), len(model.cuts)) == (einsums, cuts)

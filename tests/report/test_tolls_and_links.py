"""Machines with tolls, or with links, in every report: text, page, notebook, frames, explanation."""

from __future__ import annotations

import pytest

from einloom.api import explain
from einloom.api import map as solve
from einloom.machine.files import parse_machine
from einloom.machine.levels import Machine
from einloom.report.frames import actions
from einloom.report.page.page import page
from einloom.report.text.results import breakdown

TOLLS = """
schema: machine/1
name: tolls
levels:
  - {memory: MM, read_energy: 1, write_energy: 1, read_throughput: 2, write_throughput: 2}
  - {toll: Bus, energy: {value: 2 J, source: sheet, kind: printed}, throughput: 1, leakage: 1}
  - {memory: GLB, size: 64, read_energy: 1, write_energy: 1}
  - {toll: ADC, energy: 3, down: nothing, up: output}
  - {compute: MAC, throughput: 1, energy: 1}
"""
LINKS = TOLLS.replace("  - {toll: ADC, energy: 3, down: nothing, up: output}\n", "").replace(
    "  - {compute", "  - {link: Way, axis: X}\n  - {fanout: PE, axes: [{axis: X, size: 2}]}\n  - {compute"
)


@pytest.mark.parametrize("text", [TOLLS, LINKS])
def test_every_report_of_a_result_is_written(text: str) -> None:
    machine = parse_machine(text)
    result = solve("matmul:m=4,n=2,k=2", machine, objective="edp")
    shown = page(result)
    assert "Bus.energy" in shown and "sheet" in shown
    assert "down" in breakdown(result) and "Bus" in breakdown(result)
    assert ">toll<" in machine_page(machine)
    for name in ("ADC",) if text is TOLLS else ("Way",):
        assert name in machine_page(machine)


def machine_page(machine: Machine) -> str:
    """How a machine draws itself in a notebook."""
    return str(machine._repr_html_())


def test_an_explanation_names_the_toll_that_binds() -> None:
    result = solve("matmul:m=4,n=2,k=2", parse_machine(TOLLS), objective="latency")
    found = str(explain(result))
    assert "Bus" in found and "Bus.throughput" in found


def test_frames_have_a_row_for_each_way() -> None:
    pytest.importorskip("pandas")
    table = actions(solve("matmul:m=4,n=2,k=2", parse_machine(TOLLS), objective="edp"))
    assert {"down", "up"} <= set(table["action"]) and {"Bus", "ADC"} <= set(table["component"])

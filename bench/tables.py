"""Every measured table of the pages: its CSV, the command that measures it, and how its rows are shown."""

from __future__ import annotations

from einloom.published.dataflow_table import table

from . import dataflows
from .pages import MeasuredTable, Row


def _dataflows(rows: list[Row]) -> str:
    return f"```text\n{table(dataflows.cells_of(rows))}```"


TABLES: tuple[MeasuredTable, ...] = (
    MeasuredTable(
        "dataflows",
        "docs/dataflow-table.md",
        "dataflows.csv",
        "python -m bench.dataflows --groups",
        render=_dataflows,
    ),
)

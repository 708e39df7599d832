"""einloom: optimal fused mappings of Einsum cascades onto accelerators, each with a certificate.

>>> import einloom as el
>>> best = el.map(el.zoo.matmul(m=4, n=4, k=4), el.zoo.simple(), objective="edp", max_fused_loops=1)
>>> best.certificate.gap
0.0
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .reporting import register
from .version import VERSION as __version__  # noqa: N811 - the name that Python expects

if TYPE_CHECKING:
    from . import zoo
    from .api import evaluate, explain, explore, map, run, simulate, sweep_capacities, verify
    from .dataflows.rewrites import rewrite
    from .errors import BudgetExhausted, EinloomError, EinloomWarning, IllegalMapping, Infeasible, SpecError
    from .interop.onnx import from_onnx
    from .interop.torch import from_torch
    from .machine.levels import Machine
    from .mapping.tree import Mapping
    from .problem import Budget, Certificate, Guarantee, Problem
    from .report import figures
    from .report.compare import compare
    from .result import Result
    from .workload.einsum import Workload
    from .zoo.machine_by_name import load_machine
    from .zoo.workload_by_name import load_workload

_MODULES = {"zoo": "zoo", "figures": "report.figures"}
_HOMES = {
    "api": ("evaluate", "explain", "explore", "map", "run", "simulate", "sweep_capacities", "verify"),
    "dataflows.rewrites": ("rewrite",),
    "errors": ("BudgetExhausted", "EinloomError", "EinloomWarning", "IllegalMapping", "Infeasible", "SpecError"),
    "interop.onnx": ("from_onnx",),
    "interop.torch": ("from_torch",),
    "machine.levels": ("Machine",),
    "mapping.tree": ("Mapping",),
    "problem": ("Budget", "Certificate", "Guarantee", "Problem"),
    "report.compare": ("compare",),
    "result": ("Result",),
    "workload.einsum": ("Workload",),
    "zoo.machine_by_name": ("load_machine",),
    "zoo.workload_by_name": ("load_workload",),
}

__all__ = [
    "Budget",
    "BudgetExhausted",
    "Certificate",
    "EinloomError",
    "EinloomWarning",
    "Guarantee",
    "IllegalMapping",
    "Infeasible",
    "Machine",
    "Mapping",
    "Problem",
    "Result",
    "SpecError",
    "Workload",
    "__version__",
    "compare",
    "evaluate",
    "explain",
    "explore",
    "figures",
    "from_onnx",
    "from_torch",
    "load_machine",
    "load_workload",
    "map",
    "rewrite",
    "run",
    "simulate",
    "sweep_capacities",
    "verify",
    "zoo",
]


def _later(module: str, name: str) -> Callable[..., Any]:
    """A function of a module that is imported when it is called."""

    def call(*arguments: object) -> Any:
        return getattr(import_module(f".{module}", __name__), name)(*arguments)

    return call


register("html", _later("report.notebook", "draw"))
register("page", _later("report.page", "write_page"))
register("csv", _later("report.text.table", "csv_text"))
register("frame", _later("report.frames", "frame_of"))
register("result_data", _later("result.files", "result_data"))
register("parse_result", _later("result.files", "parse_result"))
register("explanation_text", _later("diagnose.document", "explanation_text"))
register("explained", _later("diagnose.text", "explained"))
register("comparison", _later("report.page.comparison", "comparison_page"))
register("verdict", _later("report.text.answers", "verdict"))
register("simulation", _later("report.text.answers", "simulation"))
register("program", _later("report.text.answers", "program"))


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{_MODULES[name]}", __name__)
    for module, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f".{module}", __name__), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""`einloom compare`: saved results side by side, or methods run on one problem; as a table, a page, JSON or CSV."""

from __future__ import annotations

from typing import Any

import click

from .. import stops
from ..errors import SpecError
from ..problem import Budget
from ..zoo.catalogue import looks_like_path
from . import completion, output
from .arguments import objective_option
from .commands import limited
from .guard import BAD_INPUT, fail, guarded, stopped

_OF_RUNS = ("objective", "seeds", "folder", "budget_evaluations", "budget_seconds")
"""The options of --methods beside those that limit the mapspace."""


@click.command("compare")
@click.argument(
    "results", nargs=-1, required=True, metavar="RESULT.json... | WORKLOAD MACHINE", shell_complete=completion.entries
)
@click.option(
    "--methods",
    shell_complete=completion.methods,
    metavar="NAME,...",
    help="Run these on WORKLOAD MACHINE; exact gives the optimum.",
)
@objective_option("Of the runs, as `einloom map` has it.")
@limited
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="Runs of each method.")
@click.option("--budget-evaluations", type=click.IntRange(1), help="Points of each run of a method with a seed.")
@click.option("--budget-seconds", type=click.FloatRange(0, min_open=True), help="Wall time of each run.")
@click.option("--folder", metavar="DIR", help="Save every run there; what is there already is not run again.")
@click.option("-o", "--output", "page_path", metavar="FILE", help="Write one HTML page that needs no network.")
@click.option("--json", "json_path", metavar="FILE", help="Write the numbers as JSON; - for standard output.")
@click.option("--csv", "csv_path", metavar="FILE", help="Write a line per result as CSV; - for standard output.")
@guarded
def compare_verb(
    results: tuple[str, ...],
    methods: str | None,
    page_path: str | None,
    json_path: str | None,
    csv_path: str | None,
    **runs: Any,
) -> None:
    """Compare saved results of any methods, spaces, machines or workloads; or run methods and compare those.

    Results that do not answer the same question are compared all the same, and the difference is said. With
    --methods each is run on WORKLOAD and MACHINE from each seed, and how far it ends from the optimum is shown.
    """
    output.refuse(json_path, csv_path, page_path)
    if methods is not None:
        return _methods(results, methods, (page_path, json_path, csv_path), runs)
    given = click.get_current_context().get_parameter_source
    for name in runs:
        if given(name) is click.core.ParameterSource.COMMANDLINE:
            raise SpecError(f"--{name.replace('_', '-')} is for runs of --methods, not for saved results")
    for name in results:
        if not looks_like_path(name):
            raise SpecError(f"{name!r:.80} is not the file of a result; to run methods on a problem, add --methods")
    from ..report.compare import compare

    compared = compare(results)
    printed = str(compared) + (f"wrote {page_path}\n" if page_path else "")
    outputs = (json_path, compared.to_json), (csv_path, compared.to_csv), (page_path, compared.to_html)
    return output.deliver(printed, *outputs)


def _methods(
    named: tuple[str, ...], methods: str, paths: tuple[str | None, str | None, str | None], runs: dict[str, Any]
) -> None:
    """Run the methods, and give out their gaps."""
    from .. import questions
    from ..search.registry import tell_unused_methods
    from ..sweep.methods import compare_methods

    if len(named) != 2:
        raise SpecError(f"--methods runs on WORKLOAD and MACHINE; {len(named)} names were given")
    names = [name.strip() for name in methods.split(",") if name.strip()]
    if not names:
        raise SpecError("--methods names no method", suggestion="exact,random,anneal")
    tell_unused_methods()
    page_path, json_path, csv_path = paths
    objective, seeds, folder, steps, seconds = (runs.pop(name) for name in _OF_RUNS)
    asked = questions.problems(*named, objective, **runs)
    questions.refuse_several(asked, named[0], runs["dataflow"], "methods are compared on one problem")
    with stops.politely() as stop:
        budget = Budget(seconds, steps)
        found = compare_methods(asked[0].problem, names, seeds, budget, folder, lambda: bool(stop), output.tell)
        if not found.runs:
            stopped(stop, "no run has ended, so there is nothing to compare")
        printed = str(found) + (f"wrote {page_path}\n" if page_path else "")
        output.deliver(printed, (json_path, found.to_json), (csv_path, found.to_csv), (page_path, found.to_html))
    if stop:
        stopped(stop, "the runs that ended are compared")
    if found.failures:
        fail("\n".join((*found.failures, "the other runs are compared")), BAD_INPUT)

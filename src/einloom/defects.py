"""A problem on which einloom contradicts itself, written down so that it can be reported and run again.

Comes in: the problem and the `Defect`. Goes out: the same error, which now says where the problem is.
"""

from __future__ import annotations

from pathlib import Path

from .cost.evaluate import evaluate
from .errors import Defect, IllegalMapping, SpecError
from .machine.write import machine_text
from .mapping.text import parse_mapping
from .mapspace.files import mapspace_text
from .problem import Problem
from .reading import writing
from .version import VERSION
from .workload.files import workload_text

FOLDER, BEST = "einloom-defect", "best-mapping.txt"


def saved(defect: Defect, folder: Path | None = None) -> Defect:
    """The defect, its problem saved in a new folder of `folder` (by default the working directory).

    The folder has einloom's own files, the best mapping that was known if it is legal, and the command that runs them;
    nothing is ever overwritten. Where the problem cannot be written, whatever the reason, the defect comes back with
    that.
    """
    if not isinstance(defect.problem, Problem) or defect.saved is not None:
        return defect
    try:
        files, kept = _files(defect.problem, defect), _worth(defect.problem, defect.known)
        if defect.known is not None and kept is not None:
            files |= {BEST: defect.known}
        place = writing.fresh_folder(Path.cwd() if folder is None else folder, FOLDER)
        for name, text in files.items():
            writing.write(text, place / name)
    except Exception as error:  # noqa: BLE001 (a problem that cannot be written must not hide what was found)
        said = str(error) if isinstance(error, OSError | SpecError) else f"{type(error).__name__}: {error}"
        return Defect(f"{defect.difference} (its problem could not be saved: {said})", defect.mapping)
    return Defect(defect.difference, defect.mapping, str(place), None if kept is None else f"{BEST}: {kept}")


def _worth(problem: Problem, known: str | None) -> str | None:
    """What a mapping is worth by `evaluate`, in the problem's objective; None if it is not known or not legal."""
    if known is None:
        return None
    try:
        tree = parse_mapping(known, problem.workload, problem.machine)
        cost = evaluate(problem.workload, problem.machine, tree, problem.latency_rule)
    except (IllegalMapping, SpecError):
        return None
    return f"{problem.objective} {problem.objective.value(cost):.8g} {problem.objective.unit}"


def _files(problem: Problem, defect: Defect) -> dict[str, str]:
    """Name -> text of everything that is written."""
    command = f"einloom map workload.yaml machine.yaml --mapspace mapspace.yaml --objective '{problem.objective}'"
    report = f"einloom {VERSION}\n{defect.difference}\n\n{command}\n"
    files = {
        "workload.yaml": workload_text(problem.workload),
        "machine.yaml": machine_text(problem.machine),
        "mapspace.yaml": mapspace_text(problem.mapspace),
        "report.txt": report,
    }
    return files if defect.mapping is None else {**files, "mapping.txt": defect.mapping}

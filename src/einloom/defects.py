"""A problem on which einloom contradicts itself, written down so that it can be reported and run again.

Comes in: the problem and the `Defect`. Goes out: the same error, which now says where the problem is.
"""

from __future__ import annotations

from pathlib import Path

from .errors import Defect, SpecError
from .machine.write import machine_text
from .mapspace.files import mapspace_text
from .problem import Problem
from .reading import writing
from .version import VERSION
from .workload.files import workload_text

FOLDER = "einloom-defect"


def saved(defect: Defect, folder: Path | None = None) -> Defect:
    """The defect, its problem saved in a new folder of `folder` (by default the working directory).

    The folder has einloom's own files and the command that runs them; nothing is ever overwritten. Where the problem
    cannot be written, whatever the reason, the defect comes back with it.
    """
    if not isinstance(defect.problem, Problem) or defect.saved is not None:
        return defect
    try:
        files = _files(defect.problem, defect)
        place = writing.fresh_folder(Path.cwd() if folder is None else folder, FOLDER)
        for name, text in files.items():
            writing.write(text, place / name)
    except Exception as error:  # noqa: BLE001 (a problem that cannot be written must not hide what was found)
        said = str(error) if isinstance(error, OSError | SpecError) else f"{type(error).__name__}: {error}"
        return Defect(f"{defect.difference} (its problem could not be saved: {said})", defect.mapping)
    return Defect(defect.difference, defect.mapping, str(place))


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

"""TileFlow's YAML files as einloom's objects: ``architecture``, ``problem``, ``mapping``, ``macro``, ``check``.

The sections may stand in one file or in several, in any order. Nothing in a file is executed, and no other file is
opened. Whether the mapping is a legal schedule is the question of `legality`, not of the reader.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from collections.abc import Sequence
from pathlib import Path

from ...dataclass import dataclass
from ...errors import SpecError
from ...reading.located import Located, read_file, read_text
from ..bundle import Bundle
from .architecture import DEFAULT_WORD_BITS, Architecture, architecture_from, machine_from
from .nodes import mapping_nodes
from .operators import OperatorProblem, problem_from
from .sections import checks_left_out, macros, sections
from .trees import TreeLayout, mapping_from, multicast_of


@dataclass(frozen=True)
class Imported(Bundle):
    """What the files hold. layout: what TileFlow's tree says and the mapping does not; `rules` need it.

    clock: cycles per second.
    """

    layout: TreeLayout | None = None
    clock: float = 1.0


def read(files: Sequence[str | Path], parameters: Table[str, str] | None = None, clock: float = 1.0) -> Imported:
    """What TileFlow's files say; `parameters` are values for macros and free factors, `clock` the cycles per second.

    Raises SpecError with file and line for what cannot be read or has no counterpart.
    """
    return _imported([read_file(file) for file in files], parameters or {}, clock)


def read_texts(texts: Table[str, str], parameters: Table[str, str] | None = None, clock: float = 1.0) -> Imported:
    """As `read`, for texts by file name."""
    return _imported([read_text(text, name) for name, text in texts.items()], parameters or {}, clock)


def _imported(views: Sequence[Located], parameters: Table[str, str], clock: float) -> Imported:
    notes: list[str] = []
    found = sections(views, notes)
    names = macros(found.get("macro"), parameters)
    checks_left_out(found.get("check"), notes)
    architecture: Architecture | None = None
    problem: OperatorProblem | None = None
    if (section := found.get("architecture")) is not None:
        architecture = architecture_from(section, names)
    if (section := found.get("problem")) is not None:
        bits = DEFAULT_WORD_BITS if architecture is None else architecture.storages[0].word_bits
        problem = problem_from(section, names, bits)
    workload = None if problem is None else problem.workload
    if (section := found.get("mapping")) is None:
        if architecture is None and problem is None:
            raise SpecError(
                "the files hold none of architecture, problem, mapping", file=views[0].file if views else None
            )
        machine = None if architecture is None else machine_from(architecture, {}, clock)
        return Imported(workload, machine, notes=tuple(dict.fromkeys(notes)), clock=clock)
    if architecture is None or problem is None:
        raise section.error("a mapping is read together with its problem and its architecture")
    root = mapping_nodes(section, problem, architecture.names, names)
    machine = machine_from(architecture, multicast_of(root, architecture), clock)
    mapping, layout = mapping_from(root, problem, architecture, notes)
    return Imported(workload, machine, mapping, notes=tuple(dict.fromkeys(notes)), layout=layout, clock=clock)

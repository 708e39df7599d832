"""AccelForge's YAML files as einloom's objects: ``arch``, ``workload`` with ``renames``, ``mapping``, ``mapper``.

The sections may stand in one file or in several. ``einloom.yaml``, which `write` adds, restores what the format has no
word for. Nothing in a file is executed; other files are opened only where a template includes them, from its own folder
and those that the user names.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ...errors import SpecError
from ...mapspace.limits.data import UNLIMITED
from ...mapspace.space import Mapspace
from ...reading.located import Located
from ..bundle import Bundle
from .cascades import CascadeReader, SetNames
from .components import Symbols
from .includes import IncludedLine, with_files
from .machines import machine_from
from .models import read_models
from .schedules import ScheduleReader
from .scopes import Agreed, Layered, VariableScope, expression_or_text, given_values
from .tagged import parse_tagged, read_tagged
from .write import METRICS

SECTIONS = ("arch", "workload", "renames", "mapping", "mapper", "variables", "einloom")
LEFT_OUT = ("config", "model")
MAPPER_ONLY = ("metrics", "max_fused_loops", "max_fused_loops_per_rank_variable")
KEPT = "workload machine components axes variables backs double_buffer einsums offsets main_memory".split()


def read(
    files: Sequence[str | Path], parameters: Table[str, str] | None = None, folders: Sequence[str | Path] = ()
) -> Bundle:
    """What AccelForge's files say, as einloom's objects; `parameters` are values for templates, as text.

    folders: from where, besides its own folder, a file may include others.

    Raises SpecError with file and line for what cannot be read, and for what has no counterpart and would change what a
    mapping costs.
    """
    values = {name: expression_or_text(text, {}) for name, text in (parameters or {}).items()}
    try:
        return _imported([read_tagged(file, values, folders) for file in files])
    except SpecError as error:
        raise with_files(error) from None


def read_texts(texts: Table[str, str], parameters: Table[str, str] | None = None) -> Bundle:
    """As `read`, for texts by file name."""
    values = {name: expression_or_text(text, {}) for name, text in (parameters or {}).items()}
    return _imported([parse_tagged(text, name, values) for name, text in texts.items()])


def _imported(views: Sequence[Located]) -> Bundle:
    notes: list[str] = []
    sections = _sections(views, notes)
    kept = sections.get("einloom")
    given = given_values(None if kept is None else kept.get("values"))
    wanted: dict[str, str] = {}
    scope = variables = VariableScope([sections.get("variables")], given, {}, wanted)
    remainder = _remainder(sections.get("einloom"))
    workload, machine, limits = None, None, UNLIMITED
    sets: SetNames = {}
    if (section := sections.get("workload")) is not None:
        workload, sets = CascadeReader(section, variables, remainder, notes).read(sections.get("renames"))
    models = read_models(None if kept is None else kept.get("models"))
    if (section := sections.get("arch")) is not None:
        written = [sections.get("variables"), section.get("variables")]
        scopes = {einsum: VariableScope(written, given, names, wanted) for einsum, names in sets.items()}
        every = list(scopes.values()) or [VariableScope(written, given, {}, wanted)]
        einsums = {einsum: Layered(sets[einsum], scope) for einsum, scope in scopes.items()}
        names = Symbols(Agreed(every), einsums, workload, wanted)
        machine, limits = machine_from(section, names, remainder, notes, models)
        scope = every[0]
    if failed := scope.failed():  # nothing needed them, or an error would have said so
        notes.append(f"variables that nothing here needs have no value: {', '.join(failed)}")
    mapping = None
    if (section := sections.get("mapping")) is not None:
        if workload is None or machine is None:
            raise section.error("a mapping is read together with its workload and its architecture")
        mapping = ScheduleReader(workload, machine, variables, remainder).read(section)
    objective, mapspace = _mapper(sections.get("mapper"), notes)
    if limits:
        mapspace = replace(mapspace or Mapspace(), limits=limits)
    if workload is None and machine is None:
        raise SpecError("the files hold neither 'arch' nor 'workload'", file=views[0].file if views else None)
    return Bundle(workload, machine, mapping, objective, mapspace, tuple(notes))


def _sections(views: Sequence[Located], notes: list[str]) -> dict[str, Located]:
    """The sections of all files by name; each may stand in one file only."""
    found: dict[str, Located] = {}
    lent: list[str] = []
    for view in views:
        for name, key, value in view.entries():
            if name not in SECTIONS and isinstance(key.error("").line, IncludedLine):
                lent.append(name)
            elif name in LEFT_OUT:
                notes.append(f"{name} (settings of AccelForge itself) is left out")
            elif name not in SECTIONS:
                raise key.unknown("section", name, SECTIONS)
            elif name in found:
                raise key.error(f"section {name!r} stands in {found[name].file} already")
            else:
                found[name] = value
    if lent:
        notes.append(f"what included files only lend to others is left out: {', '.join(lent)}")
    return found


def _remainder(view: Located | None) -> dict[str, object]:
    """What einloom added for the way back, as plain data."""
    if view is None:
        return {}
    for name in (*KEPT, "models", "values"):
        view.get(name)
    view.finish()
    return {name: _plain(value) for name, _, value in view.entries() if name not in ("models", "values")}


def _plain(view: Located) -> object:
    if view.is_mapping:
        return {name: _plain(value) for name, _, value in view.entries()}
    if view.is_list:
        return [_plain(item) for item in view.items()]
    return view.text() if view.is_text else view.integer()


def _mapper(view: Located | None, notes: list[str]) -> tuple[str | None, Mapspace | None]:
    """Objective and mapspace of the search settings; other settings are left out with a note."""
    if view is None:
        return None, None
    objective, limit = None, None
    if (metrics := view.get("metrics")) is not None:
        number = {"LATENCY": 1, "ENERGY": 2, "ENERGY_DELAY_PRODUCT": 128}
        value = number.get(metrics.text().rpartition(".")[2]) if metrics.is_text else metrics.integer()
        objective = next((name for name, member in METRICS.items() if member == value), None)
        if objective is None:
            raise metrics.error("only LATENCY (1), ENERGY (2) and ENERGY_DELAY_PRODUCT (128) have counterparts")
    if (field := view.get("max_fused_loops")) is not None and not (field.is_text and field.text() == "inf"):
        limit = field.integer(minimum=0)
    again = view.get("max_fused_loops_per_rank_variable")
    per_rank = 1 if again is None else again.integer(minimum=1)
    others = [name for name in view.keys if name not in MAPPER_ONLY]
    if others:
        notes.append(f"settings of AccelForge's search are left out: {', '.join(others)}")
    return objective, Mapspace("ffm", limit, max_fused_loops_per_rank_variable=per_rank)

"""Workload files: YAML in, `Workload` out, and back. The schema is ``workload/1``; docs list every key.

schema: workload/1
name: two matmuls
parameters: {tokens: 128}                      # names for arithmetic below; may be set from the command line
ranks: {m: tokens, k: 64, n: 4 * 64}           # or {value: 64, source: "...", kind: printed}
bits: {default: 16, W: 8}                      # or one number
einsums:
  - T[m,n] = X[m,k] * W[k,n]
  - {name: S, einsum: "Y[m] = T[m,n]", reduction: max}
shapes: {X: [128, 64]}                         # only where the accesses do not say it; outside is padding
outputs: [Y]                                   # default: written and not read
persistent: [W]
repeat: 32
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..errors import SpecError
from ..located import Located, from_data, read_file, read_text
from ..yamltree import dump_yaml
from .build import build_workload, tensor_shape
from .einsum import Einsum, Fact, Workload
from .facts import FactReader, fact_table, noted, read_parameters
from .notation import einsum_text, parse_einsum

VERSION = 1


def read_workload(path: str | Path, parameters: Mapping[str, str] | None = None) -> Workload:
    """The workload of a file; `parameters` replace defaults of its ``parameters:``. Raises SpecError with the place."""
    return workload_from(read_file(path), parameters)


def parse_workload(text: str, file: str = "<text>", parameters: Mapping[str, str] | None = None) -> Workload:
    """The workload of a YAML text."""
    return workload_from(read_text(text, file), parameters)


def workload_from_data(data: object, file: str | None = None) -> Workload:
    """The workload of plain data as `workload_data` makes it (and a result file holds it)."""
    return workload_from(from_data(data, file))


def workload_from(view: Located, parameters: Mapping[str, str] | None = None) -> Workload:
    """The workload that a view shows."""
    view.schema("workload", VERSION)
    name = view.require("name").name()
    view.get("description")
    facts: list[Fact] = []
    reader = FactReader(read_parameters(view, parameters), facts, None, None).within(view)
    places: dict[str, Located] = {}
    ranks: dict[str, int] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    bits: int | dict[str, int] = 1
    repeat = 1
    einsums = _einsums(view, places)
    with view.gather():
        ranks = _sizes(view, reader, places)
    with view.gather():
        bits = _bits(view.require("bits"), reader, places)
    with view.gather():
        shapes = _shapes(view.get("shapes"), reader, places)
    if (field := view.get("repeat")) is not None:
        places["repeat"] = field
        with field.gather():
            repeat = reader.integer(field, "repeat")
    listed = {key: view.get(key) for key in ("outputs", "persistent")}
    names = {}
    for key, place in listed.items():
        if place is not None:
            places[key] = place
            with place.gather():
                names[key] = place.names()
    with view.gather():
        view.finish()
    view.raise_gathered()
    try:
        return build_workload(
            name,
            einsums,
            ranks,
            bits=bits,
            shapes=shapes,
            outputs=names.get("outputs"),
            persistent=names.get("persistent", ()),
            repeat=repeat,
            facts=facts,
        )
    except SpecError as error:
        raise places.get(error.path or "", view).error(error.message, error.suggestion) from None


def _einsums(view: Located, places: dict[str, Located]) -> list[Einsum]:
    einsums: list[Einsum] = []
    field = view.require("einsums")
    places["einsums"] = field
    for item in field.items():
        with item.gather():
            einsum = _einsum(item)
            places[f"einsums.{einsum.name}"] = item
            einsums.append(einsum)
    return einsums


def _einsum(item: Located) -> Einsum:
    if not item.is_mapping:
        return parse_einsum(item.text(what="an Einsum"))
    text = item.require("einsum")
    name, reduction = item.get("name"), item.get("reduction")
    output, inputs = item.get("output"), item.get("inputs")
    item.finish()
    with text.placed():
        return parse_einsum(
            text.text(what="an Einsum"),
            None if name is None else name.name(),
            None if reduction is None else reduction.text(),
            output="Z" if output is None else output.name(),
            inputs=() if inputs is None else inputs.names(),
        )


def _sizes(view: Located, reader: FactReader, places: dict[str, Located]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    field = view.get("ranks")
    for name, key, value in field.entries() if field is not None else ():
        places[f"ranks.{name}"] = key
        with value.gather():
            sizes[name] = reader.integer(value, f"ranks.{name}")
    return sizes


def _bits(field: Located, reader: FactReader, places: dict[str, Located]) -> int | dict[str, int]:
    places["bits"] = field
    if not field.is_mapping or "value" in field.keys:
        return _width(field, reader, "bits.default")
    table: dict[str, int] = {}
    for name, _, value in field.entries():
        places[f"bits.{name}"] = value
        table[name] = _width(value, reader, f"bits.{name}")
    return table


def _width(field: Located, reader: FactReader, path: str) -> int:
    return int(reader.number(field, path, "size", minimum=1))


def _shapes(field: Located | None, reader: FactReader, places: dict[str, Located]) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for name, _, value in field.entries() if field is not None else ():
        places["shapes"] = places[f"shapes.{name}"] = value
        shapes[name] = reader.read(
            value,
            f"shapes.{name}",
            lambda found: tuple(size.integer(names=reader.names, minimum=1) for size in found.items()),
        )
    return shapes


def workload_data(workload: Workload) -> dict[str, object]:
    """The workload as plain data (mappings, lists, text, integers) that `workload_from_data` reads back."""
    facts = fact_table(workload.facts)
    einsums: list[object] = []
    for einsum in workload.einsums:
        text = einsum_text(einsum)
        einsums.append(text if einsum.name == einsum.output.tensor else {"name": einsum.name, "einsum": text})
    data: dict[str, object] = {
        "schema": f"workload/{VERSION}",
        "name": workload.name,
        "ranks": {name: noted(size, f"ranks.{name}", facts) for name, size in workload.sizes},
        "bits": _bits_data(workload, facts),
        "einsums": einsums,
    }
    shapes = {
        t.name: noted(list(t.shape), f"shapes.{t.name}", facts) for t in workload.tensors if _declared(workload, t.name)
    }
    if shapes:
        data["shapes"] = shapes
    data["outputs"] = list(workload.outputs)
    persistent = [tensor.name for tensor in workload.tensors if tensor.persistent]
    if persistent:
        data["persistent"] = persistent
    if workload.repeat != 1 or "repeat" in facts:
        data["repeat"] = noted(workload.repeat, "repeat", facts)
    return data


def _bits_data(workload: Workload, facts: Mapping[str, Fact]) -> object:
    widths = [tensor.bits for tensor in workload.tensors]
    common = max(sorted(set(widths)), key=widths.count)
    special = {
        tensor.name: noted(tensor.bits, f"bits.{tensor.name}", facts)
        for tensor in workload.tensors
        if tensor.bits != common or f"bits.{tensor.name}" in facts
    }
    default = noted(common, "bits.default", facts)
    return {"default": default, **special} if special else default


def _declared(workload: Workload, tensor: str) -> bool:
    """True if the accesses alone do not give the tensor its shape."""
    try:
        alone = tensor_shape(tensor, workload.einsums, workload.extents, {})
    except SpecError:
        return True
    return alone != workload.tensor(tensor).shape


def workload_text(workload: Workload) -> str:
    """The workload as YAML; `parse_workload` reads it back to an equal one, facts included."""
    return dump_yaml(workload_data(workload))


def write_workload(workload: Workload, path: str | Path) -> None:
    """Write the workload as a YAML file."""
    Path(path).write_text(workload_text(workload), encoding="utf-8")

"""Workload files: YAML in, `Workload` out, and back. The schema is ``workload/1``; docs list every key.

schema: workload/1
name: two matmuls
parameters: {tokens: 128}                      # names for arithmetic below; may be set from the command line
ranks: {m: tokens, k: 64, n: 4 * 64}           # or {value: 64, source: "...", kind: printed}
bits: {default: 16, W: 8}                      # or one number
einsums:
  - T[m,n] = X[m,k] * W[k,n]
  - {name: S, einsum: "Y[m] = T[m,n]", reduction: max, group: head.pool, nodes: [{name: /head/Max, output: pooled}]}
shapes: {X: [128, 64]}                         # only where the accesses do not say it; outside is padding
outputs: [Y]                                   # default: written and not read
views: {U: {of: T, shape: [32, 4, 256]}}       # T read under other ranks, as U[a,b,n]
persistent: [W]
initial: [K]                                   # what no Einsum writes of it is there from the start
repeat: 32
absorbed: [1 x Relu]                           # for people, as group and nodes are
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..errors import SpecError, SpecErrors
from ..reading import writing
from ..reading.dimensions import PLAIN, Measure
from ..reading.facts import ORIGIN, PARAMETERS, Fact, FactReader, fact_table, noted, read_parameters
from ..reading.fields import Places, located_at, read_record, read_shape
from ..reading.keys import NAME, NAMES, TEXT, Each, Either, Key, Number, Record, Table, Written
from ..reading.located import Located, from_data, read_file, read_text
from ..reading.yamltree import dump_yaml
from .build import build_workload, tensor_shape
from .einsum import Einsum, NetworkNode, TensorView, Workload
from .notation import MODULE_PATH, einsum_text, module_path, parse_einsum

VERSION = 1
_SIZE, _BITS = Number("count", minimum=1), Number("size", minimum=1)
_RANK = Number("count", minimum=1, sourced=False)
_MODULE = Written("the path of a module", module_path, f"^{MODULE_PATH}$")
_TEXT = Written("an Einsum", str, r"=|->")
BITS = Either((_BITS, Table(_BITS)))
_AS_THEY_ARE = ("outputs", "persistent", "initial", "repeat", "absorbed")
"""Keys whose values a workload is built with as they are."""
NODE = Record(
    "a node",
    (
        Key("output", TEXT, "the first tensor that it yields", required=True),
        Key("name", TEXT, "what it is called"),
    ),
    build=lambda view, found: NetworkNode(found["output"], found.get("name", "")),
)
EINSUM = Record(
    "an Einsum",
    (
        Key("einsum", _TEXT, "as in Z[m,n] = A[m,k] * B[k,n]", required=True),
        Key("name", NAME, "what it is called; by default as its output"),
        Key("reduction", TEXT, "sum, max, or online_softmax"),
        Key("output", NAME, "the output of NumPy's notation"),
        Key("inputs", NAMES, "the inputs of NumPy's notation"),
        Key("group", _MODULE, "its module in a network, for people"),
        Key("nodes", Each(NODE), "the nodes of a network that are in it, for people"),
    ),
    label="einsum",
)
STEP = Either((_TEXT, EINSUM))
VIEW = Record(
    "a view",
    (
        Key("of", NAME, "the tensor that it is", required=True),
        Key("shape", Each(_RANK), "the sizes of its ranks: as many elements as the tensor has", required=True),
    ),
)
WORKLOAD = Record(
    "a workload",
    (
        Key("schema", TEXT, "what this file is, and its version", required=True),
        Key("name", NAME, "what the workload is called", required=True),
        Key("description", TEXT, "for people"),
        *ORIGIN,
        PARAMETERS,
        Key("ranks", Table(_SIZE), "the extent of each rank variable"),
        Key("bits", BITS, "bits per value: one number, or per tensor and default", required=True),
        Key("einsums", Each(STEP), "the cascade", required=True),
        Key("shapes", Table(Each(_RANK, minimum=1, sourced=True)), "declared shapes; outside is padding"),
        Key("views", Table(VIEW), "names under which a tensor is read with other ranks"),
        Key("outputs", NAMES, "tensors that the cascade is for; by default all that are written and not read"),
        Key("persistent", NAMES, "tensors that stay where they are from run to run"),
        Key("initial", NAMES, "tensors whose elements that no Einsum writes are there from the start"),
        Key("repeat", _SIZE, "how often the cascade runs"),
        Key("absorbed", Each(TEXT), "operators of a network that became part of an Einsum, for people"),
    ),
)


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
    facts: list[Fact] = []
    reader = FactReader(read_parameters(view, parameters), facts)
    found = read_record(view, WORKLOAD, reader, ignored=("schema", "parameters", "bits", "einsums"))
    places: Places = {}
    einsums: list[Einsum] = []
    bits: Any = 1
    with view.gather():
        field = view.require("bits")
        table = field.is_mapping and "value" not in field.keys
        bits = read_shape(field, BITS, reader, "bits" if table else "bits.default")
    with view.gather():
        einsums = _einsums(view.require("einsums"), reader, places, _numbers(reader, dict(found.get("ranks", ()))))
    view.raise_gathered()
    _note_places(view, places)
    try:
        return build_workload(
            found["name"],
            einsums,
            dict(found.get("ranks", ())),
            bits=dict(bits) if isinstance(bits, tuple) else bits,
            shapes=dict(found.get("shapes", ())),
            **{key: found[key] for key in _AS_THEY_ARE if key in found},
            facts=facts,
            views=[TensorView(name, view["of"], tuple(view["shape"])) for name, view in found.get("views", ())],
        )
    except SpecError as error:
        several = error.problems if isinstance(error, SpecErrors) else (error,)
        for problem in several:
            with view.gather():
                raise _placed(problem, view, places) from None
        view.raise_gathered()
        raise


def _placed(problem: SpecError, view: Located, places: Places) -> SpecError:
    return located_at(view, problem.path or "", places).error(problem.message, problem.suggestion)


def _note_places(view: Located, places: Places) -> None:
    """Where each thing stands that `build_workload` may complain about."""
    for key in ("ranks", "bits", "shapes", "views", "outputs", "persistent", "initial", "repeat"):
        if (field := view.get(key)) is not None:
            places[key] = field
            for name, at, value in field.entries() if field.is_mapping else ():
                places[f"{key}.{name}"] = at if key in ("ranks", "views") else value


def _numbers(reader: FactReader, ranks: Mapping[str, object]) -> dict[str, int]:
    """The parameters that are whole numbers, and no rank variables: indices may have them."""
    plain = {
        name: n.value if isinstance(n, Measure) and n.dimension == PLAIN else n for name, n in reader.names.items()
    }
    whole = {name: n for name, n in plain.items() if isinstance(n, int | Fraction) and n.denominator == 1}
    return {name: int(n) for name, n in whole.items() if name not in ranks}


def _einsums(field: Located, reader: FactReader, places: Places, numbers: Mapping[str, int]) -> list[Einsum]:
    einsums: list[Einsum] = []
    places["einsums"] = field
    for item in field.items():
        with item.gather():
            einsum = _einsum(item, reader, numbers)
            places[f"einsums.{einsum.name}"] = item
            einsums.append(einsum)
    return einsums


def _einsum(item: Located, reader: FactReader, numbers: Mapping[str, int]) -> Einsum:
    found = read_shape(item, STEP, reader, "einsums")
    if isinstance(found, str):
        with item.placed():
            return parse_einsum(found, numbers=numbers)
    if "einsum" not in found:
        item.raise_gathered()
    with item.require("einsum").placed():
        einsum = parse_einsum(
            found["einsum"],
            found.get("name"),
            found.get("reduction"),
            output=found.get("output", "Z"),
            inputs=found.get("inputs", ()),
            numbers=numbers,
        )
        return replace(einsum, group=found.get("group", ""), nodes=tuple(found.get("nodes", ())))


def workload_data(workload: Workload) -> dict[str, object]:
    """The workload as plain data (mappings, lists, text, integers) that `workload_from_data` reads back."""
    facts = fact_table(workload.facts)
    einsums: list[object] = []
    for einsum in workload.einsums:
        text = einsum_text(einsum)
        own = {} if einsum.name == einsum.output.tensor else {"name": einsum.name}
        said = _for_people(einsum)
        einsums.append({**own, "einsum": text, **said} if own or said else text)
    tensors = workload.tensors
    shapes = {t.name: noted(list(t.shape), f"shapes.{t.name}", facts) for t in tensors if _declared(workload, t.name)}
    repeated = workload.repeat != 1 or "repeat" in facts
    optional: dict[str, object] = {
        "shapes": shapes,
        "views": {view.name: {"of": view.tensor, "shape": list(view.shape)} for view in workload.views},
        "outputs": list(workload.outputs),
        "persistent": [tensor.name for tensor in tensors if tensor.persistent],
        "initial": [tensor.name for tensor in tensors if tensor.initial],
        "repeat": noted(workload.repeat, "repeat", facts) if repeated else None,
        "absorbed": list(workload.absorbed),
    }
    return {
        "schema": f"workload/{VERSION}",
        "name": workload.name,
        "ranks": {name: noted(size, f"ranks.{name}", facts) for name, size in workload.sizes},
        "bits": _bits_data(workload, facts),
        "einsums": einsums,
        **{key: value for key, value in optional.items() if value},
    }


def _for_people(einsum: Einsum) -> dict[str, object]:
    nodes = [{"output": node.output, **({"name": node.name} if node.name else {})} for node in einsum.nodes]
    return {key: value for key, value in (("group", einsum.group), ("nodes", nodes)) if value}


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
    users = [workload.einsum(name) for name in (*workload.writers.get(tensor, ()), *workload.consumers[tensor])]
    try:
        alone = tensor_shape(tensor, users, workload.extents, {}, workload.tensor(tensor).initial)
    except SpecError:
        return True
    return alone != workload.tensor(tensor).shape


def workload_text(workload: Workload) -> str:
    """The workload as YAML; `parse_workload` reads it back to an equal one, facts included."""
    return dump_yaml(workload_data(workload))


def write_workload(workload: Workload, path: str | Path) -> None:
    """Write the workload as a YAML file."""
    writing.write(workload_text(workload), path)

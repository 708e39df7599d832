"""The tables of keys of mapspace and result files, whose readers ask for each key by hand.

That the tables name exactly the keys that the readers ask for is tested (tests/inputs/test_schema.py).
"""

from __future__ import annotations

from typing import get_args

from ..cost.breakdown import ActionName
from ..errors import Ended
from ..machine.files import MACHINE, SET
from ..mapspace.space import CONCURRENT, space_names
from ..problem import Guarantee, LatencyRule
from ..reading.keys import NAME, NAMES, TEXT, Choice, Each, Either, Key, Number, Plain, Record, Shape, Table
from ..workload.files import WORKLOAD

WHOLE = Number("count", sourced=False, plain=True)
GROUP = Number("count", minimum=2, sourced=False, plain=True)
POSITIVE = Number("count", minimum=1, sourced=False, plain=True)
FLOAT = Number("energy", minimum=None, sourced=False, plain=True)
_COUNT = Number("count", minimum=1, sourced=False)
_LIST = Each(_COUNT, minimum=1)
_RANGE = Record("a range", (Key("least", _COUNT, "from"), Key("most", _COUNT, "to")))
NUMBERS: Shape = Either((_COUNT, _LIST, _RANGE))
_EINSUMS = Key("einsums", NAMES, "the Einsums that it speaks of; by default all")
_HOLD = Record(
    "what a memory holds",
    (
        Key("keep", SET, "tensors that it must keep"),
        Key("may_keep", SET, "the only tensors that it may keep"),
        Key("once", SET, "tensors of which nothing comes to it twice"),
        Key("bypass", SET, "tensors that it must not keep"),
        _EINSUMS,
    ),
)
_WITHIN = Record(
    "where tensors are backed",
    (
        Key("tensors", SET, "which", required=True),
        Key("memories", Each(NAME), "in one of these memories", required=True),
    ),
)
_FUSION = Record(
    "what is fused",
    (
        Key("fused", SET, "backed in any memory but the outermost"),
        Key("unfused", SET, "backed in the outermost memory"),
        Key("backed", Table(SET), "backed in this memory"),
        Key("within", Each(_WITHIN), "backed in one of several memories"),
    ),
)
_LOOP = Record(
    "fused loops",
    (
        Key("tensors", SET, "the tensors that they are fused over", required=True),
        Key("variables", NAMES, "their rank variables", required=True),
        Key("trips", NUMBERS, "a number, a list, or {least, most}", required=True),
        _EINSUMS,
    ),
)
_TILE = Record(
    "tiles",
    (
        Key("memory", NAME, "where", required=True),
        Key("tensors", SET, "of which tensors; by default all"),
        Key("variables", NAMES, "along which rank variables", required=True),
        Key("sizes", NUMBERS, "a number, a list, or {least, most}", required=True),
        _EINSUMS,
    ),
)
_AXIS = Record(
    "use of an axis",
    (
        Key("axis", NAME, "which", required=True),
        Key("variables", NAMES, "loops over these; by default all loops on the axis together"),
        Key("instances", NUMBERS, "a number, a list, or {least, most}", required=True),
        _EINSUMS,
    ),
)
_SECTIONS = (
    Key("memories", Table(Either((Each(_HOLD), _HOLD))), "what each memory keeps"),
    Key("fusion", _FUSION, "which intermediates are fused, and where"),
    Key("loops", Each(_LOOP), "fused loops"),
    Key("tiles", Each(_TILE), "sizes of tiles"),
    Key("axes", Each(_AXIS), "spatial use"),
)
MAPSPACE = Record(
    "a mapspace",
    (
        Key("schema", TEXT, "what this file is, and its version", required=True),
        Key("name", NAME, "what you call it"),
        Key("description", TEXT, "for people"),
        Key("space", Choice(space_names()), "the named space that is limited"),
        Key("max_fused_loops", WHOLE, "at most so many loops above a fused tensor"),
        Key("concurrent", Choice(CONCURRENT), "where groups of Einsums may run at the same time"),
        Key("max_group", GROUP, "most Einsums of a group"),
        *_SECTIONS,
    ),
)


def _rows(title: str, *keys: Key) -> Each:
    return Each(Record(title, keys))


def _must(name: str, shape: Shape, meaning: str = "") -> Key:
    return Key(name, shape, meaning, required=True)


_SPACE = Record(
    "the space of a result",
    (
        _must("name", Choice(space_names())),
        Key("max_fused_loops", WHOLE),
        Key("concurrent", Choice(CONCURRENT)),
        Key("max_group", GROUP),
        Key("title", NAME),
        Key("limits", Record("limits", _SECTIONS)),
    ),
)
_CERTIFICATE = Record(
    "a certificate",
    (
        _must("guarantee", Choice(tuple(guarantee.value for guarantee in Guarantee))),
        _must("value", FLOAT, "the objective of the mapping"),
        _must("bound", FLOAT, "no mapping of the space has less"),
        _must("gap", FLOAT, "(value - bound) / value"),
        _must("mapspace", TEXT, "the space that the proof speaks of"),
        _must("counts", Table(WHOLE), "points dropped, by rule"),
        Key(
            "alternatives",
            _rows("one of several problems", _must("label", NAME), Key("bound", FLOAT), Key("value", FLOAT)),
            "where the answer is the best of several problems: what is proven of each",
        ),
    ),
)
_SECONDS = _must("seconds", FLOAT)
_EINSUM = _must("einsum", NAME)
RESULT = Record(
    "a result",
    (
        _must("schema", TEXT, "what this file is, and its version"),
        _must("einloom", TEXT, "the version that wrote it"),
        _must("model_version", NAME, "the version of the cost model"),
        _must("method", TEXT, "how it was found"),
        _SECONDS,
        Key("ended", Choice(tuple(one.value for one in Ended)), "what ended the search before it was done"),
        _must("objective", TEXT, "what is minimised"),
        _must("latency_rule", Choice(get_args(LatencyRule))),
        _must("mapspace", _SPACE),
        _must("energy", FLOAT, "joules"),
        _must("latency", FLOAT, "seconds"),
        _must("edp", FLOAT, "joule seconds"),
        Key("certificate", _CERTIFICATE),
        _must("mapping", Plain("text"), "the tree as text"),
        _must("roofline", FLOAT, "seconds that no mapping can undercut with these counts"),
        Key(
            "latencies",
            Record(
                "views of latency",
                (*(_must(name, FLOAT) for name in ("roofline", "floor", "tile", "einsum")), Key("event", FLOAT)),
            ),
            "the same mapping by every rule, seconds",
        ),
        Key(
            "front",
            _rows(
                "a point of a Pareto set", *(_must(key, FLOAT) for key in ("energy", "latency")), _must("mapping", TEXT)
            ),
            "all points of a Pareto set",
        ),
        _must("einsum_latency", _rows("a latency", _EINSUM, _SECONDS)),
        _must("busy", _rows("a busy time", _EINSUM, _must("component", NAME), _SECONDS)),
        _must(
            "occupancy",
            _rows(
                "an occupancy",
                _must("memory", NAME),
                _must("bits", WHOLE),
                Key("size", WHOLE),
                _must("tensors", _rows("a share", _must("tensor", NAME), _must("bits", WHOLE))),
            ),
        ),
        _must(
            "breakdown",
            _rows(
                "an action",
                _EINSUM,
                _must("component", NAME),
                Key("tensor", NAME),
                _must("action", Choice(get_args(ActionName))),
                *(_must(name, WHOLE) for name in ("count", "bits", "busiest")),
                _must("energy", FLOAT),
            ),
        ),
        _must("workload", WORKLOAD),
        _must("machine", MACHINE),
        _must("assumed", Record("sources", (_must("facts", WHOLE), _must("assumed", WHOLE)))),
        _must("trace", _rows("a moment", _SECONDS, Key("best", FLOAT), Key("bound", FLOAT))),
        Key("notes", Each(TEXT), "what is said to no effect, such as selectors that select nothing"),
        _must("digest", TEXT, "SHA-256 of everything else"),
    ),
)

"""Random workload files: a cascade grown Einsum by Einsum, with whatever the notation can say.

Every operand is a new tensor, one that was there before, or an operand of the same Einsum once more; every rank is
indexed by a variable, a window or a constant. What a cascade may have is switched on by the names of `dimensions`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import field
from math import prod
from random import Random
from re import findall

from ...dataclass import dataclass
from ...errors import SpecError
from ...workload.build import build_workload
from ...workload.einsum import TensorView, Workload
from ...workload.notation import parse_einsum
from ...workload.orders import several_orders
from .dimensions import BEHIND, FITTING, LAST, LATEST, TESTS, several_readers
from .files import Data

LARGE = (997, 10007, 1000003)
"""Primes: a loop over them runs once per value or not at all, so that all trees stay few."""
OWN = (
    *("scalar", "constant index", "window", "padding", "repeated operand", "readers with the fused rank"),
    *("readers without it", "read output", "persistent input", "persistent result", "repeat", "copy", "copies only"),
    *("maximum", "unequal Einsums", "parts", "parts read", "views", "views between"),
)
"""The dimensions that a workload alone decides."""
SEVERAL = (
    *("readers with the fused rank", "readers without it", "read output", "unequal Einsums"),
    *("wider for a consumer", "store over two readers", "store behind what backs", "home by role", "free order"),
    *("shared stores", "parts read", "views between"),
    *("backed behind an idle memory", "own stores above what is backed", "turned on an axis"),
    "part behind a fanout",
)
MORE_THAN_COPIED = ("constant index", "window", "padding", "repeated operand", "maximum")
"""What another Einsum beside a copy has."""
READERS = ("readers with the fused rank", "readers without it", "store over two readers", "shared stores")
NEEDED = {"free order": several_orders, "shared stores": several_readers}
"""Whether a workload has what dimensions of the mapspace need."""
IMPLIED = (
    *(("copy held behind a fanout", "copy"), ("home by role", "read output"), ("parts read", "parts")),
    *(("views between", "views"), ("part housed inside", "parts"), ("part behind a fanout", "parts")),
)
TRIES = 60
SMALL = 8
"""Points of an Einsum; whoever gives it room for more gets larger ranks, and more Einsums."""


@dataclass
class GrowingCascade:
    """A cascade as it grows.

    room: the most values of one Einsum's iteration space, large primes left out. shapes: of every tensor so far.
    written, read: tensors, in order. views: of which tensor each is. before: the variables of each tensor of the Einsum
    before.
    """

    rng: Random
    on: Collection[str]
    room: int
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    declared: dict[str, list[int]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    initial: list[str] = field(default_factory=list)
    views: dict[str, str] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    lines: list[object] = field(default_factory=list)
    before: dict[str, list[str]] = field(default_factory=dict)
    points: int = 1

    @property
    def extents(self) -> tuple[int, ...]:
        """Extents of ranks to choose from: windows need three values or more."""
        small: tuple[int, ...] = (1, 2, 2) if self.room < 4 else (1, 2, 2, 2, 3, 4)
        small = (1, 2, 2, 2, 4) if "views" in self.on else small
        if self.room > SMALL:
            small = (*small, *((4, 8, 16) if "views" in self.on else (4, 6, 8, 8, 9, 12, 16)))
        odd = (3, 5, 5) if "uneven tiles" in self.on else ()
        return (*small, 3, 3, *odd) if "window" in self.on else (*small, *odd)

    @property
    def copies_twice(self) -> bool:
        """Shall two Einsums copy one tensor into parts of another?"""
        return {"copies only", "readers with the fused rank"} <= {*self.on}

    def chance(self, dimension: str, probability: float) -> bool:
        return dimension in self.on and self.rng.random() < probability

    def variable(self, size: int, known: Collection[str], taken: Collection[str]) -> str:
        """A variable of this size that is not taken: one of `known`, one of another Einsum, or a new one."""
        for among, probability in ((known, 0.7), (self.sizes, 0.5)):
            fitting = [v for v in among if self.sizes[v] == size and v not in taken]
            if fitting and self.rng.random() < probability:
                return self.rng.choice(fitting)
        name = f"v{len(self.sizes)}"
        self.sizes[name] = size
        return name

    def index(self, tensor: str, rank: int, known: Collection[str], taken: set[str]) -> str:
        """One rank of an operand: a constant, a window, or a plain variable. taken: variables of its other ranks."""
        size = self.shapes[tensor][rank]
        if size < 5 and self.chance("constant index", 0.3):
            return str(self.rng.randrange(size))
        if self.chance("padding", 0.5) and size in (2, 3, 4):
            outer, inner = self.variable(size, known, taken), self.variable(self.rng.choice((2, 3)), (), taken)
            if outer != inner:
                taken |= {outer, inner}
                self.declared[tensor] = list(self.shapes[tensor])
                return f"{outer}+{inner}{self.rng.choice(('-1', '-1', ''))}"  # at the end alone, too
        if self.chance("window", 0.5) and 3 <= size < 6:
            kernel = self.rng.randint(2, size - 1)
            outer = self.variable(size - kernel + 1, known, taken)
            inner = self.variable(kernel, known, {*taken, outer})
            taken |= {outer, inner}
            return f"{outer}+{inner}"
        chosen = self.variable(size, known, taken)
        taken.add(chosen)
        return chosen

    def tensor(self, mine: Collection[str]) -> str:
        """The tensor of an operand: one of the Einsum before, one from earlier on, or a new one."""
        shared = [t for t in self.before if t not in mine]
        wants = any(name in self.on for name in READERS)
        if shared and self.rng.random() < (0.8 if wants else 0.5):
            return self.rng.choice([*shared, shared[-1]])
        known = [t for t in (*self.written, *self.read) if t not in mine]
        if known and self.rng.random() < 0.4:
            return self.rng.choice(known)
        return self.new(f"I{len(self.shapes)}")

    def new(self, tensor: str) -> str:
        ranks = 0 if self.chance("scalar", 0.4) else self.rng.choice((1, 1, 1, 2))
        prime = self.chance("unequal Einsums", 0.5) and "uneven tiles" not in self.on  # of which every tile is one
        large = prime and not any(max(s, default=1) > 9 for s in self.shapes.values())
        among = [LARGE if large and i == 0 else self.extents for i in range(ranks)]
        self.shapes[tensor] = tuple(map(self.rng.choice, among))
        return tensor

    def operand(self, mine: dict[str, str], known: list[str]) -> None:
        """One more operand into `mine`, tensor -> access."""
        tensor = self.tensor(mine)
        there = tensor in (*self.written, *self.read)
        name = self._view(tensor) if self.chance("views", 0.7 if there else 0.2) else tensor
        taken: set[str] = set()
        indices = [self.index(name, rank, known, taken) for rank in range(len(self.shapes[name]))]
        known += [v for v in self.sizes if v in taken and v not in known]
        mine[tensor] = f"{name}[{','.join(indices)}]"

    def _view(self, tensor: str) -> str:
        """A view of the tensor: one that there is, or one under new ranks; itself if it has very many elements."""
        known = [view for view, of in self.views.items() if of == tensor]
        shape = self.shapes[tensor]
        if not shape or max(shape) > 64:
            return tensor
        size = _points(shape)
        if known and self.rng.random() < 0.5:
            return self.rng.choice(known)
        name = f"V{len(self.views)}"
        self.views[name] = tensor
        shapes = sorted(_factored(size, self.rng.choice((1, 2, 2, 3))))
        real = [other for other in shapes if _real(other) != _real(shape)]
        chosen = self.rng.choice(real if real and self.rng.random() < 0.8 else shapes)
        if len(shape) > 1 and self.rng.random() < 0.5:  # a rank in common
            size, ranks = _points(shape[1:]), self.rng.choice((1, 2))
            chosen = (shape[0], *self.rng.choice(sorted(_factored(size, ranks))))
        self.shapes[name] = chosen
        return name

    def einsum(self) -> None:
        """One more Einsum."""
        known: list[str] = []
        mine: dict[str, str] = {}
        copied = "copies only" in self.on or self.chance("copy", 0.5)
        for _ in range(1 if copied else self.rng.choice((1, 1, 2, 2, 3))):
            self.operand(mine, known)
        operands = list(mine.values())
        plain = all(part.isidentifier() for text in operands for part in _indices(text))
        copied = copied and plain
        if not copied and self.chance("repeated operand", 0.6):
            operands.append(self.rng.choice(operands))
        kept = known if copied else [v for v in known if self.rng.random() < 0.7][:2]
        self.rng.shuffle(kept)
        name = f"T{len(self.lines)}"
        parts = bool(kept) and self.chance("parts", 0.8) and all(self.sizes[v] < 10 for v in kept)
        again = next(iter(mine)) if copied and self.copies_twice else None
        left, others = self._part(name, kept, copied, again) if parts else (kept, None)
        self._write(name, left, operands, copied, [v for v in known if v not in kept])
        if others is not None:
            self.lines.append(others)
        if not parts:
            self.shapes[name] = tuple(self.sizes[v] for v in kept)
        self.read += [t for t in mine if t not in (*self.read, *self.written)]
        self.written.append(name)
        self.points = max(self.points, _points(self.sizes[v] for v in known))
        self.before = {**{t: [] for t in mine}, name: kept}

    def _part(self, name: str, kept: list[str], copied: bool, again: str | None) -> tuple[list[str], Data | None]:
        """How an Einsum writes a tensor in parts, and the Einsum that writes the others, if there is one.

        again: the tensor that the other Einsum shall copy, too, where that fits.
        """
        sizes = [self.sizes[v] for v in kept]
        widely = 1.0 if "part behind a fanout" in self.on else 0.4
        if len(kept) == 2 and again is None and self.rng.random() < widely:
            self.shapes[name] = (sizes[0] * sizes[1],)
            return [f"{sizes[1]}*{kept[0]}+{kept[1]}"], None
        rank = self.rng.randrange(len(kept))
        more = self.rng.choice((1, 1, 2)) if again is None else sizes[rank]
        first = self.rng.random() < 0.5  # does this Einsum write the first part?
        mine = [*kept[:rank], kept[rank] if first else f"{kept[rank]}+{more}", *kept[rank + 1 :]]
        sizes[rank] += more
        self.shapes[name] = tuple(sizes)
        if self.rng.random() < 0.25:
            self.initial.append(name)
            self.declared[name] = sizes
            return mine, None
        known = [v for i, v in enumerate(kept) if i != rank]
        theirs = [v if self.rng.random() < 0.5 else self.variable(self.sizes[v], (), known) for v in known]
        part = "" if more == 1 and self.rng.random() < 0.5 else self.variable(more, (), {*known, *theirs})
        start = self.sizes[kept[rank]] if first else 0
        at = "+".join(x for x in (part, str(start) if start or not part else "") if x)
        read = [*theirs, *([part] if part else [])]
        shape = tuple(self.sizes[v] for v in read)
        among = (*self.written, *self.read) if again is None else (again,)
        tensor = next((t for t in among if self.shapes[t] == shape), f"I{len(self.shapes)}")
        self.shapes[tensor] = shape
        if tensor not in (*self.written, *self.read):
            self.read.append(tensor)
        access = f"{tensor}[{','.join(read)}]"
        left = f"{name}[{','.join([*theirs[:rank], at, *theirs[rank:]])}]"
        return mine, {
            "name": f"P{name[1:]}",
            "einsum": f"{left} = " + (f"copy {access}" if copied else f"exp({access})"),
        }

    def _write(self, name: str, kept: list[str], operands: list[str], copied: bool, reduced: list[str]) -> None:
        function = {1: "exp", 2: "sub"}.get(len(operands), "add")
        body = " * ".join(operands) if self.rng.random() < 0.5 else f"{function}({', '.join(operands)})"
        left = f"{name}[{','.join(kept)}]"
        if copied:
            self.lines.append(f"{left} = copy {operands[0]}")
        elif reduced and self.chance("maximum", 0.7):
            text = f"{left} = {body}"
            how = self.rng.random() < 0.5
            whole = {"einsum": text, "name": f"E{name[1:]}", "reduction": "max"}
            self.lines.append(f"{left} = max[{','.join(reduced)}] {body}" if how else whole)
        elif self.rng.random() < 0.2:
            self.lines.append({"einsum": f"{left} = {body}", "name": f"E{name[1:]}"})
        else:
            self.lines.append(f"{left} = {body}")


def _indices(access: str) -> list[str]:
    return [part for part in access[access.index("[") + 1 : -1].split(",") if part]


def _grown(rng: Random, on: Collection[str], room: int, most: int) -> Data | None:
    """A workload file, which may lack what it should have; None if an Einsum has more than `most` points."""
    cascade = GrowingCascade(rng, on, room)
    beside = "copy" in on and any(name in on for name in MORE_THAN_COPIED)
    several = beside or any(name in on for name in SEVERAL)
    if room > SMALL:
        count = max(rng.choice((1, 2, 3, 3, 4, 5)), 2 if several else 1)
    else:
        count = rng.choice((2, 2, 3) if several else (1, 1, 2) if room < 4 else (1, 1, 2, 2, 2, 3))
    for _ in range(count):
        cascade.einsum()
        if cascade.points > most:
            return None
    texts = [str(line["einsum"]) if isinstance(line, dict) else str(line) for line in cascade.lines]
    used = {v for v in cascade.sizes for text in texts for part in _parts(text) if part == v}
    views = {v: t for v, t in cascade.views.items() if any(f" {v}[" in text or f"({v}[" in text for text in texts)}
    read = set(views.values()) | {t for t in cascade.shapes for text in texts if f" {t}[" in text or f"({t}[" in text}
    data: Data = {"schema": "workload/1", "name": "random", "einsums": cascade.lines}
    if used:
        data["ranks"] = {v: size for v, size in cascade.sizes.items() if v in used}
    data["bits"] = _bits(rng, on, [t for t in cascade.shapes if t not in cascade.views])
    if views:
        data["views"] = {view: {"of": tensor, "shape": list(cascade.shapes[view])} for view, tensor in views.items()}
        cascade.declared.update({t: list(cascade.shapes[t]) for t in views.values() if t not in cascade.written})
    made = {t for t in cascade.written if t not in cascade.initial}
    if shapes := {t: shape for t, shape in cascade.declared.items() if t not in made and t not in cascade.views}:
        data["shapes"] = shapes
    _fixed_sizes(data, cascade)
    ends = [t for t in cascade.written if t not in read or cascade.chance("read output", 0.6)]
    if any(t in read for t in ends) or rng.random() < 0.1:
        data["outputs"] = ends
    persistent = [
        t
        for t in cascade.shapes
        if t not in cascade.views
        and cascade.chance("persistent result" if t in cascade.written else "persistent input", 0.5)
    ]
    if persistent:
        data["persistent"] = persistent
    if cascade.initial:
        data["initial"] = cascade.initial
    if "repeat" in on:
        data["repeat"] = rng.choice((2, 3))
    _described(data)
    return data


def _described(data: Data) -> None:
    """Give half of the workloads what is for people, by dice of their own: it changes nothing else."""
    rng = Random(repr(data))
    if rng.random() < 0.5:
        return
    data["absorbed"] = [f"{rng.randint(1, 9)} x {rng.choice(('Relu', 'Gelu'))}"]
    for i, line in enumerate(data["einsums"]):
        if rng.random() < 0.7:
            whole = line if isinstance(line, dict) else {"einsum": line}
            data["einsums"][i] = {**whole, "group": rng.choice(("0", "1.5", "layers.0.norm", "layers.1"))}
    for i, line in enumerate(data["einsums"]):
        if rng.random() < 0.3:
            whole = line if isinstance(line, dict) else {"einsum": line}
            nodes = [{"output": "/a/Add_output_0"}, {"output": "t: 1", "name": "/a/Mul"}]
            data["einsums"][i] = {**whole, "nodes": rng.sample(nodes, rng.randint(1, 2))}


def _fixed_sizes(data: Data, cascade: GrowingCascade) -> None:
    """Declare the shape of inputs that constants alone index somewhere: nothing else says how long they are."""
    for tensor in cascade.read:
        if "constant index" in cascade.on and tensor not in data.get("shapes", {}) and cascade.shapes[tensor]:
            data.setdefault("shapes", {})[tensor] = list(cascade.shapes[tensor])


def built(data: Data) -> Workload:
    """The workload of a file's data, quicker than by reading it. Raises SpecError."""
    einsums = []
    for line in data["einsums"]:
        whole = line if isinstance(line, dict) else {"einsum": line}
        einsums.append(parse_einsum(whole["einsum"], whole.get("name"), whole.get("reduction")))
    return build_workload(
        data["name"],
        einsums,
        data.get("ranks", {}),
        bits=data.get("bits", {}),
        **{key: data[key] for key in ("shapes", "outputs", "persistent", "initial", "repeat") if key in data},
        views=[TensorView(name, view["of"], tuple(view["shape"])) for name, view in data.get("views", {}).items()],
    )


def _parts(text: str) -> list[str]:
    return findall(r"[^][,+()*=\s]+", text)


def _bits(rng: Random, on: Collection[str], tensors: list[str]) -> object:
    if "unequal Einsums" in on and rng.random() < 0.5:
        return {"default": 1, rng.choice(tensors): rng.choice((64, 512, 4096))}
    if rng.random() < 0.3:
        return rng.choice((1, 2))
    return {"default": 1, **{t: rng.choice((1, 1, 2, 3)) for t in tensors}}


def cascade(rng: Random, wanted: Collection[str], room: int, tries: int = TRIES) -> Data | None:
    """A workload file with these dimensions of `OWN`; None if none came up in so many tries.

    room: the most points of an Einsum's iteration space, large primes left out.
    """
    on = [name for name in (*OWN, *FITTING, *NEEDED, "uneven tiles") if name in wanted]
    for name, implied in IMPLIED:
        if name in on and implied not in on:
            on.append(implied)
    twice = {"copies only", "readers with the fused rank"} <= {*on}
    if twice and "parts" not in on:
        on.append("parts")
    most = max(room, 8 if twice else 4 if {"window", "padding", "views", *LATEST, *LAST, *BEHIND} & set(on) else 0)
    for _ in range(tries):
        data = _grown(rng, on, room, most)
        if data is None:
            continue
        try:
            workload = built(data)
        except SpecError:
            continue
        has = (TESTS[name](workload, None, None) for name in on if name in OWN)  # type: ignore[arg-type]
        fits = (any(FITTING[name](workload)) for name in on if name in FITTING)
        if all(has) and all(fits) and all(NEEDED[name](workload) for name in on if name in NEEDED):
            return data
    return None


def _factored(size: int, ranks: int) -> Iterator[tuple[int, ...]]:
    """Every shape of so many ranks and elements."""
    if ranks == 1:
        yield (size,)
        return
    for first in range(1, size + 1):
        if size % first == 0:
            yield from ((first, *rest) for rest in _factored(size // first, ranks - 1))


def _real(shape: tuple[int, ...]) -> list[int]:
    """The sizes that are not 1."""
    return [size for size in shape if size > 1]


def _points(extents: Iterable[int]) -> int:
    return prod(extent if extent < 100 else 2 for extent in extents)

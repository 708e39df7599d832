"""DAT's own accounting of traffic and room, and its published example: what it counts, and what does not fit.

Comes in: dimensions of BERT-large's projections and attention and a buffer in elements. Goes out: the least traffic of
all orders, blocks and fused tensors by DAT's rules (sections 4.1 to 4.3, and the example that it prints: 276,824,064
elements), with the footprint by which DAT takes it for feasible. The rules differ from einloom's in three places: a
loop of one trip is a loop; a fused tensor at the edge of the chain is fetched once; and tensors of another group of
operators take no room, even if they have to stay over the loops of this one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import permutations, product
from math import prod

from ..dataclass import dataclass
from ..mapspace.divisors import divisors

BATCH, TOKENS, HEADS, WIDTH = 16, 1024, 12, 64
BUFFER = 131_072
"""Elements, as in DAT's example."""
PRINTED = 276_824_064
LEAST = 16
"""No block is smaller, so that the array of `AREA` multipliers is used; nor is the sum of an operator's tiles."""
AREA = 1024

Sizes = Mapping[str, int]
Orders = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class DatOperator:
    """A matrix multiplication: its tensors, the output last, each with its dimensions."""

    tensors: tuple[tuple[str, str], ...]

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(sorted({d for _, dims in self.tensors for d in dims}))


@dataclass(frozen=True, slots=True)
class DatSchedule:
    """A way to run a chain. orders: of each operator, outermost first. blocks: elements of a dimension on chip.
    edge: tensors at the edge of the chain that are called fused. moved, footprint: elements."""

    orders: Orders
    blocks: tuple[tuple[str, int], ...]
    edge: tuple[str, ...]
    moved: int
    footprint: int


PROJECTION = (DatOperator((("X", "mk"), ("W", "kl"), ("Y", "ml"))),)
ATTENTION = (DatOperator((("Q", "md"), ("K", "nd"), ("S", "mn"))), DatOperator((("S", "mn"), ("V", "ne"), ("A", "me"))))
PROJECTION_SIZES = {"m": BATCH * TOKENS, "k": HEADS * WIDTH, "l": HEADS * WIDTH}
ATTENTION_SIZES = {"m": TOKENS, "n": TOKENS, "d": WIDTH, "e": WIDTH}


def traffic(order: tuple[str, ...], dims: str, sizes: Sizes, blocks: Sizes, output: bool) -> int:
    """Elements of a tensor that is not fused: its block for every trip of the loops from the innermost that indexes it
    outwards; an output is read back but for the first time."""
    inner = max(order.index(d) for d in dims)
    visits = prod(sizes[d] // blocks[d] for d in order[: inner + 1])
    moved = visits * prod(blocks[d] for d in dims)
    return 2 * moved - prod(sizes[d] for d in dims) if output else moved


def expanded(order: tuple[str, ...], dims: str) -> str:
    """The dimensions of which a fused tensor keeps all: those inside of the outermost loop that does not index it."""
    outer = next((i for i, d in enumerate(order) if d not in dims), len(order))
    return "".join(d for d in order[outer:] if d in dims)


def room(order: tuple[str, ...], dims: str, sizes: Sizes, blocks: Sizes, fused: bool) -> int:
    """Elements that a tensor takes on chip."""
    whole = expanded(order, dims) if fused else ""
    return prod(sizes[d] if d in whole else blocks[d] for d in dims)


def schedules(chain: tuple[DatOperator, ...], sizes: Sizes, buffer: int) -> Iterator[DatSchedule]:
    """Every way to run one operator, or two with the tensor between them fused, that fits by DAT's footprint."""
    between = _between(chain)
    edge = sorted({name for op in chain for name, _ in op.tensors} - between) if between else []
    subsets = [
        frozenset(n for n, keeps in zip(edge, kept, strict=True) if keeps) for kept in product((0, 1), repeat=len(edge))
    ]
    for orders in product(*(permutations(op.dims) for op in chain)):
        if _consistent(orders):
            for blocks in _blocks(chain, sizes):
                found = (one for one in priced(chain, orders, sizes, blocks, subsets) if one.footprint <= buffer)
                yield from found


def priced(
    chain: tuple[DatOperator, ...], orders: Orders, sizes: Sizes, blocks: Sizes, subsets: Collection[Collection[str]]
) -> Iterator[DatSchedule]:
    """One schedule for each set of tensors at the edge that are called fused, whether it fits or not."""
    between = _between(chain)
    cells = []
    for op, order in zip(chain, orders, strict=True):
        alone, fused = {}, {}
        for name, dims in op.tensors:
            moved = traffic(order, dims, sizes, blocks, name == op.tensors[-1][0])
            alone[name] = moved, room(order, dims, sizes, blocks, False)
            whole = 0 if name in between else prod(sizes[d] for d in dims)
            fused[name] = whole, room(order, dims, sizes, blocks, True)
        cells.append((alone, fused))
    together = _together(chain, orders)
    for edge in subsets:
        chosen = [[(f if n in between or n in edge else a)[n] for n in a] for a, f in cells]
        rooms = [sum(taken for _, taken in op) for op in chosen]
        moved = sum(elements for op in chosen for elements, _ in op)
        yield DatSchedule(
            orders, tuple(blocks.items()), tuple(sorted(edge)), moved, sum(rooms) if together else max(rooms)
        )


def _between(chain: tuple[DatOperator, ...]) -> set[str]:
    """The tensor that two operators have in common."""
    one, *rest = ({name for name, _ in op.tensors} for op in chain)
    return one.intersection(*rest) if rest else set()


def _together(chain: tuple[DatOperator, ...], orders: Orders) -> bool:
    """Are producer and consumer one group? Only if the consumer keeps all of what it sums over."""
    if len(chain) < 2:
        return False
    output = chain[1].tensors[-1][1]
    return any(d not in output for d in expanded(orders[1], chain[0].tensors[-1][1]))


def _consistent(orders: Orders) -> bool:
    """Do operators have the dimensions that they share in the same order?"""
    shared = [[d for d in order if all(d in other for other in orders)] for order in orders]
    return all(one == shared[0] for one in shared)


def _blocks(chain: tuple[DatOperator, ...], sizes: Sizes) -> Iterator[Sizes]:
    names = list(sizes)
    for chosen in product(*([b for b in divisors(sizes[d]) if b >= LEAST] for d in names)):
        blocks = dict(zip(names, chosen, strict=True))
        if all(sum(prod(blocks[d] for d in dims) for _, dims in op.tensors) >= AREA for op in chain):
            yield blocks


def least(chain: tuple[DatOperator, ...], sizes: Sizes, buffer: int = BUFFER) -> DatSchedule:
    """The schedule that moves least by DAT's rules; of those, the one with the smallest footprint."""
    return min(schedules(chain, sizes, buffer), key=lambda one: (one.moved, one.footprint))


def example() -> tuple[DatSchedule, DatSchedule, int]:
    """DAT's example: one projection, one head's attention, and the elements of three projections and all heads."""
    projection = least(PROJECTION, PROJECTION_SIZES)
    attention = least(ATTENTION, ATTENTION_SIZES)
    return projection, attention, 3 * projection.moved + BATCH * HEADS * attention.moved

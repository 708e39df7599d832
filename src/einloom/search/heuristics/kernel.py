"""Machine code that anneals the privates of one Einsum: stores, trips, orders and spatial choices, a million a second.

One generic kernel over numbers: nothing is compiled for a problem or a skeleton. It keeps the rules that
`mapspace/ffm/encoding/checks` has for one path, and prices a path as `cost/traffic/even.EvenPaths` does, in float64;
tests compare both with the slow ways. What goes in is packed by `bursts`.
"""

from __future__ import annotations

from math import exp, log
from typing import Any, NamedTuple

import numpy as np

from .machine_code import machine_code

STORE, FOR, PAR, SPLIT = 0, 1, 2, 3
ENERGY, LATENCY, TRAFFIC, PRODUCT = 0, 1, 2, 3
# columns of `mem`: joules a bit read and written, bits a second read and written (0: unlimited), one port, place
# entries of `scal`: joules of all operations, operations, their throughput (0: unlimited), repeat, leak, rmw, goal,
# powers of energy and latency, memory of the objective, whether it is a copy


class Privates(NamedTuple):
    """What proposals change: stores [rows, 2], trips and orders [rows, variables], spatial trips [axes, variables]."""

    sto: Any
    tri: Any
    orders: Any
    spa: Any


class Fixed(NamedTuple):
    """What stands still while they change, by the loops and stores above the branch. See `keeps`, `bursts`."""

    left: Any
    room: Any
    shared: Any
    barred: Any
    held: Any
    home: Any
    least: Any
    axis: Any


class Tables(NamedTuple):
    """What the Einsum, its unit and the machine say: prices, widths, limits, and what proposals choose from."""

    rel: Any
    values: Any
    written: Any
    joined: Any
    width: Any
    cap: Any
    mem: Any
    may: Any
    need: Any
    owns: Any
    spreads: Any
    takes: Any
    count: Any
    primes: Any
    scal: Any


@machine_code
def price(
    items: Any,
    count: int,
    rel: Any,
    values: Any,
    written: Any,
    joined: Any,
    width: Any,
    mem: Any,
    scal: Any,
    flows: Any,
    out: Any,
) -> None:
    """Fill `out` with joules, seconds and bits through the objective's memory of one path of `count` items.

    items: int64 [n, 4], rows (kind, variable or memory, trips or tensors as bits, axis). flows: scratch, [4, memories].
    """
    for side in range(4):
        for m in range(mem.shape[0]):
            flows[side, m] = 0.0
    stays = scal[10] > 0 and _together(items, count)
    _crossed(items, count, stays, rel, values, written, joined, width, scal[5] > 0, flows)
    done = scal[1]
    for q in range(count):
        if items[q, 0] == PAR:
            done /= items[q, 2]
    summed(flows, done, mem, scal, out)


@machine_code
def summed(flows: Any, done: float, mem: Any, scal: Any, out: Any) -> None:
    """Fill `out` as `price` does. flows: bits read and written, of all instances and of the busiest; done: operations
    of the busiest one."""
    energy, slowest, repeat = 0.0, 0.0, scal[3]
    for m in range(mem.shape[0]):
        energy += flows[0, m] * repeat * mem[m, 0] + flows[1, m] * repeat * mem[m, 1]
        reading = flows[2, m] / mem[m, 2] if mem[m, 2] > 0 else 0.0
        writing = flows[3, m] / mem[m, 3] if mem[m, 3] > 0 else 0.0
        slowest = max(slowest, reading + writing if mem[m, 4] > 0 else max(reading, writing))
    energy += scal[0]
    if scal[2] > 0:
        slowest = max(slowest, done / scal[2])
    out[1] = slowest * repeat
    out[0] = energy + scal[4] * out[1]
    at = int(scal[9])
    out[2] = (flows[0, at] + flows[1, at]) * repeat if at >= 0 else 0.0


@machine_code
def _together(items: Any, count: int) -> bool:
    """True if the innermost stores of all tensors of a path are in one memory: then a copy moves nothing further in."""
    seen, memory = 0, -1
    for q in range(count - 1, -1, -1):
        if items[q, 0] == STORE and items[q, 2] & ~seen:
            if memory >= 0 and items[q, 1] != memory:
                return False
            seen, memory = seen | items[q, 2], items[q, 1]
    return True


@machine_code
def _crossed(
    items: Any,
    count: int,
    stays: bool,
    rel: Any,
    values: Any,
    written: Any,
    joined: Any,
    width: Any,
    rmw: bool,
    flows: Any,
) -> None:
    """Add what crosses every link, as `even.even_counts` counts it: for each tensor one walk from the outside in.

    again: trips of the temporal loops so far that the tensor lacks; fetched: of those above the last loop that it has,
    or split: they fetch a tile below anew. above, lacking: instances above the parent that need other values, or the
    same; inside, inside_lacking, apart: those since then. stays: nothing moves below the innermost store.
    """
    for t in range(rel.shape[0]):
        v, writes, parent = values[t], written[t], -1
        again, fetched, above, lacking, inside, inside_lacking, apart = 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0
        for p in range(count if stays else count + 1):
            kind, child = SPLIT if p == count else items[p, 0], -1
            if kind == FOR:
                if rel[t, items[p, 1]]:
                    fetched = again
                else:
                    again *= items[p, 2]
                continue
            if kind == PAR:
                if rel[t, items[p, 1]]:
                    inside *= items[p, 2]
                else:
                    inside_lacking *= items[p, 2]
                    apart *= 1 if joined[t, items[p, 3]] else items[p, 2]
                continue
            if kind == STORE and (items[p, 2] >> t) & 1:
                child = items[p, 1]
            elif kind == SPLIT:
                fetched = again
            if parent >= 0 and (child >= 0 or p == count):
                side, w = 1 if writes else 0, width[t, parent]
                here, busiest = v * apart * lacking * w, v / above * apart * w
                flows[side, parent] += here * fetched
                flows[2 + side, parent] += busiest * fetched
                if writes and (rmw or child < 0):
                    flows[0, parent] += here * (fetched - 1.0)
                    flows[2, parent] += busiest * (fetched - 1.0)
                if child >= 0:
                    w = width[t, child]
                    there, busiest = v * lacking * inside_lacking * w, v / (above * inside) * w
                    flows[1 - side, child] += there * fetched
                    flows[3 - side, child] += busiest * fetched
                    if writes and rmw:
                        flows[1, child] += there * (fetched - 1.0)
                        flows[3, child] += busiest * (fetched - 1.0)
            if child >= 0:
                above, lacking, parent = above * inside, lacking * inside_lacking, child
                inside, inside_lacking, apart = 1.0, 1.0, 1.0


@machine_code
def value_of(scal: Any, energy: float, latency: float, traffic: float) -> float:
    """The objective of these sums."""
    goal = int(scal[6])
    if goal == ENERGY:
        return energy
    if goal == LATENCY:
        return latency
    if goal == TRAFFIC:
        return traffic
    return float(energy ** scal[7] * latency ** scal[8])


@machine_code
def _built(
    items: Any,
    base: int,
    ns: int,
    sto: Any,
    tri: Any,
    orders: Any,
    spa: Any,
    left: Any,
    room: Any,
    rel: Any,
    cap: Any,
    mem: Any,
    axis: Any,
    ext: Any,
    used: Any,
) -> int:
    """The items of the branch behind the first `base`; how many there are, or -1 if its tiles do not fit."""
    nv, na = spa.shape[1], spa.shape[0]
    count, done = base, 0
    for v in range(nv):
        ext[v] = left[v]
    for m in range(used.shape[0]):
        used[m] = 0.0
    for k in range(ns + 1):
        for j in range(nv):
            v = orders[k, j]
            if tri[k, v] > 1:
                items[count, 0], items[count, 1], items[count, 2] = FOR, v, tri[k, v]
                count += 1
                ext[v] //= tri[k, v]
        while done < na and (k == ns or axis[done, 0] < mem[sto[k, 0], 5]):
            for v in range(nv):
                if spa[done, v] > 1:
                    items[count, 0], items[count, 1], items[count, 2], items[count, 3] = PAR, v, spa[done, v], done
                    count += 1
                    ext[v] //= spa[done, v]
            done += 1
        if k < ns:
            m, t = sto[k, 0], sto[k, 1]
            bits = cap[t, m]
            for v in range(nv):
                if rel[t, v]:
                    bits *= ext[v]
            used[m] += bits
            if used[m] > room[m]:
                return -1
            items[count, 0], items[count, 1], items[count, 2] = STORE, m, 1 << t
            count += 1
    return count


@machine_code
def keeps(
    ns: int, sto: Any, tri: Any, held: Any, may: Any, need: Any, home: Any, barred: Any, least: Any, now: Any
) -> bool:
    """True if stores and segments keep the rules of a path.

    held: tensors in each memory above the branch, as bits. home: of tensors not backed above, where their first store
    is. barred: variables that have a loop above with no store since. least: first memory that a store may name, and
    the first for each tensor.
    """
    for v in range(tri.shape[1]):
        if barred[v] and tri[0, v] > 1:
            return False
    for m in range(held.shape[0]):
        now[m] = held[m]
    reach = least[0]
    for k in range(ns):
        m, t = sto[k, 0], sto[k, 1]
        if m < reach or m < least[1 + t] or (now[m] >> t) & 1:
            return False
        reach = m
        now[m] |= 1 << t
    above = 0
    for m in range(now.shape[0]):
        if now[m] & ~may[m, above] or need[m, above] & ~now[m]:
            return False
        above |= now[m]
    kept = True
    for t in range(home.shape[0]):
        kept = kept and (home[t] < 0 or (now[home[t]] >> t) & 1 > 0)
    return kept


@machine_code
def mend(v: int, ns: int, tri: Any, rest: int, barred: bool) -> None:
    """Trips of a variable that multiply to `rest`, as they were from the inside out; what is left stands outermost."""
    outer = -1
    for k in range(ns, -1, -1):
        a, b = tri[k, v], rest
        if a > 1:
            outer = k
        while b:
            a, b = b, a % b
        tri[k, v] = a
        rest //= a
    if outer < 0:
        outer = 1 if barred and ns > 0 else 0
    tri[outer, v] *= rest


@machine_code
def random_below(n: int) -> int:
    return int(np.random.random() * n)


@machine_code
def shifted(ns: int, tri: Any, primes: Any) -> int:
    """Trips of a variable go to another segment: some of its prime factors, or all."""
    if ns == 0:
        return -1
    k, v = random_below(ns + 1), random_below(tri.shape[1])
    to = random_below(ns)
    to += 1 if to >= k else 0
    n = tri[k, v]
    if n < 2:
        return -1
    some = n
    if np.random.random() < 0.8:
        some = 1
        for _ in range(1 + random_below(2)):
            p = primes[v, random_below(primes.shape[1])]
            if p > 1 and n % (some * p) == 0:
                some *= p
        if some == 1:
            return -1
    tri[k, v] //= some
    tri[to, v] *= some
    return ns


@machine_code
def _propose(
    ns: int,
    sto: Any,
    tri: Any,
    orders: Any,
    spa: Any,
    left: Any,
    shared: Any,
    axis: Any,
    spreads: Any,
    takes: Any,
    count: Any,
    primes: Any,
    owns: Any,
    barred: Any,
) -> int:
    """Change the privates by one move; the number of stores then, or -1 if the move has nothing to move."""
    nv = spa.shape[1]
    kind = random_below(21)
    if kind < 10:
        return shifted(ns, tri, primes)
    if kind < 12:  # the order in a segment
        if ns == 0:
            return -1
        k, a, b = random_below(ns), random_below(nv), random_below(nv)
        orders[k, a], orders[k, b] = orders[k, b], orders[k, a]
    elif kind < 15:
        return toggled(ns, sto, tri, orders, owns)
    elif kind < 17:  # another choice on the full-use axes
        if spreads.shape[0] < 2:
            return -1
        return _respread(ns, tri, spa, left, shared, axis, spreads, random_below(spreads.shape[0]), barred)
    elif kind < 20:
        return _reshare(ns, tri, spa, left, shared, axis, takes, count, barred)
    else:  # two neighbouring stores of one memory
        if ns < 2:
            return -1
        k = random_below(ns - 1)
        if sto[k, 0] != sto[k + 1, 0]:
            return -1
        sto[k, 1], sto[k + 1, 1] = sto[k + 1, 1], sto[k, 1]
    return ns


@machine_code
def _reshare(
    ns: int, tri: Any, spa: Any, left: Any, shared: Any, axis: Any, takes: Any, count: Any, barred: Any
) -> int:
    """Another number of instances for a variable, on an axis that need not be full."""
    nv, na = spa.shape[1], spa.shape[0]
    a, v = random_below(na) if na else 0, random_below(nv)
    if na == 0 or axis[a, 1] > 0 or axis[a, 2] == 0 or shared[a, v] > 1 or count[a, v] < 2:
        return -1
    n = takes[a, v, random_below(count[a, v])]
    total, rest = n, left[v] // n
    if left[v] % n or n == spa[a, v]:
        return -1
    for w in range(nv):
        total *= shared[a, w] * (spa[a, w] if w != v else 1)
    for b in range(na):
        if b != a:
            if rest % spa[b, v]:
                return -1
            rest //= spa[b, v]
    if total > axis[a, 2]:
        return -1
    spa[a, v] = n
    mend(v, ns, tri, rest, barred[v])
    return ns


@machine_code
def toggled(ns: int, sto: Any, tri: Any, orders: Any, owns: Any) -> int:
    """A store comes or goes; a new one divides the segment that it enters."""
    nv = tri.shape[1]
    if owns.shape[0] == 0:
        return -1
    one = random_below(owns.shape[0])
    m, t = owns[one, 0], owns[one, 1]
    for k in range(ns):
        if sto[k, 0] == m and sto[k, 1] == t:
            for v in range(nv):
                tri[k, v] *= tri[k + 1, v]
            for j in range(k, ns - 1):
                sto[j, 0], sto[j, 1] = sto[j + 1, 0], sto[j + 1, 1]
            for j in range(k + 1, ns):
                for v in range(nv):
                    tri[j, v], orders[j, v] = tri[j + 1, v], orders[j + 1, v]
            return ns - 1
    if ns + 1 >= tri.shape[0]:
        return -1
    low = high = 0
    for k in range(ns):
        low += sto[k, 0] < m
        high += sto[k, 0] <= m
    at = low + random_below(high - low + 1)
    for j in range(ns, at, -1):
        sto[j, 0], sto[j, 1] = sto[j - 1, 0], sto[j - 1, 1]
    sto[at, 0], sto[at, 1] = m, t
    for j in range(ns + 1, at, -1):
        for v in range(nv):
            tri[j, v], orders[j, v] = tri[j - 1, v], orders[j - 1, v]
    inner = random_below(3)  # below the new store: nothing, all, or some loops
    for v in range(nv):
        if inner == 1 or (inner == 2 and np.random.random() < 0.5):
            tri[at, v] = 1
        else:
            tri[at + 1, v] = 1
    return ns + 1


@machine_code
def _respread(
    ns: int, tri: Any, spa: Any, left: Any, shared: Any, axis: Any, spreads: Any, one: int, barred: Any
) -> int:
    """The privates with another choice on the full-use axes; -1 if shared loops or what they leave forbid it."""
    for v in range(spa.shape[1]):
        rest = left[v]
        for a in range(spa.shape[0]):
            if axis[a, 1] > 0:
                n = spreads[one, a, v]
                if shared[a, v] > 1:
                    if n != shared[a, v]:
                        return -1
                    n = 1
                spa[a, v] = n
            if rest % spa[a, v]:
                return -1
            rest //= spa[a, v]
        mend(v, ns, tri, rest, barred[v])
    return ns


@machine_code
def copied(sto: Any, tri: Any, orders: Any, spa: Any, sto2: Any, tri2: Any, orders2: Any, spa2: Any) -> None:
    """Enter the first privates into the second."""
    for k in range(tri.shape[0]):
        sto2[k, 0], sto2[k, 1] = sto[k, 0], sto[k, 1]
        for v in range(tri.shape[1]):
            tri2[k, v], orders2[k, v] = tri[k, v], orders[k, v]
    for a in range(spa.shape[0]):
        for v in range(spa.shape[1]):
            spa2[a, v] = spa[a, v]


@machine_code
def anneal(
    seed: int,
    tries: int,
    points: int,
    heat: float,
    rest: Any,
    items: Any,
    base: int,
    ns: int,
    own: Any,
    fixed: Any,
    tables: Any,
    best: Any,
) -> Any:
    """Anneal `own`, in place; `best` becomes the best `Privates` of all. rest: what all the others cost.

    Returns (stores now, stores of the best, value now, best value, legal, overfull and refused proposals).
    """
    left, room, shared, barred, held, home, least, axis = fixed
    rel, values, written, joined, width, cap, mem, may, need, owns, spreads, takes, count, primes, scal = tables
    sto, tri, orders, spa = own
    np.random.seed(seed)
    nm, nv = mem.shape[0], tri.shape[1]
    flows, out, used = np.zeros((4, nm)), np.zeros(3), np.zeros(nm)
    ext, now = np.zeros(nv, np.int64), np.zeros(nm, np.int64)
    sto2, tri2, orders2, spa2 = sto.copy(), tri.copy(), orders.copy(), spa.copy()
    size = _built(items, base, ns, sto, tri, orders, spa, left, room, rel, cap, mem, axis, ext, used)
    value = np.inf
    if size >= 0:
        price(items, size, rel, values, written, joined, width, mem, scal, flows, out)
        value = value_of(scal, rest[0] + out[0], rest[1] + out[1], rest[2] + out[2])
    best_sto, best_tri, best_orders, best_spa = best
    copied(sto, tri, orders, spa, best_sto, best_tri, best_orders, best_spa)
    best_ns, best_value = ns, value
    legal = overfull = refused = 0
    for _ in range(tries):
        if legal + overfull >= points:
            break
        copied(sto, tri, orders, spa, sto2, tri2, orders2, spa2)
        n = _propose(ns, sto2, tri2, orders2, spa2, left, shared, axis, spreads, takes, count, primes, owns, barred)
        if n < 0 or not keeps(n, sto2, tri2, held, may, need, home, barred, least, now):
            refused += 1
            continue
        size = _built(items, base, n, sto2, tri2, orders2, spa2, left, room, rel, cap, mem, axis, ext, used)
        if size < 0:
            overfull += 1
            continue
        legal += 1
        price(items, size, rel, values, written, joined, width, mem, scal, flows, out)
        new = value_of(scal, rest[0] + out[0], rest[1] + out[1], rest[2] + out[2])
        if new > value and (heat <= 0 or value <= 0 or np.random.random() >= exp(-log(new / value) / heat)):
            continue
        copied(sto2, tri2, orders2, spa2, sto, tri, orders, spa)
        ns, value = n, new
        if new < best_value:
            copied(sto, tri, orders, spa, best_sto, best_tri, best_orders, best_spa)
            best_ns, best_value = ns, new
    return ns, best_ns, value, best_value, legal, overfull, refused

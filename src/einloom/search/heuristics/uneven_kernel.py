"""Machine code that anneals the privates of one Einsum in `ragged`, where the outermost loop of a variable is free.

As `kernel`, whose proposals and rules it uses. Here trips further in are free, and the outermost temporal loop of a
variable with no shared loop follows from them (`mapspace/ffm/encoding/covers`); a path is priced as
`cost/traffic/uneven` counts, in float64.
"""

from __future__ import annotations

from math import exp, log
from typing import Any, NamedTuple

import numpy as np

from .kernel import FOR, PAR, SPLIT, STORE, copied, keeps, mend, random_below, shifted, summed, toggled, value_of
from .machine_code import machine_code

MOST_SPATIAL = 64  # shares of one variable that balance looks at


class Cuts(NamedTuple):
    """Of each variable its extent, and what its loops cover if one of them is shared, else 0."""

    whole: Any
    cover: Any


@machine_code
def recovered(ns: int, sto: Any, tri: Any, spa: Any, axis: Any, mem: Any, whole: Any, cover: Any, total: Any) -> bool:
    """Give the outermost temporal loop of each variable without a shared loop the trips that its extent needs.

    total: what the loops of each variable cover then. False if that would change a spatial loop.
    """
    nv, na = spa.shape[1], spa.shape[0]
    for v in range(nv):
        if cover[v] > 0:
            total[v] = cover[v]
            continue
        inner = 1
        for k in range(ns + 1):
            inner *= tri[k, v]
        for a in range(na):
            inner *= spa[a, v]
        total[v], done, settled = whole[v], 0, False
        for k in range(ns + 1):
            if tri[k, v] > 1:
                inner //= tri[k, v]
                tri[k, v] = -(-whole[v] // inner)
                total[v], settled = tri[k, v] * inner, tri[k, v] > 1
            while not settled and done < na and (k == ns or axis[done, 0] < mem[sto[k, 0], 5]):
                if spa[done, v] > 1:
                    total[v], settled = inner, True
                    if -(-whole[v] // (inner // spa[done, v])) != spa[done, v]:
                        return False
                done += 1
            if settled:
                break
        if not settled:
            tri[0, v], total[v] = whole[v], whole[v]
    return True


@machine_code
def fair(items: Any, count: int, whole: Any, total: Any, shares: Any) -> bool:
    """True if the loops of each variable keep rule 2 of `ragged`: the last tile is not empty, spatial loops are
    balanced, and none stands below one that cuts unevenly."""
    for v in range(whole.shape[0]):
        if total[v] == whole[v]:
            continue
        left, first, known, uneven = total[v], True, 1, False
        shares[0] = whole[v]
        for q in range(count):
            if (items[q, 0] != FOR and items[q, 0] != PAR) or items[q, 1] != v:
                continue
            n = items[q, 2]
            left //= n
            if first and (total[v] < whole[v] or total[v] - whole[v] >= left):
                return False
            if items[q, 0] == PAR:
                if uneven or 2 * known > shares.shape[0]:
                    return False
                for j in range(known):
                    rest = shares[j] % (n * left)
                    if rest > 0 and rest <= n * (left - 1):
                        return False
                    shares[known + j] = -(-shares[j] // n)
                known *= 2
                uneven = first
            first = False
        if first:
            return False
    return True


@machine_code
def pieces(
    items: Any, below: int, q: int, v: int, has: bool, mode: int, joined: Any, kept: Any, whole: Any, total: Any
) -> float:
    """Values of one rank, or visits if the tensor lacks the variable, above item `below`, for the store at `q`.

    mode: 4 counts at the child, 2 without what comes again, 1 of the busiest instance alone.
    """
    size, full, rest, left = whole[v], 1, 0, total[v]
    for p in range(below):
        kind = items[p, 0]
        if (kind != FOR and kind != PAR) or items[p, 1] != v:
            continue
        left //= items[p, 2]
        if kind == FOR:
            once = kept[p] or (mode & 2 > 0 and not has)
        elif mode & 4:
            once = mode & 1 > 0
        else:
            once = (p > q and not has and joined[items[p, 3]]) or (mode & 1 > 0 and p < q)
        if once:
            size = min(size, left)
            if rest >= left:
                full, rest = full + 1, 0
        else:
            over = size % left
            full, rest = full * (size // left) + rest // left, over + rest % left
            size = left
    return float(full * size + rest) if has else float(full + (1 if rest > 0 else 0))


@machine_code
def crossed(
    items: Any, below: int, q: int, t: int, mode: int, rel: Any, joined: Any, kept: Any, whole: Any, total: Any
) -> float:
    """Values that cross a link, counted in this mode."""
    found = 1.0
    for v in range(rel.shape[1]):
        found *= pieces(items, below, q, v, rel[t, v], mode, joined[t], kept, whole, total)
    return found


@machine_code
def link(
    items: Any, q: int, below: int, child: int, t: int, tables: Any, kept: Any, whole: Any, total: Any, flows: Any
) -> None:
    """Add what crosses one link, as `kernel` does for even cuts."""
    rel, written, joined, width, scal = tables.rel, tables.written, tables.joined, tables.width, tables.scal
    still = child >= 0
    for p in range(below - 1, -1, -1):
        if items[p, 0] == SPLIT or (items[p, 0] == FOR and rel[t, items[p, 1]]):
            still = False
        kept[p] = still and items[p, 0] == FOR
    m, side = items[q, 1], 1 if written[t] else 0
    back = written[t] and (scal[5] > 0 or child < 0)
    w = width[t, m]
    every = crossed(items, below, q, t, 0, rel, joined, kept, whole, total)
    mine = crossed(items, below, q, t, 1, rel, joined, kept, whole, total)
    flows[side, m] += every * w
    flows[2 + side, m] += mine * w
    if back:
        flows[0, m] += (every - crossed(items, below, q, t, 2, rel, joined, kept, whole, total)) * w
        flows[2, m] += (mine - crossed(items, below, q, t, 3, rel, joined, kept, whole, total)) * w
    if child >= 0:
        w, side = width[t, child], 1 - side
        every = crossed(items, below, q, t, 4, rel, joined, kept, whole, total)
        mine = crossed(items, below, q, t, 5, rel, joined, kept, whole, total)
        flows[side, child] += every * w
        flows[2 + side, child] += mine * w
        if back:
            flows[1, child] += (every - crossed(items, below, q, t, 6, rel, joined, kept, whole, total)) * w
            flows[3, child] += (mine - crossed(items, below, q, t, 7, rel, joined, kept, whole, total)) * w


@machine_code
def price(items: Any, count: int, tables: Any, whole: Any, total: Any, flows: Any, kept: Any, out: Any) -> None:
    """Fill `out` with joules, seconds and bits through the objective's memory of one path of `count` items."""
    scal = tables.scal
    flows[:] = 0.0
    for t in range(tables.rel.shape[0]):
        below, child = count, -1
        for q in range(count - 1, -1, -1):
            if items[q, 0] == STORE and (items[q, 2] >> t) & 1:
                link(items, q, below, child, t, tables, kept, whole, total, flows)
                below, child = q, items[q, 1]
    done = scal[1]
    for v in range(whole.shape[0] if scal[2] > 0 else 0):
        kept[:] = False
        mine = pieces(items, count, count, v, True, 5, tables.joined[0], kept, whole, total)
        done = done / whole[v] * mine
    summed(flows, done, tables.mem, scal, out)


@machine_code
def built(
    items: Any, base: int, ns: int, own: Any, fixed: Any, tables: Any, cuts: Any, total: Any, ext: Any, used: Any
) -> int:
    """The items of the branch behind the first `base`; how many there are, or -1 if its tiles do not fit."""
    sto, tri, orders, spa = own
    nv, na = spa.shape[1], spa.shape[0]
    count, done = base, 0
    for v in range(nv):
        ext[v] = fixed.left[v] if cuts.cover[v] > 0 else total[v]
    used[:] = 0.0
    for k in range(ns + 1):
        for j in range(nv):
            v = orders[k, j]
            if tri[k, v] > 1:
                items[count, 0], items[count, 1], items[count, 2] = FOR, v, tri[k, v]
                count += 1
                ext[v] //= tri[k, v]
        while done < na and (k == ns or fixed.axis[done, 0] < tables.mem[sto[k, 0], 5]):
            for v in range(nv):
                if spa[done, v] > 1:
                    items[count, 0], items[count, 1], items[count, 2], items[count, 3] = PAR, v, spa[done, v], done
                    count += 1
                    ext[v] //= spa[done, v]
            done += 1
        if k < ns:
            m, t = sto[k, 0], sto[k, 1]
            bits = tables.cap[t, m]
            for v in range(nv):
                if tables.rel[t, v]:
                    bits *= min(ext[v], cuts.whole[v])
            used[m] += bits
            if used[m] > fixed.room[m]:
                return -1
            items[count, 0], items[count, 1], items[count, 2] = STORE, m, 1 << t
            count += 1
    return count


@machine_code
def respread(ns: int, tri: Any, spa: Any, fixed: Any, spreads: Any, cover: Any) -> int:
    """The privates with another choice on the full-use axes; -1 if shared loops or what they leave forbid it."""
    one = random_below(spreads.shape[0])
    for v in range(spa.shape[1]):
        rest = fixed.left[v]
        for a in range(spa.shape[0]):
            if fixed.axis[a, 1] > 0:
                n = spreads[one, a, v]
                if fixed.shared[a, v] > 1:
                    if n != fixed.shared[a, v]:
                        return -1
                    n = 1
                spa[a, v] = n
            if cover[v] > 0 and rest % spa[a, v]:
                return -1
            rest = -(-rest // spa[a, v])
        mend(v, ns, tri, rest, fixed.barred[v])
    return ns


@machine_code
def reshare(ns: int, tri: Any, spa: Any, fixed: Any, tables: Any, cover: Any) -> int:
    """Another number of instances for a variable, on an axis that need not be full."""
    nv, na = spa.shape[1], spa.shape[0]
    a, v = random_below(na) if na else 0, random_below(nv)
    axis, shared = fixed.axis, fixed.shared
    if na == 0 or axis[a, 1] > 0 or axis[a, 2] == 0 or shared[a, v] > 1 or tables.count[a, v] < 2:
        return -1
    n, total, rest = tables.takes[a, v, random_below(tables.count[a, v])], 1, fixed.left[v]
    spa[a, v] = n
    for w in range(nv):
        total *= shared[a, w] * spa[a, w]
    for b in range(na):
        if cover[v] > 0 and rest % spa[b, v]:
            return -1
        rest = -(-rest // spa[b, v])
    if total > axis[a, 2]:
        return -1
    mend(v, ns, tri, rest, fixed.barred[v])
    return ns


@machine_code
def retile(ns: int, tri: Any, spa: Any, whole: Any, cover: Any) -> int:
    """Any trips for a loop, half of the time those of the smallest tile of some trips further out."""
    k, v = random_below(ns + 1), random_below(spa.shape[1])
    if cover[v] > 0 or ns == 0:
        return -1
    inner = 1
    for j in range(k + 1, ns + 1):
        inner *= tri[j, v]
    for a in range(spa.shape[0]):
        inner *= spa[a, v]
    most = -(-whole[v] // inner)
    n = 1 + random_below(most)
    tri[k, v] = n if np.random.random() < 0.5 else -(-most // n)
    outer = 1
    for j in range(k):
        outer *= tri[j, v]
    if k > 0 and outer == 1:
        tri[random_below(k), v] = 2
    return ns


@machine_code
def propose(ns: int, own: Any, fixed: Any, tables: Any, cuts: Any) -> int:
    """Change the privates by one move; the number of stores then, or -1 if the move has nothing to move."""
    sto, tri, orders, spa = own
    nv, kind = spa.shape[1], random_below(21)
    if kind < 5:
        return shifted(ns, tri, tables.primes)
    if kind < 10:
        return retile(ns, tri, spa, cuts.whole, cuts.cover)
    if kind < 12:  # the order in a segment
        if ns == 0:
            return -1
        k, a, b = random_below(ns), random_below(nv), random_below(nv)
        orders[k, a], orders[k, b] = orders[k, b], orders[k, a]
        return ns
    if kind < 15:
        return toggled(ns, sto, tri, orders, tables.owns)
    if kind < 17:
        return respread(ns, tri, spa, fixed, tables.spreads, cuts.cover) if tables.spreads.shape[0] > 1 else -1
    if kind < 20:
        return reshare(ns, tri, spa, fixed, tables, cuts.cover)
    k = random_below(ns - 1) if ns > 1 else -1  # two neighbouring stores of one memory
    if k < 0 or sto[k, 0] != sto[k + 1, 0]:
        return -1
    sto[k, 1], sto[k + 1, 1] = sto[k + 1, 1], sto[k, 1]
    return ns


@machine_code
def anneal(
    seed: int, tries: int, points: int, heat: float, rest: Any, items: Any, base: int, ns: int,
    own: Any, fixed: Any, tables: Any, cuts: Any, tried: Any, best: Any,
) -> Any:  # fmt: skip
    """Anneal `own`, in place; `best` becomes the best `Privates` of all. As `kernel.anneal`; tried: scratch, as `own`.

    Returns (stores now, stores of the best, value now, best value, legal, overfull and refused proposals).
    """
    np.random.seed(seed)
    nm, nv = tables.mem.shape[0], own.tri.shape[1]
    flows, out, used, kept = np.zeros((4, nm)), np.zeros(3), np.zeros(nm), np.zeros(items.shape[0], np.bool_)
    ext, now, total = np.zeros(nv, np.int64), np.zeros(nm, np.int64), np.zeros(nv, np.int64)
    shares = np.zeros(MOST_SPATIAL, np.int64)
    recovered(ns, own.sto, own.tri, own.spa, fixed.axis, tables.mem, cuts.whole, cuts.cover, total)
    size = built(items, base, ns, own, fixed, tables, cuts, total, ext, used)
    value = np.inf
    if size >= 0:
        price(items, size, tables, cuts.whole, total, flows, kept, out)
        value = value_of(tables.scal, rest[0] + out[0], rest[1] + out[1], rest[2] + out[2])
    copied(own.sto, own.tri, own.orders, own.spa, best.sto, best.tri, best.orders, best.spa)
    best_ns, best_value = ns, value
    legal = overfull = refused = 0
    for _ in range(tries):
        if legal + overfull >= points:
            break
        copied(own.sto, own.tri, own.orders, own.spa, tried.sto, tried.tri, tried.orders, tried.spa)
        n = propose(ns, tried, fixed, tables, cuts)
        if (
            n < 0
            or not recovered(n, tried.sto, tried.tri, tried.spa, fixed.axis, tables.mem, cuts.whole, cuts.cover, total)
            or not keeps(n, tried.sto, tried.tri, fixed.held, tables.may, tables.need, fixed.home, fixed.barred,
                         fixed.least, now)
        ):  # fmt: skip
            refused += 1
            continue
        size = built(items, base, n, tried, fixed, tables, cuts, total, ext, used)
        if size < 0:
            overfull += 1
            continue
        if not fair(items, size, cuts.whole, total, shares):
            refused += 1
            continue
        legal += 1
        price(items, size, tables, cuts.whole, total, flows, kept, out)
        new = value_of(tables.scal, rest[0] + out[0], rest[1] + out[1], rest[2] + out[2])
        if new > value and (heat <= 0 or value <= 0 or np.random.random() >= exp(-log(new / value) / heat)):
            continue
        copied(tried.sto, tried.tri, tried.orders, tried.spa, own.sto, own.tri, own.orders, own.spa)
        ns, value = n, new
        if new < best_value:
            copied(own.sto, own.tri, own.orders, own.spa, best.sto, best.tri, best.orders, best.spa)
            best_ns, best_value = ns, new
    return ns, best_ns, value, best_value, legal, overfull, refused

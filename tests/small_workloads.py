"""Random small cascades: products, convolutions, maps, copies and chains of up to three Einsums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from cases import cascade
from einloom.workload.einsum import Workload


def _matmul(rng: Random) -> Workload:
    body = rng.choice(("Z[m,n] = A[m,k] * B[k,n]", "Z[m,n] = max: add(A[m,k], B[k,n])", "Z[n,m] = A[k,m] * B[k,n]"))
    return cascade(f"E: {body}", {v: rng.randint(2, 6) for v in "mnk"})


def _sum(rng: Random) -> Workload:
    body = rng.choice(("Z[m] = X[m,k]", "Z[m] = max: identity(X[m,k])", "Z[m] = exp(X[m,k])", "Z[] = X[m,k] * Y[k]"))
    return cascade(f"E: {body}", {"m": rng.randint(2, 7), "k": rng.randint(2, 7)})


def _window(rng: Random, outputs: str, kernel: str) -> tuple[str, int, int]:
    """An index expression with stride, dilation and padding, its padding and its largest coefficient."""
    stride, dilation, padding = rng.choice((1, 1, 1, 2)), rng.choice((1, 1, 1, 2)), rng.choice((0, 0, 0, 1))
    left = outputs if stride == 1 else f"{stride}*{outputs}"
    right = kernel if dilation == 1 else f"{dilation}*{kernel}"
    return f"{left}+{right}" + (f"-{padding}" if padding else ""), padding, stride


def _conv(rng: Random) -> Workload:
    sizes = {"p": rng.randint(3, 8), "r": rng.randint(2, 3)}
    window, padding, _ = _window(rng, "p", "r")
    style = rng.choice(("O[p] = I[{0}] * F[r]", "O[k,p] = I[c,{0}] * F[k,c,r]", "O[k,p] = I[{0}] * F[k,r]"))
    if "k" in style:
        sizes["k"] = rng.randint(2, 4)
    if "c" in style:
        sizes["c"] = rng.randint(2, 3)
    if rng.random() < 0.15:
        style = style.replace("=", "= max: add(", 1).replace(" * ", ", ") + ")"
    return _padded(cascade("E: " + style.format(window), sizes), "I", padding, rng)


def _conv2d(rng: Random) -> Workload:
    sizes = {"p": rng.randint(2, 4), "q": rng.randint(2, 5), "r": rng.randint(2, 3), "s": 2}
    first, padding, _ = _window(rng, "p", "r")
    second = "q+s"
    channels = rng.random() < 0.4
    if channels:
        sizes["k"] = 2
    body = f"O[k,p,q] = I[{first},{second}] * F[k,r,s]" if channels else f"O[p,q] = I[{first},{second}] * F[r,s]"
    return _padded(cascade("E: " + body, sizes), "I", padding, rng)


def _padded(workload: Workload, tensor: str, padding: int, rng: Random) -> Workload:
    """Cut the declared shape so that the last positions are padding too."""
    if not padding or rng.random() < 0.3:
        return workload
    tensors = tuple(
        replace(t, shape=tuple(max(1, n - padding) if n > 3 else n for n in t.shape)) if t.name == tensor else t
        for t in workload.tensors
    )
    return replace(workload, tensors=tensors)


def _elementwise(rng: Random) -> Workload:
    body = rng.choice(("Z[m,n] = exp(X[m,n])", "Z[m,n] = add(X[m,n], Y[m,n])", "Z[m,n] = X[m,n] * Y[n]"))
    return cascade(f"E: {body}", {"m": rng.randint(2, 7), "n": rng.randint(2, 7)})


def _copy(rng: Random) -> Workload:
    body = rng.choice(("I[m,k] = copy(J[m,k])", "I[k,m] = copy(J[m,k])"))
    return cascade(f"C: {body}", {"m": rng.randint(2, 6), "k": rng.randint(2, 6)})


def _two_matmuls(rng: Random) -> Workload:
    text = "E0: T[m,n] = A[m,k] * B[k,n]\nE1: Z[x,q] = T[x,y] * D[y,q]"
    m, n = rng.randint(2, 5), rng.randint(2, 5)
    return cascade(text, {"m": m, "x": m, "n": n, "y": n, "k": rng.randint(2, 3), "q": rng.randint(2, 3)})


def _attention(rng: Random) -> Workload:
    text = "QK: S[m,p] = Q[m,e] * K[p,e]\nSM: W[m,p] = exp(S[m,p])\nAV: Z[m,f] = W[m,p] * V[p,f]"
    if rng.random() < 0.5:
        text = "PK: K[m,e] = I[m,d] * WK[d,e]\nQK: S[t,p] = Q[t,e] * K[p,e]\nAV: Z[t,f] = S[t,p] * V[p,f]"
        m = rng.randint(2, 4)
        return cascade(text, {"m": m, "p": m, "t": rng.randint(2, 3), "e": 2, "d": 2, "f": 2})
    return cascade(text, {"m": rng.randint(2, 4), "p": rng.randint(2, 4), "e": 2, "f": rng.randint(1, 2)})


def _softmax(rng: Random) -> Workload:
    text = "MX: G[m] = max: identity(X[m,n])\nSB: Y[m,n] = sub(X[m,n], G[m])\nSU: Z[m] = exp(Y[m,n])"
    return cascade(text, {"m": rng.randint(2, 5), "n": rng.randint(2, 5)})


def _convs(rng: Random) -> Workload:
    sizes = {"p": rng.randint(3, 7), "r": rng.randint(2, 3), "s": rng.randint(2, 3)}
    window, padding, stride = _window(rng, "p", "r")
    reach = max(1, (sizes["p"] - 1) * stride + (sizes["r"] - 1) * (2 if "2*r" in window else 1) + 1 - 2 * padding)
    sizes["x"] = reach
    kind = rng.random()
    if kind < 0.4:
        text = f"E0: T[x] = I[x+s] * G[s]\nE1: O[p] = T[{window}] * F[r]"
    elif kind < 0.7:
        sizes["k"] = 2
        text = f"E0: T[k,x] = I[x+s] * G[k,s]\nE1: O[p] = T[k,{window}] * F[k,r]"
    else:
        text = f"E0: T[x] = exp(I[x])\nE1: O[p] = T[{window}] * F[r]"
        del sizes["s"]
    return cascade(text, sizes, shapes={"T": (2, reach) if "k" in sizes else (reach,)})


def _three_convs(rng: Random) -> Workload:
    p, r, s = rng.randint(3, 6), rng.randint(2, 3), 2
    sizes = {"p": p, "r": r, "x": p + r - 1, "s": s, "y": p + r + s - 2}
    text = "E0: T[y] = exp(I[y])\nE1: U[x] = T[x+s] * G[s]\nE2: O[p] = U[p+r] * F[r]"
    return cascade(text, sizes)


def _image_chain(rng: Random) -> Workload:
    p, q, r = rng.randint(2, 4), rng.randint(2, 3), 2
    text = "E0: T[x,y] = I[x,y] * G[y]\nE1: O[p,q] = T[p+r,q+s] * F[r,s]"
    return cascade(text, {"p": p, "q": q, "r": r, "s": 2, "x": p + 1, "y": q + 1})


def _copied_operand(rng: Random) -> Workload:
    text = "C: I[m,k] = copy(J[m,k])\nE0: X[m,n] = I[m,k] * A[k,n]\nE1: Y[m,n] = I[m,k] * B[k,n]"
    return cascade(text, {v: rng.randint(2, 3) for v in "mnk"}, persistent=("A",) if rng.random() < 0.3 else ())


def _diamond(rng: Random) -> Workload:
    text = "E0: T[m,n] = A[m,k] * B[k,n]\nE1: U[m,n] = exp(T[m,n])\nE2: Z[m,n] = add(T[m,n], U[m,n])"
    return cascade(text, {v: rng.randint(2, 4) for v in "mnk"}, outputs=("Z", "T") if rng.random() < 0.2 else None)


Maker = Callable[[Random], Workload]
SINGLE: tuple[Maker, ...] = (_matmul, _matmul, _matmul, _sum, _conv, _conv, _conv2d, _elementwise, _copy)
CHAINS: tuple[Maker, ...] = (
    _two_matmuls,
    _two_matmuls,
    _attention,
    _softmax,
    _convs,
    _convs,
    _three_convs,
    _image_chain,
    _copied_operand,
    _diamond,
)


def random_workload(rng: Random) -> Workload:
    """One of the makers above, with one to three bits per value and sometimes repeated."""
    workload = rng.choice(SINGLE if rng.random() < 0.5 else CHAINS)(rng)
    tensors = tuple(replace(tensor, bits=rng.choice((1, 1, 2, 3))) for tensor in workload.tensors)
    return replace(workload, tensors=tensors, repeat=rng.choice((1, 1, 1, 2)))

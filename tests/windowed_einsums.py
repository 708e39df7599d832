"""Einsums that read through windows: Einsums, extents and declared shapes, by name."""

from __future__ import annotations

PLAIN = ("O[m,p] = W[m,c,r] * I[c,p+r]",)
CONVOLUTION = ("O[m,p,q] = W[m,c,r,s] * I[c,2*p+r-1,q+2*s-1]",)
CHAIN = ("A[c,x] = W[c,r] * I[x+r-1]", "O[m,y] = V[m,c,s] * A[c,y+s-1]")
CONSTANT = ("O[m,p] = W[m,r] * I[1,p+r]",)
CASES = {
    "plain": (PLAIN, {"m": 2, "p": 4, "c": 2, "r": 3}, {}),
    "stride, dilation and padding": (CONVOLUTION, {"m": 2, "p": 4, "q": 4, "c": 2, "r": 3, "s": 2}, {"I": [2, 8, 5]}),
    "padded chain": (CHAIN, {"x": 6, "y": 6, "c": 2, "m": 2, "r": 3, "s": 3}, {"I": [6], "A": [2, 6]}),
    "constant beside a window": (CONSTANT, {"m": 2, "p": 4, "r": 3}, {"I": [2, 6]}),
}

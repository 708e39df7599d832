"""Divisors and prime factors of extents: what perfect tiles are made of."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=65536)
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending."""
    low = [n for n in range(1, int(number**0.5) + 1) if number % n == 0]
    return tuple(sorted({*low, *(number // n for n in low)}))


@lru_cache(maxsize=65536)
def divisors_up_to(number: int, most: int) -> tuple[int, ...]:
    """The divisors that are no larger than `most`, ascending; also of large numbers, for a small `most`."""
    return tuple(n for n in range(1, min(number, most) + 1) if number % n == 0)


@lru_cache(maxsize=65536)
def primes(number: int) -> tuple[int, ...]:
    """The prime factors, each once, ascending."""
    found, factor = [], 2
    while factor * factor <= number:
        if number % factor == 0:
            found.append(factor)
            while number % factor == 0:
                number //= factor
        factor += 1
    return (*found, number) if number > 1 else tuple(found)

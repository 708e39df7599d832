"""Files damaged in every way that comes to mind, the same for the same seed: bytes, tokens, lines, and malice."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

MOST_BYTES = 6_000_000
CANARY = "einloom_was_here"
_TOKEN = re.compile(rb"\w+|[^\w\s]|\s+")
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_NUMBERS = (
    b"0 -1 1e400 -1e400 1e-400 99999999999999999999 9**99 9**9**9**9 2**64 2**63 0x1F .inf -.inf .nan NaN Infinity "
    b"1_000 1e9 0.1 1/0 1//0 1%0 0**-1 1.5.5 --1 +1 007 1e 12:30:45 4096 1000000007 9223372036854775808"
).split() + [b"9" * 500, b"9" * 100_000, b"-" * 3000 + b"1", b"1" + b"*2" * 2000]
_WORDS = (
    "null ~ true false yes [] {} [[]] {a:} : - -- ? & * ! | > % @ ` ' \" , # << *a &a &a&a !!str !!python/none "
    "!!binary !Memory !Compute !X Z[m,n] A[m,k]*B[k,n] Z[m]=Z[m] A[-m] A[m-k] A[99999999999999999999*m] mk,kn->mn "
    "all nothing input ~input (((( )))) input|weight&~ unheld unlimited shared separate 1KB 1pJ 1GB/s 3bit fJ/bit "
    "for par store split sequential: pipelined parallel compute tile in @ slots shares 2**40 1099511627777 "
    "{{n}} {%for} {%if} {%endfor%} {{range(10**9)}} {%set schema workload/1 machine/9 result/1 value source kind "
    "\\u0000 \\ud800 \u202e \u0000 \ufeff \U0001f600 \u0301 \u2028 \u00a0 \u00b5 \uff11 \u0661 e\u0301 \x85 \x1b[31m"
).split(" ")
_CODE = [
    f"!!python/object/apply:os.system ['touch {CANARY}']",
    f"!!python/object/new:subprocess.Popen [['touch', '{CANARY}']]",
    f"__import__('os').system('touch {CANARY}')",
    f"{{{{ ''.__class__.__mro__[1].__subclasses__() }}}}{{{{ open('{CANARY}', 'w') }}}}",
    f"(lambda: open('{CANARY}', 'w'))()",
    f"[open('{CANARY}', 'w') for x in [1]][0]",
    f"{{% include '{CANARY}' %}}{{% set x = open('{CANARY}', 'w') %}}",
    f"`touch {CANARY}` $(touch {CANARY})",
    "!!python/name:os.system",
    "!!python/module:os",
    "{% for i in range(999999999) %}x{% endfor %}",
    "{{ 'x' * 10**10 }}",
]
Damage = Callable[[bytes, random.Random], bytes]


def mutated(original: bytes, seed: str) -> bytes:
    """One to four kinds of damage done to the file, at most 6 MB of it."""
    chance = random.Random(seed)
    text = original
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
        text = chance.choices(KINDS, WEIGHTS)[0](text, chance)[:MOST_BYTES]
    return text


def _span(text: bytes, chance: random.Random, longest: int = 60) -> tuple[int, int]:
    start = chance.randrange(len(text) + 1)
    return start, min(len(text), start + chance.randint(0, longest))


def _at_a_token(text: bytes, chance: random.Random, new: bytes) -> bytes:
    """The text with a token replaced by `new`, or `new` put before it."""
    found = list(_TOKEN.finditer(text)) or [None]
    match = chance.choice(found)
    if match is None:
        return new
    return text[: match.start()] + new + text[match.start() if chance.random() < 0.4 else match.end() :]


def flip(text: bytes, chance: random.Random) -> bytes:
    """Up to eight bytes become others."""
    data = bytearray(text)
    for _ in range(chance.randint(1, 8) if data else 0):
        data[chance.randrange(len(data))] = chance.choice((chance.randrange(256), chance.randrange(32, 127)))
    return bytes(data)


def delete(text: bytes, chance: random.Random) -> bytes:
    start, stop = _span(text, chance, chance.choice((1, 10, 100, 10_000)))
    return text[:start] + text[stop:]


def duplicate(text: bytes, chance: random.Random) -> bytes:
    """A span stands there twice, or very often."""
    start, stop = _span(text, chance, chance.choice((3, 40, 400)))
    return text[:stop] + text[start:stop] * chance.choice((1, 1, 1, 2, 50, 3000)) + text[stop:]


def cut(text: bytes, chance: random.Random) -> bytes:
    return text[: chance.randrange(len(text) + 1)]


def swap_tokens(text: bytes, chance: random.Random) -> bytes:
    tokens = _TOKEN.findall(text)
    for _ in range(chance.randint(1, 3) if len(tokens) > 1 else 0):
        i, j = chance.randrange(len(tokens)), chance.randrange(len(tokens))
        tokens[i], tokens[j] = tokens[j], tokens[i]
    return b"".join(tokens)


def drop_token(text: bytes, chance: random.Random) -> bytes:
    return _at_a_token(text, chance, b"")


def misspell(text: bytes, chance: random.Random) -> bytes:
    """Two neighbouring letters of a word change places."""
    words = list(re.finditer(rb"[A-Za-z_]{3,}", text))
    if not words:
        return text
    at = chance.choice(words).start() + 1
    return text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]


def lines(text: bytes, chance: random.Random) -> bytes:
    """Lines move, vanish, repeat, or stand further right."""
    rows = text.split(b"\n")
    i, j = chance.randrange(len(rows)), chance.randrange(len(rows))
    kind = chance.randrange(5)
    if kind == 0:
        rows[i], rows[j] = rows[j], rows[i]
    elif kind == 1:
        del rows[i]
    elif kind == 2:
        rows.insert(j, rows[i])
    elif kind == 3:
        rows[i] = chance.choice((b" ", b"  ", b"\t", b"- ", b"      ")) + rows[i]
    else:
        rows[i] = rows[i].strip()
    return b"\n".join(rows)


def endings(text: bytes, chance: random.Random) -> bytes:
    return text.replace(b"\n", chance.choice((b"\r\n", b"\r", b"\n\n", b"\xc2\x85", b"\xe2\x80\xa8", b" ")))


def number(text: bytes, chance: random.Random) -> bytes:
    """A number becomes a strange one."""
    found = list(_NUMBER.finditer(text))
    new = chance.choice(_NUMBERS)
    if not found:
        return text + new
    match = chance.choice(found)
    return text[: match.start()] + new + text[match.end() :]


def word(text: bytes, chance: random.Random) -> bytes:
    new = chance.choice(_WORDS).encode("utf-8", "surrogatepass")
    return _at_a_token(text, chance, new + chance.choice((b"", b" ", b"\n", b": ")))


def code(text: bytes, chance: random.Random) -> bytes:
    """Something that a careless reader would execute."""
    new = chance.choice(_CODE)
    return _at_a_token(text, chance, chance.choice((new, f'"{new}"')).encode())


def nest(text: bytes, chance: random.Random) -> bytes:
    """Thousands of opening brackets, indented lists, or operators."""
    depth = chance.choice((30, 60, 300, 5000, 100_000))
    pattern = chance.choice((b"[", b"{a: ", b"(", b"- ", b"[[],", b'{"a":', b"~", b"A[", b"{{", b"{% if 1 %}", b"? "))
    closing = {b"[": b"]", b"(": b")", b"{a: ": b"}", b'{"a":': b"}"}.get(pattern, b"")
    return _at_a_token(text, chance, pattern * depth + b"1" + closing * chance.choice((0, depth)))


def ladder(text: bytes, chance: random.Random) -> bytes:
    """Branches and mappings that stand ever further right."""
    depth = chance.choice((20, 70, 2000))
    step = chance.choice(("a:", "- a:", "split sequential:\n - for m in 2", "for m in 2"))
    rows = "".join("  " * i + step.replace("\n", "\n" + "  " * i) + "\n" for i in range(depth))
    return rows.encode() + text if chance.random() < 0.5 else text + b"\n" + rows.encode()


def aliases(text: bytes, chance: random.Random) -> bytes:
    """A small bomb: every anchor holds nine aliases of the one before; or one alias of itself."""
    kind = chance.randrange(3)
    if kind == 0:
        rows = [b"zz0: &zz0 [x,x,x,x,x,x,x,x,x]"]
        rows += [b"zz%d: &zz%d [" % (i, i) + b",".join([b"*zz%d" % (i - 1)] * 9) + b"]" for i in range(1, 12)]
        return b"\n".join(rows) + b"\n" + text
    if kind == 1:
        return _at_a_token(text, chance, b"&q [*q]")
    return b"base: &base {name: x, bits: 8}\n<<: *base\n" + text


def repeat(text: bytes, chance: random.Random) -> bytes:
    """The whole file many times over, or one token a hundred thousand times."""
    if chance.random() < 0.5:
        return text * chance.choice((2, 20, 400))
    tokens = _TOKEN.findall(text) or [b"x"]
    return _at_a_token(text, chance, chance.choice(tokens) * chance.choice((100, 10_000, 200_000)))


KINDS: tuple[Damage, ...] = (
    flip, delete, duplicate, cut, swap_tokens, drop_token, misspell, lines, endings, number, word, code, nest, ladder,
    aliases, repeat,
)  # fmt: skip
WEIGHTS = (10, 8, 6, 3, 10, 10, 8, 8, 1, 12, 16, 4, 3, 1, 1, 1)

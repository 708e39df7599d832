"""The Einsum notation, read and checked: ``Z[m,n] = A[m,k] * B[k,n]`` in, an `Einsum` out; ``str`` goes back.

Grammar::

    einsum    := access '=' [reduction] body
    reduction := ('sum' | 'max' | 'online_softmax') '[' variables ']'       the variables must be those that it reduces
    body      := access ('*' access)* | FUNCTION '(' access (',' access)* ')' | 'copy' access | 'copy' '(' access ')'
    access    := TENSOR '[' [index (',' index)*] ']'
    index     := ['-'] term (('+' | '-') term)*        term := INTEGER | VARIABLE | INTEGER '*' VARIABLE

Without a reduction, rank variables that the output lacks are summed. A body of one access applies the reduction alone.
NumPy's form ``mk,kn->mn`` reads as ``Z[m,n] = A[m,k] * B[k,n]``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeVar, cast, get_args

from ..errors import SpecError, nearest
from .einsum import Access, Einsum, Index, Kind, NetworkNode, Reduction
from .selectors import KEYWORDS

MAX_LENGTH = 5000
MAX_PATH = 200
MODULE_PATH = r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*"
MAX_COEFFICIENT = 2**31
NO_NAMES: Mapping[str, int] = MappingProxyType({})

FUNCTIONS: Mapping[str, int | None] = MappingProxyType(
    {
        **dict.fromkeys(("exp", "log", "sqrt", "rsqrt", "reciprocal", "neg", "abs", "square"), 1),
        **dict.fromkeys(("relu", "relu6", "gelu", "silu", "sigmoid", "tanh", "softmax"), 1),
        **dict.fromkeys(("sub", "div"), 2),
        **dict.fromkeys(("add", "mul", "max", "min", "elementwise"), None),
    }
)
"""Functions of a ``map`` and how many operands each takes (None: any); ``elementwise`` stands for an unnamed one."""

RESERVED = frozenset((*KEYWORDS, "default", "value"))
"""Words that no tensor may be called, because selectors and files give them a meaning."""

REDUCTIONS: tuple[Reduction, ...] = get_args(Reduction)
MAX_NAME = 100
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[\[\](),=*+-])")
_NUMPY = re.compile(r"[A-Za-z,\s]*->[A-Za-z\s]*\Z")
T = TypeVar("T")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXY"


def parse_einsum(
    text: str,
    name: str | None = None,
    reduction: str | None = None,
    *,
    output: str = "Z",
    inputs: Sequence[str] = (),
    numbers: Mapping[str, int] = NO_NAMES,
) -> Einsum:
    """The Einsum that `text` writes; its name is its output tensor's unless given.

    >>> e = parse_einsum("O[p,k] = I[2*p+r-1,c] * W[r,c,k]")
    >>> str(e.inputs[0]), e.reduced
    ('I[2*p+r-1,c]', ('r', 'c'))
    >>> einsum_text(parse_einsum("mk,kn->mn", output="Y", inputs=("X", "W")))
    'Y[m,n] = X[m,k] * W[k,n]'
    >>> str(parse_einsum("S[s] = K[s+cached]", numbers={"cached": 96}).inputs[0])
    'K[s+96]'

    `reduction` may also be given apart from the text; `output` and `inputs` name the tensors of NumPy's form,
    `numbers` says what names in indices mean that are no rank variables: constants, and factors of rank variables.
    Raises SpecError that says what was expected and at which character.
    """
    if len(text) > MAX_LENGTH:
        raise SpecError(f"an Einsum may have at most {MAX_LENGTH} characters, this one has {len(text)}")
    parsed = _numpy(text, output, inputs) if _NUMPY.match(text) else _Reader(text, numbers).einsum()
    chosen = parsed.reduction
    if reduction is not None:
        if reduction not in REDUCTIONS:
            close = nearest(reduction, REDUCTIONS)
            raise SpecError(f"unknown reduction {reduction!r}; known are {', '.join(REDUCTIONS)}", suggestion=close)
        if chosen not in ("sum", reduction):
            raise SpecError(f"{text!r} reduces by {chosen}, but reduction {reduction!r} is given as well")
        chosen = reduction
    named = Einsum(name or parsed.name, parsed.output, parsed.inputs, parsed.kind, parsed.function, chosen)
    check_einsum(named)
    return named


def einsum_text(einsum: Einsum) -> str:
    """The Einsum in the notation; `parse_einsum` reads it back to an equal one (its name aside).

    >>> einsum_text(parse_einsum("M[m]=max[p]X[m,p]"))
    'M[m] = max[p] X[m,p]'
    """
    operands = [str(access) for access in einsum.inputs]
    match einsum.kind:
        case "map":
            body = f"{einsum.function}({', '.join(operands)})"
        case "copy":
            body = f"copy {operands[0]}"
        case _:
            body = " * ".join(operands)
    prefix = "" if einsum.reduction == "sum" else f"{einsum.reduction}[{','.join(einsum.reduced)}] "
    return f"{einsum.output} = {prefix}{body}"


def check_name(name: str, what: str) -> None:
    """Refuse a name that is not letters, digits and underscores, or that has a meaning of its own."""
    if not _NAME.match(name):
        raise SpecError(f"{name[:100]!r} is no name for {what}: use letters, digits and underscores, no digit first")
    if len(name) > MAX_NAME:
        raise SpecError(f"{name[:20]!r}... is no name for {what}: it has {len(name)} characters of at most {MAX_NAME}")
    if what == "a tensor" and name in RESERVED:
        raise SpecError(f"a tensor may not be called {name!r}: the word has a meaning in selectors and files")


def module_path(text: str) -> str:
    """The path of a module in a network, which is `text` itself. Raises SpecError for what is none.

    >>> module_path("layers.0.self_attn")
    'layers.0.self_attn'
    """
    if len(text) > MAX_PATH or not re.fullmatch(MODULE_PATH, text):
        raise SpecError(
            f"{text!r:.80} is no path of a module: names of letters, digits, '_' and '-' with a dot between, at most "
            f"{MAX_PATH} characters",
            suggestion=module_path_of(text) or None,
        )
    return text


def module_path_of(text: str) -> str:
    """The path of a module nearest to `text`, with dots or slashes between names; empty if nothing is left.

    >>> module_path_of("/encoder/layers.0/self attn:1/")
    'encoder.layers.0.self_attn_1'
    """
    names = (re.sub(r"[^A-Za-z0-9_-]+", "_", name) for name in re.split(r"[./]+", text))
    return ".".join(filter(None, names))[:MAX_PATH].rstrip(".")


def check_einsum(einsum: Einsum) -> None:
    """Refuse an Einsum that breaks a rule of the model, with the rule in the message."""
    check_name(einsum.name, "an Einsum")
    if einsum.group:
        module_path(einsum.group)
    if not all(isinstance(node, NetworkNode) and node.output for node in einsum.nodes):
        raise SpecError(f"Einsum {einsum.name} has a node that yields nothing; give NetworkNode(output, name)")
    if not einsum.inputs:
        raise SpecError(f"Einsum {einsum.name} reads nothing")
    if any(access.tensor == einsum.output.tensor for access in einsum.inputs):
        raise SpecError(f"Einsum {einsum.name} reads {einsum.output.tensor}, which it writes")
    seen: dict[str, Access] = {}
    for access in (einsum.output, *einsum.inputs):
        _check_access(access, einsum.name)
        first = seen.setdefault(access.tensor, access)
        if [(set(i.terms), i.constant) for i in first.indices] != [(set(i.terms), i.constant) for i in access.indices]:
            raise SpecError(
                f"Einsum {einsum.name} accesses {access.tensor} as {first} and as {access}; "
                "two accesses of one tensor in one Einsum need equal index expressions"
            )
    for index in einsum.output.indices:
        if index.constant < 0:
            raise SpecError(f"Einsum {einsum.name} writes {einsum.output}: {index} begins before the tensor does")
    _check_operation(einsum)


def _check_access(access: Access, einsum: str) -> None:
    check_name(access.tensor, "a tensor")
    used: set[str] = set()
    for index in access.indices:
        for variable, coefficient in index.terms:
            check_name(variable, "a rank variable")
            if variable in used:
                raise SpecError(f"Einsum {einsum}: rank variable {variable} may index only one rank of {access}")
            used.add(variable)
            if not isinstance(coefficient, int) or not 1 <= coefficient <= MAX_COEFFICIENT:
                raise SpecError(f"Einsum {einsum}: the factor of {variable} in {access} must be a positive integer")


def _check_operation(einsum: Einsum) -> None:
    where = f"Einsum {einsum.name}"
    if einsum.kind == "map":
        if einsum.function is None or einsum.function not in FUNCTIONS:
            known = ", ".join(FUNCTIONS)
            close = nearest(str(einsum.function), FUNCTIONS)
            raise SpecError(f"{where}: unknown function {einsum.function!r}; known are {known}", suggestion=close)
        wanted = FUNCTIONS[einsum.function]
        if wanted is not None and wanted != len(einsum.inputs):
            raise SpecError(f"{where}: {einsum.function} takes {wanted} operand(s), not {len(einsum.inputs)}")
        if einsum.function == "softmax" and einsum.reduced:
            lacks = ", ".join(einsum.reduced)
            raise SpecError(f"{where}: a softmax has all ranks of its operand; {einsum.output} lacks {lacks}")
    elif einsum.function is not None:
        raise SpecError(f"{where}: only a map has a function")
    if einsum.kind == "copy":
        if len(einsum.inputs) != 1:
            raise SpecError(f"{where}: a copy has one input, not {len(einsum.inputs)}")
        source = einsum.inputs[0]
        if not all(index.simple for index in source.indices) or set(source.variables) != set(einsum.output.variables):
            raise SpecError(f"{where}: a copy has the same bare rank variables on both sides, not {source}")
    if einsum.reduction != "sum" and not einsum.reduced:
        raise SpecError(
            f"{where}: reduction {einsum.reduction} has nothing to reduce; the output has every rank variable"
        )


class _Reader:
    """A recursive-descent reader over the tokens of one Einsum."""

    def __init__(self, text: str, numbers: Mapping[str, int]) -> None:
        self.text, self.numbers = text, numbers
        self.tokens: list[tuple[str, int]] = []
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                at = len(text) - len(text[position:].lstrip())
                raise SpecError(f"{text!r}: unexpected {text[at]!r} at character {at + 1}")
            self.tokens.append((match.group(1), match.start(1)))
            position = match.end()
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.tokens[place][0] if place < len(self.tokens) else ""

    def fail(self, expected: str) -> SpecError:
        if self.at < len(self.tokens):
            token, place = self.tokens[self.at]
            return SpecError(f"{self.text!r}: expected {expected} at character {place + 1}, found {token!r}")
        return SpecError(f"{self.text!r}: expected {expected} at the end")

    def accept(self, token: str) -> bool:
        """True if the token comes next; then it is taken."""
        found = self.peek() == token
        self.at += found
        return found

    def take(self, token: str) -> None:
        if not self.accept(token):
            raise self.fail(repr(token))

    def several(self, item: Callable[[], T], separator: Literal[",", "*"]) -> list[T]:
        """One item or more, with separators between them."""
        found = [item()]
        while self.accept(separator):
            found.append(item())
        return found

    def name(self, what: str) -> str:
        token = self.peek()
        if not _NAME.match(token):
            raise self.fail(what)
        self.at += 1
        return token

    def einsum(self) -> Einsum:
        output = self.access()
        self.take("=")
        stated = self.reduction()
        kind: Kind = "multiply"
        function: str | None = None
        if self.peek() == "copy" and self.peek(1) != "[":
            kind = "copy"
            self.at += 1
            parenthesised = self.accept("(")
            inputs = [self.access()]
            if parenthesised:
                self.take(")")
        elif self.peek(1) == "(":
            kind, function = "map", self.name("a function")
            self.take("(")
            inputs = self.several(self.access, ",")
            self.take(")")
        else:
            inputs = self.several(self.access, "*")
        if self.at < len(self.tokens):
            raise self.fail("'*' or the end" if kind == "multiply" else "the end")
        parsed = Einsum(output.tensor, output, tuple(inputs), kind, function, stated[0] if stated else "sum")
        if stated and set(stated[1]) != set(parsed.reduced):
            raise SpecError(
                f"{self.text!r}: {stated[0]}[{','.join(stated[1])}] must name the rank variables that the output "
                f"lacks: {', '.join(parsed.reduced) or 'none'}"
            )
        return parsed

    def reduction(self) -> tuple[Reduction, tuple[str, ...]] | None:
        """The prefix ``max[p]``, if an access or a function follows it (else it is a tensor called max)."""
        if self.peek() not in REDUCTIONS or self.peek(1) != "[":
            return None
        end = next((i for i in range(self.at, len(self.tokens)) if self.tokens[i][0] == "]"), None)
        if end is None or end + 1 >= len(self.tokens) or not _NAME.match(self.tokens[end + 1][0]):
            return None
        word = cast(Reduction, self.name("a reduction"))
        self.take("[")
        variables = self.several(lambda: self.name("a rank variable"), ",")
        self.take("]")
        return word, tuple(variables)

    def access(self) -> Access:
        tensor = self.name("a tensor")
        self.take("[")
        indices = [] if self.peek() == "]" else self.several(self.index, ",")
        if not self.accept("]"):
            raise self.fail("',' or ']'")
        return Access(tensor, tuple(indices))

    def index(self) -> Index:
        terms: dict[str, int] = {}
        constant = 0
        sign = -1 if self.accept("-") else 1
        while True:
            factor = 1
            variable: str | None = None
            if self.peek().isdigit() or self.peek() in self.numbers:
                factor = self.number()
                if self.accept("*"):
                    variable = self.name("a rank variable")
            else:
                variable = self.name("a rank variable or a number")
            if variable is None:
                constant += sign * factor
            elif sign < 0:
                raise SpecError(f"{self.text!r}: rank variable {variable} may not be subtracted")
            else:
                terms[variable] = terms.get(variable, 0) + factor
            if self.accept("+"):
                sign = 1
            elif self.accept("-"):
                sign = -1
            else:
                return Index(tuple(terms.items()), constant)

    def number(self) -> int:
        token = self.peek()
        value = self.numbers.get(token)
        if value is None:
            value = int(token) if len(token) <= 10 else MAX_COEFFICIENT + 1
        if abs(value) > MAX_COEFFICIENT:
            raise self.fail(f"a number of at most {MAX_COEFFICIENT}")
        self.at += 1
        return value


def _numpy(text: str, output: str, inputs: Sequence[str]) -> Einsum:
    left, _, right = ("".join(text.split())).partition("->")
    operands = left.split(",")
    names = tuple(inputs) or tuple(_LETTERS[: len(operands)])
    if len(names) != len(operands):
        raise SpecError(f"{text!r} has {len(operands)} operands, but {len(names)} tensor names")
    unknown = sorted(set(right) - set(left))
    if unknown:
        raise SpecError(f"{text!r}: the output's rank variable {unknown[0]} is in no operand")
    accesses = [_plain(name, letters) for name, letters in zip(names, operands, strict=True)]
    return Einsum(output, _plain(output, right), tuple(accesses))


def _plain(tensor: str, letters: str) -> Access:
    return Access(tensor, tuple(Index(((letter, 1),)) for letter in letters))

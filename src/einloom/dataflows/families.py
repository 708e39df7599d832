"""Families of workloads: a cascade whose Einsums, tensors and rank variables are roles.

Comes in: a family file (``data/families``, or a user's). Goes out: a `Family`; `casts` finds who plays its roles in a
workload. The schema is ``family/1``::

    schema: family/1
    name: attention
    description: self-attention with softmax in five steps
    optional: [b, h]                   # rank variables that a workload may lack
    alike: {m: l}                      # where structure leaves a choice, m is who has the extent of l
    einsums:
      QK: 'scores[b,h,m,l] = query[b,h,m,k] * key[b,h,k,l]'
      max: 'peak[b,h,m] = max[l] scores[b,h,m,l]'
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ..dataclass import dataclass
from ..errors import nearest, unknown
from ..reading.located import Located, read_file
from ..workload.einsum import Einsum
from ..workload.notation import parse_einsum

VERSION = 1
DATA = Path(__file__).parent / "data" / "families"
NAMES = ("attention", "softmax-attention", "online-attention", "convolution-chain", "tiled-convolution-chain")


@dataclass(frozen=True, slots=True)
class Family:
    """A cascade of roles.

    optional: rank variables that a workload may lack. alike: pairs of rank variables that have one extent where more
    than one cast is possible.
    """

    name: str
    einsums: tuple[Einsum, ...]
    optional: tuple[str, ...] = ()
    description: str = ""
    alike: tuple[tuple[str, str], ...] = ()

    @property
    def tensors(self) -> tuple[str, ...]:
        """Roles of tensors, in the order in which they are named."""
        return tuple(dict.fromkeys(access.tensor for einsum in self.einsums for access in einsum.accesses))

    @property
    def variables(self) -> tuple[str, ...]:
        """Roles of rank variables, in the order in which they are named."""
        return tuple(dict.fromkeys(v for einsum in self.einsums for v in einsum.variables))


def family(name: str) -> Family:
    """The family of this name. Raises SpecError with a suggestion for any other.

    >>> family("attention").tensors[:3]
    ('scores', 'query', 'key')
    """
    if name not in NAMES:
        raise unknown("family of workloads", name, NAMES)
    return _shipped(name)


@lru_cache(maxsize=len(NAMES))
def _shipped(name: str) -> Family:
    return family_from(read_file(DATA / f"{name}.yaml"))


def family_from(view: Located) -> Family:
    """The family that a view shows. Raises SpecError with the place of whatever is wrong."""
    view.schema("family", VERSION)
    name = view.require("name").name()
    about = view.get("description")
    optional = view.get("optional")
    alike = view.get("alike")
    einsums = []
    for role, _, value in view.require("einsums").entries():
        with value.gather(), value.placed():
            einsums.append(parse_einsum(value.text(what="an Einsum"), role))
    found = Family(
        name,
        tuple(einsums),
        () if optional is None else optional.names(),
        "" if about is None else about.text(),
        () if alike is None else tuple((one, value.name()) for one, _, value in alike.entries()),
    )
    for field, named in ((optional, found.optional), (alike, [one for pair in found.alike for one in pair])):
        with view.gather():
            for left in sorted(set(named) - set(found.variables)):
                assert field is not None
                raise field.error(f"no Einsum has a rank variable {left!r:.60}", nearest(left, found.variables))
    with view.gather():
        view.finish()
    view.raise_gathered()
    return found

"""Which Einsums are matrix multiplications C[M,L] = A[M,K] B[K,L], and which tensors and rank variables play the parts.

Comes in: a workload of one or two Einsums. Goes out: `Roles` per Einsum; a SpecError that says what the closed forms
cannot speak of. Rank variables that all three tensors have are batches: every value of them is a multiplication of its
own, so their loops stand outside.
"""

from __future__ import annotations

from math import prod

from ...dataclass import dataclass
from ...errors import SpecError
from ...workload.einsum import Access, Einsum, Workload
from ...workload.parts import not_whole
from .matmul import Matmul
from .pairs import Pair


@dataclass(frozen=True, slots=True)
class Roles:
    """One matrix multiplication. tensors: of A, B and C. variables: of M, K and L. batch: rank variables outside."""

    einsum: str
    tensors: tuple[str, str, str]
    variables: tuple[str, str, str]
    batch: tuple[str, ...]

    def variable(self, dimension: str) -> str:
        return self.variables["MKL".index(dimension)]

    def tensor(self, operand: str) -> str:
        return self.tensors["ABC".index(operand)]

    def matmul(self, workload: Workload) -> Matmul:
        return Matmul(*(workload.extents[v] for v in self.variables))

    def batches(self, workload: Workload) -> int:
        """How many multiplications there are."""
        return prod(workload.extents[v] for v in self.batch)


def roles(workload: Workload) -> tuple[Roles, ...]:
    """The parts in every Einsum. Of a pair the first output is the second A.

    Raises SpecError for anything but one matrix multiplication, or two of which the second reads what the first writes.
    """
    if len(workload.einsums) > 2:
        raise _refused(f"{workload.name} has {len(workload.einsums)} Einsums; the principles speak of one or two")
    if workload.parted:
        tensor = next(iter(workload.parted))
        raise _refused(f"{tensor} {not_whole(workload, tensor)}")
    widths = {tensor.bits for tensor in workload.tensors}
    if len(widths) > 1:
        raise _refused(f"the tensors of {workload.name} differ in bits per value")
    first, *rest = workload.einsums
    if not rest:
        return (_roles(first),)
    second = rest[0]
    middle = first.output.tensor
    if middle not in (access.tensor for access in second.inputs) or middle in workload.outputs:
        raise _refused(f"{second.name} is not the only reader of what {first.name} writes")
    return _paired(_roles(first), _roles(second, middle), first.output, second.access(middle))


def pair_of(workload: Workload, parts: tuple[Roles, ...]) -> Pair:
    """The sizes of a pair of multiplications."""
    one, other = (r.matmul(workload) for r in parts)
    return Pair(one.m, one.k, one.l, other.l)


def _roles(einsum: Einsum, left: str | None = None) -> Roles:
    """left: the tensor that has to be A; by default the first input."""
    if einsum.kind != "multiply" or len(einsum.inputs) != 2:
        raise _refused(f"Einsum {einsum.name} is no product of two tensors")
    if any(not index.simple or index.constant for access in einsum.accesses for index in access.indices):
        raise _refused(f"Einsum {einsum.name} reads through windows")
    a, b = einsum.inputs
    if left is not None and b.tensor == left:
        a, b = b, a
    have = [set(access.variables) for access in (a, b, einsum.output)]
    batch = tuple(v for v in einsum.variables if all(v in each for each in have))
    found = []
    for name, with_it, without in (("M", (0, 2), 1), ("K", (0, 1), 2), ("L", (1, 2), 0)):
        those = [v for v in einsum.variables if all(v in have[i] for i in with_it) and v not in have[without]]
        if len(those) != 1:
            listed = ", ".join(those) or "none"
            raise _refused(f"Einsum {einsum.name} has {len(those)} rank variables as {name} ({listed}), not one")
        found += those
    if len(found) + len(batch) != len(einsum.variables):
        raise _refused(f"Einsum {einsum.name} has a rank variable that only one tensor has")
    return Roles(einsum.name, (a.tensor, b.tensor, einsum.output.tensor), (found[0], found[1], found[2]), batch)


def _paired(one: Roles, other: Roles, written: Access, read: Access) -> tuple[Roles, ...]:
    """Both, their rank variables of C in step: the first one's M is the second one's M, its L the second one's K."""
    same = dict(zip(_names(written), _names(read), strict=True))
    if tuple(same[v] for v in one.batch) != other.batch:
        raise _refused(f"Einsums {one.einsum} and {other.einsum} have different batches")
    if same[one.variable("M")] == other.variable("M"):
        return one, other
    a, b, c = one.tensors
    m, k, l = one.variables
    return Roles(one.einsum, (b, a, c), (l, k, m), one.batch), other


def _names(access: Access) -> tuple[str, ...]:
    return tuple(index.variables[0] for index in access.indices)


def _refused(why: str) -> SpecError:
    return SpecError(f"method principles knows matrix multiplications alone: {why}", suggestion="exact")

"""What every ONNX operator is: a table from its name to the function that lowers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ....errors import nearest
from ..graph import OnnxNode
from ..lower import Cut, Lowering, Refused
from ..ranks import View
from . import elementwise, products, quantisation, reductions, views

Lower = Callable[[Lowering, OnnxNode], View | None]
"""What the node's first value is; None if the function has put all of its values."""
TABLE: Mapping[str, Lower] = MappingProxyType(
    {**views.TABLE, **elementwise.TABLE, **products.TABLE, **reductions.TABLE, **quantisation.TABLE}
)
CUT = frozenset(
    "Upsample ScatterND ScatterElements Scatter GatherElements GatherND CumSum ConvTranspose Col2Im "
    "GridSample AffineGrid RoiAlign MaxRoiPool MaxUnpool ReduceProd DeformConv ReverseSequence".split()
)
"""Operators that move or mix values in a way that the notation has no words for yet."""
MISSPELT = 0.8
"""How alike the names of two operators are if one is taken for a mistyped other; names share many syllables."""
MALFORMED = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
MALFORMED_WORDS = "has attributes, inputs or shapes that do not fit its operator"
REFUSED = frozenset(
    "If Loop Scan NonZero TopK NonMaxSuppression Unique Compress ArgMax ArgMin Hardmax RNN LSTM GRU "
    "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Multinomial Bernoulli".split()
)
"""Operators that choose by data, or repeat; no Einsum stands for them."""
CARRIES_CONTROL = (
    frozenset(elementwise.TABLE)
    | frozenset(views.TABLE)
    | frozenset(
        "Shape Size Concat Pad GatherND GatherElements ScatterND ScatterElements CumSum Range ConstantOfShape OneHot "
        "Trilu NonZero ReduceMax ReduceMin ReduceSum ReduceProd ArgMax ArgMin EyeLike".split()
    )
)
"""Operators that make a control value of control values."""
TABLE_LOOKUPS = frozenset("Gather GatherND GatherElements".split())


def known(node: OnnxNode) -> None:
    """Raises Cut or Refused for an operator that is not in the table."""
    if node.domain:
        raise Refused(f"is of domain {node.domain!r:.60}, which is not known")
    if node.operator in CUT:
        raise Cut(f"{node.operator} is not in the notation")
    if node.operator in REFUSED:
        raise Refused("chooses by data, repeats or draws at random; it has no Einsum")
    if node.operator not in TABLE:
        close = nearest(str(node.operator), TABLE, MISSPELT)
        raise Refused("is an operator that einloom does not know" + (f"; is {close} meant?" if close else ""))


def lower(pass_: Lowering, node: OnnxNode) -> None:
    """Add what the node is to the program. Raises Cut or Refused."""
    for name in (*node.inputs, *node.outputs):
        kind = pass_.graph.types.get(name)
        if name and kind is None and name not in pass_.graph.constants:
            raise Refused(f"has {name!r:.80}, which is no tensor of numbers")
    try:
        view = TABLE[node.operator](pass_, node)
        if view is not None:
            pass_.put(node.outputs[0], view)
    except MALFORMED as error:  # attributes and numbers of inputs are whatever the file says
        raise Refused(f"{MALFORMED_WORDS}: {type(error).__name__}: {error!s:.100}") from error

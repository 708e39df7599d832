"""A small network of what others lack: dilation, slices with a step, parts, padding, one tensor read in two ways, a
repeated axis, an operand of fewer dimensions."""

from __future__ import annotations

from pathlib import Path

MIXTURE = """\
<ir_version: 9, opset_import: ["" : 18]>
mixture (float[1, 4, 8, 8] x, float[4, 4, 3, 3] w1, float[4, 8, 1, 1] w2, float[1, 1, 4] token, float[4, 20] w3,
         float[20] shift, float[20, 20] w4, float[200, 3] w5) => (float[4, 3] y)
<int64[2] from = {0, 0}, int64[2] to = {8, 4}, int64[2] axes = {2, 3}, int64[2] steps = {2, 1},
 int64[3] flat = {1, 4, 16}, int64[6] pads = {0, 2, 0, 0, 1, 0}, float half = {0.5}, int64[1] last = {2},
 int64[2] square = {20, 20}, int64[4] halves = {1, 2, 1, 200}, int64[4] twice = {1, 2, 2, 200},
 int64[2] rows = {4, 200}>
{
  wide = Conv <dilations = [2, 2], pads = [2, 2, 2, 2]> (x, w1)
  bent = Tanh(wide)
  other = Neg(x)
  both = Concat <axis = 1> (bent, other)
  narrow = Conv(both, w2)
  thinned = Slice(narrow, from, to, axes, steps)
  listed = Reshape(thinned, flat)
  turned = Transpose <perm = [0, 2, 1]> (listed)
  tokens = Concat <axis = 1> (token, turned)
  padded = Pad(tokens, pads, half)
  mean = ReduceMean(padded, last)
  centred = Sub(padded, mean)
  pairs = MatMul(centred, w3)
  across = Transpose <perm = [0, 2, 1]> (pairs)
  both_ways = Sub(pairs, across)
  bounded = Tanh(both_ways)
  plane = Reshape(bounded, square)
  product = Gemm <transB = 1> (plane, w4)
  moved = Sub(product, shift)
  split = Reshape(moved, halves)
  doubled = Expand(split, twice)
  joined = Reshape(doubled, rows)
  y = MatMul(joined, w5)
}
"""
"""In the notation of `onnx.parser`; weights are inputs, so that they are random."""


def mixture(path: Path) -> Path:
    """The file, written."""
    import onnx.parser

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(onnx.parser.parse_model(MIXTURE).SerializeToString())
    return path

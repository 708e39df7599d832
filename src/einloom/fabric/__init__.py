"""Compute fabrics: one YAML description of arrays of processing elements. From it follow the machine and the limits for
`exact` (`machine`), the cycle model (`cycles`), the streams (`streams`), the RTL (`rtl/`) and its area (`area`)."""

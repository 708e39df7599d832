"""einloom: optimal fused mappings of Einsum cascades, each with a certificate."""

"""Methods without a proof: they visit states of the space's encoding, and differ only in which (docs/mappers.md)."""

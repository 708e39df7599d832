"""MANY: the same question for a list of capacities, each answer saved as soon as it is known, resumable."""

from .capacity import sizes, sweep_capacity, variants

__all__ = ["sizes", "sweep_capacity", "variants"]

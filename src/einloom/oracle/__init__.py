"""TRUTH on small sizes: executes a mapping tree with integers, element by element, and counts what moves."""

from .reference import evaluate_cascade, random_inputs
from .simulate import Simulation, simulate

__all__ = ["Simulation", "evaluate_cascade", "random_inputs", "simulate"]

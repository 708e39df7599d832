"""Families of machines: the best mapping of every machine, and which machines no other beats."""

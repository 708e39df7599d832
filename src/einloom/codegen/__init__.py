"""Mappings as programs: a tree becomes C in which every move between memories is a copy between buffers.

Comes in: a legal mapping. Goes out: its program, the results that it computes, and how many values it moved.
"""

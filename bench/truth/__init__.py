"""Random problems of every kind, by the thousand (``python -m bench.truth --help``).

`runs` draws them, asks the claims of `einloom.testing.problems` and keeps what came of each, so that an interrupted run
is taken up; `table` counts them by claim, by dimension and by pair of dimensions.
"""

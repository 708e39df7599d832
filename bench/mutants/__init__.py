"""Mutants: small wrong changes of `src/`, each of which some test should notice (``python -m bench.mutants --help``).

`changes` finds every place where a function can be changed, `draw` chooses some by a seed, `reach` records which tests
execute which lines, `trial` runs the tests that fit against one mutant in a copy, `table` keeps what was found.
"""

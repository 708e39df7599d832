"""Random tiny problems, as the three files that a user would write, with everything that such files can express.

`dimensions` names what a problem may have, `cascades`, `machines` and `spaces` draw the three files, `drawing` puts a
problem together from a seed, and `files` reads and writes it. `claims` sets einloom's answers beside all trees and
beside the oracle; `minimise` makes a problem smaller as long as it shows the same; `keys` says which keys of a file's
schema it uses.
"""

from __future__ import annotations

from .dimensions import DIMENSIONS, dimensions_of, impossible
from .drawing import DrawnProblem, draw
from .files import Files

__all__ = ["DIMENSIONS", "DrawnProblem", "Files", "dimensions_of", "draw", "impossible"]

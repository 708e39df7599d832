"""AccelForge's files: `export` makes its YAML from a workload and a machine, `read` makes einloom's objects from it.

What the two tools mean differently is said where it is translated: limits in `sets`, machines in `machines`, cascades
in `cascades`, schedules in `schedules`. What cannot be carried over is an error or a note, never dropped.
"""

from ..bundle import ExportedFiles as Exported
from .read import read
from .write import export

__all__ = ["Exported", "export", "read"]

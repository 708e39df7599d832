"""`cached_property` without the lock that Python 3.11 takes at every first question; later versions take none, too.

A tree that is priced is asked a thousand such questions, each once; the lock was a tenth of it (docs/profile.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:  # noqa: N801 - it stands for the one of functools
        """What a method finds, found once for each object: the object keeps it under the method's name."""

        def __init__(self, func: Any) -> None:
            self.func, self.attrname, self.__doc__ = func, func.__name__, func.__doc__

        def __get__(self, owner: Any, kind: Any = None) -> Any:
            if owner is None:
                return self
            found = owner.__dict__[self.attrname] = self.func(owner)
            return found

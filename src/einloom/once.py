"""What is found of objects, kept by them: `cached_property`, `once_each` for methods that are asked of something, and
`read_once` for objects that are read again as a file would say them.

`cached_property` is without the lock that Python 3.11 takes at every first question; later versions take none, too. A
tree that is priced is asked a thousand such questions, each once; the lock was a tenth of it (docs/profile.md).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

Asked = TypeVar("Asked", bound=Callable[..., Any])
Thing = TypeVar("Thing")

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


def once_each(method: Asked) -> Asked:
    """A method that finds its answer once for each of its arguments, which come by their places and can be hashed."""
    name = f"{method.__qualname__}, asked"

    @wraps(method)
    def asked(self: Any, *of: Any) -> Any:
        known = self.__dict__.setdefault(name, {})
        if of not in known:
            known[of] = method(self, *of)
        return known[of]

    return cast(Asked, asked)


def read_once(thing: Thing, key: str, again: Callable[[Thing], Thing]) -> Thing:
    """What `again` reads an object as, asked once: the object keeps it under `key`. True there says that a reader, or
    a builder which checks as much, made the object, and then it is that itself."""
    known = vars(thing).get(key)
    if known is None:
        known = vars(thing)[key] = again(thing)
    return thing if known is True else cast(Thing, known)

"""`dataclass` whose methods are compiled when they are first called; it stands for the one of `dataclasses`.

That one compiles up to six methods of every class while its module is imported, which takes most of a millisecond. A
search imports 170 such classes, and of many of them it makes nothing: that was a fifth of a small search
(docs/profile.md). What `dataclasses` says of a class (`fields`, `replace`, `is_dataclass`) holds as ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    import sys
    from collections.abc import Callable
    from reprlib import recursive_repr

    _MISSING = dataclasses.MISSING
    _Written = tuple[str, str, dict[str, Any]]

    class _Later:
        """A method of a class that is compiled when it is first looked up, and then stands there itself.

        written: of the class, what the method takes, what it does, and what further names mean.
        """

        __slots__ = ("cls", "name", "written")

        def __init__(self, cls: type, name: str, written: Callable[[type], _Written]) -> None:
            self.cls, self.name, self.written = cls, name, written

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            taken, done, names = self.written(self.cls)
            text = f"def made({', '.join(names)}):\n def {self.name}({taken}:\n  {done}\n return {self.name}"
            found: dict[str, Any] = {}
            code = compile(text, "<dataclass>", "exec", dont_inherit=True)
            exec(code, vars(sys.modules[self.cls.__module__]), found)  # noqa: S102 - a text of this module's
            method = found["made"](**names)
            method.__qualname__ = f"{self.cls.__qualname__}.{self.name}"
            setattr(self.cls, self.name, method)
            return method.__get__(instance, owner)

    class _Made:
        def __repr__(self) -> str:
            return "<factory>"

    _MADE = _Made()

    def _init(cls: type) -> _Written:
        names: dict[str, Any] = {"_set": object.__setattr__, "_MADE": _MADE}
        line = "_set(self, {0!r}, {1})" if cls.__dataclass_params__.frozen else "self.{0} = {1}"
        taken: dict[bool, list[str]] = {False: [], True: []}
        lines = []
        for field in dataclasses.fields(cls):
            name, make = field.name, field.default_factory
            default, value = "", name
            if make is not _MISSING:
                names[f"_make_{name}"] = make
                default, value = " = _MADE", f"_make_{name}()"
                value = f"{value} if {name} is _MADE else {name}" if field.init else value
            elif field.default is not _MISSING:
                names[f"_default_{name}"] = field.default
                default, value = f" = _default_{name}", name if field.init else f"_default_{name}"
            if field.init:
                names[f"_type_{name}"] = field.type
                taken[field.kw_only].append(f"{name}: _type_{name}{default}")
            if field.init or default:
                lines.append(line.format(name, value))
        if hasattr(cls, "__post_init__"):
            lines.append("self.__post_init__()")
        words = ["self", *taken[False], *(["*", *taken[True]] if taken[True] else [])]
        return f"{', '.join(words)}) -> None", "; ".join(lines) or "pass", names

    def _compared(cls: type, who: str) -> str:
        return "(" + "".join(f"{who}.{field.name}, " for field in dataclasses.fields(cls) if field.compare) + ")"

    def _eq(cls: type) -> _Written:
        same = f"{_compared(cls, 'self')} == {_compared(cls, 'other')}"
        return "self, other)", f"return {same} if other.__class__ is self.__class__ else NotImplemented", {}

    def _hash(cls: type) -> _Written:
        return "self)", f"return hash({_compared(cls, 'self')})", {}

    @recursive_repr()
    def _repr(self: Any) -> str:
        shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
        return f"{self.__class__.__qualname__}({', '.join(shown)})"

    def _freeze(cls: type) -> None:
        """Objects of the class refuse new values, those of a subclass of its fields alone."""
        names = frozenset(field.name for field in dataclasses.fields(cls))

        def __setattr__(self: Any, name: str, value: object) -> None:  # noqa: N807 - it becomes a method of that name
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
            super(cls, self).__setattr__(name, value)

        def __delattr__(self: Any, name: str) -> None:  # noqa: N807
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
            super(cls, self).__delattr__(name)

        cls.__setattr__, cls.__delattr__ = __setattr__, __delattr__

    def _state(self: Any) -> list[object]:
        return [getattr(self, field.name) for field in dataclasses.fields(self)]

    def _restore(self: Any, state: list[object]) -> None:
        for field, value in zip(dataclasses.fields(self), state, strict=True):
            object.__setattr__(self, field.name, value)

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, eq: bool = True, repr: bool = True
    ) -> Any:
        """As `dataclasses.dataclass`, of whose options it takes those that einloom uses."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, slots=slots, eq=eq, repr=repr)
        own = cls.__dict__
        cls.__doc__ = cls.__doc__ or cls.__name__
        of_frozen = any(base.__dict__["__dataclass_params__"].frozen for base in cls.__mro__ if _is_data(base))
        cls = dataclasses.dataclass(init=False, repr=False, eq=False, frozen=of_frozen, slots=slots)(cls)
        cls.__dataclass_params__.frozen = frozen
        if "__init__" not in own:
            cls.__init__ = _Later(cls, "__init__", _init)
        if repr and "__repr__" not in own:
            cls.__repr__ = _repr
        if eq and "__eq__" not in own:
            cls.__eq__ = _Later(cls, "__eq__", _eq)
        if eq and own.get("__hash__") is None:
            cls.__hash__ = _Later(cls, "__hash__", _hash) if frozen else None
        if frozen:
            _freeze(cls)
        if frozen and slots and "__getstate__" not in own:
            cls.__getstate__, cls.__setstate__ = _state, _restore
        return cls

    def _is_data(cls: type) -> bool:
        return "__dataclass_params__" in cls.__dict__

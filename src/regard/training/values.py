"""A value against the type that is wanted of it: what a file or a command line says is checked by what it is for."""

from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", type(None): "nothing"}


class Unfit(Exception):
    """A value that is not of the type that is wanted."""


def fitting(value: Any, wanted: Any) -> Any:
    """The value, as the type has it: a list as a tuple, one thing where several are wanted as one of them."""
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin in (Union, UnionType):
        return _first(value, inner)
    if origin is Literal:
        return _one_of(value, value in inner)
    if origin is tuple:
        return _several(value, inner)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapped(value, inner[1])
    if wanted is float:
        return float(_one_of(value, isinstance(value, (int, float)) and not isinstance(value, bool)))
    if wanted is str:
        return _one_of(value, isinstance(value, str) and not any("\ud800" <= sign <= "\udfff" for sign in value))
    return _one_of(value, type(value) is wanted)


def told(wanted: Any) -> str:
    """The type in words."""
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin in (Union, UnionType):
        return " or ".join(told(one) for one in inner if one is not type(None))
    if origin is Literal:
        return f"one of {', '.join(str(one) for one in inner if one != '')}"
    if origin is tuple:
        return (
            f"a list, each {told(inner[0])}" if inner[-1] is ... else f"a list of {len(inner)}, each {told(inner[0])}"
        )
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "names and what they stand for, as in source=en,target=zh"
    return NAMES[wanted]


def _first(value: Any, choices: tuple[Any, ...]) -> Any:
    for wanted in choices:
        try:
            return fitting(value, wanted)
        except Unfit:
            pass
    raise Unfit


def _one_of(value: Any, fits: bool) -> Any:
    if not fits:
        raise Unfit
    return value


def _several(value: Any, inner: tuple[Any, ...]) -> tuple[Any, ...]:
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if inner[-1] is ...:
        return tuple(fitting(one, inner[0]) for one in values)
    if len(values) != len(inner):
        raise Unfit
    return tuple(fitting(one, wanted) for one, wanted in zip(values, inner, strict=True))


def _mapped(value: Any, wanted: Any) -> dict[str, Any]:
    """A table, or what a command line says for one: "source=en,target=zh", or "text,label" where both are the same."""
    if isinstance(value, (list, tuple)):
        value = ",".join(str(name) for name in value)
    if isinstance(value, str):
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        value = {name.strip(): _column((of if sign else name).strip()) for name, sign, of in pairs}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) and name for name in value):
        raise Unfit
    return {name: fitting(of, wanted) for name, of in value.items()}


def _column(text: str) -> str | int:
    return int(text) if text.isascii() and text.isdigit() else text

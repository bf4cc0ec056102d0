"""The description in a file → the run it speaks of, each value checked before it is believed."""

import reprlib
from typing import Any, NamedTuple

from ...errors import FileError
from ...formula.masks import Mask, places
from ...formula.positions import Bias
from ..map import Map
from ..record import Layer, Run
from ..tokens import Tokens
from .fitting import parts_of, require_whole
from .format import ARRAYS
from .forms import (
    BIASES,
    BINARY,
    COUNT,
    MASKS,
    NOTHING,
    NUMBER,
    NUMBER_ARRAY,
    OBJECTS,
    POSITIVE,
    SOME_OBJECTS,
    TEXT,
    TEXTS,
    WHOLE,
    WHOLES,
    Check,
    Form,
)
from .packed import Packed


class Shelf(NamedTuple):
    """What a file has, by name and number."""

    arrays: dict[str, Any]
    masks: list[Mask]
    biases: list[Bias]
    sides: list[Tokens]


def run_of(record: Any, arrays: dict[str, Any]) -> Run:
    """A run out of its description."""
    what = "the record"
    shelf = Shelf(arrays, [], [], [])
    parts: list[int] = []
    for number, entry in enumerate(field_of(record, "masks", what, OBJECTS)):
        parts.append(parts_of(entry, parts))
        shelf.masks.append(_part(MASKS, entry, f"mask {number}", shelf))
    for number, entry in enumerate(field_of(record, "biases", what, OBJECTS)):
        shelf.biases.append(_part(BIASES, entry, f"bias {number}", shelf))
    for number, entry in enumerate(field_of(record, "tokens", what, OBJECTS)):
        shelf.sides.append(_side(entry, f"tokens {number}"))
    layers = field_of(record, "layers", what, SOME_OBJECTS)
    return Run(
        layers=tuple(_layer(entry, f"layer {place}", shelf) for place, entry in enumerate(layers)),
        model=field_of(record, "model", what, TEXT),
    )


def _layer(entry: Any, what: str, shelf: Shelf) -> Layer:
    items = field_of(entry, "items", what, SOME_OBJECTS)
    places = [f"{what}, item {place}" for place in range(len(items))]
    queries, keys = (
        tuple(_numbered(item, field, place, shelf.sides) for item, place in zip(items, places, strict=True))
        for field in ("query_tokens", "key_tokens")
    )
    layer = Layer(
        name=field_of(entry, "name", what, TEXT),
        kind=field_of(entry, "kind", what, TEXT),
        index=field_of(entry, "index", what, WHOLE),
        maps=tuple(_map(item, place, shelf) for item, place in zip(items, places, strict=True)),
        queries=queries,
        keys=keys,
        head_numbers=tuple(field_of(entry, "heads", what, WHOLES)),
    )
    require_whole(layer)
    return layer


def _map(item: Any, what: str, shelf: Shelf) -> Map:
    arrays: dict[str, Any] = {}
    for field in ARRAYS:
        name = field_of(item, field, what, TEXT, *(() if field in ("queries", "keys") else (NOTHING,)))
        arrays[field] = None if name is None else _tensor(name, f"{what}, {field}", shelf)
        if name is not None and not NUMBER_ARRAY.holds(arrays[field]):
            raise FileError(f"{what}: {field} are of dtype {arrays[field].dtype}; they must be numbers.")
    softcap = field_of(item, "softcap", what, NOTHING, POSITIVE)
    parts: dict[str, Any] = {
        field: None if field_of(item, field, what, NOTHING, COUNT) is None else _numbered(item, field, what, table)
        for field, table in (("mask", shelf.masks), ("bias", shelf.biases))
    }
    return Map(
        **arrays,
        **parts,
        scale=float(field_of(item, "scale", what, NUMBER)),
        softcap=None if softcap is None else float(softcap),
        offset=field_of(item, "offset", what, WHOLE),
    )


def _part(forms: dict[str, Form], entry: dict[str, Any], what: str, shelf: Shelf) -> Any:
    """A mask or a bias out of its description."""
    kind = field_of(entry, "kind", what, TEXT)
    if kind not in forms:
        raise FileError(f"{what} is of a kind {shown(kind)}, {newer()}")
    form = forms[kind]
    values = {name: _value(value, f"{what}, {name}", shelf) for name, value in entry.items() if name != "kind"}
    if values.keys() != form.fields.keys():
        raise FileError(f"{what}, of kind {kind}, has {shown(sorted(values))}; it should have {sorted(form.fields)}.")
    part = form.made(**{name: field_of(values, name, what, *checks) for name, checks in form.fields.items()})
    if isinstance(part, places.Ranges) and part.first.shape != part.last.shape:
        raise FileError(f"{what}: first {part.first.shape} and last {part.last.shape} differ in shape.")
    if isinstance(part, Packed) and part.bits.shape[-1] != -(-part.keys // 8):
        raise FileError(f"{what}: {part.keys} keys do not take {part.bits.shape[-1]} bytes a row.")
    return part


def _value(value: Any, what: str, shelf: Shelf) -> Any:
    """A field of a mask or bias: a tensor, an earlier mask, numbers."""
    if isinstance(value, dict):
        if value.keys() == {"tensor"}:
            return _tensor(value["tensor"], what, shelf)
        return _numbered(value, "mask", what, shelf.masks)
    return tuple(value) if isinstance(value, list) else value


def _side(entry: dict[str, Any], what: str) -> Tokens:
    segments = entry.get("segments")
    return Tokens(
        texts=tuple(field_of(entry, "texts", what, TEXTS)),
        begins=tuple(sign == "1" for sign in field_of(entry, "begins", what, BINARY)),
        segments=None if segments is None else tuple(field_of(entry, "segments", what, WHOLES)),
        generated=field_of(entry, "generated", what, NOTHING, WHOLE),
    )


def field_of(thing: Any, name: str, what: str, *checks: Check) -> Any:
    """A field of an object, if it is there and is what it may be."""
    if not isinstance(thing, dict) or name not in thing:
        raise FileError(f"{what} has no {name!r}; the file is damaged.")
    if not any(check.holds(thing[name]) for check in checks):
        told = " or ".join(check.words for check in checks)
        raise FileError(f"{what}: {name} is {shown(thing[name])}; it should be {told}.")
    return thing[name]


def _numbered(thing: Any, name: str, what: str, table: list[Any]) -> Any:
    """What a number stands for: the entry of a table."""
    number = field_of(thing, name, what, COUNT)
    if number >= len(table):
        raise FileError(f"{what}: {name} is number {number}, and there are {len(table)} so far; the file is damaged.")
    return table[number]


def _tensor(name: Any, what: str, shelf: Shelf) -> Any:
    if not isinstance(name, str) or name not in shelf.arrays:
        raise FileError(f"{what}: there is no tensor {shown(name)} in the file.")
    return shelf.arrays[name]


def newer() -> str:
    """How an error ends that speaks of what this version has not heard of."""
    from ... import __version__

    return f"which Regard {__version__} does not know: written by a newer Regard; update it to open the file."


def shown(value: Any) -> str:
    """A value out of a file, short enough for an error."""
    return reprlib.repr(value)

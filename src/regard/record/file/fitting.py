"""What fits together: the arrays, tokens and masks of a layer that is about to be written or was just read."""

# H query heads, G key heads; ARRAYS has the axes of the rest

from typing import Any, get_args

from ...errors import OptionError, ShapeError
from ...formula.arrays import require_fits
from ...formula.problem import map_shape
from ..map import Map
from ..record import Kind, Layer
from .format import ARRAYS

PARTS = 100  # of a mask; a few lines of hostile JSON could otherwise stand for more than can ever be computed


def require_whole(layer: Layer) -> None:
    """A layer whose arrays, tokens and numbers fit together, whether it is about to be written or was just read."""
    if layer.kind not in get_args(Kind):
        raise OptionError(f"layer {layer.name} is of kind {layer.kind!r}; there are {', '.join(get_args(Kind))}.")
    if not layer.maps or not len(layer.maps) == len(layer.queries) == len(layer.keys):
        raise ShapeError(
            f"layer {layer.name} has {len(layer.maps)} maps, and tokens for {len(layer.queries)} and {len(layer.keys)}."
        )
    for one, rows, cols in zip(layer.maps, layer.queries, layer.keys, strict=True):
        _require_fitting(one, layer.name)
        sizes = len(layer.head_numbers), len(rows), len(cols)
        if sizes != one.shape:
            raise ShapeError(
                f"layer {layer.name}: a map of {one.shape}, heads × queries × keys, and names for {sizes} of them."
            )


def _require_fitting(one: Map, name: str) -> None:
    """A map whose arrays fit together; masks and biases answer for an empty rectangle."""
    sizes: dict[str, int] = {}
    for field, axes in ARRAYS.items():
        array = getattr(one, field)
        if array is None:
            continue
        shape = tuple(array.shape)
        known = tuple(sizes.get(axis, size) for axis, size in zip(axes, shape, strict=False))
        if len(shape) != len(axes) or known != shape or 0 in shape:
            expected = ", ".join(str(sizes.get(axis, axis)) for axis in axes)
            raise ShapeError(f"layer {name}: {field} have shape {shape}; it should be ({expected}), without a 0.")
        sizes.update(zip(axes, shape, strict=True))
    if sizes["H"] % sizes["G"]:
        raise ShapeError(f"layer {name}: {sizes['G']} key heads cannot serve {sizes['H']} query heads evenly.")
    whole = map_shape(one.queries.shape, one.keys.shape)
    for field, part in (("mask", one.mask), ("bias", one.bias)):
        if part is not None:
            tile = part.tile(slice(0, 0), slice(0, 0), whole, like=one.queries)
            require_fits(f"layer {name}: {field}", tile.shape, (*whole[:-2], 0, 0), "map (.., queries, keys)")


def parts_of(entry: dict[str, Any], parts: list[int]) -> int:
    """How many masks a mask is made of, itself included; `parts` are those of the earlier ones."""
    numbers = [value.get("mask") for value in entry.values() if isinstance(value, dict)]
    total = 1 + sum(parts[number] for number in numbers if type(number) is int and 0 <= number < len(parts))
    if total > PARTS:
        raise OptionError(f"a mask of {total} parts; a record's file has masks of up to {PARTS}.")
    return total

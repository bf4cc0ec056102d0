"""What each value in a file may be, and the tables of the kinds of masks and biases with their fields."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...formula.masks import Mask, places, tokens
from ...formula.masks import mask as combined
from ...formula.positions import bias
from .packed import Packed

LARGEST_WHOLE = 2**53  # beyond it, JSON readers of other languages round
LARGEST_NUMBER = 2.0**127  # float32, in which weights are computed, holds it


class Check(NamedTuple):
    """What a value in a file may be, and how that is said."""

    words: str
    holds: Callable[[Any], bool]


def _is_whole(value: Any) -> bool:
    return type(value) is int and abs(value) <= LARGEST_WHOLE


def is_number(value: Any) -> bool:
    """A finite number, whole or not, that every reader takes for the same one."""
    return _is_whole(value) or (type(value) is float and abs(value) <= LARGEST_NUMBER)


def _array(words: str, kinds: str, rank: int, most: int = 8) -> Check:
    """An array of one of NumPy's kinds of dtype ("V" is bfloat16, which NumPy does not know) with enough axes."""
    return Check(words, lambda value: isinstance(value, np.ndarray) and value.dtype.kind in kinds
                 and rank <= value.ndim <= most)  # fmt: skip


NOTHING = Check("null", lambda value: value is None)
FLAG = Check("true or false", lambda value: type(value) is bool)
TEXT = Check("text", lambda value: type(value) is str)
WHOLE = Check("a whole number", _is_whole)
COUNT = Check("a whole number from 0 on", lambda value: _is_whole(value) and value >= 0)
SIZE = Check("a whole number from 1 on", lambda value: _is_whole(value) and value >= 1)
NUMBER = Check("a finite number", is_number)
POSITIVE = Check("a finite number above 0", lambda value: is_number(value) and value > 0)
WHOLES = Check("a list of whole numbers", lambda value: isinstance(value, list | tuple) and all(map(_is_whole, value)))
NUMBERS = Check("a list of numbers", lambda value: isinstance(value, list | tuple) and all(map(is_number, value)))
TEXTS = Check("a list of texts", lambda value: isinstance(value, list) and all(type(text) is str for text in value))
COUNTS = Check("a list of whole numbers from 0 on",
               lambda value: isinstance(value, list) and all(map(COUNT.holds, value)))  # fmt: skip
OBJECTS = Check("a list of objects", lambda value: isinstance(value, list) and all(type(one) is dict for one in value))
SOME_OBJECTS = Check("a list of one object or more", lambda value: bool(value) and OBJECTS.holds(value))
BINARY = Check("text of 0 and 1", lambda value: type(value) is str and not value.strip("01"))
MASK = Check("a mask", lambda value: isinstance(value, Mask))
WHOLE_ARRAY = _array("an array of whole numbers", "iu", 0)
WHOLE_ROWS = _array("an array of whole numbers, one axis or more", "iu", 1)
BOOLEANS = _array("an array of booleans", "b", 0)
BOOLEAN_ROWS = _array("an array of booleans, one axis or more", "b", 1)
BYTES = Check("an array of bytes, two axes or more",
              lambda value: isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim >= 2)  # fmt: skip
ROWS = _array("an array of numbers, one axis or more", "iufV", 1)
TABLE = _array("an array of numbers, two axes", "iufV", 2, 2)
NUMBER_ARRAY = _array("an array of numbers", "iufV", 0)


class Form(NamedTuple):
    """How a kind of mask or bias is written: its class, and what each of its fields may be."""

    made: Callable[..., Any]
    fields: dict[str, tuple[Check, ...]]


PLACE = (NOTHING, WHOLE)  # of the first query among the keys
PLACES = (NOTHING, WHOLE, WHOLE_ARRAY)

MASKS = {
    "causal": Form(places.Causal, {"offset": PLACES}),
    "window": Form(places.Window, {"offset": PLACES, "left": (NOTHING, COUNT), "right": (NOTHING, COUNT)}),
    "blocks": Form(places.Blocks, {"size": (SIZE,)}),
    "ranges": Form(places.Ranges, {"first": (WHOLE_ROWS,), "last": (WHOLE_ROWS,)}),
    "global": Form(places.Global, {"places": (WHOLES,)}),
    "padding": Form(tokens.Padding, {"lengths": (WHOLE, WHOLES, WHOLE_ARRAY)}),
    "keys": Form(tokens.Keys, {"keep": (BOOLEAN_ROWS,)}),
    "segments": Form(tokens.Segments, {"query_ids": (ROWS,), "key_ids": (ROWS,)}),
    "given": Form(combined.Given, {"allowed": (BOOLEANS,)}),
    "packed": Form(Packed, {"bits": (BYTES,), "keys": (SIZE,)}),
    "both": Form(combined.Both, {"one": (MASK,), "other": (MASK,)}),
    "either": Form(combined.Either, {"one": (MASK,), "other": (MASK,)}),
    "not": Form(combined.Not, {"one": (MASK,)}),
}
BIASES = {
    "given": Form(bias.Given, {"numbers": (NUMBER_ARRAY,)}),
    "alibi": Form(bias.Alibi, {"slopes": (NUMBERS,), "offset": PLACE}),
    "t5": Form(bias.T5, {"table": (TABLE,), "both_ways": (FLAG,), "farthest": (SIZE,), "offset": PLACE}),
    "distances": Form(bias.Distances, {"numbers": (ROWS,), "first": (WHOLE,), "offset": PLACE}),
}

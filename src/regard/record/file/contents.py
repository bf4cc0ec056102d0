"""What goes into a file: each tensor, mask, bias and text once, under the name or number that stands for it."""

import json
from typing import Any, NamedTuple

import numpy as np

from ...errors import DtypeError, OptionError
from ...formula.arrays import Array, is_array
from ...formula.masks import Mask
from ...formula.masks import mask as combined
from ...formula.positions import Bias
from ..tokens import Tokens
from .fitting import parts_of
from .format import CODES, dtype_name, itemsize_of
from .forms import BIASES, LARGEST_NUMBER, LARGEST_WHOLE, MASKS, Form, is_number


class Tensor(NamedTuple):
    """An array that goes into the file."""

    name: str
    array: Array
    packed: bool  # its booleans eight to a byte

    @property
    def code(self) -> str:
        """safetensors' name for its dtype, in the file."""
        return "U8" if self.packed else CODES[dtype_name(self.array)]

    @property
    def shape(self) -> tuple[int, ...]:
        """In the file."""
        *lead, last = self.array.shape or (1,)
        return (*lead, -(-last // 8)) if self.packed else tuple(self.array.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of a number."""
        return itemsize_of(self.code)


class Contents:
    """What goes into a file, gathered while a run is described: each tensor, mask, bias and text once."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.tables: dict[str, list[Any]] = {"masks": [], "biases": [], "tokens": []}
        self._parts: list[int] = []  # of each mask
        self._found: dict[Any, Any] = {}  # what is written already, and under which name or number

    def tensor(self, name: str, array: Array, *, packed: bool = False) -> str:
        """The name under which an array is written: this one, unless it is there already."""
        key = (packed, *_memory(array))
        if key not in self._found:
            if dtype_name(array) not in CODES:
                raise DtypeError(f"{name} has dtype {array.dtype}; a record's file holds {', '.join(CODES)}.")
            self.tensors.append(Tensor(name, array, packed))
            self._found[key] = name
        found: str = self._found[key]
        return found

    def mask(self, mask: Mask | None) -> int | None:
        """The number of a mask."""
        if mask is None:
            return None
        if id(mask) not in self._found:
            square = isinstance(mask, combined.Given) and min((1, 1, *mask.allowed.shape)[-2:]) > 1
            self._found[id(mask)] = self._entered("masks", self._bits(mask) if square else self._entry(MASKS, mask))
        number: int = self._found[id(mask)]
        return number

    def bias(self, bias: Bias | None) -> int | None:
        """The number of a bias."""
        return None if bias is None else self._entered("biases", self._entry(BIASES, bias))

    def side(self, side: Tokens) -> int:
        """The number of the tokens on one side of a map."""
        if id(side) not in self._found:
            entry = {
                "texts": list(side.texts),
                "begins": "".join("1" if begins else "0" for begins in side.begins),
                "segments": None if side.segments is None else [int(segment) for segment in side.segments],
                "generated": None if side.generated is None else int(side.generated),
            }
            self._found[id(side)] = self._entered("tokens", entry)
        number: int = self._found[id(side)]
        return number

    def _bits(self, mask: Any) -> dict[str, Any]:
        """A boolean array of n×n, which is written eight to a byte."""
        name = self.tensor(f"masks.{len(self.tables['masks'])}.bits", mask.allowed, packed=True)
        return {"kind": "packed", "bits": {"tensor": name}, "keys": mask.allowed.shape[-1]}

    def _entry(self, forms: dict[str, Form], part: Any) -> dict[str, Any]:
        kind = next((kind for kind, form in forms.items() if type(part) is form.made), None)
        if kind is None:
            raise OptionError(
                f"a {type(part).__name__} cannot be written to a file; as an array it can: masks.given(mask.dense(…)), "
                "or a bias of numbers."
            )
        values = {name: getattr(part, name) for name in forms[kind].fields}
        parts = {name: self.mask(value) for name, value in values.items() if isinstance(value, Mask)}
        table = "masks" if forms is MASKS else "biases"
        place = f"{table}.{len(self.tables[table])}"
        rest = {name: self._value(f"{place}.{name}", value) for name, value in values.items() if name not in parts}
        return {"kind": kind, **rest, **{name: {"mask": number} for name, number in parts.items()}}

    def _value(self, name: str, value: Any) -> Any:
        if is_array(value):
            return {"tensor": self.tensor(name, value)}
        if isinstance(value, tuple):
            return [writable(name, number) for number in value]
        return writable(name, value)

    def _entered(self, table: str, entry: dict[str, Any]) -> int:
        """The number of an entry: a new one, unless the same is there already."""
        key = (table, json.dumps(entry, sort_keys=True))
        if key not in self._found:
            if table == "masks":
                self._parts.append(parts_of(entry, self._parts))
            self.tables[table].append(entry)
            self._found[key] = len(self.tables[table]) - 1
        number: int = self._found[key]
        return number


def writable(name: str, number: Any) -> Any:
    """A number that can be read again."""
    if number is None or type(number) is bool or is_number(number):
        return number
    raise OptionError(
        f"{name} is {number!r}; a record's file holds finite numbers below {LARGEST_NUMBER:.1e}, and whole ones up to "
        f"{LARGEST_WHOLE:,}."
    )


def _memory(array: Array) -> tuple[Any, ...]:
    """Where an array lies; two that lie at the same place are one."""
    if hasattr(array, "data_ptr"):
        return str(array.device), array.data_ptr(), tuple(array.shape), array.stride(), str(array.dtype)
    if isinstance(array, np.ndarray):
        return "host", array.__array_interface__["data"][0], array.shape, array.strides, str(array.dtype)
    return ("object", id(array))

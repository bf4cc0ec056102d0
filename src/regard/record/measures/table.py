"""A number about every head, or several: a table with a row for each head, to sort and to look up."""

# L layers, H heads of the layer that has most

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...errors import OptionError
from ..record import Kind, Layer
from .subject import Floats

__all__ = ["Found", "HeadName", "HeadTable"]


class HeadName(NamedTuple):
    """Which head it is, as the model counts."""

    kind: Kind
    layer: int
    head: int


class Found(NamedTuple):
    """A head and a number about it."""

    name: HeadName
    value: float


@dataclass(frozen=True, eq=False)
class HeadTable:
    """Numbers about heads. NaN stands where a head has no such number: a cross-attention head has no previous token."""

    columns: tuple[str, ...]
    rows: tuple[HeadName, ...]
    values: Floats  # (rows, columns)

    @property
    def layers(self) -> tuple[int, ...]:
        """The layer's number, for each row."""
        return tuple(row.layer for row in self.rows)

    @property
    def heads(self) -> tuple[int, ...]:
        """The head's number, for each row."""
        return tuple(row.head for row in self.rows)

    def __getitem__(self, column: str) -> Floats:
        """One column.   -> (rows,)"""
        return self.values[:, self._place(column)]

    def best(self, column: str | None = None, count: int = 10, *, lowest: bool = False) -> tuple[Found, ...]:
        """The heads with the highest numbers in a column (the lowest, if said so), NaN left out."""
        numbers = self[self._only() if column is None else column]
        order = np.argsort(numbers if lowest else -numbers, kind="stable")  # NaN comes last either way
        return tuple(
            Found(self.rows[place], float(numbers[place])) for place in order[:count] if not np.isnan(numbers[place])
        )

    def grid(self, column: str | None = None) -> Floats:
        """One column as a map of the model; NaN where a layer has fewer heads.   -> (L, H)"""
        numbers = self[self._only() if column is None else column]
        layers = list(dict.fromkeys((row.kind, row.layer) for row in self.rows))
        groups = [
            [number for number, row in zip(numbers, self.rows, strict=True) if row[:2] == name] for name in layers
        ]
        whole = np.full((len(groups), max(map(len, groups), default=0)), np.nan)
        for line, group in zip(whole, groups, strict=True):
            line[: len(group)] = group
        return whole

    def _only(self) -> str:
        if len(self.columns) != 1:
            raise OptionError(f"the columns are {', '.join(self.columns)}; say which one.")
        return self.columns[0]

    def _place(self, column: str) -> int:
        if column not in self.columns:
            raise OptionError(f"there is no column {column!r}; the columns are {', '.join(self.columns)}.")
        return self.columns.index(column)

    def __repr__(self) -> str:
        return f"HeadTable({len(self.rows)} heads: {', '.join(self.columns)})"


def head_names(layers: tuple[Layer, ...]) -> tuple[HeadName, ...]:
    """A name for each head of some layers."""
    return tuple(HeadName(layer.kind, layer.index, head) for layer in layers for head in layer.head_numbers)

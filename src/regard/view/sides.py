"""The sides of a map: its tokens, or the places of tokens where a cell is many, written as far as there is room."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.ticker import MaxNLocator

from ..errors import OptionError, ShapeError
from .picture import caption, every

NAMES = ("query", "key")

Places = int | range  # how many tokens, or which


@dataclass(frozen=True, kw_only=True)
class Side:
    """The rows or the columns of a map: how many there are, and what is written beside them. Lengths are in points."""

    name: str
    count: int
    cell: float
    edges: tuple[float, float]  # the places at which the first begins and the last ends
    ticks: list[float]
    labels: list[str]
    letters: float  # the size of the labels

    @property
    def length(self) -> float:
        """Of all cells."""
        return self.count * self.cell

    @property
    def room(self) -> float:
        """From one label to the next."""
        apart = np.diff(self.ticks).min(initial=math.inf)
        return float(apart) * self.length / (self.edges[1] - self.edges[0])


def sides_of(
    shape: tuple[int, int], cells: tuple[float, float], rows: Sequence[str] | None, cols: Sequence[str] | None,
    places: tuple[Places, Places] | None,
) -> tuple[Side, Side]:  # fmt: skip
    """The rows and the columns of a map of that shape, whose cells are so many points high and wide."""
    if rows is None and cols is None:
        spans = _spans(places, shape)
        queries, keys = (_of_places(*side) for side in zip(NAMES, shape, cells, spans, strict=True))
    else:
        tokens = _tokens(rows, cols, places, shape)
        queries, keys = (_of_tokens(*side) for side in zip(NAMES, tokens, cells, strict=True))
    return queries, keys


def _tokens(
    rows: Sequence[str] | None, cols: Sequence[str] | None, places: object, shape: tuple[int, int]
) -> tuple[Sequence[str], Sequence[str]]:
    """The tokens of both sides, as many as there are rows and columns."""
    if rows is None or places is not None:
        raise OptionError("a map has tokens at its sides or places: give rows (and cols), or places.")
    cols = rows if cols is None else cols
    if (len(rows), len(cols)) != shape:
        raise ShapeError(
            f"the weights are {shape[0]} × {shape[1]}, queries × keys, and there are {len(rows)} tokens for the "
            f"queries and {len(cols)} for the keys."
        )
    return rows, cols


def _of_tokens(name: str, tokens: Sequence[str], cell: float) -> Side:
    """A side with a label for each token, or for every second, third and so on where they are many."""
    letters = min(10.0, max(6.0, cell * 0.8))  # no higher than a row, while they can be read
    ticks = every(len(tokens), letters * 1.2, cell)
    return Side(
        name=name,
        count=len(tokens),
        cell=cell,
        edges=(-0.5, len(tokens) - 0.5),
        ticks=[float(place) for place in ticks],
        labels=[caption(tokens[place]) for place in ticks],
        letters=letters,
    )


def _spans(places: tuple[Places, Places] | None, shape: tuple[int, int]) -> list[range]:
    """The tokens that each side stands for; its own where nothing is said."""
    if places is None:
        return [range(count) for count in shape]
    spans = [range(place) if isinstance(place, int) else place for place in places]
    if len(spans) != 2 or any(not isinstance(span, range) or span.step != 1 for span in spans):
        raise OptionError(f"places are {places!r}; give (queries, keys), each a number of tokens or a range of them.")
    if any(len(span) < count for span, count in zip(spans, shape, strict=True)):
        raise OptionError(
            f"a map of {shape[0]} × {shape[1]} cannot stand for {len(spans[0]):,} × {len(spans[1]):,} tokens; a "
            "cell is one token or more."
        )
    return spans


def _of_places(name: str, count: int, cell: float, span: range) -> Side:
    """A side with round numbers, and with its end where a cell is many tokens."""
    letters = 9.0
    needed = letters * (0.65 * len(f"{span.stop:,}") + 1.5)
    most = max(1, min(8, int(count * cell / needed)))
    found = MaxNLocator(most, integer=True, steps=[1, 2, 5, 10]).tick_values(span.start, span.stop)
    last = span.stop if len(span) > count else span.stop - 1
    ticks = [round(place) for place in found if span.start <= place <= last] or [span.start]
    return Side(
        name=name,
        count=count,
        cell=cell,
        edges=(span.start - 0.5, span.stop - 0.5),
        ticks=[min(float(place), span.stop - 0.5) for place in ticks],
        labels=[f"{place:,}" for place in ticks],
        letters=letters,
    )

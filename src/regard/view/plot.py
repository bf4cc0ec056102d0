"""Weights → a plot: the heat map of one head, of many side by side, or all heads of a model, as a matplotlib figure.

Figures are made without pyplot: no display is needed, no window opens, and none of the user's settings is changed.
"""

# H heads, Q queries (rows), K keys (columns)

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import MissingExtra, ShapeError
from .numbers import as_numbers
from .shades import BLACK, WHITE, contrast

try:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from .curves import layer_curves
    from .picture import COLOURS, HEADING, Style, caption, draw_bar, heading, saved, scale_of, shrunk, style_for
    from .sides import Places, Side, sides_of
    from .thumbnails import all_heads
except ModuleNotFoundError as missing:
    library = str(missing.name).partition(".")[0]
    raise MissingExtra(f"plots need {library}: pip install regard[plot]") from missing

__all__ = ["all_heads", "head_grid", "heat_map", "layer_curves"]

FEW = 16  # tokens on a side up to which there is a number in each cell
SIDE = 8.0 * 72  # points that the longer side of a map of many tokens takes
SHORT, SHORTEST = 1.5 * 72, 0.5 * 72  # and the shorter one at least: if it has the tokens for it, and at all
CELL, NUMBERED = 16.0, 36.0  # points: a cell at most, and one with a number in it
ACROSS = 4  # heads side by side while there are no more than four rows of them
CELLS = 800  # of a side that are drawn; where there are more, each shows the highest weight of some
NAME = 24  # terminal cells of the name of a head
INKS = {"black": BLACK, "white": WHITE}


def heat_map(
    weights: Any, rows: Sequence[str] | None = None, cols: Sequence[str] | None = None, *,
    places: tuple[Places, Places] | None = None, log: bool = False, title: str | None = None,
    path: str | Path | None = None,
) -> Figure:  # fmt: skip
    """One map: a row for each query, a column for each key, and a number in each cell while they are few.

    weights: (Q, K). rows: the tokens of the queries; without them the sides say places. cols: the tokens of the keys,
    where they are not those of the queries. places: of a pooled map, the tokens that its rows and its columns stand
    for, each as their number or a range: (100_000, range(4096, 8192)). log: a logarithmic scale of colours; long maps
    are near zero almost everywhere. path: where to save the figure as well, as .png, .svg or .pdf.
    Of more than 800 rows or columns, each cell that is drawn shows the highest weight of those it stands for.
    """
    table = as_numbers(weights, "weights", ("queries", "keys"))
    sheet = _sheet(table[None], rows, cols, names=[""], places=places, log=log, title=title)
    return saved(_figure(table[None], sheet), path)


def head_grid(
    weights: Any, rows: Sequence[str] | None = None, cols: Sequence[str] | None = None, *,
    names: Sequence[str] | None = None, places: tuple[Places, Places] | None = None, log: bool = False,
    title: str | None = None, path: str | Path | None = None,
) -> Figure:  # fmt: skip
    """A map for each head, side by side and on one scale of colours, so that heads can be compared.

    weights: (H, Q, K). names: what stands over each map, where it is not "head 0", "head 1" and so on. The other
    arguments are those of `heat_map`.
    """
    maps = as_numbers(weights, "weights", ("heads", "queries", "keys"))
    names = [f"head {head}" for head in range(len(maps))] if names is None else names
    sheet = _sheet(maps, rows, cols, names=names, places=places, log=log, title=title)
    return saved(_figure(maps, sheet), path)


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """How the maps of one figure are drawn, the same for all of them."""

    rows: Side
    cols: Side
    title: str
    names: list[str]
    style: Style
    scale: Normalize
    numbers: bool  # whether there is one in each cell

    @cached_property
    def turn(self) -> int:
        """Degrees by which the labels of the columns are turned, so that none runs into the next."""
        if self.style.width(self.cols.labels, self.cols.letters) < self.cols.room - 3:
            return 0
        return 45 if self.cols.room > self.cols.letters * 1.7 else 90

    def size(self, across: int, down: int) -> tuple[float, float]:
        """Inches for so many maps beside and below each other, with their labels, a colour bar and the title."""
        below = self.style.width(self.cols.labels, self.cols.letters) * math.sin(math.radians(self.turn))
        left = self.style.width(self.rows.labels, self.rows.letters)
        width = left + across * (self.cols.length + 14) + 100
        height = below + down * (self.rows.length + 26) + 40 + 20 * (self.title.count("\n") + 1)
        return max(width, self.style.width([self.title], HEADING) + 20) / 72, height / 72


def _sheet(
    maps: np.ndarray, rows: Sequence[str] | None, cols: Sequence[str] | None, *, names: Sequence[str],
    places: tuple[Places, Places] | None, log: bool, title: str | None,
) -> Sheet:  # fmt: skip
    """Everything about the figure but the weights; the arguments are those of `head_grid`, checked here."""
    if 0 in maps.shape:
        raise ShapeError(f"weights of shape {maps.shape} have nothing to draw.")
    heads, queries, keys = maps.shape
    if len(names) != heads:
        raise ShapeError(f"there are {heads} maps and {len(names)} names; each map needs one.")
    numbers = max(queries, keys) <= (FEW if heads == 1 else FEW // 2) and heads <= FEW
    cells = (NUMBERED, NUMBERED) if numbers else _cells(heads, queries, keys)
    sides = sides_of((queries, keys), cells, rows, cols, places)
    titles = [heading(title), *(caption(name, NAME) if name else "" for name in names)]
    return Sheet(
        rows=sides[0],
        cols=sides[1],
        title=titles[0],
        names=titles[1:],
        style=style_for([*titles, *sides[0].labels, *sides[1].labels]),
        scale=scale_of(maps, log=log),
        numbers=numbers,
    )


def _cells(heads: int, queries: int, keys: int) -> tuple[float, float]:
    """How high and how wide a cell is: a square, unless one side would be too short to be seen."""
    side = SIDE if heads == 1 else min(SIDE / 2, SIDE * 2 / math.sqrt(heads))
    square = min(CELL, side / max(queries, keys))
    high, wide = (max(square, min(CELL, SHORT / count), SHORTEST / count) for count in (queries, keys))
    return high, wide


def _figure(maps: np.ndarray, sheet: Sheet) -> Figure:
    """All maps in one figure, with one colour bar."""
    heads = len(maps)
    across = _across(heads)
    figure = Figure(figsize=sheet.size(across, math.ceil(heads / across)), layout="constrained")
    figure.suptitle(sheet.title, **sheet.style.of(HEADING))
    panels = list(figure.subplots(math.ceil(heads / across), across, squeeze=False).flat)
    for head, (axes, table, name) in enumerate(zip(panels, maps, sheet.names, strict=False)):
        _draw(axes, table, sheet, left=head % across == 0, lowest=head + across >= heads)
        axes.set_title(name, **sheet.style.of(10))
        if head == across - 1:
            draw_bar(axes, sheet.scale, "weight", sheet.style, (sheet.cols.length, sheet.rows.length))
    for axes in panels[heads:]:
        axes.set_axis_off()
    return figure


def _across(heads: int) -> int:
    """How many maps stand side by side, with few places left over."""
    most = max(ACROSS, math.ceil(math.sqrt(heads * 1.5)))
    if heads <= most:
        return heads
    return min(range(most, most // 2, -1), key=lambda columns: max(-heads % columns, heads // 16))


def _draw(axes: Axes, table: np.ndarray, sheet: Sheet, *, left: bool, lowest: bool) -> None:
    """One map, with the labels of its rows if it is a left one, and of its columns if none is below it."""
    # Said outright, since styles that users choose change it: the first query is on top, and there are no grid lines.
    rows, cols = sheet.rows, sheet.cols
    extent = (*cols.edges, rows.edges[1], rows.edges[0])
    finite = np.ma.masked_invalid(shrunk(table, CELLS))
    image = axes.imshow(finite, cmap=COLOURS, norm=sheet.scale, origin="upper", extent=extent, interpolation="auto")
    per_place = [side.length / (side.edges[1] - side.edges[0]) for side in (rows, cols)]
    axes.set_aspect(per_place[0] / per_place[1])
    axes.grid(visible=False)
    axes.set_anchor("N")  # under its title; room to spare goes below
    for axis, side, wanted in ((axes.yaxis, rows, left), (axes.xaxis, cols, lowest)):
        labels = side.labels if wanted else [""] * len(side.labels)
        axis.set_ticks(side.ticks, labels, **sheet.style.of(side.letters))
        axis.set_label_text(side.name if wanted else "", **sheet.style.of(11))
    _turn(axes, sheet)
    axes.tick_params(length=0 if sheet.numbers else 2)
    if sheet.numbers:
        _write_numbers(axes, image, table, sheet)


def _turn(axes: Axes, sheet: Sheet) -> None:
    """Turn the labels of the columns where they are long, and keep those of places between the edges."""
    labels = axes.get_xticklabels()
    if sheet.turn:
        upright = "center" if sheet.turn == 90 else "top"
        for text in labels:
            text.set(rotation=sheet.turn, rotation_mode="anchor", ha="right", va=upright)
    elif sheet.cols.ticks[-1] == sheet.cols.edges[1]:  # an end, and the next map may begin there
        labels[0].set_horizontalalignment("left")
        labels[-1].set_horizontalalignment("right")


def _write_numbers(axes: Axes, image: AxesImage, table: np.ndarray, sheet: Sheet) -> None:
    """The weight in each cell, in black or white."""
    colours = image.to_rgba(np.ma.masked_invalid(table))
    down, right = (np.linspace(*side.edges, 2 * side.count + 1)[1::2] for side in (sheet.rows, sheet.cols))
    peak = float(np.max(table, initial=0.0, where=np.isfinite(table)))
    digits = 2 if peak >= 0.1 or peak == 0 else 3 if peak >= 0.01 else 4  # as many as tell the cells apart
    for (row, col), weight in np.ndenumerate(table):
        ink = _readable(colours[row, col])
        place = float(right[col]), float(down[row])
        axes.text(*place, _number(weight, digits), ha="center", va="center", color=ink, **sheet.style.of(8.5))


def _number(weight: float, digits: int) -> str:
    return "0" if weight == 0 else f"{weight:.{digits}f}"


def _readable(colour: np.ndarray) -> str:
    """Black or white, whichever stands out more on `colour`."""
    red, green, blue = (round(255 * float(part)) for part in colour[:3])
    return max(INKS, key=lambda ink: contrast(INKS[ink], (red, green, blue)))

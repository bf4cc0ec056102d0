"""Weights → a plot: the heat map of one head, or of many side by side, as a matplotlib figure.

Figures are made without pyplot: no display is needed, no window opens, and none of the user's settings is changed.
"""

# H heads, Q queries (rows), K keys (columns)

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.cells import cell_len

from ..errors import FileError, MissingExtra, OptionError, ShapeError
from .labels import label
from .numbers import as_numbers
from .shades import BLACK, WHITE, contrast

try:
    from matplotlib import colormaps
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from .fonts import drawable, families_for
except ModuleNotFoundError as missing:
    raise MissingExtra(f"plots need {missing.name}: pip install regard[plot]") from missing

__all__ = ["head_grid", "heat_map"]

COLOURS = colormaps["viridis"].with_extremes(bad="lightgrey")  # equal steps look equal, also to the colour-blind
KINDS = ("png", "svg", "pdf")
LABEL = 14  # terminal cells of a label; a longer token is cut
FEW = 16  # tokens on a side up to which there is a number in each cell
SIDE = 8.0  # inches that the longer side of a map of many tokens takes
ACROSS = 4  # heads side by side, at most
HEADING = 13.0  # points
INKS = {"black": BLACK, "white": WHITE}


def heat_map(
    weights: Any, rows: Sequence[str], cols: Sequence[str] | None = None, *, title: str | None = None,
    path: str | Path | None = None,
) -> Figure:  # fmt: skip
    """One map: a row for each query, a column for each key, and a number in each cell while they are few.

    weights: (Q, K). cols: the tokens of the keys, where they are not those of the queries. path: where to save the
    figure as well, as .png, .svg or .pdf.
    """
    table = as_numbers(weights, "weights", ("queries", "keys"))
    sheet = _sheet(table[None], rows, rows if cols is None else cols, title or "")
    return _saved(_figure(table[None], [""], sheet), path)


def head_grid(
    weights: Any, rows: Sequence[str], cols: Sequence[str] | None = None, *, title: str | None = None,
    path: str | Path | None = None,
) -> Figure:  # fmt: skip
    """A map for each head, side by side and on one scale of colours, so that heads can be compared.

    weights: (H, Q, K). The other arguments are those of `heat_map`.
    """
    maps = as_numbers(weights, "weights", ("heads", "queries", "keys"))
    sheet = _sheet(maps, rows, rows if cols is None else cols, title or "")
    return _saved(_figure(maps, [f"head {head}" for head in range(len(maps))], sheet), path)


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """How the maps of one figure are drawn, the same for all of them. Lengths are in points, 72 to an inch."""

    rows: list[str]
    cols: list[str]
    title: str
    families: list[str]
    highest: float  # the weight that has the brightest colour
    numbers: bool  # whether there is one in each cell
    cell: float  # the side of a cell

    @property
    def letters(self) -> float:
        """The size of the labels: no higher than a row, while they can be read."""
        return min(10.0, max(6.0, self.cell * 0.8))

    @property
    def step(self) -> int:
        """Every which label is written, so that none lies upon the next."""
        return math.ceil(self.letters * 1.2 / self.cell)

    @property
    def turn(self) -> int:
        """Degrees by which the labels of the columns are turned, so that none runs into the next."""
        room = self.cell * self.step
        if _width(self.cols, self.letters) < room - 3:
            return 0
        return 45 if room > self.letters * 1.7 else 90

    def size(self, across: int, down: int) -> tuple[float, float]:
        """Inches for so many maps beside and below each other, with their labels, a colour bar and the title."""
        below = _width(self.cols, self.letters) * math.sin(math.radians(self.turn))
        width = _width(self.rows, self.letters) + across * (len(self.cols) * self.cell + 14) + 90
        height = below + down * (len(self.rows) * self.cell + 26) + 60
        return max(width, _width(self.title.splitlines(), HEADING) + 20) / 72, height / 72

    def style(self, letters: float) -> dict[str, Any]:
        """Of every text: fonts that have its characters, and a $ that is a $."""
        return {"fontsize": letters, "fontfamily": self.families, "fontweight": "normal", "parse_math": False}


def _sheet(maps: np.ndarray, rows: Sequence[str], cols: Sequence[str], title: str) -> Sheet:
    heads, queries, keys = maps.shape
    if (queries, keys) != (len(rows), len(cols)):
        raise ShapeError(
            f"the weights are {queries} × {keys}, queries × keys, and there are {len(rows)} tokens for the queries "
            f"and {len(cols)} for the keys."
        )
    if 0 in maps.shape:
        raise ShapeError(f"weights of shape {maps.shape} have nothing to draw.")
    row_labels, col_labels = ([_label(str(token)) for token in tokens] for tokens in (rows, cols))
    lines = [drawable(line) for line in title.splitlines()]
    longest = max(queries, keys)
    few, side = (FEW, SIDE) if heads == 1 else (FEW // 2, SIDE / 2)
    return Sheet(
        rows=row_labels,
        cols=col_labels,
        title="\n".join(lines),
        families=families_for(row_labels + col_labels + lines),
        highest=float(np.max(maps, initial=0, where=np.isfinite(maps))) or 1.0,
        numbers=longest <= few,
        cell=36.0 if longest <= few else min(16.0, side * 72 / longest),
    )


def _figure(maps: np.ndarray, names: Sequence[str], sheet: Sheet) -> Figure:
    """All maps in one figure, with one colour bar."""
    heads = len(maps)
    across = heads if heads <= ACROSS else min(range(ACROSS, 1, -1), key=lambda columns: -heads % columns)
    down = math.ceil(heads / across)
    figure = Figure(figsize=sheet.size(across, down), layout="constrained")
    figure.suptitle(sheet.title, **sheet.style(HEADING))
    panels = list(figure.subplots(down, across, squeeze=False).flat)
    for head, (axes, table, name) in enumerate(zip(panels, maps, names, strict=False)):
        image = _draw(axes, table, sheet, left=head % across == 0, lowest=head + across >= heads)
        axes.set_title(name, **sheet.style(10))
        if head == across - 1:
            _draw_bar(figure, axes, image, sheet)
    for axes in panels[heads:]:
        axes.set_axis_off()
    return figure


def _draw(axes: Axes, table: np.ndarray, sheet: Sheet, *, left: bool, lowest: bool) -> AxesImage:
    """One map, with the labels of its rows if it is a left one, and of its columns if none is below it."""
    # Said outright, since styles that users choose change it: the first query is on top, and there are no grid lines.
    finite = np.ma.masked_invalid(table)
    image = axes.imshow(finite, cmap=COLOURS, vmin=0, vmax=sheet.highest, origin="upper", aspect="equal")
    axes.grid(visible=False)
    axes.set_anchor("N")  # under its title; room to spare goes below
    for axis, name, labels, wanted in (
        (axes.yaxis, "query", sheet.rows, left),
        (axes.xaxis, "key", sheet.cols, lowest),
    ):
        places = range(0, len(labels), sheet.step)
        axis.set_ticks(places, [labels[place] if wanted else "" for place in places], **sheet.style(sheet.letters))
        axis.set_label_text(name if wanted else "", **sheet.style(11))
    if sheet.turn:
        upright = "center" if sheet.turn == 90 else "top"
        for text in axes.get_xticklabels():
            text.set(rotation=sheet.turn, rotation_mode="anchor", ha="right", va=upright)
    axes.tick_params(length=0 if sheet.numbers else 2)
    if sheet.numbers:
        _write_numbers(axes, image, table)
    return image


def _draw_bar(figure: Figure, axes: Axes, image: AxesImage, sheet: Sheet) -> None:
    """The colour bar, as high as the map beside it, whatever its shape."""
    width = len(sheet.cols) * sheet.cell
    bar = axes.inset_axes((1 + 10 / width, 0, 12 / width, 1))
    figure.colorbar(image, cax=bar)
    bar.set_ylabel("weight", **sheet.style(10))


def _write_numbers(axes: Axes, image: AxesImage, table: np.ndarray) -> None:
    colours = image.to_rgba(np.ma.masked_invalid(table))
    for (row, col), weight in np.ndenumerate(table):
        text = "0" if weight == 0 else f"{weight:.2f}"
        axes.text(col, row, text, ha="center", va="center", fontsize=8.5, color=_readable(colours[row, col]))


def _readable(colour: np.ndarray) -> str:
    """Black or white, whichever stands out more on `colour`."""
    red, green, blue = (round(255 * float(part)) for part in colour[:3])
    return max(INKS, key=lambda ink: contrast(INKS[ink], (red, green, blue)))


def _label(token: str) -> str:
    """A token as it is written at the side: safe, short, and with characters that can be drawn."""
    return label(drawable(label(token, LABEL)), LABEL)


def _width(texts: Sequence[str], letters: float) -> float:
    """About how wide the widest of some texts is, in points."""
    return max(map(cell_len, texts), default=0) * letters * 0.6


def _saved(figure: Figure, path: str | Path | None) -> Figure:
    """`figure`, written to `path` by way of a temporary name: nobody ever finds half a picture there."""
    if path is None:
        return figure
    path = Path(path)
    kind = path.suffix.removeprefix(".").lower()
    if kind not in KINDS:
        raise OptionError(f"{path} says no kind of picture; let it end in .{', .'.join(KINDS)}.")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        figure.savefig(unfinished, format=kind, dpi=200, bbox_inches="tight")
        unfinished.replace(path)
    except OSError as reason:
        raise FileError(f"cannot write {path}: {reason.strerror}.") from reason
    finally:
        unfinished.unlink(missing_ok=True)
    return figure

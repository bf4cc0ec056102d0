"""All heads of a model in one figure: a thumbnail of each map, a row for each layer."""

# L layers, H heads, h and w the rows and columns of a pooled map

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from ..errors import ShapeError
from .numbers import as_numbers
from .picture import COLOURS, HEADING, Style, draw_bar, every, heading, layer_names, saved, scale_of, shrunk, style_for

TILE, SHEET = 60.0, 13 * 72.0  # points that a thumbnail takes with its margin, and all of them, at most
FEW = 6 * 72.0  # points that all of them take at least, if thumbnails twice or three times as large will do it
PIXELS = 4000  # of the whole, in either direction: about what a saved picture has
SMALL = 24  # pixels of a map that is smaller, so that its margin is thin
MARGIN = 0.05  # of a map, on each side
LETTERS = 9.0


def all_heads(
    maps: Any, *, layers: Sequence[str | int] | None = None, one_scale: bool = False, log: bool = False,
    title: str | None = None, path: str | Path | None = None,
) -> Figure:  # fmt: skip
    """A thumbnail of every head, a row for each layer; brightest where the head's own highest weight is.

    maps: (L, H, h, w), pooled weights; all NaN where a layer has no such head, and the place stays empty. layers: what
    the rows are called, where it is not 0, 1, 2 and so on. one_scale: the same colours for the same weights in all
    heads. log: a logarithmic scale of colours. path: where to save the figure as well, as .png, .svg or .pdf.
    """
    tables = as_numbers(maps, "maps", ("layers", "heads", "rows", "columns"))
    if 0 in tables.shape:
        raise ShapeError(f"maps of shape {tables.shape} have nothing to draw.")
    names = layer_names(layers, len(tables))
    shares = _sized(tables) if one_scale else _of_the_highest(_sized(tables))
    scale = scale_of(shares, log=log)
    text = heading(title)
    style = style_for([text, *names])
    page = _page(tables.shape, names, text, style)
    page.axes.imshow(_mosaic(shares, scale), extent=page.extent, aspect=page.down / page.across, interpolation="auto")
    draw_bar(page.axes, scale, "weight" if one_scale else "share of the head's\nhighest weight", style, page.size)
    return saved(page.figure, path)


@dataclass(frozen=True, kw_only=True)
class Page:
    """A figure for thumbnails, and how many points each takes."""

    figure: Figure
    axes: Axes
    heads: int
    layers: int
    across: float
    down: float

    @property
    def size(self) -> tuple[float, float]:
        """The width and height of all of them."""
        return self.heads * self.across, self.layers * self.down

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top, so that head 0 of layer 0 has its middle at 0, 0."""
        return -0.5, self.heads - 0.5, self.layers - 0.5, -0.5


def _of_the_highest(tables: np.ndarray) -> np.ndarray:
    """Each weight as a share of the highest of its head."""
    highest = np.max(tables, axis=(2, 3), keepdims=True, initial=0, where=np.isfinite(tables))
    return tables / np.where(highest > 0, highest, 1.0)


def _sized(tables: np.ndarray) -> np.ndarray:
    """Maps of no more pixels than can be seen, and small ones with larger pixels."""
    tables = shrunk(tables, max(SMALL, PIXELS // max(tables.shape[:2])))
    times = max(1, SMALL // max(tables.shape[2:]))
    return tables.repeat(times, axis=2).repeat(times, axis=3)


def _mosaic(shares: np.ndarray, scale: Normalize) -> np.ndarray:
    """One picture of all maps, each with a margin nobody sees.   (L, H, h, w) -> (L·(h+2m), H·(w+2m), 4)"""
    layers, heads, high, wide = shares.shape
    flat = np.ma.masked_invalid(shares).ravel()  # a logarithmic scale takes no more axes
    colours = COLOURS(scale(flat), bytes=True).reshape(*shares.shape, 4)
    colours[np.isnan(shares).all(axis=(2, 3))] = 0
    margin = math.ceil(MARGIN * max(high, wide))
    around = ((0, 0), (0, 0), (margin, margin), (margin, margin), (0, 0))
    tiles = np.pad(colours, around)  # with zeros: see-through
    return tiles.swapaxes(1, 2).reshape(layers * tiles.shape[2], heads * tiles.shape[3], 4)


def _page(shape: tuple[int, ...], names: list[str], text: str, style: Style) -> Page:
    """An empty figure, with the numbers of layers and heads at its sides."""
    layers, heads, high, wide = shape
    slant = min(3.0, max(1 / 3, high / wide))  # of a map: its height for its width
    longest = max(heads, layers * slant)
    across = min(SHEET / longest, max(TILE / max(1.0, slant), min(3 * TILE, FEW / longest)))
    width = max(heads * across + style.width(names, LETTERS) + 130, style.width([text], HEADING) + 20)
    height = max(layers * across * slant, 2 * TILE) + 90 + 20 * text.count("\n")
    figure = Figure(figsize=(width / 72, height / 72), layout="constrained")
    figure.suptitle(text, **style.of(HEADING))
    page = Page(figure=figure, axes=figure.subplots(), heads=heads, layers=layers, across=across, down=across * slant)
    _write_numbers(page, names, style)
    return page


def _write_numbers(page: Page, names: list[str], style: Style) -> None:
    """The layers at the left and the heads on top, as many as there is room for; those of a high page below as well."""
    axes, heads = page.axes, [str(head) for head in range(page.heads)]
    for axis, name, labels, needed, room in (
        (axes.yaxis, "layer", names, LETTERS * 1.2, page.down),
        (axes.xaxis, "head", heads, style.width(heads, LETTERS) + 4, page.across),
    ):
        places = every(len(labels), needed, room)
        axis.set_ticks(places, [labels[place] for place in places], **style.of(LETTERS))
        axis.set_label_text(name, **style.of(11))
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0, top=True, bottom=False, labeltop=True, labelbottom=page.size[1] > 8 * 72)
    axes.grid(visible=False)
    axes.set_frame_on(False)
    axes.set_anchor("N")

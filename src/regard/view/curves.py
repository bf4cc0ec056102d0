"""Numbers about every head, layer by layer: entropy and distance as dots, with the mean of each layer as a line."""

# L layers, H heads

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..errors import ShapeError
from .numbers import as_numbers
from .picture import COLOURS, HEADING, Style, every, heading, layer_names, saved, style_for

DOT, LINE = COLOURS(0.62), COLOURS(0.2)
LETTERS = 9.0


def layer_curves(
    entropy: Any, distance: Any, *, layers: Sequence[str | int] | None = None, title: str | None = None,
    path: str | Path | None = None,
) -> Figure:  # fmt: skip
    """Two panels over the layers: how widely the heads spread their attention, and how far back it goes.

    entropy, distance: (L, H), the means of each head, in nats and in tokens; NaN where a layer has no such head.
    layers: what the layers are called, where it is not 0, 1, 2 and so on. path: where to save the figure as well, as
    .png, .svg or .pdf.
    """
    spread, reach = (
        as_numbers(numbers, name, ("layers", "heads"))
        for numbers, name in ((entropy, "entropy"), (distance, "distance"))
    )
    if spread.shape != reach.shape or 0 in spread.shape:
        raise ShapeError(f"entropy is {spread.shape} and distance {reach.shape}; both must be (layers, heads).")
    names = layer_names(layers, len(spread))
    text = heading(title)
    style = style_for([text, *names])
    wide = min(14.0, max(6.0, 3 + len(names) * 0.3, style.width([text], HEADING) / 72 + 0.3))
    figure = Figure(figsize=(wide, 6 + 0.28 * text.count("\n")), layout="constrained")
    figure.suptitle(text, **style.of(HEADING))
    upper, lower = figure.subplots(2, sharex=True)
    _draw(upper, spread, "mean entropy (nats)", style)
    _draw(lower, reach, "mean distance (tokens)", style)
    _name_layers(lower, names, (wide - 1) * 72 / len(names), style)
    upper.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, prop={"size": LETTERS})
    return saved(figure, path)


def _draw(axes: Axes, numbers: np.ndarray, name: str, style: Style) -> None:
    """A dot for each head, and a line through the means of the layers."""
    layer, head = np.nonzero(np.isfinite(numbers))
    heads = axes.plot(layer, numbers[layer, head], "o", color=DOT, alpha=0.55, markersize=5, label="a head")
    heads[0].set(markeredgewidth=0, clip_on=False)  # one at 0 is whole
    known = np.unique(layer)  # a layer without heads has no mean
    means = [float(numbers[row][np.isfinite(numbers[row])].mean()) for row in known]
    axes.plot(known, means, "-", color=LINE, linewidth=2, label="mean of the layer")
    axes.set_ylabel(name, **style.of(11))
    axes.set_ylim(bottom=numbers[layer, head].min(initial=0.0))
    axes.grid(visible=True, axis="y", alpha=0.3)
    axes.tick_params(labelsize=LETTERS)
    axes.yaxis.set_major_formatter("{x:,g}")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _name_layers(axes: Axes, names: list[str], room: float, style: Style) -> None:
    """The layers at the bottom, as many as there is room for, and turned where they are long."""
    level = style.width(names, LETTERS) < room - 3
    places = range(len(names)) if level else every(len(names), LETTERS * 1.2, room)
    axes.xaxis.set_ticks(places, [names[place] for place in places], **style.of(LETTERS))
    axes.set_xlabel("layer", **style.of(11))
    axes.set_xlim(-0.5, len(names) - 0.5)
    if not level:
        for text in axes.get_xticklabels():
            text.set(rotation=90, ha="center", va="top")

"""A record as a plot: one head, all heads of a layer, or every head of the model."""

from os import PathLike, fspath
from typing import TYPE_CHECKING

import numpy as np

from .numbers import as_numbers
from .plot import all_heads, head_grid, heat_map, layer_curves
from .seen import Choice, Side, choose, layer_at

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..record import Layer, Record

__all__ = ["plot", "plot_choice", "plot_spread"]

DENSE = 400  # tokens on a side up to which every weight is drawn; beyond that, what lies under a pixel is pooled
POOLED = 512
THUMBNAIL = 48


def plot(
    record: "Record", path: str | PathLike[str] | None = None, *, layer: int | None = None, head: int | None = None,
    words: bool = False, log: bool | None = None, title: str | None = None,
) -> "Figure":  # fmt: skip
    """One head where both are said, all heads of a layer where only that is, and every head where neither is.

    words: pieces put together to words. log: a logarithmic scale of colours, as long maps of tokens want; unless said,
    where they are long. title: the model's name unless said.
    """
    title = record.model or "attention" if title is None else title
    if layer is None and head is None:
        return _every_head(record, path, words=words, log=log, title=title)
    if head is None:
        return _heads_of(layer_at(record, layer), path, words=words, log=log, title=title)
    return plot_choice(choose(record, layer, head, words=words), path, title=title, log=log)


def plot_choice(
    choice: Choice, path: str | PathLike[str] | None = None, *, title: str = "", log: bool | None = None
) -> "Figure":
    """What was chosen of a record, as a heat map."""
    rows, cols = choice.rows.labels, choice.cols.labels
    title = f"{title}\n{choice.name}" if title else choice.name
    if max(len(rows), len(cols)) <= DENSE:
        return heat_map(choice.weights(), rows, cols, title=title, log=bool(log), path=_plain(path))
    pooled = choice.sight.pooled(POOLED, POOLED, rows=choice.rows.part, cols=choice.cols.part)
    places = len(choice.rows.shown), len(choice.cols.shown)
    return heat_map(pooled, places=places, log=log is not False, title=title, path=_plain(path))


def plot_spread(record: "Record", path: str | PathLike[str] | None = None, *, title: str | None = None) -> "Figure":
    """Entropy and distance of every head, layer by layer."""
    heads = max(len(layer.heads) for layer in record.layers)
    entropy, distance = np.full((2, len(record.layers), heads), np.nan)
    for place, layer in enumerate(record.layers):
        entropy[place, : len(layer.heads)] = as_numbers(layer.entropy(), "entropy", ("heads", "queries")).mean(-1)
        distance[place, : len(layer.heads)] = as_numbers(layer.distance(), "distance", ("heads", "queries")).mean(-1)
    names = [str(layer.index) for layer in record.layers]
    title = record.model or "attention" if title is None else title
    return layer_curves(entropy, distance, layers=names, title=title, path=_plain(path))


def _every_head(
    record: "Record", path: str | PathLike[str] | None, *, words: bool, log: bool | None, title: str
) -> "Figure":
    layers = record.layers
    maps = [
        as_numbers(_of_words(layer) if words else layer.pooled(THUMBNAIL, THUMBNAIL), "maps", ("heads", "rows", "cols"))
        for layer in layers
    ]
    heads, rows, cols = (max(one.shape[axis] for one in maps) for axis in range(3))
    whole = np.full((len(maps), heads, rows, cols), np.nan)
    for place, one in enumerate(maps):
        whole[place, : len(one)] = _stretched(one, rows, cols)
    kinds = {layer.kind for layer in layers}
    names = [f"{layer.index}" if len(kinds) == 1 else f"{layer.index} {layer.kind}" for layer in layers]
    return all_heads(whole, layers=names, title=title, log=bool(log), path=_plain(path))


def _heads_of(own: "Layer", path: str | PathLike[str] | None, *, words: bool, log: bool | None, title: str) -> "Figure":
    names = [f"head {number}" for number in own.head_numbers]
    title = f"{title}\nlayer {own.index} ({own.kind})"
    _, rows, cols = own.map.shape
    if words:
        sides = own.queries[0].words, own.keys[0].words
        return head_grid(_of_words(own), *sides, names=names, title=title, log=bool(log), path=_plain(path))
    if max(rows, cols) <= DENSE // 2:
        tokens = Side(own.queries[0]).labels, Side(own.keys[0]).labels
        return head_grid(own.weights(), *tokens, names=names, title=title, log=bool(log), path=_plain(path))
    pooled = own.pooled(POOLED // 2, POOLED // 2)
    return head_grid(pooled, names=names, places=(rows, cols), title=title, log=log is not False, path=_plain(path))


def _stretched(maps: np.ndarray, rows: int, cols: int) -> np.ndarray:
    """Maps of fewer cells drawn as large as the others: each cell several times."""
    down, across = (np.arange(size) * own // size for size, own in zip((rows, cols), maps.shape[1:], strict=True))
    return maps[:, down][:, :, across]


def _of_words(layer: "Layer") -> np.ndarray:
    """What the words of a layer's text give to each other.   -> (H, words, words)"""
    found = layer.grouped(layer.queries[0].word_edges, layer.keys[0].word_edges)
    return as_numbers(found, "weights", ("heads", "words", "words"))


def _plain(path: str | PathLike[str] | None) -> str | None:
    return None if path is None else fspath(path)

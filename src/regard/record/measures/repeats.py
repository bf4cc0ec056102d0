"""What heads give to tokens that came before, and to those that came after them: duplicate and induction heads."""

# H heads, Q queries, K keys; R rows and C columns of a tile

from collections.abc import Iterator
from typing import NamedTuple

import array_api_compat as compat
import numpy as np
from numpy.typing import NDArray

from ...formula.arrays import Array, Library, quiet
from ...formula.normalize import divided
from ...formula.threads import in_parallel
from ..record import Layer
from .chosen import weights_at
from .subject import Floats, floats, problem_of

__all__ = ["lacks_repeats", "lacks_texts", "on_repeats"]

ROWS = 128  # of a tile
ROOM = 2**20  # scores of a tile, of all heads together

Places = NDArray[np.int64]


class Tile(NamedTuple):
    """Rows and columns of which some, not next to each other in the map, belong together."""

    rows: Places  # of queries
    cols: Places  # of keys
    together: NDArray[np.bool_]  # (R, C): whether the key is an earlier token with the query's own text


def on_repeats(layer: Layer, step: int) -> Floats:
    """What each query whose token came before gives to the keys `step` after those earlier ones, on average.   -> (H,)

    Rows and columns are taken in the order of their texts, so equal tokens lie together and the tiles around them are
    all that is computed: some hundredths of the map in a written text, half of it where one token is all there is.
    """
    problem, lse, texts = problem_of(layer), layer.log_sum_exp(), _Texts(layer)
    library, xp = Library.of(problem.query), problem.xp
    width = max(1, ROOM // (ROWS * problem.shape[0]))

    def given(rows: Places) -> Array:
        total = xp.zeros(problem.shape[0], dtype=problem.wide, device=library.device)
        for tile in _tiles(texts, rows, width):
            cols = library.asarray(tile.cols + step)
            weights = weights_at(problem, library.asarray(tile.rows), cols, lse)
            total = total + xp.sum(xp.where(library.asarray(tile.together), weights, 0.0), axis=(-2, -1))
        return total

    runs = [texts.repeated[first : first + ROWS] for first in range(0, len(texts.repeated), ROWS)]
    with quiet(xp):
        totals = in_parallel(given, runs) if compat.is_numpy_namespace(xp) else [given(rows) for rows in runs]
    return floats(divided(xp, sum(totals[1:], start=totals[0]), _seeing(texts, lse, library)))


def lacks_texts(layer: Layer) -> str | None:
    """Why texts cannot be compared, in words."""
    _, queries, keys = layer.map.shape
    rows, cols = layer.queries[0].texts, layer.keys[0].texts
    if (len(rows), len(cols)) != (queries, keys):
        return (
            f"layer {layer.index} is {queries} × {keys}, queries × keys, and the tokens are {len(rows)} and "
            f"{len(cols)}; give them with record.labelled"
        )
    if not any(rows) or not any(cols):
        return f"the tokens of layer {layer.index} have no texts; give them with record.labelled"
    return None


def lacks_repeats(layer: Layer) -> str | None:
    """Why there is nothing to measure, in words."""
    if layer.kind == "cross":
        return f"layer {layer.index} is cross-attention: its keys are another text, and none of them comes earlier"
    missing = lacks_texts(layer)
    if missing is None and not len(_Texts(layer).repeated):
        return (
            f"none of the {len(layer.queries[0])} tokens in layer {layer.index} came before; take a text that repeats"
        )
    return missing


class _Texts:
    """Texts as numbers, keys in the order of their texts, and the queries whose text came before."""

    def __init__(self, layer: Layer) -> None:
        numbers: dict[str, int] = {}
        rows, cols = (
            np.asarray([numbers.setdefault(text, len(numbers)) for text in tokens.texts], dtype=np.int64)
            for tokens in (layer.queries[0], layer.keys[0])
        )
        self.rows, self.cols = rows, cols
        self.places: Places = np.arange(len(rows)) + layer.map.offset  # of the queries, among the keys
        self.order: Places = np.argsort(cols, kind="stable")  # keys with one text lie together, the earliest first
        self.begins: Places = np.searchsorted(cols[self.order], np.arange(len(numbers) + 1))
        first = np.full(len(numbers), len(cols) + len(rows))
        np.minimum.at(first, cols, np.arange(len(cols)))
        repeated = np.flatnonzero(first[rows] < self.places)
        self.repeated: Places = repeated[np.argsort(rows[repeated], kind="stable")]


def _tiles(texts: _Texts, rows: Places, width: int) -> Iterator[Tile]:
    """The tiles in which some rows, which are in the order of their texts, have earlier tokens like them."""
    mine, places = texts.rows[rows], texts.places[rows]
    keys = texts.order[texts.begins[mine[0]] : texts.begins[mine[-1] + 1]]
    keys = keys[keys < places.max()]
    for begin in range(0, len(keys), width):
        cols = keys[begin : begin + width]
        together = (mine[:, None] == texts.cols[cols]) & (cols < places[:, None])
        if together.any():
            yield Tile(rows, cols, together)


def _seeing(texts: _Texts, lse: Array, library: Library) -> Array:
    """How many of the queries whose token came before may see anything.   -> (H,)"""
    xp, repeated = library.xp, library.asarray(texts.repeated)
    return xp.sum(xp.astype(xp.take(lse, repeated, axis=-1) > -xp.inf, lse.dtype), axis=-1)

"""A head at a glance, from a few of its rows: a thumbnail and the five scores, where all rows would take too long."""

# Q queries, K keys; R rows that are looked at

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...formula.arrays import quiet
from ...formula.pooling import even_edges
from ...record import Head
from .coding import Numbers, host

__all__ = ["SCORES", "THUMBNAIL", "Glimpse", "glimpse", "pooled_columns"]

SCORES = ("entropy", "distance", "sink", "induction", "previous_token")
THUMBNAIL = 48  # cells of a side, at most


@dataclass(frozen=True, eq=False)
class Glimpse:
    """What a few rows of a head tell of it."""

    thumbnail: NDArray[np.float32]  # (h, w)
    scores: dict[str, float | None]  # None where a score has no meaning
    step: int  # one row in so many was looked at; 1: all of them, and nothing is estimated


def glimpse(head: Head, rows: int = THUMBNAIL) -> Glimpse:
    """The exact weights of a few rows, spread evenly, and what they tell of the whole head. O(rows × K) memory."""
    queries, keys = head.shape
    count = min(rows, queries)
    if not count or not keys:
        nothing = np.zeros((min(count, THUMBNAIL), min(keys, THUMBNAIL)), dtype=np.float32)
        return Glimpse(nothing, dict.fromkeys(SCORES), 1)
    places = (2 * np.arange(count) + 1) * queries // (2 * count)  # the middle of each part
    few = _Rows(head, places)
    edges = even_edges(range(count), THUMBNAIL)
    small = np.add.reduceat(pooled_columns(few.weights), edges[:-1], axis=0) / np.diff(edges)[:, None]
    return Glimpse(small.astype(np.float32, copy=False), few.scores(), -(-queries // count))


def pooled_columns(weights: Numbers, width: int = THUMBNAIL) -> Numbers:
    """Each row in at most `width` cells, the mean of the weights under each.   (.., K) -> (.., width)"""
    edges = even_edges(range(weights.shape[-1]), width)
    sums: Numbers = np.add.reduceat(weights, edges[:-1], axis=-1)
    means: Numbers = sums / np.diff(edges).astype(weights.dtype)
    return means


class _Rows:
    """A few rows of a head: their weights, and what is measured by them."""

    def __init__(self, head: Head, rows: NDArray[np.int64]) -> None:
        self.layer, self.rows = head.layer, rows
        self.places = rows + head.map.offset  # among the keys
        scores, allowed = _scores(head, rows)
        peak = np.max(scores, axis=-1, keepdims=True)
        sinks = head.map.sinks
        sink = None if sinks is None else np.float32(host(sinks)[head.place])
        peak = np.where(np.isfinite(peak), peak, 0) if sink is None else np.maximum(peak, sink)
        with np.errstate(invalid="ignore", over="ignore"):
            scores -= peak
            self.weights: Numbers = np.exp(scores)
        total = self.weights.sum(axis=-1, keepdims=True)
        total = total if sink is None else total + np.exp(sink - peak)
        self.weights /= np.where(total == 0, 1, total)
        self.seeing = total[:, 0] != 0
        # −Σ w·log w, with log w = score − log of the total: no logarithm of each weight is needed
        np.maximum(scores, np.finfo(scores.dtype).min, out=scores)  # 0·(−inf) is NaN
        mass = self.weights.sum(axis=-1)
        spread = np.log(np.where(total == 0, 1, total))[:, 0] * mass - np.einsum("rk,rk->r", self.weights, scores)
        self.entropy = np.maximum(spread, 0)
        self.first = 0 if allowed is None else int(allowed.any(axis=0).argmax())

    def scores(self) -> dict[str, float | None]:
        """The means over the rows that may see anything."""
        keys = np.arange(self.weights.shape[-1], dtype=self.weights.dtype)
        distance = np.asarray(
            [row @ np.abs(keys - keys.dtype.type(place)) for row, place in zip(self.weights, self.places, strict=True)]
        )
        found = {
            "entropy": self._mean(self.entropy),
            "distance": self._mean(distance),
            "sink": self._mean(self.weights[:, self.first]),
            "induction": self._induction(),
            "previous_token": self._previous(),
        }
        return {name: None if value is None or not np.isfinite(value) else value for name, value in found.items()}

    def _mean(self, numbers: Numbers, chosen: NDArray[np.bool_] | None = None) -> float | None:
        counted = self.seeing if chosen is None else self.seeing & chosen
        if chosen is not None and not chosen.any():
            return None
        return float(numbers[counted].mean(dtype=np.float64)) if counted.any() else 0.0

    def _previous(self) -> float | None:
        if self.layer.kind == "cross":
            return None
        before = self.places - 1
        has = (before >= 0) & (before < self.weights.shape[-1])
        return self._mean(self.weights[np.arange(len(before)), np.where(has, before, 0)], has)

    def _induction(self) -> float | None:
        numbers = _numbered_texts(self.layer)
        if numbers is None:
            return None
        mine, theirs = numbers
        given, repeated = np.zeros(len(self.rows)), np.zeros(len(self.rows), dtype=np.bool_)
        for row, place in enumerate(self.places):
            alike = np.flatnonzero(theirs[: max(place, 0)] == mine[self.rows[row]])
            repeated[row] = len(alike) > 0
            after = alike[alike + 1 < len(theirs)] + 1
            given[row] = self.weights[row, after].sum()
        return self._mean(given, repeated)


def _scores(head: Head, rows: NDArray[np.int64]) -> tuple[Numbers, NDArray[np.bool_] | None]:
    """The scores of some rows, and what the mask allows them.   -> (R, K) both"""
    problem = head.map.problem.item((head.place,))
    xp, shape = problem.xp, problem.shape

    def lines(part: Any) -> Numbers:
        asked = (part.tile(slice(row, row + 1), slice(None), shape, like=problem.query) for row in rows.tolist())
        return np.stack([np.broadcast_to(host(line)[0], shape[-1:]) for line in asked])

    chosen = xp.asarray(rows, device=problem.query.device)
    few = replace(problem, query=xp.take(problem.query, chosen, axis=-2), shape=(len(rows), shape[-1]))
    with quiet(xp):
        scores = np.array(host(replace(few, mask=None, bias=None).scores()))
    if problem.bias is not None:
        bias = lines(problem.bias).astype(scores.dtype)
        scores = np.where(bias == -np.inf, -np.inf, scores + bias)
    if problem.mask is None:
        return scores, None
    allowed = lines(problem.mask)
    scores[~allowed] = -np.inf
    return scores, allowed


def _numbered_texts(layer: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """The texts of queries and keys as numbers, found once for a layer; None where they cannot be compared."""
    kept, (_, queries, keys) = layer.map.kept, layer.map.shape
    if "texts" not in kept:
        rows, cols = layer.queries[0].texts, layer.keys[0].texts
        comparable = layer.kind != "cross" and (len(rows), len(cols)) == (queries, keys) and any(rows) and any(cols)
        numbers: dict[str, int] = {}
        kept["texts"] = (
            tuple(np.asarray([numbers.setdefault(text, len(numbers)) for text in side]) for side in (rows, cols))
            if comparable
            else None
        )
    found: tuple[NDArray[np.int64], NDArray[np.int64]] | None = kept["texts"]
    return found

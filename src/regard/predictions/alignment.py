"""Which words of a source the words of its translation looked at."""

# N tokens of the target, S tokens of the source

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..record.tokens import Tokens

__all__ = ["Alignment", "Link"]


class Link(NamedTuple):
    """A word of a translation, the word of the source that it looked at most, and how much."""

    target: str
    source: str
    weight: float


@dataclass(frozen=True)
class Alignment:
    """How much each token of a translation looked at each token of its source when it was written."""

    source: Tokens  # the end mark last
    target: Tokens  # the end mark last, where the translation came to an end
    weights: np.ndarray  # (N, S), the mean over the heads of all cross-attention layers
    ended: bool = True

    def links(self) -> tuple[Link, ...]:
        """Word by word, the end marks left out: much of what a word does not need goes to the one of the source.

        Pieces become words as everywhere: what goes to a word is added up, what comes from it is averaged.
        """
        sources, targets = self.source.words[:-1], self.target.words[: -1 if self.ended else None]
        if not sources or not targets:
            return ()
        rows, cols = self.target.word_edges, self.source.word_edges
        sums = np.add.reduceat(np.add.reduceat(self.weights, rows[:-1], axis=0), cols[:-1], axis=1)
        words = (sums / np.diff(rows)[:, None])[: len(targets), : len(sources)]
        best = words.argmax(axis=1)
        return tuple(
            Link(target, sources[place], float(row[place]))
            for target, place, row in zip(targets, best, words, strict=True)
        )

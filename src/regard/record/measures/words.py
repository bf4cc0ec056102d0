"""Which source word each target word comes from, as cross-attention has it."""

# T target words (queries), S source words (keys)

from collections.abc import Iterator
from typing import Literal

import numpy as np

from ...errors import DtypeError, OptionError
from ...formula.problem import EVERYTHING, span
from ..record import Head, Layer, Mean
from ..tokens import Tokens
from .links import Links
from .subject import Floats, floats

__all__ = ["Way", "alignment"]

Way = Literal["strongest", "mutual", "share"]

WORDS = 256  # target words of a block


def alignment(
    subject: Head | Layer | Mean, way: Way = "strongest", *, share: float = 0.15, predicting: bool = False,
    rows: slice = EVERYTHING, cols: slice = EVERYTHING,
) -> Links:  # fmt: skip
    """Links (source word, target word) out of one head, a mean of heads, or all heads of a layer on average.

    Pieces of words are merged first: what goes to the pieces of a source word is added up, what comes from those of a
    target word is averaged.

    way: "strongest", the source word with the highest weight for each target word; "mutual", of those the ones where
    the target word is the source word's strongest as well; "share", every link with at least `share` of all the weight
    of its target word and of all the weight of its source word (the two directions of Dou and Neubig 2021).
    predicting: False takes the row that has the target word as its input (Chen et al. 2020, Shift-Att; Kobayashi et al.
    2020 found it the better one), True the row that predicts it, which is the one before.
    rows, cols: where the two sentences stand, in tokens, so that marks such as </s> take no part. Words are counted
    from the first one in there.
    """
    if way not in ("strongest", "mutual", "share"):
        raise OptionError(f'way is {way!r}; it is "strongest", "mutual" or "share".')
    if way == "share" and not 0 < share <= 1:
        raise OptionError(f"share is {share}; it must be above 0, and 1 at most.")
    sight, layer = _sight(subject)
    target = _edges(layer.queries[0], "rows", rows, layer.map.shape[1])
    source = _edges(layer.keys[0], "cols", cols, layer.map.shape[2])
    if predicting:
        target = _one_before(target)
    if way == "share":
        return _by_share(sight, target, source, share)
    links, favourites = _strongest(sight, target, source)
    return frozenset(link for link in links if way == "strongest" or favourites.get(link[0]) == link[1])


def _strongest(
    sight: Head | Mean, target: list[int], source: list[int]
) -> tuple[list[tuple[int, int]], dict[int, int]]:
    """Each target word's strongest source word, as links; and each source word's strongest target word."""
    links: list[tuple[int, int]] = []
    highest, favourite = np.zeros(len(source) - 1), np.full(len(source) - 1, -1)
    for first, table in _blocks(sight, target, source):
        own = table.argmax(axis=1)
        # A row that sees nothing has no link: its highest weight is 0.
        links += [(int(word), first + row) for row, word in enumerate(own) if table[row, word] > 0]
        best = table.max(axis=0)
        favourite = np.where(best > highest, table.argmax(axis=0) + first, favourite)
        highest = np.maximum(best, highest)
    return links, {word: int(place) for word, place in enumerate(favourite)}


def _by_share(sight: Head | Mean, target: list[int], source: list[int], share: float) -> Links:
    """Two passes: what each source word receives in all, then the links that are strong from both ends."""
    received = sum((table.sum(axis=0) for _, table in _blocks(sight, target, source)), start=np.zeros(len(source) - 1))
    links: list[tuple[int, int]] = []
    for first, table in _blocks(sight, target, source):
        given = table.sum(axis=1, keepdims=True)
        strong = (table > 0) & (table >= share * given) & (table >= share * received)
        links += [(int(word), first + int(row)) for row, word in np.argwhere(strong)]
    return frozenset(links)


def _blocks(sight: Head | Mean, target: list[int], source: list[int]) -> Iterator[tuple[int, Floats]]:
    """The weights from words to words, some target words at a time.   -> the first of them, (T, S)"""
    for first in range(0, len(target) - 1, WORDS):
        yield first, floats(sight.grouped(target[first : first + WORDS + 1], source))


def _edges(tokens: Tokens, name: str, part: slice, size: int) -> list[int]:
    """The edges of the words in a part of the tokens."""
    if len(tokens) != size or not any(tokens.texts):
        raise OptionError(
            f"there are {len(tokens)} tokens{' without texts' if not any(tokens.texts) else ''} for {size} {name}; "
            "words are aligned by their tokens: give them with record.labelled."
        )
    chosen = span(name, part, size)
    if not chosen:
        raise OptionError(f"{name} {part} have none of the {size} tokens; there must be at least one word.")
    return [chosen.start, *(edge for edge in tokens.word_edges if chosen.start < edge < chosen.stop), chosen.stop]


def _one_before(edges: list[int]) -> list[int]:
    if edges[0] == 0:
        raise OptionError(
            "the first token is predicted by no row; with predicting=True, begin behind it: rows=slice(1, None)."
        )
    return [edge - 1 for edge in edges]


def _sight(subject: Head | Layer | Mean) -> tuple[Head | Mean, Layer]:
    """What has the weights, and the layer whose tokens it looks from and at."""
    if isinstance(subject, Layer):
        return Mean(subject.heads), subject
    if isinstance(subject, Mean):
        return subject, subject.chosen[0].layer
    if isinstance(subject, Head):
        return subject, subject.layer
    raise DtypeError(
        f"words are aligned by a head, a layer or a mean of heads, and this is a {type(subject).__name__}."
    )

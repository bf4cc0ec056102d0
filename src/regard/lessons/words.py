"""Words of a lesson: found in a small vocabulary of vectors, and shown with their weights in straight columns."""

# Q words that look, K words looked at

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from rich.cells import cell_len

from ..errors import DtypeError, ShapeError, UnknownWord
from ..formula.arrays import Array
from ..view.labels import label

Convert = Callable[[Any, str], Array]  # (what the user gave, its name for errors) -> an array


def look_up(words: str | Iterable[str], vectors: Mapping[str, Any], convert: Convert) -> list[Array]:
    """The vector of each word, converted, in the order of the sentence. Words that have none are named."""
    if not isinstance(vectors, Mapping):
        raise DtypeError(f"vectors are a {type(vectors).__name__}; they must be a dictionary, word to vector.")
    if not isinstance(words, Iterable):
        raise DtypeError(f"words are a {type(words).__name__}; they must be a list of words, or a text.")
    words = words.split() if isinstance(words, str) else list(words)
    if not words:
        raise ShapeError("there are no words; a sentence needs at least one.")
    unknown = [str(word) for word in words if word not in vectors]
    if unknown:
        known = ", ".join(map(str, list(vectors)[:10])) + (", …" if len(vectors) > 10 else "")
        raise UnknownWord(f"no vector for {', '.join(unknown)}; the {len(vectors)} words that have one: {known}.")
    rows = [convert(vectors[word], f"the vector of {word}") for word in words]
    for word, row in zip(words, rows, strict=True):
        if row.ndim != 1 or row.shape != rows[0].shape:
            raise ShapeError(
                f"the vector of {word} has shape {tuple(row.shape)} and that of {words[0]} {tuple(rows[0].shape)}; "
                "all must be rows of one width."
            )
    return rows


def distribution(weights: np.ndarray, words: Sequence[str], keys: Sequence[str], top: int) -> str:
    """A line for each word: the `top` words it looks at most, in per cent. What gets exactly 0 is left out."""
    if weights.shape != (len(words), len(keys)):
        raise ShapeError(
            f"weights have shape {weights.shape}, and {len(words)} words looking at {len(keys)} need "
            f"({len(words)}, {len(keys)}). Of a batch or of several heads, pick one: weights[0]."
        )
    looking, seen = straight(words), straight(keys)
    lines = []
    for word, row in zip(looking, weights, strict=True):
        most = np.argsort(-row, kind="stable")[:top]
        shares = [f"{seen[place]} {row[place]:6.1%}" for place in most if row[place] != 0]
        lines.append(f"{word} → {'   '.join(shares) or 'nothing'}")
    return "\n".join(lines)


def straight(words: Sequence[str]) -> list[str]:
    """The words filled up with spaces to one width on the terminal, where a Chinese character takes two columns."""
    shown = [label(str(word)) for word in words]
    width = max(map(cell_len, shown), default=0)
    return [word + " " * (width - cell_len(word)) for word in shown]

"""Words → vectors: drawn from a seed, or out of a file that somebody has."""

# N words, D width

import difflib
import hashlib
import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import FileError, OptionError, UnknownWord
from . import vectorfile

Vectors = NDArray[np.float64]

NAMED = 5  # unknown words that a message names
NEAREST = 3  # suggestions for each of them
ALIKE = 0.5  # how alike two spellings must be for one to be suggested for the other


def draw(words: Iterable[str], width: int, seed: int = 0) -> Vectors:
    """One vector a word, drawn from the seed and the word alone.   -> (N, D)

    The same word has the same vector in every sentence and at every place. The numbers have one decimal: what is
    printed is then the whole number, and can be worked with by hand.
    """
    return np.stack([normal(seed, f"word {word}", (width,)) for word in words])


def normal(seed: int, name: str, shape: tuple[int, ...], spread: float = 1.0) -> Vectors:
    """Normal numbers, the same ones for the same seed and name, rounded to the first decimal that tells them apart."""
    if seed < 0:
        raise OptionError(f"seed is {seed}; it must be 0 or more.")
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    generator = np.random.default_rng([seed, int.from_bytes(digest, "big")])
    decimals = max(1, math.ceil(-math.log10(spread)))
    return np.round(generator.normal(0, spread, shape), decimals) + 0.0  # + 0.0 makes 0.0 of −0.0


def load(path: Path | str, words: Sequence[str]) -> Vectors:
    """The vectors that a file has for `words`, in their order.   -> (N, D)

    The file is text or JSON, as `vectorfile` reads it. Only the vectors of `words` are kept.
    """
    path = Path(path)
    try:
        found = vectorfile.read(path, set(words))
    except OSError as error:
        raise error if isinstance(error, FileError) else FileError(f"cannot read {path}: {error.strerror}.") from None
    missing = [word for word in dict.fromkeys(words) if word not in found]
    if missing:
        raise UnknownWord(_unknown(path, missing))
    return np.array([found[word] for word in words], dtype=np.float64)


def _unknown(path: Path, missing: list[str]) -> str:
    """Which words the file lacks, and which ones it has that are spelt most like them."""
    named, more = missing[:NAMED], len(missing) - NAMED
    nearest, some = _nearest(_vocabulary(path), named)
    words = [f"{_cut(word)}{_suggested(nearest[word])}" for word in named] + ([f"{more} more"] if more > 0 else [])
    message = f"{path} has no vector for {_listed(words)}."
    if some and not any(nearest.values()):
        message += f" It has, for example: {', '.join(map(_cut, some))}."
    return message


def _vocabulary(path: Path) -> Iterator[str]:
    """Every word of the file, which is read a second time for it; nothing where it cannot be (a pipe)."""
    try:
        if path.is_file():
            yield from vectorfile.words(path)
    except OSError:
        return


def _nearest(vocabulary: Iterator[str], named: list[str]) -> tuple[dict[str, list[str]], list[str]]:
    """For each word those spelt most like it, the most alike first; and the first few words there are."""
    heaps: dict[str, list[tuple[float, int, str]]] = {word: [] for word in named}
    matchers = {word: difflib.SequenceMatcher(None, b=word.casefold(), autojunk=False) for word in named}
    some: list[str] = []
    for place, candidate in enumerate(vocabulary):
        if place < NAMED:
            some.append(candidate)
        for word, heap in heaps.items():
            least = heap[0][0] if len(heap) == NEAREST else ALIKE
            ratio = _likeness(matchers[word], candidate.casefold(), least)
            if ratio >= least:
                # Files list common words first: of two that are equally alike, the earlier one is the better guess.
                heapq.heappush(heap, (ratio, -place, candidate))
            if len(heap) > NEAREST:
                heapq.heappop(heap)
    return {word: [candidate for *_, candidate in sorted(heap, reverse=True)] for word, heap in heaps.items()}, some


def _likeness(matcher: "difflib.SequenceMatcher[str]", candidate: str, least: float) -> float:
    """How alike two spellings are, 0 to 1; 0 where quick upper bounds already say that it is under `least`."""
    matcher.set_seq1(candidate)
    if matcher.real_quick_ratio() < least or matcher.quick_ratio() < least:
        return 0.0
    return matcher.ratio()


def _suggested(words: list[str]) -> str:
    return f" (nearest: {', '.join(map(_cut, words))})" if words else ""


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _cut(word: str) -> str:
    return word if len(word) <= 40 else f"{word[:39]}…"

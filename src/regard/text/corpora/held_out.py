"""A corpus in two: what is learned from, and what is held out to measure by."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from ...errors import OptionError
from .corpus import Bad, Corpus, Example

DECIDING = ("text", "source", "context")  # the field by which an example is held out, the first that it has


class Parts(NamedTuple):
    """The two parts of a corpus."""

    kept: Corpus
    held: Corpus


@dataclass(frozen=True)
class Part:
    """The examples on one side. What is malformed is on both: it has no text to decide by."""

    found: Iterable[Example | Bad]
    share: float
    seed: int
    held: bool

    def __iter__(self) -> Iterator[Example | Bad]:
        for found in self.found:
            if isinstance(found, Bad) or is_held(found, self.share, self.seed) == self.held:
                yield found


def split(corpus: Corpus, share: float, seed: int = 0) -> Parts:
    """About `share` of the examples held out, and the rest. Both stream.

    A hash of the text, source or context and the seed decides; of all fields where there is none of them. So an example
    stays on its side whatever else is in the corpus, and the same text is never on both.
    """
    if not 0 < share < 1:
        raise OptionError(f"share is {share}; it is a part of the corpus, between 0 and 1.")
    kept, held = (Corpus(Part(corpus.found, share, seed, side), corpus.most_bad) for side in (False, True))
    return Parts(kept, held)


def is_held(example: Example, share: float, seed: int) -> bool:
    """Whether an example is held out."""
    names = next(([name] for name in DECIDING if name in example), sorted(example))
    text = "\0".join(example[name] for name in names)  # no text has this sign
    digest = blake2b(text.encode(), digest_size=8, key=str(seed).encode()).digest()
    return int.from_bytes(digest) < share * 2**64

"""The tokens on one side of a map: what they say, which begin a word, which belong to which text."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from ..errors import OptionError, ShapeError
from ..text.pieces import joined

__all__ = ["Tokens"]


@dataclass(frozen=True)
class Tokens:
    """One side of a map, queries or keys."""

    texts: tuple[str, ...]
    begins: tuple[bool, ...]  # whether a word begins with it
    segments: tuple[int, ...] | None = None  # 0 for a token of the first text of a pair, 1 for one of the second
    generated: int | None = None  # from which place on the model wrote the tokens itself

    @classmethod
    def numbered(cls, size: int) -> "Tokens":
        """Tokens nobody knows the text of (patches of a picture, frames of a sound): their places."""
        return cls(tuple(map(str, range(size))), (True,) * size)

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Tokens":
        """Tokens as somebody gives them: each is a word."""
        return cls(tuple(map(str, texts)), (True,) * len(texts))

    def __post_init__(self) -> None:
        for name, marks in (("begins", self.begins), ("segments", self.segments)):
            if marks is not None and len(marks) != len(self.texts):
                raise ShapeError(f"there are {len(self.texts)} tokens and {len(marks)} {name}.")

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def word_edges(self) -> list[int]:
        """Where words begin, and the end: the edges of groups, for `Sight.grouped`."""
        edges = [place for place, begins in enumerate(self.begins) if begins or place == 0]
        return [*edges, len(self.texts)] if self.texts else [0]

    @property
    def words(self) -> tuple[str, ...]:
        """The words, each put together from its pieces."""
        edges = self.word_edges
        return tuple(joined(self.texts[begin:end]) for begin, end in pairwise(edges))

    def span(self, segment: str | int) -> slice:
        """Where one text of a pair stands: "A" or 0, "B" or 1."""
        wanted = {"A": 0, "B": 1}.get(segment, segment) if isinstance(segment, str) else segment
        marks = self.segments or ()
        if wanted not in marks:
            alone = "" if self.segments else ", and this record is of one text"
            raise OptionError(f"there is no text {segment!r} here; a pair has A and B{alone}.")
        first = marks.index(wanted)  # the first run of the mark: padding behind a pair is marked 0 too
        return slice(first, next((end for end in range(first, len(marks)) if marks[end] != wanted), len(marks)))

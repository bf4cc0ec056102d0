"""A corpus: examples that can be gone through again and again, and an account of what could not be read."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...errors import FileError, OptionError

Example = dict[str, str]  # field → text
SHOWN = 10  # so many malformed places are told in full, the others are counted


@dataclass(frozen=True)
class Bad:
    """A place that could not be read."""

    file: str
    line: int  # counted from 1
    why: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.why}"


@dataclass(frozen=True)
class Skipped:
    """What a pass has left out so far."""

    count: int = 0
    first: tuple[Bad, ...] = ()


class Malformed(Exception):
    """Why one example cannot be read; its reader makes a Bad of it, with the place."""


class Corpus:
    """Examples that are read anew in every pass and never held all together.

    What is malformed is counted in `skipped` and left out, `most_bad` times in a pass; after that it is an error.
    """

    def __init__(self, found: Iterable[Example | Bad], most_bad: int = 100) -> None:
        if most_bad < 0:
            raise OptionError(f"most_bad is {most_bad}; it counts lines, from 0 on.")
        self.found = found
        self.most_bad = most_bad
        self.skipped = Skipped()

    def __iter__(self) -> Iterator[Example]:
        """One pass. `skipped` begins anew with it, and speaks of the pass that began last."""
        self.skipped = skipped = Skipped()
        for found in self.found:
            if not isinstance(found, Bad):
                yield found
                continue
            if skipped.count == self.most_bad:
                raise FileError(self._too_many(found, skipped))
            latest = self.skipped is skipped
            skipped = Skipped(skipped.count + 1, (*skipped.first, found)[:SHOWN])
            if latest:
                self.skipped = skipped

    def _too_many(self, found: Bad, skipped: Skipped) -> str:
        others = f" The first was {skipped.first[0]}." if skipped.first else ""
        return (
            f"{found}. {skipped.count} malformed examples were skipped before it, as many as most_bad "
            f"allows.{others} Mend the file, or raise most_bad."
        )

"""Two text files, line by line: a sentence in the one is the translation of that in the other."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from os import PathLike
from pathlib import Path

from ...errors import FileError
from . import compressed
from .corpus import Bad, Corpus, Example, Malformed
from .fields import filled
from .lines import Line, lines


@dataclass(frozen=True)
class Pair:
    """A file of sources and a file of targets."""

    source: Path
    target: Path

    def __iter__(self) -> Iterator[Example | Bad]:
        counts = [0, 0]
        for source, target in zip_longest(_lines(self.source), _lines(self.target)):
            counts = [counts[0] + (source is not None), counts[1] + (target is not None)]
            if source and target:  # else on to the end of the longer one, to tell both counts
                yield self._example(source, target)
        if counts[0] != counts[1]:
            raise FileError(
                f"{self.source} has {counts[0]} lines and {self.target} has {counts[1]}; "
                "each line must be the translation of the same line in the other."
            )
        if not counts[0]:
            raise FileError(f"There is no line in {self.source} and {self.target}.")

    def _example(self, source: Line | Bad, target: Line | Bad) -> Example | Bad:
        if isinstance(source, Bad):
            return source
        if isinstance(target, Bad):
            return target
        try:
            return filled({"source": source.text, "target": target.text})
        except Malformed as why:
            return Bad(str(self.target if source.text.strip() else self.source), source.number, str(why))


def _lines(path: Path) -> Iterator[Line | Bad]:
    with compressed.opened(path) as file:
        yield from lines(file, str(path))


def parallel(source: str | PathLike[str], target: str | PathLike[str], *, most_bad: int = 100) -> Corpus:
    """The pairs of two text files, whatever their names end in, packed or not. Fields: source, target.

    A line that is empty in one of them is malformed. If the files are not equally long, the end of a pass is an error.
    """
    for path in (Path(source), Path(target)):
        compressed.require_file(path)
    return Corpus(Pair(Path(source), Path(target)), most_bad)

"""Lines → rows of a comma-separated file (RFC 4180): a cell in quotes may hold commas and line breaks."""

import re
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from .corpus import Bad, Malformed
from .lines import LONGEST, Line

_INSIDE = re.compile('[^"]*+(?:""[^"]*+)*+')  # what stands between quotes; two of them are one


class Row(NamedTuple):
    """The cells of a row, and the number of the line that it begins on."""

    line: int
    cells: list[str]


def quoted(found: Iterator[Line | Bad], name: str) -> Iterator[Row | Bad]:
    """The rows. After a malformed one it goes on with the line behind its first: a stray quote costs one line."""
    ahead = _Ahead(found)
    while line := ahead.begin():
        if isinstance(line, Bad):
            yield line
            continue
        try:
            yield Row(line.number, _cells(line.text, ahead))
        except Malformed as why:
            ahead.give_back()
            yield Bad(name, line.number, str(why))


class _Ahead:
    """Lines that can be given back: all but the first of the row that was begun last."""

    def __init__(self, found: Iterator[Line | Bad]) -> None:
        self._found = found
        self._waiting: deque[Line | Bad] = deque()
        self._taken: list[Line | Bad] = []
        self._size = 0

    def begin(self) -> Line | Bad | None:
        """The first line of another row."""
        self._taken, self._size = [], 0
        return self._waiting.popleft() if self._waiting else next(self._found, None)

    def go_on(self) -> str:
        """Another line of the same row."""
        line = self._waiting.popleft() if self._waiting else next(self._found, None)
        if line is None:
            raise Malformed("a quote that is opened and never closed")
        self._taken.append(line)
        if isinstance(line, Bad):
            raise Malformed(f"a quoted cell that goes on to line {line.line}, which is {line.why}")
        self._size += len(line.text) + 1
        if self._size > LONGEST:
            raise Malformed(f"a quote that is opened and not closed within {LONGEST} characters")
        return line.text

    def give_back(self) -> None:
        """The lines that the row took beyond its first one."""
        self._waiting.extendleft(reversed(self._taken))


def _cells(text: str, ahead: _Ahead) -> list[str]:
    if '"' not in text:
        return text.split(",")
    cells: list[str] = []
    place = 0
    while True:
        if text.startswith('"', place):
            cell, text, place = _quoted_cell(text, place + 1, ahead)
        else:
            end = text.find(",", place)
            end = len(text) if end < 0 else end
            cell, place = text[place:end], end
            if '"' in cell:  # also what is left of a malformed row: it must not pass for a row of its own
                raise Malformed("a quote in a cell that does not begin with one")
        cells.append(cell)
        if place == len(text):
            return cells
        place += 1  # the comma


def _quoted_cell(text: str, place: int, ahead: _Ahead) -> tuple[str, str, int]:
    """The cell whose text begins at `place`, the line that it ends in, and where in it."""
    parts: list[str] = []
    while (end := _end(text, place)) == len(text):
        parts.append(text[place:])
        text, place = ahead.go_on(), 0
    parts.append(text[place:end])
    after = end + 1
    if after < len(text) and text[after] != ",":
        raise Malformed(f"{text[after]!r} behind the end of a quoted cell; a quote inside it is written twice")
    return "\n".join(parts).replace('""', '"'), text, after


def _end(text: str, place: int) -> int:
    """Where the quote stands that ends a cell; the end of the line where none does."""
    inside = _INSIDE.match(text, place)
    return inside.end() if inside else place

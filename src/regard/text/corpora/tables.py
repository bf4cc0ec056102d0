"""Tables: files of rows and cells, parted by tabs or by commas, whose first line names the columns or does not."""

from collections.abc import Iterator
from io import BufferedReader

from ...errors import FileError
from .corpus import Bad, Example, Malformed
from .fields import Columns, filled
from .lines import lines
from .quoted import Row, quoted


def tabs(file: BufferedReader, name: str, columns: Columns) -> Iterator[Example | Bad]:
    """The examples of a tab-separated file. A quote is a sign like any other there."""
    found = lines(file, name)
    rows = (line if isinstance(line, Bad) else Row(line.number, line.text.split("\t")) for line in found)
    return _examples(rows, name, columns)


def commas(file: BufferedReader, name: str, columns: Columns) -> Iterator[Example | Bad]:
    """The examples of a comma-separated file."""
    return _examples(quoted(lines(file, name), name), name, columns)


def _examples(rows: Iterator[Row | Bad], name: str, columns: Columns) -> Iterator[Example | Bad]:
    named = all(isinstance(column, str) for column in columns.values())
    first: Row | None = None
    places: dict[str, int] = {}
    for row in rows:
        if isinstance(row, Bad):
            if named and first is None:
                raise FileError(f"{row}; the first line must name the columns.")
            yield row
            continue
        if first is None:
            first, places = row, _places(row, name, columns)
            if named:
                continue
        try:
            yield _example(row, first, places)
        except Malformed as why:
            yield Bad(name, row.line, str(why))


def _example(row: Row, first: Row, places: dict[str, int]) -> Example:
    here, there = len(row.cells), len(first.cells)
    if here != there:
        raise Malformed(f"{here} column{'s' * (here != 1)}, and line {first.line} has {there}")
    return filled({field: row.cells[place] for field, place in places.items()})


def _places(first: Row, name: str, columns: Columns) -> dict[str, int]:
    """Where each field stands in a row."""
    return {field: _place(first, name, field, column) for field, column in columns.items()}


def _place(first: Row, name: str, field: str, column: str | int) -> int:
    if isinstance(column, int):
        if column < len(first.cells):
            return column
        raise FileError(f"{name} has no column {column}: line {first.line} has {len(first.cells)}, numbered from 0 on.")
    if first.cells.count(column) == 1:
        return first.cells.index(column)
    count = "several columns" if column in first.cells else "no column"
    named = ", ".join(cell[:40] for cell in first.cells[:20])
    raise FileError(
        f"{name} has {count} {column}; its first line names: {named}. Say which one is the {field}: "
        f'fields={{"{field}": "…"}}, or --fields {field}=… of a command; by its number from 0 on, where the first line '
        "is an example already."
    )

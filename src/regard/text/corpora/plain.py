"""Plain text: a line an example, a paragraph, or the whole file. Blank lines part them and are no examples."""

from collections.abc import Iterator
from io import BufferedReader

from ...errors import OptionError
from .corpus import Bad, Example
from .fields import Columns
from .lines import LONGEST, lines

LARGEST = 2**26  # characters of a file that is one example


def each_line(file: BufferedReader, name: str, columns: Columns) -> Iterator[Example | Bad]:
    """Every line that is not blank."""
    field = _field(name, columns)
    for line in lines(file, name):
        if isinstance(line, Bad):
            yield line
        elif line.text and not line.text.isspace():
            yield {field: line.text}


def each_paragraph(file: BufferedReader, name: str, columns: Columns) -> Iterator[Example | Bad]:
    """The lines between blank ones, together. One malformed line spoils its paragraph."""
    field = _field(name, columns)
    texts: list[str] = []
    size = 0
    bad: Bad | None = None
    for line in lines(file, name):
        if isinstance(line, Bad):
            bad = bad or line
        elif line.text and not line.text.isspace():
            size += len(line.text) + 1
            if size <= LONGEST:
                texts.append(line.text)
            else:
                bad = bad or Bad(name, line.number, f"a paragraph of over {LONGEST} characters")
        else:
            yield from _paragraph(field, texts, bad)
            texts, size, bad = [], 0, None
    yield from _paragraph(field, texts, bad)


def whole_file(file: BufferedReader, name: str, columns: Columns) -> Iterator[Example | Bad]:
    """The file without the blank lines around it. One malformed line spoils it."""
    field = _field(name, columns)
    texts: list[str] = []
    size = 0
    for line in lines(file, name):
        if isinstance(line, Bad):
            yield line
            return
        size += len(line.text) + 1
        if size > LARGEST:
            yield Bad(name, line.number, f"a file of over {LARGEST} characters as one example; read its paragraphs")
            return
        texts.append(line.text)
    text = "\n".join(texts).strip("\n")
    yield {field: text} if text and not text.isspace() else Bad(name, 1, "an empty file")


def _paragraph(field: str, texts: list[str], bad: Bad | None) -> Iterator[Example | Bad]:
    if bad:
        yield bad
    elif texts:
        yield {field: "\n".join(texts)}


def _field(name: str, columns: Columns) -> str:
    """The one field that a plain text fills."""
    (field, column), *others = columns.items()
    if others or column not in (field, 0):
        raise OptionError(f'fields is {columns}, and {name} is plain text, which has one: ["{field}"].')
    return field

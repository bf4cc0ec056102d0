"""Bytes → lines of text: at "\\n" and nowhere else, each with its number, and a word on each that is no text."""

from collections.abc import Iterator
from io import BufferedReader
from itertools import count
from typing import NamedTuple

from ...errors import FileError
from .corpus import Bad, Malformed

LONGEST = 2**20  # bytes of a line, a paragraph or a quoted record
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Line(NamedTuple):
    """A line without its end, and its number from 1 on."""

    number: int
    text: str


def lines(file: BufferedReader, name: str) -> Iterator[Line | Bad]:
    """One thing for each line of the file. Only the end of a line goes, with the "\\r" of a Windows file."""
    for number in count(1):
        raw = file.readline(LONGEST + 2)
        if not raw:
            return
        cut = len(raw) == LONGEST + 2 and not raw.endswith(b"\n")
        if number == 1:
            raw = _without_mark(raw, name)
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        if cut or len(raw) > LONGEST:
            if cut:
                _pass_over(file)
            yield Bad(name, number, f"over {LONGEST} bytes long")
            continue
        try:
            yield Line(number, _decoded(raw))
        except Malformed as why:
            yield Bad(name, number, str(why))


def _without_mark(raw: bytes, name: str) -> bytes:
    """The first bytes of a file without the mark that some editors put there."""
    if raw.startswith(_UTF16_MARKS):
        raise FileError(f"{name} is UTF-16; save it as UTF-8.")
    return raw.removeprefix(_UTF8_MARK)


def _decoded(raw: bytes) -> str:
    """Bytes as text, or what is wrong with them."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8 at byte {error.start + 1}, which is 0x{raw[error.start]:02x}") from error
    if "\0" in text:
        raise Malformed(f"byte {raw.index(0) + 1} is 0x00, which no text has; UTF-16, or no text at all")
    return text


def _pass_over(file: BufferedReader) -> None:
    """On to the next line."""
    while (part := file.readline(LONGEST)) and not part.endswith(b"\n"):
        pass

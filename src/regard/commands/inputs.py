"""Texts that a command was given: as arguments, in a file, or on standard input."""

import sys
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..errors import FileError, OptionError


def text_of(parts: list[str] | None, file: Path | None = None, *, example: str) -> str:
    """The text of the arguments, of a file, or of standard input where there are none or "-"."""
    if file is not None:
        if parts:
            raise OptionError(f"there is a text and a file, {file}; give one of them.")
        return _read(file)
    if parts and parts != ["-"]:
        text = " ".join(parts)
        require_utf8(text)
        return text
    if sys.stdin is None or (not parts and sys.stdin.isatty()):
        raise OptionError(f"there is no text; give one, as in: {example}")
    return _decoded(sys.stdin.buffer.read(), "standard input")


def given(parts: list[str] | None, file: Path | None, *, example: str) -> str:
    """A text that has something in it."""
    text = text_of(parts, file, example=example)
    if not text.strip():
        raise OptionError(f"the text has no words; give some, as in: {example}")
    return text


def _read(file: Path) -> str:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise FileError(f"cannot read {file}: {error.strerror or error}.") from None
    return _decoded(content, str(file))


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"{name} is not UTF-8 text: byte {error.start} is 0x{content[error.start]:02x}.") from None


def texts_of(
    parts: list[str] | None, file: Path | None, *, example: str, blank: bool = False
) -> Iterator[str]:  # fmt: skip
    """Several texts: the arguments, each one of them; or the lines of a file or of standard input, as they come.

    blank: whether an argument may have no words.
    """
    if file is None and parts and parts != ["-"]:
        for number, text in enumerate(parts, start=1):
            require_utf8(text)
            if not (blank or text.strip()):
                raise OptionError(f"text {number} has no words; give some, as in: {example}")
        return iter(parts)
    if file is not None and parts:
        raise OptionError(f"there is a text and a file, {file}; give one of them.")
    if file is None and (sys.stdin is None or (not parts and sys.stdin.isatty())):
        raise OptionError(f"there is no text; give one, as in: {example}")
    if file is None:
        return _lines(sys.stdin.buffer, "standard input")
    with _opened(file):  # what is wrong with it is said now; its lines are read when they are wanted
        return _lines_of(file)


def _lines_of(file: Path) -> Iterator[str]:
    with _opened(file) as stream:
        yield from _lines(stream, str(file))


def _opened(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as error:
        raise FileError(f"cannot read {file}: {error.strerror or error}.") from None


def _lines(stream: BinaryIO, name: str) -> Iterator[str]:
    number = 0
    while line := _line(stream, name):
        number += 1
        content = line.removeprefix(BOM_UTF8) if number == 1 else line
        yield _decoded(content.rstrip(b"\r\n"), f"line {number} of {name}")


def _line(stream: BinaryIO, name: str) -> bytes:
    try:
        return stream.readline()
    except OSError as error:
        raise FileError(f"cannot read {name}: {error.strerror or error}.") from None


def require_utf8(text: str) -> None:
    """An argument that was no UTF-8 has halves of signs in it."""
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise OptionError("the text is not UTF-8.")

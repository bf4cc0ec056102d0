"""Files of word vectors: text, a word and its numbers a line, or a JSON object of word → list of numbers.

Text is what word2vec and GloVe write, with or without word2vec's first line, which counts the words and their width.
It is read line by line, so that a file larger than the memory will do.
"""

import itertools
import json
import math
import re
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import FileError

LONGEST_LINE = 2**20  # bytes; a longer "line" is no line of a text file
TEXT_EXAMPLE = "a line is a word and its numbers, as in: cat 0.1 -0.2 0.3"
JSON_EXAMPLE = 'as in: {"cat": [0.1, -0.2, 0.3]}'


class Line(NamedTuple):
    """A line of a file and its number, counted from 1."""

    number: int
    text: bytes


def read(path: Path, wanted: set[str]) -> dict[str, list[float]]:
    """The vectors of the `wanted` words, those that the file has.

    Text is read up to the last of them. The lines of other words are counted through, not converted: one of the
    wrong length is refused, a bad number in one is not seen.
    """
    with path.open("rb") as file:
        if _opens_json(file, path):
            return _from_json(_json(file, path), path, wanted)
        return _from_text(_lines(file, path), path, wanted)


def words(path: Path) -> Iterator[str]:
    """Every word of the file, in order."""
    with path.open("rb") as file:
        if _opens_json(file, path):
            yield from _json(file, path)
        else:
            head, rest = _begun(_lines(file, path), path)
            for line in itertools.chain(head, rest):
                yield line.text.split(maxsplit=1)[0].decode("utf-8", "replace")


def _opens_json(file: BufferedReader, path: Path) -> bool:
    return path.suffix == ".json" or re.match(rb'(\xef\xbb\xbf)?\s*\{\s*("|\}|$)', file.peek(1)) is not None


def _lines(file: BufferedReader, path: Path) -> Iterator[Line]:
    """The lines that are not blank."""
    for number in itertools.count(1):
        text = file.readline(LONGEST_LINE)
        if not text:
            return
        if len(text) == LONGEST_LINE:
            raise FileError(
                f"{path}, line {number} is over {LONGEST_LINE} bytes long; that is no text file of vectors."
            )
        text = text.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else text.strip()
        if text:
            yield Line(number, text)


def _begun(lines: Iterator[Line], path: Path) -> tuple[list[Line], Iterator[Line]]:
    """The lines with vectors: the first one or two of them, and the rest. A line of counts is left out."""
    head = list(itertools.islice(lines, 2))
    if not head:
        raise FileError(f"{path} is empty; {TEXT_EXAMPLE}")
    first, *second = (line.text.split() for line in head)
    counts = len(first) == 2 and all(field.isdigit() for field in first)
    if counts and second and len(second[0]) - 1 == int(first[1]):
        del head[0]
    return head, lines


def _from_text(lines: Iterator[Line], path: Path, wanted: set[str]) -> dict[str, list[float]]:
    head, rest = _begun(lines, path)
    first, width = head[0].number, len(head[0].text.split()) - 1
    left, found = {word.encode("utf-8", "surrogatepass") for word in wanted}, {}
    for line in itertools.chain(head, rest):
        word, _, numbers = line.text.partition(b" ")
        # Counting spaces will do for a line that nobody asked for, and is many times as fast as reading its numbers.
        if numbers and word not in left and numbers.count(b" ") + 1 == width and line.number != first:
            continue
        name, vector = _parsed(line, path, width, first)
        if name.encode() in left:
            left.discard(name.encode())
            found[name] = vector
        if not left:
            break
    return found


def _parsed(line: Line, path: Path, width: int, first: int) -> tuple[str, list[float]]:
    place = f"{path}, line {line.number}"
    word, *fields = (_decoded(field, place) for field in line.text.split())
    while len(fields) > width and not _is_number(fields[0]):
        word, fields = f"{word} {fields[0]}", fields[1:]  # some published files have words with spaces in them
    if not fields:
        raise FileError(f"{place} has no numbers; {TEXT_EXAMPLE}")
    vector = [_number(field, place) for field in fields]
    if len(vector) != width:
        raise FileError(
            f"{place}: {word} has {_counted(len(vector))} and the word of line {first} has {width}; "
            "all vectors of a file must be equally long."
        )
    return word, _finite(vector, word, place)


def _decoded(field: bytes, place: str) -> str:
    if b"\0" not in field:
        try:
            return field.decode("utf-8")
        except UnicodeDecodeError:
            pass
    raise FileError(
        f"{place} is not UTF-8 text; if the vectors are saved in a binary or packed form, save them as text."
    )


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _number(field: str, place: str) -> float:
    if not _is_number(field):
        shown = field if len(field) <= 40 else f"{field[:39]}…"
        raise FileError(f"{place}: {shown} is not a number; {TEXT_EXAMPLE}")
    return float(field)


def _finite(vector: list[float], word: str, place: str) -> list[float]:
    for number in vector:
        if not math.isfinite(number):
            raise FileError(f"{place}: the vector of {word} has {number} in it; every number must be finite.")
    return vector


def _json(file: BufferedReader, path: Path) -> dict[str, Any]:
    try:
        vocabulary = json.load(file)
    except json.JSONDecodeError as error:
        raise FileError(f"{path}, line {error.lineno}, column {error.colno} is not JSON: {error.msg}.") from None
    except (ValueError, RecursionError):  # bytes that are no text, whole numbers of thousands of digits, lists in lists
        raise FileError(f"{path} is not a JSON text that can be read; it should be one {JSON_EXAMPLE}") from None
    if not isinstance(vocabulary, dict) or not vocabulary:
        raise FileError(f"{path} must hold a JSON object of word → list of numbers, {JSON_EXAMPLE}")
    return vocabulary


def _from_json(vocabulary: dict[str, Any], path: Path, wanted: set[str]) -> dict[str, list[float]]:
    found = {}
    first, width = "", 0
    for word, vector in vocabulary.items():
        if not isinstance(vector, list) or not vector or not all(type(number) in (int, float) for number in vector):
            raise FileError(f"{path}: the vector of {word} must be a list of numbers, {JSON_EXAMPLE}")
        first, width = first or word, width or len(vector)
        if len(vector) != width:
            raise FileError(
                f"{path}: {word} has {_counted(len(vector))} and {first} has {width}; "
                "all vectors of a file must be equally long."
            )
        if word in wanted:
            found[word] = _finite([_float(number) for number in vector], word, str(path))
    return found


def _float(number: float) -> float:
    """A whole number of any size as a float; one too large for that is infinite, and refused as such."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _counted(numbers: int) -> str:
    return "1 number" if numbers == 1 else f"{numbers} numbers"

"""JSON lines: an object a line, whose values are taken by their names."""

import json
from collections.abc import Iterator
from io import BufferedReader
from typing import Any, NoReturn

from ...errors import FileError, OptionError
from .corpus import Bad, Example, Malformed
from .fields import Columns, missing, picked
from .lines import Line, lines


def objects(file: BufferedReader, name: str, columns: Columns) -> Iterator[Example | Bad]:
    """The examples of a file of JSON lines. Numbers stay as they are written there."""
    if not all(isinstance(column, str) for column in columns.values()):
        raise OptionError(f"fields is {columns}, and the columns of {name} have names, as JSON has them.")
    checked = False
    for line in lines(file, name):
        if isinstance(line, Bad):
            yield line
            continue
        try:
            record = parsed(line)
            if not checked:
                _check(record, name, columns)
                checked = True
            yield picked(record, columns)
        except Malformed as why:
            yield Bad(name, line.number, str(why))


def parsed(line: Line) -> dict[str, Any]:
    """The object of a line."""
    try:
        record = _DECODER.decode(line.text)
    except json.JSONDecodeError as error:
        raise Malformed(f"no JSON at character {error.pos + 1}: {error.msg}") from error
    except RecursionError as error:
        raise Malformed("JSON that is nested too deep") from error
    if not isinstance(record, dict):
        raise Malformed("JSON, but no object with names and values")
    return record


def _check(record: dict[str, Any], name: str, columns: Columns) -> None:
    """What the first object does not have, the file does not have."""
    lacking = missing(record, columns)
    if lacking:
        raise FileError(f"{name} has no {', '.join(lacking)}; its first object has: {', '.join(record) or 'nothing'}.")


def _refuse(constant: str) -> NoReturn:
    raise Malformed(f"{constant}, which is no JSON")


_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse)

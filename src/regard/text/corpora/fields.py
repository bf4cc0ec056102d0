"""Which columns of a file become which fields of an example."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import OptionError
from .corpus import Example, Malformed

Columns = dict[str, str | int]  # field → a column's name, or its number from 0 on
Fields = str | Sequence[str] | Mapping[str, str] | Mapping[str, int]
_SURROGATE = re.compile("[\ud800-\udfff]")
_NONE = object()
_EXAMPLE = 'as in {"source": "en", "target": "zh"}, ["text", "label"], or {"text": 0} where no line names the columns'


def columns_of(fields: Fields) -> Columns:
    """What the caller said, as a mapping. Names alone stand for columns of the same names."""
    if isinstance(fields, str):
        fields = [fields]
    columns: Columns = dict(fields) if isinstance(fields, Mapping) else {name: name for name in fields}
    if not columns:
        raise OptionError(f"fields is empty; say which columns become which fields, {_EXAMPLE}.")
    if isinstance(fields, Sequence) and len(columns) != len(fields):
        raise OptionError(f"fields names one field twice: {list(fields)}.")
    if not all(isinstance(name, str) for name in columns):
        raise OptionError(f"fields is {columns}; the names of fields are text, {_EXAMPLE}.")
    if all(isinstance(column, str) for column in columns.values()):
        return columns
    if all(type(column) is int and column >= 0 for column in columns.values()):
        return columns
    raise OptionError(f"fields is {columns}; columns are all names or all numbers from 0 on, {_EXAMPLE}.")


def filled(example: Example) -> Example:
    """The example, if there is text in each field."""
    for field, text in example.items():
        if not text or text.isspace():
            raise Malformed(f"{field} is empty")
    return example


def picked(record: Mapping[str, Any], columns: Columns) -> Example:
    """The fields of a record whose values have names, as JSON and data sets have them."""
    return filled({field: _text(_value(record, str(column)), column) for field, column in columns.items()})


def missing(record: Mapping[str, Any], columns: Columns) -> list[str]:
    """The columns that a record does not have."""
    return [str(column) for column in columns.values() if _value(record, str(column)) is _NONE]


def _value(record: Mapping[str, Any], column: str) -> Any:
    """The value of a column; "translation.en" looks into "translation" where there is no column of the whole name."""
    if column in record:
        return record[column]
    outer, dot, inner = column.partition(".")
    within = record.get(outer) if dot else None
    return _value(within, inner) if isinstance(within, Mapping) else _NONE


def _text(value: Any, column: str | int) -> str:
    if value is _NONE:
        raise Malformed(f"no {column}")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if not isinstance(value, str):
        raise Malformed(f"{column} is {'null' if value is None else type(value).__name__}, not a text or a number")
    if not value.isascii() and _SURROGATE.search(value):
        raise Malformed(f"{column} has half of a character, a lone surrogate")
    if "\0" in value:
        raise Malformed(f"{column} has the sign U+0000, which no text has")
    return value

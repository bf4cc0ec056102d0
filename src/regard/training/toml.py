"""Settings as TOML, which Python reads and cannot write: texts, numbers, lists and one level of tables."""

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def written(tables: Mapping[str, Any]) -> str:
    """The TOML of some values and tables of values; `tomllib.loads` gives them back, tuples as lists.

    What is None is left out: TOML has nothing to write for it.
    """
    plain = {name: value for name, value in tables.items() if not isinstance(value, Mapping)}
    parts = [_lines(plain)] if plain else []
    parts += [f"[{_key(name)}]\n{_lines(table)}" for name, table in tables.items() if isinstance(table, Mapping)]
    return "\n".join(parts)


def _lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in table.items() if value is not None)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(name)} = {_value(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(inner) for inner in value) + "]"
    raise TypeError(f"{value!r} has no form in TOML")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    # JSON escapes as TOML does, with one sign that only TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

"""The query of a request → what is asked for, each number checked against the record."""

import re
from collections.abc import Collection, Mapping
from typing import Literal
from urllib.parse import parse_qsl

from .refusal import Refused, wrong

__all__ = ["Query"]

NUMBER = re.compile("[0-9]{1,12}")
MOST_PLACES = 4096


class Query:
    """The parameters of a request, by name."""

    def __init__(self, text: str, allowed: Collection[str]) -> None:
        try:
            pairs = parse_qsl(
                text, keep_blank_values=True, strict_parsing=bool(text), max_num_fields=16, errors="strict"
            )
        except ValueError:
            raise Refused(400, "the query is not of the form name=value&name=value.") from None
        self.values: Mapping[str, str] = dict(pairs)
        for name in self.values:
            if name not in allowed:
                known = f"there are {', '.join(allowed)}" if allowed else "there are none here"
                raise Refused(400, f"there is no parameter {name[:40]!r}; {known}.")
        if len(pairs) > len(self.values):
            raise Refused(400, "a parameter is given twice; give each once.")

    def text(self, name: str, default: str | None = None) -> str:
        """What was given under a name."""
        found = self.values.get(name, default)
        if found is None:
            raise Refused(400, f"{name} is missing.")
        return found

    def number(self, name: str, least: int, most: int, default: int | None = None) -> int:
        """A whole number between two others, both included."""
        value = self.text(name, None if default is None else str(default))
        if not NUMBER.fullmatch(value) or not least <= int(value) <= most:
            raise wrong(name, value, f"a whole number from {least} to {most}" if most > least else str(least))
        return int(value)

    def span(self, name: str, size: int, default: str | None = None) -> range:
        """Places next to each other, at least one, as in 0:256."""
        value = self.text(name, default)
        first, colon, last = value.partition(":")
        fits = bool(colon and NUMBER.fullmatch(first) and NUMBER.fullmatch(last))
        if not fits or not 0 <= int(first) < int(last) <= size:
            raise wrong(name, value, f"a:b with 0 ≤ a < b ≤ {size}, as in 0:{min(size, 256)}")
        return range(int(first), int(last))

    def places(self, name: str, size: int) -> list[int]:
        """Places anywhere, at least one, as in 1,5:9, which is 1, 5, 6, 7, 8."""
        value = self.text(name)
        found: list[int] = []
        for part in value.split(","):
            first, colon, last = part.partition(":")
            fits = bool(NUMBER.fullmatch(first)) and bool(not colon or NUMBER.fullmatch(last))
            run = range(int(first), int(last) if colon else int(first) + 1) if fits else range(0)
            if not run or run.stop > size:
                raise wrong(
                    name, value, f"places from 0 to {size - 1} with commas between them, as in 0,{size - 1} or 0:{size}"
                )
            if len(found) + len(run) > MOST_PLACES:
                raise Refused(400, f"{name} are more than {MOST_PLACES:,} places; ask for fewer at a time.")
            found.extend(run)
        return sorted(found)

    def unit(self) -> Literal["token", "word"]:
        """What is counted."""
        value = self.text("unit", "token")
        if value == "token":
            return "token"
        if value == "word":
            return "word"
        raise wrong("unit", value, "token or word")

"""The records that are served, by number: the first, and one more for each text that the model has read since."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Any

from ...record import Layer, Record
from ..page.describe import Part, Shown, chosen, describe
from .heads import Heads
from .pages import Pages
from .refusal import Refused, wrong

__all__ = ["Book", "Reads", "Shelf"]

MOST = 8  # records that are kept
Reads = Callable[[str, str | None, int], Record]  # a text, the second of a pair, tokens to write -> its record


class Book:
    """One record, and all that is needed to answer for it."""

    def __init__(self, number: int, record: Record, title: str, runs_text: bool) -> None:
        self.number, self.title, self.runs_text = number, title, runs_text
        self.shown: Shown = chosen(record)
        self.parts: tuple[Part, ...] = self.shown.parts
        self.pages = Pages(record)
        self.heads = Heads(tuple(part.layer for part in self.parts), self.pages)

    @cached_property
    def description(self) -> dict[str, Any]:
        """What the page is told of it."""
        told = describe(self.shown, title=self.title, source="served", runs_text=self.runs_text)
        return {**told, "record": self.number}

    def layer(self, number: int) -> Layer:
        """A layer by its number in the description."""
        return self.parts[number].layer


class Shelf:
    """The latest records."""

    def __init__(self, record: Record, *, title: str, reads: Reads | None = None) -> None:
        self.title, self.reads = title, reads
        self._books: OrderedDict[int, Book] = OrderedDict()
        self._adding = threading.Lock()
        self._next = 0
        self._add(record)

    @property
    def latest(self) -> Book:
        """The record that came last."""
        return self._books[self._next - 1]

    def book(self, number: int) -> Book:
        """The record of a number, if it is still there."""
        found = self._books.get(number)
        if found is None:
            known = list(self._books)
            raise wrong("record", number, f"one of those that are kept, {known[0]} to {known[-1]}")
        return found

    def read(self, text: str, pair: str | None, generate: int) -> int:
        """Let the model read a text, one at a time.   -> the number of its record"""
        if self.reads is None:
            raise Refused(
                400, "this is a record from a file, without a model that could read; start regard serve MODEL."
            )
        return self._add(self.reads(text, pair, generate))

    def _add(self, record: Record) -> int:
        with self._adding:
            number = self._next
            self._books[number] = Book(number, record, self.title, self.reads is not None)
            self._next += 1
            while len(self._books) > MOST:
                self._books.popitem(last=False)
            return number

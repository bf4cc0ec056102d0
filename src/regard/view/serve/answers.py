"""What each address answers: a question to a record → bytes."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ...errors import RegardError
from ...formula.threads import single_threaded_blas
from ...record import Head, Layer, Tokens
from ...record.measures import HeadTable, head_table
from ..page.coding import host
from ..page.describe import sides_of
from ..page.glimpse import SCORES, THUMBNAIL, Glimpse, glimpse
from . import cells
from .cells import Side
from .kept import Kept
from .questions import Query
from .refusal import Gone, Refused
from .shelf import Book, Shelf
from .work import rows_at_once
from .workers import Workers

__all__ = ["Answer", "Answers", "Wanted"]

ROOM = 2**26  # bytes of answers that are kept
LARGEST_SIDE = 1024  # cells of a tile
LARGEST_RECTANGLE = 2**22  # weights
LARGEST_STEP = 10**9
WORTH_ALL = 2**22  # weights of a head up to which its thumbnail and scores are of all its rows
LONGEST_WRITTEN = 1024  # tokens that a model is asked to write
MOST_READING = 8  # texts that wait while the model reads another
BYTES, JSON = "application/octet-stream", "application/json; charset=utf-8"
Made = TypeVar("Made")
Wanted = Callable[[], bool]  # whether somebody still waits for an answer


@dataclass(frozen=True)
class Answer:
    """What goes back over the wire."""

    body: bytes
    kind: str = BYTES
    headers: dict[str, str] = field(default_factory=dict)
    policy: str | None = None  # of a page: what its scripts may do


class Answers:
    """Answers to questions about the records of a shelf, the latest of them kept."""

    def __init__(self, shelf: Shelf, workers: Workers | None = None) -> None:
        self.shelf = shelf
        self.workers = workers or Workers()
        self.refining = Workers(1)  # what is there already and gets finer; what is looked at first does not wait for it
        self.reading = Workers(1, MOST_READING)
        self._glimpsed: Kept[list[Glimpse]] = Kept(ROOM, lambda found: sum(one.thumbnail.nbytes for one in found))
        self._kept: Kept[Answer] = Kept(ROOM, lambda answer: len(answer.body) + 512)
        self.addresses: dict[str, Callable[[str, Wanted], Answer]] = {
            "/description": self._description,
            **{f"/{name}": partial(self._found, name) for name in _ASKED},
        }

    def _description(self, query: str, wanted: Wanted) -> Answer:
        asked = Query(query, ("record",))
        return as_json(self._book(asked).description)

    def read(self, body: bytes) -> Answer:
        """Let the model read what is in the body of a request."""
        text, pair, generate = _order(body)
        try:
            return as_json({"record": self.reading.do(lambda: self.shelf.read(text, pair, generate))})
        except RegardError as error:
            raise Refused(400, str(error)) from None
        except MemoryError:
            raise Refused(400, "there is not enough memory to read this; give a shorter text.") from None

    def close(self) -> None:
        """Compute nothing more."""
        for workers in (self.workers, self.refining, self.reading):
            workers.close()

    def _found(self, name: str, query: str, wanted: Wanted) -> Answer:
        ask, allowed = _ASKED[name]
        asked = Query(query, ("record", "layer", *allowed))
        book = self._book(asked)
        layer = asked.number("layer", 0, len(book.parts) - 1)
        question = (book.number, name, *sorted(asked.values.items()))
        return self._kept.get(question, lambda: ask(self, book, layer, asked, wanted))

    def _book(self, asked: Query) -> Book:
        return self.shelf.book(asked.number("record", 0, 10**9))

    def _computed(self, book: Book, wanted: Wanted, make: Callable[[], Made], workers: Workers | None = None) -> Made:
        """What a worker makes, if it is still wanted then; what it read from disk is let go afterwards."""

        def work() -> Made:
            if not wanted():
                raise Gone
            book.pages.require_whole()
            try:
                with single_threaded_blas():  # the threads are ours already; more of them would wait for each other
                    return make()
            finally:
                book.pages.give_back()

        return (workers or self.workers).do(work)

    def _tile(self, book: Book, layer: int, asked: Query, wanted: Wanted) -> Answer:
        unit = asked.unit()
        queries, keys = sides_of(book.layer(layer))
        rows, cols = _cut(asked, queries, unit, "rows", "height"), _cut(asked, keys, unit, "cols", "width")
        head, step = _head(book, layer, asked), asked.number("step", 0, LARGEST_STEP, 0)
        make = lambda: numbers(*cells.tile(head(), rows, cols, step, wanted))  # noqa: E731
        return self._computed(book, wanted, make, self.refining if step else None)

    def _row(self, book: Book, layer: int, asked: Query, wanted: Wanted) -> Answer:
        _, queries, _ = book.layer(layer).map.shape
        head, places = _head(book, layer, asked), asked.places("rows", queries)
        return self._computed(book, wanted, lambda: numbers(cells.row(head(), places)))

    def _column(self, book: Book, layer: int, asked: Query, wanted: Wanted) -> Answer:
        _, queries, keys = book.layer(layer).map.shape
        head, places = _head(book, layer, asked), asked.places("cols", keys)
        rows = asked.span("rows", queries, f"0:{queries}")
        return self._computed(book, wanted, lambda: numbers(cells.column(few(head(), rows), places, rows)))

    def _rectangle(self, book: Book, layer: int, asked: Query, wanted: Wanted) -> Answer:
        _, queries, keys = book.layer(layer).map.shape
        head, rows, cols = _head(book, layer, asked), asked.span("rows", queries), asked.span("cols", keys)
        if len(rows) * len(cols) > LARGEST_RECTANGLE:
            most = f"{LARGEST_RECTANGLE:,}"
            raise Refused(
                400, f"rows × cols are {len(rows) * len(cols):,} weights; ask for {most} at most, or for a tile."
            )
        parts = slice(rows.start, rows.stop), slice(cols.start, cols.stop)
        return self._computed(book, wanted, lambda: numbers(few(head(), rows).weights(*parts)))

    def _thumbnails(self, book: Book, layer: int, asked: Query, wanted: Wanted) -> Answer:
        found = self._glimpses(book, layer, wanted)
        whole = np.stack([one.thumbnail for one in found])
        return numbers(whole, max(one.step for one in found), shape=",".join(map(str, whole.shape)))

    def _scores(self, book: Book, layer: int, asked: Query, wanted: Wanted) -> Answer:
        found = self._glimpses(book, layer, wanted)
        scores = {name: [one.scores[name] for one in found] for name in SCORES}
        return as_json({**scores, "step": max(one.step for one in found)})

    def _glimpses(self, book: Book, layer: int, wanted: Wanted) -> list[Glimpse]:
        """Each head of a layer at a glance, one after the other, so that a tile can come in between."""
        one = book.layer(layer)
        heads = range(len(one.heads))

        def make() -> list[Glimpse]:
            exact = self._computed(book, wanted, lambda: head_table(one, SCORES)) if _is_small(one) else None
            return [self._computed(book, wanted, partial(_glimpse, book, layer, place, exact)) for place in heads]

        return self._glimpsed.get((book.number, layer), make)


_ASKED: dict[str, tuple[Callable[[Answers, Book, int, Query, Wanted], Answer], tuple[str, ...]]] = {
    "tile": (Answers._tile, ("head", "unit", "rows", "cols", "height", "width", "step")),
    "row": (Answers._row, ("head", "rows")),
    "column": (Answers._column, ("head", "cols", "rows")),
    "rectangle": (Answers._rectangle, ("head", "rows", "cols")),
    "thumbnails": (Answers._thumbnails, ()),
    "scores": (Answers._scores, ()),
}


def as_json(told: Any) -> Answer:
    """Anything plain, as JSON in ASCII: lone halves of characters survive."""
    return Answer(json.dumps(told, allow_nan=False, separators=(",", ":")).encode("ascii"), JSON)


def numbers(values: Any, step: int = 1, *, shape: str | None = None) -> Answer:
    """Numbers as float32, little-endian, row by row."""
    body = np.ascontiguousarray(host(values), dtype="<f4").tobytes()
    told = {"X-Regard-Step": str(step)}
    return Answer(body, BYTES, told if shape is None else {**told, "X-Regard-Shape": shape})


def _order(body: bytes) -> tuple[str, str | None, int]:
    """What is to be read: {"text": …, "pair": … or null, "generate": …}."""
    try:
        order = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise Refused(400, "the body is not JSON.") from None
    if not isinstance(order, dict) or not order.keys() <= {"text", "pair", "generate"}:
        raise Refused(400, 'the body must be {"text": "…", "pair": "…" or null, "generate": 0}.')
    text, pair, generate = order.get("text"), order.get("pair"), order.get("generate", 0)
    for name, value in (("text", text), ("pair", pair)):
        if value is None and name == "pair":
            continue
        if not isinstance(value, str) or not value.strip():
            raise Refused(400, f"{name} has no words; it must be a text.")
        if any("\ud800" <= sign <= "\udfff" for sign in value):
            raise Refused(400, f"{name} has half a character in it; it must be a text of whole ones.")
    if type(generate) is not int or not 0 <= generate <= LONGEST_WRITTEN:
        raise Refused(400, f"generate is {str(generate)[:40]}; it must be a whole number from 0 to {LONGEST_WRITTEN}.")
    return str(text), pair, generate


def _cut(asked: Query, tokens: Tokens, unit: str, name: str, cells: str) -> Side:
    """One side of a tile."""
    units = asked.span(name, len(tokens) if unit == "token" else len(tokens.word_edges) - 1)
    return Side.of(tokens, unit, units, asked.number(cells, 1, min(len(units), LARGEST_SIDE)))


def few(head: Head, rows: range) -> Head:
    """The head itself, unless rows of which nothing is known yet would take too long."""
    most = rows_at_once(head)
    if len(rows) > most and not head.is_summed(rows):
        raise Refused(400, f"rows are {len(rows):,}; ask for {most:,} at a time, as in rows=0:{most}.")
    return head


def _head(book: Book, layer: int, asked: Query) -> Callable[[], Head]:
    """What brings a head, once its number is known to be right."""
    return partial(book.heads.head, layer, asked.number("head", 0, len(book.layer(layer).heads) - 1))


def _glimpse(book: Book, layer: int, place: int, exact: HeadTable | None) -> Glimpse:
    """A head at a glance: all of it where it is small, a few rows where it is not."""
    if exact is None:
        return glimpse(book.layer(layer).heads[place])
    scores = {name: _plain(exact[name][place]) for name in SCORES}
    return Glimpse(host(book.layer(layer).heads[place].pooled(THUMBNAIL, THUMBNAIL)), scores, 1)


def _is_small(layer: Layer) -> bool:
    _, queries, keys = layer.map.shape
    return queries * keys <= WORTH_ALL


def _plain(number: Any) -> float | None:
    return float(number) if np.isfinite(number) else None

"""Addresses: which there are, what may be done at each, and the page itself."""

from collections.abc import Callable
from typing import Any

from .answers import Answer, Answers, Wanted
from .questions import Query
from .refusal import Refused

__all__ = ["Page", "Site"]

HTML = "text/html; charset=utf-8"
Page = Callable[[dict[str, Any]], tuple[bytes, str]]  # description -> the document, and its Content-Security-Policy


class Site:
    """Everything that a server answers, whatever protocol brings the question."""

    def __init__(self, answers: Answers, page: Page) -> None:
        self.answers, self.page = answers, page
        self.gets: dict[str, Callable[[str, Wanted], Answer]] = {"/": self._page, **answers.addresses}
        self.posts: dict[str, Callable[[bytes], Answer]] = {"/run": answers.read}

    def require(self, method: str, path: str) -> None:
        """An error unless there is such an address, and this may be done there."""
        allowed = "GET, HEAD" if path in self.gets else "POST" if path in self.posts else None
        if allowed is None:
            raise Refused(404, f"there is nothing at {path[:60]!r}; there are {', '.join((*self.gets, *self.posts))}.")
        if method not in allowed.split(", "):
            raise Refused(405, f"{method[:20]} will not do at {path}; use {allowed}.", Allow=allowed)

    def respond(self, path: str, query: str, body: bytes, wanted: Wanted = lambda: True) -> Answer:
        """The answer to a request that may be made. wanted: whether somebody still waits for it."""
        return self.posts[path](body) if path in self.posts else self.gets[path](query, wanted)

    def _page(self, query: str, wanted: Wanted) -> Answer:
        asked = Query(query, ("record",))
        shelf = self.answers.shelf
        book = shelf.book(asked.number("record", 0, 10**9)) if "record" in asked.values else shelf.latest
        document, policy = self.page(book.description)
        return Answer(document, HTML, policy=policy)

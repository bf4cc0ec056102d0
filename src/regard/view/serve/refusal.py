"""Why a request is not answered: a status of HTTP, and words for whoever sent it."""

__all__ = ["Gone", "Refused", "wrong"]


class Refused(Exception):
    """A request that is not answered."""

    def __init__(self, status: int, words: str, **headers: str) -> None:
        super().__init__(words)
        self.status, self.words, self.headers = status, words, headers


class Gone(Exception):
    """Nobody waits for the answer any more."""


def wrong(name: str, value: object, allowed: str) -> Refused:
    """A parameter whose value will not do."""
    shown = str(value)
    shown = shown if len(shown) <= 60 else shown[:57] + "…"
    return Refused(400, f"{name} is {shown!r}; it must be {allowed}.")

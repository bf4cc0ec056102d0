"""Ctrl-C and a polite kill: the step that is under way is finished and kept."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def noted() -> Iterator[list[str]]:
    """The names of the signals that came, while this lasts. A second Ctrl-C is obeyed at once."""
    asked: list[str] = []

    def note(number: int, _: Any) -> None:
        if asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.append(signal.Signals(number).name)

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread, as in a notebook's or a server's
        yield asked
        return
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

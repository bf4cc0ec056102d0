"""A text that is too long to be read at once: where parts of it begin that overlap, and leave nothing out."""

from collections.abc import Iterator

from ..errors import OptionError


def begins(tokens: int, room: int, overlap: int) -> Iterator[int]:
    """Where parts of `room` tokens begin, each `overlap` into the one before it; one part at least, the last the rest.

    What is no longer than the overlap and a token is whole in one of them, wherever it stands.
    """
    if not 0 <= overlap < room:
        raise OptionError(f"parts of {room} tokens cannot overlap by {overlap}; it must be 0 or more, and less.")
    yield from range(0, max(tokens - overlap, 1), room - overlap)

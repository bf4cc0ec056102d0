"""What decoding gives back: whole texts as tokens, or the tokens of one step."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Decoded:
    """The tokens that were chosen for one row, after its prefix and without the end.

    score: the sum of the model's own log-probabilities of these tokens and of the end, whatever the temperature;
    for beam search divided by the length penalty. ended: False where the longest length came first.
    """

    tokens: tuple[int, ...]
    score: float
    ended: bool


@dataclass(frozen=True)
class Emitted:
    """What one step chose for the rows that are still open, item by item; where ended, the token is the end."""

    rows: tuple[int, ...]
    tokens: tuple[int, ...]
    scores: tuple[float, ...]  # the model's log-probability of each
    ended: tuple[bool, ...]

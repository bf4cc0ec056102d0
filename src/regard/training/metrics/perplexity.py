"""How well a language model foretells a text: perplexity, and bits per character."""

import math

from ...errors import OptionError


def perplexity(loss: float, tokens: int = 1) -> float:
    """e to the mean loss: among how many equally likely tokens it is undecided. loss: summed over tokens, in nats."""
    _require(tokens, "tokens")
    try:
        return math.exp(loss / tokens)
    except OverflowError:
        return math.inf


def bits_per_character(loss: float, characters: int) -> float:
    """What a character of the text costs, whatever its tokens are. loss: summed over the whole text, in nats."""
    _require(characters, "characters")
    return loss / math.log(2) / characters


def _require(count: int, what: str) -> None:
    if count < 1:
        raise OptionError(f"the loss was summed over {count} {what}, so there is nothing to measure.")

"""Where a model's vectors become guesses: the matrix and the bias, for losses that make the logits bit by bit."""

# E width, V pieces of the vocabulary

from typing import Any

from torch import Tensor


def projection(model: Any) -> tuple[Tensor, Tensor | None]:
    """What `model.guess` multiplies with and adds: an output of its own, or the embedding that is used twice.

    -> (V, E), (V)
    """
    own, target = getattr(model, "output", None), getattr(model, "target_embedding", None)
    written = own if own is not None else target if target is not None else model.embedding
    return written.weight, getattr(model, "bias", None)

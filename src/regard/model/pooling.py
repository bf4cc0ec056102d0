"""Pooling: the vectors of a text → one vector, a mean whose weights are even, learned, or all on the first token."""

# B batch, N tokens, E width

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .options import require_count, require_name

POOLINGS = ("mean", "attention", "first")


class Pooled(NamedTuple):
    """A text in one vector, and how much each of its tokens had to say."""

    vectors: Tensor  # (B, E)
    weights: Tensor  # (B, N), each row adding up to 1, padding 0


class Pooling(nn.Module):
    """(B, N, E) -> (B, E). kind: "mean" of all tokens, "attention" of a learned query to them, or the "first" alone.

    mask: (B, N) booleans, True = a token. A text that is padding alone gets zeros.
    """

    def __init__(self, kind: str, width: int) -> None:
        super().__init__()
        self.kind = require_name("pooling", kind, POOLINGS)
        require_count("width", width)
        # Zeros: every token counts alike before anything is learned.
        self.query = nn.Parameter(torch.zeros(width)) if kind == "attention" else None

    def forward(self, vectors: Tensor, mask: Tensor | None = None) -> Pooled:
        """The vectors, mixed by the weights."""
        weights = self.weights(vectors, mask)
        return Pooled((weights[..., None] * vectors).sum(dim=1), weights)

    def weights(self, vectors: Tensor, mask: Tensor | None = None) -> Tensor:
        """How much each token counts.   (B, N, E) -> (B, N)"""
        kept = torch.ones(vectors.shape[:2], dtype=torch.bool, device=vectors.device) if mask is None else mask
        scores = self._scores(vectors).masked_fill(~kept, torch.finfo(vectors.dtype).min)
        return scores.softmax(dim=-1).masked_fill(~kept, 0.0)

    def _scores(self, vectors: Tensor) -> Tensor:
        """Even scores, those of the query, or the first token's above any other's."""
        if self.query is not None:
            return (vectors * self.query).sum(dim=-1) / math.sqrt(vectors.shape[-1])
        scores = vectors.new_zeros(vectors.shape[:2])
        if self.kind == "first":
            scores[:, 1:] = torch.finfo(scores.dtype).min
        return scores

    def extra_repr(self) -> str:
        """What `print` shows of it."""
        return self.kind

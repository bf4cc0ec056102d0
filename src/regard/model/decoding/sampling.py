"""Sampling: a token drawn by its probability, at a temperature, from the likelier ones alone if so wished."""

# R rows that are decoded at once, V tokens of the vocabulary

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ...errors import OptionError
from ..options import require_count, require_positive
from .ranking import best

# What logits can be divided by and stay numbers; below it is the likeliest token, above it any, long before.
COLDEST, HOTTEST = 1e-6, 1e6


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """What is drawn from. In this order: `temperature` divides the logits; of the tokens only the `top_k` likeliest
    stay; of these the fewest whose share reaches `top_p`; of these those at least `min_p` times as likely as the first.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0

    def __post_init__(self) -> None:
        if self.temperature == 0:
            raise OptionError("temperature is 0, which always takes the likeliest token: call greedy for that.")
        require_positive("temperature", self.temperature)
        if not COLDEST <= self.temperature <= HOTTEST:
            raise OptionError(f"temperature is {self.temperature}; it must be from {COLDEST} to {HOTTEST:,.0f}.")
        if self.top_k is not None:
            require_count("top_k", self.top_k)
        if isinstance(self.top_p, bool) or not isinstance(self.top_p, int | float) or not 0 < self.top_p <= 1:
            raise OptionError(f"top_p is {self.top_p!r}; it must be a share above 0, up to 1.")
        if isinstance(self.min_p, bool) or not isinstance(self.min_p, int | float) or not 0 <= self.min_p <= 1:
            raise OptionError(f"min_p is {self.min_p!r}; it must be a share from 0 to 1.")

    def draw(self, scores: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """One token for each row of log-probabilities.   (R, V) -> (R,)"""
        scores, tokens = scores / self.temperature, None
        if self.top_k is not None or self.top_p < 1:
            scores, tokens = best(scores, self.top_k or scores.shape[1])
        if self.top_p < 1:
            shares = scores.softmax(dim=-1)
            before = shares.cumsum(dim=-1) - shares
            scores = scores.masked_fill(before >= self.top_p, -torch.inf)
        if self.min_p > 0:
            scores = scores.masked_fill(scores < scores.amax(dim=-1, keepdim=True) + math.log(self.min_p), -torch.inf)
        drawn = _drawn(scores, generator)
        return drawn if tokens is None else tokens.gather(1, drawn[:, None])[:, 0]


def _drawn(scores: Tensor, generator: torch.Generator | None) -> Tensor:
    """A place of each row, as likely as its score says.   (R, V) -> (R,)

    One random number a row, looked up in the running sum, is several times faster than one for each token. A row of
    NaN, or where nothing is possible, gets its largest score, by which the caller sees what is wrong.
    """
    sums = scores.softmax(dim=-1).cumsum(dim=-1, dtype=torch.float64)
    below = sums[:, -1:].nextafter(torch.zeros_like(sums[:, -1:]))  # the last place may be an impossible one
    at = torch.rand(below.shape, dtype=torch.float64, device=scores.device, generator=generator) * sums[:, -1:]
    drawn = torch.searchsorted(sums, at.minimum(below), right=True)[:, 0]
    return torch.where(sums[:, -1].isnan(), scores.argmax(dim=-1), drawn)

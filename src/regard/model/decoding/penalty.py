"""Length penalties: what a sum of log-probabilities is divided by, so that short texts do not win by being short."""

from dataclasses import dataclass

import numpy as np

from ...errors import OptionError


@dataclass(frozen=True, kw_only=True)
class LengthPenalty:
    """((offset + n) / (offset + 1)) ** alpha for n tokens, the end among them; 1 for one token, and growing."""

    alpha: float
    offset: float = 5.0

    def __post_init__(self) -> None:
        for name, number in (("alpha", self.alpha), ("offset", self.offset)):
            if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < float("inf"):
                raise OptionError(f"{name} is {number!r}; it must be a number, 0 or more.")

    def of(self, lengths: np.ndarray | int) -> np.ndarray:
        """The divisor for texts of these lengths."""
        return np.asarray(((self.offset + np.asarray(lengths)) / (self.offset + 1)) ** self.alpha)


GNMT = LengthPenalty(alpha=0.6)  # Wu et al. 2016, equation 14
MEAN = LengthPenalty(alpha=1.0, offset=0.0)  # n itself: the mean log-probability of a token
TOTAL = LengthPenalty(alpha=0.0)  # 1: the probability of the text as it is

"""Where decoding may go: the end, the longest and the shortest length, and tokens that are never chosen."""

# B batch, R rows that are decoded at once, V tokens of the vocabulary

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...errors import OptionError, ShapeError
from ..options import require_count


@dataclass(frozen=True, kw_only=True)
class Limits:
    """`Limits(end=tokenizer.end, longest=200, forbidden=(tokenizer.pad,))`

    longest: how many tokens are chosen at most, the end among them; one number for all rows of a batch, or one for
    each, so that a text is decoded alike whatever others are decoded with it. shortest: how many must be chosen before
    the end may be. A prefix counts for neither.
    """

    end: int | None  # None: nothing ends before the longest length
    longest: int | tuple[int, ...]
    shortest: int = 0
    forbidden: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for longest in self._lengths():
            require_count("longest", longest)
        if isinstance(self.shortest, bool) or not isinstance(self.shortest, int) or self.shortest < 0:
            raise OptionError(f"shortest is {self.shortest!r}; it must be a whole number, 0 or more.")
        if self.shortest > min(self._lengths()):
            raise OptionError(f"shortest is {self.shortest} and longest is {min(self._lengths())}; it cannot be more.")
        for token in self._named():
            if isinstance(token, bool) or not isinstance(token, int) or token < 0:
                raise OptionError(f"token {token!r} of end and forbidden must be a whole number, 0 or more.")

    def longest_of(self, batch: int) -> np.ndarray:
        """The longest length of each row of a batch.   (B,)"""
        if isinstance(self.longest, tuple) and len(self.longest) != batch:
            raise ShapeError(f"there are {len(self.longest)} longest lengths and {batch} rows; give one for each.")
        return np.broadcast_to(np.asarray(self.longest), (batch,))

    def bar(self, scores: Tensor, chosen: np.ndarray) -> None:
        """Make impossible, in place, what may not be chosen.   (R, V), and how many were chosen so far, (R,)"""
        if max(self._named(), default=0) >= scores.shape[1]:
            raise OptionError(
                f"end and forbidden name token {max(self._named())}, and the model has {scores.shape[1]}: 0 to "
                f"{scores.shape[1] - 1}. Are they of this model's tokenizer?"
            )
        for token in self.forbidden:
            scores[:, token] = -torch.inf
        early = chosen < self.shortest
        if self.end is not None and early.any():
            rows = slice(None) if early.all() else torch.from_numpy(np.flatnonzero(early)).to(scores.device)
            scores[rows, self.end] = -torch.inf

    def _lengths(self) -> tuple[int, ...]:
        if self.longest == ():
            raise OptionError("longest is (); give one number, or one for each row.")
        return self.longest if isinstance(self.longest, tuple) else (self.longest,)

    def _named(self) -> tuple[int, ...]:
        return self.forbidden if self.end is None else (*self.forbidden, self.end)

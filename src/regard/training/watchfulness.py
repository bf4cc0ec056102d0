"""Whether a run is still learning: NaN, infinity and divergence are told, with the step and its examples."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import NotANumber

SHOWN = 8  # numbers of examples that are told
MEMORY = 0.99  # of the running mean, some 100 steps: over 20 the noise of small batches passes for divergence
EARLY = 50  # steps that may do as they like
RISE = 1.5  # the running mean may be so many times its lowest,
NATS = 1.0  # and so much above it


class Diverged(NotANumber):
    """A run that learns no more, but forgets."""


@dataclass(frozen=True)
class Watch:
    """The running mean of the loss and the lowest that it was; goes through JSON, so a run that goes on knows both."""

    mean: float | None = None
    lowest: float = math.inf

    def after(self, step: int, loss: float, norm: float, numbers: np.ndarray) -> "Watch":
        """One step on, or an error that names it. step: counted from 1"""
        if not math.isfinite(loss) or not math.isfinite(norm):
            wrong = f"the loss is {loss}" if not math.isfinite(loss) else f"the gradients have a norm of {norm}"
            raise NotANumber(
                f"step {step}: {wrong}, in the batch of {told(numbers)}. Nothing of it was kept; lower the learning "
                "rate, raise the warm-up or clip the gradients, and go on from the last checkpoint. If it is this "
                "batch alone, look at its examples."
            )
        kept = 0.0 if self.mean is None else min(MEMORY, (step - 1) / step)  # a plain mean at first
        mean = kept * (self.mean or 0.0) + (1 - kept) * loss
        if step > EARLY and mean > RISE * self.lowest and mean > self.lowest + NATS:
            raise Diverged(
                f"step {step}: the loss diverges. Its running mean is {mean:.3f} and was {self.lowest:.3f}; the batch "
                f"was that of {told(numbers)}. Lower the learning rate, or raise the warm-up."
            )
        return Watch(mean, min(self.lowest, mean) if step >= EARLY else math.inf)


def told(numbers: Sequence[int] | np.ndarray) -> str:
    """Some examples by their numbers."""
    few = ", ".join(str(int(number)) for number in numbers[:SHOWN])
    return f"{len(numbers):,} examples ({few}{', …' if len(numbers) > SHOWN else ''})"

"""logits, step by step → tokens: greedy, sampled and beam search, on anything that can take a step."""

from .beam import beam
from .limits import Limits
from .penalty import GNMT, MEAN, TOTAL, LengthPenalty
from .result import Decoded, Emitted
from .sampling import Sampling
from .stepper import Stepper
from .stream import greedy, sample, stream

__all__ = [
    "GNMT", "MEAN", "TOTAL", "Decoded", "Emitted", "LengthPenalty", "Limits", "Sampling", "Stepper", "beam", "greedy",
    "sample", "stream",
]  # fmt: skip

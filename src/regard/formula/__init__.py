"""The mathematics of attention, once, for every array library (NumPy, PyTorch, JAX, CuPy).

Arrays go in and arrays of the same library come out; which library it is, is found from the arrays.
"""

from . import masks, positions
from .attention import Attended, attend, attended, scores, weights
from .normalize import log_sum_exp, softmax
from .spread import Statistics, statistics

__all__ = [
    "Attended", "Statistics", "attend", "attended", "log_sum_exp", "masks", "positions", "scores", "softmax",
    "statistics", "weights",
]  # fmt: skip

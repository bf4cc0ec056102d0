"""Weights of any library → NumPy's float64, to be drawn."""

from typing import Any

import numpy as np

from ..errors import DtypeError, ShapeError

__all__ = ["as_numbers"]


def as_numbers(weights: Any, name: str, axes: tuple[str, ...]) -> np.ndarray:
    """`weights` as an array of as many axes as are named; a tensor may have a gradient, and be on a GPU."""
    if hasattr(weights, "detach"):
        weights = weights.detach().cpu().double()
    elif hasattr(weights, "get") and hasattr(weights, "device"):
        weights = weights.get()
    try:
        numbers = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise DtypeError(f"{name} are a {type(weights).__name__}; they must be numbers, ({', '.join(axes)}).") from None
    if numbers.ndim != len(axes):
        raise ShapeError(f"{name} have shape {numbers.shape}; they must be ({', '.join(axes)}). Choose one of each.")
    return numbers

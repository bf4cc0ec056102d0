"""Whose numbers are asked for, one head's or all heads' of a layer, and what must have been kept for them."""

# H query heads, G key heads, Q queries, K keys, V value width; "..": nothing for one head, H for a layer

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DtypeError, OptionError
from ...formula.arrays import Array, pick, widened
from ...formula.problem import Problem
from ..record import Head, Layer

__all__ = ["Floats", "Subject", "floats", "places", "problem_of", "value_norms_of", "values_and_gradients_of"]

Subject = Head | Layer
Floats = NDArray[np.float64]


def problem_of(subject: Subject) -> Problem:
    """What the weights follow from: (Q, K) of them for one head, (H, Q, K) for a layer."""
    if isinstance(subject, Head):
        return subject.map.problem.item((subject.place,))
    if isinstance(subject, Layer):
        return subject.map.problem
    raise DtypeError(
        f"this is measured on one head or on a layer, and this is a {type(subject).__name__}; take for example "
        "record.layers[0].heads[0]."
    )


def value_norms_of(subject: Subject) -> Array:
    """How long each value is behind the output matrix.   -> (.., K)"""
    problem = problem_of(subject)
    norms = subject.map.value_norms
    if norms is None:
        raise OptionError(
            f"the lengths of the values are not known for {_name(subject)}: they were not asked for, in which case run "
            "it once more under regard.watch(model, values=True), or no output matrix was found in this layer."
        )
    return widened(problem.xp, norms[subject.place] if isinstance(subject, Head) else norms)


def values_and_gradients_of(subject: Subject) -> tuple[Array, Array]:
    """The values, and the loss's gradient by what each head gives out.   -> (.., K, V), (.., Q, V)"""
    problem, found = problem_of(subject), subject.map
    missing = [name for name in ("values", "gradients") if getattr(found, name) is None]
    if missing:
        raise OptionError(
            f"{' and '.join(missing)} were not kept for {_name(subject)}; run it once more under "
            "regard.watch(model, gradients=True), with loss.backward() inside. (nn.MultiheadAttention has them only if "
            "it is called with need_weights=False.)"
        )
    both = (found.values, found.gradients)
    if isinstance(subject, Head):
        both = tuple(pick(array, (subject.place,), found.shape) for array in both)
    values, gradients = (widened(problem.xp, array) for array in both)
    return values, gradients


def places(name: str, chosen: int | slice | Iterable[int], size: int) -> list[int]:
    """Some rows, layers or heads as their places, counted from 0; negative ones count from the end."""
    if isinstance(chosen, slice):
        found = list(range(*chosen.indices(size)))
    else:
        found = [int(place) for place in (chosen if isinstance(chosen, Iterable) else (chosen,))]
    if not found or any(not -size <= place < size for place in found):
        raise OptionError(f"{name} are {chosen!r}; choose at least one, out of 0 to {size - 1}.")
    return [place % size for place in found]


def floats(array: Any) -> Floats:
    """A few numbers of any library and device as NumPy's; one journey from a GPU, not one for each."""
    return np.asarray(array.tolist(), dtype=np.float64)


def _name(subject: Subject) -> str:
    layer = subject.layer if isinstance(subject, Head) else subject
    return f"layer {layer.index} ({layer.name})"

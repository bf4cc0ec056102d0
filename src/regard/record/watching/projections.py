"""The matrix through which a head's values leave their layer, found in models of any family."""

# H query heads, G key heads, K keys, V value width, E width of the model

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["value_norms"]

NAMES = ("o_proj", "out_proj", "c_proj", "out_lin", "wo", "o", "output", "dense", "proj", "out", "to_out", "linear_out")


def value_norms(
    module: nn.Module, around: nn.Module | None, values: Tensor, heads: Sequence[int], all_heads: int
) -> Tensor | None:
    """How long each value is after its head's part of the output matrix: ‖v·W_O‖.   (G, K, V) -> (H, K)

    heads: the numbers of those whose values these are, out of `all_heads`. None where no such matrix is found: one with
    an input for every number of every head, in the layer or in the module around it.
    """
    groups, _, width = values.shape
    matrix = _matrix(module, all_heads * width)
    if matrix is None and around is not None:
        matrix = _matrix(around, all_heads * width)
    if matrix is None:
        return None
    with torch.no_grad():
        parts = matrix.to(values.device, torch.float32).reshape(-1, all_heads, width)  # (E, H, V)
        norms = []
        for place, head in enumerate(heads):
            own = parts[:, head]
            square = own.T @ own  # ‖v·W‖² = v·WWᵀ·v: V × V, however wide the model is
            value = values[place * groups // len(heads)].float()
            norms.append(((value @ square) * value).sum(-1).clamp(min=0).sqrt())
        return torch.stack(norms)


def _matrix(module: nn.Module, inputs: int) -> Tensor | None:
    """A matrix (E, inputs) by one of its usual names, in a module or in its part called output."""
    for holder in (module, getattr(module, "output", None)):
        for name in NAMES:
            found: Any = getattr(holder, name, None)
            if isinstance(found, nn.Linear) and found.in_features == inputs:
                return found.weight.detach()
            if "Conv1D" in type(found).__name__ and found.weight.shape[0] == inputs:
                weight: Tensor = found.weight.detach().T
                return weight
    return None

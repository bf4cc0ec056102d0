"""Some heads of a layer, where not all are to be kept: of its queries and keys, its mask, its bias, its sinks."""

from dataclasses import replace
from typing import Any

from torch import Tensor

from ...errors import OptionError
from ...formula import masks
from ...formula.masks import Mask
from ...formula.positions import Bias

__all__ = ["chosen_heads", "of_bias", "of_mask", "of_sinks", "of_tensor"]


def chosen_heads(heads: Any) -> list[int] | None:
    """The heads that a user chose, each once; None: all."""
    if heads is None:
        return None
    chosen = [_head(head) for head in ([heads] if isinstance(heads, int) else heads)]
    if not chosen:
        raise OptionError("heads is empty; choose at least one, or None for all.")
    return list(dict.fromkeys(chosen))


def _head(head: Any) -> int:
    if isinstance(head, bool) or not isinstance(head, int) or head < 0:
        raise OptionError(f"head {head!r}; heads are numbered from 0.")
    return head


def of_tensor(tensor: Tensor, heads: list[int] | None, whole: int, name: str) -> Tensor:
    """Some heads of the queries of a layer, which has so many as a whole, or the keys that serve them."""
    if heads is None:
        return tensor
    missing = [head for head in heads if head >= whole]
    if missing:
        raise OptionError(f"head {missing[0]} of {whole} in {name}; choose 0 to {whole - 1}.")
    return tensor[:, [head * tensor.shape[1] // whole for head in heads]]


def of_sinks(sinks: Tensor | None, heads: list[int] | None) -> Tensor | None:
    """The sinks of some heads."""
    if sinks is None:
        return None
    return sinks.detach().clone() if heads is None else sinks.detach()[heads]


def of_bias(bias: Bias | None, heads: list[int] | None) -> Bias | None:
    """A bias, of some heads where it differs from head to head."""
    numbers = getattr(bias, "numbers", None)
    if bias is None or heads is None or numbers is None or numbers.shape[1] == 1:
        return bias
    return replace(bias, numbers=numbers[:, heads])  # type: ignore[type-var]


def of_mask(mask: Mask | None, heads: list[int] | None) -> Mask | None:
    """A mask, of some heads where it differs from head to head."""
    allowed = getattr(mask, "allowed", None)
    if heads is None or allowed is None or allowed.ndim < 3 or allowed.shape[-3] == 1:
        return mask
    return masks.given(allowed[..., heads, :, :])

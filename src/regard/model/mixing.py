"""queries, keys, values → mixed values: the one place in a model where the dot product is taken."""

# B batch, H query heads, G key heads, Q queries, K keys, D head width

from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import DtypeError, ShapeError
from ..formula import Attended, weights
from ..formula.arrays import namespace
from ..formula.masks import Mask
from ..formula.masks.mask import HINTS
from ..formula.masks.places import Causal
from ..formula.problem import grouped_matmul

Shape = tuple[int, ...]  # of the map: (B, H, Q, K)
EVERYTHING, NOTHING = slice(None), slice(0, 0)


class Mixing(nn.Module):
    """The values, mixed by how well queries fit keys.   (B, H, Q, D), (B, G, K, D) twice -> (B, H, Q, D)

    It has no parameters and is a module so that a forward hook sees the queries and keys exactly as they were when
    the dot product was taken: positions turned, grouped heads still grouped, the mask still an object.
    """

    def __init__(self, *, scale: float | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        self.scale, self.dropout = scale, dropout

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Mask | Tensor | None = None) -> Tensor:
        """By PyTorch's kernel, which never holds the weights."""
        allowed, causal = as_kernel_mask(mask, (*query.shape[:3], key.shape[2]), query)
        key, value = _without_unseen(key, value, allowed)
        mixed = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=allowed, is_causal=causal, scale=self.scale,
            dropout_p=self.dropout if self.training else 0.0, enable_gqa=query.shape[1] != key.shape[1],
        )  # fmt: skip
        if allowed is None:
            return mixed
        # Where a query may attend to nothing some kernels give 0, and cuDNN's the mean of all values.
        return mixed.masked_fill(~allowed.any(dim=-1, keepdim=True), 0.0)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Mask | Tensor | None = None) -> Attended:
        """By the formula, with the weights, (B, H, Q, K), as they are before dropout: each row adds up to 1."""
        allowed, _ = as_kernel_mask(mask, (*query.shape[:3], key.shape[2]), query)
        key, value = _without_unseen(key, value, allowed)
        found = weights(query, key, mask, scale=self.scale)
        kept = functional.dropout(found, self.dropout, self.training)
        return Attended(grouped_matmul(torch, kept, value), found)

    def extra_repr(self) -> str:
        """What `print` shows of it."""
        return f"dropout={self.dropout}" + ("" if self.scale is None else f", scale={self.scale:g}")


def _without_unseen(key: Tensor, value: Tensor, allowed: Tensor | None) -> tuple[Tensor, Tensor]:
    """Zeros for what no query may see: 0·NaN is NaN, so a weight of 0 alone does not keep it out."""
    if allowed is None:
        return key, value
    unseen = ~allowed.any(dim=1, keepdim=True).any(dim=2, keepdim=True).transpose(2, 3)  # (B, 1, K, 1)
    return key.masked_fill(unseen, 0.0), value.masked_fill(unseen, 0.0)


def as_kernel_mask(mask: Mask | Tensor | None, shape: Shape, like: Tensor) -> tuple[Tensor | None, bool]:
    """A checked mask as the kernel takes it: booleans of four axes or none, and whether it is to be causal itself."""
    if mask is None:
        return None, False
    if _is_plain_causal(mask):
        queries, keys = shape[-2:]
        offset = keys - queries if mask.offset is None else mask.offset
        if offset == 0 and queries == keys:
            return None, True
        if offset >= keys - 1:  # Already the first query sees every key, as in each step of decoding.
            return None, False
    allowed: Tensor = mask.tile(EVERYTHING, EVERYTHING, shape, like=like) if isinstance(mask, Mask) else mask
    return allowed[(None,) * (4 - allowed.ndim) + (...,)], False


def require_mask(mask: Mask | Tensor | None, shape: Shape, like: Tensor) -> None:
    """A mask must be boolean and fit the map; the axes of a tensor are matched from the last, as ever."""
    if mask is None or _is_plain_causal(mask):
        return
    if isinstance(mask, Mask):
        for array in mask.arrays():
            namespace(x=like, mask=array)
        found = tuple(mask.tile(NOTHING, NOTHING, shape, like=like).shape)
        if not _fits(found, (*shape[:-2], 0, 0)):
            raise ShapeError(f"the mask is for a batch of {found[:-2]} and the map is {shape}, (.., queries, keys).")
        return
    if not isinstance(mask, Tensor):
        raise DtypeError(f"mask is a {type(mask).__name__}; give a boolean tensor or one of regard.formula.masks.")
    if mask.dtype != torch.bool:
        raise DtypeError(
            f"mask has dtype {mask.dtype}; a mask is boolean, True = may attend. If 1 and 0 were meant, "
            "masks.from_binary(mask); if 0 and −inf, masks.from_additive(mask)."
        )
    if not _fits(tuple(mask.shape), shape):
        says = f"mask has shape {tuple(mask.shape)}, which does not fit the map (.., queries, keys) {shape}."
        raise ShapeError(says + HINTS.get(mask.ndim, ""))


def _is_plain_causal(mask: Mask | Tensor) -> TypeGuard[Causal]:
    """Causal, and the same for every item."""
    return isinstance(mask, Causal) and (mask.offset is None or isinstance(mask.offset, int))


def _fits(mask: Shape, shape: Shape) -> bool:
    # Written for torch.compile, which reads this line by line and knows no max(.., default=..).
    pairs = zip(reversed(mask), reversed(shape), strict=False)
    return len(mask) <= len(shape) and all(size in (1, whole) for size, whole in pairs)

"""Masks and biases as a model makes them, n×n, → what they say in O(n) numbers, wherever structure says the same.

A mask whose rows have no holes (causal, windowed, padded at either end, packed) is two numbers a row; a bias that
depends on the distance alone (T5, ALiBi) is one number a distance. Each is checked against all of the array it stands
for; an array that has no such structure is kept as it is.
"""

# B batch, H heads, Q queries, K keys; sizes of 1 serve every item, every head

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ...formula import masks
from ...formula.masks import Mask
from ...formula.masks.places import Ranges
from ...formula.positions.bias import Bias, Distances
from ...formula.positions.bias import Given as GivenBias

__all__ = ["Shaping", "blinded", "read_bias", "read_block_mask", "read_mask", "simplest"]

NEVER = -1e4  # an additive mask of this much or less leaves nothing of a weight: exp(−10,000) is 0
ABSORBING = -1e30  # and to this much no score makes a difference, nor to float16's lowest: a row of it is even
AT_ONCE = 2**24  # entries of a mask that are looked at in one go


@dataclass(frozen=True, eq=False)
class Shaping:
    """What a mask, or a bias, says."""

    mask: Mask | None = None
    bias: Bias | None = None
    even: Tensor | None = None  # (b, Q) rows that were given no key and so looked at all keys alike, as eager does


def read_mask(mask: Tensor, queries: int, keys: int) -> Shaping:
    """A mask of (b, h, Q, K or more): booleans, True = may attend, or numbers that are added to the scores."""
    mask = mask.detach()[(None,) * (4 - mask.ndim) + (...,)][..., :keys]
    mask = mask.expand(*mask.shape[:2], queries, keys)
    if mask.dtype == torch.bool:
        return Shaping(mask=_as_ranges(mask, None)[0])
    found, even = _as_ranges(mask, NEVER)
    if _all(mask, lambda part: (part == 0) | (part <= NEVER)):
        return Shaping(mask=found, even=even)
    numbers = torch.where(mask > NEVER, mask, torch.zeros((), dtype=mask.dtype, device=mask.device))
    return Shaping(mask=found, bias=read_bias(numbers), even=even)


def blinded(shaping: Shaping, keys: int) -> Shaping:
    """The same where a sink takes part: a row that was given no key looks at none, since the sink takes all of it."""
    even, mask = shaping.even, shaping.mask
    if even is None:
        return shaping
    if mask is not None and not isinstance(mask, Ranges):
        allowed = mask.tile(slice(None), slice(None), (len(even), 1, even.shape[1], keys), like=even)
        return Shaping(mask=masks.given(allowed & ~even[:, None, :, None]), bias=shaping.bias)
    first, last = (0, keys - 1) if mask is None else (mask.first, mask.last)
    return Shaping(mask=masks.ranges(torch.where(even, 1, first), torch.where(even, 0, last)), bias=shaping.bias)


def read_bias(bias: Tensor) -> Bias:
    """Numbers that are added to the scores, (b, h, Q, K)."""
    bias = bias.detach()
    queries = bias.shape[-2]
    steps = max(1, AT_ONCE // max(1, bias[..., 0, :].numel()))
    for first in range(0, queries - 1, steps):
        last = min(first + steps, queries - 1)
        if not torch.equal(bias[..., first:last, :-1], bias[..., first + 1 : last + 1, 1:]):
            return GivenBias(bias.clone())
    numbers = torch.cat((bias[..., 1:, 0].flip(-1), bias[..., 0, :]), dim=-1)
    return Distances(numbers, 1 - queries, 0)


def read_block_mask(block_mask: object, batch: int, queries: int, keys: int, device: torch.device) -> Shaping:
    """A BlockMask of FlexAttention, asked for its rows a few at a time."""
    from torch.nn.attention.flex_attention import create_mask

    heads = block_mask.shape[1]  # type: ignore[attr-defined]
    ask = block_mask.mask_mod  # type: ignore[attr-defined]
    steps = max(1, AT_ONCE // max(1, batch * heads * keys))
    parts = []
    for first in range(0, queries, steps):
        rows = min(steps, queries - first)

        def shifted(b: Tensor, h: Tensor, q: Tensor, kv: Tensor, first: int = first) -> Tensor:
            return ask(b, h, q + first, kv)  # type: ignore[no-any-return]

        parts.append(create_mask(shifted, batch, heads, rows, keys, device=str(device)))
    return read_mask(torch.cat(parts, dim=-2), queries, keys)


def _as_ranges(mask: Tensor, never: float | None) -> tuple[Mask | None, Tensor | None]:
    """The keys from one to another that each row sees, if it has no holes; the mask itself if it has.

    never: of a mask of numbers, those down from which a key is not seen; a row without any key then is even, or, where
    the numbers are not low enough for that, sees everything.
    """
    if mask.shape[1] > 1 and _all(mask, lambda part: _seen(part, never) == _seen(part[:, :1], never)):
        mask = mask[:, :1]
    _, heads, _, keys = mask.shape
    if heads > 1:
        return masks.given(_seen(mask, never).clone()), None
    firsts, lasts, evens, holes = [], [], [], False
    lowest = torch.finfo(mask.dtype).min if mask.is_floating_point() else ABSORBING
    absorbing = max(ABSORBING, lowest)
    for rows in _by_rows(mask[:, 0]):
        allowed = _seen(rows, never)
        count = allowed.sum(-1)
        first = allowed.to(torch.uint8).argmax(-1)
        last = keys - 1 - allowed.flip(-1).to(torch.uint8).argmax(-1)
        blind = count == 0
        holes = holes or not bool((blind | (last - first + 1 == count)).all())
        if never is not None:
            evens.append(blind & (rows[..., 0] <= absorbing) & (rows[..., 0] > -torch.inf))
            blind = blind & (rows[..., 0] == -torch.inf)
            first, last = torch.where(count == 0, 0, first), torch.where(count == 0, keys - 1, last)
        firsts.append(torch.where(blind, 1, first))
        lasts.append(torch.where(blind, 0, last))
    even = torch.cat(evens, dim=1) if evens else None
    even = even if even is not None and bool(even.any()) else None
    if holes:
        allowed = _seen(mask, never)
        return masks.given(allowed.clone() if even is None else allowed | even[:, None, :, None]), even
    return simplest(torch.cat(firsts, dim=1), torch.cat(lasts, dim=1), keys), even


def _seen(mask: Tensor, never: float | None) -> Tensor:
    """Which keys a mask of booleans, or of numbers, lets be seen."""
    return mask if never is None else mask > never


def simplest(first: Tensor, last: Tensor, keys: int) -> Mask | None:
    """Ranges, (b, Q), by a shorter name, where they have one: everything, or causal."""
    if bool((first == 0).all()):
        if bool((last == keys - 1).all()):
            return None
        offset = int(last[0, 0])
        places = torch.arange(offset, offset + last.shape[1], device=last.device).clamp(max=keys - 1)
        if bool((last == places).all()) and offset + last.shape[1] >= keys:
            return masks.causal(offset)
    return masks.ranges(first[0], last[0]) if len(first) == 1 else masks.ranges(first, last)


def _all(mask: Tensor, holds: Callable[[Tensor], Tensor]) -> bool:
    return all(bool(holds(part).all()) for part in _by_rows(mask))


def _by_rows(mask: Tensor) -> Iterator[Tensor]:
    """The rows of a mask, as many at once as may be copied."""
    steps = max(1, AT_ONCE // max(1, mask[..., 0, :].numel()))
    for first in range(0, mask.shape[-2], steps):
        yield mask[..., first : first + steps, :]

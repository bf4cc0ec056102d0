"""The k best tokens of each row, in order; of equal ones the lowest comes first."""

# R rows, V tokens, k best ones, C stretches of the vocabulary

import torch
from torch import Tensor

STRETCH = 256  # tokens whose best one is looked at first


def likeliest(scores: Tensor) -> Tensor:
    """The best token of each row; NaN before all numbers.   (R, V) -> (R,)"""
    if scores.device.type == "cpu":
        return torch.from_numpy(scores.numpy().argmax(axis=-1))  # some seven times as fast as PyTorch's own
    return scores.argmax(dim=-1)


def best(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Scores and tokens of the k best, NaN before all numbers.   (R, V) -> (R, k) twice"""
    if k >= scores.shape[1]:
        values, tokens = scores.sort(dim=-1, descending=True, stable=True)
        return values, tokens
    # topk says nothing of ties. One value more than asked for shows whether there are any: hardly ever in float32,
    # often in bfloat16.
    values, tokens = _top(scores, k + 1)
    equal = (values[:, 1:] == values[:, :-1]) & (values[:, 1:] > -torch.inf)
    values, tokens = values[:, :k], tokens[:, :k]
    if not bool(equal.any()):
        return values, tokens
    rows = equal[:, -1].nonzero()[:, 0]  # whose last value has equals that were left out
    tokens = tokens.index_copy(0, rows, _lowest(scores[rows], values[rows], tokens[rows]))
    tokens, order = tokens.sort(dim=-1)
    values, order = values.gather(1, order).sort(dim=-1, descending=True, stable=True)
    return values, tokens.gather(1, order)


def _top(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """What topk gives. On a CPU several times as fast: the k best lie in the k stretches whose best are best.

    The tokens behind the last whole stretch are looked at in any case.
    """
    stretches = scores.shape[1] // STRETCH
    if scores.device.type != "cpu" or stretches < 4 * k:
        values, tokens = scores.topk(k)
        return values, tokens
    whole = scores[:, : stretches * STRETCH].unflatten(1, (stretches, STRETCH))  # (R, C, STRETCH)
    looked_at = whole.amax(dim=-1).topk(k).indices  # (R, k) stretches
    near = whole.gather(1, looked_at[:, :, None].expand(-1, -1, STRETCH)).flatten(1)
    values, places = torch.cat((near, scores[:, stretches * STRETCH :]), dim=1).topk(k)
    number = (places // STRETCH).clamp(max=k - 1)
    behind = places >= k * STRETCH
    first = torch.where(behind, stretches - k, looked_at.gather(1, number) - number)
    return values, places + first * STRETCH


def _lowest(scores: Tensor, values: Tensor, tokens: Tensor) -> Tensor:
    """The k best with the lowest of those that equal the last of them; in order of value.   (R, V), (R, k) twice"""
    vocabulary, k = scores.shape[1], values.shape[1]
    places = torch.arange(vocabulary, device=scores.device)
    lowest = torch.where(scores == values[:, -1:], places, vocabulary).topk(k, largest=False).values
    above = (values > values[:, -1:]).sum(dim=-1, keepdim=True)
    behind = torch.arange(k, device=scores.device) - above
    return torch.where(behind < 0, tokens, lowest.gather(1, behind.clamp(min=0)))

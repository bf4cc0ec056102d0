"""One call of an attention function, as it was seen: what went in, what came out."""

# B batch, H query heads, G key heads, Q queries, K keys, D width, V value width

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ...formula.masks import Mask
from ...formula.masks.places import Causal, Ranges
from ...formula.normalize import softmax
from ...formula.positions.bias import Bias, Distances
from ...formula.positions.bias import Given as GivenBias
from ...formula.problem import Problem, grouped_matmul

__all__ = ["Call", "mismatch", "sample"]

SMALL = 2**20  # weights of a call up to which every head of it is checked
ROUNDING = {torch.float16: 2e-2, torch.bfloat16: 5e-2}  # of an output, against the largest value; else 2e-3


@dataclass(frozen=True, eq=False, kw_only=True)
class Call:
    """Queries and keys of a whole batch, as the dot product was taken of them, and everything that shaped a weight."""

    module: nn.Module
    query: Tensor  # (B, H, Q, D)
    key: Tensor  # (B, G, K, D)
    value: Tensor | None = None  # (B, G, K, V)
    output: Tensor | None = None  # (B, H, Q, V)
    result: Tensor | None = None  # the same as the model goes on with it, in whatever axes: gradients come by this one
    scale: float
    softcap: float | None = None
    mask: Mask | None = None
    bias: Bias | None = None
    even: Tensor | None = None  # (b, Q) rows that looked at all keys alike
    sinks: Tensor | None = None  # (H,)
    cross: bool | None = None  # whether keys are of another text; None: not said
    dropped: bool = False  # whether dropout fell on the weights, so that the output is not that of the weights
    sampled: bool = False  # whether it is only what `sample` leaves of a call
    way: Any = None  # what was called: calls of one kind are checked once

    @property
    def is_large(self) -> bool:
        """Whether checking every head of it would cost time: then a sample is checked, when the watch ends."""
        return math.prod(self.query.shape[:3]) * self.key.shape[2] > SMALL

    @property
    def versions(self) -> tuple[int, ...]:
        """How often its tensors were written to."""
        return tuple(-1 if one is None else one._version for one in (self.query, self.key, self.value, self.output))

    @property
    def extent(self) -> int:
        """The last key that the last query may see; where masks differ from text to text, the furthest of them."""
        queries, keys = self.query.shape[2], self.key.shape[2]
        if isinstance(self.mask, Causal) and isinstance(self.mask.offset, int):
            return min(keys, queries + self.mask.offset) - 1
        if isinstance(self.mask, Ranges):
            return int(self.mask.last[..., -1].max())
        return keys - 1

    @property
    def grows(self) -> bool:
        """Whether it may be a step of a text that grows: one query, or several of which the last sees furthest."""
        if isinstance(self.mask, Ranges):
            last = self.mask.last if self.even is None else self.mask.last.masked_fill(self.even, -1)
            return self.query.shape[2] == 1 or int(last.max()) == self.extent
        return self.query.shape[2] == 1 or self.mask is not None


def mismatch(call: Call) -> tuple[Tensor, float] | None:
    """How far two queries' outputs are from what the weights seen here make of the values, and what is rounding.

    The proof that nothing was overlooked: a family that does something else with its scores fails it. The last query
    and one in the middle, which a causal mask keeps from half of the keys. None where there is nothing to compare. The
    number stays on its device: nobody waits for it here.
    """
    if not _is_comparable(call):
        return None
    assert call.value is not None
    assert call.output is not None
    with torch.no_grad():
        problem = Problem.of(
            call.query, call.key, call.mask, scale=call.scale, softcap=call.softcap, bias=call.bias, sinks=call.sinks
        )
        output = call.output if call.sampled else _rows(call.output)
        apart = torch.stack(
            [_apart(call, problem, row, output[:, :, place : place + 1]) for place, row in enumerate(_two(call))]
        )
        size = torch.where(torch.isfinite(call.value), call.value, 0.0).abs().amax().to(apart.dtype).clamp(min=1e-30)
        parts = (call.query, call.key, call.value, call.output)  # autocast computes in less than it is given
        return apart.amax() / size, max(ROUNDING.get(part.dtype, 2e-3) for part in parts)


def sample(call: Call) -> Call:
    """As much of a call as is needed to compare it later, and no more memory than that.

    The first text, and the heads that its first keys serve: all heads go the same way, and one is enough.
    """
    if not _is_comparable(call):
        return replace(call, value=None, output=None, result=None)
    assert call.value is not None
    assert call.output is not None
    shape = (*call.query.shape[:3], call.key.shape[2])
    served = call.query.shape[1] // call.key.shape[1]
    mask, bias = call.mask, call.bias
    if mask is not None and mask.lead():
        mask = mask.item((0,) if len(mask.lead()) == 1 else (0, 0), shape)
    if isinstance(bias, (Distances, GivenBias)):
        bias = replace(bias, numbers=bias.numbers[:1, :served])
    return replace(
        call, query=call.query[:1, :served].detach().clone(), key=call.key[:1, :1].detach().clone(),
        value=call.value[:1, :1].detach().clone(), output=_rows(call.output[:1, :served].detach()), result=None,
        mask=mask, bias=bias, even=None if call.even is None else call.even[:1],
        sinks=None if call.sinks is None else call.sinks[:served], sampled=True,
    )  # fmt: skip


def _is_comparable(call: Call) -> bool:
    if call.value is None or call.output is None or call.dropped or 0 in (*call.query.shape, *call.key.shape):
        return False
    return call.key.shape[1] == call.value.shape[1]


def _two(call: Call) -> list[int]:
    """The queries whose outputs are compared: the middle one, and the last."""
    return [call.query.shape[2] // 2, call.query.shape[2] - 1]


def _rows(output: Tensor) -> Tensor:
    """Those two of an output.   (B, H, Q, V) -> (B, H, 2, V)"""
    return torch.stack((output[:, :, output.shape[2] // 2], output[:, :, -1]), dim=2)


def _apart(call: Call, problem: Problem, row: int, output: Tensor) -> Tensor:
    """How far one query's output is from what follows from its scores; a query that sees no key is not looked at."""
    scores = problem.scores(slice(row, row + 1))
    if call.even is not None:
        even = call.even[..., row : row + 1, None][:, None]
        scores = torch.where(even, torch.zeros_like(scores), scores)
    seen = (scores != -torch.inf).any(-1, keepdim=True)
    if call.sinks is not None:
        sinks: Tensor = problem.sinks  # type: ignore[assignment]
        scores = torch.cat((scores, sinks.expand(*scores.shape[:-1], 1)), dim=-1)
    weights = softmax(scores)[..., : call.key.shape[2]]
    assert call.value is not None
    expected = grouped_matmul(torch, weights, call.value.to(weights.dtype))
    apart = (expected - output.to(expected.dtype)).abs()
    return torch.where(seen & torch.isfinite(apart), apart, 0.0).amax()

"""All that the weights of one layer follow from, for one text: queries, keys and what else shapes a score."""

# H query heads, G key heads, Q queries, K keys, D width, V value width

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ..formula.arrays import Array, pick
from ..formula.masks import Mask
from ..formula.positions import Bias
from ..formula.problem import Problem

__all__ = ["Map"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Map:
    """Queries and keys as they were when the dot product was taken, grouped heads still grouped; nothing is n×n.

    A weight is exp(softcap·tanh(scale·q·k / softcap) + bias − lse), and 0 where the mask says no.
    """

    queries: Array  # (H, Q, D)
    keys: Array  # (G, K, D)
    scale: float
    softcap: float | None = None
    mask: Mask | None = None
    bias: Bias | None = None
    sinks: Array | None = None  # (H,)
    offset: int = 0  # the place of the first query among the keys
    values: Array | None = None  # (G, K, V), on request
    value_norms: Array | None = None  # (H, K): how long a value is once the output matrix has turned it, on request
    gradients: Array | None = None  # (H, Q, V): of the loss, by what each head gives out, on request
    lse: Array | None = None  # (H, Q): log-sum-exp of each row, where it is known
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)  # what was asked for once

    @cached_property
    def problem(self) -> Problem:
        """The whole map, all heads, checked."""
        return Problem.of(
            self.queries, self.keys, self.mask, scale=self.scale, softcap=self.softcap, bias=self.bias,
            sinks=self.sinks,
        )  # fmt: skip

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, Q, K)"""
        heads, queries, _ = self.queries.shape
        return heads, queries, self.keys.shape[-2]

    def head(self, head: int) -> "Map":
        """The map of one head alone, as a map of one head."""
        index, shape = (head,), self.shape
        alone: dict[str, Any] = {
            name: None if (array := getattr(self, name)) is None else pick(array, index, shape)[None]
            for name in ("queries", "keys", "values", "gradients")
        }
        rows: dict[str, Any] = {
            name: None if (array := getattr(self, name)) is None else array[head : head + 1]
            for name in ("sinks", "value_norms", "lse")
        }
        return replace(
            self,
            **alone,
            **rows,
            mask=None if self.mask is None else self.mask.item(index, shape),
            bias=None if self.bias is None else self.bias.item(index, shape),
            kept={},
        )

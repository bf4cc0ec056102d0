"""Calls that go on with each other → one map: generation, where each step adds its row to those before it.

With a cache of keys each step brings its own queries and is handed the keys of all steps. Kept of a step are its
queries and the keys that are new in it. Beams that change places between two steps, a cache that was cut back, a window
that has moved on: where a row belongs follows from where it stands among the keys, never from counting steps.
"""

# B batch, H query heads, G key heads, Q queries of a step, K keys of a step

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from ...formula import masks
from ...formula.arrays import Array, Library
from ...formula.masks import Mask
from ...formula.masks.places import Causal, Ranges
from ...formula.positions.bias import Bias, Distances
from ...formula.positions.bias import Given as GivenBias
from ..map import Map
from .shaping import simplest

__all__ = ["Step", "Strand"]

Keep = Callable[[Tensor], Array]  # puts a tensor where the record is to be


@dataclass(eq=False, kw_only=True)
class Step:
    """What one call left: its own rows, and the keys that are new in it."""

    query: Array  # (B, H, Q, D)
    key: Array | None  # (B, G, new keys, D); none where another text is looked at again
    value: Array | None
    mask: Mask | None  # over the keys that the call was handed
    bias: Bias | None
    handed: int  # how many those were
    base: int  # the place of the first query among the keys
    shift: int  # of the first key that was handed
    ids: Tensor | None  # (B, Q) the tokens
    order: Tensor | None = None  # (B,) which text of the step before each one goes on with, where that has changed
    gradient: list[Array] = field(default_factory=list)  # (B, H, Q, V), once it is known

    @property
    def rows(self) -> int:
        """How many queries it has."""
        return int(self.query.shape[2])


@dataclass(eq=False)
class Strand:
    """The steps of one text, or of one batch of them."""

    scale: float
    softcap: float | None
    sinks: Array | None  # (H,)
    cross: bool
    steps: list[Step] = field(default_factory=list)
    source_ids: Tensor | None = None  # (b, K) the tokens of the other text, in cross-attention
    order: Tensor | None = None  # of texts, since the last step
    episode: int = 0  # which call of generate() it belongs to
    tail: Tensor | None = None  # (B, G, D) the last key, to know it again

    @property
    def rows(self) -> int:
        """How far the rows reach, counted from the first key."""
        return self.steps[-1].base + self.steps[-1].rows if self.steps else 0

    @property
    def batch(self) -> int:
        """How many texts there are."""
        return int(self.steps[-1].query.shape[0])

    def add(self, step: Step) -> None:
        """One step more; where it stands before the end of what is there, it takes the place of that."""
        step.order, self.order = self.order, None
        while self.steps and self.steps[-1].base >= step.base:
            dropped = self.steps.pop()
            step.order = _after(dropped.order, step.order)
        if self.steps and self.rows > step.base:
            self.steps[-1] = _cut(self.steps[-1], step.base - self.steps[-1].base)
        self.steps.append(step)

    def reorder(self, order: Tensor) -> None:
        """From now on text b goes on with what was text order[b]."""
        if len(order) == self.batch:
            self.order = _after(self.order, order.detach().cpu())

    def ends_with(self, key: Tensor) -> bool:
        """Whether a key, (B, G, D), is the last one of each text."""
        torn = self.torn_from(key)
        return torn is not None and not bool(torn)

    def torn_from(self, key: Tensor) -> Tensor | None:
        """Whether a key, (B, G, D), is another than the last one of some text, on its device; None: it is not known."""
        if self.tail is None or self.tail.shape != key.shape:
            return None
        tail = self.tail if self.order is None else self.tail[self.order.to(self.tail.device)]
        return (tail != key).any()

    def paths(self) -> list[list[tuple[Step, int]]]:
        """For each text at the end, the steps that led to it, each with the place the text had there."""
        return [self.path(len(self.steps) - 1, text) for text in range(self.batch)]

    def path(self, last: int, text: int) -> list[tuple[Step, int]]:
        """The steps that led to one text of step `last`."""
        found = []
        for step in reversed(self.steps[: last + 1]):
            found.append((step, text))
            if step.order is not None:
                text = int(step.order[text])
        return found[::-1]

    def ids(self, path: Sequence[tuple[Step, int]]) -> Tensor | None:
        """The tokens of the rows along a path."""
        if any(step.ids is None for step, _ in path):
            return None
        return torch.cat([step.ids[text] for step, text in path if step.ids is not None]).cpu()

    def cut(self, path: list[tuple[Step, int]], wanted: Tensor) -> list[tuple[Step, int]]:
        """A path as far as its tokens are those of a text: drafts that were not taken up are left off at its end."""
        ids = self.ids(path)
        if ids is None or len(ids) == 0:
            return path
        most = min(len(ids), len(wanted))
        differs = (ids[:most] != wanted[:most]).nonzero()
        left = int(differs[0]) if len(differs) else most
        if not left or left == len(ids):
            return path
        kept = []
        for step, text in path:
            if left > 0:
                kept.append((step if step.rows <= left else _cut(step, left), text))
            left -= step.rows
        return kept

    def map(self, path: Sequence[tuple[Step, int]]) -> Map:
        """One text's map."""
        steps = [step for step, _ in path]
        queries = _joined([step.query[text] for step, text in path])
        keys = _joined([step.key[text] for step, text in path if step.key is not None])
        values = [None if step.value is None else step.value[text] for step, text in path if step.key is not None]
        gradients = [step.gradient[0][text] if step.gradient else None for step, text in path]
        width = keys.shape[-2]
        if len(steps) == 1:
            mask, bias = _own(steps[0].mask, path[0], width), _own(steps[0].bias, path[0], width)
        else:
            mask, bias = _mask_along(path, width), _bias_along(path, width)
        return Map(
            queries=queries, keys=keys, scale=self.scale, softcap=self.softcap, sinks=self.sinks,
            mask=mask, bias=bias, offset=0 if self.cross else steps[0].base,
            values=None if any(part is None for part in values) else _joined(values),
            gradients=None if any(part is None for part in gradients) else _joined(gradients),
        )  # fmt: skip


def _joined(parts: Sequence[Array | None]) -> Array:
    arrays = [part for part in parts if part is not None]
    return arrays[0] if len(arrays) == 1 else Library.of(arrays[0]).xp.concat(arrays, axis=-2)


def _after(first: Tensor | None, then: Tensor | None) -> Tensor | None:
    """Two changes of places as one."""
    if first is None or then is None:
        return then if first is None else first
    return first[then]


def _cut(step: Step, rows: int) -> Step:
    """The first rows of a step; what it knew of the keys that came with the others goes with them."""
    lost = step.rows - rows
    ids = None if step.ids is None else step.ids[:, :rows]
    key = None if step.key is None else step.key[:, :, : step.key.shape[2] - lost]
    value = None if step.value is None else step.value[:, :, : step.value.shape[2] - lost]
    return replace(
        step, query=step.query[:, :, :rows], key=key, value=value, ids=ids, gradient=[],
        mask=_rows_of(step.mask, rows, step), bias=_bias_rows(step.bias, rows),
    )  # fmt: skip


def _rows_of(mask: Mask | None, rows: int, step: Step) -> Mask | None:
    if mask is None or (isinstance(mask, Causal) and isinstance(mask.offset, int)):
        return mask
    if isinstance(mask, Ranges):
        return masks.ranges(mask.first[..., :rows], mask.last[..., :rows])
    return masks.given(mask.tile(slice(0, rows), slice(None), (*step.query.shape[:3], step.handed), like=step.query))


def _bias_rows(bias: Bias | None, rows: int) -> Bias | None:
    return GivenBias(bias.numbers[..., :rows, :]) if isinstance(bias, GivenBias) else bias


def _own(part: Any, place: tuple[Step, int], keys: int) -> Any:
    """The mask or bias of one text of a batch, over the keys that were kept (a static cache hands more)."""
    step, text = place
    if part is None or (isinstance(part, Causal) and isinstance(part.offset, int)):
        return part
    shape = (*step.query.shape[:3], step.handed)
    if isinstance(part, Distances):
        return Distances(part.numbers[text % len(part.numbers)], part.first, part.offset)
    if isinstance(part, GivenBias):
        return GivenBias(part.numbers[text % len(part.numbers)][..., :keys])
    if not isinstance(part, Mask):
        return part
    if isinstance(part, Ranges):
        own: Any = part.item((text,), shape)
        return simplest(own.first[None], own.last[None], keys)
    if step.handed == keys and not isinstance(part, masks.mask.Given):
        return part.item((text,), shape)
    allowed = part.tile(slice(None), slice(0, keys), shape, like=step.query)
    return masks.given(allowed[text % len(allowed)] if allowed.ndim == 4 else allowed)


def _mask_along(path: Sequence[tuple[Step, int]], keys: int) -> Mask | None:
    """The masks of several steps as one over all keys."""
    ranges = [_range(step, text) for step, text in path]
    if all(part is not None for part in ranges):
        first, last = (torch.cat([part[end] for part in ranges if part is not None]) for end in (0, 1))
        return simplest(first[None], last[None], keys)
    whole = []
    for step, text in path:
        allowed = torch.ones(1, step.rows, step.handed, dtype=torch.bool)
        if step.mask is not None:
            shape = (*step.query.shape[:3], step.handed)
            tile = step.mask.tile(slice(None), slice(None), shape, like=step.query)
            allowed = (tile[text % len(tile)] if tile.ndim == 4 else tile[(None,) * (3 - tile.ndim) + (...,)]).cpu()
        whole.append(_placed(allowed, step, keys, False))
    heads = max(len(part) for part in whole)
    return masks.given(torch.cat([part.expand(heads, -1, -1) for part in whole], dim=-2))


def _range(step: Step, text: int) -> tuple[Tensor, Tensor] | None:
    """From where to where each row of a step sees, counted over all keys; None where it has holes."""
    places = torch.arange(step.rows)
    if step.mask is None:
        first, last = torch.zeros_like(places), torch.full_like(places, step.handed - 1)
    elif isinstance(step.mask, Causal) and isinstance(step.mask.offset, int):
        first, last = torch.zeros_like(places), (places + step.mask.offset).clamp(max=step.handed - 1)
    elif isinstance(step.mask, Ranges):
        own = step.mask.item((text,), (*step.query.shape[:3], step.handed))
        first, last = own.first.cpu(), own.last.cpu()  # type: ignore[attr-defined]
    else:
        return None
    return first + step.shift, last + step.shift


def _bias_along(path: Sequence[tuple[Step, int]], keys: int) -> Bias | None:
    """The biases of several steps as one."""
    if all(step.bias is None for step, _ in path):
        return None
    if all(isinstance(step.bias, Distances) for step, _ in path):
        return _distances(path)
    whole = []
    for step, text in path:
        if step.bias is None:
            numbers = torch.zeros(1, step.rows, step.handed)
        else:
            shape = (*step.query.shape[:3], step.handed)
            tile = step.bias.tile(slice(None), slice(None), shape, like=step.query)
            numbers = tile[text % len(tile)].float().cpu()
        whole.append(_placed(numbers, step, keys, 0.0))
    heads = max(len(part) for part in whole)
    return GivenBias(torch.cat([part.expand(heads, -1, -1) for part in whole], dim=-2))


def _distances(path: Sequence[tuple[Step, int]]) -> Bias:
    """Numbers by distance, out of several steps: the later ones reach further back."""
    known: dict[int, Tensor] = {}
    for step, text in path:
        bias = step.bias
        assert isinstance(bias, Distances)
        numbers = bias.numbers[text % len(bias.numbers)].cpu()
        start = bias.first + step.shift - step.base
        known |= {start + place: numbers[..., place] for place in range(numbers.shape[-1])}
    low, high = min(known), max(known)
    nothing = torch.zeros_like(known[low])
    table = torch.stack([known.get(distance, nothing) for distance in range(low, high + 1)], dim=-1)
    rows = sum(step.rows for step, _ in path)
    keys = path[-1][0].base + path[-1][0].rows
    offset = path[0][0].base
    missing = (low - (1 - rows - offset), (keys - 1 - offset) - high)
    table = torch.nn.functional.pad(table, (max(missing[0], 0), max(missing[1], 0)))
    return Distances(table, low - max(missing[0], 0), offset)


def _placed(rows: Tensor, step: Step, keys: int, empty: Any) -> Tensor:
    """A step's rows over all keys: those it was handed where they belong, nothing for the others."""
    whole = torch.full((*rows.shape[:-1], keys), empty, dtype=rows.dtype)
    begin, end = max(step.shift, 0), min(step.shift + step.handed, keys)
    whole[..., begin:end] = rows[..., begin - step.shift : end - step.shift]
    return whole

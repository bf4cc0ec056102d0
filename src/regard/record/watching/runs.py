"""Strands of rows → runs: layers in the order of the model, each text with its map and its tokens."""

# B batch, H heads, Q queries, K keys

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from ...formula.arrays import is_array
from ...formula.masks import Mask
from ...formula.positions import Bias
from ...text.pieces import readable
from ..map import Map
from ..record import Kind, Layer, Run
from ..tokens import Tokens
from .modules import numbered
from .projections import value_norms
from .strands import Step, Strand

if TYPE_CHECKING:
    from .watcher import Slot, Watch

__all__ = ["runs_of"]

Path = list[tuple[Step, int]]
DECODER = re.compile(r"(^|\.)decoder(\.|$)")


def runs_of(watch: "Watch") -> list[Run]:
    """Every run that was seen so far."""
    order = {name: place for place, (name, _) in enumerate(watch.model.named_modules())}
    slots = sorted(watch.slots.values(), key=lambda slot: (order[slot.name], slot.turn))
    turns = {slot.name: slot.turn for slot in slots}  # the last one stays
    numbers = numbered(watch.model, turns)
    names = Names(watch.tokenizer)
    runs = []
    for place in range(max((len(slot.strands) for slot in slots), default=0)):
        layers = [
            _layer(watch, slot, slot.strands[place], numbers[slot.name, slot.turn], names)
            for slot in slots
            if len(slot.strands) > place
        ]
        items = max(len(layer.maps) for layer in layers)
        runs.append(Run(layers=tuple(_repeated(layer, items) for layer in layers), model=watch.family))
    return runs


def _layer(watch: "Watch", slot: "Slot", strand: Strand, index: int, names: "Names") -> Layer:
    heads = tuple(range(slot.heads)) if watch.heads is None else tuple(watch.heads)
    paths = _paths(watch, strand)
    maps = tuple(_placed(watch, slot, strand.map(path), heads) for path in paths)
    segments = watch.texts.get(watch.owner(slot.name), (None, None))[1]
    named = [names.both(strand, path, made, segments) for path, made in zip(paths, maps, strict=True)]
    name = slot.name or type(slot.module).__name__
    return Layer(
        name=name if not slot.turn else f"{name} (turn {slot.turn + 1})", kind=_kind(slot, strand, maps[0]),
        index=index, maps=maps, queries=tuple(rows for rows, _ in named), keys=tuple(cols for _, cols in named),
        head_numbers=heads,
    )  # fmt: skip


def _kind(slot: "Slot", strand: Strand, made: Map) -> Kind:
    _, queries, keys = made.shape
    if strand.cross:
        return "cross"
    if slot.causal or DECODER.search(slot.name):
        return "decoder"
    longer = getattr(slot.module, "bias_k", None) is not None or getattr(slot.module, "add_zero_attn", False)
    return "cross" if queries != keys and not longer else "encoder"


def _paths(watch: "Watch", strand: Strand) -> list[Path]:
    """The texts of a strand: those that generate() returned, where it did, else those that were going on."""
    if strand.episode not in watch.results:
        return strand.paths()
    texts, given = watch.results[strand.episode]
    if all(step.order is None for step in strand.steps):
        paths = strand.paths()
        same = len(paths) == len(texts) and len(strand.steps) > 1
        return [strand.cut(path, wanted) for path, wanted in zip(paths, texts, strict=True)] if same else paths
    beams = strand.batch // given
    found = []
    for number, ids in enumerate(texts):
        own = number * given // len(texts)  # which of the texts that were given
        found.append(_leading_to(strand, ids, range(own * beams, (own + 1) * beams)))
    return [path for path in found if path] if all(found) else strand.paths()


def _leading_to(strand: Strand, wanted: Tensor, beams: range) -> Path | None:
    """The steps that led to a text that generate() returned; its last token was never fed back, so has no row."""
    for last in range(len(strand.steps) - 1, -1, -1):
        for text in beams:
            path = strand.path(last, text)
            found = strand.ids(path)
            if found is not None and len(found) <= len(wanted) and torch.equal(found, wanted[: len(found)]):
                return path
    return None


def _placed(watch: "Watch", slot: "Slot", made: Map, heads: tuple[int, ...]) -> Map:
    """A map with its masks where its queries are, and the lengths of its values if they were asked for."""

    def move(array: Any) -> Any:
        if not isinstance(array, Tensor):
            return array
        return array.to(made.queries.device) if isinstance(made.queries, Tensor) else watch.place.move(array)

    norms = None
    if made.values is not None:
        values = made.values if isinstance(made.values, Tensor) else torch.from_numpy(np.array(made.values, "f"))
        norms = value_norms(slot.module, _around(watch.model, slot.name), values, heads, slot.heads)
        norms = None if norms is None else move(norms)
    sinks = None if made.sinks is None else move(made.sinks)
    return replace(made, mask=_moved(made.mask, move), bias=_moved(made.bias, move), sinks=sinks, value_norms=norms)


def _around(model: nn.Module, name: str) -> nn.Module | None:
    return model.get_submodule(name.rpartition(".")[0]) if name else None


def _moved(part: Any, move: Callable[[Any], Any]) -> Any:
    """A mask or bias with its arrays moved."""
    if part is None:
        return None
    changed = {
        name: _moved(value, move) if isinstance(value, (Mask, Bias)) else move(value)
        for name, value in vars(part).items()
        if name in part.__dataclass_fields__ and (isinstance(value, (Mask, Bias)) or is_array(value))
    }
    return replace(part, **changed) if changed else part


class Names:
    """The names of tokens, each text named once: the layers of a model read the same."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.special = set(getattr(tokenizer, "all_special_ids", ()))
        self.known: dict[Any, Tokens] = {}

    def both(self, strand: Strand, path: Path, made: Map, segments: Tensor | None) -> tuple[Tokens, Tokens]:
        """The tokens on both sides of a map."""
        _, queries, keys = made.shape
        text = path[-1][1]
        own = None if segments is None or len(segments) <= text else segments[text]
        generated = path[0][0].rows if len(path) > 1 else None
        key = (*((id(step.ids), text) for step, text in path), queries)
        rows = self.of(key, lambda: strand.ids(path), queries, own, generated)
        if strand.cross:
            source = strand.source_ids
            place = path[0][1]
            if source is None:
                return rows, self.of(("places", keys), lambda: None, keys)
            return rows, self.of((id(source), place, keys), lambda: source[place], keys)
        if queries == keys:
            return rows, rows
        if keys < queries or not made.offset:
            return rows, self.of(("places", keys), lambda: None, keys)
        before = Tokens.numbered(keys - queries)  # keys of a cache that was filled before the watch began
        return rows, Tokens(before.texts + rows.texts, before.begins + rows.begins, None, generated)

    def of(
        self, key: Any, find: Callable[[], Tensor | None], size: int, segments: Tensor | None = None,
        generated: int | None = None,
    ) -> Tokens:  # fmt: skip
        """The tokens that have a key, named if it is for the first time."""
        if key not in self.known:
            self.known[key] = self._named(find(), size, segments, generated)
        return self.known[key]

    def _named(self, ids: Tensor | None, size: int, segments: Tensor | None, generated: int | None) -> Tokens:
        if ids is None or len(ids) != size:
            return Tokens.numbered(size)
        numbers = ids.tolist()
        marks = None if segments is None or len(segments) != size or not segments.any() else tuple(segments.tolist())
        if self.tokenizer is None:
            return Tokens(tuple(f"#{number}" for number in numbers), (True,) * size, marks, generated)
        found = self.tokenizer.convert_ids_to_tokens(numbers)
        pieces = [f"#{number}" if piece is None else str(piece) for piece, number in zip(found, numbers, strict=True)]
        read = readable(pieces, [number in self.special for number in numbers])
        return Tokens(tuple(piece.text for piece in read), tuple(piece.begins for piece in read), marks, generated)


def _repeated(layer: Layer, items: int) -> Layer:
    """A layer with as many texts as the others have: an encoder reads a text once for all beams of its translation."""
    times, odd = divmod(items, len(layer.maps))
    if odd or times == 1:
        return layer
    parts: dict[str, Any] = {
        name: tuple(part for part in getattr(layer, name) for _ in range(times)) for name in ("maps", "queries", "keys")
    }
    return replace(layer, **parts)

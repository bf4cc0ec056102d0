"""The record: what one run of one model left behind, layer by layer, and what can be asked of it."""

# H heads of a layer, Q queries, K keys

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any, Literal, Protocol, runtime_checkable

from ..errors import OptionError, RegardError
from ..formula.arrays import Array
from ..formula.problem import EVERYTHING
from .map import Map
from .sight import Sight
from .tokens import Tokens

__all__ = ["Head", "Kind", "Layer", "Mean", "Record"]

Kind = Literal["encoder", "decoder", "cross"]


@dataclass(frozen=True, eq=False)
class Head(Sight):
    """One head of one layer, for one text: (Q, K) weights."""

    layer: "Layer"
    place: int  # among the heads that were kept

    @property
    def index(self) -> int:
        """Its number in the model."""
        return self.layer.head_numbers[self.place]

    @property
    def map(self) -> Map:
        """What the weights follow from, of all heads of the layer."""
        return self.layer.map

    @property
    def _index(self) -> tuple[int, ...]:
        return (self.place,)

    def __repr__(self) -> str:
        queries, keys = self.shape
        return f"Head({self.index} of {self.layer.name}, {queries} × {keys})"


@dataclass(frozen=True, eq=False, kw_only=True)
class Layer(Sight):
    """All heads of one layer: (H, Q, K) weights, of the first text of the batch unless another is chosen."""

    name: str  # the module's, in the model
    kind: Kind  # encoder and decoder attend to their own text, cross attends from the decoder's to the encoder's
    index: int  # its number in the model
    maps: tuple[Map, ...]  # one for each text of the batch
    queries: tuple[Tokens, ...]  # their tokens
    keys: tuple[Tokens, ...]
    head_numbers: tuple[int, ...]  # of the heads that were kept

    @property
    def map(self) -> Map:
        """What the weights of the first text follow from."""
        return self.maps[0]

    @cached_property
    def heads(self) -> tuple[Head, ...]:
        """The heads, for the first text."""
        return tuple(Head(self, place) for place in range(len(self.head_numbers)))

    def item(self, item: int) -> "Layer":
        """The same layer for one text of the batch."""
        if not -len(self.maps) <= item < len(self.maps):
            raise OptionError(f"item {item} of {len(self.maps)}; choose 0 to {len(self.maps) - 1}.")
        kept = self._items
        if item % len(self.maps) not in kept:
            item %= len(self.maps)
            one = {name: (getattr(self, name)[item],) for name in ("maps", "queries", "keys")}
            kept[item] = replace(self, **one)  # type: ignore[arg-type]
        return kept[item % len(self.maps)]

    @cached_property
    def _items(self) -> dict[int, "Layer"]:
        return {0: self} if len(self.maps) == 1 else {}

    def weights(self, rows: slice = EVERYTHING, cols: slice = EVERYTHING, *, item: int = 0) -> Array:
        """The weights of all heads; dense, so for small maps or small rectangles.   -> (H, rows, cols)"""
        return Sight.weights(self if item == 0 else self.item(item), rows, cols)

    def __repr__(self) -> str:
        heads, queries, keys = self.map.shape
        return f"Layer({self.index} {self.name}, {self.kind}, {heads} heads, {queries} × {keys})"


@dataclass(frozen=True, eq=False)
class Mean(Sight):
    """The mean of several heads, of any layers that look from the same tokens at the same tokens."""

    chosen: tuple[Head, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """(Q, K)"""
        return self.chosen[0].shape

    def weights(self, rows: slice = EVERYTHING, cols: slice = EVERYTHING) -> Array:
        """The mean of their weights.   -> (rows, cols)"""
        return self._mean(lambda head: head.weights(rows, cols))

    def grouped(self, rows: Sequence[int], cols: Sequence[int]) -> Array:
        """The mean of what their groups of queries give to their groups of keys.   -> (groups, groups)"""
        return self._mean(lambda head: head.grouped(rows, cols))

    def shares(self, rows: range, cols: Sequence[int]) -> Array:
        """The mean of what some of their queries give to groups of keys.   -> (rows, groups)"""
        return self._mean(lambda head: head.shares(rows, cols))

    def is_summed(self, rows: range) -> bool:
        """Whether the log-sum-exp of some queries is known of all of them."""
        return all(head.is_summed(rows) for head in self.chosen)

    def entropy(self) -> Array:
        """The mean of their entropies (not the entropy of their mean, which is higher).   -> (Q,)"""
        return self._mean(lambda head: head.entropy())

    def distance(self) -> Array:
        """The mean of their distances.   -> (Q,)"""
        return self._mean(lambda head: head.distance())

    def received(self) -> Array:
        """The mean of what each key receives.   -> (K,)"""
        return self._mean(lambda head: head.received())

    def top(self, count: int = 8, rows: slice = EVERYTHING) -> Any:
        """Not of a mean: the highest of a mean need all of it."""
        raise OptionError("the highest weights of a mean are not kept; ask its weights(rows), or one head's top.")

    def log_sum_exp(self, rows: slice = EVERYTHING) -> Array:
        """Not of a mean."""
        raise OptionError("a mean of heads has no log-sum-exp; ask one head's.")

    def _mean(self, ask: Callable[[Head], Array]) -> Array:
        total = ask(self.chosen[0])
        for head in self.chosen[1:]:
            total = total + ask(head)
        return total / len(self.chosen)


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """One run of a model, complete: what a record holds and a file keeps."""

    layers: tuple[Layer, ...]
    model: str = ""  # the family, as in "bert"


@runtime_checkable
class Source(Protocol):
    """Where runs come from while they go on: a watch."""

    over: bool  # whether no more will come

    def runs(self) -> Sequence[Run]:
        """Those that there are so far."""


class Record:
    """What one run of one model left behind. `regard.watch` fills it, `regard.open` finds it in a file.

    Where the model ran several times while it was watched, `runs` has a record of each.
    """

    def __init__(self, runs: Sequence[Run] | Source) -> None:
        self._source = runs

    @property
    def runs(self) -> "tuple[Record, ...]":
        """A record of each run."""
        runs = self._all()
        return (self,) if len(runs) == 1 else tuple(Record([run]) for run in runs)

    @property
    def run(self) -> Run:
        """The one run."""
        runs = self._all()
        if not runs:
            raise RegardError("the record is empty: no attention ran while the model was watched.")
        if len(runs) > 1:
            raise RegardError(
                f"the model ran {len(runs)} times while it was watched; choose one: record.runs[0] … "
                f"record.runs[{len(runs) - 1}]."
            )
        return runs[0]

    def _all(self) -> Sequence[Run]:
        source = self._source
        if not isinstance(source, Source):
            return source
        runs = source.runs()
        if source.over:
            self._source = runs  # and the model is let go
        return runs

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers, in the order of the model."""
        return self.run.layers

    @property
    def model(self) -> str:
        """The model's family."""
        return self.run.model

    @property
    def items(self) -> int:
        """How many texts the batch has."""
        return len(self.layers[0].maps)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens that the last layer looks from."""
        return self.layers[-1].queries[0].texts

    def item(self, item: int) -> "Record":
        """The record of one text of the batch."""
        run = self.run
        return Record([replace(run, layers=tuple(layer.item(item) for layer in run.layers))])

    def of_kind(self, kind: Kind) -> tuple[Layer, ...]:
        """The layers of one kind: "encoder", "decoder" or "cross"."""
        return tuple(layer for layer in self.layers if layer.kind == kind)

    def labelled(
        self, queries: Tokens | Sequence[str], keys: Tokens | Sequence[str] | None = None, *, kind: Kind | None = None
    ) -> "Record":
        """The record of the first text with tokens of your own, for the layers of one kind, or for all."""
        run = self.run
        rows, cols = (
            side if isinstance(side, Tokens) else Tokens.of(side)
            for side in (queries, queries if keys is None else keys)
        )
        layers = tuple(
            replace(layer, queries=(rows,), keys=(cols,)) if kind in (None, layer.kind) else layer
            for layer in (layer.item(0) for layer in run.layers)
        )
        for layer in layers:
            _require_names(layer)
        return Record([replace(run, layers=layers)])

    def mean(
        self,
        layers: int | Iterable[int] | None = None,
        heads: int | Iterable[int] | None = None,
        *,
        kind: Kind | None = None,
    ) -> Mean:
        """The mean over chosen layers and heads, by their numbers in the model; all of them unless chosen."""
        wanted = self.of_kind(kind) if kind is not None else self.layers
        if layers is not None:
            layers = [layers] if isinstance(layers, int) else layers
            wanted = tuple(_numbered("layer", number, wanted) for number in layers)
        heads = [heads] if isinstance(heads, int) else None if heads is None else list(heads)
        chosen: list[Head] = []
        for layer in wanted:
            chosen += layer.heads if heads is None else [_numbered("head", head, layer.heads) for head in heads]
        if not chosen:
            raise OptionError("no heads are chosen; a mean needs at least one.")
        shapes = {head.shape for head in chosen}
        if len(shapes) > 1:
            raise OptionError(f"maps of different shapes have no mean: {sorted(shapes)}. Choose layers, or a kind.")
        return Mean(tuple(chosen))

    def save(self, path: str | PathLike[str], *, lse: bool | None = None) -> None:
        """Write everything into one file, which `regard.open` opens at once, whatever its size.

        lse: keep each row's log-sum-exp too, which makes any rectangle a matter of milliseconds and costs one pass over
        the map now. Unless said, it is done where that takes less than a minute or so.
        """
        from .file import save

        save(self.run, path, lse=lse)

    def plot(self, path: str | PathLike[str] | None = None, **options: Any) -> Any:
        """A plot of one head (`layer=3, head=5`), of a layer's heads (`layer=3`), or of all; saved if a path is given.

        words: pieces put together to words. log: a logarithmic scale of colours.   -> a matplotlib figure
        """
        from ..view.sheet import plot

        return plot(self, path, **options)

    def page(self, path: str | PathLike[str], **options: Any) -> None:
        """One HTML file of every run and text, which any browser opens without a network: the map to zoom and more.

        layers, heads: some of them, by their numbers in the model. title: the model's name unless said. progress: a
        function that is told the share of the work that is done, from 0 to 1.
        """
        from ..view.page import page

        page(self, path, **options)

    def show(self, **options: Any) -> Any:
        """The page in a notebook, or else in the browser. The options are those of `page`.   -> its path, or None"""
        from ..view.page import show

        return show(self, **options)

    def __repr__(self) -> str:
        runs = self._all()
        if len(runs) != 1:
            return f"Record({len(runs)} runs)" if runs else "Record(nothing yet)"
        (run,) = runs
        texts = "" if len(run.layers[0].maps) == 1 else f", {len(run.layers[0].maps)} texts"
        return f"Record({run.model or 'a model'}, {len(run.layers)} layers{texts})"


def _numbered(name: str, number: int, among: Sequence[Any]) -> Any:
    """The layer or head that has a number in the model."""
    for one in among:
        if one.index == number:
            return one
    known = ", ".join(str(one.index) for one in among) or "none"
    raise OptionError(f"there is no {name} {number} here; there are {known}.")


def _require_names(layer: Layer) -> None:
    _, rows, cols = layer.map.shape
    if (len(layer.queries[0]), len(layer.keys[0])) != (rows, cols):
        raise OptionError(
            f"layer {layer.index} is {rows} × {cols}, queries × keys, and there are {len(layer.queries[0])} and "
            f"{len(layer.keys[0])} tokens for them."
        )

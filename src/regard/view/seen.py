"""A record in a terminal: whose attention it is, one head of it as a table and bars, and as JSON."""

# H heads, Q queries, K keys

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group
from rich.text import Text

from ..errors import OptionError
from .blocks import FAINT, STRONG
from .labels import printable
from .numbers import as_numbers
from .terminal import MOST, render_bars, render_table, render_top

if TYPE_CHECKING:
    from ..record import Head, Layer, Record, Sight, Tokens

__all__ = ["Choice", "Side", "as_json", "choose", "in_bytes", "layer_at", "render"]

EVERYTHING = slice(None)
WORTH_WEIGHING = 2**22  # weights of all heads together that are looked at to find the most telling one
FEWEST = 4  # queries that are looked at, however long the text: what one of them does is seen beside the others
LONG = 2**14  # keys from which on only the middle layer is looked at: reading all layers of such a file takes a while
MOST_NUMBERS = 2**20  # of weights in JSON
ROWS = 40  # of a long text whose highest keys are listed
WRITTEN = "»"  # before a token that the model wrote itself
MARK = re.compile(r"\[[A-Z]+\]|<[^<>\s]+>")  # a tokenizer's own token, as most write it


@dataclass(frozen=True, eq=False)
class Side:
    """One side of what is shown: some tokens, or the words that they make."""

    tokens: "Tokens"
    part: slice = field(default_factory=lambda: EVERYTHING)
    words: bool = False

    @property
    def shown(self) -> "Tokens":
        """The tokens of the part."""
        texts, begins = self.tokens.texts[self.part], self.tokens.begins[self.part]
        return replace(self.tokens, texts=texts, begins=begins, segments=None)

    @property
    def edges(self) -> list[int]:
        """Where each word begins, or each token, and the end."""
        first, last, _ = self.part.indices(len(self.tokens))
        return [first + edge for edge in self.shown.word_edges] if self.words else list(range(first, last + 1))

    @property
    def texts(self) -> tuple[str, ...]:
        """What they say."""
        return self.shown.words if self.words else self.shown.texts

    @property
    def labels(self) -> list[str]:
        """What they say, with a sign before those that the model wrote itself."""
        written = len(self.tokens) if self.tokens.generated is None else self.tokens.generated
        pairs = zip(self.edges, self.texts, strict=False)
        return [WRITTEN + text.replace(" ", "␣", 1) if edge >= written else text for edge, text in pairs]


@dataclass(frozen=True, eq=False)
class Choice:
    """What is to be shown of a record: a head, or the mean of a layer's heads; with tokens, or with words."""

    sight: "Sight"
    name: str
    rows: Side
    cols: Side

    def weights(self, most: int | None = None) -> np.ndarray:
        """The weights between them, of all rows or of the first few."""
        rows, cols = self.rows.edges, self.cols.edges
        rows = rows if most is None else rows[: most + 1]
        if self.rows.words:
            found = self.sight.grouped(rows, cols)
        else:
            found = self.sight.weights(slice(rows[0], rows[-1]), slice(cols[0], cols[-1]))
        return as_numbers(found, "weights", ("queries", "keys"))

    @property
    def size(self) -> int:
        """How many weights that are."""
        return (len(self.rows.edges) - 1) * (len(self.cols.edges) - 1)


def choose(
    record: "Record", layer: int | None = None, head: int | None = None, *, words: bool = False, pair: bool = False
) -> Choice:
    """One head; the mean over a layer where only that is said; the head that tells most where nothing is.

    words: pieces put together. pair: how one text of a pair looks at the other, the first at the second where it may.
    """
    layers = record.layers
    sight: Sight
    if layer is None and head is not None:
        raise OptionError(
            f"head {head} of which layer? Say the layer too, {_range([layer.index for layer in layers])}."
        )
    if layer is None:
        told, how = _telling(record, pair)
        own, name, sight = told.layer, f"{_named(told)}, {how}", told
    else:
        own = layer_at(record, layer)
        one = None if head is None else _at("head", head, own.heads)
        mean = record.mean(layers=[own.index])
        name, sight = (f"the mean of all heads of layer {own.index}", mean) if one is None else (_named(one), one)
    if not pair:
        return Choice(sight, f"{name} ({own.kind})", Side(own.queries[0], words=words), Side(own.keys[0], words=words))
    first, second = _directions(own)
    sides = Side(own.queries[0], own.queries[0].span(first), words), Side(own.keys[0], own.keys[0].span(second), words)
    return Choice(sight, f"{name}, from {first} to {second}", *sides)


def layer_at(record: "Record", number: int | None) -> "Layer":
    """The layer with a number in the model."""
    found: Layer = _at("layer", number, record.layers)
    return found


def in_bytes(record: "Record") -> bool:
    """Whether tokens are bytes, as characters of other scripts are to many tokenizers; only words can be read then."""
    texts = record.layers[0].queries[0].texts
    return any(text.startswith("⟨") and len(text) > 1 for text in texts)


def render(
    record: "Record", choice: Choice, *, model: str, wrote: str | None = None, hint: str | None = None
) -> Group:  # fmt: skip
    """Whose attention it is, and the chosen head: a shaded table and bars while it is short, then the highest keys.

    hint: how to see more; the options of `regard see` unless said.
    """
    rows, cols = choice.rows.labels, choice.cols.labels
    parts: list[Any] = [Text.assemble((printable(model), STRONG), f"   {_counts(record)}")]
    if wrote is not None:
        parts += [Text.assemble("it wrote   ", (printable(wrote) or "nothing", STRONG))]
    parts += [Text.assemble("shown is   ", (choice.name, STRONG)), ""]
    weights = choice.weights(None if choice.size <= MOST_NUMBERS else ROWS)
    if choice.size <= MOST_NUMBERS:
        parts += [render_table(weights, rows, cols), ""]
    if len(rows) <= MOST:
        parts += [render_bars(weights, rows, cols)]
    else:
        parts += [render_top(weights[:ROWS], rows[:ROWS], cols), *_more(len(rows) - ROWS)]
    if any(label.startswith(WRITTEN) for label in rows):
        parts += ["", Text(f"{WRITTEN} before a token: the model wrote it", FAINT)]
    if any("⟨" in label for label in rows):
        parts += ["", Text("⟨e6⟩ is a byte of a character; --words puts them together", FAINT)]
    return Group(*parts, "", _hints(record) if hint is None else Text(hint, FAINT))


def as_json(record: "Record", choice: Choice | None, *, model: str, wrote: str | None = None) -> dict[str, Any]:
    """The record as plain lists: tokens, layers, and the weights of what is chosen, or of every head."""
    told: dict[str, Any] = {"model": model, "wrote": wrote}
    if choice is not None:
        _require_few(choice.size)
        return told | {
            "shown": choice.name, "queries": list(choice.rows.texts), "keys": list(choice.cols.texts),
            "weights": _plain(choice.weights()),
        }  # fmt: skip
    _require_few(sum(int(np.prod(layer.map.shape)) for layer in record.layers))
    return told | {"layers": [_layer_as_json(layer) for layer in record.layers]}


def _layer_as_json(layer: "Layer") -> dict[str, Any]:
    weights = as_numbers(layer.weights(), "weights", ("heads", "queries", "keys"))
    return {
        "index": layer.index, "name": layer.name, "kind": layer.kind, "heads": list(layer.head_numbers),
        "queries": list(layer.queries[0].texts), "keys": list(layer.keys[0].texts),
        "generated": layer.queries[0].generated, "weights": _plain(weights),
    }  # fmt: skip


def _plain(numbers: np.ndarray) -> Any:
    return np.round(numbers, 7).tolist()


def _require_few(numbers: int) -> None:
    if numbers > MOST_NUMBERS:
        raise OptionError(
            f"that would be {numbers:,} weights; JSON takes {MOST_NUMBERS:,} at most. Choose --layer and --head, or "
            "--save the record and ask it for a rectangle: regard.open(file).layers[0].heads[0].weights(rows, cols)."
        )


def _telling(record: "Record", pair: bool) -> tuple["Head", str]:
    """The head whose queries look most decidedly at something worth telling, and how it was found.

    Of a long text only the last queries are asked; of a very long one, only the heads of the middle layer.
    """
    crossing = [layer for layer in record.layers if layer.kind == "cross"]
    layers, how = crossing or list(record.layers), "the most telling one"
    if max(layer.map.shape[-1] for layer in layers) > LONG:
        layers, how = [layers[len(layers) // 2]], "the most telling one of its layer"
    room = WORTH_WEIGHING // sum(layer.map.shape[0] * layer.map.shape[-1] for layer in layers)
    scores = [_tells(layer, max(room, FEWEST), pair) for layer in layers]
    best = max(range(len(layers)), key=lambda place: scores[place].max(initial=0.0))
    return layers[best].heads[int(scores[best].argmax())], how


def _tells(layer: "Layer", most: int, pair: bool) -> np.ndarray:
    """For each head what its last queries give, on average, each to one key, beyond what all give to it.   -> (H,)

    Keys that every model has heads for do not count: the query's own, those beside it, the first, the last, and marks.
    """
    _, queries, keys = layer.map.shape
    first = max(0, queries - most)
    weights = as_numbers(layer.weights(slice(first, queries)), "weights", ("heads", "queries", "keys"))
    rows, cols = (
        np.array([not MARK.fullmatch(text) for text in side[0].texts]) for side in (layer.queries, layer.keys)
    )
    cols[[0, -1]] &= layer.kind == "cross"
    counts = np.tile(cols, (queries - first, 1))
    if pair:
        one, other = (
            side[0].span(name) for side, name in zip((layer.queries, layer.keys), _directions(layer), strict=True)
        )
        rows &= _within(one, queries)
        counts &= _within(other, keys)
    elif layer.kind != "cross":
        far = np.abs(np.arange(first, queries)[:, None] + layer.map.offset - np.arange(keys)) > 1
        counts &= far
    weights = weights[:, rows[first:]]
    if not weights.size:
        return np.zeros(len(weights))
    # What all queries give to a key says little of any one of them; what one gives beyond that is told.
    beyond = np.where(counts[rows[first:]], weights - weights.mean(axis=1, keepdims=True), 0.0)
    return np.asarray(beyond.max(axis=-1).mean(axis=-1))


def _within(part: slice, size: int) -> np.ndarray:
    places = np.arange(size)
    inside: np.ndarray = (part.start <= places) & (places < part.stop)
    return inside


def _directions(layer: "Layer") -> tuple[str, str]:
    """From which text of a pair to which: where no token sees a later one, only the second can look at the first."""
    return ("B", "A") if layer.kind == "decoder" else ("A", "B")


def _named(head: "Head") -> str:
    return f"layer {head.layer.index} head {head.index}"


def _at(name: str, number: int | None, found: Sequence[Any]) -> Any:
    """The one with a number in the model."""
    for one in found:
        if one.index == number:
            return one
    raise OptionError(f"there is no {name} {number}; the {name}s are {_range([one.index for one in found])}.")


def _range(numbers: Sequence[int]) -> str:
    whole = list(numbers) == list(range(numbers[0], numbers[-1] + 1))
    return f"{numbers[0]} to {numbers[-1]}" if whole and len(numbers) > 1 else ", ".join(map(str, numbers))


def _counts(record: "Record") -> str:
    """How large the model and the text are."""
    layers = record.layers
    heads = sorted({len(layer.heads) for layer in layers})
    crossing = next((layer for layer in layers if layer.kind == "cross"), None)
    tokens = f"{len(layers[-1].queries[0]):,} tokens"
    if crossing is not None:
        tokens = f"{len(crossing.keys[0]):,} tokens read, {len(crossing.queries[0]):,} written"
    return f"{len(layers)} layers of {' or '.join(map(str, heads))} heads, {tokens}"


def _hints(record: "Record") -> Text:
    """How to see another head, and what else there is."""
    layers = record.layers
    heads = _range(sorted({head for layer in layers for head in layer.head_numbers}))
    numbers = f"--layer {_range([layer.index for layer in layers])} --head {heads}".replace(" to ", "-")
    return Text(f"other heads: {numbers}   picture: --plot a.png   page: --page a.html   more: regard heads", FAINT)


def _more(rows: int) -> list[Text]:
    if rows <= 0:
        return []
    return [Text(f"… and {rows:,} more tokens; --plot draws all of them, --save keeps the record.", FAINT)]

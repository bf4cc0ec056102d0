"""What a page says of a record before any number of it: its texts, tokens, layers and heads, as JSON."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from operator import index
from typing import Any, Literal

from ... import __version__
from ...errors import OptionError, RegardError
from ...record import Layer, Record, Tokens

__all__ = ["Part", "Shown", "Text", "chosen", "describe", "sides_of"]

VERSION = 1  # of the description
NAME = 60  # characters of a text that are its name


@dataclass(frozen=True, eq=False)
class Part:
    """A layer of one text, and which of its heads are shown."""

    id: int  # in the page
    layer: Layer
    places: tuple[int, ...]  # of the heads, among those that were kept

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads that are shown, Q, K)"""
        _, queries, keys = self.layer.map.shape
        return len(self.places), queries, keys

    @property
    def heads(self) -> list[int]:
        """Their numbers in the model."""
        return [self.layer.head_numbers[place] for place in self.places]


@dataclass(frozen=True, eq=False)
class Text:
    """One text of one run."""

    name: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, eq=False)
class Shown:
    """All that a page shows."""

    model: str
    texts: tuple[Text, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The layers of all texts; each has its id as its place."""
        return tuple(part for text in self.texts for part in text.parts)


def chosen(
    record: Record, layers: int | Iterable[int] | None = None, heads: int | Iterable[int] | None = None
) -> Shown:
    """Every run and text of a record; of its layers and heads those with some numbers in the model, or all."""
    runs = record.runs
    if not runs or not any(run.layers for run in runs):
        raise RegardError(
            "the record is empty: no attention ran while the model was watched; there is nothing to show."
        )
    every = [layer for run in runs for layer in run.layers]
    wanted_layers = _wanted("layer", layers, {layer.index for layer in every})
    within = [layer for layer in every if layer.index in wanted_layers]
    wanted_heads = _wanted("head", heads, {head for layer in within for head in layer.head_numbers})
    texts: list[Text] = []
    parts = 0
    for run in runs:
        for item in range(run.items):
            found: list[Part] = []
            for layer in (one.item(item) for one in run.layers if one.index in wanted_layers):
                places = tuple(place for place, head in enumerate(layer.head_numbers) if head in wanted_heads)
                if places:
                    found.append(Part(parts + len(found), layer, places))
            parts += len(found)
            texts.append(Text(_name(run.layers[-1].item(item).queries[0], len(texts)), tuple(found)))
    return Shown(runs[0].model, tuple(text for text in texts if text.parts))


def describe(
    shown: Shown, *, title: str | None = None, source: Literal["packed", "served"] = "served", runs_text: bool = False,
    precision: Mapping[str, Any] | None = None, details: Mapping[int, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The description of a page. details: of each layer, by its id, what packing found: scores, thumbnail, packed."""
    if title is not None and not isinstance(title, str):
        raise OptionError(f"title is {title!r}; it must be text.")
    sides = _Sides()
    layers = [_layer(part, sides) | dict((details or {}).get(part.id, {})) for part in shown.parts]
    return {
        "version": VERSION, "regard": __version__, "title": title or shown.model or "attention", "model": shown.model,
        "source": source, "runs_text": runs_text, "precision": None if precision is None else dict(precision),
        "tokens": sides.told,
        "texts": [{"name": text.name, "layers": [part.id for part in text.parts]} for text in shown.texts],
        "layers": layers,
    }  # fmt: skip


def sides_of(layer: Layer) -> tuple[Tokens, Tokens]:
    """The tokens of the queries and of the keys; their places, where there are no texts that fit the map."""
    _, *sizes = layer.map.shape
    queries, keys = (
        side[0] if len(side[0]) == size else _numbered(size)
        for side, size in zip((layer.queries, layer.keys), sizes, strict=True)
    )
    return queries, keys


@lru_cache(4)
def _numbered(size: int) -> Tokens:
    """Places in the stead of texts, made once: a server needs them for every tile."""
    return Tokens.numbered(size)


def _layer(part: Part, sides: "_Sides") -> dict[str, Any]:
    layer, (queries, keys) = part.layer, sides_of(part.layer)
    return {
        "id": part.id, "name": layer.name, "index": int(layer.index), "kind": layer.kind,
        "queries": sides.number(queries), "keys": sides.number(keys),
        "offset": int(layer.map.offset), "heads": [int(head) for head in part.heads],
        "scores": None, "thumbnail": None, "packed": None,
    }  # fmt: skip


@dataclass
class _Sides:
    """The sides of all maps, each different one once."""

    told: list[dict[str, Any]] = field(default_factory=list)
    _found: dict[Tokens, int] = field(default_factory=dict)

    def number(self, side: Tokens) -> int:
        if side not in self._found:
            self._found[side] = len(self.told)
            self.told.append(
                {
                    "texts": list(side.texts),
                    "words": side.word_edges[:-1],
                    "word_texts": list(side.words),
                    "segments": None if side.segments is None else [int(segment) for segment in side.segments],
                    "generated": None if side.generated is None else int(side.generated),
                }
            )
        return self._found[side]


def _wanted(name: str, numbers: int | Iterable[int] | None, known: set[int]) -> set[int]:
    """The numbers that somebody chose, each known; all of them where nobody did."""
    if numbers is None:
        return known
    try:
        wanted = {index(number) for number in (numbers if isinstance(numbers, Iterable) else (numbers,))}
    except TypeError:
        raise OptionError(f"{name}s are {str(numbers)[:60]}; they must be whole numbers, as in [0, 3].") from None
    for number in sorted(wanted - known):
        raise OptionError(f"there is no {name} {number} here; there are {', '.join(map(str, sorted(known)))}.")
    if not wanted:
        raise OptionError(f"no {name}s are chosen; a page shows at least one.")
    return wanted


def _name(tokens: Tokens, place: int) -> str:
    """A text by its first words, or by its number where it has none."""
    some = Tokens(tokens.texts[:NAME], tokens.begins[:NAME])
    words = " ".join(" ".join(some.words).split())
    if not words or tokens == Tokens.numbered(len(tokens)):
        return f"text {place + 1}"
    return words if len(words) <= NAME and len(tokens) <= NAME else words[: NAME - 1].rstrip() + "…"

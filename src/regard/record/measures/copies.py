"""Whether a head, when a token is written, looks at that very token in what was read: retrieval heads."""

# H heads, Q queries, K keys

import numpy as np

from ...errors import OptionError
from ...formula.problem import span as span_of
from ..record import Layer
from .repeats import lacks_texts
from .subject import Floats

__all__ = ["copied", "lacks_written"]


def copied(layer: Layer, span: slice | None = None, generated: int | None = None) -> Floats:
    """The share of written tokens that were copied; of the texts in a span, the share that was.   -> (H,)"""
    start = _start(layer, generated)
    assert start is not None, "lacks_written is asked first"
    rows, keys = layer.queries[0].texts, layer.keys[0].texts
    source = _source(layer, span, len(rows) - start)
    wanted = {keys[place] for place in source}
    top = layer.top(1, rows=slice(start - 1, len(rows) - 1)).keys[..., 0]  # the query that writes a token is one before
    shares = []
    for found in top.tolist():
        hits = [key for key, text in zip(found, rows[start:], strict=True) if key in source and keys[key] == text]
        shares.append(len(hits) / len(found) if span is None else len({keys[key] for key in hits}) / len(wanted))
    return np.asarray(shares, dtype=np.float64)


def lacks_written(layer: Layer, generated: int | None = None) -> str | None:
    """Why there is nothing to measure, in words."""
    missing = lacks_texts(layer)
    if missing is not None:
        return missing
    start, size = _start(layer, generated), len(layer.queries[0])
    if start is None:
        return "nothing here is marked as written by the model; give generated=, the place of the first token that was"
    if not 1 <= start < size:
        return f"the tokens from {start} on are those the model wrote, and there are {size}; it must be 1 to {size - 1}"
    return None


def _start(layer: Layer, generated: int | None) -> int | None:
    """The place of the first token that the model wrote."""
    return layer.queries[0].generated if generated is None else generated


def _source(layer: Layer, span: slice | None, written: int) -> range:
    """The keys that a token may be copied from: the span, else all that was there before the first one was written."""
    size = layer.map.shape[-1]
    read = size if layer.kind == "cross" else size - written
    chosen = range(read) if span is None else span_of("span", span, size)
    if not chosen:
        raise OptionError(f"the span {span} has none of the {size} keys; it is where the text stands that is copied.")
    return chosen

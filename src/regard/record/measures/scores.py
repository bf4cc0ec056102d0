"""What each head does, as one number: the scores by which heads are known, and the table of all of them."""

# H heads of a layer

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...errors import OptionError
from ..record import Layer, Record
from .copies import copied, lacks_written
from .gradients import importance_of
from .repeats import lacks_repeats, on_repeats
from .standing import lacks_neighbour, lacks_tokens, mean_over_rows, on_first, on_neighbour, on_strongest
from .subject import Floats
from .table import HeadTable, head_names

__all__ = [
    "COLUMNS", "distance", "duplicate_token", "entropy", "head_table", "importance", "induction", "next_token",
    "previous_token", "retrieval", "self_token", "sink", "strongest_key",
]  # fmt: skip


@dataclass(frozen=True)
class Score:
    """How a number is found for each head of a layer, and what may keep it from being found."""

    of: Callable[[Layer], Floats]  # -> (H,)
    lacks: Callable[[Layer], str | None]  # in words; None where nothing is lacking


def head_table(record: Record | Layer, columns: Iterable[str] | None = None) -> HeadTable:
    """Every head with all that is known of it: a row a head, a column a score; NaN where a score has no meaning.

    columns: some of `COLUMNS`, all of them unless chosen. Entropy and distance take one pass over the maps, the
    strongest key another, the rest little, once the rows' log-sum-exps are known. Of the batch's first text; the
    others' are head_table(record.item(1)) and so on.
    """
    chosen = COLUMNS if columns is None else tuple(columns)
    unknown = [name for name in chosen if name not in COLUMNS]
    if unknown or not chosen:
        raise OptionError(f"columns are {list(chosen)}; choose some of {', '.join(COLUMNS)}.")
    layers = _layers(record)
    # Entropy comes first: its pass finds the log-sum-exps, which the others need.
    found = {name: _column(layers, _SCORES[name]) for name in sorted(chosen, key=COLUMNS.index)}
    return HeadTable(chosen, head_names(layers), np.stack([found[name] for name in chosen], axis=-1))


def previous_token(record: Record | Layer) -> HeadTable:
    """Mean weight on the token before: 1/n · Σ_i w[i, i−1], over the tokens that have one (Voita et al. 2019)."""
    return _alone(record, "previous_token", _SCORES["previous_token"])


def next_token(record: Record | Layer) -> HeadTable:
    """Mean weight on the token after, Σ_i w[i, i+1] / n; 0 where attention is causal (Clark et al. 2019)."""
    return _alone(record, "next_token", _SCORES["next_token"])


def self_token(record: Record | Layer) -> HeadTable:
    """Mean weight on the token itself, Σ_i w[i, i] / n."""
    return _alone(record, "self_token", _SCORES["self_token"])


def duplicate_token(record: Record | Layer) -> HeadTable:
    """Mean weight on all earlier tokens with the same text, over the tokens that have such (Wang et al. 2023).

    1/|R| · Σ_{i∈R} Σ_{j<i, x_j=x_i} w_ij, with R the tokens that came before. Nothing is sampled.
    """
    return _alone(record, "duplicate_token", _SCORES["duplicate_token"])


def induction(record: Record | Layer) -> HeadTable:
    """Mean weight on what came after earlier tokens with the same text: A B … A looks at B (Olsson et al. 2022).

    1/|R| · Σ_{i∈R} Σ_{j<i, x_j=x_i} w[i, j+1], with R the tokens that came before. The places are those of
    TransformerLens's pattern for induction heads, found on any text; the mean is over the tokens that have such a
    place. In a random text written twice that is its second half, as in the paper. Nothing is sampled.
    """
    return _alone(record, "induction", _SCORES["induction"])


def sink(record: Record | Layer) -> HeadTable:
    """Mean weight on the first key, where heads with nothing to do put their attention (Xiao et al. 2024).

    Gu et al. 2025 call it a sink from 0.3 on.
    """
    return _alone(record, "sink", _SCORES["sink"])


def strongest_key(record: Record | Layer) -> HeadTable:
    """Mean weight on the key that receives most, wherever it stands: max_j Σ_i w_ij / n. A sink need not be first."""
    return _alone(record, "strongest_key", _SCORES["strongest_key"])


def entropy(record: Record | Layer) -> HeadTable:
    """Mean entropy of the rows, −Σ_j w_ij·log w_ij, in nats: 0 = one key, log K = all alike."""
    return _alone(record, "entropy", _SCORES["entropy"])


def distance(record: Record | Layer) -> HeadTable:
    """Mean distance that a head looks over, Σ_j w_ij·|i − j|, in tokens."""
    return _alone(record, "distance", _SCORES["distance"])


def retrieval(record: Record | Layer, span: slice | None = None, *, generated: int | None = None) -> HeadTable:
    """How often a head looks most at the very token that is being written, in what was read (Wu et al. 2024).

    The token at t is written by the query at t − 1. It is copied if the key with that query's highest weight has its
    text and stands in the source. Without a span the source is all that was read, and the number is the share of
    written tokens that were copied. With one, the keys of a needle, it is the paper's: the share of the needle's
    different tokens that were copied at least once.

    generated: the place of the first token that the model wrote, where the record does not know it.
    """
    found = Score(partial(copied, span=span, generated=generated), partial(lacks_written, generated=generated))
    return _alone(record, "retrieval", found)


def importance(record: Record | Layer) -> HeadTable:
    """|Σ_i o_i · ∂L/∂o_i|: what the loss would change by, to first order, without the head (Michel et al. 2019).

    The mean over the texts of the batch, as the paper takes it. From values and gradients, in O(n·d), without the map:
    regard.watch(model, gradients=True), with loss.backward() inside.
    """
    return _alone(record, "importance", _SCORES["importance"])


def _lacks_gradients(layer: Layer) -> str | None:
    if all(found.values is not None and found.gradients is not None for found in layer.maps):
        return None
    return (
        f"values and gradients were not kept for layer {layer.index} ({layer.name}); run it once more under "
        "regard.watch(model, gradients=True), with loss.backward() inside"
    )


def _alone(record: Record | Layer, name: str, score: Score) -> HeadTable:
    """A table of one column; an error where no layer has it."""
    layers = _layers(record)
    lacking = [score.lacks(layer) for layer in layers]
    if all(lacking):
        raise OptionError(f"{lacking[0]}.")
    return HeadTable((name,), head_names(layers), _column(layers, score)[:, None])


def _column(layers: tuple[Layer, ...], score: Score) -> Floats:
    """One number a head, NaN for the heads of a layer that lacks something.   -> (all heads,)"""
    return np.concatenate(
        [np.full(len(layer.head_numbers), np.nan) if score.lacks(layer) else score.of(layer) for layer in layers]
    )


def _layers(record: Record | Layer) -> tuple[Layer, ...]:
    return (record,) if isinstance(record, Layer) else record.layers


_SCORES = {
    "entropy": Score(lambda layer: mean_over_rows(layer, layer.entropy()), lacks_tokens),
    "distance": Score(lambda layer: mean_over_rows(layer, layer.distance()), lacks_tokens),
    "sink": Score(on_first, lacks_tokens),
    "strongest_key": Score(on_strongest, lacks_tokens),
    "previous_token": Score(partial(on_neighbour, step=-1), partial(lacks_neighbour, step=-1)),
    "self_token": Score(partial(on_neighbour, step=0), partial(lacks_neighbour, step=0)),
    "next_token": Score(partial(on_neighbour, step=1), partial(lacks_neighbour, step=1)),
    "duplicate_token": Score(partial(on_repeats, step=0), lacks_repeats),
    "induction": Score(partial(on_repeats, step=1), lacks_repeats),
    "retrieval": Score(copied, lacks_written),
    "importance": Score(importance_of, _lacks_gradients),
}
COLUMNS = tuple(_SCORES)  # of the table

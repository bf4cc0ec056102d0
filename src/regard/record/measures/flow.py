"""Attention through all layers at once: rollout, and relevance by gradients, row by row, never n×n."""

# H heads, N tokens, R rows that are asked for

from collections.abc import Iterable

from ...errors import OptionError, ShapeError
from ...formula.arrays import Array, Library
from ...formula.normalize import divided
from ..record import Layer, Record
from .subject import Subject, places, problem_of, values_and_gradients_of
from .sums import active_rows, column_sums, row_totals

__all__ = ["relevance", "rollout"]

TOGETHER = 2**24  # numbers: the sums of all heads are held side by side as long as they are fewer


def rollout(
    record: Record, rows: int | slice | Iterable[int], *, layers: Iterable[int] | None = None, residual: float = 0.5,
    heads: Iterable[int] | None = None,
) -> Array:  # fmt: skip
    """How much of each token has come into some tokens of the last layer (Abnar and Zuidema 2020).   -> (R, N)

    One layer hands on Â = residual·I + (1 − residual)·mean of the heads' weights, its rows made to add up to 1, and a
    row of the rollout is that row of Â_last · … · Â_first. It is multiplied from the left, so that only vectors are
    held: each step is a weighted sum down the columns of one layer's map.

    rows: the tokens asked about, their places. layers, heads: places in record.layers and in each layer's heads; all of
    them unless chosen. residual: how much goes past the attention, along the residual connection. A token that may see
    nothing hands itself on. What a sink takes is left out of the sum that is made 1.
    """
    if not 0 <= residual <= 1:
        raise OptionError(f"residual is {residual}; it is a share, from 0 to 1.")
    stack = _stack(record, layers)
    flow = _starts(stack[-1], rows)
    for layer in reversed(stack):
        flow = _mixed(layer, flow, residual, _heads(layer, heads))
    return flow


def relevance(
    record: Record, rows: int | slice | Iterable[int], *, layers: Iterable[int] | None = None,
    heads: Iterable[int] | None = None,
) -> Array:  # fmt: skip
    """How much each token did, by way of some tokens of the last layer, for the loss (Chefer et al. 2021).   -> (R, N)

    One layer adds Ā = mean over the heads of max(0, w ⊙ ∂L/∂w) to what passes by, so a row of the relevance is that row
    of (I + Ā_last) · … · (I + Ā_first). The gradient by a weight is g_i·v_j, so values and gradients must have been
    kept: regard.watch(model, gradients=True). The arguments are those of `rollout`.
    """
    stack = _stack(record, layers)
    flow = _starts(stack[-1], rows)
    for layer in reversed(stack):
        flow = flow + _passed(flow, _heads(layer, heads), by_gradient=True)
    return flow


def _mixed(layer: Layer, flow: Array, residual: float, subjects: list[Subject]) -> Array:
    """flow · Â of one layer.   (R, N) -> (R, N)"""
    problem = problem_of(layer)
    blocks = active_rows(problem, flow)
    if not blocks:
        return flow
    span = slice(blocks[0].start, blocks[-1].stop)
    totals = sum(_mean_of(subject, row_totals(problem_of(subject), subject.log_sum_exp(span))) for subject in subjects)
    whole = residual + (1 - residual) * totals / len(subjects)  # (span,): a row of Â before it is made to add up to 1
    xp = problem.xp
    parts = (flow[:, : span.start], divided(xp, flow[:, span], whole), flow[:, span.stop :])
    flow = xp.concat(parts, axis=-1)
    return residual * flow + (1 - residual) * _passed(flow, subjects)


def _passed(flow: Array, subjects: list[Subject], *, by_gradient: bool = False) -> Array:
    """flow · the mean of the heads' weights, or of the positive part of weight × gradient.   (R, N) -> (R, N)"""
    total = flow * 0
    blocks = active_rows(problem_of(subjects[0]), flow)
    if not blocks:
        return total
    span = slice(blocks[0].start, blocks[-1].stop)
    for subject in _apart(subjects, flow):
        values, gradients = values_and_gradients_of(subject) if by_gradient else (None, None)
        sums = column_sums(
            problem_of(subject), subject.log_sum_exp(span), flow, blocks, values=values, gradients=gradients
        )
        total = total + (problem_of(subject).xp.sum(sums, axis=0) if isinstance(subject, Layer) else sums)
    return total / sum(len(subject.heads) if isinstance(subject, Layer) else 1 for subject in subjects)


def _apart(subjects: list[Subject], flow: Array) -> list[Subject]:
    """A layer as it is, or head by head where the sums of all its heads would be many."""
    (first, *_) = subjects
    if not isinstance(first, Layer) or len(first.heads) * flow.shape[0] * flow.shape[1] <= TOGETHER:
        return subjects
    return list(first.heads)


def _mean_of(subject: Subject, numbers: Array) -> Array:
    return problem_of(subject).xp.mean(numbers, axis=0) if isinstance(subject, Layer) else numbers


def _heads(layer: Layer, heads: Iterable[int] | None) -> list[Subject]:
    """The layer, or those of its heads that are chosen."""
    if heads is None:
        return [layer]
    return [layer.heads[place] for place in places("heads", list(heads), len(layer.heads))]


def _starts(layer: Layer, rows: int | slice | Iterable[int]) -> Array:
    """One row for each token asked about, 1 at its own place.   -> (R, N)"""
    problem = problem_of(layer)
    library, size = Library.of(problem.query), problem.shape[-1]
    chosen = library.asarray(places("rows", rows, size))[:, None]
    return library.xp.astype(chosen == library.arange(0, size)[None, :], problem.wide)


def _stack(record: Record, layers: Iterable[int] | None) -> list[Layer]:
    """The layers to go through, the first one first."""
    found = record.layers
    chosen = range(len(found)) if layers is None else sorted(places("layers", list(layers), len(found)))
    stack = [found[place] for place in chosen]
    kinds = sorted({layer.kind for layer in stack})
    if kinds not in (["encoder"], ["decoder"]):
        of_kind = {kind: [place for place, layer in enumerate(found) if layer.kind == kind] for kind in kinds}
        choice = " or ".join(f"layers={own} ({kind})" for kind, own in of_kind.items() if kind != "cross")
        raise OptionError(
            f"these layers are of the kinds {', '.join(kinds)}; attention is rolled out through self-attention of one "
            f"kind{f': choose {choice}' if choice else ''}."
        )
    _require_square(stack)
    return stack


def _require_square(stack: list[Layer]) -> None:
    size = stack[-1].map.shape[-1]
    for layer in stack:
        _, rows, cols = layer.map.shape
        if (rows, cols) != (size, size):
            raise ShapeError(
                f"layer {layer.index} is {rows} × {cols}, queries × keys, and the last one has {size} keys; a rollout "
                "goes through square maps of one size. Watch one run over the whole text, without a cache."
            )

"""Weights and heads by what they did for the loss, from gradients that are O(n·d), never n×n."""

# H heads, Q queries, K keys, V value width; "..": nothing for one head, H for all heads of a layer

from ...formula.arrays import Array
from ...formula.attention import attend
from ...formula.problem import EVERYTHING, grouped_matmul, span
from ..record import Layer
from .subject import Floats, Subject, floats, problem_of, values_and_gradients_of
from .sums import active_rows, column_sums

__all__ = ["attention_gradient", "gradient_received", "importance_of"]


def attention_gradient(subject: Subject, rows: slice = EVERYTHING, cols: slice = EVERYTHING) -> Array:
    """w_ij · ∂L/∂w_ij, one rectangle of it: what the loss would lose, to first order, without this weight.

    The output of a head is o_i = Σ_j w_ij·v_j, so ∂L/∂w_ij = g_i·v_j with g_i = ∂L/∂o_i, and nothing n×n need be kept
    (Chefer et al. 2021; Barkan et al. 2021). Needs regard.watch(model, gradients=True).
    -> (.., rows, cols)
    """
    values, gradients = values_and_gradients_of(subject)
    queries, keys = (
        span(name, part, size)
        for name, part, size in (("rows", rows, subject.shape[-2]), ("cols", cols, subject.shape[-1]))
    )
    xp = problem_of(subject).xp
    above, below = gradients[..., queries.start : queries.stop, :], values[..., keys.start : keys.stop, :]
    return subject.weights(rows, cols) * grouped_matmul(xp, above, xp.matrix_transpose(below))


def gradient_received(subject: Subject) -> Array:
    """Σ_i max(0, w_ij · ∂L/∂w_ij): what each key does for the loss, over all queries, where it raises it.   -> (.., K)

    The loss here is whatever `backward` was called on; for "which words made it say yes", call it on that score.
    """
    values, gradients = values_and_gradients_of(subject)
    problem = problem_of(subject)
    ones = problem.xp.ones((1, problem.shape[-2]), dtype=problem.wide, device=problem.query.device)
    blocks = active_rows(problem, ones)
    return column_sums(problem, subject.log_sum_exp(), ones, blocks, values=values, gradients=gradients)[..., 0, :]


def importance_of(layer: Layer) -> Floats:
    """|Σ_i o_i·g_i| of each head, the mean over the texts of the batch.   -> (H,)"""
    every = [_importance(layer.item(item)) for item in range(len(layer.maps))]
    return sum(every[1:], start=every[0]) / len(every)


def _importance(layer: Layer) -> Floats:
    values, gradients = values_and_gradients_of(layer)
    found, xp = layer.map, problem_of(layer).xp
    output = attend(
        found.queries, found.keys, values, found.mask, scale=found.scale, softcap=found.softcap, bias=found.bias,
        sinks=found.sinks,
    )  # fmt: skip
    return abs(floats(xp.sum(output * gradients, axis=(-2, -1))))

"""Weights times the lengths of what they carry: a token may be looked at and bring nothing (Kobayashi et al. 2020)."""

# H heads, Q queries, K keys; "..": nothing for one head, H for all heads of a layer

from dataclasses import dataclass, replace

from ...errors import OptionError
from ...formula import highest
from ...formula.arrays import Array, quiet
from ...formula.highest import Top
from ...formula.normalize import log_of
from ...formula.positions import Bias
from ...formula.problem import EVERYTHING, span
from .subject import Subject, problem_of, value_norms_of

__all__ = ["value_received", "value_top", "value_weighted"]


def value_weighted(subject: Subject, rows: slice = EVERYTHING, cols: slice = EVERYTHING) -> Array:
    """‖w_ij · v_j W_O‖ = w_ij · ‖v_j W_O‖: how long the vector is that key j sends to query i (Kobayashi et al. 2020).

    One rectangle of it, exact. A key whose value is short, as a separator's or a sink's often is, may have all the
    weight and no say. Needs regard.watch(model, values=True).   -> (.., rows, cols)
    """
    norms = value_norms_of(subject)
    chosen = span("cols", cols, subject.shape[-1])
    return subject.weights(rows, cols) * norms[..., None, chosen.start : chosen.stop]


def value_received(subject: Subject) -> Array:
    """Σ_i w_ij · ‖v_j W_O‖: the lengths of all that each key sends to all queries together.   -> (.., K)"""
    return value_norms_of(subject) * subject.received()


def value_top(subject: Subject, count: int = 8, rows: slice = EVERYTHING) -> Top:
    """The keys that send the longest vectors to each query, and how long they are.   -> (.., rows, count) twice

    As `Sight.top`, −1 stands, with a length of 0, where a query gets anything from fewer keys than were asked for.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise OptionError(f"count is {count!r}; ask for at least 1 key.")
    norms, problem = value_norms_of(subject), problem_of(subject)
    chosen = span("rows", rows, problem.shape[-2])
    # exp(score + log ‖v‖ − lse) = w · ‖v‖: with the logarithm as a bias, what finds the highest weights finds these.
    lengths = replace(problem, bias=Lengths(log_of(problem.xp, norms)[..., None, :], problem.bias))
    with quiet(problem.xp):
        found, _ = highest.top(lengths, count, chosen, subject.log_sum_exp(rows)[..., None])
    return found


@dataclass(frozen=True, eq=False)
class Lengths(Bias):
    """The logarithm of each value's length, on top of what else is added to the scores."""

    logs: Array  # (.., 1, K)
    other: Bias | None

    def tile(self, rows: slice, cols: slice, shape: tuple[int, ...], *, like: Array) -> Array:
        own = self.logs[..., cols]
        return own if self.other is None else own + self.other.tile(rows, cols, shape, like=like)

    def item(self, index: tuple[int, ...], shape: tuple[int, ...]) -> Bias:
        return Lengths(self.logs[index], None if self.other is None else self.other.item(index, shape))

"""Beam search: several beginnings of each text are kept, and the best whole text among all that they lead to."""

# B batch, R open beams of all rows together, k best tokens of each, V tokens of the vocabulary

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...errors import OptionError
from ..options import require_count
from .advance import reordered, require_choice, require_numbers, require_start, scored
from .limits import Limits
from .penalty import GNMT, LengthPenalty
from .prefix import Prefixes
from .ranking import best
from .result import Decoded
from .stepper import State, Stepper


def beam(
    stepper: Stepper[State], state: State, start: Tensor, limits: Limits, *,
    width: int = 4, n_best: int = 1, penalty: LengthPenalty = GNMT, prefix: Sequence[Sequence[int]] | None = None,
) -> list[list[Decoded]]:  # fmt: skip
    """The n best texts of each row, the best first; fewer where there are fewer.

    At each step the `width` best continuations of a row stay, those that have ended among them: a text that has ended
    keeps its place, so that width 1 is greedy. A row stops as soon as none of its open beams can come to be among its
    n best, however they go on. Beams of a row lie side by side, rows in their order, and only open ones are stepped.
    """
    require_start(start)
    if require_count("n_best", n_best) > require_count("width", width):
        raise OptionError(f"n_best is {n_best} and width is {width}; a beam finds at most as many texts as it is wide.")
    search = _Search(Prefixes(prefix, len(start)), limits, width, n_best, penalty)
    tokens = start
    while len(tokens):
        scores, state = scored(stepper, tokens, state, limits, search.chosen())
        values, candidates = best(scores, min(width, scores.shape[1]))
        parents, names = search.advance(values.cpu().numpy(), candidates.cpu().numpy())
        if len(parents):
            state = reordered(stepper, state, parents, len(tokens), start.device)
        tokens = torch.from_numpy(names).to(start.device)
    return search.results()


@dataclass(frozen=True)
class _Finished:
    """A whole text, by the place where it stopped: beam `parent` of those that went into step `step`, and `last`."""

    score: float
    step: int
    parent: int
    last: int
    ended: bool


class _Search:
    """The open beams and the finished texts of a batch. All its arrays are small and on the CPU, whatever the model.

    Tokens are kept as a tree, each step's with their parents, and read backwards once, at the end.
    """

    def __init__(self, prefixes: Prefixes, limits: Limits, width: int, n_best: int, penalty: LengthPenalty) -> None:
        batch = len(prefixes.lengths)
        self.prefixes, self.limits, self.n_best, self.penalty = prefixes, limits, n_best, penalty
        self.longest = limits.longest_of(batch)  # (B,)
        self.step = 0
        self.rows = np.arange(batch)  # (R,) the row of each open beam
        self.totals = np.zeros(batch)  # (R,) its sum of log-probabilities, in float64
        self.room = np.full(batch, width)  # (B,) places not yet taken by texts that have ended
        self.bar = np.full(batch, -np.inf)  # (B,) the n-th best finished score, which an open beam must pass
        self.finished: list[list[_Finished]] = [[] for _ in range(batch)]
        self.tree: list[tuple[np.ndarray, np.ndarray]] = []  # parents and tokens of the beams that stayed open

    def chosen(self) -> np.ndarray:
        """How many tokens each open beam has chosen; below 0 while its prefix lasts.   (R,)"""
        return self.prefixes.chosen(self.rows, self.step)

    def advance(self, values: np.ndarray, candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take the best candidates; parents and tokens of the beams that stay open.   (R, k) twice -> (R',) twice"""
        chosen = self.chosen()
        require_numbers(values[:, 0], self.rows, self.step)
        given = chosen < 0
        if given.any():  # one way on, and it costs nothing
            values, candidates = values.copy(), candidates.copy()
            values[given, 0], values[given, 1:] = 0.0, -np.inf
            candidates[given, 0] = self.prefixes.at(self.rows[given], self.step)
        parents, names, totals = self._kept(values, candidates)
        rows, given, lengths = self.rows[parents], given[parents], chosen[parents] + 1
        ended = ~given & (names == self.limits.end)
        closed = ended | (lengths >= self.longest[rows])
        finals = totals / self.penalty.of(np.maximum(lengths, 1))
        for place in np.flatnonzero(closed):
            last, score = int(names[place]), float(finals[place])
            self._finish(rows[place], _Finished(score, self.step, int(parents[place]), last, bool(ended[place])))
        (stay,) = np.nonzero(~closed & self._may_win(rows, np.where(closed, -np.inf, totals)))
        self.rows, self.totals = rows[stay], totals[stay]
        self.tree.append((parents[stay], names[stay]))
        self.step += 1
        return self.tree[-1]

    def results(self) -> list[list[Decoded]]:
        """The n best of each row; of equal scores the one that was found first."""
        return [
            [self._decoded(text, row) for text in sorted(texts, key=lambda text: -text.score)[: self.n_best]]
            for row, texts in enumerate(self.finished)
        ]

    def _kept(self, values: np.ndarray, candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Each row's best candidates, as many as it has room: parents, tokens and totals, rows in their order."""
        totals = (self.totals[:, None] + values).ravel()
        rows = self.rows.repeat(values.shape[1])
        order = np.lexsort((-totals, rows))  # stable: of equals the better beam's, then the lower token
        first = np.searchsorted(rows, rows)  # rows ascend, and so they do in order
        kept = order[(np.arange(len(rows)) - first < self.room[rows]) & (totals[order] > -np.inf)]
        gone = self.rows[np.bincount(rows[kept], minlength=len(self.room))[self.rows] == 0]
        require_choice(gone[[not self.finished[row] for row in gone]], self.step)
        return kept // values.shape[1], candidates.ravel()[kept], totals[kept]

    def _finish(self, row: int, text: _Finished) -> None:
        """Note a text that is whole; it takes a place of its row for good, and may raise the bar."""
        texts = self.finished[row]
        texts.append(text)
        self.room[row] -= 1
        if len(texts) >= self.n_best:
            self.bar[row] = sorted((text.score for text in texts), reverse=True)[self.n_best - 1]

    def _may_win(self, rows: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """Whether any open beam of its row can still pass the bar; for each beam.   (R,)

        A total only falls and the penalty only grows, so none ends better than its total now at the longest length.
        """
        bounds = np.full(len(self.bar), -np.inf)
        np.maximum.at(bounds, rows, totals / self.penalty.of(self.longest[rows]))
        return np.asarray((bounds > self.bar)[rows])

    def _decoded(self, text: _Finished, row: int) -> Decoded:
        """The tokens of a text, read from its last to its first."""
        tokens = [] if text.ended else [text.last]
        beam = text.parent
        for parents, names in reversed(self.tree[: text.step]):
            tokens.append(int(names[beam]))
            beam = int(parents[beam])
        return Decoded(tuple(tokens[::-1][self.prefixes.lengths[row] :]), text.score, text.ended)

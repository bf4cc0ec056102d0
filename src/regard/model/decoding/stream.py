"""One token per row and step: the likeliest, or one that is drawn; as they come, or whole."""

# B batch, R rows that are still open, V tokens of the vocabulary

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from .advance import reordered, require_choice, require_numbers, require_start, scored
from .limits import Limits
from .prefix import Prefixes
from .ranking import likeliest
from .result import Decoded, Emitted
from .sampling import Sampling
from .stepper import State, Stepper


def stream(
    stepper: Stepper[State], state: State, start: Tensor, limits: Limits, *,
    sampling: Sampling | None = None, generator: torch.Generator | None = None,
    prefix: Sequence[Sequence[int]] | None = None,
) -> Iterator[Emitted]:  # fmt: skip
    """Tokens as they are chosen, step by step; a row that has ended takes no further part.

    start: the token that each row begins from, (B,). sampling: how to draw; without it the likeliest token is taken,
    the lowest of equals. prefix: tokens that each row goes through first; they are given, so they do not come out.
    """
    require_start(start)
    rows, prefixes, tokens = np.arange(len(start)), Prefixes(prefix, len(start)), start
    longest, step = limits.longest_of(len(start)), 0
    while len(rows):
        chosen = prefixes.chosen(rows, step)
        scores, state = scored(stepper, tokens, state, limits, chosen)
        picked = likeliest(scores) if sampling is None else sampling.draw(scores, generator)
        values = scores.gather(1, picked[:, None])[:, 0].cpu().numpy()  # the one place where a GPU is waited for
        require_numbers(values, rows, step)
        free = chosen >= 0
        require_choice(rows[free & (values == -np.inf)], step)
        names = picked.cpu().numpy()
        if not free.all():
            names[~free] = prefixes.at(rows[~free], step)
        ended = free & (names == limits.end)
        if free.any():
            yield Emitted(*(tuple(part[free].tolist()) for part in (rows, names, values, ended)))
        (parents,) = np.nonzero(~ended & (chosen + 1 < longest[rows]))
        if len(parents):
            state = reordered(stepper, state, parents, len(rows), start.device)
        rows, tokens = rows[parents], torch.from_numpy(names[parents]).to(start.device)
        step += 1


def greedy(
    stepper: Stepper[State], state: State, start: Tensor, limits: Limits, *,
    prefix: Sequence[Sequence[int]] | None = None,
) -> list[Decoded]:  # fmt: skip
    """The likeliest token at each step, row by row; see stream."""
    return _gathered(stream(stepper, state, start, limits, prefix=prefix), len(start))


def sample(
    stepper: Stepper[State], state: State, start: Tensor, limits: Limits, sampling: Sampling | None = None, *,
    generator: torch.Generator | None = None, prefix: Sequence[Sequence[int]] | None = None,
) -> list[Decoded]:  # fmt: skip
    """A token that is drawn at each step, row by row; see stream. The same generator gives the same tokens."""
    drawn = stream(
        stepper, state, start, limits, sampling=sampling or Sampling(), generator=generator, prefix=prefix
    )  # fmt: skip
    return _gathered(drawn, len(start))


def _gathered(steps: Iterator[Emitted], batch: int) -> list[Decoded]:
    """What was emitted, row by row instead of step by step."""
    tokens: list[list[int]] = [[] for _ in range(batch)]
    scores, ends = [0.0] * batch, [False] * batch
    for step in steps:
        for row, token, score, ended in zip(step.rows, step.tokens, step.scores, step.ended, strict=True):
            scores[row] += score
            ends[row] = ended
            if not ended:
                tokens[row].append(token)
    return [Decoded(tuple(row), score, ended) for row, score, ended in zip(tokens, scores, ends, strict=True)]

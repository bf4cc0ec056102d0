"""One step of a stepper: log-probabilities out of its logits, and its state for the rows that go on."""

# R rows that are decoded at once, V tokens of the vocabulary

import numpy as np
import torch
from torch import Tensor

from ...errors import DtypeError, NotANumber, OptionError, ShapeError
from .limits import Limits
from .stepper import State, Stepper


def require_start(start: Tensor) -> None:
    """The token that each row begins from, (B,)."""
    if not isinstance(start, Tensor) or start.ndim != 1 or start.dtype not in (torch.int64, torch.int32):
        given = f"{start.dtype} {tuple(start.shape)}" if isinstance(start, Tensor) else f"a {type(start).__name__}"
        raise DtypeError(f"start is {given}; it must be a tensor of whole numbers, (batch,): a first token per row.")


@torch.no_grad()
def scored(
    stepper: Stepper[State], tokens: Tensor, state: State, limits: Limits, chosen: np.ndarray
) -> tuple[Tensor, State]:
    """Log-probabilities of the next tokens, −inf where they may not be chosen, and the state after.   (R,) -> (R, V)

    In float32 whatever the logits are, since sums of many are compared.
    """
    logits, state = stepper.step(tokens, state)
    if logits.ndim != 2 or len(logits) != len(tokens):
        raise ShapeError(f"the step gave logits {tuple(logits.shape)} for {len(tokens)} tokens; not (rows, V).")
    scores = logits.log_softmax(dim=-1, dtype=torch.float32)
    limits.bar(scores, chosen)
    return scores, state


@torch.no_grad()
def reordered(stepper: Stepper[State], state: State, parents: np.ndarray, rows: int, device: torch.device) -> State:
    """The state for rows that go on from `parents`, of `rows` that there were; untouched where nothing moves."""
    if len(parents) == rows and (parents == np.arange(rows)).all():
        return state
    return stepper.reorder(state, torch.from_numpy(parents).to(device))


def require_numbers(scores: np.ndarray, rows: np.ndarray, step: int) -> None:
    """The best score of each row, which is NaN where any logit was.   (R,)"""
    wrong = np.isnan(scores)
    if wrong.any():
        raise NotANumber(
            f"step {step}: the logits of row {rows[wrong][0]} hold NaN or +inf ({len(set(rows[wrong].tolist()))} of "
            f"{len(set(rows.tolist()))} rows do). Look for NaN in the model's weights, or decode in float32."
        )


def require_choice(rows: np.ndarray, step: int) -> None:
    """No rows for which nothing can be chosen."""
    if len(rows):
        raise OptionError(
            f"step {step}: no token is left to choose for row {rows[0]}. Each is forbidden, is the end before the "
            "shortest length, or has a logit of −inf."
        )

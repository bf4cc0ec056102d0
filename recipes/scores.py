"""How well a text encoder guesses hidden pieces, beside knowing only how often each piece occurs."""

# B rows, N tokens of a row, T tokens of a corpus, V pieces

import math
from dataclasses import dataclass

import torch
from batches import with_ends
from torch import Tensor
from torch.nn import functional

from regard.model.text_encoder import TextEncoder
from regard.text.bpe import Tokenizer

SHARE, SEED = 0.15, 1  # of the pieces that are hidden, always the same ones
ROWS = 16384  # tokens at once


@dataclass(frozen=True)
class Score:
    """Mean loss in nats and the share of right first guesses, over `count` hidden pieces."""

    loss: float
    accuracy: float
    count: int

    @property
    def perplexity(self) -> float:
        """Among how many equally likely pieces the choice is."""
        return math.exp(self.loss)


def hidden_places(ids: Tensor) -> Tensor:
    """Which pieces of a corpus are hidden.   (T,) -> (T,)"""
    return (torch.rand(len(ids), generator=torch.Generator().manual_seed(SEED)) < SHARE).to(ids.device)


@torch.no_grad()
def score(model: TextEncoder, ids: Tensor, tokenizer: Tokenizer, length: int) -> Score:
    """On a corpus cut into rows of `length` tokens, the ends included; what is left over is not asked about."""
    inside = length - 2
    rows = len(ids) // inside
    cut = ids[: rows * inside].view(rows, inside)
    asked = hidden_places(ids)[: rows * inside].view(rows, inside)
    shown = with_ends(cut.masked_fill(asked, tokenizer.mask), tokenizer)
    loss, right = torch.zeros((), device=ids.device), torch.zeros((), device=ids.device)
    model.eval()
    for some in torch.arange(rows).split(max(1, ROWS // length)):
        part = slice(int(some[0]), int(some[-1]) + 1)
        logits = model.guess(model.vectors(shown[part])[:, 1:-1][asked[part]])
        answers = cut[part][asked[part]]
        loss += functional.cross_entropy(logits, answers, reduction="sum")
        right += (logits.argmax(-1) == answers).sum()
    count = int(asked.sum())
    return Score(float(loss) / count, float(right) / count, count)


def by_frequency(train: Tensor, ids: Tensor, size: int) -> Score:
    """The same places guessed by how often each piece occurs in the training text, and by nothing else."""
    often = torch.bincount(train, minlength=size).double() + 1
    answers = ids[hidden_places(ids)]
    loss = -(often / often.sum()).log()[answers].mean()
    return Score(float(loss), float((answers == often.argmax()).double().mean()), len(answers))

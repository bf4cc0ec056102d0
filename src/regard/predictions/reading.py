"""What predictors that read share: texts in batches of like length, the model as it is asked, tokens for a record."""

# B texts of a batch, N tokens

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ..errors import DtypeError, OptionError
from ..record.tokens import Tokens
from ..text.bpe import Tokenizer
from ..text.pieces import readable

__all__ = ["asked", "by_length", "drawing", "labels", "padded", "require_own", "require_texts"]

TOKENS = 8192  # of a batch, padding and all


def require_own(name: str, told: str, vocabulary: int, tokenizer: Tokenizer) -> None:
    """The tokenizer must be the one whose pieces the model was trained on. told: its hash, "" where nobody knows"""
    if told and told != tokenizer.hash:
        raise OptionError(
            f"the tokenizer of {name} is not the one that its model was trained with: the model wants "
            f"{told[:12]}…, and this one is {tokenizer.hash[:12]}…. Put the tokenizer.json of the training run there."
        )
    if tokenizer.size > vocabulary:
        raise OptionError(
            f"the tokenizer of {name} has {tokenizer.size:,} pieces and its model knows {vocabulary:,}; they do not "
            "belong together."
        )


def require_texts(texts: Sequence[str], what: str) -> None:
    """A list of texts, in each of which there is something to read."""
    if isinstance(texts, str):
        raise DtypeError(f"one text is given; give a list of them, [{texts[:20]!r}].")
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise DtypeError(f"{what} {number} is a {type(text).__name__}; it must be a text.")
        if not text.strip():
            raise OptionError(f"{what} {number} is empty; there is nothing to read in it.")


def by_length(lengths: Sequence[int], *, tokens: int = TOKENS) -> Iterator[list[int]]:
    """The numbers of texts of like length, as many as fit into so many tokens when padded; one that is longer alone."""
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda number: lengths[number]):
        if batch and (len(batch) + 1) * lengths[number] > tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def padded(rows: Sequence[Sequence[int]], pad: int, device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Rows of ids side by side, and where they are ids; None where nothing had to be padded.   -> (B, N), (B, N)"""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[pad] * (longest - len(row))] for row in rows], device=device)
    lengths = torch.tensor([len(row) for row in rows], device=device)
    if min(map(len, rows)) == longest:
        return ids, None
    return ids, torch.arange(longest, device=device) < lengths[:, None]


@contextmanager
def asked(model: nn.Module) -> Iterator[torch.device]:
    """The model without dropout and without gradients, and the device it is on; afterwards it is as it was."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield next(model.parameters()).device
    finally:
        model.train(training)


def drawing(seed: int | None, device: torch.device) -> torch.Generator | None:
    """Where random numbers come from: the same ones for the same seed; None: others each time."""
    if seed is None:
        return None
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise OptionError(f"seed is {seed!r}; it must be a whole number from 0 up to, but not including, 2**63.")
    return torch.Generator(device).manual_seed(seed)


def labels(tokenizer: Tokenizer, ids: Sequence[int], segments: Sequence[int] | None = None) -> Tokens:
    """What each id stands for, as people read it."""
    marks = {tokenizer.pad, tokenizer.first, tokenizer.last, tokenizer.mask}
    read = readable([tokenizer.piece(number) for number in ids], [number in marks for number in ids])
    return Tokens(
        tuple(piece.text for piece in read), tuple(piece.begins for piece in read),
        None if segments is None else tuple(segments),
    )  # fmt: skip

"""Where token ids become vectors: the ids checked, and the places of tokens added where they are not rotary."""

# B batch, N tokens, E width

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import DtypeError, OptionError, ShapeError
from ..formula import positions
from .options import require_count, require_name

POSITIONS = ("rotary", "learned", "sinusoidal")


def make_embedding(vocabulary: int, width: int) -> nn.Embedding:
    """A vector for each piece, to be used twice: times √E where tokens come in, as it is where they are guessed.

    At the output rows of length 1 keep first guesses mild, at the input √E makes of them numbers around 1, as large as
    what the first blocks add (Press and Wolf 2017; Vaswani et al. 2017, section 3.4).
    """
    embedding = nn.Embedding(vocabulary, width)
    nn.init.normal_(embedding.weight, std=width**-0.5)
    return embedding


def entered(x: Tensor, dropout: float, training: bool) -> Tensor:
    """Token vectors as the first block takes them: some numbers dropped, and in the precision of autocast if it is on.

    Every block adds to them, so all that follow are in the precision that they enter in.
    """
    kind = x.device.type
    lesser = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype
    return functional.dropout(x.to(lesser), dropout, training)


class Positions(nn.Module):
    """Adds to token vectors where they stand: "learned" or "sinusoidal". With "rotary" the attention layers know."""

    table: Tensor

    def __init__(self, kind: str, longest: int, width: int) -> None:
        super().__init__()
        self.kind = require_name("positions", kind, POSITIONS)
        require_count("longest", longest)
        if kind == "learned":
            # Kept small and multiplied by √E as the embedding is, so that both learn at the same pace.
            self.table = nn.Parameter(nn.init.normal_(torch.empty(longest, width), std=width**-0.5))
        elif kind == "sinusoidal":
            table = positions.sinusoidal(longest, width, like=torch.empty(0))
            self.register_buffer("table", table, persistent=False)

    def forward(self, x: Tensor, start: int = 0, places: Tensor | None = None) -> Tensor:
        """(B, N, E) -> (B, N, E); the first token stands at `start`, or each at its own of `places`, (B, N)."""
        if self.kind == "rotary":
            return x
        rows = self.table[start : start + x.shape[1]] if places is None else self.table[places]
        return x + (rows * math.sqrt(x.shape[2]) if self.kind == "learned" else rows)


def require_ids(name: str, ids: Tensor, *, longest: int, start: int = 0) -> None:
    """Token ids, (B, N), of a text that with the `start` tokens before it is no longer than the model reads."""
    if not isinstance(ids, Tensor):
        raise DtypeError(f"{name} is a {type(ids).__name__}; make it a tensor: torch.tensor([ids]).")
    if ids.dtype not in (torch.int64, torch.int32):
        raise DtypeError(f"{name} has dtype {ids.dtype}; token ids are whole numbers, int64 or int32.")
    if ids.ndim != 2 or 0 in ids.shape:
        one = f" For a single text give {name}[None]." if ids.ndim == 1 and len(ids) else ""
        raise ShapeError(f"{name} has shape {tuple(ids.shape)}; it must be (batch, tokens), 1 or more of each.{one}")
    if start + ids.shape[1] > longest:
        raise ShapeError(
            f"{name} reaches {start + ids.shape[1]} tokens and this model was made for at most {longest}; cut it."
        )


def require_known(name: str, ids: Tensor, vocabulary: int) -> None:
    """Ids that the vocabulary has: a wrong one would stop a GPU for good. Looking at them is waited for there."""
    least, most = int(ids.min()), int(ids.max())
    if not 0 <= least <= most < vocabulary:
        wrong = least if least < 0 else most
        raise OptionError(f"{name} holds {wrong}, which is no token id here; they are 0 to {vocabulary - 1}.")


def require_padding(name: str, mask: Tensor, ids: Tensor) -> None:
    """A boolean mask (B, N) that says which of some ids are tokens and which padding."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        given = mask.dtype if isinstance(mask, Tensor) else f"a {type(mask).__name__}"
        raise DtypeError(f"{name} is {given}; it must be a boolean tensor, True = a token, as ids != tokenizer.pad.")
    if mask.shape != ids.shape:
        raise ShapeError(f"{name} is {tuple(mask.shape)} and the ids are {tuple(ids.shape)}; both must be alike.")

"""The feed-forward part of a block: each token by itself, out to a hidden width and back."""

# B batch, N tokens, E width

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional

from .options import require_count, require_name, require_rate, require_vectors

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "swiglu": functional.silu,
}


class FeedForward(nn.Module):
    """act(x·W₁ + b₁)·W₂ + b₂; with "swiglu" silu(x·W₁)·(x·W₃) takes the place of the activation (Shazeer 2020).

    hidden: 4·width unless given. dropout falls on the hidden columns.
    """

    def __init__(
        self, width: int, hidden: int | None = None, *, activation: str = "relu", bias: bool = True,
        dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.width = require_count("width", width)
        self.hidden = require_count("hidden", 4 * width if hidden is None else hidden)
        self.activation = require_name("activation", activation, ACTIVATIONS)
        self.dropout = require_rate("dropout", dropout)
        self.to_hidden = nn.Linear(width, self.hidden, bias=bias)
        self.to_gated = nn.Linear(width, self.hidden, bias=bias) if activation == "swiglu" else None
        self.output = nn.Linear(self.hidden, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, E) -> (B, N, E)"""
        require_vectors("x", x, self.width)
        hidden = ACTIVATIONS[self.activation](self.to_hidden(x))
        if self.to_gated is not None:
            hidden = hidden * self.to_gated(x)
        return self.output(functional.dropout(hidden, self.dropout, self.training))  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """What `print` shows of it."""
        return f"activation={self.activation}, dropout={self.dropout}"

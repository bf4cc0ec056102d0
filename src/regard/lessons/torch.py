"""The names that lessons on attention use, in PyTorch, each a few lines on top of the formula.

The same names as in `regard.lessons`, on tensors and with gradients. A mask is written as lessons write it: numbers to
add to the scores (0 = may attend, −inf = may not), 0 and 1 (1 = may attend), or booleans (True = may attend). One that
is 0 throughout could be read both ways: of floating numbers it adds nothing, as a padding mask of a batch without
padding; of whole numbers it forbids everything.
"""

# Q queries, K keys, V value width; "..": any leading axes (batch, heads)

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

from .. import formula
from ..errors import DtypeError, MissingExtra, ShapeError
from ..formula import masks, positions
from ..formula.arrays import floating, namespace
from ..formula.problem import map_shape
from . import NEVER, plot_attention_weights
from . import show_distribution as show_array
from .axes import (
    Shape,
    alike,
    head_width,
    join,
    lay,
    require_products,
    require_same_batch,
    require_sentences,
    split,
    whole_number,
)
from .words import look_up

try:
    import torch
    from torch import Tensor, nn
except ImportError as missing:
    raise MissingExtra("regard.lessons.torch needs PyTorch: pip install regard[torch]") from missing

__all__ = [
    "MultiHeadAttention", "MultiHeadSelfAttention", "SimpleAttention", "SingleHeadSelfAttention", "create_causal_mask",
    "create_padding_mask", "plot_attention_weights", "positional_encoding", "scaled_dot_product_attention",
    "self_attention", "sentence_encoder", "show_distribution", "softmax",
]  # fmt: skip

Numbers = Any  # a tensor, a NumPy array, or lists of numbers


def softmax(x: Numbers, axis: int = -1) -> Tensor:
    """exp(x) / Σ exp(x) along `axis`, each row with its own maximum subtracted."""
    normalized: Tensor = formula.softmax(_floats(x, "x"), axis)
    return normalized


def self_attention(
    X: Numbers, W_q: Numbers, W_k: Numbers, W_v: Numbers, mask: Numbers | None = None
) -> tuple[Tensor, Tensor]:
    """X attends to itself: the queries X·W_q to the keys X·W_k, mixing the values X·W_v.   -> (output, weights)"""
    x, w_q, w_k, w_v = _tensors(X=X, W_q=W_q, W_k=W_k, W_v=W_v)
    require_products(x, W_q=w_q, W_k=w_k, W_v=w_v)
    return scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, mask)


def scaled_dot_product_attention(
    Q: Numbers, K: Numbers, V: Numbers, mask: Numbers | None = None
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """softmax(Q·Kᵀ/√d_k + mask)·V, and the softmax itself.   -> (output (.., Q, V), weights (.., Q, K))

    Two axes (tokens, width), three (batch, tokens, width) or four (batch, heads, tokens, width).
    """
    q, k, v = _tensors(Q=Q, K=K, V=V)
    require_same_batch(Q=q, K=k, V=v)
    bias = _bias(mask, map_shape(q.shape, k.shape), q)
    output, weights = formula.attended(q, k, v, bias=bias)
    return output, weights


def create_causal_mask(n: int) -> Tensor:
    """Each token sees itself and those before it.   -> (n, n), 0 and −inf"""
    mask: Tensor = masks.causal().additive(whole_number(n, "n", 0), like=torch.empty(0))
    return mask


def create_padding_mask(ids: Numbers, pad_token: int = 0) -> Tensor:
    """Nobody sees the tokens that are padding.   (batch, n) -> (batch, 1, n), 0 and −inf"""
    tokens = _tensor(ids, "ids")
    tokens = tokens[None] if tokens.ndim == 1 else tokens
    if tokens.is_floating_point() or tokens.dtype == torch.bool or tokens.ndim != 2:
        raise DtypeError(f"ids are {tokens.dtype} {tuple(tokens.shape)}; they must be whole numbers (batch, tokens).")
    mask: Tensor = masks.padding_of_ids(tokens, pad_token).additive(1, tokens.shape[-1])
    return mask


class SimpleAttention(nn.Module):
    """Self-attention with its three matrices written out: X·W_q, X·W_k, X·W_v, (dim, dim) each."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = whole_number(dim, "dim", 1)
        # Variance 1/dim: what goes in at size 1 comes out at size 1.
        self.W_q, self.W_k, self.W_v = (nn.Parameter(torch.randn(dim, dim) * dim**-0.5) for _ in range(3))

    def forward(self, x: Numbers, mask: Numbers | None = None) -> tuple[Tensor, Tensor]:
        """(batch, n, dim) -> (batch, n, dim), (batch, n, n); the batch may be left out"""
        (x,) = _sentences(self.dim, self.W_q, x=x)
        return self_attention(x, self.W_q, self.W_k, self.W_v, mask)


class SingleHeadSelfAttention(nn.Module):
    """Self-attention whose queries, keys and values come from linear layers."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = whole_number(d_model, "d_model", 1)
        self.W_q, self.W_k, self.W_v = (nn.Linear(d_model, d_model) for _ in range(3))

    def forward(self, x: Numbers, mask: Numbers | None = None) -> tuple[Tensor, Tensor]:
        """(batch, n, d_model) -> (batch, n, d_model), (batch, n, n); the batch may be left out"""
        (x,) = _sentences(self.d_model, self.W_q.weight, x=x)
        return scaled_dot_product_attention(self.W_q(x), self.W_k(x), self.W_v(x), mask)


class _Heads(nn.Module):
    """The linear layers of several heads, and the way through them."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.d_k = head_width(d_model, num_heads)
        self.d_model, self.num_heads = d_model, num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def attend(self, q: Numbers, k: Numbers, v: Numbers, mask: Numbers | None = None) -> tuple[Tensor, Tensor]:
        """The output, and the weights of each head.   -> (batch, Q, d_model), (batch, heads, Q, K)"""
        Q, K, V, bias = self._heads(q, k, v, mask)
        mixed, weights = formula.attended(Q, K, V, bias=bias)
        return alike(q, self.W_o(join(mixed))), alike(q, weights)

    def _heads(self, q: Numbers, k: Numbers, v: Numbers, mask: Numbers | None) -> tuple[Any, Any, Any, Any]:
        """Queries, keys and values, (batch, heads, N, d_k) each, and the mask laid over their map."""
        tensors = _sentences(self.d_model, self.W_q.weight, q=q, k=k, v=v)
        projected = (layer(x) for layer, x in zip((self.W_q, self.W_k, self.W_v), tensors, strict=True))
        Q, K, V = (split(x if x.ndim == 3 else x[None], self.num_heads) for x in projected)
        return Q, K, V, _bias(mask, map_shape(Q.shape, K.shape), Q)


class MultiHeadAttention(_Heads):
    """Several attentions side by side, each on its own d_k columns of the projected input, joined and projected."""

    def forward(self, q: Numbers, k: Numbers, v: Numbers, mask: Numbers | None = None) -> Tensor:
        """What each query gathers from all heads; the weights come with `attend`.   -> (batch, Q, d_model)"""
        Q, K, V, bias = self._heads(q, k, v, mask)
        output: Tensor = alike(q, self.W_o(join(formula.attend(Q, K, V, bias=bias))))
        return output


class MultiHeadSelfAttention(_Heads):
    """Multi-head attention of a sentence to itself, which tells the weights of each head."""

    def forward(self, x: Numbers, mask: Numbers | None = None) -> tuple[Tensor, Tensor]:
        """(batch, n, d_model) -> (batch, n, d_model), (batch, heads, n, n); the batch may be left out"""
        return self.attend(x, x, x, mask)


def positional_encoding(seq_len: int, d_model: int) -> Tensor:
    """Sinusoidal: sin in the even columns, cos in the odd ones.   -> (seq_len, d_model)"""
    n, width = whole_number(seq_len, "seq_len", 0), whole_number(d_model, "d_model", 1)
    places: Tensor = positions.sinusoidal(n, width, like=torch.empty(0))
    return places


def sentence_encoder(words: str | Iterable[str], vectors: Mapping[str, Numbers]) -> tuple[Tensor, Tensor]:
    """Each word's vector attends to all of them; the mean of what comes out.   -> (vector (width), weights (n, n))

    words: a list of them, or one text with spaces in between. vectors: a dictionary, word to vector.
    """
    x = torch.stack(look_up(words, vectors, _floats))
    output, weights = scaled_dot_product_attention(x, x, x)
    return output.mean(dim=0), weights


def show_distribution(
    weights: Numbers, words: Sequence[str], top: int = 3, keys: Sequence[str] | None = None
) -> str:  # fmt: skip
    """Print how each word spreads its attention: the `top` words it looks at most, in per cent. Returns the text."""
    table = _floats(weights, "weights").detach().double().cpu().numpy()
    return show_array(table, words, top, keys)


def _bias(mask: Numbers | None, shape: Shape, like: Tensor) -> Tensor | None:
    """A lesson's mask as what is added to the scores of a map of `shape`, with −inf for every kind of never."""
    if mask is None:
        return None
    numbers = _tensor(mask, "mask").to(like.device)
    if _is_binary(numbers) and (not numbers.is_floating_point() or torch.any(numbers == 1)):
        numbers = numbers == 1
    if numbers.dtype == torch.bool:
        numbers = torch.zeros(numbers.shape, dtype=like.dtype, device=like.device).masked_fill(~numbers, -torch.inf)
    if not torch.all(numbers <= 0):
        raise DtypeError(
            f"mask holds {numbers[~(numbers <= 0)][0].item()}; give 0 and 1 (1 = may attend), booleans, or numbers to "
            "be added to the scores: 0 = may attend, −inf = may not."
        )
    added: Tensor = lay(numbers.to(like.dtype).masked_fill(numbers <= NEVER, -torch.inf), shape)
    return added


def _is_binary(numbers: Tensor) -> bool:
    return bool(torch.all((numbers == 0) | (numbers == 1)))


def _sentences(d_model: int, weight: Tensor, **inputs: Numbers) -> list[Tensor]:
    """The inputs of a layer, with its width, its dtype and on its device."""
    tensors = {name: _tensor(x, name).to(weight) for name, x in inputs.items()}
    require_sentences(d_model, **tensors)
    return list(tensors.values())


def _tensors(**given: Numbers) -> list[Tensor]:
    """All as tensors of real floating numbers, of one dtype."""
    floats = [_floats(x, name) for name, x in given.items()]
    dtype = reduce(torch.promote_types, (x.dtype for x in floats))
    return [x.to(dtype) for x in floats]


def _floats(x: Numbers, name: str) -> Tensor:
    """`x` as a tensor of real floating numbers."""
    tensor = _tensor(x, name)
    floats: Tensor = floating(namespace(x=tensor), tensor, name)
    return floats


def _tensor(x: Numbers, name: str) -> Tensor:
    """`x` as a tensor of any dtype."""
    try:
        return torch.as_tensor(x)
    except ValueError as reason:
        raise ShapeError(f"{name} is no even list of numbers: {reason}.") from None
    except (TypeError, RuntimeError):
        raise DtypeError(
            f"{name} is a {type(x).__name__}; it must be a tensor, an array or lists of numbers."
        ) from None

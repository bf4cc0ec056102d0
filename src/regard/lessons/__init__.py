"""The names that lessons on attention use, in NumPy, each a few lines on top of the formula.

Somebody who follows a lesson changes one import line and goes on. Lists and whole numbers are welcome. Masks are the
lessons' own: numbers that are added to the scores, 0 = may attend and −inf = may not. Lessons that shy away from −inf
write −1e9, −1e4 or the lowest number of their dtype, and mean the same: every number from −1e4 down is taken for −inf,
so that a row in which nothing may be attended to gives zeros, whichever was written. Negative numbers nearer to 0 are
added as they are. Booleans are understood too, True = may attend.
"""

# Q queries, K keys, V value width; "..": any leading axes (batch, heads)

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import formula
from ..errors import DtypeError, ShapeError
from ..formula import masks, positions
from ..formula.arrays import floating, is_array, namespace
from ..formula.problem import map_shape
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
from .words import distribution, look_up

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "MultiHeadAttention", "create_causal_mask", "create_padding_mask", "plot_attention_weights", "positional_encoding",
    "scaled_dot_product_attention", "self_attention", "sentence_encoder", "show_distribution", "softmax",
]  # fmt: skip

NEVER = -1e4  # its exp is 0 in every dtype: taking it for −inf changes nothing but the rows that are masked throughout

Numbers = Any  # a NumPy array, or lists of numbers


def softmax(x: Numbers, axis: int = -1) -> np.ndarray:
    """exp(x) / Σ exp(x) along `axis`, each row with its own maximum subtracted."""
    return np.asarray(formula.softmax(_array(x, "x"), axis))


def self_attention(
    X: Numbers, W_q: Numbers, W_k: Numbers, W_v: Numbers, mask: Numbers | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """X attends to itself: the queries X·W_q to the keys X·W_k, mixing the values X·W_v.   -> (output, weights)"""
    x, w_q, w_k, w_v = (_array(x, name) for x, name in ((X, "X"), (W_q, "W_q"), (W_k, "W_k"), (W_v, "W_v")))
    require_products(x, W_q=w_q, W_k=w_k, W_v=w_v)
    return scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, mask)


def scaled_dot_product_attention(
    Q: Numbers, K: Numbers, V: Numbers, mask: Numbers | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """softmax(Q·Kᵀ/√d_k + mask)·V, and the softmax itself.   -> (output (.., Q, V), weights (.., Q, K))

    Two axes (tokens, width), three (batch, tokens, width) or four (batch, heads, tokens, width).
    """
    q, k, v = (_array(x, name) for x, name in ((Q, "Q"), (K, "K"), (V, "V")))
    require_same_batch(Q=q, K=k, V=v)
    bias = _bias(mask, map_shape(q.shape, k.shape))
    output, weights = formula.attended(q, k, v, bias=bias)
    return output, weights


def create_causal_mask(n: int) -> np.ndarray:
    """Each token sees itself and those before it.   -> (n, n), 0 and −inf"""
    return np.asarray(masks.causal().additive(whole_number(n, "n", 0)))


def create_padding_mask(ids: Numbers, pad_token: int = 0) -> np.ndarray:
    """Nobody sees the tokens that are padding.   (batch, n) -> (batch, 1, n), 0 and −inf"""
    tokens = np.atleast_2d(_rectangle(ids, "ids"))
    if tokens.dtype.kind not in "iu" or tokens.ndim != 2:
        raise DtypeError(f"ids are {tokens.dtype} {tokens.shape}; they must be whole numbers (batch, tokens).")
    return np.asarray(masks.padding_of_ids(tokens, pad_token).additive(1, tokens.shape[-1]))


class MultiHeadAttention:
    """Several attentions side by side, each on its own d_k columns of the projected input, joined and projected again.

    W_q, W_k, W_v and W_o, (d_model, d_model) each, are random, and the same for the same seed; put in your own if you
    like. q, k and v are sentences (tokens, d_model) or batches of them (batch, tokens, d_model).
    """

    def __init__(self, d_model: int, num_heads: int, seed: int | None = 0) -> None:
        self.d_k = head_width(d_model, num_heads)
        self.d_model, self.num_heads = d_model, num_heads
        # Variance 1/d_model: what goes in at size 1 comes out at size 1.
        matrices = np.random.default_rng(seed).normal(scale=d_model**-0.5, size=(4, d_model, d_model))
        self.W_q, self.W_k, self.W_v, self.W_o = matrices

    def forward(self, q: Numbers, k: Numbers, v: Numbers, mask: Numbers | None = None) -> np.ndarray:
        """What each query gathers from all heads.   -> (batch, Q, d_model)"""
        Q, K, V, bias = self._heads(q, k, v, mask)
        return np.asarray(alike(q, join(formula.attend(Q, K, V, bias=bias)) @ self.W_o))

    def attend(self, q: Numbers, k: Numbers, v: Numbers, mask: Numbers | None = None) -> tuple[np.ndarray, np.ndarray]:
        """What `forward` gives, and the weights of each head.   -> (batch, Q, d_model), (batch, heads, Q, K)"""
        Q, K, V, bias = self._heads(q, k, v, mask)
        mixed, weights = formula.attended(Q, K, V, bias=bias)
        return alike(q, join(mixed) @ self.W_o), alike(q, weights)

    def __call__(self, q: Numbers, k: Numbers, v: Numbers, mask: Numbers | None = None) -> np.ndarray:
        return self.forward(q, k, v, mask)

    def _heads(self, q: Numbers, k: Numbers, v: Numbers, mask: Numbers | None) -> tuple[Any, Any, Any, Any]:
        """Queries, keys and values, (batch, heads, N, d_k) each, and the mask laid over their map."""
        arrays = {name: _array(x, name) for name, x in (("q", q), ("k", k), ("v", v))}
        require_sentences(self.d_model, **arrays)
        matrices = (self.W_q, self.W_k, self.W_v)
        projected = (x @ matrix for x, matrix in zip(arrays.values(), matrices, strict=True))
        Q, K, V = (split(x if x.ndim == 3 else x[None], self.num_heads) for x in projected)
        return Q, K, V, _bias(mask, map_shape(Q.shape, K.shape))


def positional_encoding(seq_len: int, d_model: int) -> np.ndarray:
    """Sinusoidal: sin in the even columns, cos in the odd ones.   -> (seq_len, d_model)"""
    return np.asarray(positions.sinusoidal(whole_number(seq_len, "seq_len", 0), whole_number(d_model, "d_model", 1)))


def sentence_encoder(words: str | Iterable[str], vectors: Mapping[str, Numbers]) -> tuple[np.ndarray, np.ndarray]:
    """Each word's vector attends to all of them; the mean of what comes out.   -> (vector (width), weights (n, n))

    words: a list of them, or one text with spaces in between. vectors: a dictionary, word to vector.
    """
    x = np.stack(look_up(words, vectors, _array))
    output, weights = scaled_dot_product_attention(x, x, x)
    return output.mean(axis=0), weights


def show_distribution(
    weights: Numbers, words: Sequence[str], top: int = 3, keys: Sequence[str] | None = None
) -> str:  # fmt: skip
    """Print how each word spreads its attention: the `top` words it looks at most, in per cent. Returns the text too.

    weights: (words, words), or (words, keys) where the words looked at are others.
    """
    words = list(words)
    keys = words if keys is None else list(keys)
    text = distribution(_array(weights, "weights"), words, keys, whole_number(top, "top", 1))
    print(text)
    return text


def plot_attention_weights(
    weights: Numbers, tokens: Sequence[str], title: str | None = None, path: str | Path | None = None
) -> "Figure":
    """The heat map as a matplotlib figure; saved too where there is a path (.png, .svg, .pdf). Needs regard[plot].

    weights: (tokens, tokens), or (heads, tokens, tokens) for one map a head.
    """
    from ..view import plot  # here, since matplotlib comes with an extra

    draw = plot.heat_map if np.ndim(weights) < 3 else plot.head_grid
    return draw(weights, tokens, title=title, path=path)


def _bias(mask: Numbers | None, shape: Shape) -> np.ndarray | None:
    """A lesson's mask as what is added to the scores of a map of `shape`, with −inf for every kind of never."""
    if mask is None:
        return None
    numbers = _rectangle(mask, "mask")
    if numbers.dtype.kind == "b":
        numbers = np.where(numbers, 0.0, -np.inf)
    numbers = _array(numbers, "mask")
    if not np.all(numbers <= 0):
        raise DtypeError(
            f"mask holds {numbers[~(numbers <= 0)][0]}; it is added to the scores: 0 = may attend, −inf = may not. "
            "If 1 meant may attend, give booleans: mask == 1."
        )
    return np.asarray(lay(np.where(numbers <= NEVER, -np.inf, numbers), shape))


def _array(x: Numbers, name: str) -> np.ndarray:
    """`x` as an array of real floating numbers."""
    array = _rectangle(x, name)
    return np.asarray(floating(namespace(x=array), array, name))


def _rectangle(x: Numbers, name: str) -> np.ndarray:
    """`x` as a NumPy array of any dtype."""
    if is_array(x) and not isinstance(x, np.ndarray | np.generic):
        raise DtypeError(
            f"{name} is a {type(x).__module__}.{type(x).__name__}, and these lessons are in NumPy. For PyTorch: from "
            "regard.lessons.torch import ...; for other libraries: from regard.formula import attend, weights."
        )
    try:
        return np.asarray(x)
    except ValueError:
        raise ShapeError(f"the rows of {name} differ in length; fill them up to one length first.") from None

"""One sentence through attention, every step kept: words and vectors → Q, K, V → scores → weights → output."""

# N words, D width of a word vector, H heads, A width of a query, key and value of one head (d_k)

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .errors import OptionError, ShapeError
from .formula import attend, masks, scores, softmax
from .text.vectors import normal

Numbers = NDArray[np.float64]
MaskName = Literal["none", "causal"]

WIDEST = 4096  # of a word vector, and of all heads together: every step is kept, and every number of it can be printed
LONGEST = 1000  # words
MOST_SCORES = 2**22  # of all heads together


@dataclass(frozen=True, eq=False, kw_only=True)
class Steps:
    """What attention does to one sentence, as numbers. The first axis is the head, also where there is only one."""

    words: tuple[str, ...]
    mask: MaskName
    seed: int
    scale: float  # 1/√d_k
    vectors: Numbers  # (N, D)
    W_Q: Numbers  # (H, D, A)
    W_K: Numbers
    W_V: Numbers
    Q: Numbers  # (H, N, A): vectors · W_Q
    K: Numbers
    V: Numbers
    products: Numbers  # (H, N, N): q · k
    scaled: Numbers  # (H, N, N): q · k / √d_k
    masked: Numbers  # (H, N, N): the same, −inf where the mask says no
    weights: Numbers  # (H, N, N): the softmax of each row
    mixed: Numbers  # (H, N, A): the values, mixed by the weights
    joined: Numbers  # (N, H·A): the heads side by side
    W_O: Numbers | None  # (H·A, D): brings the heads together; None where there is one head
    output: Numbers  # (N, D) with several heads, (N, A) with one

    @property
    def heads(self) -> int:
        """How many heads there are."""
        return len(self.Q)

    @property
    def d_k(self) -> int:
        """The width of a query and of a key."""
        return int(self.Q.shape[-1])

    @property
    def row(self) -> int:
        """The word whose row is worked out in full: the middle one, which a causal mask cuts in half."""
        return len(self.words) // 2

    def powers(self, head: int = 0) -> Numbers:
        """The numbers that softmax divides by their sum: e^(score − the largest score of the row).   -> (N, N)"""
        table = self.masked[head]
        powers: Numbers = np.exp(table - table.max(axis=-1, keepdims=True))
        return powers

    def numbers(self) -> dict[str, Any]:
        """Every step as plain lists, for JSON: a masked score, −inf, is None."""
        shape = {"heads": self.heads, "d_model": self.vectors.shape[-1], "d_k": self.d_k}
        return {name: _plain(step) for name, step in vars(self).items()} | shape


def explain(
    words: Sequence[str],
    vectors: Numbers,
    *,
    mask: MaskName = "none",
    heads: int = 1,
    d_k: int | None = None,
    seed: int = 0,
) -> Steps:
    """Attention of the words to each other, with projection matrices drawn from the seed.

    d_k: the width of a query, key and value of one head; the width of the vectors shared out among the heads unless
    given. What is multiplied, scaled, masked and mixed is what `regard.formula` computes.
    """
    d_model = _checked(words, vectors)
    d_k = _head_width(d_model, heads, d_k)
    if heads * len(words) ** 2 > MOST_SCORES:
        raise OptionError(
            f"{heads} heads and {len(words)} words make {heads * len(words) ** 2} scores; take fewer of either."
        )
    W_Q, W_K, W_V = (_projections(seed, name, heads, d_model, d_k) for name in ("W_Q", "W_K", "W_V"))
    allowed = masks.causal() if mask == "causal" else None
    with np.errstate(over="ignore", invalid="ignore"):  # vectors of 1e200 overflow; said below, in words
        Q, K, V = (vectors @ W for W in (W_Q, W_K, W_V))
        products, scaled, masked = scores(Q, K, scale=1.0), scores(Q, K), scores(Q, K, allowed)
        mixed = attend(Q, K, V, allowed)
    joined = np.concatenate(tuple(mixed), axis=-1)
    W_O = _drawn(seed, "W_O", heads * d_k, d_model) if heads > 1 else None
    output = joined if W_O is None else joined @ W_O
    if not (np.isfinite(products).all() and np.isfinite(output).all()):
        raise OptionError(
            f"a product of the vectors overflows; the largest number in them is {np.abs(vectors).max():.3g}."
        )
    return Steps(
        words=tuple(words), mask=mask, seed=seed, scale=d_k**-0.5, vectors=vectors, W_Q=W_Q, W_K=W_K, W_V=W_V,
        Q=Q, K=K, V=V, products=products, scaled=scaled, masked=masked, weights=softmax(masked), mixed=mixed,
        joined=joined, W_O=W_O, output=output,
    )  # fmt: skip


def _checked(words: Sequence[str], vectors: Numbers) -> int:
    """The width of the vectors, once it is clear that there is one for each word."""
    if vectors.ndim != 2 or len(vectors) != len(words):
        raise ShapeError(
            f"there are {len(words)} words and vectors of shape {vectors.shape}; give one vector for each word."
        )
    if not 1 <= len(words) <= LONGEST:
        raise OptionError(
            f"the text has {len(words)} words; every number is kept, so 1 to {LONGEST} words can be explained."
        )
    width = int(vectors.shape[-1])
    if not 1 <= width <= WIDEST:
        raise OptionError(f"the vectors have {width} numbers each; 1 to {WIDEST} can be explained.")
    return width


def _head_width(d_model: int, heads: int, d_k: int | None) -> int:
    if heads < 1:
        raise OptionError(f"heads is {heads}; there must be at least 1.")
    if d_k is not None and d_k < 1:
        raise OptionError(f"d_k is {d_k}; a query must have at least 1 number.")
    if d_k is None and d_model % heads:
        fits = ", ".join(str(number) for number in range(1, min(d_model, 100) + 1) if d_model % number == 0)
        raise OptionError(
            f"{heads} heads do not divide vectors of {d_model} numbers; take heads out of {fits}, or give d_k."
        )
    width = d_model // heads if d_k is None else d_k
    if heads * width > WIDEST:
        raise OptionError(f"heads · d_k is {heads} · {width} = {heads * width}; at most {WIDEST} can be explained.")
    return width


def _projections(seed: int, name: str, heads: int, d_model: int, d_k: int) -> Numbers:
    """The matrices of all heads.   -> (H, D, A)"""
    return np.stack([_drawn(seed, f"{name} {head}", d_model, d_k) for head in range(heads)])


def _drawn(seed: int, name: str, rows: int, columns: int) -> Numbers:
    # With 1/√rows the numbers of x·W are as large as those of x, and the weights nearly even; with √2 times that, a
    # score is four times as large, and there is something to see.
    return normal(seed, f"matrix {name}", (rows, columns), spread=(2 / rows) ** 0.5)


def _plain(step: Any) -> Any:
    if not isinstance(step, np.ndarray):
        return step
    lists = step.tolist()
    return lists if np.isfinite(step).all() else _without_infinities(lists)


def _without_infinities(numbers: Any) -> Any:
    if isinstance(numbers, list):
        return [_without_infinities(number) for number in numbers]
    return None if numbers == -np.inf else numbers

"""Lesson 1, attention step by step: a sentence, its numbers at every step, and who looks at whom.

python examples/step_by_step.py [--save FOLDER]
"""

import argparse
from pathlib import Path

import numpy as np
from rich.cells import set_cell_size

from regard import errors
from regard.formula import scores
from regard.lessons import (
    create_causal_mask,
    plot_attention_weights,
    scaled_dot_product_attention,
    self_attention,
    sentence_encoder,
    show_distribution,
    softmax,
)

WORDS = ["我", "喜欢", "学习", "AI", "技术"]
# A vocabulary small enough to read: somebody, feeling, doing, machine.
VECTORS = {
    "我": [1.0, 0.1, 0.2, 0.0],
    "喜欢": [0.4, 1.0, 0.5, 0.0],
    "学习": [0.2, 0.5, 1.0, 0.4],
    "AI": [0.0, 0.1, 0.3, 1.0],
    "技术": [0.0, 0.0, 0.5, 0.9],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="where to put the heat maps")
    folder = parser.parse_args().save

    small_sums()
    weights = sentence()
    masked = causal()
    widths()
    longer()
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        plot_attention_weights(weights, WORDS, "我 喜欢 学习 AI 技术", folder / "step_by_step.png")
        plot_attention_weights(masked, WORDS, "the same, each word sees only what came before", folder / "causal.png")


def small_sums() -> None:
    heading("Three sums to follow with a pencil")
    print("softmax([0.88, 0.78, 0.71]) =", np.round(softmax([0.88, 0.78, 0.71]), 4))
    output, weights = scaled_dot_product_attention([[1, 0]], [[1, 0], [0, 1], [1, 0]], [[10, 0], [0, 20], [30, 0]])
    print("query [1, 0], keys [1, 0] [0, 1] [1, 0]: the second key is not like the query, and still gets a fifth")
    print("  weights", np.round(weights[0], 5), " output", np.round(output[0], 4))
    output, weights = scaled_dot_product_attention([[1]], [[1], [2], [0.5]], [[10], [20], [5]])
    print("query 1, keys 1 2 0.5, values 10 20 5")
    print("  weights", np.round(weights[0], 5), " output", np.round(output[0], 4))


def sentence() -> np.ndarray:
    heading("A sentence that attends to itself: " + " ".join(WORDS))
    X = np.array([VECTORS[word] for word in WORDS])
    Q, K, V = X, X, X  # each word asks for what is like itself; W_q = W_k = W_v = 1
    table("vectors X", X)
    table("Q·Kᵀ, how well each pair fits", scores(Q, K, scale=1.0))
    table("divided by √d_k = 2", scores(Q, K))
    output, weights = scaled_dot_product_attention(Q, K, V)
    table("softmax of each row: the weights", weights)
    table("the values mixed by them: the output", output)
    print("\nWhere each word looks most:")
    show_distribution(weights, WORDS, top=3)
    print("\nAll that 学习 looks at:")
    for weight, word in sorted(zip(weights[2], WORDS, strict=True), reverse=True):
        print("  " + set_cell_size(word, 6) + f"{'█' * round(weight * 100)} {weight:.1%}")
    try:
        sentence_encoder("我 喜欢 猫", VECTORS)
    except errors.UnknownWord as unknown:
        print("\nA word that the vocabulary lacks is named:", unknown)
    return weights


def causal() -> np.ndarray:
    heading("With a mask: 0 where a word may look, −inf where it may not")
    X = np.array([VECTORS[word] for word in WORDS])
    identity = np.eye(X.shape[1])
    mask = create_causal_mask(len(WORDS))
    table("mask", mask)
    _, weights = self_attention(X, identity, identity, identity, mask)
    table("weights", weights)
    return weights


def widths() -> None:
    heading("Another width d_k: random W_q, W_k, W_v")
    np.random.seed(42)
    X = np.random.randn(3, 4)
    W_q, W_k, W_v = (np.random.randn(4, 3) for _ in range(3))
    _, weights = self_attention(X, W_q, W_k, W_v)
    print("seed 42, three words of width 4, d_k = 3:")
    print(weights)
    rng = np.random.default_rng(0)
    print("Wider queries have larger products; √d_k takes that back. Mean highest weight of a row:")
    for d_k in (4, 64, 1024):
        Q, K = rng.normal(size=(2, 100, d_k))
        plain = softmax(scores(Q, K, scale=1.0)).max(axis=-1).mean()
        scaled = softmax(scores(Q, K)).max(axis=-1).mean()
        print(f"  d_k {d_k:4}: {plain:.3f} without it, {scaled:.3f} with it")


def longer() -> None:
    heading("A longer sentence spreads its attention thinner")
    rng = np.random.default_rng(0)
    for n in (5, 50, 500):
        X = rng.normal(size=(n, 16))
        _, weights = scaled_dot_product_attention(X, rng.normal(size=(n, 16)), X)
        print(f"  {n:3} words: highest weight of a row {weights.max(axis=-1).mean():.3f}, 1/n = {1 / n:.3f}")


def heading(text: str) -> None:
    print(f"\n== {text}")


def table(name: str, numbers: np.ndarray) -> None:
    """A row for each word, the columns straight whatever the script."""
    print(f"\n{name}")
    for word, row in zip(WORDS, numbers, strict=True):
        print("  " + set_cell_size(word, 6) + "".join(f"{number:7.3f}" for number in row))


if __name__ == "__main__":
    main()

"""Lesson 2, attention from scratch in five parts: itself, query-key-value, the causal mask, heads compared, drawn.

python examples/five_parts.py [--save FOLDER]
"""

import argparse
from pathlib import Path

import numpy as np

from regard.lessons import (
    MultiHeadAttention,
    create_causal_mask,
    create_padding_mask,
    plot_attention_weights,
    positional_encoding,
    scaled_dot_product_attention,
    show_distribution,
)

WORDS = ["the", "cat", "sat", "on", "the", "mat"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="where to put the heat maps")
    folder = parser.parse_args().save

    X = embedded(WORDS)
    weights = self_attention_part(X)
    query_key_value_part()
    causal_part(X)
    heads = heads_part(X)
    drawing_part(weights, heads, folder)


def embedded(words: list[str], width: int = 16) -> np.ndarray:
    """A random vector for each word, the same one each time it comes, plus its place."""
    rng = np.random.default_rng(0)
    vectors = {word: rng.normal(size=width) for word in dict.fromkeys(words)}
    return np.array([vectors[word] for word in words]) + 0.3 * positional_encoding(len(words), width)


def self_attention_part(X: np.ndarray) -> np.ndarray:
    heading(1, "Self-attention: each word finds itself, and its like")
    output, weights = scaled_dot_product_attention(X, X, X)
    print("X", X.shape, "-> output", output.shape, "and weights", weights.shape)
    print("each row adds up to", weights.sum(axis=-1).round(12).tolist())
    show_distribution(weights, WORDS, top=2)
    print("The two “the” share a vector, and so each looks at both.")
    return weights


def query_key_value_part() -> None:
    heading(2, "Query, key, value: a dictionary that answers in mixtures")
    # Keys say what each entry is about (warm, wet); values are what is to be had there (its temperature, its rain).
    places = ["desert", "jungle", "glacier"]
    K = np.array([[5.0, -5.0], [5.0, 5.0], [-5.0, 2.0]])
    V = np.array([[38.0, 20.0], [28.0, 3000.0], [-9.0, 600.0]])
    Q = np.array([[1.0, -1.0], [1.0, 0.0], [-1.0, 0.0]])
    output, weights = scaled_dot_product_attention(Q, K, V)
    show_distribution(weights, ["warm, dry", "warm", "cold"], top=3, keys=places)
    for name, (degrees, rain) in zip(["warm, dry", "warm", "cold"], output, strict=True):
        print(f"{name:9} → {degrees:6.1f} °C, {rain:6.0f} mm of rain")
    print("Who asks for warm alone gets desert and jungle in equal parts, and the mean of the two.")


def causal_part(X: np.ndarray) -> None:
    heading(3, "The causal mask: nobody looks ahead")
    mask = create_causal_mask(len(WORDS))
    _, weights = scaled_dot_product_attention(X, X, X, mask)
    print(np.round(weights, 2))
    changed = X.copy()
    changed[-1] += 100
    before = scaled_dot_product_attention(X, X, X, mask)[0][:-1]
    after = scaled_dot_product_attention(changed, changed, changed, mask)[0][:-1]
    print("changing the last word moves the others by", np.abs(after - before).max())
    batch, ids = np.stack([X, X]), [[1, 2, 3, 4, 1, 5], [1, 2, 3, 0, 0, 0]]
    _, weights = scaled_dot_product_attention(batch, batch, batch, mask + create_padding_mask(ids))
    print("with padding too, the last row of each sentence:", np.round(weights[:, -1], 2).tolist(), sep="\n")


def heads_part(X: np.ndarray) -> np.ndarray:
    heading(4, "Heads compared: each looks its own way")
    attention = MultiHeadAttention(d_model=16, num_heads=4, seed=1)
    attention.W_q, attention.W_k = 2 * attention.W_q, 2 * attention.W_k  # untrained heads are shy; these are not
    output, weights = attention.attend(X, X, X)
    print(f"d_model 16 in 4 heads of d_k {attention.d_k}: output {output.shape}, weights {weights.shape}")
    for head, table in enumerate(weights):
        surprise = -(table * np.log2(table)).sum(axis=-1).mean()
        looks = ", ".join(f"{word}→{WORDS[place]}" for word, place in zip(WORDS, table.argmax(axis=-1), strict=True))
        print(f"head {head}: entropy {surprise:.2f} of {np.log2(len(WORDS)):.2f} bits; {looks}")
    apart = np.abs(weights[:, None] - weights[None]).sum(axis=-1).mean(axis=-1) / 2
    print("share of the attention on which two heads differ:", np.round(apart, 2), sep="\n")
    return weights


def drawing_part(weights: np.ndarray, heads: np.ndarray, folder: Path | None) -> None:
    heading(5, "Drawn")
    shades = " ░▒▓█"
    for word, row in zip(WORDS, weights, strict=True):
        print(f"{word:>4} " + "".join(2 * shades[round(weight * (len(shades) - 1))] for weight in row))
    if folder is None:
        print("with --save FOLDER the heat maps are saved too")
        return
    folder.mkdir(parents=True, exist_ok=True)
    plot_attention_weights(weights, WORDS, "self-attention", folder / "self_attention.png")
    plot_attention_weights(heads, WORDS, "four heads", folder / "heads.png")
    print("saved", folder / "self_attention.png", "and", folder / "heads.png")


def heading(part: int, text: str) -> None:
    print(f"\n== {part}. {text}")


if __name__ == "__main__":
    main()

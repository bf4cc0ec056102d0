"""Lesson 5, attention applied: a sentence as one vector, values of another width, and the alignment of a translation.

python examples/sentence_encoder.py [--save FOLDER]
"""

import argparse
from pathlib import Path

import numpy as np
from rich.cells import set_cell_size

from regard.lessons import (
    MultiHeadAttention,
    positional_encoding,
    scaled_dot_product_attention,
    sentence_encoder,
    show_distribution,
)

# What each word is about: animal, person, thing, place; liking, resting, thinking; grammar.
MEANINGS = {
    "animal": ["cat", "dog", "猫", "狗"],
    "person": ["I", "you", "我", "你"],
    "thing": ["mat", "fish", "垫子", "鱼"],
    "place": ["on", "in", "在", "上"],
    "liking": ["like", "love", "喜欢", "爱"],
    "resting": ["sat", "slept", "坐", "睡"],
    "thinking": ["learn", "AI", "学习", "技术"],
    "grammar": ["the", "a", "了", "的"],
}
SENTENCE = ["我", "喜欢", "学习", "AI", "技术"]
ENGLISH, CHINESE = ["the", "cat", "sat", "on", "the", "mat"], ["猫", "坐", "在", "垫子", "上"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="where to put the heat maps")
    folder = parser.parse_args().save

    vectors = vocabulary()
    weights = encoder(vectors)
    widths(vectors)
    alignment = translation(vectors)
    if folder is not None:
        from regard.view.plot import heat_map

        folder.mkdir(parents=True, exist_ok=True)
        heat_map(weights, SENTENCE, title="the sentence encoder", path=folder / "sentence.png")
        heat_map(alignment, CHINESE, ENGLISH, title="猫 ↔ cat: the alignment", path=folder / "alignment.png")


def vocabulary() -> dict[str, np.ndarray]:
    """Words of one meaning lie together, whichever their language; no two words are quite the same."""
    rng = np.random.default_rng(3)
    axes = np.eye(len(MEANINGS))
    return {
        word: 3 * axis + rng.normal(scale=0.4, size=len(axis))
        for axis, words in zip(axes, MEANINGS.values(), strict=True)
        for word in words
    }


def encoder(vectors: dict[str, np.ndarray]) -> np.ndarray:
    heading("A sentence as one vector: self-attention, then the mean")
    vector, weights = sentence_encoder(SENTENCE, vectors)
    table(SENTENCE, SENTENCE, weights)
    print("sentence vector:", np.round(vector, 2))
    texts = ["我 喜欢 猫", "I love the dog", "你 爱 狗", "learn AI", "学习 技术"]
    codes = np.array([sentence_encoder(text, vectors)[0] for text in texts])
    codes /= np.linalg.norm(codes, axis=-1, keepdims=True)
    print("\nHow alike sentences are (cosine), across two languages:")
    table(texts, [f"({number})" for number in range(1, len(texts) + 1)], codes @ codes.T)
    return weights


def widths(vectors: dict[str, np.ndarray]) -> None:
    heading("d_k ≠ d_v: keys to be found by, values to be taken away")
    rng = np.random.default_rng(0)
    X = np.array([vectors[word] for word in ENGLISH])
    W_q, W_k, W_v = (rng.normal(size=(X.shape[-1], width)) for width in (4, 4, 10))
    output, weights = scaled_dot_product_attention(X @ W_q, X @ W_k, X @ W_v)
    print(f"Q and K {(X @ W_q).shape}, V {(X @ W_v).shape}: output {output.shape}, weights {weights.shape}")
    output, weights = MultiHeadAttention(d_model=8, num_heads=2).attend(X, X, X)
    print(f"two heads, joined and projected: output {output.shape}, weights {weights.shape}")


def translation(vectors: dict[str, np.ndarray]) -> np.ndarray:
    heading("Encoder and decoder: which word of the source does each word of the translation come from?")
    source, target = (np.array([vectors[word] for word in words]) for words in (ENGLISH, CHINESE))
    source, target = (x + 0.1 * positional_encoding(*x.shape) for x in (source, target))
    memory, _ = scaled_dot_product_attention(3 * source, source, source)  # the encoder: the source attends to itself
    _, weights = scaled_dot_product_attention(target, memory, memory)  # the decoder's queries, the encoder's keys
    show_distribution(weights, CHINESE, top=3, keys=ENGLISH)
    pairs = (f"{word} ↔ {ENGLISH[place]}" for word, place in zip(CHINESE, weights.argmax(axis=-1), strict=True))
    print("alignment:", ", ".join(pairs))
    return weights


def table(rows: list[str], cols: list[str], numbers: np.ndarray) -> None:
    """Straight columns, whatever the script."""
    print((" " * 16 + "".join(set_cell_size(col, 8) for col in cols)).rstrip())
    for word, row in zip(rows, numbers, strict=True):
        print((set_cell_size(word, 16) + "".join(f"{number:<8.3f}" for number in row)).rstrip())


def heading(text: str) -> None:
    print(f"\n== {text}")


if __name__ == "__main__":
    main()

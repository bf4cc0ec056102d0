"""Lesson 3, the mathematics at work: 1,000 film reviews in batches through attention, padding included.

python examples/thousand_reviews.py [--data FILE] [--save FOLDER]

FILE is JSON lines with a "text" each, plain or .xz, such as the IMDb reviews of Maas et al. (2011).
"""

import argparse
import json
import lzma
import random
import re
import time
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np

from regard.lessons import (
    create_padding_mask,
    plot_attention_weights,
    scaled_dot_product_attention,
    show_distribution,
)

REVIEWS, LENGTH, BATCH, WIDTH = 1000, 20, 100, 32
PAD = "[PAD]"
IMDB = Path(__file__).resolve().parents[2] / "shared" / "data" / "imdb" / "train.jsonl.xz"

PARTS = (  # of the reviews that are made up where there are none to read
    ["this film", "the plot", "her first picture", "the whole cast", "that long opening scene", "the music"],
    ["is", "was", "seemed", "remains"],
    ["not", "never", "truly", "simply", "almost", ""],
    ["funny", "dull", "moving", "a waste of time", "worth the ticket", "badly lit", "finely acted", "far too long"],
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, metavar="FILE", help="the reviews to read")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="where to put the heat maps")
    options = parser.parse_args()

    sentences = [re.findall(r"[\w']+", text.lower().replace("<br />", " ")) for text in reviews(options.data)]
    vocabulary, ids = numbered(sentences)
    padding, different = np.mean(ids == 0), len(vocabulary) - 1
    print(f"{len(ids)} reviews cut to {LENGTH} words: {padding:.1%} padding, {different} different words")

    vectors = learned(sentences, vocabulary)
    started = time.perf_counter()
    weights = np.concatenate([attention(ids[start : start + BATCH], vectors) for start in range(0, len(ids), BATCH)])
    passed = 1000 * (time.perf_counter() - started)
    print(f"{len(ids) // BATCH} batches of {BATCH} through attention in {passed:.0f} ms")
    report(vocabulary, ids, weights)

    words = list(vocabulary)
    picked = {"the first review": 0, "the shortest review": int(np.argmax((ids == 0).sum(axis=-1)))}
    for name, item in picked.items():
        tokens = [words[number] for number in ids[item]]
        print(f"\n{name}: {' '.join(tokens)}")
        show_distribution(weights[item][:6], tokens[:6], top=3, keys=tokens)
        if options.save is not None:
            options.save.mkdir(parents=True, exist_ok=True)
            path = options.save / f"{name.replace(' ', '_')}.png"
            plot_attention_weights(weights[item], tokens, name, path)
            print("saved", path)


def reviews(path: Path | None) -> list[str]:
    """The first thousand reviews of a file, of IMDb where it is at hand, or else made up."""
    if path is None and not IMDB.exists():
        print("reviews: made up here, since there is no file; --data FILE reads real ones")
        return made_up()
    path = path or IMDB
    print("reviews:", path)
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rt", encoding="utf-8", newline="\n") as lines:  # only \n ends a line: texts hold other breaks
        return [json.loads(line)["text"] for line in islice(lines, REVIEWS)]


def made_up() -> list[str]:
    chance = random.Random(0)
    return [
        " and ".join(" ".join(chance.choice(part) for part in PARTS) for _ in range(chance.randint(1, 4)))
        for _ in range(REVIEWS)
    ]


def numbered(sentences: list[list[str]]) -> tuple[dict[str, int], np.ndarray]:
    """A number for each word, and the reviews as numbers, all of one length.   -> (reviews, LENGTH)"""
    vocabulary = {PAD: 0}
    rows = [[vocabulary.setdefault(word, len(vocabulary)) for word in words[:LENGTH]] for words in sentences]
    return vocabulary, np.array([row + [0] * (LENGTH - len(row)) for row in rows])


def learned(sentences: list[list[str]], vocabulary: dict[str, int]) -> np.ndarray:
    """A vector for each word, from the company it keeps in these very reviews.   -> (words, WIDTH)

    Counts of the frequent words that stand within two places of it, as positive mutual information, cut down by an SVD.
    """
    frequent = Counter(word for words in sentences for word in words).most_common(500)
    column = {word: number for number, (word, _) in enumerate(frequent)}
    counts = np.full((len(vocabulary), len(column)), 0.01)
    for words in sentences:
        for place, word in enumerate(words):
            if word in vocabulary:
                for near in words[max(0, place - 2) : place] + words[place + 1 : place + 3]:
                    if near in column:
                        counts[vocabulary[word], column[near]] += 1
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    information = np.maximum(np.log(counts / expected), 0)
    left, sizes, _ = np.linalg.svd(information, full_matrices=False)
    vectors = (left * np.sqrt(sizes))[:, :WIDTH]
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return 4 * vectors / np.where(lengths == 0, 1, lengths)  # all of one length: it is the direction that counts


def attention(ids: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The weights of a batch of reviews that attend to themselves, padding left out.   -> (batch, LENGTH, LENGTH)"""
    X = vectors[ids]
    _, weights = scaled_dot_product_attention(X, X, X, create_padding_mask(ids, pad_token=0))
    return weights


def report(vocabulary: dict[str, int], ids: np.ndarray, weights: np.ndarray) -> None:
    real = ids != 0
    some = weights[real.any(axis=-1)]
    print(f"weights {weights.shape}: rows add up to {some.sum(axis=-1).min():.6f} … {some.sum(axis=-1).max():.6f}")
    print(f"weight on padding: {np.swapaxes(weights, 1, 2)[~real].sum():.1f}")
    others = weights * (ids[:, :, None] != ids[:, None, :])
    received, times = np.zeros(len(vocabulary)), np.bincount(ids[real], minlength=len(vocabulary))
    np.add.at(received, ids, (others * real[:, :, None]).sum(axis=1))
    mean = np.where(times >= 20, received / np.maximum(times, 1), -1)
    words = list(vocabulary)
    most = ", ".join(f"{words[number]} {mean[number]:.2f}" for number in np.argsort(-mean)[:8])
    print("looked at most by other words, of those that come 20 times:", most)


if __name__ == "__main__":
    main()

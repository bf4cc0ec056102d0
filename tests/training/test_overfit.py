"""Every task learns 64 examples by heart, most of which have no rule to them: nothing between text and loss is lost."""

import json
import random
from dataclasses import replace

import pytest

from regard.predictions import load
from regard.training.run import train

from .corpora import FILLING, NUMBERS, settings

COUNT = 64
WORDS = (*NUMBERS, *FILLING)


def different(draw, longest=6):
    """So many texts of words drawn at random, no two the same."""
    found = {}
    while len(found) < COUNT:
        found[" ".join(draw.choices(WORDS, k=draw.randint(3, longest)))] = None
    return list(found)


def pairs(draw):
    """A text for a text that has nothing to do with it."""
    targets = [" ".join(draw.sample(sorted(NUMBERS.values()), draw.randint(1, 4))) for _ in range(COUNT)]
    return ["source\ttarget", *(f"{one}\t{other}" for one, other in zip(different(draw), targets, strict=True))]


def labels(draw):
    """One of three labels, by chance."""
    return ["text\tlabel", *(f"{text}\t{draw.choice('abc')}" for text in different(draw))]


def questions(draw):
    """Any word of a text may be the answer."""
    lines = []
    for text in different(draw):
        words = text.split()
        place = draw.randrange(len(words))
        start = len(" ".join([*words[:place], ""]))
        lines.append(json.dumps({"context": text, "qas": [["which word?", words[place], start]]}))
    return lines


def texts(draw):
    """All words in one order, over and over, four to a line: each follows from its neighbours, seen from anywhere."""
    order = draw.sample(WORDS, 12) * COUNT
    return [" ".join(order[4 * line : 4 * line + 4]) for line in range(COUNT)]


# What the examples are, how many tokens of them are read at once, and for how many steps they are learned.
EXAMPLES = {
    "translation": (pairs, "tsv", 48, 150), "summarisation": (pairs, "tsv", 48, 150),
    "classification": (labels, "tsv", 48, 60), "language-model": (texts, "txt", 48, 100),
    "masked-language-model": (texts, "txt", 24, 250), "question-answering": (questions, "jsonl", 48, 150),
}  # fmt: skip


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """The examples of a task, and the outcome, measured by the very examples; each is learned once."""
    found = {}

    def learned(task):
        if task not in found:
            found[task] = learn(task, tmp_path_factory.mktemp(task))
        return found[task]

    return learned


def learn(task, folder):
    make, ending, longest, steps = EXAMPLES[task]
    lines, path = make(random.Random(0)), folder / f"examples.{ending}"
    path.write_text("\n".join(lines) + "\n")
    chosen = settings(
        task, path, model={"width": 64, "hidden": 128, "depth": 2}, data={"held_out": [str(path)], "longest": longest},
        steps=steps, tokens=1024, schedule="cosine", learning_rate=5e-3, evaluate_every=steps, save_every=steps,
    )  # fmt: skip
    return lines, train(task, replace(chosen, tokenizer=replace(chosen.tokenizer, size=400)), folder / "out")


@pytest.mark.parametrize("task", EXAMPLES)
def test_examples_are_learned_by_heart(learned, task):
    _, outcome = learned(task)
    assert outcome.best["accuracy"] >= 0.99


def test_translations_are_written_as_they_were_learned(learned):
    (_, *lines), outcome = learned("translation")
    sources, targets = zip(*(line.split("\t") for line in lines), strict=True)
    written = [one.text for one in load(outcome.folder)(list(sources), width=1)]
    wrong = [(one, wanted) for one, wanted in zip(written, targets, strict=True) if one != wanted]
    assert len(wrong) <= 0.01 * COUNT, wrong

"""Small corpora that are easy to learn, made anew by each test, and settings for models that learn them in seconds."""

import json
import random

from regard.training import recipes

NUMBERS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "acht", "six": "neun", "ten": "elf"}
GOOD, BAD = ("sunny", "lovely", "bright", "happy"), ("rainy", "awful", "gloomy", "sad")
FILLING = ("the", "day", "was", "and", "so", "were", "we")
TINY = {"width": 32, "heads": 2, "depth": 1, "hidden": 64, "dropout": 0.0}


def translations(path, count=256, seed=0, longest=3):
    """Numbers in two languages, word for word."""
    draw = random.Random(seed)
    rows = [draw.choices(sorted(NUMBERS), k=draw.randint(1, longest)) for _ in range(count)]
    lines = [" ".join(row) + "\t" + " ".join(NUMBERS[word] for word in row) + "\n" for row in rows]
    return _written(path, "source\ttarget\n" + "".join(lines))


def summaries(path, count=256, seed=0):
    """What matters of a text is its first word."""
    draw = random.Random(seed)
    rows = [(draw.choice(sorted(NUMBERS)), draw.choices(FILLING, k=draw.randint(2, 5))) for _ in range(count)]
    return _written(path, "source\ttarget\n" + "".join(f"{key} {' '.join(rest)}\t{key}\n" for key, rest in rows))


def labels(path, count=256, seed=0):
    """A word of one kind among words that say nothing."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        kind = ("good", "bad")[number % 2]
        words = [*draw.choices(FILLING, k=draw.randint(2, 6)), draw.choice(GOOD if kind == "good" else BAD)]
        draw.shuffle(words)
        rows.append(f"{' '.join(words)}\t{kind}\n")
    return _written(path, "text\tlabel\n" + "".join(rows))


def texts(path, count=200, seed=0):
    """Numbers that are counted up, from anywhere; each line is a text."""
    draw = random.Random(seed)
    words = list(NUMBERS)
    starts = [draw.randrange(len(words)) for _ in range(count)]
    return _written(path, "".join(" ".join((words * 2)[start : start + 7]) + "\n" for start in starts))


def questions(path, count=256, seed=0):
    """The answer is the word behind "here"."""
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        words = draw.choices(FILLING, k=draw.randint(3, 6))
        answer, place = draw.choice(sorted(NUMBERS)), draw.randrange(len(words))
        before = " ".join([*words[:place], "here"])
        context = " ".join([before, answer, *words[place:]])
        lines.append(json.dumps({"context": context, "qas": [["which number?", answer, len(before) + 1]]}))
    return _written(path, "\n".join(lines) + "\n")


CORPORA = {
    "translation": translations, "summarisation": summaries, "classification": labels, "language-model": texts,
    "masked-language-model": texts, "question-answering": questions,
}  # fmt: skip


def settings(task, path, *, model=None, data=None, **training):
    """Those of a run that takes a second or two."""
    shape = {**TINY, **({"decoder_depth": 1} if task in {"translation", "summarisation"} else {}), **(model or {})}
    chosen = {
        "steps": 20, "tokens": 256, "learning_rate": 1e-2, "warmup": 10, "schedule": "constant", "label_smoothing": 0.0,
        "ema": 0.0, "log_every": 1, "device": "cpu", **training,
    }  # fmt: skip
    text = {"paths": [str(path)], "longest": 24, "held_out": 0.1, **(data or {})}
    return recipes.TASKS[task](data=text, model=shape, tokenizer={"size": 320}, training=chosen)


def _written(path, content):
    path.write_text(content)
    return path

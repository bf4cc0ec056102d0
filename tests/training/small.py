"""A loop over a small language model, put together by hand, for the tests of its parts."""

from types import SimpleNamespace

import numpy as np
import torch

from regard.model.language_model import LanguageModel
from regard.text.batches import Bucketed
from regard.text.store import TokenStore
from regard.training import tasks
from regard.training.checkpoints import Checkpoints
from regard.training.engine import Engine
from regard.training.feeding import Feed
from regard.training.log import Log, read
from regard.training.loop import Keeping, Loop
from regard.training.ranks import Ranks
from regard.training.settings import TrainingSettings

ALONE = Ranks(0, 1, torch.device("cpu"))
VOCABULARY = 40


def source(folder, count=60, tokens=64, seed=0):
    """Batches of texts of very unequal length."""
    if not folder.exists():
        draw = np.random.default_rng(0)
        rows = [{"text": draw.integers(4, VOCABULARY, draw.integers(2, 20)).tolist()} for _ in range(count)]
        TokenStore.build(folder, rows, ["text"], vocabulary=VOCABULARY)
    return Bucketed(TokenStore.open(folder), tokens=tokens, seed=seed, fields=["text"])


def model(dropout=0.0):
    torch.manual_seed(0)
    config = LanguageModel.Config(vocabulary=VOCABULARY, width=16, heads=2, depth=1, hidden=32, dropout=dropout)
    return LanguageModel(config)


def loop(folder, task=None, *, identity=None, reporters=(), minutes=None, dropout=0.0, **chosen):
    """The loop, resumed; `kept` of it are the numbers that the best weights were kept with."""
    folder.mkdir(exist_ok=True)
    settings = TrainingSettings(**{
        "steps": 12, "evaluate_every": 1000, "save_every": 4, "log_every": 1, "warmup": 0, "schedule": "constant",
        "device": "cpu", **chosen,
    })  # fmt: skip
    text = source(folder.parent / "store")
    task = task or tasks.LanguageModelling(pad=0)
    feed = Feed(text, task.collate, ALONE, seed=settings.seed, sized=["text"], accumulate=settings.accumulate)
    kept = []
    made = Loop(
        Engine(model(dropout), task, ALONE, precision=settings.precision, compiled=settings.compile), feed,
        Feed(text, task.collate, ALONE, seed=settings.seed), settings, steps=settings.steps,
        keeping=Keeping(
            Checkpoints(folder / "checkpoints", ALONE, settings.keep), Log(folder), identity or {},
            lambda weights, numbers, progress: kept.append((numbers, progress)),
        ),
        reporters=reporters, minutes=minutes,
    )  # fmt: skip
    made.kept = kept
    made.resume()
    return made


def lines(folder):
    """The log, but for what depends on the clock."""
    return [
        {name: value for name, value in line.items() if name not in {"seconds", "tokens_per_second"}}
        for line in read(folder / "log.jsonl")
    ]


def steps(folder):
    return [line["step"] for line in lines(folder) if line["kind"] == "step"]


def losses(folder):
    return [line["loss"] for line in lines(folder) if line["kind"] == "step"]


def tensors(made):
    """All that a run has learned, as it is now."""
    return {name: tensor.clone() for name, tensor in made.optimiser.tensors().items()}


def same(ours, theirs):
    """Whether two sets of tensors are equal to the bit."""
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


class Silent(SimpleNamespace):
    """Somebody who is told everything and says nothing, but for what a test has him do."""

    def __getattr__(self, _):
        return lambda told: None

"""Language modelling: each token from those before it."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from regard.model.language_model import LanguageModel, LanguageModelConfig
from regard.training.objectives import IGNORED
from regard.training.tasks import LanguageModelling

from . import cases

V = 40
TASK = LanguageModelling(pad=0)


def model():
    torch.manual_seed(0)
    config = LanguageModelConfig(vocabulary=V, width=16, heads=2, depth=1, hidden=16, dropout=0.0, longest=32)
    return LanguageModel(config).double()


@pytest.fixture
def examples():
    return [{"text": text} for text in cases.rows(np.random.default_rng(0), 5, 2, 12, V)]


def test_encode_ends_each_text():
    tokenizer = cases.tokenizer()
    found = list(TASK.encode([{"text": "The cat"}, {"text": "A dog"}], tokenizer))
    assert found == [
        {"text": [*tokenizer.encode(text, ends=False).ids, tokenizer.last]} for text in ("The cat", "A dog")
    ]


def test_collate_shifts_by_one():
    batch = TASK.collate([{"text": np.arange(4, 13)}, {"text": np.array([5, 6, 7])}], [])
    assert batch.counts == {"tokens": 8 + 2}
    assert batch.tensors["ids"].tolist() == [[*range(4, 12)], [5, 6, 0, 0, 0, 0, 0, 0]]
    assert batch.tensors["targets"].tolist() == [[*range(5, 13)], [6, 7] + [IGNORED] * 6]


def test_a_window_of_one_token_has_nothing_to_be_said():
    batch = TASK.collate([{"text": np.array([5])}], [])
    assert batch.counts == {"tokens": 0}
    assert float(TASK.losses(model(), batch.tensors)["tokens"].detach()) == 0


def test_the_loss_is_that_of_one_window_after_the_other(examples):
    writer = model()
    batch = TASK.collate(examples, cases.draws(5))
    expected = likely = 0
    for example in examples:
        ids = torch.as_tensor(example["text"])
        logits = writer(ids[None, :-1])[0]
        expected += functional.cross_entropy(logits, ids[1:], reduction="sum")
        likely += int((logits.argmax(-1) == ids[1:]).sum())
    torch.testing.assert_close(TASK.losses(writer, batch.tensors)["tokens"], expected)
    measured = TASK.measures(writer, batch.tensors)
    torch.testing.assert_close(measured["tokens/loss"], expected)
    assert int(measured["tokens/right"]) == likely


def test_shares_of_a_batch_are_the_whole(examples):
    cases.assert_shares_are_the_whole(TASK, model(), examples)
    cases.assert_nothing_is_learned_from_nothing(TASK, model())

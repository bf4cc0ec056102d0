"""Classification: labels in order, texts in batches, and the loss of a real classifier."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from regard.errors import OptionError
from regard.model.classifier import Classifier, ClassifierConfig
from regard.model.reader import ReaderConfig
from regard.training.tasks import Classification, labels_of

from . import cases

V, LABELS = 40, ("bad", "good", "so so")


def task(**changes):
    return Classification(**{"pad": 0, "labels": LABELS, **changes})


def model(pooling="mean", dropout=0.0):
    torch.manual_seed(0)
    reader = ReaderConfig(vocabulary=V, width=16, heads=2, depth=1, hidden=16, dropout=dropout, longest=32)
    return Classifier(ClassifierConfig(reader=reader, labels=LABELS, pooling=pooling, dropout=dropout)).double()


@pytest.fixture
def examples():
    generator = np.random.default_rng(0)
    return [
        {"text": text, "label": np.array([place % 3])} for place, text in enumerate(cases.rows(generator, 5, 1, 12, V))
    ]


def test_labels_are_in_order():
    assert labels_of({"text": "x", "label": label} for label in ("good", "bad", "good", "so so")) == LABELS


def test_too_many_labels_and_too_few_are_refused():
    with pytest.raises(OptionError, match=r"more than 20 labels.*'0', '1'.* and 11 more"):
        labels_of(({"label": str(number)} for number in range(100)), most=20)
    with pytest.raises(OptionError, match="'good'; there must be 2 or more"):
        labels_of([{"label": "good"}])
    with pytest.raises(OptionError, match="labels are 'a', 'a'"):
        task(labels=("a", "a"))


def test_encode():
    tokenizer = cases.tokenizer()
    found = list(task().encode([{"text": "The cat", "label": "so so"}], tokenizer))
    assert found == [{"text": tokenizer.encode("The cat").ids, "label": [2]}]


def test_a_label_that_training_did_not_have_is_named_with_those_it_had():
    with pytest.raises(OptionError, match=r"'awful' is none of .*: 'bad', 'good', 'so so'"):
        list(task().encode([{"text": "x", "label": "good"}, {"text": "x", "label": "awful"}], cases.tokenizer()))


def test_collate():
    batch = task().collate([{"text": [1, 5, 2], "label": [2]}, {"text": [1] * 9, "label": [0]}], [])
    assert batch.counts == {"labels": 2}
    assert batch.tensors["ids"].shape == (2, 16)
    assert batch.tensors["mask"].sum(1).tolist() == [3, 9]
    assert batch.tensors["targets"].tolist() == [2, 0]


def test_the_loss_is_that_of_one_example_after_the_other(examples):
    classifier = model()
    batch = task(label_smoothing=0.1).collate(examples, cases.draws(5))
    logits = torch.cat([classifier(torch.as_tensor(example["text"])[None]) for example in examples])
    targets = torch.tensor([0, 1, 2, 0, 1])
    expected = functional.cross_entropy(logits, targets, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(task(label_smoothing=0.1).losses(classifier, batch.tensors)["labels"], expected)
    measured = task(label_smoothing=0.1).measures(classifier, batch.tensors)
    torch.testing.assert_close(measured["labels/loss"], functional.cross_entropy(logits, targets, reduction="sum"))
    assert int(measured["labels/right"]) == int((logits.argmax(-1) == targets).sum())


@pytest.mark.parametrize("pooling", ["mean", "attention", "first"])
@pytest.mark.parametrize("r_drop", [0.0, 5.0])
def test_shares_of_a_batch_are_the_whole(examples, pooling, r_drop):
    cases.assert_shares_are_the_whole(task(r_drop=r_drop), model(pooling), examples)
    cases.assert_nothing_is_learned_from_nothing(task(r_drop=r_drop), model(pooling))


def test_r_drop_punishes_draws_that_lead_apart(examples):
    classifier = model(dropout=0.3).train()
    tensors = task().collate(examples, cases.draws(5)).tensors
    found = []
    for alpha in (1e-9, 5.0):
        torch.manual_seed(1)
        found.append(float(task(r_drop=alpha).losses(classifier, tensors)["labels"].detach()))
    assert found[1] > found[0] + 1e-3

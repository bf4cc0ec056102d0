"""Translation: what is read, what is said, and the loss of a real translator."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from regard.errors import OptionError
from regard.model.translator import Translator, TranslatorConfig
from regard.training.objectives import IGNORED
from regard.training.tasks import Translation

from . import cases

V = 40


def task(**changes):
    return Translation(**{"pad": 0, "first": 1, **changes})


def model(**changes):
    torch.manual_seed(0)
    config = {
        "vocabulary": V, "width": 16, "heads": 2, "depth": 1, "decoder_depth": 1, "hidden": 16, "dropout": 0.0,
        "longest": 32, **changes,
    }  # fmt: skip
    return Translator(TranslatorConfig(**config)).double()


@pytest.fixture
def examples():
    generator = np.random.default_rng(0)
    sources, targets = (cases.rows(generator, 5, 1, 12, V) for _ in range(2))
    return [{"source": source, "target": target} for source, target in zip(sources, targets, strict=True)]


def test_encode_ends_each_text():
    ours, other = cases.tokenizer(300), cases.tokenizer(280)
    pairs = [{"source": "The cat", "target": "A dog"}, {"source": "x", "target": "y"}]
    found = list(task().encode(pairs, ours, other))
    assert found[0]["source"] == [*ours.encode("The cat", ends=False).ids, ours.last]
    assert found[0]["target"] == [*other.encode("A dog", ends=False).ids, other.last]
    assert list(task().encode(iter(pairs), ours))[1]["target"] == [*ours.encode("y", ends=False).ids, ours.last]


def test_collate():
    batch = task().collate([{"source": [5, 6, 2], "target": [7, 2]}, {"source": [8], "target": [9, 9, 9, 2]}], [])
    assert batch.counts == {"tokens": 6}
    assert batch.tensors["source"].tolist() == [[5, 6, 2, 0, 0, 0, 0, 0], [8, 0, 0, 0, 0, 0, 0, 0]]
    assert batch.tensors["source_mask"].sum(1).tolist() == [3, 1]
    assert batch.tensors["given"][:, :4].tolist() == [[1, 7, 1, 1], [1, 9, 9, 9]]
    assert batch.tensors["targets"][:, :4].tolist() == [[7, 2, IGNORED, IGNORED], [9, 9, 9, 2]]


def test_sources_and_targets_are_padded_to_multiples_of_8_each():
    batch = task().collate([{"source": [4] * 9, "target": [4] * 3}], [])
    assert {name: tuple(tensor.shape) for name, tensor in batch.tensors.items()} == {
        "source": (1, 16), "source_mask": (1, 16), "given": (1, 8), "targets": (1, 8),
    }  # fmt: skip


@pytest.mark.parametrize("changes", [{}, {"tied": False}, {"target_vocabulary": V + 3}])
def test_the_loss_is_that_of_one_example_after_the_other(examples, changes):
    translator = model(**changes)
    batch = task(label_smoothing=0.1).collate(examples, cases.draws(5))
    expected = likely = 0
    for example in examples:
        target = torch.as_tensor(example["target"])
        given = torch.tensor([[1, *example["target"][:-1]]])
        logits = translator(torch.as_tensor(example["source"])[None], given)[0]
        expected += functional.cross_entropy(logits, target, label_smoothing=0.1, reduction="sum")
        likely += int((logits.argmax(-1) == target).sum())
    torch.testing.assert_close(task(label_smoothing=0.1).losses(translator, batch.tensors)["tokens"], expected)
    measured = task(label_smoothing=0.1).measures(translator, batch.tensors)
    torch.testing.assert_close(
        measured["tokens/loss"], task(label_smoothing=0).losses(translator, batch.tensors)["tokens"]
    )
    assert int(measured["tokens/right"]) == likely


@pytest.mark.parametrize("r_drop", [0.0, 5.0])
def test_shares_of_a_batch_are_the_whole(examples, r_drop):
    cases.assert_shares_are_the_whole(task(r_drop=r_drop), model(), examples)
    cases.assert_nothing_is_learned_from_nothing(task(r_drop=r_drop), model())


def test_r_drop_without_dropout_is_the_plain_loss(examples):
    translator = model()
    tensors = task().collate(examples, cases.draws(5)).tensors
    torch.testing.assert_close(
        task(r_drop=5.0).losses(translator, tensors), task(r_drop=0.0).losses(translator, tensors)
    )


def test_r_drop_punishes_draws_that_lead_apart(examples):
    translator = model(dropout=0.3).train()
    tensors = task().collate(examples, cases.draws(5)).tensors
    found = []
    for alpha in (1e-9, 5.0):
        torch.manual_seed(1)
        found.append(float(task(r_drop=alpha).losses(translator, tensors)["tokens"].detach()))
    assert found[1] > found[0] + 1e-3


@pytest.mark.parametrize(("name", "value"), [("label_smoothing", 1.0), ("label_smoothing", -0.1), ("r_drop", -1.0)])
def test_options_that_make_no_sense_are_refused(name, value):
    with pytest.raises(OptionError, match=f"{name} is {value}"):
        task(**{name: value})
